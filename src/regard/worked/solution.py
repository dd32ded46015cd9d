"""A problem worked: each step's value in float64, and the derivation in which every cell can be opened."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from regard.support.errors import Misuse
from regard.tracing import Derivation
from regard.worked.calls import Call
from regard.worked.derived import derived
from regard.worked.errors import FormulaError
from regard.worked.limits import MOST_CELLS_IN_ALL
from regard.worked.naming import Sides, sides_of
from regard.worked.nodes import Name, Node
from regard.worked.problem import Problem, ProblemStep


@dataclass(frozen=True)
class Solution:
    problem: Problem
    values: Mapping[str, Tensor]
    """Of what is given and of every step, by name."""

    @cached_property
    def sides(self) -> dict[str, Sides]:
        """The names on the axes of each value."""
        return sides_of(self.problem, {name: tuple(value.shape) for name, value in self.values.items()})

    @cached_property
    def derivation(self) -> Derivation:
        """The steps under `regard.trace`: `derivation.why("A", 0, 1)` opens a cell, counted from 0."""
        return derived(self.problem, self.sides)


def solve(problem: Problem) -> Solution:
    """Work a problem; Misuse names the line, the step and the place in the formula where it cannot be done."""
    values = {name: given.value for name, given in problem.given.items()}
    budget = Budget()
    for step in problem.steps:
        values[step.name] = worked(step, values, budget)
    return Solution(problem, values)


def worked(step: ProblemStep, values: Mapping[str, Tensor], budget: "Budget") -> Tensor:
    """One step's value, each of its parts checked as it is made."""
    try:
        with torch.no_grad():
            return step.formula.compute(values, budget)
    except FormulaError as error:
        raise Misuse(step.site.told(error, step.name)) from None


class Budget:
    """Sees every value as it is made: numbers one can count with, and not too many of them."""

    def __init__(self) -> None:
        self.cells = 0
        self.blocked: set[int] = set()

    def __call__(self, part: Node, value: Tensor) -> None:
        self.cells += value.numel()
        if self.cells > MOST_CELLS_IN_ALL:
            raise FormulaError(f"more than {MOST_CELLS_IN_ALL} cells are made in all, too many for paper", part.at)
        if not bool(torch.isfinite(value).all()):
            self._endless(part, value)

    def _endless(self, part: Node, value: Tensor) -> None:
        """-inf is a blocked cell and passes where a mask made it; nothing else endless does."""
        if (place := _first(torch.isnan(value))) is not None:
            raise FormulaError(f"{place} is not a number (0 / 0, or a root or logarithm of less than 0)", part.at)
        if (place := _first(value == torch.inf)) is not None:
            raise FormulaError(f"{place} has no end (a division by 0, or too large a number)", part.at)
        masks = isinstance(part, Name) or (isinstance(part, Call) and part.function == "mask")
        if not masks and not any(id(each) in self.blocked for each in part.parts):
            raise FormulaError(f"{_first(value == -torch.inf)} is minus infinity (a logarithm of 0?)", part.at)
        self.blocked.add(id(part))


def _first(wrong: Tensor) -> str | None:
    """`the result`, or `the cell [row, column]` from 1, of the first cell that is so."""
    found = wrong.nonzero()
    if not len(found):
        return None
    return f"the cell {[int(each) + 1 for each in found[0]]}" if wrong.ndim else "the result"
