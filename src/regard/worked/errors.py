"""What can be wrong in a formula, with its place in the text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from regard.worked.lines import Text

LONGEST = 60
"""Of a line that is repeated in a message."""


class Span(NamedTuple):
    """From the first character to the one after the last, counted from 0."""

    start: int
    stop: int


NOWHERE = Span(0, 0)


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


@dataclass(frozen=True)
class Site:
    """Where a formula stands in its file."""

    tree: Text
    """The line, as it was read."""
    layer: str = ""
    """The line in a few words, where the formula is not written there itself but belongs to a whole layer that is."""
    origins: Mapping[Span, Span] = field(default_factory=dict)
    """Of such a formula: for each of its parts, the part of the line that it was made from."""
    call: Span = NOWHERE
    """The whole layer in its line."""

    def told(self, error: FormulaError, step: str) -> str:
        """`masked.yaml:9:6: step E, in `Q @ K`: …`: line and column of the file where the formula goes wrong."""
        at = self.origins.get(error.at, self.call) if self.layer else error.at
        leading = len(self.tree.text) - len(self.tree.text.lstrip())  # a formula is read without
        place = f"{self.tree.source.name}:{self.tree.place(leading + at.start)}"
        layer = self.layer if len(self.layer) <= LONGEST else self.layer[: LONGEST - 1] + "…"
        whole = f" of `{layer}`" if layer else ""
        part = f", in `{error.part}`" if error.part.isprintable() and error.part else ""
        return f"{place}: step {step}{whole}{part}: {error.said}"
