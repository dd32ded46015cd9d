"""Problems on paper: read from a file, worked step by step, printed to be filled in, and marked."""

from regard.worked.problem import Claimed, Given, Problem, ProblemStep
from regard.worked.reading import problem_from, read_problem
from regard.worked.solution import Solution, solve

__all__ = ["Claimed", "Given", "Problem", "ProblemStep", "Solution", "problem_from", "read_problem", "solve"]
