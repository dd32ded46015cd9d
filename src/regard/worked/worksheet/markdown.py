"""A worksheet in Markdown, with tables that GitHub, pandoc and notebooks read."""

from collections.abc import Sequence

from regard.tracing.render.markdown import code, escaped
from regard.worked.notation import spelled
from regard.worked.worksheet.sheet import Grid, Item, Sheet, told

BLANK = "&emsp;" * 3


def written(sheet: Sheet, part: str) -> str:
    parts = []
    if part != "key":
        about = [escaped(sheet.about)] if sheet.about else []
        parts += [f"# {escaped(sheet.title)}", *about, "Name: " + r"\_" * 30, "## Given"]
        parts += [text for item in sheet.given for text in _item(item)]
        parts += ["## To be worked", *(text for n, item in enumerate(sheet.steps, 1) for text in _item(item, n))]
    if part != "sheet":
        parts += ["---"] if part == "both" else []
        parts += [f"# Key: {escaped(sheet.title)}"]
        parts += [text for n, item in enumerate(sheet.key, 1) for text in _item(item, n)]
    return "\n\n".join(parts) + "\n"


def _item(item: Item, number: int = 0) -> list[str]:
    shape = told(item.shape)
    if item.formula is None:
        head = f"**{escaped(item.name)}** ({shape})"
    else:
        head = f"**{number}.** &nbsp; {code(f'{item.name} = {spelled(item.formula)}')} &nbsp; ({shape})"
    titled = len(item.grids) > 1
    return [head, *(text for grid in item.grids for text in ([grid.place] if titled else []) + [_table(grid)])]


def _table(grid: Grid) -> str:
    """A table of Markdown has a head; where the columns have no names it numbers them."""
    names = grid.columns or [str(number) for number in range(1, len(grid.cells[0]) + 1)]
    corner = [""] if len(grid.cells) > 1 or grid.rows else []
    rows = grid.rows or [str(number) for number in range(1, len(grid.cells) + 1)]
    lines = [_row([*corner, *map(escaped, names)]), _row([":--"] * len(corner) + ["--:"] * len(names))]
    for name, cells in zip(rows, grid.cells, strict=True):
        lines.append(_row([*([f"**{escaped(name)}**"] if corner else []), *(escaped(cell) or BLANK for cell in cells)]))
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
