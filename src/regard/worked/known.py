"""What is known of an answer while it is marked: its numbers in several ways, and how its cells stand."""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import torch
from torch import Tensor

Verdict = Literal["right", "follows", "wrong", "unclaimed"]
View = Literal["true", "own"]
Values = Mapping[str, Tensor]


class Recipe(Protocol):
    """What can be worked out from named values: a formula, or one a slip has changed."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def compute(self, values: Values, /) -> Tensor: ...


class Known:
    """The numbers of an answer step by step, in four ways."""

    def __init__(self, given: Values, spread: Values) -> None:
        self.true: dict[str, Tensor] = dict(given)
        """Unrounded, from the givens."""
        self.own: dict[str, Tensor] = dict(given)
        """As claimed, else from the claimant's own numbers."""
        self.kept: dict[str, Tensor] = dict(given)
        """As claimed where that is right, else true."""
        self.recipes: dict[str, Recipe] = {}
        self.standing: dict[str, list[Verdict]] = {}
        """Of the claimed steps, cell by cell."""
        self.slipped: dict[str, tuple[Recipe, Tensor]] = {}
        """Of steps that went wrong by a slip with a name: what was worked there instead, and the cells it gives."""
        self.spread = dict(spread)
        """Half a unit of the last digit, for givens whose digits were rounded."""

    def sources(self, recipe: Recipe) -> tuple[str, ...]:
        """The claimed steps from which a recipe is worked, through steps that were not claimed."""
        found: dict[str, None] = {}
        for name in recipe.names:
            if name in self.standing:
                found[name] = None
            elif name in self.recipes:
                found.update(dict.fromkeys(self.sources(self.recipes[name])))
        return tuple(found)

    def worked(self, recipe: Recipe, sources: Values) -> Tensor:
        """A recipe's value from those of its sources, through the steps between that were not claimed."""
        return self._through(recipe, dict(sources), lambda name, value: value)

    def truly(self, recipe: Recipe) -> Tensor:
        """A recipe's value from the true ones."""
        return recipe.compute({name: self.true[name] for name in recipe.names})

    def unrounded(self, recipe: Recipe, givens: Values, view: View) -> Tensor:
        """A recipe's value from the givens alone, through all steps; in the own view with wrong cells as claimed."""

        def as_claimed(name: str, value: Tensor) -> Tensor:
            if view == "true" or name not in self.standing:
                return value
            return torch.where(self.stands(name, "wrong"), self.own[name], value)

        return self._through(recipe, dict(givens), as_claimed)

    def _through(self, recipe: Recipe, values: dict[str, Tensor], settled: Callable[[str, Tensor], Tensor]) -> Tensor:
        """A recipe's value where those of some names are set, and other steps are worked from these."""

        def find(name: str) -> Tensor:
            if name not in values:
                values[name] = settled(name, step(name)) if name in self.recipes else self.true[name]
            return values[name]

        def step(name: str) -> Tensor:
            own = self.recipes[name]
            try:
                return own.compute({each: find(each) for each in own.names})
            except ValueError:  # what nothing follows from is passed over
                return self.true[name]

        return recipe.compute({name: find(name) for name in recipe.names})

    def stands(self, name: str, verdict: Verdict) -> Tensor:
        """Which cells of a claimed step have this verdict."""
        found = [each == verdict for each in self.standing[name]]
        return torch.tensor(found).reshape(self.own[name].shape)
