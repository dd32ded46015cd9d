"""The page in a real Chromium, offline: every number opens, by mouse and by keyboard, and what it says is true."""

import json
import math
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.tracing.derivation import Derivation
from regard.tracing.forms import cell as operand
from regard.tracing.index import Move, compressed, whole
from regard.tracing.render.asked import answered
from regard.tracing.render.html import html
from regard.tracing.step import Step
from tests.browser import Watched, opened
from tests.tracing.render.samples import TRACED, Builder, attention, every_form, heads, overwritten, shapes


def shown(browser: Any, folder: Path, derivation: Derivation, at: str = "", **options: Any) -> Watched:
    """The page of a derivation, ready."""
    for before in browser.contexts:
        before.close()
    path = folder / "page.html"
    path.write_text(html(derivation, "A page"), encoding="utf-8")
    watched = opened(browser, path.as_uri() + (f"#{at}" if at else ""), **options)
    watched.page.wait_for_selector(".rg[data-ready]")
    return watched


def cell(step: Step, flat: int) -> str:
    return f'td[data-cell="{step.position}:{flat}"]'


def seen(page: Any, step: Step) -> Any:
    """The section of a step, scrolled to, so that its grid is made."""
    section = page.locator(f'section[data-position="{step.position}"]')
    section.scroll_into_view_if_needed()
    section.locator("td >> nth=0").wait_for()
    return section


def plain(text: str) -> str:
    """Without the letters and signs that mathematics has of its own."""
    return unicodedata.normalize("NFKD", text).replace("−", "-").strip()


def test_every_cell_of_a_small_trace_opens_and_its_equation_is_made_of_its_parents(
    browser: Any, tmp_path: Path
) -> None:
    derivation = attention(3, 2)
    watched = shown(browser, tmp_path, derivation)
    page, opened_cells = watched.page, 0
    for step in (*derivation.givens, *derivation.steps):
        seen(page, step)
        for flat in range(step.size):
            page.click(cell(step, flat))
            index = _index(step, flat)
            why = derivation.why(step.name, *index)
            assert page.get_attribute(".rg-equation", "aria-label") == why.text
            assert page.inner_text(".rg [aria-live]").endswith(why.text)
            parents = {(parent.step, tuple(parent.index)) for parent in why.parents}
            assert {_named(derivation, each) for each in _cells(page, ".rg-chip")} == parents
            assert {_named(derivation, each) for each in _cells(page, ".rg-equation .rg-n[data-cell]")} >= parents
            outlined = {(name, place) for name, place in parents if derivation[name].shown}
            assert {_named(derivation, each) for each in _cells(page, "td.rg-parent")} == outlined
            assert _cells(page, "td.rg-open") == [f"{step.position}:{flat}"]
            opened_cells += 1
    assert opened_cells == sum(step.size for step in (*derivation.givens, *derivation.steps)) > 50
    assert not watched.complaints


def _cells(page: Any, selector: str) -> list[str]:
    found: list[str] = page.eval_on_selector_all(selector, "all => all.map(each => each.dataset.cell)")
    return found


def _named(derivation: Derivation, position_and_flat: str) -> tuple[str, tuple[int, ...]]:
    position, flat = map(int, position_and_flat.split(":"))
    step = derivation.fine[position]
    return step.name, _index(step, flat)


def _index(step: Step, flat: int) -> tuple[int, ...]:
    places = []
    for size in reversed(step.shape):
        flat, place = divmod(flat, size)
        places.append(place)
    return tuple(reversed(places))


@pytest.mark.parametrize(
    "make", [attention, heads, shapes, every_form, overwritten, *TRACED], ids=lambda make: make.__name__
)
def test_the_page_writes_every_equation_as_the_terminal_does(browser: Any, tmp_path: Path, make: Any) -> None:
    torch.manual_seed(0)
    derivation = make()
    watched = shown(browser, tmp_path, derivation)
    for step in derivation.fine:
        cells = [_index(step, flat) for flat in range(min(step.size, 40))]
        whys = [derivation.why(step.name, *index) for index in cells]
        for digits in (4, 6, 2) if make is every_form else (4,):
            got = watched.page.evaluate(WHY, [digits, step.name, [list(index) for index in cells]])
            assert [each["text"] for each in got] == [why.show(digits) for why in whys]
            assert [[(name, tuple(index)) for name, index in each["parents"]] for each in got] == [
                [(parent.step, parent.index) for parent in why.parents] for why in whys
            ]
    assert not watched.complaints


