"""A worked problem as a page: its title, what it is about, and its derivation in one of the trace's renderings."""

import shutil
from copy import copy
from textwrap import wrap

from rich.cells import cell_len

from regard.support.errors import Misuse
from regard.tracing import Derivation
from regard.tracing.index import Move
from regard.tracing.render import latex_words, markdown, numbers, selecting
from regard.worked.solution import Solution

FORMATS = {"text": ".txt", "markdown": ".md", "latex": ".tex", "html": ".html", "json": ".json"}
"""What it can be written as, and the ending of such a file."""


def page(
    solution: Solution, form: str = "text", *, digits: int = 4, only: str | None = None, width: int | None = None
) -> str:
    """The worked problem. `only` names the steps to show, whole or in part: `A, O[0]`."""
    try:
        return _WRITERS[form](solution, digits, only, width)
    except ValueError as error:
        raise Misuse(str(error)) from None


def _text(solution: Solution, digits: int, only: str | None, width: int | None) -> str:
    width = shutil.get_terminal_size().columns if width is None else width
    body = solution.derivation.text(digits=digits, only=only, width=width)
    problem = solution.problem
    head = [*wrap(problem.title, width), "=" * min(width, cell_len(problem.title)), *wrap(problem.about, width), ""]
    return body if only is not None else "\n".join([*head, body])


def _markdown(solution: Solution, digits: int, only: str | None, width: int | None) -> str:
    body = solution.derivation.markdown(digits=digits, only=only)
    parts = [f"# {markdown.escaped(solution.problem.title)}", markdown.escaped(solution.problem.about)]
    return body if only is not None else "\n\n".join([each for each in parts if each] + [body])


def _latex(solution: Solution, digits: int, only: str | None, width: int | None) -> str:
    document = solution.derivation.latex(digits=digits, only=only)
    begin = "\\begin{document}\n"
    title, about = latex_words.escaped(solution.problem.title), latex_words.escaped(solution.problem.about)
    return document.replace(begin, f"{begin}\\section*{{{title}}}\n\n{about}\n\n" if only is None else begin, 1)


def _html(solution: Solution, digits: int, only: str | None, width: int | None) -> str:
    return narrowed(solution.derivation, only).html(title=solution.problem.title, digits=digits)


def _json(solution: Solution, digits: int, only: str | None, width: int | None) -> str:
    """The numbers as they are, whatever the digits: how they are shown is up to the reader."""
    numbers.checked_digits(digits)
    return narrowed(solution.derivation, only).to_json()


def narrowed(derivation: Derivation, only: str | None) -> Derivation:
    """The derivation with the steps that were asked for alone; those they were made from stand in their equations."""
    if only is None:
        return derivation
    names = [each.step.name for each in selecting.selected(derivation, only)]
    steps = [copy(step) for step in derivation.fine]
    for step in steps:
        if step.shown and step.name not in names:
            step.shown = False
            step.making = step.rule if isinstance(step.rule, Move) else None
    return Derivation(steps, derivation[names[-1]].position)


_WRITERS = {"text": _text, "markdown": _markdown, "latex": _latex, "html": _html, "json": _json}
