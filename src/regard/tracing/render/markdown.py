"""A derivation as Markdown: headings, pipe tables, and the arithmetic as code."""

import re
from collections.abc import Iterator

from regard.tracing.derivation import Derivation
from regard.tracing.render.numbers import checked_digits
from regard.tracing.render.selecting import Only, other_givens, selected
from regard.tracing.render.tables import Entry, Table, tables, told_shape
from regard.tracing.render.telling import LEGEND, heading, left_out, more_given, note
from regard.tracing.render.working import arithmetic

SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\`*_{}[]#|~$!"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})


def markdown(derivation: Derivation, digits: int = 4, only: Only = None) -> str:
    """One section a step: its formula, its numbers as tables (big ones cut), the arithmetic of one of its cells."""
    checked_digits(digits)
    parts: list[str] = []
    blocked = False
    for what in selected(derivation, only):
        shown = tables(what, digits)
        parts += [f"### {code(heading(what.step))}", escaped(note(what.step))]
        if what.step.has_values:
            parts += [part for table in shown.slices for part in _table(table)]
        if words := left_out(shown):
            parts.append(escaped(words))
        if words := arithmetic(what, digits):
            parts.append(code(words))
        blocked |= any(table.has_blocked_weights for table in shown.slices)
    if only is None and (given := other_givens(derivation)):
        parts.append(escaped(more_given(given)))
    if blocked:
        parts.append(LEGEND)
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> Iterator[str]:
    """Its title where it is a slice, and its rows."""
    if table.title != table.step.name:
        yield f"{code(table.title)}, {told_shape(table.shape)}"
    if 0 in table.shape:
        yield "no cells"
        return
    if not table.shape:
        yield _cell(table.cells[0][0])
        return
    lead = ["", *table.column_names] if table.named else list(table.column_names)
    lines = [_row([escaped(name) for name in lead]), _row(["---:"] * len(lead))]
    for name, row in zip(table.row_names, table.cells, strict=True):
        cells = [_cell(cell) for cell in row]
        lines.append(_row([f"**{escaped(name)}**", *cells] if table.named else cells))
    yield "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(entry: Entry | None) -> str:
    return "…" if entry is None else escaped(entry.text)


def escaped(words: str) -> str:
    """Words that Markdown takes as they are."""
    return words.translate(SPECIAL)


def code(words: str) -> str:
    """A span of code, whatever backticks are in it."""
    longest = max((len(run) for run in re.findall("`+", words)), default=0)
    fence, pad = "`" * (longest + 1), " " if "`" in words else ""
    return f"{fence}{pad}{words}{pad}{fence}"