WHY = """([digits, name, cells]) => {
    window.derivation.digits = digits;
    return cells.map(index => {
        const {text, parents} = window.derivation.why(name, ...index);
        return {text, parents};
    });
}"""


def test_a_page_asks_for_nothing_and_complains_of_nothing(browser: Any, tmp_path: Path) -> None:
    watched = shown(browser, tmp_path, heads())
    assert [url for url in watched.requests if not url.startswith(("file:", "data:"))] == []
    assert watched.complaints == []
    written = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.findall(r"""(?:src|href)=["'](?!data:)|@import|url\((?!["']?data:)""", written) == []


def test_the_keyboard_alone_reaches_everything(browser: Any, tmp_path: Path) -> None:
    derivation = attention(3, 2)
    page = shown(browser, tmp_path, derivation).page
    a, m = derivation["A"], derivation["M"]
    page.focus(cell(a, 0))

    def focused() -> str:
        found: str = page.evaluate("document.activeElement.dataset.cell ?? document.activeElement.className")
        return found

    for key, place in [
        ("ArrowRight", 1), ("ArrowDown", 4), ("Home", 3), ("End", 5), ("ArrowRight", 5), ("Control+Home", 0),
        ("Control+End", 8), ("ArrowUp", 5), ("ArrowLeft", 4), ("PageDown", 7), ("PageUp", 1), ("ArrowDown", 4),
    ]:  # fmt: skip
        page.keyboard.press(key)
        assert focused() == f"{a.position}:{place}", key
    page.keyboard.press("Enter")
    assert page.get_attribute(".rg-equation", "aria-label") == derivation.why("A", 1, 1).text
    assert focused() == f"{a.position}:4"
    page.keyboard.press("Enter")  # once more: to what it was made from
    assert focused() == f"{m.position}:4"
    page.keyboard.press("ArrowRight")
    assert focused() == f"{m.position}:3"
    page.keyboard.press("Enter")
    assert page.locator("td.rg-open").get_attribute("data-cell") == f"{m.position}:3"
    assert page.locator(".rg-trail button").count() == 2
    assert page.evaluate("document.activeElement.tagName") == "TD"
    page.keyboard.press("Backspace")
    assert page.locator("td.rg-open").get_attribute("data-cell") == f"{a.position}:4"
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert focused() == f"{a.position}:4"


def test_a_grid_is_one_tab_stop_and_tab_goes_to_the_next(browser: Any, tmp_path: Path) -> None:
    derivation = attention(3, 2)
    page = shown(browser, tmp_path, derivation).page
    page.focus(cell(derivation["X"], 0))
    reached = []
    for _ in range(4):
        page.keyboard.press("Tab")
        reached.append(int(page.evaluate("document.activeElement.dataset.cell").split(":")[0]))
    assert reached == [derivation[name].position for name in ("W_Q", "W_K", "W_V", "Q")]
    stops = page.eval_on_selector_all("table", "all => all.map(t => t.querySelectorAll('[tabindex=\"0\"]').length)")
    assert set(stops) == {1}


def test_a_trail_leads_down_to_what_was_given_and_back(browser: Any, tmp_path: Path) -> None:
    derivation = attention(3, 2)
    page = shown(browser, tmp_path, derivation).page
    page.click(cell(derivation["O"], 5))
    for name in ("A", "M", "E", "Q", "X"):
        page.click(f'.rg-equation [data-cell^="{derivation[name].position}:"] >> nth=0')
    names = [plain(each).split("[")[0].strip() for each in page.locator(".rg-trail button").all_inner_texts()]
    assert names == ["O", "A", "M", "E", "Q", "X"]
    assert "is given" in page.get_attribute(".rg-equation", "aria-label")
    page.click(".rg-trail button >> nth=2")
    assert page.locator(".rg-trail button").count() == 3
    assert page.locator("td.rg-open").get_attribute("data-cell").startswith(f"{derivation['M'].position}:")
    page.mouse.move(0, 0)
    assert page.locator(".rg-pointed").count() == 0
    page.click(cell(derivation["V"], 0))  # no parent of it: a new trail
    assert page.locator(".rg-trail button").count() == 0


