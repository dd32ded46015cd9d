"""Problems on paper: read from a file, worked step by step, printed to be filled in, and marked."""

from regard.worked.marking import mark
from regard.worked.marks import CellMark, Marks, StepMark
from regard.worked.problem import Claimed, Given, Problem, ProblemStep
from regard.worked.reading import problem_from, read_problem
from regard.worked.solution import Solution, solve

__all__ = [
    "CellMark", "Claimed", "Given", "Marks", "Problem", "ProblemStep", "Solution", "StepMark", "mark", "problem_from",
    "read_problem", "solve",
]  # fmt: skip
