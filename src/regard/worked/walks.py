"""Answers as a program works them, a few dozen of them: which values a cell has in these.

Each goes through the steps in order and takes every earlier result whole, as it was written or as it came out of the
step before it was rounded, chosen by chance wherever one is read. In a long chain of steps, rounded coarsely, that goes
further than the first order of `reach`, and it is asked last, where a number would else be wrong.
"""

import random
from functools import reduce

import torch
from torch import Tensor

from regard.worked.known import Known, Recipe, View
from regard.worked.tolerance import Interval

WALKS = 64
"""In an answer of as many steps as can be worked so often; fewer where there are hundreds."""
MOST_WORKED = 5_000
"""Times that a step is worked in one answer, under half a second; beyond, no more is known of the steps that follow."""
MOST_CELLS = 5_000_000
"""Made on the way in one answer."""


class Walks:
    """Worked out step by step, where they are asked for, and kept."""

    def __init__(self, known: Known, steps: int) -> None:
        self.known, self.count = known, min(WALKS, MOST_WORKED // max(steps, 1))
        self._unrounded: dict[tuple[str, View], list[Tensor]] = {}
        self._hulls: dict[tuple[str, View], tuple[Tensor, Tensor]] = {}
        self._worked, self._cells = 0, 0

    def of(self, name: str, cell: int, view: View) -> Interval | None:
        """The least and the most that a cell of a step comes to; None where that would take too long."""
        if (name, view) not in self._hulls:
            found = [each.flatten() for each in self.unrounded(name, view)]
            if not found:
                return None
            self._hulls[name, view] = reduce(torch.fmin, found), reduce(torch.fmax, found)
        low, high = self._hulls[name, view]
        return Interval(float(low[cell]), float(high[cell]))

    def unrounded(self, name: str, view: View) -> list[Tensor]:
        """What comes out of a step in each of the answers; nothing where that would take too long."""
        if (name, view) not in self._unrounded:
            recipe = self.known.recipes[name]
            for each in self.known.before(recipe, [name for name, own in self._unrounded if own == view]):
                self.unrounded(each, view)  # in their order, so that none waits for a hundred others
            sources = {each: self.unrounded(each, view) for each in self.known.sources(recipe)}
            known = all(sources.values()) and self._affords(name)
            chance = random.Random(f"{name} {view}")
            taken = {each: self._taken(each, view, values, chance) for each, values in sources.items()} if known else {}
            walks = range(self.count if known else 0)
            self._unrounded[name, view] = [self._one(recipe, name, {n: taken[n][k] for n in taken}) for k in walks]
        return self._unrounded[name, view]

    def _affords(self, name: str) -> bool:
        self._worked += self.count
        self._cells += self.count * self.known.true[name].numel()
        return self._worked <= MOST_WORKED and self._cells <= MOST_CELLS

    def _taken(self, name: str, view: View, unrounded: list[Tensor], chance: random.Random) -> list[Tensor]:
        """An earlier result as each of the answers takes it. What is not right stands as it was put."""
        known = self.known
        if name not in known.standing:
            return unrounded
        written = known.kept[name] if view == "true" else known.own[name]
        fixed = known.stands(name, "wrong") if view == "own" else ~known.stands(name, "right", "unclaimed")
        blank = known.stands(name, "unclaimed")
        both = [(torch.where(blank, each, written), torch.where(fixed, written, each)) for each in unrounded]
        return [chance.choice(each) for each in both]

    def _one(self, recipe: Recipe, name: str, taken: dict[str, Tensor]) -> Tensor:
        try:
            return self.known.worked(recipe, taken)
        except ValueError:  # rounding may leave a place that is none
            return self.known.true[name]