SCHEMES = [
    ("light", None, "light"), ("dark", None, "dark"), ("light", "dark", "dark"), ("dark", "light", "light"),
]  # fmt: skip


@pytest.mark.parametrize(("system", "chosen", "seen"), SCHEMES)
def test_numbers_are_readable_in_both_schemes(
    browser: Any, tmp_path: Path, system: str, chosen: str | None, seen: str
) -> None:
    page = shown(browser, tmp_path, attention(6, 4), color_scheme=system).page
    while chosen is not None and page.get_attribute(".rg-theme", "data-now") != chosen:
        page.click(".rg-theme")
    page.wait_for_function("seen => window.derivation.scheme === seen", arg=seen)
    page.click("td >> nth=40")
    dark_paper = page.evaluate(CONTRAST + "lum(getComputedStyle(document.querySelector('.rg')).backgroundColor) < 0.1")
    assert dark_paper == (seen == "dark")
    worst = page.evaluate(
        CONTRAST + "worst('td:not(.rg-blocked), .rg-chip, .rg-equation .rg-n, .rg-note, .rg-hint, th')"
    )
    assert worst >= 4.5


CONTRAST = """
const parse = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
const lum = text => {
  const [r, g, b] = parse(text).slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = each => {
  for (; each; each = each.parentElement) {
    const colour = getComputedStyle(each).backgroundColor;
    if (parse(colour).length === 3) return colour;
  }
  return 'rgb(255 255 255)';
};
const worst = selector => Math.min(...[...document.querySelectorAll(selector)].map(each => {
  const [a, b] = [lum(getComputedStyle(each).color), lum(behind(each))].sort((a, b) => b - a);
  return (a + 0.05) / (b + 0.05);
}));
"""


def test_the_system_changing_its_mind_changes_the_colours(browser: Any, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, attention(), color_scheme="light").page
    before = page.get_attribute("td >> nth=3", "style")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => window.derivation.scheme === 'dark'")
    assert page.get_attribute("td >> nth=3", "style") != before


def test_blocked_cells_are_hatched_and_told_from_zeros_and_small_numbers(browser: Any, tmp_path: Path) -> None:
    derivation = attention(8, 12)
    page = shown(browser, tmp_path, derivation).page
    seen(page, derivation["A"])
    weights = derivation["A"].value
    for row in range(8):
        for column in range(8):
            found = page.locator(cell(derivation["A"], row * 8 + column))
            hatched = "rg-blocked" in (found.get_attribute("class") or "")
            assert hatched == (column > row)
            assert ("gradient" in found.evaluate("each => getComputedStyle(each).backgroundImage")) == hatched
            if not hatched and 0 < weights[row, column] < 1e-4:
                assert found.inner_text() == "<0.0001"
    assert page.locator(cell(derivation["M"], 7)).inner_text() == "−∞"
    assert page.locator(cell(derivation["A"], 7)).get_attribute("aria-label") == "0, blocked"


