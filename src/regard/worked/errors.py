"""What can be wrong in a formula, with its place in the text."""

from typing import NamedTuple

LONGEST = 60
"""Of a line that is repeated in a message."""


class Span(NamedTuple):
    """From the first character to the one after the last, counted from 0."""

    start: int
    stop: int


class FormulaError(ValueError):
    """A formula that cannot be read or worked: what is wrong, and where in its text."""

    def __init__(self, said: str, at: Span, source: str = "") -> None:
        super().__init__(said)
        self.said, self.at, self.source = said, at, source

    def within(self, source: str) -> "FormulaError":
        """The same error, told with the part of the formula it is about."""
        return FormulaError(self.said, self.at, source)

    @property
    def part(self) -> str:
        """The piece of the formula that is wrong; empty where that is the whole, or nothing one could show."""
        piece = self.source[self.at.start : self.at.stop].strip()
        return "" if piece == self.source.strip() else piece

    def __str__(self) -> str:
        if not self.source:
            return self.said
        return f"in `{self.part or self.source}`, column {self.at.start + 1} of the formula: {self.said}"


def formula_told(error: FormulaError, name: str, step: str, line: int, column: int | None, layer: str = "") -> str:
    """`masked.yaml:9:6: step E, in `Q @ K`: …`: line and column of the file where the formula goes wrong.

    `layer` is the line as written, where the step is one of a whole layer.
    """
    place = f"{name}:{line}" if column is None else f"{name}:{line}:{column + error.at.start}"
    whole = f" of `{layer if len(layer) <= LONGEST else layer[: LONGEST - 1] + '…'}`" if layer else ""
    part = f", in `{error.part}`" if error.part else ""
    return f"{place}: step {step}{whole}{part}: {error.said}"
