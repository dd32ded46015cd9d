"""Naming tensors where the code computes them. Without a tape it costs one look at an empty list."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class Recorder(Protocol):
    """What a tape does with a name."""

    def name(self, tensor: "Tensor", name: str, formula: str) -> None: ...


# The tapes that record now, innermost last.
recorders: list[Recorder] = []

# Other names for what is labelled within `renamed`, innermost last.
_others: list[dict[str, str]] = []


def active() -> bool:
    """Whether a tape records now."""
    return bool(recorders)


def label(tensor: "Tensor", name: str, formula: str = "") -> "Tensor":
    """Name a tensor for the tapes that record now, and return it: `label(softmax(E), "A", "softmax(E)")`."""
    if recorders:
        name = _others[-1].get(name, name) if _others else name
        for recorder in recorders:
            recorder.name(tensor, name, formula)
    return tensor


@contextmanager
def renamed(**names: str) -> Iterator[None]:
    """Within it what calls itself E, A or O gets the name it has where it is used: `renamed(A="α_3", O="c_3")`."""
    _others.append(names)
    try:
        yield
    finally:
        _others.pop()
