"""A worked problem as a page: its title, what it is about, and its derivation in one of the trace's renderings."""

import shutil
from textwrap import wrap

from rich.cells import cell_len

from regard.support.errors import Misuse
from regard.tracing.render import latex_words, markdown
from regard.worked.solution import Solution

FORMATS = {"text": ".txt", "markdown": ".md", "latex": ".tex", "json": ".json"}
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


def _json(solution: Solution, digits: int, only: str | None, width: int | None) -> str:
    """Every number there is: what is shown of them is up to the reader."""
    return solution.derivation.to_json()


_WRITERS = {"text": _text, "markdown": _markdown, "latex": _latex, "json": _json}
