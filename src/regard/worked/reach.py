"""Which values a cell can honestly have, in an answer whose numbers were rounded on the way.

Somebody who works a step takes every earlier result either as it was written or as it was worked out, unrounded.
Both are honest. So an earlier result has not one value but several: the written one, and what its formula gives from
each of the values that the results before it may have had. A cell x of the step in hand has an interval of

    every x that whole results, taken one way or another, give exactly, and
    x + Σ_q  J_q · [least, most]      J_q = ∂x/∂q by autograd, least and most of (taken - base) in the cell q,

the second about the written and about the unrounded results, with each cell q taken for itself. The differences carry
their signs: a number that was written in full carries nothing. Where printed givens were rounded, half a unit of each
is carried from there to x through all steps, once more to first order.

There are two such intervals. In the `true` one, cells that are not right stand at their true values; in the `own`
one they stand as they were claimed.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from regard.worked.known import Known, Recipe, Values, View
from regard.worked.tolerance import Interval
from regard.worked.walks import Walks

MOST_WAYS = 64
"""Of taking the sources of one step, all of which are worked; where there are more, they vary one at a time."""
MOST_VALUES = 8
"""Of one result that are carried on: the written one, the unrounded one, and those that reach furthest."""

MOST_SLOPES = 4_000
"""Cells whose gradient is asked for in one answer, under a second's work (one of a large step counts for several);
beyond, results are taken whole only. Right cells seldom need it: only an answer with hundreds of wrong ones does."""


NOWHERE = Interval(math.inf, -math.inf)

MOST_CARRIES = 10_000
"""Steps through which half a unit of a given is carried to a cell, of all cells of one answer together."""
MOST_WORKED = 4_000
"""Times that a step is worked from one way of taking its sources or another; beyond, only as written or unrounded."""


class _Line(NamedTuple):
    """A recipe worked from tensors that gradients can be asked for."""

    leaves: dict[str, Tensor]
    value: Tensor

    def slopes(self, cell: int) -> Iterator[tuple[str, Tensor]]:
        """∂(one cell) / ∂(each leaf)."""
        gradients = torch.autograd.grad(
            self.value[cell], [*self.leaves.values()], retain_graph=True, materialize_grads=True
        )
        return zip(self.leaves, gradients, strict=True)


class Reach:
    """The intervals, worked out where they are asked for and kept."""

    def __init__(self, known: Known, steps: int) -> None:
        self.known, self.walks = known, Walks(known, steps)
        self._cells: dict[tuple[int, int, View], Interval] = {}
        self._lines: dict[tuple[int, View], list[_Line]] = {}
        self._values: dict[tuple[int, View], list[Tensor]] = {}
        self._hulls: dict[tuple[int, View], tuple[Tensor, Tensor]] = {}
        self._taken: dict[tuple[str, View], list[Tensor]] = {}
        self._extremes: dict[tuple[str, View], tuple[Tensor, Tensor]] = {}
        self._from_givens: dict[View, tuple[dict[str, Tensor], dict[str, Tensor]]] = {}
        self._origins: dict[tuple[int, View], tuple[_Line, int]] = {}
        self._slopes, self._carries, self._ways = 0.0, 0, 0
        self.looks = 0
        """At cells, in the search for slips."""
        self._held: dict[int, Recipe] = {}  # so that the number of no recipe is given to another

    def nearby(self, recipe: Recipe, cell: int, view: View) -> Interval:
        """The values where whole results are taken one way or another: exact, quick, most of what is needed."""
        self.values(recipe, view)
        low, high = self._hulls[self._number(recipe), view]
        return Interval(float(low[cell]), float(high[cell]))

    def all(self, recipe: Recipe, cell: int, view: View) -> Interval:
        """The whole interval."""
        key = (self._number(recipe), cell, view)
        if key not in self._cells:
            interval = self.nearby(recipe, cell, view)
            if self._slopes < MOST_SLOPES:
                for line in self._worked_lines(recipe, view):
                    interval = self._spread_of(line, cell, view, interval)
            self._cells[key] = self._widened(interval, recipe, cell, view)
        return self._cells[key]

    def walked(self, name: str, cell: int, view: View) -> Interval:
        """The values that a cell of a step has in answers worked as a program works them."""
        interval = self.walks.of(name, cell, view)
        return NOWHERE if interval is None else self._widened(interval, self.known.recipes[name], cell, view)

    def values(self, recipe: Recipe, view: View) -> list[Tensor]:
        """What a recipe gives from all that its sources may have been taken as: first from the written ones, last
        from the unrounded."""
        key = (self._number(recipe), view)
        if key not in self._values:
            for name in self.known.before(recipe, [name for name, each in self._taken if each == view]):
                self.taken(name, view)  # in their order, so that none waits for a hundred others
            names = self.known.sources(recipe)
            ways = [*_combined([self.taken(name, view) for name in names])]
            ways = ways if self._ways < MOST_WORKED else [ways[0], ways[-1]]
            self._ways += len(ways)
            found = _worked([dict(zip(names, way, strict=True)) for way in ways], recipe, self.known)
            flat = [each.flatten() for each in found]
            self._hulls[key] = reduce(torch.fmin, flat), reduce(torch.fmax, flat)  # these pass over what is no number
            self._values[key] = _widest(found)
        return self._values[key]

    def taken(self, name: str, view: View) -> list[Tensor]:
        """What an earlier result may have been taken as: first as written, last unrounded.

        One that was not written down stands as it was worked out, from what was.
        """
        key = (name, view)
        if key not in self._taken:
            known = self.known
            worked = self.values(known.recipes[name], view)
            self._taken[key] = worked if name not in known.standing else _widest(self._written(name, view, worked))
        return self._taken[key]

    def _written(self, name: str, view: View, worked: Sequence[Tensor]) -> list[Tensor]:
        """A claimed result: only what is right, or blank, was worked out honestly; the rest stands where it was put."""
        known = self.known
        written = known.kept[name] if view == "true" else known.own[name]
        fixed = known.stands(name, "wrong") if view == "own" else ~known.stands(name, "right", "unclaimed")
        blank, worked = known.stands(name, "unclaimed"), [each.reshape(written.shape) for each in worked]
        filled = [torch.where(blank, each, written) for each in worked] if bool(blank.any()) else [written]
        found = [*filled, *(torch.where(fixed, written, each) for each in worked)]
        if view == "own" and name in known.slipped:
            # What went wrong by a known slip has its unrounded value as well.
            instead, gives = known.slipped[name]
            slipped = self.values(instead, view)
            found += [torch.where(gives, each, other) for each in slipped for other in (written, found[-1])]
        return found

    def _number(self, recipe: Recipe) -> int:
        return id(self._held.setdefault(id(recipe), recipe))

    def _worked_lines(self, recipe: Recipe, view: View) -> list[_Line]:
        key = (self._number(recipe), view)
        if key not in self._lines:
            names = self.known.sources(recipe)
            self._lines[key] = []
            for end in (0, -1):
                leaves = {name: self.taken(name, view)[end].detach().clone().requires_grad_() for name in names}
                with suppress(ValueError):
                    value = self.known.worked(recipe, leaves).flatten()
                    if value.requires_grad:
                        self._lines[key].append(_Line(leaves, value))
        return self._lines[key]

    def _spread_of(self, line: _Line, cell: int, view: View, interval: Interval) -> Interval:
        """The interval, and x + Σ J · [least, most] about one base."""
        low = high = float(line.value[cell].detach())
        if not math.isfinite(low):
            return interval.with_(low)
        self._slopes += 1 + line.value.numel() / 1_000
        for name, slopes in line.slopes(cell):
            ends = torch.stack(self._ends(name, view)) - line.leaves[name].detach()
            moved = (slopes * ends).reshape(len(ends), -1).nan_to_num(0.0, 0.0, 0.0)  # what is blocked moves nothing
            low, high = low + float(moved.amin(0).sum()), high + float(moved.amax(0).sum())
        return interval.with_(low).with_(high)

    def _ends(self, name: str, view: View) -> tuple[Tensor, Tensor]:
        """The least and the most that each cell of an earlier result may have been taken as, each for itself.

        A right cell of an answer led astray may also have been taken from the true results.
        """
        key = (name, view)
        if key not in self._extremes:
            known = self.known
            self.taken(name, view)
            low, high = (
                each.reshape(known.own[name].shape) for each in self._hulls[self._number(known.recipes[name]), view]
            )
            if name in known.standing:
                low, high = self._ends_written(name, view, low, high)
            self._extremes[key] = low, high
        return self._extremes[key]

    def _ends_written(self, name: str, view: View, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        known = self.known
        right, written = known.stands(name, "right"), known.kept[name] if view == "true" else known.own[name]
        free = known.stands(name, "right", "unclaimed") if view == "true" else ~known.stands(name, "wrong")
        low, high = torch.fmin(low, written), torch.fmax(high, written)
        if view == "own":
            least, most = self._ends(name, "true")
            low, high = low.where(~right, torch.fmin(low, least)), high.where(~right, torch.fmax(high, most))
        return low.where(free, written), high.where(free, written)

    def _widened(self, interval: Interval, recipe: Recipe, cell: int, view: View) -> Interval:
        """By what the givens carry whose printed digits were rounded, through all steps between."""
        half = max((self._carried(recipe, cell, each) for each in {"true", view}), default=0.0)
        return Interval(interval.low - half, interval.high + half) if half else interval

    def _carried(self, recipe: Recipe, cell: int, view: View) -> float:
        if not self.known.spread or self._carries > MOST_CARRIES:
            return 0.0
        key = (self._number(recipe), view)
        if key not in self._origins:
            if view not in self._from_givens:
                leaves = {name: self.known.true[name].detach().clone().requires_grad_() for name in self.known.spread}
                self._from_givens[view] = leaves, dict(leaves)
            leaves, values = self._from_givens[view]
            line = _Line(leaves, self.known.unrounded(recipe, values, view).flatten())
            self._origins[key] = line, 1 + len(self.known.before(recipe))
        line, steps = self._origins[key]
        self._carries += steps
        if not line.value.requires_grad or not math.isfinite(float(line.value[cell].detach())):
            return 0.0
        moved = [float((slopes.abs() * self.known.spread[name]).sum()) for name, slopes in line.slopes(cell)]
        return sum(each for each in moved if math.isfinite(each))


def _worked(ways: Sequence[Values], recipe: Recipe, known: Known) -> list[Tensor]:
    """From each of the ways that can be worked at all, else from the true values: rounding, and more so a mistake, may
    leave a place that is none, or a name that nothing follows from."""
    found: list[Tensor] = []
    for way in ways:
        with suppress(ValueError):
            found.append(known.worked(recipe, way))
    return found or [known.worked(recipe, {})]


def _combined(lists: Sequence[list[Tensor]]) -> Iterator[tuple[Tensor, ...]]:
    """One of each list: all the ways where they are few, else varied one at a time from all first and all last."""
    if math.prod(len(each) for each in lists) <= MOST_WAYS:
        yield from itertools.product(*lists)
        return
    for end in (0, -1):
        base = [each[end] for each in lists]
        others = [(*base[:at], each, *base[at + 1 :]) for at, options in enumerate(lists) for each in options[1:-1]]
        crossed = [(*base[:at], each[-1 - end], *base[at + 1 :]) for at, each in enumerate(lists)]
        yield from ([tuple(base), *others, *crossed] if end == 0 else [*others, *crossed, tuple(base)])


def _widest(found: Sequence[Tensor]) -> list[Tensor]:
    """Each value once, and of many only the first, the last and those that are least or most in the most cells."""
    kept = [value for place, value in enumerate(found) if not any(torch.equal(value, each) for each in found[:place])]
    if not torch.equal(kept[-1], found[-1]):
        kept.append(found[-1])
    if len(kept) <= MOST_VALUES:
        return kept
    table = torch.stack([each.flatten() for each in kept])
    ends = torch.cat([table.argmin(0), table.argmax(0)])
    often = torch.bincount(ends, minlength=len(kept)).argsort(descending=True, stable=True).tolist()
    chosen = {0, len(kept) - 1, *often[: MOST_VALUES - 2]}
    return [kept[place] for place in sorted(chosen)]
