"""The multiply-adds of a model, counted: a sentence goes through it, and each product of matrices is noted under the
part that asked for it.

Element by element work (tanh, softmax, sums) is left out, as is the custom.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from regard.models.characters import Characters
from regard.models.contract import Model, SequenceModel
from regard.tracing.labels import recorders

LETTERS = 8
"""Of each word of the source, for models that read words by their letters."""
CALLED = ("forward", "project", "advance", "keys", "attend_to", "attend_together")
"""The methods under whose name a part does its work."""


def counted(model: Model, places: int, parts: Collection[str]) -> tuple["Counter[str]", "Counter[str]"]:
    """Multiply-adds of one source, and of one target, by the names of the parts."""
    modules = dict(model.named_modules())
    owners = {id(modules[name]): name for name in parts if name in modules}
    training = model.training
    model.eval()
    source, fed = example(model, places)
    with torch.no_grad(), _written_out(), _entered(model, owners) as inside:
        with Products(inside) as encoding:
            memory: Any = model.encode(source)  # type: ignore[operator] # each kind of model has one
            if not isinstance(model, SequenceModel):
                model.predict(memory)  # type: ignore[operator]
        with Products(inside) as decoding:
            if isinstance(model, SequenceModel):
                state = model.start(memory)
                for place in range(places):
                    _, state, _ = model.step(fed[:, place], state, memory)
    model.train(training)
    return encoding.found, decoding.found


def example(model: Model, places: int) -> tuple[Tensor, Tensor]:
    """A source of the sort that the model reads, and a target."""
    fed, sizes = torch.zeros(1, places, dtype=torch.long), model.sizes
    if sizes.image is not None:
        channels, height, width = sizes.image
        return torch.zeros(1, channels, height, width or height), fed
    if sizes.input_width is not None and sizes.source is None:
        return torch.zeros(1, places, sizes.input_width), fed
    spelled = any(isinstance(part, Characters) for part in model.modules())
    return torch.zeros(1, places, 1 + LETTERS, dtype=torch.long) if spelled else fed, fed


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the multiply-adds of every product of matrices under the part that is at work."""

    def __init__(self, inside: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.inside, self.found = inside, Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        operation = func._overloadpacket
        if operation in flop_registry:
            # The registry counts a multiplication and an addition as two.
            self.found[self._part] += flop_registry[operation](*args, **(kwargs or {}), out_val=out) // 2
        elif operation in (torch.ops.aten.mv, torch.ops.aten.dot):
            self.found[self._part] += args[0].numel()
        return out

    @property
    def _part(self) -> str:
        return self.inside[-1] if self.inside else ""


@contextmanager
def _entered(model: nn.Module, owners: dict[int, str]) -> Iterator[list[str]]:
    """While it lasts, the list's last name is that of the part at work."""
    inside: list[str] = []
    wrapped = [
        (module, method)
        for module in model.modules() if id(module) in owners
        for method in CALLED if callable(getattr(module, method, None))
    ]  # fmt: skip
    for module, method in wrapped:
        setattr(module, method, _within(getattr(module, method), owners[id(module)], inside))
    try:
        yield inside
    finally:
        for module, method in wrapped:
            delattr(module, method)


def _within(run: Callable[..., Any], name: str, inside: list[str]) -> Callable[..., Any]:
    def noted(*given: Any, **named: Any) -> Any:
        inside.append(name)
        try:
            return run(*given, **named)
        finally:
            inside.pop()

    return noted


class _Deaf:
    """A recorder that hears nothing: where one is there, cells and attention run written out, product by product."""

    def name(self, tensor: Tensor, name: str, formula: str) -> None:
        return


@contextmanager
def _written_out() -> Iterator[None]:
    recorder = _Deaf()
    recorders.append(recorder)
    try:
        yield
    finally:
        recorders.remove(recorder)
