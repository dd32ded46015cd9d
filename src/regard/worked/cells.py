"""Numbers of a problem file: read as text, so that the digits are kept, and as float64 beside it."""

import math
import re
from typing import Any

import torch
from torch import Tensor

from regard.support.errors import Misuse
from regard.worked.limits import MOST_AXES, MOST_CELLS
from regard.worked.lines import List, Text, Tree, Within, read_source
from regard.worked.tolerance import BLANK

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
INFINITE = re.compile(r"([-+]?)(∞|\.?inf|\.?Inf|\.?INF)")


def is_blank(tree: Tree) -> bool:
    """Whether nothing is filled in: `_`, or rows of nothing else."""
    if isinstance(tree, List):
        return bool(tree.items) and all(map(is_blank, tree.items))
    return isinstance(tree, Text) and not tree.text.replace("null", "").strip("[]() ,_?~….\n")


def read_cells(tree: Tree, what: str, name: str, blanks: bool = False) -> tuple[Any, Tensor]:
    """The cells as written (text, or lists of text) and their values; `what` is for the message: `given X`.

    A text that begins with a bracket is read as the list it writes out. Where `blanks` are allowed, a cell that is not
    filled in is no number, and a row of such cells may be left blank as one.
    """
    if isinstance(tree, Text) and tree.text.lstrip().startswith("["):
        tree = read_source(Within(tree))
    shape = _shape(tree, what, name)
    tree = _spread(tree, shape) if blanks else tree
    _check(tree, shape, what, name)
    numbers: list[float] = []
    written = _read(tree, what, name, numbers, blanks)
    return written, torch.tensor(numbers, dtype=torch.float64).reshape(shape)


def _shape(tree: Tree, what: str, name: str) -> tuple[int, ...]:
    """Of the first row of the first row … that is not blank; whether the others agree is seen in `_check`."""
    shape: list[int] = []
    here = tree
    while isinstance(here, List):
        if not here.items:
            raise Misuse(f"{name}:{here.at}: {what} has an empty row")
        shape.append(len(here.items))
        if len(shape) > MOST_AXES:
            raise Misuse(f"{name}:{here.at}: {what} has more than {MOST_AXES} axes")
        here = next((each for each in here.items if not _is_blank_text(each)), here.items[0])
    if math.prod(shape) > MOST_CELLS:
        raise Misuse(f"{name}:{tree.at}: {what} has more than {MOST_CELLS} cells, the most a worked matrix may have")
    return tuple(shape)


def _is_blank_text(tree: Tree) -> bool:
    return isinstance(tree, Text) and tree.text.strip() in BLANK


def _spread(tree: Tree, shape: tuple[int, ...]) -> Tree:
    """With a row of blank cells for each row that is left blank as one."""
    if not shape:
        return tree
    if _is_blank_text(tree):
        return List((_spread(tree, shape[1:]),) * shape[0], tree.at)
    return List(tuple(_spread(each, shape[1:]) for each in tree.items), tree.at) if isinstance(tree, List) else tree


def _check(tree: Tree, shape: tuple[int, ...], what: str, name: str) -> None:
    """Every row as long as the first, every cell a text."""
    if not isinstance(tree, Text | List):
        raise Misuse(f"{name}:{tree.at}: {what}: expected a number or rows of numbers, came {tree.kind}")
    if not shape:
        if isinstance(tree, List):
            raise Misuse(f"{name}:{tree.at}: {what}: a row stands where the first row has a number")
        return
    if not isinstance(tree, List):
        raise Misuse(f"{name}:{tree.at}: {what}: a number stands where the first row has a row of {shape[0]}")
    if len(tree.items) != shape[0]:
        raise Misuse(f"{name}:{tree.at}: {what}: this row has {len(tree.items)} cells, the first has {shape[0]}")
    for each in tree.items:
        _check(each, shape[1:], what, name)


def _read(tree: Tree, what: str, name: str, numbers: list[float], blanks: bool) -> Any:
    if isinstance(tree, List):
        return [_read(each, what, name, numbers, blanks) for each in tree.items]
    assert isinstance(tree, Text)
    try:
        numbers.append(math.nan if blanks and _is_blank_text(tree) else number(tree.text))
    except ValueError as error:
        raise Misuse(f"{name}:{tree.at}: {what}: {error}") from None
    return tree.text.strip()


def number(text: str) -> float:
    """The number a cell says; -inf (or -∞) is a blocked one."""
    plain = text.strip().replace("−", "-")
    if NUMBER.fullmatch(plain):
        value = float(plain)
        if value in (float("inf"), float("-inf")):
            raise ValueError(f"{text.strip()[:30]} is too large a number to count with")
        return value
    if (endless := INFINITE.fullmatch(plain)) is not None:
        return float("-inf") if endless[1] == "-" else float("inf")
    if plain in BLANK:
        raise ValueError("a number is missing here")
    raise ValueError(f"expected a number, came {text.strip()[:40]!r}")
