"""Which usual slip explains a wrong step: named only where one slip alone explains every wrong cell of it.

Slips that change the formula (`changes`) are tried first, each by working the changed formula from the same numbers;
then those that show in the cells as they were written: two of them swapped, a digit misread, weights whose row does
not sum to one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from regard.worked import changes
from regard.worked.calls import Call
from regard.worked.changes import Setting, changed
from regard.worked.formula import Formula
from regard.worked.known import Known, View
from regard.worked.marks import CUT, CellMark
from regard.worked.nodes import Binary, Name, Node, Number
from regard.worked.reach import Reach
from regard.worked.tolerance import ROUNDING, Interval, Written

MOST_LOOKS = 20_000
"""At cells, in the search for slips in one answer, about half a second; where more are needed nothing is said."""
MOST_FORMS = 12
"""Ways to write one formula with the steps before it put in, of those that are tried."""
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


def named(attempt: Attempt) -> Slip | None:
    """The slip that explains every wrong cell, where one of the usual ones does."""
    for find in (_from_changes, _taken_for_one, _cells_swapped, _misread, _rows_off):
        if slip := find(attempt):
            return slip
    return None


def _from_changes(attempt: Attempt) -> Slip | None:
    """A change that also agrees with the cells that are not wrong is better than one that does not."""
    formulas = {name: formula.root for name, formula in attempt.formulas.items() if name != attempt.name}
    setting = Setting(formulas, set(attempt.known.true) - set(formulas) - {attempt.name}, attempt.known.true)
    partial: Slip | None = None
    forms = _forms(attempt)
    for rule in changes.RULES:
        for form, sure, free in forms:
            for change in changed(form, rule, setting) if sure or len(attempt.wrong) > 1 else ():
                found = _explained(attempt, change.to, change.said)
                if found and found[1]:
                    return found[0]
                partial = partial or (found[0] if found and free and len(attempt.wrong) > 1 else None)
    return partial


def _forms(attempt: Attempt) -> list[tuple[Node, bool, bool]]:
    """The formula, and the formula with earlier steps put in where somebody may have worked them in one go.

    Where those are steps of some weight, a single cell is no evidence of what happened inside of them. And where one
    of them was claimed and is right, some cells are none: only what gives every cell of the step is believed.
    """
    forms, seen = [(attempt.root, True, True)], {str(attempt.root)}
    standing = attempt.known.standing
    for form, sure, free in forms:
        for name in form.names:
            formula = attempt.formulas.get(name)
            if formula is None or not (_light(formula.root) or name not in standing):
                continue
            longer = form.rewritten(_replacing(name, formula.root))
            if str(longer) not in seen and len(forms) < MOST_FORMS:
                seen.add(str(longer))
                right = set(standing.get(name, ())) == {"right"}
                forms.append((longer, sure and _light(formula.root), free and not right))
    return forms


def _replacing(name: str, by: Node) -> Callable[[Node], Node]:
    return lambda node: by if isinstance(node, Name) and node.name == name else node


def _light(formula: Node) -> bool:
    """A step that only scales or masks another."""
    divides = isinstance(formula, Binary) and formula.sign == "/"
    divides |= isinstance(formula, Binary) and formula.sign == "*" and any(map(_is_number, formula.parts))
    return divides or (isinstance(formula, Call) and formula.function in ("mask", "scale"))


def _is_number(node: Node) -> bool:
    return isinstance(node, Number)


def _explained(attempt: Attempt, recipe: Node, said: str) -> tuple[Slip, bool] | None:
    """The slip where the changed formula gives every row with a wrong cell, and whether it gives the others too."""
    try:
        value = attempt.known.worked(recipe, {name: attempt.known.own[name] for name in attempt.known.sources(recipe)})
        if value.shape != attempt.true.shape or not all(_gives(attempt, recipe, place) for place in attempt.wrong):
            return None
        rest = [place for place, cell in enumerate(attempt.cells) if cell.verdict not in ("wrong", "unclaimed")]
        rows = {_row(attempt, place) for place in attempt.wrong}
        given = {place for place in rest if _gives(attempt, recipe, place)}
        if any(place not in given and _row(attempt, place) in rows for place in rest):
            return None
        cut = {place for place in given if attempt.cells[place].remark == CUT and _gives(attempt, recipe, place, False)}
    except (ValueError, KeyError, _Tired):  # what cannot be worked was not what somebody worked
        return None
    blank = {k for k, cell in enumerate(attempt.cells) if cell.verdict == "unclaimed" and _row(attempt, k) in rows}
    return Slip(said, recipe, frozenset({*given, *blank, *attempt.wrong}), frozenset(cut)), len(given) == len(rest)


class _Tired(Exception):
    """So many cells have been looked at that the search ends."""


def _row(attempt: Attempt, place: int) -> int:
    return place // attempt.true.shape[-1] if attempt.true.ndim else 0


def _gives(attempt: Attempt, recipe: Node, place: int, cut_too: bool = True) -> bool:
    number = attempt.cells[place].claimed
    attempt.reach.looks += 1
    if attempt.reach.looks > MOST_LOOKS:
        raise _Tired
    for interval in (attempt.reach.nearby, attempt.reach.all):  # the first is quick
        reached = [interval(recipe, place, view) for view in VIEWS]
        if any(number.is_rounded_from(each) or (cut_too and number.is_cut_from(each)) for each in reached):
            return True
    return False


def _cells_swapped(attempt: Attempt) -> Slip | None:
    """Two wrong cells, each with what the other should have."""
    if len(attempt.wrong) != 2:
        return None
    one, other = attempt.wrong
    crossed = ((one, other), (other, one))
    if not all(_fits(attempt.cells[here].claimed, attempt.honest(there)) for here, there in crossed):
        return None
    places = " and ".join(_spelled(attempt.cells[place]) for place in (one, other))
    return Slip(f"two cells swapped: {places} stand in each other's place")


def _fits(number: Written, values: tuple[Interval, ...]) -> bool:
    return any(number.is_rounded_from(each) or number.is_cut_from(each) for each in values)


def _misread(attempt: Attempt) -> Slip | None:
    """One cell that is another by one digit, or by a decimal place."""
    if len(attempt.wrong) != 1:
        return None
    (place,) = attempt.wrong
    cell = attempt.cells[place]
    if slip := _place_lost(attempt, place):
        return slip
    for value in dict.fromkeys((cell.follows, cell.true)):
        text = cell.claimed.rounded(value)
        if _one_digit_apart(cell.claimed.text, text) and not _last_decimal(cell.claimed, float(text)):
            return Slip(f"one digit misread: {cell.claimed.text} stands in {_spelled(cell)}, where {text} should")
    return None


def _one_digit_apart(claimed: str, right: str) -> bool:
    """As written, with as many decimals."""
    one, other = (text.strip().replace("−", "-").removeprefix("+").lower() for text in (claimed, right))
    apart = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    return len(one) == len(other) and len(apart) == 1 and all(each.isdigit() for pair in apart for each in pair)


def _last_decimal(number: Written, right: float) -> bool:
    """Off by one in the last decimal, which is more likely the rounding than the reading."""
    return not number.whole and abs(number.value - right) < 1.5 * number.unit


def _place_lost(attempt: Attempt, place: int) -> Slip | None:
    """The right digits, ten times too large or too small."""
    cell = attempt.cells[place]
    if not cell.claimed.digits:
        return None
    for power in (-1, 1):
        if _fits(_shifted(cell.claimed, power), attempt.honest(place)):
            times = "ten times too large" if power < 0 else "ten times too small"
            return Slip(f"one digit misread: {cell.claimed.text} in {_spelled(cell)} is {times}, a decimal place off")
    return None


def _shifted(number: Written, power: int) -> Written:
    return Written(number.text, number.value * 10.0**power, number.decimals - power, number.digits, number.whole)


def _rows_off(attempt: Attempt) -> Slip | None:
    root, true = attempt.root, attempt.true
    if not isinstance(root, Call) or root.function not in ("softmax", "sparsemax") or true.ndim == 0:
        return None
    along = root.argument("axis")
    axis = -1 if along is None else int(along.compute({}))
    places = _lines(true, axis)
    off = [line for line in places if _sum_off([attempt.cells[place].claimed for place in line])]
    if not all(any(place in line for line in off) for place in attempt.wrong):
        return None
    worst = next(line for line in off if any(place in line for place in attempt.wrong))
    total = sum(attempt.cells[place].claimed.value for place in worst)
    kind = "column" if true.ndim > 1 and axis % true.ndim == 0 else "row"
    number = attempt.cells[worst[0]].place[1 if kind == "column" else 0]
    return Slip(f"a row of weights that does not sum to one: {kind} {number} sums to {total:.6g}")


def _lines(true: Tensor, axis: int) -> list[list[int]]:
    """The places along an axis, one list for each row of weights."""
    places = torch.arange(true.numel()).reshape(true.shape).movedim(axis, -1)
    return [[int(place) for place in line] for line in places.reshape(-1, true.shape[axis])]


def _sum_off(numbers: list[Written]) -> bool:
    """By more than the rounding of its numbers allows."""
    allowed = sum(number.unit for number in numbers) / 2
    return abs(sum(number.value for number in numbers) - 1) > allowed + ROUNDING * len(numbers)


def _taken_for_one(attempt: Attempt) -> Slip | None:
    """`sum(weights, axis=1)` claimed to be 1 where it is not."""
    root = attempt.root
    if not (isinstance(root, Call) and root.function == "sum"):
        return None
    if not all(attempt.cells[place].claimed.value == 1 for place in attempt.wrong):
        return None
    cell = attempt.cells[attempt.wrong[0]]
    return Slip(f"a row of weights that does not sum to one: what {_spelled(cell)} sums is {cell.true:.6g}")


def _spelled(cell: CellMark) -> str:
    return f"[{','.join(map(str, cell.place))}]"
