"""Between PyTorch and a tape: the mode through which every primitive operation goes."""

from typing import TYPE_CHECKING, Any

from torch.utils._python_dispatch import TorchDispatchMode

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

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        op = self._operations.get(function)
        if op is None:
            op = self._operations[function] = operation(function)
        if op.composite and op.name not in RULES:
            with self:
                result = function.decompose(*args, **(kwargs or {}))
            if result is not NotImplemented:
                return result
        return self._tape.run(function, op, args, kwargs or {})
