"""A worked problem as a page: its title, what is given, and each step with its formula and its numbers."""

from torch import Tensor

from regard.tracing.render.numbers import shown
from regard.worked.solution import Solution

FORMATS = {"text": ".txt"}


def page(solution: Solution, form: str = "text", *, digits: int = 4, only: str | None = None) -> str:
    return text(solution, digits)


def text(solution: Solution, digits: int = 4) -> str:
    """For a terminal."""
    problem = solution.problem
    parts = [problem.title, "=" * len(problem.title)]
    if problem.about:
        parts.append(problem.about)
    parts += [_named(name, "given", given.value, digits) for name, given in problem.given.items()]
    parts += [_named(step.name, step.formula.source, solution.values[step.name], digits) for step in problem.steps]
    return "\n\n".join(parts).replace("\n\n=", "\n=", 1)


def _named(name: str, said: str, value: Tensor, digits: int) -> str:
    rows = _rows(value, digits)
    return "\n".join([f"{name} = {said}" if said != "given" else f"{name}, given", *(f"    {row}" for row in rows)])


def _rows(value: Tensor, digits: int) -> list[str]:
    cells = [
        [shown(float(cell), digits).text for cell in row]
        for row in value.reshape(-1, value.shape[-1] if value.ndim else 1)
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
