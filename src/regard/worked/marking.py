"""Marking an answer: each claimed step is worked again from the claimant's own earlier numbers.

A cell is right where it agrees with the true value, follows where it is not true but what the earlier, wrong
numbers give, and wrong where it is neither. It is judged by the cells it is made from, not by whole steps:

    right      within half a unit of its last digit of a value it can have with every wrong cell before it put right
    follows    the same with the wrong cells before it as they were claimed
    wrong      neither, nor cut off instead of rounded

A cell left blank is unclaimed, and stands as it was worked out. `reach` says which values a cell can have,
`tolerance` what half a unit is.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.worked.attempt import Attempt, Slip
from regard.worked.formula import Formula
from regard.worked.known import Known, Recipe, Verdict
from regard.worked.limits import spelled as shape_spelled
from regard.worked.marks import CUT, CellMark, Marks, StepMark, digits_for
from regard.worked.missed import missed
from regard.worked.notation import spelled
from regard.worked.problem import Claimed, Given, Problem, ProblemStep
from regard.worked.reach import Reach
from regard.worked.slips import named
from regard.worked.solution import solve
from regard.worked.tolerance import Interval, Written, written

ALIKE = 1e-12
"""Two values that differ by less, as a share of them, are the same number worked in another order."""
MOST_EQUATIONS = 60
"""That are written out in one answer; who has as many wrong steps has enough to read."""
(NOTHING,) = written([""])
"""What is written where a cell is missing."""


def mark(problem: Problem) -> Marks:
    """Mark the claimed steps of a problem. Misuse where the problem itself cannot be worked."""
    true = solve(problem).values
    given = {name: each.value for name, each in problem.given.items()}
    marker = _Marker(problem, Known(given, {n: half_units(g) for n, g in problem.given.items() if g.rounded}))
    return Marks(problem.title, tuple(marker.step(step, true[step.name]) for step in problem.steps))


def half_units(given: Given) -> Tensor:
    """Of the last digit of each number as printed."""
    units = [each.unit / 2 for each in written(texts(given.cells))]
    return torch.tensor(units, dtype=torch.float64).reshape(given.value.shape)


def texts(cells: Any) -> list[str]:
    """Cells as written, row by row."""
    return [text for each in cells for text in texts(each)] if isinstance(cells, list) else [cells]


class _Marker:
    """Goes through the steps in order and remembers what was claimed and how it stands."""

    def __init__(self, problem: Problem, known: Known) -> None:
        self.problem, self.known, self.reach = problem, known, Reach(known, len(problem.steps))
        self.formulas = {step.name: step.formula for step in problem.steps}
        self._equations = 0
        self._worked_for: Recipe | None = None
        self._both: tuple[Tensor, Tensor]

    def step(self, step: ProblemStep, true: Tensor) -> StepMark:
        known, name, recipe = self.known, step.name, step.formula
        known.recipes[name], known.true[name] = recipe, true
        # What follows from wrong numbers may not exist (a place that is none, the root of less than 0).
        own = _worked(recipe, known.own, true)
        known.own[name], known.kept[name] = own, _worked(recipe, known.kept, true)
        claimed = self.problem.claimed.get(name)
        if claimed is None:
            return StepMark(name, spelled(recipe.root), "unclaimed")
        numbers = written(texts(claimed.cells))
        if not _fits(claimed.value.shape, true.shape):
            return self._misfit(step, claimed, numbers, true, own)
        cells = [self._cell(name, place, number, true, own) for place, number in enumerate(numbers)]
        slip = self._slip(name, recipe, tuple(cells), true)
        if slip:
            cells = [_excused_no_more(cell) if place in slip.others else cell for place, cell in enumerate(cells)]
        slipped = (slip.text, slip.against) if slip else (None, ())
        told = StepMark(name, spelled(recipe.root), _worst(cells), tuple(cells), *slipped)
        places = {cell.place: place for place, cell in enumerate(cells)}
        told = replace(told, missed=self._missed(step, told, places))
        self._remember(name, claimed.value.reshape(true.shape), cells)
        return told

    def _slip(self, name: str, recipe: Formula, cells: tuple[CellMark, ...], true: Tensor) -> Slip | None:
        if not any(cell.verdict == "wrong" for cell in cells):
            return None
        slip = named(Attempt(name, recipe.root, cells, true, self.formulas, self.known, self.reach))
        if slip and slip.recipe:
            gives = torch.tensor([place in slip.gives for place in range(true.numel())]).reshape(true.shape)
            self.known.slipped[name] = slip.recipe, gives
        return slip

    def _missed(self, step: ProblemStep, told: StepMark, should: Mapping[tuple[int, ...], int]) -> str:
        """The equation of the first wrong cell, or of the first that is missing; not of one too many."""
        cells = sorted((each for each in told.wrong if each.place in should), key=lambda each: each.claimed.blank)
        if not cells or self._equations >= MOST_EQUATIONS:
            return ""
        self._equations += 1
        cell = cells[0]
        values = {name: self.known.own[name] for name in step.formula.names}
        return missed(step.formula, values, step.name, should[cell.place], min(digits_for(cell, cell.follows), 6))

    def _cell(self, name: str, place: int, number: Written, true: Tensor, own: Tensor) -> CellMark:
        unclaimed: tuple[Verdict, str] = ("unclaimed", "")
        verdict, remark = unclaimed if number.blank else self._judged(name, place, number)
        at = position(place, tuple(true.shape))
        return CellMark(at, number, float(true.flatten()[place]), float(own.flatten()[place]), verdict, remark)

    def _judged(self, name: str, place: int, number: Written) -> tuple[Verdict, str]:
        """What is quick to know is asked first; the whole intervals hold the nearby values."""
        reach, recipe = self.reach, self.known.recipes[name]
        if number.is_rounded_from(reach.nearby(recipe, place, "true")):
            return "right", ""
        if number.is_rounded_from(reach.all(recipe, place, "true")):
            return "right", ""
        if number.is_rounded_from(reach.walked(name, place, "true")):
            return "right", ""
        if self._led_astray(recipe, place):
            following = reach.all(recipe, place, "own")
            if number.is_rounded_from(following) or number.is_rounded_from(reach.walked(name, place, "own")):
                return "follows", ""
            # Who cuts digits off has seen them: they are those of the claimant's own numbers.
            if number.is_cut_from(following):
                return "follows", CUT
        elif number.is_rounded_from(self._unrounded(recipe, place)):
            return "follows", ""
        return ("right", CUT) if number.is_cut_from(reach.all(recipe, place, "true")) else ("wrong", "")

    def _led_astray(self, recipe: Recipe, place: int) -> bool:
        """Whether a cell that is not right stands among those it is made from, and matters."""
        own, kept = (float(value[place]) for value in self._ways(recipe))
        return own != kept and not math.isclose(own, kept, rel_tol=ALIKE)

    def _unrounded(self, recipe: Recipe, place: int) -> Interval:
        """What a mistake further back leads to, where the cells between no longer show it in the digits they keep."""
        value = float(self.reach.values(recipe, "own")[-1].flatten()[place])
        return Interval(value, value)

    def _ways(self, recipe: Recipe) -> tuple[Tensor, Tensor]:
        """The step worked from the claimant's numbers as they are, and with only the right ones of them."""
        if self._worked_for is not recipe:
            known, sources = self.known, self.known.sources(recipe)
            own, kept = ({name: values[name] for name in sources} for values in (known.own, known.kept))
            right = known.worked(recipe, kept).flatten()
            try:
                self._both = known.worked(recipe, own).flatten(), right
            except ValueError:  # nothing follows from these
                self._both = right, right
            self._worked_for = recipe
        return self._both

    def _misfit(
        self, step: ProblemStep, claimed: Claimed, numbers: tuple[Written, ...], true: Tensor, own: Tensor
    ) -> StepMark:
        """Another shape than it can have: wrong as it stands, and what follows is worked from what it should be.

        Cells that stand where there should be one are judged by it; those too many are wrong, and so are those missing.
        """
        shape, should_be = _beside(tuple(claimed.value.shape), tuple(true.shape))
        stands = dict(zip(positions(shape), numbers, strict=True))
        should = {at: place for place, at in enumerate(positions(should_be))}
        cells = []
        for at in sorted({*stands, *should}):
            if at in stands and at in should:
                cells.append(replace(self._cell(step.name, should[at], stands[at], true, own), place=at))
            else:
                is_, follows = (float(each.flatten()[should[at]]) if at in should else math.nan for each in (true, own))
                cells.append(CellMark(at, stands.get(at, NOTHING), is_, follows, "wrong"))
        shapes = f"{shape_spelled(claimed.value.shape)} where there should be {shape_spelled(true.shape)}"
        told = StepMark(step.name, spelled(step.formula.root), "wrong", tuple(cells), misfit=shapes)
        return replace(told, missed=self._missed(step, told, should))

    def _remember(self, name: str, value: Tensor, cells: list[CellMark]) -> None:
        """`own` and `kept` hold what the formula gives of earlier numbers: so a cell that was left blank stands."""
        known = self.known
        known.standing[name] = [cell.verdict for cell in cells]
        right, blank = known.stands(name, "right"), known.stands(name, "unclaimed")
        known.kept[name] = torch.where(right, value, torch.where(blank, known.kept[name], known.true[name]))
        known.own[name] = torch.where(blank, known.own[name], value)


