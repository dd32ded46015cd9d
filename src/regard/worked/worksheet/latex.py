"""A worksheet in LaTeX: one document of the class article, to print and fill in."""

from regard.tracing.render.latex import LATEX as NUMBERS
from regard.tracing.render.latex_words import OTHER, escaped
from regard.worked.notation import LATEX, spelled
from regard.worked.worksheet.sheet import Grid, Item, Sheet

OPENING = (
    r"""\documentclass[11pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath}
\usepackage{graphicx}
\setlength{\parindent}{0pt}
\setlength{\parskip}{1.2ex}
"""
    + OTHER
    + r"""% A grid as wide as it is, or as the page where it is wider.
\newcommand{\fitted}[1]{\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{#1}}
\newcommand{\blank}{\rule[-1.2ex]{0pt}{4ex}\hspace{4em}}
\begin{document}
"""
)
CLOSING = "\\end{document}\n"


def written(sheet: Sheet, part: str) -> str:
    title = escaped(sheet.title)
    parts = []
    if part != "key":
        parts += [rf"\section*{{{title}}}"]
        parts += [escaped(sheet.about), ""] if sheet.about else []
        parts += [r"Name: \hrulefill", "", r"\subsection*{Given}", *(_item(item) for item in sheet.given)]
        parts += [r"\subsection*{To be worked}", *(_item(item, n) for n, item in enumerate(sheet.steps, 1))]
    if part == "both":
        parts += [r"\newpage"]
    if part != "sheet":
        parts += [rf"\section*{{Key: {title}}}", *(_item(item, n) for n, item in enumerate(sheet.key, 1))]
    return OPENING + "\n".join(parts) + "\n" + CLOSING


def _item(item: Item, number: int = 0) -> str:
    name = LATEX.name(item.name)
    head = f"${name}$" if item.formula is None else rf"\textbf{{{number}.}} ${name} = {spelled(item.formula, LATEX)}$"
    grids = [(f"${grid.place}$ " if len(item.grids) > 1 else "") + _grid(grid) for grid in item.grids]
    # A grid does not part from what stands over it.
    return "\n".join([r"\begin{minipage}{\linewidth}", head, "", *grids, r"\end{minipage}", ""])


def _grid(grid: Grid) -> str:
    names = grid.rows is not None
    columns = ("r|" if names else "|") + "c|" * len(grid.cells[0])
    lines = []
    if grid.columns:
        lines.append(" & ".join([""] * names + [escaped(word) for word in grid.columns]) + r" \\")
    rule = rf"\cline{{{1 + names}-{len(grid.cells[0]) + names}}}"
    lines.append(rule)
    for number, row in enumerate(grid.cells):
        name = [escaped(grid.rows[number])] if grid.rows else []
        cells = [f"${NUMBERS.number(_plain(cell)).text}$" if cell else r"\blank" for cell in row]
        lines.append(" & ".join([*name, *cells]) + r" \\ " + rule)
    body = "\n".join(lines)
    return rf"\fitted{{\begin{{tabular}}{{{columns}}}" + f"\n{body}\n" + r"\end{tabular}}" + "\n"


def _plain(cell: str) -> str:
    """A number as it was written, in the letters of one that is shown."""
    return cell.replace("−", "-").replace("+", "").replace(".inf", "∞").replace("inf", "∞").replace("E", "e")