def test_weights_are_on_cividis_from_0_to_1(browser: Any, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    derivation = heads(1, 1, 6)
    page = shown(browser, tmp_path, derivation).page
    for flat, weight in enumerate(derivation["A"].value.reshape(-1).tolist()):
        colour = page.eval_on_selector(cell(derivation["A"], flat), "each => getComputedStyle(each).backgroundColor")
        expected = [255 * each for each in matplotlib.colormaps["cividis"](weight)[:3]]
        got = [int(each) for each in re.findall(r"\d+", colour)]
        assert max(abs(a - b) for a, b in zip(expected, got, strict=True)) <= 8, weight


def test_tokens_stand_on_both_axes_and_the_shape_beside_them(browser: Any, tmp_path: Path) -> None:
    derivation = attention(3, 2)
    page = shown(browser, tmp_path, derivation).page
    table = seen(page, derivation["A"])
    assert table.locator("th[scope=row]").all_inner_texts() == ["how", "are", "you"]
    assert table.locator("th[scope=col]").all_inner_texts()[1:] == ["how", "are", "you"]
    assert "3 × 3" in table.locator(".rg-note").inner_text()
    assert table.locator("table").get_attribute("aria-rowcount") == "4"


def test_a_big_tensor_is_a_window_that_follows_the_arrows(browser: Any, tmp_path: Path) -> None:
    derivation = attention(40, 50)
    page = shown(browser, tmp_path, derivation).page
    q = derivation["Q"]
    section = seen(page, q)
    assert section.locator("td").count() < 500
    page.focus(cell(q, 0))
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.dataset.cell") == f"{q.position}:49"
    page.keyboard.press("Control+End")
    assert page.evaluate("document.activeElement.dataset.cell") == f"{q.position}:{40 * 50 - 1}"
    page.keyboard.press("Enter")
    assert page.get_attribute(".rg-equation", "aria-label") == derivation.why("Q", 39, 49).text
    assert page.locator(f'td.rg-parent[data-cell="{derivation["X"].position}:{39 * 50}"]').count() == 1
    page.click("[data-more]")
    assert page.locator(".rg-equation .rg-n").count() == 2 * 50


def test_a_slice_is_chosen_and_parents_in_another_slice_are_brought_into_view(browser: Any, tmp_path: Path) -> None:
    derivation = heads(2, 3, 4)
    page = shown(browser, tmp_path, derivation).page
    a, e = derivation["A"], derivation["E"]
    section = seen(page, a)
    section.locator("select >> nth=0").select_option("1")
    section.locator("select >> nth=1").select_option("2")
    flat = (1 * 3 + 2) * 16 + 5
    page.click(cell(a, flat))
    assert page.get_attribute(".rg-equation", "aria-label") == derivation.why("A", 1, 2, 1, 1).text
    assert page.locator(f'td.rg-parent[data-cell^="{e.position}:"]').count() == 4


def test_the_address_opens_a_cell_and_keeps_the_one_that_is_open(browser: Any, tmp_path: Path) -> None:
    derivation = attention()
    page = shown(browser, tmp_path, derivation, at="A%5B1%2C%200%5D").page
    assert page.get_attribute(".rg-equation", "aria-label") == derivation.why("A", 1, 0).text
    page.click(cell(derivation["E"], 4))
    assert page.evaluate("decodeURIComponent(location.hash)") == "#E[1, 1]"


def test_digits_are_chosen_on_the_page(browser: Any, tmp_path: Path) -> None:
    derivation = attention()
    page = shown(browser, tmp_path, derivation, at="A%5B1%2C%200%5D").page
    page.select_option(".rg-tools select", "6")
    assert page.get_attribute(".rg-equation", "aria-label") == derivation.why("A", 1, 0).show(6)
    assert plain(page.inner_text(cell(derivation["A"], 3))) == derivation.why("A", 1, 0).show(6).split(" ")[0]


def test_every_primitive_is_shown_on_request(browser: Any, tmp_path: Path) -> None:
    derivation = attention()
    page = shown(browser, tmp_path, derivation).page
    page.check(".rg-tools input[type=checkbox]")
    assert page.locator("section.rg-step").count() == len(derivation.fine)
    seen(page, derivation["E"])
    page.click(cell(derivation["E"], 0))
    assert page.get_attribute(".rg-equation", "aria-label") == derivation.why("E", 0, 0, fine=True).text


@pytest.mark.parametrize("width", [360, 390, 768, 1100, 1600])
def test_a_page_of_any_width_never_scrolls_sideways(browser: Any, tmp_path: Path, width: int) -> None:
    view = {"width": width, "height": 800}
    page = shown(browser, tmp_path, attention(12, 16), at="E%5B1%2C%200%5D", viewport=view).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_beside_something_else_it_fits_the_room_it_has(browser: Any, tmp_path: Path) -> None:
    derivation, view = attention(4, 3), {"width": 1600, "height": 900}
    watched = shown(browser, tmp_path, derivation, viewport=view, color_scheme="light")
    page = watched.page
    page.evaluate(BESIDE, derivation.to_json())
    page.wait_for_selector(".rg-equation")
    here, panel, steps = (
        page.eval_on_selector(each, "each => each.getBoundingClientRect()")
        for each in (".rg", ".rg-panel", ".rg-steps")
    )
    assert here["width"] == 420
    for each in (panel, steps):
        assert each["left"] >= here["left"]
        assert each["right"] <= here["right"]
    assert page.locator("main, h1").count() == 0
    assert page.evaluate("[document.activeElement.tagName, scrollY]") == ["BODY", 0]  # what is around it goes on
    page.evaluate("window.derivation.show('O', 3, 2)")
    assert page.evaluate("document.activeElement.dataset.cell") == f"{derivation['O'].position}:11"
    page.evaluate("window.derivation.destroy()")
    page.emulate_media(color_scheme="dark")
    assert page.locator(".rg").count() == 0
    assert page.evaluate("window.derivation.scheme") == "light"
    assert not watched.complaints


BESIDE = """
record => {
    document.body.innerHTML = '<div style="display: flex"><p style="flex: 1">words</p><div id="here"></div></div>';
    const here = document.getElementById('here');
    here.style.width = '420px';
    window.derivation = mountDerivation(here, record, {open: 'A[2, 1]'});
}
"""


def test_tokens_and_names_are_text_and_never_markup(browser: Any, tmp_path: Path) -> None:
    bad = "</script><img src=x onerror=window.hurt=1>"
    derivation = attention(3, 2).with_axes({"A": ((bad, "'", "\n"), ("", " x", "<b>"))})
    watched = shown(browser, tmp_path, derivation)
    watched.page.click(cell(derivation["A"], 0))
    assert watched.page.evaluate("window.hurt") is None
    assert watched.page.locator("img").count() == 0
    names = seen(watched.page, derivation["A"]).locator("th").all_inner_texts()
    assert names[1:] == ["∅", "␣x", "<b>", bad, "'", "⏎"]
    assert not watched.complaints


def test_names_of_steps_are_text_and_never_markup(browser: Any, tmp_path: Path) -> None:
    bad, to = "x<img src=x onerror=window.hurt=1>", Builder()
    given = to.add(bad, torch.tensor([0.5, 1.0]), axes=((bad, bad),))
    to.cellwise(f"{bad}.y", torch.tensor([0.5, 1.0]), operand(0), [given], formula=f"{bad} {bad}_{{{bad}}}", module=bad)
    to.add("last", torch.ones(2), "opaque", operation=bad, inputs=(bad,), sources=(0,))
    watched = shown(browser, tmp_path, to.derivation())
    for position in (2, 1, 0):
        watched.page.click(f'td[data-cell="{position}:1"]')
    watched.page.wait_for_timeout(100)
    assert watched.page.evaluate("window.hurt") is None
    assert watched.page.locator("img").count() == 0


SERVED = """
([record, values]) => {
    window.asked = [];
    const cells = async ({step, cells}) => {
        window.asked.push([step, cells.length]);
        return {values: cells.map(flat => values[step][flat])};
    };
    document.body.replaceChildren(document.createElement('div'));
    window.derivation = mountDerivation(document.body.firstChild, record, {cells});
}
"""


def test_numbers_that_are_not_in_the_page_are_asked_for_one_by_one(browser: Any, tmp_path: Path) -> None:
    derivation = attention(3, 2)
    watched = shown(browser, tmp_path, derivation)
    page = watched.page
    values = {str(step.position): _words(step) for step in derivation.fine}
    page.evaluate(SERVED, [derivation.to_json(largest=0), values])
    page.wait_for_function("() => ![...document.querySelectorAll('td')].some(each => each.textContent === '·')")
    page.click(cell(derivation["E"], 4))
    page.wait_for_function("() => document.querySelector('.rg-equation').ariaLabel.includes('√')")
    assert page.get_attribute(".rg-equation", "aria-label") == derivation.why("E", 1, 1).text
    assert page.evaluate("window.asked.length") > 0
    assert not watched.complaints


WIDE = [2**53 + 1, -(2**62) - 3, 7]


@pytest.mark.parametrize("how", ["in the page", "as plain JSON", "asked for"])
def test_whole_numbers_beyond_2_to_the_53_keep_their_digits(browser: Any, tmp_path: Path, how: str) -> None:
    to = Builder()
    given = to.add("n", torch.tensor(WIDE))
    filled = Move(whole(given.position, (2,), compressed(torch.tensor([0, -1]).numpy())).pieces, 2**53 + 1)
    to.made("filled", torch.tensor([WIDE[0], 2**53 + 1]), filled, [given])
    derivation = to.derivation()
    watched = shown(browser, tmp_path, derivation)
    page, values = watched.page, {"0": answered(derivation, 0, [0, 1, 2])["values"]}
    if how == "as plain JSON":
        page.evaluate(SERVED, [derivation.to_json(packed=False), {}])
    elif how == "asked for":
        page.evaluate(SERVED, [derivation.to_json(largest=0), values])
    page.wait_for_function("() => (document.querySelector('td')?.textContent ?? '').length > 9")
    cells = [page.inner_text(cell(derivation["n"], flat)) for flat in range(3)]
    assert cells == ["9007199254740993", "−4611686018427387907", "7"]
    if how != "asked for":
        assert page.inner_text(cell(derivation["filled"], 1)) == "9007199254740993"
    page.click(cell(derivation["n"], 1))
    assert page.get_attribute(".rg-equation", "aria-label") == "-4611686018427387907 is given"
    assert not watched.complaints


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_heading_is_seen_whole(browser: Any, tmp_path: Path, width: int) -> None:
    to, path = Builder(), "decoder.layers.0.attention.of_the_source.projection.of_keys.and_values.in_one." * 2 + "y"
    given = to.add("x", torch.ones(2))
    to.cellwise("s", torch.ones(2), operand(0), [given], formula=" + ".join(f"W_{k} x_{k}" for k in range(40)))
    to.cellwise(path, torch.ones(2), operand(0), [given], formula="tanh(in_one.x)")
    watched = shown(browser, tmp_path, to.derivation(), viewport={"width": width, "height": 900})
    page = watched.page
    for flat in (1, 2):
        page.click(f'td[data-cell="{flat}:0"]')
    spills = page.eval_on_selector_all(
        ".rg-step h2, .rg-cell-name, .rg-family-name, .rg-trail",
        "all => all.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.textContent)",
    )
    assert spills == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not watched.complaints


FAILING = """
record => {
    const cells = async ({step, cells}) => {
        if (!window.mended) throw new Error('the server is gone');
        return {values: cells.map(flat => flat)};
    };
    document.body.replaceChildren(document.createElement('div'));
    window.derivation = mountDerivation(document.body.firstChild, record, {cells});
}
"""


def test_numbers_that_cannot_be_fetched_are_said_to_be_and_asked_for_again(browser: Any, tmp_path: Path) -> None:
    derivation = attention(3, 2)
    watched = shown(browser, tmp_path, derivation)
    watched.page.evaluate(FAILING, derivation.to_json(largest=0))
    notice = watched.page.locator(".rg-notice")
    notice.wait_for()
    assert "The numbers could not be fetched: the server is gone." in notice.inner_text()
    watched.page.evaluate("window.mended = true")
    notice.get_by_role("button", name="Try again").click()
    watched.page.wait_for_function("() => ![...document.querySelectorAll('td')].some(each => each.textContent === '·')")
    assert watched.page.locator(".rg-notice").count() == 0
    assert watched.page.inner_text(cell(derivation["X"], 3)) == "3"
    assert not watched.complaints


def _words(step: Step) -> list[Any]:
    flat = step.value.reshape(-1).tolist()
    return [str(each) if isinstance(each, float) and not math.isfinite(each) else each for each in flat]


def test_a_notebook_shows_the_page_in_a_frame(browser: Any, tmp_path: Path) -> None:
    derivation = attention()
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{derivation._repr_html_()}", encoding="utf-8")
    watched = opened(browser, path)
    frame = watched.page.frame_locator("iframe")
    seen(frame, derivation["A"])
    frame.locator(cell(derivation["A"], 3)).click()
    assert frame.locator(".rg-equation").get_attribute("aria-label") == derivation.why("A", 1, 0).text
    assert json.dumps(watched.complaints) == "[]"
