"""A step's numbers as tables that can be read: slices of it, of few rows and columns, with names on both axes.

A tensor of more than two axes is shown by slices of its last two. What is left out stands as a gap.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from regard.tracing.cell import Expression, Number
from regard.tracing.render.numbers import checked_digits, shown, small
from regard.tracing.render.selecting import Selected
from regard.tracing.step import Step

ROWS, SLICES = 12, 4
"""How many rows of a table, and how many slices of a tensor, are shown."""

BLOCKED = "×"


@dataclass(frozen=True)
class Entry:
    """One cell as it is shown."""

    text: str
    value: Number | None
    blocked: bool = False
    """Whether nothing may be attended to there: a score of minus infinity, or a weight that comes of one."""


@dataclass(frozen=True)
class Table:
    """A slice of a step; None stands for the gap where rows or columns are left out."""

    step: Step
    title: str
    """Its place among the slices, as `A[0, 1]`; the step's name where it is all of it."""
    shape: tuple[int, ...]
    """Of the slice as it was asked for: rows and columns, columns alone, or nothing for a single number."""
    rows: tuple[int | None, ...]
    columns: tuple[int | None, ...]
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    cells: tuple[tuple[Entry | None, ...], ...]

    @property
    def named(self) -> bool:
        """Whether the rows have names: a single row of a vector has none."""
        return len(self.shape) == 2

    @property
    def has_blocked_weights(self) -> bool:
        return any(cell is not None and cell.text == BLOCKED for row in self.cells for cell in row)


@dataclass(frozen=True)
class Tables:
    """The slices of a step that are shown, and how many are not."""

    step: Step
    slices: tuple[Table, ...]
    left_out: int


def tables(what: Selected, digits: int = 4, columns: int = 12, rows: int = ROWS, most: int = SLICES) -> Tables:
    """The first slices of what was selected, each cut to so many rows and columns."""
    checked_digits(digits)
    free = [axis for axis, fixed in enumerate(what.fixed) if not fixed]
    inner = free[-2:]
    outer = [what.places[axis] if axis not in inner else (0,) for axis in range(len(what.places))]
    found = tuple(_table(what, at, inner, digits, columns, rows) for at in islice(product(*outer), most))
    return Tables(what.step, found, math.prod(len(each) for each in outer) - len(found))


