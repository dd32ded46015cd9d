"""Naming tensors where the code computes them. Without a tape it costs one look at an empty list."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class Recorder(Protocol):
    """What a tape does with a name."""

    def name(self, tensor: "Tensor", name: str, formula: str) -> None: ...


# The tapes that record now, innermost last.
recorders: list[Recorder] = []


def active() -> bool:
    """Whether a tape records now."""
    return bool(recorders)


def label(tensor: "Tensor", name: str, formula: str = "") -> "Tensor":
    """Name a tensor for the tapes that record now, and return it: `label(softmax(E), "A", "softmax(E)")`."""
    if recorders:
        for recorder in recorders:
            recorder.name(tensor, name, formula)
    return tensor
