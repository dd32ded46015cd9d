"""Words and the tokens they are made of."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer
from regard.text.words import Word, tokens_of_words, words

FEW = settings(deadline=None, derandomize=True, max_examples=150)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Don't stop.", ["Don't", "stop", "."]),
        ("l'homme, well-known", ["l'homme", ",", "well-known"]),
        ("3.14 = 3,14?!", ["3.14", "=", "3,14", "?", "!"]),
        ("मैं घर।", ["मैं", "घर", "।"]),
        ("  \n", []),
        ("a_b 😀", ["a", "_", "b", "😀"]),
    ],
)
def test_a_text_is_cut_where_a_reader_would_cut_it(text: str, parts: list[str]) -> None:
    found = words(text)
    assert [word.text for word in found] == parts
    assert [text[word.start : word.end] for word in found] == parts


def test_without_punctuation_apart_only_white_space_cuts() -> None:
    assert words(" Don't  stop. ", punctuation=False) == [Word("Don't", 1, 6), Word("stop.", 8, 13)]


@FEW
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_every_character_but_white_space_is_in_exactly_one_word(text: str) -> None:
    found = words(text)
    assert all(text[word.start : word.end] == word.text for word in found)
    held = "".join(word.text for word in found)
    assert held == "".join(c for c in text if not _white(c))


def _white(character: str) -> bool:
    """White space as Unicode has it; Python counts the separators U+001C to U+001F in as well."""
    return character.isspace() and character not in "\x1c\x1d\x1e\x1f"


TOKENIZER = Tokenizer.train(["un believ able believers "] * 9, TokenizerSettings(vocabulary=275))


def test_each_word_knows_its_tokens() -> None:
    text = "unbelievable, 😀"
    tokens = TOKENIZER.tokens(text)
    parts = tokens_of_words(tokens, words(text))
    assert ["".join(text[tokens[t].start : tokens[t].end] for t in word) for word in parts[:2]] == ["unbelievable", ","]
    assert [tokens[t].piece for t in parts[2]][-3:] == ["\\x9f", "\\x98", "\\x80"]
    assert len(parts[0]) > 1


@FEW
@given(st.text("uneblivabrs ,.'é😀\n", max_size=30))
def test_every_word_has_a_token_and_every_token_with_characters_a_word(text: str) -> None:
    tokens, found = TOKENIZER.tokens(text), words(text)
    parts = tokens_of_words(tokens, found)
    assert all(parts)
    placed = {token for word in parts for token in word}
    assert placed == {n for n, each in enumerate(tokens) if text[each.start : each.end].strip()}


def test_a_token_over_two_words_belongs_to_both_and_one_without_characters_to_none() -> None:
    spans = [Word("a b", 0, 3), Word("", 2, 2), Word("b", 2, 3)]
    assert tokens_of_words(spans, [Word("a", 0, 1), Word("b", 2, 3)]) == [[0], [0, 2]]
