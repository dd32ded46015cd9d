"""A step that went wrong, and what may be said of it: the slip that explains it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from torch import Tensor

from regard.worked.formula import Formula
from regard.worked.known import Known, View
from regard.worked.marks import CellMark
from regard.worked.nodes import Node
from regard.worked.reach import Reach
from regard.worked.tolerance import Interval

VIEWS: tuple[View, ...] = ("own", "true")


@dataclass(frozen=True)
class Attempt:
    """A step that went wrong, and all that is known of the answer so far."""

    name: str
    root: Node
    cells: tuple[CellMark, ...]
    true: Tensor
    formulas: Mapping[str, Formula]
    known: Known
    reach: Reach

    @cached_property
    def wrong(self) -> tuple[int, ...]:
        """Places of the wrong cells, counted through from 0."""
        return tuple(place for place, cell in enumerate(self.cells) if cell.verdict == "wrong")

    def honest(self, place: int) -> tuple[Interval, ...]:
        """The values the cell could have had."""
        try:
            return tuple(self.reach.all(self.root, place, view) for view in VIEWS)
        except ValueError:  # from the claimant's own numbers nothing follows
            return (self.reach.all(self.root, place, "true"),)


class Slip(NamedTuple):
    text: str
    """What a teacher would say; it begins with the slip's name."""
    recipe: Node | None = None
    """What was worked instead, where that is known."""
    gives: frozenset[int] = frozenset()
    """Places of the cells that this explains."""
    others: frozenset[int] = frozenset()
    """Places of cells that looked cut instead of rounded, and are explained by the slip to the last digit."""
    against: tuple[str, ...] = ()
    """Steps before, in which it would have been made, and which were answered without it."""
