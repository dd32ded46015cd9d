"""A derivation in the terminal: every step with its formula, its numbers and the arithmetic of one of its cells."""

import math
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from io import StringIO
from textwrap import wrap
from typing import Literal

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.style import Style
from rich.text import Text

from regard.tracing.derivation import Derivation
from regard.tracing.render.asked import reach
from regard.tracing.render.colours import signed_colour, weight_colour
from regard.tracing.render.numbers import checked_digits
from regard.tracing.render.selecting import Only, Selected, other_givens, selected
from regard.tracing.render.tables import BLOCKED, Entry, Table, Tables, tables, told_shape
from regard.tracing.render.telling import LEGEND, heading, left_out, more_given, note
from regard.tracing.render.working import arithmetic
from regard.tracing.step import Step

INDENT = "    "
NARROWEST, MOST_COLUMNS = 24, 24
DIM, BOLD = Style(dim=True), Style(bold=True)


def text(
    derivation: Derivation,
    digits: int = 4,
    only: Only = None,
    width: int | None = None,
    color: bool | None = None,
) -> str:
    """The derivation as lines no wider than `width` (by default the terminal's, 80 where there is none).

    With colours where the output is a terminal, or as `color` says.
    """
    checked_digits(digits)
    width = max(NARROWEST, shutil.get_terminal_size().columns) if width is None else width
    if width < NARROWEST:
        raise ValueError(f"width: expected at least {NARROWEST} columns; got {width}")
    wanted = _watched() if color is None else color
    out = StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=True,
        color_system=_colours(wanted),
        no_color=False,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for line in _lines(derivation, digits, only, width):
        console.print(line, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
    lines = out.getvalue().splitlines()
    return "".join(f"{line if wanted else line.rstrip()}\n" for line in lines)


def _watched() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _colours(wanted: bool) -> Literal["256", "truecolor"] | None:
    if not wanted:
        return None
    return "truecolor" if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") else "256"


def _lines(derivation: Derivation, digits: int, only: Only, width: int) -> Iterator[Text]:
    blocked = False
    for number, what in enumerate(selected(derivation, only)):
        if number:
            yield Text()
        shown = _fitting(what, digits, width)
        yield from _heading(what.step, width)
        for table in shown.slices:
            yield from _table(table, shown, width)
        if words := left_out(shown):
            yield from _wrapped(words, width, DIM)
        if words := arithmetic(what, digits):
            yield from _wrapped(words, width, Style())
        blocked |= any(table.has_blocked_weights for table in shown.slices)
    if only is None and (given := other_givens(derivation)):
        yield Text()
        yield from _wrapped(more_given(given), width, DIM, "")
    if blocked:
        yield Text()
        yield from _wrapped(LEGEND, width, DIM, "")


def _heading(step: Step, width: int) -> Iterator[Text]:
    title, aside = heading(step), note(step)
    if cell_len(title) + cell_len(aside) + 2 <= width:
        room = " " * (width - cell_len(title) - cell_len(aside))
        yield Text.assemble((title, BOLD), room, (aside, DIM))
        return
    yield from _wrapped(title, width, BOLD, "")
    yield from _wrapped(aside, width, DIM)


def _fitting(what: Selected, digits: int, width: int) -> Tables:
    """Tables of as many columns as there is room for: up to 24 in blocks, else one block with a gap."""
    columns = next((len(p) for p, fixed in zip(what.places[::-1], what.fixed[::-1], strict=True) if not fixed), 1)
    found = tables(what, digits, MOST_COLUMNS)
    if columns <= MOST_COLUMNS or not found.slices:
        return found
    room = max(len(next(_blocks(table, width))[0]) for table in found.slices)
    for most in range(room + 1, 3, -1):
        found = tables(what, digits, most)
        if all(len(list(_blocks(table, width))) == 1 for table in found.slices):
            break
    return found


def _blocks(table: Table, width: int) -> Iterator[tuple[range, list[int]]]:
    """Which columns stand beside each other, and how wide each of them is."""
    room = width - len(INDENT) - _names_width(table, width)
    widths = [_column_width(table, at, width) for at in range(len(table.columns))]
    start = 0
    while start < len(widths):
        stop, used = start, 0
        while stop < len(widths) and (stop == start or used + widths[stop] + 2 <= room):
            used += widths[stop] + 2
            stop += 1
        yield range(start, stop), widths[start:stop]
        start = stop


def _longest(width: int) -> int:
    """How wide a token may be, so that a row of one number still fits."""
    return min(18, (width - 8) // 3)


def _names_width(table: Table, width: int) -> int:
    return min(_longest(width), max((cell_len(name) for name in table.row_names), default=0)) + 1 if table.named else 0


def _column_width(table: Table, at: int, width: int) -> int:
    numbers = [len(row[at].text) if row[at] is not None else 1 for row in table.cells]  # type: ignore[union-attr]
    name = min(_longest(width), cell_len(table.column_names[at])) if table.shape else 0
    return max([name, *numbers, 1])


def _table(table: Table, of: Tables, width: int) -> Iterator[Text]:
    if not of.step.has_values:
        return
    if table.title != of.step.name:
        yield from _wrapped(f"{table.title}   {told_shape(table.shape)}", width, DIM)
    if 0 in table.shape:
        yield Text(f"{INDENT}no cells", DIM)
        return
    numbers = table.step.array
    most = 0.0 if numbers is None else reach(numbers)  # of the whole step, so that its slices share their colours
    for at, widths in _blocks(table, width):
        if table.shape:
            yield _header(table, at, widths, width)
        for number, row in enumerate(table.cells):
            line = Text(INDENT)
            if table.named:
                line.append(_cut(table.row_names[number], _names_width(table, width)), DIM)
            for column, size in zip(at, widths, strict=True):
                line.append(*_cell(row[column], size, table.step, most))
            yield line


def _header(table: Table, at: range, widths: Sequence[int], width: int) -> Text:
    line = Text(INDENT + " " * _names_width(table, width))
    for column, size in zip(at, widths, strict=True):
        name = _cut(table.column_names[column], min(size, cell_len(table.column_names[column])))
        line.append(" " * (size - cell_len(name) + 1) + name + " ", DIM)
    return line


def _cell(entry: Entry | None, size: int, step: Step, reach: float) -> tuple[str, Style]:
    if entry is None:
        return f" {'…':>{size}} ", DIM
    words = f" {entry.text:>{size}} "
    if entry.blocked or entry.text == BLOCKED or not isinstance(entry.value, float) or not math.isfinite(entry.value):
        return words, DIM
    if "float" not in step.dtype:
        return words, Style()
    colour = weight_colour(entry.value) if step.kind == "weights" else signed_colour(entry.value, reach, "dark")
    return words, Style(color=colour.ink, bgcolor=colour.code)


def _cut(words: str, size: int) -> str:
    """Exactly so wide, with an ellipsis where something had to go."""
    return set_cell_size(words, size) if cell_len(words) <= size else set_cell_size(words, size - 1) + "…"


def _wrapped(words: str, width: int, style: Style, indent: str = INDENT) -> Iterator[Text]:
    """Words on as many lines as they need, those after the first a little further in."""
    for line in wrap(words, width, initial_indent=indent, subsequent_indent=indent + "  ") or [indent]:
        yield Text(line, style)
