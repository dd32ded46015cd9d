"""A derivation in LaTeX: a document of the plain class article that needs nothing but graphicx, or the body of one."""

import re
from collections.abc import Iterable, Iterator

from regard.tracing.derivation import Derivation
from regard.tracing.render.equation import ALONE, POWER, PRODUCT, SUM, Notation, Part, line
from regard.tracing.render.latex_words import OTHER, escaped, formula, name
from regard.tracing.render.numbers import checked_digits
from regard.tracing.render.selecting import Only, other_givens, selected
from regard.tracing.render.tables import BLOCKED, Entry, Table, tables, told_shape
from regard.tracing.render.telling import LEGEND, ROLES, left_out, more_given, note
from regard.tracing.render.working import worked_cell
from regard.tracing.step import Step

COLUMNS = 10
LONG = 45
"""Letters beyond which a fraction or a root is written on the line, where it can be broken."""

OPENING = (
    r"""\documentclass{article}
\usepackage{graphicx}
\setlength{\parindent}{0pt}
\setlength{\parskip}{1.2ex}
\raggedright
\setlength{\arraycolsep}{4pt}
"""
    + OTHER
    + r"""% A table as wide as it is, or as the line where it is wider.
\newcommand{\fitted}[1]{\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{#1}}
\begin{document}
"""
)
CLOSING = "\\end{document}\n"


def latex(derivation: Derivation, digits: int = 4, only: Only = None, document: bool = True) -> str:
    """Every step, or `only` some, with their numbers and the arithmetic of one cell each.

    Without `document` only what stands between its begin and end; the opening then has to define \\fitted and \\other.
    """
    checked_digits(digits)
    parts: list[str] = []
    blocked = False
    for what in selected(derivation, only):
        step, shown = what.step, tables(what, digits, COLUMNS)
        parts += [rf"\subsection*{{{_heading(step)}}}", escaped(note(step))]
        if step.has_values:
            parts += [part for table in shown.slices for part in _table(table)]
        if words := left_out(shown):
            parts.append(escaped(words))
        if (index := worked_cell(what)) is not None:
            at = name(step.name, index)
            parts.append(
                rf"$\displaystyle {at}\colon\ {line(derivation.why(step.name, *index), digits, notation=LATEX)}$"
            )
        blocked |= any(table.has_blocked_weights for table in shown.slices)
    if only is None and (given := other_givens(derivation)):
        parts.append(escaped(more_given(given)))
    if blocked:
        parts.append(escaped(LEGEND))
    body = "\n\n".join(parts) + "\n"
    return OPENING + body + CLOSING if document else body


def _heading(step: Step) -> str:
    if step.formula:
        return f"${name(step.name)} = {formula(step.formula)}$"
    if step.role in ROLES:
        return f"${name(step.name)}$ {ROLES[step.role]}"
    made = f" by {escaped(step.operation)} of " + ", ".join(f"${name(each)}$" for each in step.inputs)
    return f"${name(step.name)}$" + (made if step.inputs else "")


def _table(table: Table) -> Iterator[str]:
    if table.title != table.step.name:
        yield rf"\texttt{{{escaped(table.title)}}}, {escaped(told_shape(table.shape))}"
    if 0 in table.shape:
        yield "no cells"
        return
    if not table.shape:
        yield f"${_cell(table.cells[0][0])}$"
        return
    columns = ("r|" if table.named else "") + "r" * len(table.columns)
    head = " & ".join([""] * table.named + [_token(each) for each in table.column_names])
    rows = []
    for row_name, row in zip(table.row_names, table.cells, strict=True):
        cells = [_cell(cell) for cell in row]
        rows.append(" & ".join([_token(row_name), *cells] if table.named else cells))
    body = " \\\\\n".join([head + r" \\ \hline", *rows]).replace(r"\hline \\", r"\hline")
    yield rf"\fitted{{$\begin{{array}}{{{columns}}}" + f"\n{body}\n" + r"\end{array}$}"


def _token(words: str) -> str:
    return r"\mbox{" + escaped(words) + "}"


def _cell(entry: Entry | None) -> str:
    if entry is None:
        return r"\cdots"
    if entry.text == BLOCKED:
        return r"\times"
    if entry.text[0] in "<>":
        return entry.text
    return LATEX.number(entry.text).text


def letters(text: str) -> int:
    """About how many letters wide mathematics is."""
    return len(
        re.sub(
            r"\\mathrm|\\(?:frac|left|right|mbox|allowbreak)|[{}^_ ]|(\\[a-zA-Z]+)",
            lambda found: "x" * bool(found[1]),
            text,
        )
    )


class LatexNotation(Notation):
    """How formulas are written in LaTeX's mathematics."""

    dot = r" \cdot "
    about = r"\approx"
    unequal = r"\neq"
    omitted = r"\cdots\ \mbox{{({count} more)}}"

    def number(self, text: str) -> Part:
        if "∞" in text:
            return Part(text.replace("∞", r"\infty"), SUM if text.startswith("-") else ALONE)
        if text in ("NaN", "True", "False") or "i)" in text:
            return Part(rf"\mathrm{{{text}}}" if "i)" not in text else text, ALONE)
        digits, _, exponent = text.partition("e")
        level = SUM if text.startswith("-") else PRODUCT if exponent else ALONE
        return Part(rf"{digits} \cdot 10^{{{int(exponent)}}}" if exponent else digits, level)

    def name(self, name_: str, index: tuple[int, ...]) -> Part:
        return Part(name(name_, index), ALONE)

    def quotient(self, a: Part, b: Part) -> Part:
        if max(letters(a.text), letters(b.text)) > LONG:
            return super().quotient(a, b)
        return Part(rf"\frac{{{a.text}}}{{{b.text}}}", PRODUCT)

    def power(self, a: Part, b: Part) -> Part:
        return Part(f"{self.held(a, ALONE)}^{{{b.text}}}", POWER)

    def call(self, name_: str, arguments: Iterable[Part]) -> Part:
        inside = r",\allowbreak\ ".join(each.text for each in arguments)
        return Part(rf"{formula(name_)}({inside})", ALONE)

    def root(self, a: Part) -> Part:
        return Part(rf"({a.text})^{{1/2}}", POWER) if letters(a.text) > LONG else Part(rf"\sqrt{{{a.text}}}", ALONE)

    def chosen(self, condition: Part, yes: Part, no: Part) -> Part:
        return Part(rf"{yes.text}\ \mbox{{if}}\ {condition.text}\ \mbox{{else}}\ {no.text}", 0)

    def words(self, text: str) -> str:
        parts = [text.strip()] if len(text) < LONG else text.split()  # a box is not broken
        return "".join(rf"\allowbreak\ \mbox{{{escaped(each)}}}" for each in parts)

    def compared(self, a: Part, name_: str, b: Part) -> Part:
        sign = {"<=": r"\le", ">=": r"\ge", "==": "=", "!=": r"\ne"}.get(name_, name_)
        word = rf"\ \mbox{{{name_}}}\ " if name_.isalpha() else f" {sign} "
        return Part(f"{self.held(a, SUM)}{word}{self.held(b, SUM)}", 0)


LATEX = LatexNotation()
