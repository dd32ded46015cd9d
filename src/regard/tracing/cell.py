"""One cell of a derivation: its number, its parents, and the arithmetic that made it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from regard.tracing.expression import Expression, Frame, Number
from regard.tracing.index import Flat, row_strides

if TYPE_CHECKING:
    from regard.tracing.derivation import Derivation
    from regard.tracing.step import Step

__all__ = ["Cell", "Expression", "Frame", "Number", "Parent"]


class Parent(NamedTuple):
    """A cell that another was made from."""

    step: str
    index: tuple[int, ...]  # type: ignore[assignment]  # a tuple's method of that name is not missed here
    value: Number | None
    """None where the values of the step were left out."""


NOBODY = Parent("", (), None)


def parents_in(step: "Step", flat: Flat) -> Iterator[Parent]:
    """The cells of a step at these flat indices."""
    cells = step.cells(flat)
    values = [None] * flat.size if cells is None else cells.tolist()
    places = np.stack(np.unravel_index(flat, step.shape), 1).tolist() if step.shape else [()] * flat.size
    return (Parent(step.name, tuple(index), value) for index, value in zip(places, values, strict=True))


class Cell:
    """One number of a derivation and the arithmetic that made it."""

    def __init__(self, derivation: "Derivation", step: "Step", index: tuple[int, ...], fine: bool = False) -> None:
        self.step, self.index, self._derivation, self._fine = step, index, derivation, fine
        self._flat = sum(i * stride for i, stride in zip(index, row_strides(step.shape), strict=True))
        frame = derivation.frame(step, self._flat, fine)
        self.expression: Expression = frame.part(frame.body, None)
        """The formula with its numbers, to walk through."""
        self._holds: bool | None = None

    @property
    def value(self) -> Number:
        """The recorded number."""
        found = self.step.cells(np.array([self._flat]))
        if found is None:
            raise ValueError(
                f"the values of {self.step.name!r} {list(self.step.shape)} were left out of the derivation"
            )
        number: Number = found.item()
        return number

    @property
    def holds(self) -> bool:
        """Whether the numbers in the formula give the recorded one, within its rounding; they do not where one of them
        was written over past PyTorch's dispatcher. True where nothing can be said.
        """
        if self._holds is None:
            from regard.tracing.checking import holds

            self._holds = holds(self._derivation, self.step, self._flat, self._fine)
        return self._holds

    @property
    def parents(self) -> tuple[Parent, ...]:
        """The cells it was made from, each once, in the order in which they stand in the text."""
        parts = list(self.expression.cells())
        if not parts:
            return ()
        owners, indices = (np.concatenate(each) for each in zip(*parts, strict=True))
        _, first = np.unique(owners * (int(indices.max(initial=0)) + 1) + indices, return_index=True)
        first.sort()
        owners, indices = owners[first], indices[first]
        found: list[Parent] = [NOBODY] * len(owners)
        for owner in np.unique(owners).tolist():
            step, here = self._derivation.fine[owner], np.flatnonzero(owners == owner)
            for place, parent in zip(here.tolist(), parents_in(step, indices[here]), strict=True):
                found[place] = parent
        return tuple(found)

    @property
    def text(self) -> str:
        """One line: `0.3280 ≈ e^0.82 / (e^0.6 + e^0.82 + e^1.04)`; `=` where nothing in it is rounded."""
        return self.show()

    def show(self, digits: int = 4, terms: int | None = 8) -> str:
        """The text with 2 to 6 significant digits, and as many terms of a long sum (None: all of them)."""
        from regard.tracing.render.equation import line

        return line(self, digits, terms)

    def __repr__(self) -> str:
        where = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        return f"{self.step.name}{where}: {self.text}"
