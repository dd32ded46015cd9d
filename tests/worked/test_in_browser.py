"""A worked problem as a page, and a worksheet, in a real Chromium with the network cut."""

from pathlib import Path
from typing import Any

import pytest

from regard.tracing import Derivation
from regard.worked import problem_from, solve
from regard.worked.page import narrowed, page
from regard.worked.worksheet import worksheet
from tests.browser import Watched, opened
from tests.worked.test_derivations import cells

PROBLEM = """\
title: A page & its <numbers>
given:
  X: {how: [0.1, 0.7], are: [0.4, -0.5]}
  v: [0.5, -1]
  W: [[1, 2], [0.5, 0]]
steps:
  E: X @ X.T
  A: softmax(mask(scale(E, 2), causal))
  O: A @ X
  row: O[0]
  state: rnn_cell(v, row, W, W)
  hot: one_hot(1, 2)
  PE: positional(2, 2)
  both: stack(O, X)
"""


@pytest.mark.parametrize("only", [None, "A, both"])
def test_every_cell_of_a_worked_problem_opens_in_the_page(only: str | None, browser: Any, tmp_path: Path) -> None:
    solution = solve(problem_from(PROBLEM))
    derivation = narrowed(solution.derivation, only)
    watched = shown(browser, tmp_path, page(solution, "html", only=only))
    assert watched.page.title() == "A page & its <numbers>"
    count = 0
    for name, index in cells(derivation):
        if len(index) == 3 and index[0] > 0:  # another slice, which the page shows when it is asked for
            continue
        watched.page.click(place(watched.page, derivation, name, index))
        equation = watched.page.get_attribute(".rg-equation", "aria-label")
        assert equation == solution.derivation.why(name, *index).text, f"{name}{index}"
        count += 1
    assert count == sum(step.size for step in derivation.steps) - 4
    assert not watched.complaints
    assert [request for request in watched.requests if not request.startswith(("file:", "data:", "blob:"))] == []


def shown(browser: Any, folder: Path, text: str) -> Watched:
    (folder / "page.html").write_text(text, encoding="utf-8")
    watched = opened(browser, folder / "page.html")
    watched.page.wait_for_selector(".rg[data-ready]")
    return watched


def place(page: Any, derivation: Derivation, name: str, index: tuple[int, ...]) -> str:
    """Where a cell stands in the page, scrolled to, so that its grid is made."""
    step, flat = derivation[name], 0
    for at, size in zip(index, step.shape, strict=True):
        flat = flat * size + at
    section = page.locator(f'section[data-position="{step.position}"]')
    section.scroll_into_view_if_needed()
    section.locator("td >> nth=0").wait_for()
    return f'td[data-cell="{step.position}:{flat}"]'


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_worksheet_is_filled_in_with_the_keyboard(scheme: str, browser: Any, tmp_path: Path) -> None:
    (tmp_path / "sheet.html").write_text(worksheet(solve(problem_from(PROBLEM)), "html", part="sheet"), "utf-8")
    watched = opened(browser, tmp_path / "sheet.html", color_scheme=scheme)
    fields = watched.page.locator("input")
    assert fields.count() == 4 + 4 + 4 + 2 + 2 + 2 + 4 + 8
    fields.first.focus()
    for number in ("0.5", "-inf"):
        watched.page.keyboard.type(number)
        watched.page.keyboard.press("Tab")
    assert [fields.nth(at).input_value() for at in range(3)] == ["0.5", "-inf", ""]
    assert not watched.complaints