def kept(places: Sequence[int], most: int) -> tuple[int | None, ...]:
    """All places, or the first and the last ones around a gap, `most` entries in all (3 at least)."""
    if len(places) <= most:
        return tuple(places)
    most = max(most, 3)
    last = max(1, (most - 1) // 4)
    return (*places[: most - 1 - last], None, *places[-last:])


def _table(
    what: Selected, at: tuple[int, ...], inner: Sequence[int], digits: int, most_columns: int, most_rows: int
) -> Table:
    step = what.step
    rows = kept(what.places[inner[0]], most_rows) if len(inner) == 2 else (0,)
    columns = kept(what.places[inner[-1]], most_columns) if inner else (0,)

    def index(row: int, column: int) -> tuple[int, ...]:
        places = dict(zip(inner, (row, column) if len(inner) == 2 else (column,), strict=False))
        return tuple(places.get(axis, each) for axis, each in enumerate(at))

    cells = tuple(
        tuple(None if row is None or column is None else entry(step, index(row, column), digits) for column in columns)
        for row in rows
    )
    shape = tuple(len(what.places[axis]) for axis in inner)
    row_names = _names(step, inner[0], rows) if len(inner) == 2 else ("",)
    column_names = _names(step, inner[-1], columns) if inner else ("",)
    return Table(step, _title(what, at, inner), shape, rows, columns, row_names, column_names, cells)


def _title(what: Selected, at: Sequence[int], inner: Sequence[int]) -> str:
    """`A[0, 1]`, or with the tokens of the axes; the bare name where the table is the whole step."""
    whole = all(len(p) == size for p, size in zip(what.places, what.step.shape, strict=True)) and not any(what.fixed)
    if whole and len(what.step.shape) <= 2:
        return what.step.name
    parts = []
    for axis, place in enumerate(at):
        places = what.places[axis]
        if axis not in inner:
            parts.append(str(place))
        else:
            parts.append(":" if len(places) == what.step.shape[axis] else f"{places.start}:{places.stop}")
    while parts and parts[-1] == ":":
        parts.pop()
    return f"{what.step.name}[{', '.join(parts)}]" if parts else what.step.name


def _names(step: Step, axis: int, places: Sequence[int | None]) -> tuple[str, ...]:
    tokens = token_names(step, axis)
    return tuple("…" if at is None else str(at) if tokens is None else tokens[at] for at in places)


def token_names(step: Step, axis: int) -> tuple[str, ...] | None:
    """The tokens on an axis, spaces made visible and an empty one too."""
    tokens = step.axes[axis] if step.axes else None
    return None if tokens is None else tuple(visible(token) for token in tokens)


def visible(token: str) -> str:
    """A token as it can be seen in a table: no line ends, no spaces at its ends, never nothing."""
    plain = token.replace("\n", "⏎").replace("\t", "⇥").replace("\r", "")
    body = plain.strip(" ")
    left, right = len(plain) - len(plain.lstrip(" ")), len(plain) - len(plain.rstrip(" "))
    return "␣" * left + body + "␣" * right if body else "␣" * len(plain) or "∅"


def entry(step: Step, index: tuple[int, ...], digits: int = 4) -> Entry:
    """A cell as it is shown in a table."""
    array = step.array
    if array is None:
        return Entry("?", None)
    flat = 0
    for at, size in zip(index, step.shape, strict=True):
        flat = flat * size + at
    value: Number = array[flat].item()
    if value == -math.inf:
        return Entry("-∞", value, True)
    if step.kind != "weights":
        return Entry(shown(value, digits, step.dtype).text, value)
    if value == 0 and blocked(step, index):
        return Entry(BLOCKED, value, True)
    return Entry(small(value, digits, step.dtype), value)


def blocked(step: Step, index: tuple[int, ...]) -> bool:
    """Whether a weight of 0 comes of a score of minus infinity in its own place."""
    assert step.derivation is not None
    return any(_own_score_blocked(each) for each in _walk(step.derivation.why(step.name, *index).expression))


def _own_score_blocked(a: Expression) -> bool:
    if a.form == "softmax":
        own: Iterator[Expression] = a.of[0].leaves()
    elif a.form == "quotient":
        own = a.of[0].leaves()
    elif a.step is not None and a.value == 0 and a.step.kind == "weights":  # weights moved, or changed cell by cell
        return blocked(a.step, a.index)
    else:
        return False
    return any(leaf.value == -math.inf for leaf in own)


def _walk(a: Expression) -> Iterator[Expression]:
    """An expression and its parts, but not the terms that run over other places."""
    yield a
    for part in a.of:
        yield from _walk(part)


def told_shape(shape: Sequence[int]) -> str:
    """`2 × 3`; `one number` where there are no axes."""
    return " × ".join(map(str, shape)) if shape else "one number"


def telling_cell(what: Selected) -> tuple[int, ...] | None:
    """The cell whose arithmetic tells most: the first shown, or the first below it, that no infinity takes part in."""
    derivation, first = what.step.derivation, None
    assert derivation is not None
    for index in (*islice(product(*what.places), 4), *islice(_last_row(what), 4)):
        first = index if first is None else first
        parents = derivation.why(what.step.name, *index).parents
        if all(parent.value is None or abs(parent.value) != math.inf for parent in parents):
            return index
    return first


def _last_row(what: Selected) -> Iterator[tuple[int, ...]]:
    """The cells along the last axis, at the last of the places on all the others."""
    return product(*(places[-1:] for places in what.places[:-1]), *what.places[-1:])
