"""A worksheet as one HTML file: to print, or to fill in on the screen. It loads nothing."""

import html

from regard.worked.notation import HTML, spelled
from regard.worked.worksheet.sheet import Grid, Item, Sheet, told

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; }
figure { display: inline-block; vertical-align: top; margin: 1rem 2.5rem 1rem 0; break-inside: avoid; max-width: 100%;
         overflow-x: auto; }
figcaption { margin-bottom: .4rem; } figcaption small { opacity: .7; }
table { border-collapse: collapse; } th { font-weight: 500; padding: .1rem .6rem; text-align: right; opacity: .8; }
td { border: 1px solid; min-width: 4rem; height: 2rem; padding: 0 .5rem; text-align: right;
     font-variant-numeric: tabular-nums; }
td:has(input) { padding: 0; }
input { all: unset; box-sizing: border-box; width: 5rem; height: 2rem; padding: 0 .5rem; text-align: right; }
input:focus-visible { outline: 2px solid; }
.name { border-bottom: 1px solid; display: inline-block; width: 20rem; }
.key { break-before: page; border-top: 1px solid; margin-top: 3rem; }
@media print { body { margin: 0; max-width: none; } .key { border: 0; margin: 0; } }
"""

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>{style}</style></head>
<body>
{body}
</body>
</html>
"""


def written(sheet: Sheet, part: str) -> str:
    title = html.escape(sheet.title)
    parts = []
    if part != "key":
        parts += [f"<h1>{title}</h1>"] + ([f"<p>{html.escape(sheet.about)}</p>"] if sheet.about else [])
        parts += ['<p>Name: <span class="name">&nbsp;</span></p>', "<h2>Given</h2>", *map(_item, sheet.given)]
        parts += ["<h2>To be worked</h2>", *(_item(item, number) for number, item in enumerate(sheet.steps, 1))]
    if part != "sheet":
        level = 1 if part == "key" else 2
        parts += [
            f'<section class="key"><h{level}>Key: {title}</h{level}>' if part == "both" else f"<h1>Key: {title}</h1>"
        ]
        parts += [_item(item, number) for number, item in enumerate(sheet.key, 1)]
        parts += ["</section>"] if part == "both" else []
    return PAGE.format(title=title, style=STYLE, body="\n".join(parts))


def _item(item: Item, number: int = 0) -> str:
    said = HTML.name(item.name)
    if item.formula is not None:
        said = f"<b>{number}.</b> {said} = {spelled(item.formula, HTML)}"
    grids = [(f"<p>{grid.place}</p>" if len(item.grids) > 1 else "") + _table(grid, item.name) for grid in item.grids]
    return f"<figure><figcaption>{said} <small>({told(item.shape)})</small></figcaption>{''.join(grids)}</figure>"


def _table(grid: Grid, name: str) -> str:
    lines = []
    if grid.columns:
        corner = "<th></th>" if grid.rows else ""
        words = "".join(f'<th scope="col">{html.escape(word)}</th>' for word in grid.columns)
        lines.append(f"<tr>{corner}{words}</tr>")
    for row, cells in enumerate(grid.cells):
        head = f'<th scope="row">{html.escape(grid.rows[row])}</th>' if grid.rows else ""
        filled = "".join(
            _cell(cell, f"{name}{grid.place} row {row + 1} column {column + 1}") for column, cell in enumerate(cells)
        )
        lines.append(f"<tr>{head}{filled}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _cell(text: str, called: str) -> str:
    if text:
        return f"<td>{html.escape(text).replace('-', '−')}</td>"
    return f'<td><input aria-label="{html.escape(called)}" autocomplete="off" inputmode="decimal"></td>'
