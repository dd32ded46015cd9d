"""The page in a real browser: typed into, pointed at, opened down to a number, by keyboard alone, its server gone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.builtin import detector
from regard.pipeline.model import Pipeline
from regard.serving.app import make
from regard.serving.page import translating
from regard.serving.settings import ServerSettings
from regard.serving.translating import Translator
from tests.browser import Watched, opened
from tests.serving.live import Live, live

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def server(model: Pipeline) -> Iterator[Live]:
    with live(make(Translator(model, ServerSettings(), detector()), lambda: model)) as running:
        yield running


@pytest.fixture
def seen(browser: Any, server: Live) -> Iterator[Watched]:
    watched = opened(browser, server.url, offline=False)
    yield watched
    assert watched.complaints == []
    assert all(each.startswith((server.url, "data:")) for each in watched.requests)
    watched.page.context.close()


def until(page: Any, true: str) -> None:
    """Wait for a script to be true (the page's policy forbids Playwright's own way of asking)."""
    for _ in range(200):
        if page.evaluate(f"Boolean({true})"):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never came true: {true}")


def typed(page: Any, text: str = "one two three.") -> None:
    page.fill("#text", text)
    until(page, "document.querySelector('#result').textContent && !document.querySelector('#result.stale')")
    page.wait_for_selector("#words-target button")


def test_what_is_typed_is_translated_and_the_address_says_so(seen: Watched, model: Pipeline, server: Live) -> None:
    page = seen.page
    typed(page)
    truth = model.translate("one two three.", to="es", nbest=3, beam=5)[0]
    assert page.inner_text("#result") == truth.text
    assert page.locator("#others li").all_inner_texts() == [each.text for each in truth.others]
    page.select_option("#target", "de")
    until(page, "document.querySelector('#result').textContent.includes('eins')")
    assert page.evaluate("location.hash") == "#q=one+two+three.&from=en&to=de"
    again = page.context.new_page()
    again.goto(page.url)
    until(again, "document.querySelector('#result').textContent.includes('eins')")
    assert again.input_value("#text") == "one two three."
    page.click("#clear")
    assert page.inner_text("#result") == ""
    assert page.is_hidden("#looked")


def test_only_the_last_of_many_keys_is_translated(seen: Watched) -> None:
    page = seen.page
    page.wait_for_selector("#target option", state="attached")
    page.locator("#text").press_sequentially("one two three four.", delay=5)
    page.wait_for_selector("#words-target button")
    asked = [each for each in seen.requests if each.endswith("/translate")]
    assert 1 <= len(asked) <= 3


def test_a_word_lights_up_what_it_looked_at(seen: Watched, model: Pipeline) -> None:
    page = seen.page
    typed(page)
    [result] = model.translate("one two three.", to="es", attention=True)
    assert result.attention is not None
    weights, rows, columns = result.attention.of_words()
    assert page.locator("#words-target .word").count() == len(rows)
    page.hover("#words-target .word:nth-child(2)")
    shown = page.locator("#words-source .word").evaluate_all(
        "all => all.map(w => Number(w.style.getPropertyValue('--share')))"
    )
    assert shown == pytest.approx([float(each) for each in weights[1]], abs=2e-3)
    best = {"<2es>": "into Spanish", "</s>": "end"}.get(found := columns[int(weights[1].argmax())].strip(), found)
    assert f"{rows[1].strip()}: looked at {best}" in page.inner_text("#spoken", timeout=2000)
    page.select_option("#layer", "2")
    page.select_option("#head", "3")
    page.hover("#words-target .word:nth-child(2)")
    one = result.attention.of_words(2, 3)[0][1]
    shown = page.locator("#words-source .word").evaluate_all(
        "all => all.map(w => Number(w.style.getPropertyValue('--share')))"
    )
    assert shown == pytest.approx([float(each) for each in one], abs=2e-3)
    assert page.locator("#lines path").count() > 0


def test_a_word_opens_down_to_its_numbers(seen: Watched) -> None:
    page = seen.page
    typed(page)
    page.click("#words-target .word:nth-child(1)")
    page.wait_for_selector("#candidates tr.chosen")
    said = page.inner_text("#candidates caption")
    share = re.search(r"with (\d+)%", said)
    page.wait_for_selector(".rg-panel")
    until(page, "document.querySelector('.rg-panel math')")
    panel = page.inner_text(".rg-panel")
    assert panel.startswith(("p", "𝑝"))
    live_text = page.locator("#derivation [aria-live]").first.text_content()
    number = re.search(r"[:=≈] *(0\.\d+|1)", live_text or "") or re.search(r"0\.\d+", panel)
    assert share is not None
    assert number is not None
    assert abs(float(number.group().lstrip(":=≈ ")) - int(share.group(1)) / 100) < 0.01
    page.keyboard.press("Escape")
    page.click("#why-close") if page.is_visible("#why-close") else None
    assert page.is_hidden("#why")


def test_a_link_brings_back_the_word_and_the_number_that_were_open(seen: Watched) -> None:
    page = seen.page
    typed(page)
    page.click("#words-target .word:nth-child(2)")
    until(page, "document.querySelector('.rg-panel math')")
    assert "&word=2&cell=p%5B0%2C+" in page.evaluate("location.hash")
    page.click("#derivation .rg-step:not(.rg-given) [role=gridcell]")
    until(page, "!decodeURIComponent(location.hash).includes('cell=p[')")
    link = page.url
    panel = page.locator(".rg-panel math").first.text_content()
    again = page.context.new_page()
    again.goto(link)
    until(again, "document.querySelector('.rg-panel math')")
    assert again.inner_text("#why-title") == page.inner_text("#why-title")
    assert again.locator(".rg-panel math").first.text_content() == panel
    assert again.url == link
    again.close()
    page.click("#why-close")
    assert "word=" not in page.url
    page.fill("#text", "four.")
    until(page, "document.querySelector('#result').textContent.includes('cuatro')")
    assert page.is_hidden("#why")


def test_a_derivation_opens_beside_the_words_where_there_is_room(browser: Any, server: Live) -> None:
    for width, beside in ((1440, True), (800, False)):
        watched = opened(browser, server.url, offline=False, viewport={"width": width, "height": 900})
        page = watched.page
        typed(page)
        page.click("#words-target .word:nth-child(2)")
        page.wait_for_selector("#derivation .rg-steps")
        words, why = (page.locator(each).bounding_box() for each in ("#words-target", "#why"))
        assert (why["x"] > words["x"] + words["width"]) == beside
        assert (why["y"] < words["y"]) == beside
        assert page.locator("#words-target [aria-expanded=true]").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.context.close()


def test_what_is_no_word_is_named_in_words(seen: Watched) -> None:
    page = seen.page
    typed(page)
    assert page.inner_text("#words-source .word:first-child") == "into Spanish"
    assert page.inner_text("#words-target .word:last-child") == "end"
    page.click("#words-target .word:last-child")
    assert page.inner_text("#why-title") == "How its end came about"


def test_the_equation_stays_in_sight_however_far_one_scrolls(seen: Watched) -> None:
    page = seen.page
    typed(page)
    page.click("#words-target .word:nth-child(1)")
    page.wait_for_selector("#derivation .rg-steps > .rg-flow .rg-step")
    page.evaluate("scrollTo(0, 6000)")
    page.wait_for_timeout(300)
    until(page, "scrollY > 1000")
    assert 0 <= page.evaluate("document.querySelector('.rg-panel').getBoundingClientRect().top") < 900


def test_a_word_that_is_open_can_be_read_however_much_of_it_was_looked_at(seen: Watched) -> None:
    page = seen.page
    typed(page)
    page.click("#words-target .word:nth-child(1)")
    page.wait_for_selector("#derivation .rg-steps")
    word = page.locator("#words-target [aria-expanded=true]")
    page.hover("#words-source .word:nth-child(2)")
    word.evaluate("word => { word.style.setProperty('--share', 0.9); word.classList.add('strong'); }")
    assert word.evaluate("word => getComputedStyle(word).color") == "rgb(255, 255, 255)"
    assert ", 0.9)" in word.evaluate("word => getComputedStyle(word).backgroundImage")  # not a light ground under white


def test_languages_are_called_the_same_everywhere(seen: Watched) -> None:
    page = seen.page
    told = [{"code": "en", "name": "English", "targets": ["es"]}, {"code": "es", "name": "Castilian", "targets": []}]
    page.route("**/languages", lambda route: route.fulfill(json=told))
    page.reload()
    typed(page)
    assert page.locator("#target option").all_inner_texts() == ["Castilian"]
    assert page.inner_text("#words-source .word:first-child") == "into Castilian"


def test_why_there_is_nothing_to_look_at_is_said_in_its_place(seen: Watched) -> None:
    page = seen.page
    said = "Spanish to German goes by way of English: one step alone can be explained"
    page.route("**/explain", lambda route: route.fulfill(status=400, json={"error": said}))
    page.wait_for_selector("#target option", state="attached")
    page.fill("#text", "one two.")
    until(page, "!document.querySelector('#unexplained').hidden")
    assert page.inner_text("#unexplained") == said
    assert page.is_hidden("#looked")
    seen.complaints.clear()  # the browser tells the 400 as well
    page.unroute("**/explain")
    typed(page, "one.")
    assert page.is_hidden("#unexplained")


def test_of_several_sentences_the_first_is_told_to_be_explained(seen: Watched) -> None:
    page = seen.page
    page.wait_for_selector("#target option", state="attached")
    page.fill("#text", "One two. Three four.")
    page.wait_for_selector("#words-target button")
    assert page.inner_text("#looked-of") == "Of the first of 2 sentences: “One two.”"


def test_a_key_that_is_needed_can_be_given(browser: Any, model: Pipeline) -> None:
    with live(make(Translator(model, ServerSettings(api_keys=("good",)), detector()), lambda: model)) as running:
        page = opened(browser, running.url, offline=False).page
        page.wait_for_selector("#target option", state="attached")
        page.fill("#text", "one two.")
        page.wait_for_selector("#trouble input")
        page.fill("#trouble input", "good")
        page.keyboard.press("Enter")
        page.wait_for_selector("#words-target button")
        assert page.is_hidden("#trouble")
        page.context.close()


def test_a_problem_is_worked_as_it_is_written(seen: Watched) -> None:
    page = seen.page
    page.click("#tab-work")
    page.wait_for_selector("#work .rg-steps > .rg-flow .rg-step")
    assert page.locator("#marks li.wrong").count() >= 1
    text = "title: Mine\ngiven: {x: 2}\nsteps: {y: x * 21}\n"
    page.fill("#problem-text", text)
    until(page, "document.querySelector('#work h1')?.textContent === 'Mine'")
    assert page.is_hidden("#marks")
    assert "42" in page.inner_text("#work")
    again = page.context.new_page()
    again.goto(page.url)
    until(again, "document.querySelector('#work h1')?.textContent === 'Mine'")
    assert again.input_value("#problem-text") == text
    again.close()


def test_a_mistake_in_a_problem_is_said_in_its_place(browser: Any, server: Live) -> None:
    watched = opened(browser, server.url, offline=False)
    page = watched.page
    page.click("#tab-work")
    page.wait_for_selector("#work .rg-steps > .rg-flow .rg-step")
    page.fill("#problem-text", "title: Mine\ngiven: {x: 2}\nsteps: {y: x * z}\n")
    page.wait_for_selector("#problem-trouble:visible")
    assert "nothing is called 'z'" in page.inner_text("#problem-trouble")
    page.fill("#problem-text", "title: Mine\ngiven: {x: 2}\nsteps: {y: x * 2}\n")
    page.wait_for_selector("#problem-trouble", state="hidden")
    assert all("400" in each for each in watched.complaints)  # a browser logs every refused request by itself


def test_everything_can_be_done_by_keyboard(seen: Watched) -> None:
    page = seen.page
    page.wait_for_selector("#target option", state="attached")
    page.focus("#text")
    page.keyboard.type("one two.")
    page.wait_for_selector("#words-target button")
    for _ in range(12):
        if page.evaluate("document.activeElement.closest('#words-target') !== null"):
            break
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#words-target') !== null")
    first = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") != first
    page.keyboard.press("End")
    page.keyboard.press("Home")
    assert (
        first in page.evaluate("document.activeElement.textContent")
        or page.evaluate("document.activeElement.tabIndex") == 0
    )
    page.keyboard.press("Enter")
    page.wait_for_selector("#why:visible")
    page.wait_for_selector("#derivation .rg-steps")
    page.keyboard.press("Escape")
    page.wait_for_selector("#why", state="hidden")
    assert page.evaluate("document.activeElement.closest('#words-target') !== null")
    page.focus("#tab-translate")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-work"
    page.wait_for_selector("#panel-work:visible")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 900}, PHONE], ids=["wide", "phone"])
def test_it_fits_and_can_be_read_in_both_colours(
    browser: Any, server: Live, scheme: str, viewport: dict[str, int]
) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    watched = opened(browser, server.url, offline=False, color_scheme=scheme, viewport=viewport)
    page = watched.page
    typed(page)
    for tab in ("translate", "work"):
        page.click(f"#tab-{tab}")
        if tab == "work":
            page.wait_for_selector("#work .rg-steps > .rg-flow .rg-step")
        else:
            page.click("#words-target .word:nth-child(1)")
            page.wait_for_selector("#derivation .rg-steps > .rg-flow .rg-step")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious = [
            (each["id"], [node["target"] for node in each["nodes"]][:3])
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == []
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    assert watched.complaints == []
    watched.page.context.close()


def test_the_colours_can_be_chosen_and_are_remembered(seen: Watched) -> None:
    page = seen.page
    for expected in ("light", "dark"):
        page.click("#theme")
        assert page.evaluate("document.documentElement.dataset.theme") == expected
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_server_that_is_gone_is_said_and_nothing_is_lost(browser: Any, model: Pipeline) -> None:
    app = make(Translator(model, ServerSettings(), detector()), lambda: model)
    running = Live(app)
    watched = opened(browser, running.url, offline=False)
    page = watched.page
    typed(page)
    running.stop()
    page.fill("#text", "four five.")
    page.wait_for_selector("#trouble:visible")
    assert "The server does not answer. Your text is kept here." in page.inner_text("#trouble")
    assert page.input_value("#text") == "four five."
    back = Live(make(Translator(model, ServerSettings(), detector()), lambda: model), running.port)
    try:
        page.click("#trouble button")
        until(page, "document.querySelector('#result').textContent.includes('cuatro')")
        assert page.is_hidden("#trouble")
    finally:
        back.stop()
        page.context.close()


def test_scripts_from_right_to_left_and_indic_ones_stand_as_they_should(seen: Watched) -> None:
    page = seen.page
    page.fill("#text", "مرحبا بالعالم")
    assert page.evaluate("getComputedStyle(document.querySelector('#text')).direction") == "rtl"
    page.fill("#text", "আমি স্কুলে যাই")
    assert page.evaluate("getComputedStyle(document.querySelector('#text')).direction") == "ltr"


def test_the_interface_for_programs_has_a_page(seen: Watched, server: Live) -> None:
    page = seen.page
    page.goto(f"{server.url}/docs")
    assert "POST /translate" in page.inner_text("main")
    assert page.locator("article").count() >= 8


def test_the_page_is_small_and_asks_for_nothing_from_elsewhere() -> None:
    text = translating()
    assert len(text.encode()) < 300_000
    assert "/*style*/" not in text
    assert "/*script*/" not in text
    outside = set(re.findall(r"https?://[^\s'\"<>)]+", text)) - {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1998/Math/MathML",
    }
    assert outside == set()
