"""What stands on a worksheet: grids of cells, the given ones written, those of the steps empty or in the key filled."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.support.errors import Misuse
from regard.support.nearest import unknown
from regard.tracing.render.numbers import checked_digits, shown
from regard.worked.naming import Sides
from regard.worked.nodes import Node
from regard.worked.shipped import shipped
from regard.worked.solution import Solution

FORMATS = {"markdown": ".md", "latex": ".tex", "html": ".html", "yaml": ".yaml"}
"""What it can be written as, and the ending of such a file."""
PARTS = ("both", "sheet", "key")
Words = tuple[str, ...] | None


@dataclass(frozen=True)
class Grid:
    """A matrix, a row of numbers (one row) or a number (one cell)."""

    cells: tuple[tuple[str, ...], ...]
    """As written; empty ones are to be filled in."""
    rows: Words = None
    columns: Words = None
    place: str = ""
    """Of a value of three axes: which of its matrices this is, as `[0]`."""


@dataclass(frozen=True)
class Item:
    """Something given, or a step to be worked."""

    name: str
    formula: Node | None
    """None of what is given."""
    shape: tuple[int, ...]
    grids: tuple[Grid, ...]


@dataclass(frozen=True)
class Sheet:
    """All that stands on one, in order."""

    title: str
    about: str
    source: str
    """What an answer says to name the problem: a shipped one's name, or the name of its file."""
    given: tuple[Item, ...]
    steps: tuple[Item, ...]
    """With empty cells."""
    key: tuple[Item, ...]
    """The same with their numbers."""


def worksheet(solution: Solution, form: str = "markdown", *, part: str = "both", digits: int = 4) -> str:
    """The worksheet of a problem in one of FORMATS: the sheet, its key, or one after the other."""
    for what, said, known in (("format", form, FORMATS), ("part", part, PARTS)):
        if said not in known:
            raise Misuse(unknown(what, said, known))
    writer: Any = import_module(f"regard.worked.worksheet.{form}")
    try:
        text: str = writer.written(sheet(solution, digits), part)
    except ValueError as error:
        raise Misuse(str(error)) from None
    return text


def sheet(solution: Solution, digits: int = 4) -> Sheet:
    """The grids of a problem."""
    checked_digits(digits)
    problem, sides = solution.problem, solution.sides
    given = tuple(
        Item(name, None, tuple(each.value.shape), _grids(sides[name], each.value, _listed(each.cells)))
        for name, each in problem.given.items()
    )
    filled, empty = [], []
    for step in problem.steps:
        value = solution.values[step.name]
        root, shape = step.formula.root, tuple(value.shape)
        numbers = [shown(float(number), digits).text for number in value.flatten()]
        filled.append(Item(step.name, root, shape, _grids(sides[step.name], value, numbers)))
        empty.append(Item(step.name, root, shape, _grids(sides[step.name], value, [""] * value.numel())))
    return Sheet(problem.title, problem.about, _source(problem.path), given, tuple(empty), tuple(filled))


def _grids(sides: Sides, value: Tensor, texts: list[str]) -> tuple[Grid, ...]:
    """One, or one for each place on the first axis of three."""
    rows, columns = (1, 1, *value.shape)[-2:]
    words = (None, None, *sides)[-2:]
    lines = [tuple(texts[start : start + columns]) for start in range(0, len(texts), columns)]
    every = [tuple(lines[start : start + rows]) for start in range(0, len(lines), rows)]
    places = [f"[{number}]" for number in range(len(every))] if len(every) > 1 else [""]
    return tuple(Grid(cells, words[0], words[1], place) for cells, place in zip(every, places, strict=True))


def _source(path: str) -> str:
    names = {str(file): name for name, file in shipped().items()}
    return names.get(path, Path(path).name)


def _listed(cells: Any) -> list[str]:
    """Cells as written, row by row."""
    return [text for each in cells for text in _listed(each)] if isinstance(cells, list) else [cells]


def told(shape: tuple[int, ...]) -> str:
    """`2 × 3`, `3 numbers`, `one number`."""
    if len(shape) < 2:
        return f"{shape[0]} numbers" if shape and shape[0] > 1 else "one number"
    return " × ".join(map(str, shape))
