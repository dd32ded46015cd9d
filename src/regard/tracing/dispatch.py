"""Between PyTorch and a tape: the mode through which every primitive operation goes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

from regard.tracing.operations import Operation, operation
from regard.tracing.rules import RULES

if TYPE_CHECKING:
    from regard.tracing.tape import Tape


class Dispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sends every primitive operation to a tape."""

    # Of those (flex_attention is one) the tape records that they ran.
    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else PyTorch loads its compiler, which takes a second, to keep it from what is never compiled anyway."""
        return False

    def __init__(self, tape: "Tape") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tape = tape
        self._operations: dict[Any, Operation] = {}
        self._open = False

    @contextmanager
    def recording(self) -> Iterator[None]:
        """On until it is left, also where it is not the innermost mode then: those that were entered later stay on."""
        self._open = True
        self.__enter__()  # type: ignore[no-untyped-call]
        try:
            yield
        finally:
            self._open = False
            found = self._leave()
        if not found:
            raise ValueError(
                "a trace is left in the thread in which it was entered; this one was left in another: what it recorded "
                "stands, and it records no more"
            )

    def _leave(self) -> bool:
        """Whether it was among the modes of this thread."""
        later: list[Any] = []
        here = any(torch._C._get_dispatch_stack_at(k) is self for k in range(torch._C._len_torch_dispatch_stack()))
        while here and torch._C._get_dispatch_stack_at(torch._C._len_torch_dispatch_stack() - 1) is not self:
            later.append(_pop_mode())
        if here:
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        for mode in reversed(later):
            _push_mode(mode)
        return here

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if not self._open:
            return function(*args, **(kwargs or {}))
        op = self._operations.get(function)
        if op is None:
            op = self._operations[function] = operation(function)
        if not op.composite:
            return self._tape.run(function, op, args, kwargs or {})
        with _views_as_without_modes():
            if op.name not in RULES:
                with self:
                    result = function.decompose(*args, **(kwargs or {}))
                if result is not NotImplemented:
                    return result
            return self._tape.run(function, op, args, kwargs or {})


@contextmanager
def _views_as_without_modes() -> Iterator[None]:
    """What is written in terms of others, and seen whole in inference mode, asks whether views of its tensors require
    gradients (matmul does, to choose between one big product and many); under a mode they would answer otherwise.
    """
    key = torch._C.DispatchKey.ADInplaceOrView
    before = torch._C._dispatch_tls_is_dispatch_key_excluded(key)
    torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
    try:
        yield
    finally:
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, before)
