"""Which usual slip explains a wrong step: named only where one slip alone explains every wrong cell of it.

Slips that change the formula (`instead`) are tried first, each by working the changed formula from the same numbers;
then those that show in the cells as they were written: two of them swapped, a digit misread, weights whose row does
not sum to one.
"""

import torch
from torch import Tensor

from regard.worked.attempt import Attempt, Slip
from regard.worked.calls import Call
from regard.worked.instead import instead
from regard.worked.marks import CellMark
from regard.worked.tolerance import ROUNDING, Interval, Written


def named(attempt: Attempt) -> Slip | None:
    """The slip that explains every wrong cell, where one of the usual ones does."""
    for find in (instead, _taken_for_one, _cells_swapped, _misread, _rows_off):
        if slip := find(attempt):
            return slip
    return None


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
