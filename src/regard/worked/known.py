"""What is known of an answer while it is marked: its numbers in several ways, and how its cells stand."""

from collections.abc import Mapping
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
        """The steps from which a recipe is worked; of what is given there is one value only."""
        return tuple(name for name in recipe.names if name in self.recipes)

    def worked(self, recipe: Recipe, sources: Values) -> Tensor:
        """A recipe's value from those of its sources."""
        return recipe.compute({name: sources[name] if name in sources else self.true[name] for name in recipe.names})

    def unrounded(self, recipe: Recipe, givens: Values, view: View) -> Tensor:
        """A recipe's value from the givens alone, through all steps; in the own view with wrong cells as claimed."""
        values = dict(givens)

        def find(name: str) -> Tensor:
            if name not in values:
                values[name] = step(name) if name in self.recipes else self.true[name]
            return values[name]

        def step(name: str) -> Tensor:
            own = self.recipes[name]
            try:
                value = own.compute({each: find(each) for each in own.names})
            except ValueError:  # what nothing follows from is passed over
                value = self.true[name]
            if view == "true" or name not in self.standing:
                return value
            return torch.where(self.stands(name, "wrong"), self.own[name], value)

        return recipe.compute({name: find(name) for name in recipe.names})

    def stands(self, name: str, *verdicts: Verdict) -> Tensor:
        """Which cells of a claimed step have one of these verdicts."""
        return torch.tensor([each in verdicts for each in self.standing[name]]).reshape(self.true[name].shape)
