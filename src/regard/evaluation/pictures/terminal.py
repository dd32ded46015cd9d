"""A heat map of blocks for a terminal: rows look, columns are looked at.

       c
     a a
     n t
un   ██··
chat ··██
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHADES = "·░▒▓█"
EDGES = (0.05, 0.2, 0.45, 0.7)
"""From which weight on a shade is darker."""
TALLEST = 12
LEGEND = "· below .05   ░ .05   ▒ .2   ▓ .45   █ from .7"


def heat(weights: NDArray[Any], rows: Sequence[str], columns: Sequence[str], *, width: int | None = None) -> str:
    """Lines of text. With a width, columns that do not fit follow in further maps."""
    table = np.asarray(weights, float)
    if table.shape != (len(rows), len(columns)):
        raise ValueError(
            f"weights: expected [{len(rows)}, {len(columns)}], as there are words; got {list(table.shape)}"
        )
    names = max((width_of(row) for row in rows), default=0)
    cell = max([2, *(width_of(each) for word in columns for each in clusters(word))])
    fitting = len(columns) if width is None else max(4, (width - names - 1) // cell)
    parts = [
        _part(table[:, first : first + fitting], rows, columns[first : first + fitting], names, cell)
        for first in range(0, len(columns), max(fitting, 1))
    ]
    return "\n\n".join(parts) + f"\n{LEGEND}"


def _part(table: NDArray[Any], rows: Sequence[str], columns: Sequence[str], names: int, cell: int) -> str:
    head = [" " * (names + 1) + line for line in _upright(columns, cell)]
    shades = np.array(list(SHADES))[np.searchsorted(EDGES, table, side="right")]
    body = [
        f"{' ' * (names - width_of(row))}{row} {''.join(np.repeat(line, cell))}"
        for row, line in zip(rows, shades, strict=True)
    ]
    return "\n".join([*(line.rstrip() for line in head), *body])


def _upright(columns: Sequence[str], width: int) -> list[str]:
    """The words of the columns, letter under letter, standing on the map; long ones are cut with an ellipsis."""
    spelled = [clusters(word) for word in columns]
    spelled = [each if len(each) <= TALLEST else [*each[: TALLEST - 1], "…"] for each in spelled]
    tallest = max((len(each) for each in spelled), default=0)
    lines = []
    for level in range(tallest, 0, -1):
        cells = [each[len(each) - level] if level <= len(each) else "" for each in spelled]
        lines.append("".join(cell + " " * (width - width_of(cell)) for cell in cells))
    return lines


def clusters(word: str) -> list[str]:
    """Letters with the marks that belong to them: what may stand under one another."""
    found: list[str] = []
    joins = False
    for each in word:
        mark = unicodedata.category(each).startswith("M") or each == "\u200d"
        if found and (mark or joins):
            found[-1] += each
        else:
            found.append(each)
        joins = each == "\u200d" or unicodedata.name(each, "").endswith("SIGN VIRAMA")
    return found


def width_of(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return sum(
        0
        if unicodedata.category(each) in ("Mn", "Me", "Cf")
        else 2
        if unicodedata.east_asian_width(each) in "WF"
        else 1
        for each in text
    )
