"""A problem on paper: what is given, the steps to work, and perhaps somebody's answer. `reading` makes it of a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from regard.worked.errors import Site
from regard.worked.formula import Formula
from regard.worked.guessing import unknown

Cells = Any
"""As written: text, or lists of such, as deep as the value has axes."""


@dataclass(frozen=True)
class Given:
    """A value the problem starts from, with its cells as they were written."""

    value: Tensor
    cells: Cells
    rounded: bool
    """Whether the printed digits were rounded, and so carry half a unit themselves."""
    line: int


@dataclass(frozen=True)
class ProblemStep:
    """One named step. A whole layer in one line has become several, each on that line."""

    name: str
    formula: Formula
    line: int
    site: Site
    """Where the formula, or the whole layer that it is one of, begins in the file."""

    @property
    def layer(self) -> str:
        """The line as it was written, where this step is one of a whole layer."""
        return self.site.layer


@dataclass(frozen=True)
class Claimed:
    """Somebody's answer to one step: the cells as written, and the numbers they are."""

    cells: Cells
    value: Tensor
    line: int


@dataclass(frozen=True)
class Problem:
    title: str
    given: Mapping[str, Given]
    steps: tuple[ProblemStep, ...]
    claimed: Mapping[str, Claimed] = field(default_factory=dict)
    about: str = ""
    axes: Mapping[str, tuple[tuple[str, ...] | None, ...]] = field(default_factory=dict)
    """What the rows and the columns of a value stand for, where the problem says so."""
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    path: str = ""
    answered_by: str = ""
    is_answer: bool = False
    """Whether the file only answers a problem that stands in another."""

    def step(self, name: str) -> ProblemStep:
        for step in self.steps:
            if step.name == name:
                return step
        raise ValueError(unknown("step", name, [step.name for step in self.steps]))
