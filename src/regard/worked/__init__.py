"""Problems on paper: read from a file, worked step by step, printed to be filled in, and marked.

The names are imported on first use: listing the shipped problems reads no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.worked.marking import mark
    from regard.worked.marks import CellMark, Marks, StepMark
    from regard.worked.problem import Claimed, Given, Problem, ProblemStep
    from regard.worked.reading import problem_from, read_problem
    from regard.worked.solution import Solution, solve

_HOMES = {
    "CellMark": "marks", "Claimed": "problem", "Given": "problem", "Marks": "marks", "Problem": "problem",
    "ProblemStep": "problem", "Solution": "solution", "StepMark": "marks", "mark": "marking",
    "problem_from": "reading", "read_problem": "reading", "solve": "solution",
}  # fmt: skip

__all__ = [
    "CellMark", "Claimed", "Given", "Marks", "Problem", "ProblemStep", "Solution", "StepMark", "mark", "problem_from",
    "read_problem", "solve",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard.worked' has no attribute {name!r}")
    value = getattr(import_module(f"regard.worked.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
