"""Which values a cell can honestly have, in an answer whose numbers were rounded on the way.

Somebody who works a step takes every earlier number either as it was written or as it was worked out, unrounded.
Both are honest, so the step's cell x has not one value but an interval of them:

    x(written) + Σ_q  J_q · [least, most]      J_q = ∂x/∂q by autograd, least and most of (taken - written) in q

summed over the cells q it was made from, each taken as written or as anything q itself could have been (to first
order, from the written and from the unrounded numbers); and exactly, where whole matrices are taken one way or
the other. The differences carry their signs: a number that was written in full carries nothing.

There are two such intervals. In the `true` one, cells that are not right stand at their true values; in the `own`
one they stand as they were claimed.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from regard.worked.tolerance import Interval

Verdict = Literal["right", "follows", "wrong", "unclaimed"]
View = Literal["true", "own"]
Values = Mapping[str, Tensor]
MOST_CORNERS = 16


class Recipe(Protocol):
    """What can be worked out from named values: a formula, or one a slip has changed."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def compute(self, values: Values, /) -> Tensor: ...


class Known:
    """All that is known of an answer while it is marked: its numbers in four ways, and how its cells stand."""

    def __init__(self, given: Values, spread: Values) -> None:
        self.true: dict[str, Tensor] = dict(given)
        """Unrounded, from the givens."""
        self.own: dict[str, Tensor] = dict(given)
        """As claimed, else from the claimant's own numbers."""
        self.kept: dict[str, Tensor] = dict(given)
        """As claimed where that is right, else true."""
        self.carried: dict[str, Tensor] = dict(given)
        """From the claimant's own numbers but unrounded; as claimed where that is wrong."""
        self.recipes: dict[str, Recipe] = {}
        self.standing: dict[str, list[Verdict]] = {}
        """Of the claimed steps, cell by cell."""
        self.spread = dict(spread)
        """Half a unit of the last digit, for givens whose digits were rounded."""

    def sources(self, recipe: Recipe) -> tuple[str, ...]:
        """The claimed steps and rounded givens from which a recipe is worked, through steps that were not claimed."""
        found: dict[str, None] = {}
        for name in recipe.names:
            if name in self.standing or name in self.spread:
                found[name] = None
            elif name in self.recipes:
                found.update(dict.fromkeys(self.sources(self.recipes[name])))
        return tuple(found)

    def worked(self, recipe: Recipe, sources: Values) -> Tensor:
        """A recipe's value from those of its sources, through the steps between that were not claimed."""
        values = dict(sources)

        def find(name: str) -> Tensor:
            if name not in values:
                own = self.recipes.get(name)
                values[name] = self.true[name] if own is None else own.compute({each: find(each) for each in own.names})
            return values[name]

        return recipe.compute({name: find(name) for name in recipe.names})


class _Line(NamedTuple):
    """A recipe worked from tensors that gradients can be asked for."""

    leaves: dict[str, Tensor]
    value: Tensor


class Reach:
    """The intervals, worked out where they are asked for and kept."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self._cells: dict[tuple[int, int, View], Interval] = {}
        self._lines: dict[tuple[int, View], list[_Line]] = {}
        self._corners: dict[tuple[int, View], tuple[Tensor, Tensor]] = {}
        self._held: dict[int, Recipe] = {}  # so that the number of no recipe is given to another

    def nearby(self, recipe: Recipe, cell: int, view: View) -> Interval:
        """The values where whole matrices are taken one way or the other: exact, quick, most of what is needed."""
        low, high = self._corner_values(recipe, view)
        return Interval(float(low[cell]), float(high[cell]))

    def all(self, recipe: Recipe, cell: int, view: View) -> Interval:
        """The whole interval."""
        key = (self._number(recipe), cell, view)
        if key not in self._cells:
            interval = self.nearby(recipe, cell, view)
            for line in self._worked_lines(recipe, view):
                low, high = self._spread_of(line, cell, view)
                interval = interval.with_(low).with_(high)
            self._cells[key] = interval
        return self._cells[key]

    def _number(self, recipe: Recipe) -> int:
        return id(self._held.setdefault(id(recipe), recipe))

    def _bases(self, view: View) -> tuple[Values, Values]:
        """As written, and unrounded."""
        known = self.known
        return (known.kept, known.true) if view == "true" else (known.own, known.carried)

    def _corner_values(self, recipe: Recipe, view: View) -> tuple[Tensor, Tensor]:
        key = (self._number(recipe), view)
        if key not in self._corners:
            found = [self.known.worked(recipe, sources).flatten() for sources in self._choices(recipe, view)]
            low = high = found[0]
            for each in found[1:]:
                low, high = torch.fmin(low, each), torch.fmax(high, each)
            self._corners[key] = (low, high)
        return self._corners[key]

    def _choices(self, recipe: Recipe, view: View) -> Iterator[Values]:
        """Each source as written or unrounded: all the ways where they are few, else all, none and all but one."""
        written, unrounded = self._bases(view)
        names = self.known.sources(recipe)
        fixed = {name: written[name] for name in names if torch.equal(written[name], unrounded[name])}
        free = [name for name in names if name not in fixed]
        few = 2 ** len(free) <= MOST_CORNERS
        ways = itertools.product((0, 1), repeat=len(free)) if few else _one_apart(len(free))
        for way in ways:
            yield fixed | {name: (written, unrounded)[side][name] for name, side in zip(free, way, strict=True)}

    def _worked_lines(self, recipe: Recipe, view: View) -> list[_Line]:
        key = (self._number(recipe), view)
        if key not in self._lines:
            names = self.known.sources(recipe)
            self._lines[key] = []
            for base in self._bases(view):
                leaves = {name: base[name].detach().clone().requires_grad_() for name in names}
                value = self.known.worked(recipe, leaves).flatten()
                if value.requires_grad:
                    self._lines[key].append(_Line(leaves, value))
        return self._lines[key]

    def _spread_of(self, line: _Line, cell: int, view: View) -> tuple[float, float]:
        """x + Σ J · [least, most] about one base."""
        low = high = float(line.value[cell].detach())
        if not math.isfinite(low):
            return low, high
        gradients = torch.autograd.grad(
            line.value[cell], [*line.leaves.values()], retain_graph=True, materialize_grads=True
        )
        for (name, leaf), gradient in zip(line.leaves.items(), gradients, strict=True):
            slopes, base = gradient.flatten(), leaf.detach().flatten().tolist()
            for place in slopes.nonzero().flatten().tolist():
                slope, taken = float(slopes[place]), self._taken(name, place, view)
                ends = [slope * (end - base[place]) for end in taken]
                if all(map(math.isfinite, ends)):
                    low, high = low + min(ends), high + max(ends)
        return low, high

    def _taken(self, name: str, place: int, view: View) -> Interval:
        """What a cell of a source may have been taken as."""
        known = self.known
        written = float(known.own[name].flatten()[place])
        if name in known.spread:
            half = float(known.spread[name].flatten()[place])
            return Interval(written - half, written + half)
        standing = known.standing[name][place]
        if view == "own" and standing == "wrong":
            return Interval(written, written)
        interval = self.all(known.recipes[name], place, view)
        if standing == "right":
            other = self.all(known.recipes[name], place, "true")
            interval = interval.with_(written).with_(other.low).with_(other.high)
        elif view == "own":
            interval = interval.with_(written)
        return interval


def _one_apart(count: int) -> Iterator[tuple[int, ...]]:
    yield (0,) * count
    yield (1,) * count
    for place in range(count):
        yield tuple(int(each != place) for each in range(count))
