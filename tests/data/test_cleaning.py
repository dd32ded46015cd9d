"""What cannot be used, what is left out, and why."""

from typing import Any

import numpy as np
import pytest

from regard.config import settings_from
from regard.data.checking import Checker
from regard.data.cleaning import Cleaner
from regard.data.readers import Example
from regard.data.scripts import share
from regard.data.settings import Cleaning
from regard.data.sources import Conllu, Images, Parallel, Series, Sort
from regard.support.errors import Misuse

PAIRS: dict[str, Sort] = {"source": "text", "target": "text"}
PARALLEL = Parallel(source="a", target="b")


@pytest.mark.parametrize(
    ("fields", "reason", "said", "file"),
    [
        (("", "x"), "an empty side", "the source is empty", 0),
        (("x", " \t\u00a0"), "an empty side", "the target is empty", 1),
        (("a\0b", "x"), "control characters", "the source has a control character, U+0000, at place 2", 0),
        (("a", "x\x1b[0m"), "control characters", "the target has a control character, U+001B, at place 2", 1),
        (("a\x85", "x"), "control characters", "the source has a control character, U+0085, at place 2", 0),
        (("a\rb", "x"), "control characters", "the source has a control character, U+000D, at place 2", 0),
        (("a", "x\ud800"), "control characters", "the target has half a surrogate pair, U+D800, at place 2", 1),
    ],
)
def test_what_cannot_be_used_is_told(fields: tuple[str, str], reason: str, said: str, file: int) -> None:
    bad = Checker(PARALLEL)(Example(7, fields))
    assert bad is not None
    assert (bad.line, bad.reason, bad.said, bad.file) == (7, reason, said, file)
    assert bad.text == "\t".join(fields)


@pytest.mark.parametrize(
    "text",
    ["a\tb", "two\nlines", "two\r\nlines", "zero\u200djoined", "\u2028", "\u00ad", "मैं", "🙂", "\ufffd", "\u3000x"],
)
def test_what_is_unusual_and_no_control_character_is_used(text: str) -> None:
    assert Checker(PARALLEL)(Example(1, (text + "x", "y"))) is None


@pytest.mark.parametrize(
    ("words", "tags", "said"),
    [
        (["a", "b"], ["X"], "2 words and 1 tags; expected a tag for each word"),
        (["a", " "], ["X", "Y"], "word 2 is empty"),
        (["a"], ["X\x00"], "tag 1 has a control character, U+0000, at place 2"),
        ([], [], "the source is empty"),
    ],
)
def test_words_and_tags_must_pair_up(words: list[str], tags: list[str], said: str) -> None:
    bad = Checker(Conllu(conllu="a"))(Example(1, (words, tags)))
    assert bad is not None
    assert bad.said == said


def test_series_without_steps_and_images_without_columns_cannot_be_used() -> None:
    bad = Checker(Series(series="a"))(Example(1, (np.zeros((0, 1), np.float32), "up")))
    assert bad is not None
    assert bad.said == "the source is empty"
    images = Checker(Images(images="a", captions="b"))
    assert images(Example(1, (np.zeros((4, 3, 1), np.uint8), "a cat"))) is None
    bad = images(Example(1, (np.zeros((4, 0, 1), np.uint8), "a cat")))
    assert bad is not None
    assert (bad.said, bad.text, bad.file) == ("the source is empty", "…\ta cat", 0)
    bad = images(Example(1, (np.zeros((4, 3, 1), np.uint8), " ")))
    assert bad is not None
    assert bad.file == 1


def reason(fields: Any, **settings: Any) -> str | None:
    return Cleaner(settings_from(settings, Cleaning), PAIRS).reason(fields)


@pytest.mark.parametrize(
    ("settings", "fields", "expected"),
    [
        ({"min_characters": 3}, ("abc", "abc"), None),
        ({"min_characters": 3}, ("abc", " ab "), "too short"),
        ({"max_characters": 3}, ("abcd", "a"), "too long"),
        ({"min_words": 2}, ("a b", "a"), "too short"),
        ({"max_words": 2}, ("a  b", "a b c"), "too long"),
        ({"max_ratio": 2}, ("aaaa", "aa"), None),
        ({"max_ratio": 2}, ("aa", "aaaaa"), "one side much longer than the other"),
        ({"copies": "drop"}, ("same ", "same"), "source equal to target"),
        ({"copies": "drop"}, ("same", "Same"), None),
        ({"scripts": {"source": "latin", "target": "bengali"}}, ("I go", "আমি যাই"), None),
        ({"scripts": {"target": "bengali"}}, ("I go", "ami jai"), "another script"),
        ({"scripts": {"source": "latin"}, "script_share": 0.9}, ("I go আমি", "x"), "another script"),
        ({"scripts": {"source": "latin"}}, ("123 - 45", "x"), None),
        ({}, ("a", "a" * 999), None),
    ],
)
def test_why_an_example_is_left_out(settings: dict[str, Any], fields: tuple[str, str], expected: str | None) -> None:
    assert reason(fields, **settings) == expected


def test_words_that_are_given_as_such_are_counted_as_such() -> None:
    sorts: dict[str, Sort] = {"source": "words", "tags": "tags"}
    cleaner = Cleaner(Cleaning(max_words=2, max_characters=5), sorts)
    assert cleaner.reason((["a b c", "d"], ["X", "Y"])) == "too long"
    assert cleaner.reason((["a", "b", "c"], ["X"] * 3)) == "too long"
    assert cleaner.reason((["abc", "de"], ["X", "Y"])) is None


def test_the_normal_form_changes_text_and_counts_what_it_changed() -> None:
    cleaner = Cleaner(Cleaning(normal_form="NFC"), PAIRS)
    assert cleaner.formed(("e\u0301t\u00e9", "plain")) == (("\u00e9t\u00e9", "plain"), 1)
    words: dict[str, Sort] = {"source": "words", "tags": "tags"}
    formed, changed = Cleaner(Cleaning(normal_form="NFKC"), words).formed((["\ufb01n", "a"], ["\ufb01"]))
    assert (formed, changed) == ((["fin", "a"], ["\ufb01"]), 1)
    assert Cleaner(Cleaning(), PAIRS).formed(("e\u0301", "x")) == (("e\u0301", "x"), 0)


def test_the_share_of_a_script_is_of_letters_alone() -> None:
    assert share("abc, 1 2 3!", "latin") == 1
    assert share("abcд", "latin") == 0.75
    assert share("日本語ひらがな", "han") == pytest.approx(3 / 7)
    assert share("日本語ひらがな", "japanese") == 1
    assert share("?!", "greek") == 1


def test_cleaning_that_cannot_be_is_refused() -> None:
    with pytest.raises(Misuse, match="unknown script 'latn'; did you mean 'latin'"):
        Cleaning(scripts={"source": "latn"})
    with pytest.raises(Misuse, match="min_words 5 is more than max_words 4"):
        Cleaning(min_words=5, max_words=4)
    with pytest.raises(Misuse, match=r"data\.clean\.scripts: target: the data have no text on that side"):
        Cleaner(Cleaning(scripts={"target": "latin"}), {"source": "text", "label": "label"})
