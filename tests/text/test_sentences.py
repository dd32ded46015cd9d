"""Sentences: where they end in several languages, and that nothing of a text is lost."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.sentences import joined, sentences

CUT = {
    "One. Two! Three? Four": ["One.", "Two!", "Three?", "Four"],
    "Dr. Wu and Mr. Ray met J. Doe at 3.14 p.m. on Monday. Then they left.": [
        "Dr. Wu and Mr. Ray met J. Doe at 3.14 p.m. on Monday.",
        "Then they left.",
    ],
    "It is I. You know me.": ["It is I.", "You know me."],
    '"Stop!" he said. "Why?" (She knew.) Well…': ['"Stop!" he said.', '"Why?"', "(She knew.)", "Well…"],
    "1. Buy milk. 2. Go home.": ["1. Buy milk.", "2. Go home."],
    "¿Vamos? ¡Sí! Claro.": ["¿Vamos?", "¡Sí!", "Claro."],
    "Das kostet z.B. 3 Euro. Gut.": ["Das kostet z.B. 3 Euro.", "Gut."],
    "আমি স্কুলে যাই। তুমি কোথায় যাও?": ["আমি স্কুলে যাই।", "তুমি কোথায় যাও?"],
    "मैं घर जाता हूँ। ठीक है।": ["मैं घर जाता हूँ।", "ठीक है।"],
    "我去学校。你呢？好": ["我去学校。", "你呢？", "好"],
    "He uses Node.js and regard.text. It works.": ["He uses Node.js and regard.text.", "It works."],
    "first line\nsecond line": ["first line", "second line"],
    "no end": ["no end"],
    "": [],
}


@pytest.mark.parametrize("text", CUT, ids=lambda text: text[:24] or "nothing")
def test_a_text_is_cut_where_its_sentences_end(text: str) -> None:
    assert [each.text for each in sentences(text)] == CUT[text]


def test_spaces_and_lines_stand_where_they_stood() -> None:
    text = "  Hello,  you.   How are you?\r\n\r\n\tFine. \n"
    cut = sentences(text)
    assert [each.text for each in cut] == ["", "Hello,  you.", "How are you?", "Fine."]
    assert joined(cut, ["", "A.", "B?", "C."]) == "  A.   B?\r\n\r\n\tC. \n"


@given(st.text(alphabet=st.sampled_from(" .!?\n\r\tAab1。।\u2028\x85\"')¿") | st.characters(), max_size=80))
def test_the_sentences_with_what_stands_behind_them_are_the_text(text: str) -> None:
    cut = sentences(text)
    assert joined(cut, [each.text for each in cut]) == text
    assert all(each.text == each.text.strip() for each in cut)
    assert all(each.text for each in cut[1:])
    assert all(not each.after or each.after.isspace() for each in cut)


def test_a_text_of_nothing_but_ends_is_cut_in_time_that_grows_with_its_length() -> None:
    def seconds(text: str) -> float:
        start = time.perf_counter()
        sentences(text)
        return time.perf_counter() - start

    for unit in (". ", "a.b", '" ', "A. ", " \n"):
        short, long = (min(seconds(unit * count) for _ in range(3)) for count in (5_000, 40_000))
        assert long < 60 * max(short, 1e-3), unit  # eight times as long; the square would be 64 times
