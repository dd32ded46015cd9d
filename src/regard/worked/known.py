"""What is known of an answer while it is marked: its numbers in several ways, and how its cells stand."""

from collections.abc import Container, Mapping
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

    def before(self, recipe: Recipe, known: Container[str] = ()) -> list[str]:
        """The steps that a recipe is worked from, and those that these are, in their order; but for what is `known`."""
        found: set[str] = set()
        waiting = [*self.sources(recipe)]
        while waiting:
            if (name := waiting.pop()) not in found and name not in known:
                found.add(name)
                waiting += self.sources(self.recipes[name])
        return [name for name in self.recipes if name in found] if found else []

    def unrounded(self, recipe: Recipe, values: dict[str, Tensor], view: View) -> Tensor:
        """A recipe's value from the givens alone, through all steps; in the own view with wrong cells as claimed.

        `values` are those of the givens, and take up those of the steps.
        """
        for name in self.before(recipe, values):
            try:
                value = self.worked(self.recipes[name], values)
            except ValueError:  # what nothing follows from is passed over
                value = self.true[name]
            wrong = view == "own" and name in self.standing
            values[name] = torch.where(self.stands(name, "wrong"), self.own[name], value) if wrong else value
        return self.worked(recipe, values)

    def stands(self, name: str, *verdicts: Verdict) -> Tensor:
        """Which cells of a claimed step have one of these verdicts."""
        return torch.tensor([each in verdicts for each in self.standing[name]]).reshape(self.true[name].shape)