def position(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row and column, counted from 1."""
    full = (1,) * (2 - len(shape)) + shape
    found = []
    for size in reversed(full):
        found.append(place % size + 1)
        place //= size
    return tuple(reversed(found))


def positions(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Of all its cells."""
    return [position(place, shape) for place in range(math.prod(shape))]


def _beside(claimed: tuple[int, ...], true: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Both with as many axes, so that their cells can be compared; two rows of numbers the way the true one lies."""
    rank = max(len(claimed), len(true), 2)
    padded, should = ((1,) * (rank - len(each)) + each for each in (claimed, true))
    if sum(size != 1 for size in padded) > 1 or sum(size != 1 for size in should) > 1:
        return padded, should
    along = next((axis for axis, size in enumerate(should) if size != 1), rank - 1)
    ones = (1,) * rank
    return (*ones[:along], math.prod(claimed), *ones[along + 1 :]), should


def _worked(recipe: Recipe, values: dict[str, Tensor], true: Tensor) -> Tensor:
    try:
        return recipe.compute({name: values[name] for name in recipe.names})
    except ValueError:
        return true


def _fits(claimed: torch.Size, true: torch.Size) -> bool:
    """A row of numbers may be written as one row, or one below the other."""
    return [size for size in claimed if size != 1] == [size for size in true if size != 1]


def _excused_no_more(cell: CellMark) -> CellMark:
    """What looked like digits cut off was the slip."""
    return replace(cell, verdict="wrong", remark="")


def _worst(cells: list[CellMark]) -> Verdict:
    found = {cell.verdict for cell in cells}
    return "wrong" if "wrong" in found else "follows" if "follows" in found else "right"
