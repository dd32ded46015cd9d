"""What is said of an answer: of each cell, each step, and the whole."""

import math
from dataclasses import dataclass
from typing import Any

from regard.worked.known import Verdict
from regard.worked.tolerance import Interval, Written

CUT = "cut, not rounded"
VERDICTS: tuple[Verdict, ...] = ("right", "follows", "wrong", "unclaimed")


@dataclass(frozen=True)
class CellMark:
    """What is said of one cell of a step that was answered."""

    place: tuple[int, ...]
    """Row and column, counted from 1; one number and a row of numbers stand in row 1."""
    claimed: Written
    """What stands there; blank where nothing does."""
    true: float
    """No number where there should be no cell, in an answer of another shape."""
    follows: float
    """What the claimant's own earlier numbers give; the true value where they cannot be worked with."""
    verdict: Verdict
    remark: str = ""
    """`CUT`, or nothing."""


@dataclass(frozen=True)
class StepMark:
    """What is said of one step."""

    name: str
    formula: str
    verdict: Verdict
    cells: tuple[CellMark, ...] = ()
    """Row by row, where the step was answered at all; those left blank are unclaimed."""
    slip: str | None = None
    """The usual slip that explains every wrong cell."""
    against: tuple[str, ...] = ()
    """Steps before in which that slip would have been made, and which were answered without it."""
    misfit: str | None = None
    """Where another shape was claimed: which, and which is right. Cells too many are wrong then, and those missing."""
    missed: str = ""
    """The arithmetic of the first wrong cell, from the claimant's own earlier numbers."""

    @property
    def wrong(self) -> tuple[CellMark, ...]:
        return tuple(cell for cell in self.cells if cell.verdict == "wrong")

    @property
    def blank(self) -> tuple[CellMark, ...]:
        """The cells that were left blank in a step that was answered in part."""
        return tuple(cell for cell in self.cells if cell.verdict == "unclaimed")

    def as_json(self) -> dict[str, Any]:
        wrong = [
            {
                "cell": list(cell.place),
                "claimed": plain(cell.claimed.value),
                "true": plain(cell.true),
                "follows": plain(cell.follows),
            }
            for cell in self.wrong
        ]
        blank = {"unclaimed_cells": [list(cell.place) for cell in self.blank]} if self.blank else {}
        shape = {"shape": self.misfit} if self.misfit else {}
        return {"name": self.name, "verdict": self.verdict, "wrong_cells": wrong, "slip": self.slip, **blank, **shape}


@dataclass(frozen=True)
class Marks:
    """A marked answer."""

    title: str
    steps: tuple[StepMark, ...]

    def __getitem__(self, name: str) -> StepMark:
        return {step.name: step for step in self.steps}[name]

    @property
    def first_wrong(self) -> tuple[StepMark, CellMark] | None:
        """The first wrong cell of the whole answer."""
        return next(((step, cell) for step in self.steps for cell in step.wrong), None)

    @property
    def counts(self) -> dict[str, int]:
        """How many steps there are of each verdict."""
        return {verdict: sum(step.verdict == verdict for step in self.steps) for verdict in VERDICTS}

    def as_json(self) -> dict[str, Any]:
        """What `--format json` prints: numbers, but for a blocked cell "-inf", and null where there is none."""
        first = self.first_wrong
        return {
            "title": self.title,
            "steps": [step.as_json() for step in self.steps],
            "first_wrong": first and {"step": first[0].name, "cell": list(first[1].place)},
            "counts": self.counts,
        }


def plain(number: float) -> float | str | None:
    """As JSON has it, which knows no infinities."""
    return number if math.isfinite(number) else None if math.isnan(number) else str(number)


def digits_for(cell: CellMark, value: float) -> int:
    """How many significant digits show that a value is not what was written: 4, or as many more (up to 8) as it takes.

    Where 7.14 is wrong, 7.13489 is not told as 7.135.
    """
    number = cell.claimed
    for digits in range(4, 8):
        told = float(f"{value:.{digits}g}")
        taken = Interval(told, told)
        if not number.is_rounded_from(taken) and (not cell.remark or number.is_cut_from(taken)):
            return digits
    return 8
