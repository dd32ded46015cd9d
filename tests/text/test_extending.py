"""A vocabulary with more in it: old numbers stay, new words are one token, nothing is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.settings import LOSES, TokenizerSettings
from regard.text.tokenizer import Tokenizer

SENTENCES = ["the cat sat on the mat, and a dog sat by the cat"] * 3
OTHER = ["der Hund und die Katze saßen auf der Matte; der Hund bellte"] * 5
KINDS = list(LOSES)
FEW = settings(deadline=None, derandomize=True, max_examples=60)


def trained(kind: str, texts: list[str] = SENTENCES, languages: tuple[str, ...] = ("es",)) -> Tokenizer:
    values = TokenizerSettings(kind=kind, vocabulary=330, min_count=1)
    return Tokenizer.train(texts, values, languages)


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return [token.piece.strip() for token in tokenizer.tokens(text)]


@pytest.mark.parametrize("kind", KINDS)
def test_old_numbers_stay_and_new_ones_follow(kind: str) -> None:
    before = trained(kind)
    for after in (before.extended(["hydrangea", "cat"], ["fr", "es"]), before.merged(trained(kind, OTHER, ("de",)))):
        assert after.pieces[: before.vocabulary] == before.pieces
        assert after.vocabulary > before.vocabulary
        assert after.special == before.special
        assert after.kind == before.kind
        assert after.loses == before.loses


@pytest.mark.parametrize("kind", ["byte_bpe", "bpe", "unigram", "words"])
def test_a_new_word_is_one_token_and_the_others_are_as_they_were(kind: str) -> None:
    before = trained(kind)
    after = before.extended(["hydrangea", "Σχήμα"])
    text = "the cat sat by a hydrangea on Σχήμα"
    assert pieces(after, text) == [*pieces(before, "the cat sat by a"), "hydrangea", *pieces(before, "on"), "Σχήμα"]
    assert after.decode(after.encode(text)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_new_languages_get_tags_and_known_ones_keep_theirs(kind: str) -> None:
    before = trained(kind)
    after = before.extended(languages=["es", "fr"])
    assert after.tags == {"es": before.tags["es"], "fr": before.vocabulary}
    assert after.encode("a cat", language="fr") == [before.vocabulary, *before.encode("a cat")]
    assert after.decode(after.encode("a cat", language="fr")) == before.decode(before.encode("a cat"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_word_that_reads_like_a_control_token_becomes_none(kind: str) -> None:
    after = trained(kind).extended(["<2es>", "</s>"], ["fr"])
    assert set(after.encode("<2es></s><2fr>", end=False)).isdisjoint({0, 2, 3, *after.tags.values()})


@FEW
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=4), st.text("ab <é", max_size=9)
)
def test_bytes_give_back_every_text_whatever_was_added(words: list[str], text: str) -> None:
    after = trained("byte_bpe").extended(words).merged(trained("byte_bpe", OTHER))
    for each in (*words, text, " ".join(words)):
        assert after.decode(after.encode(each)) == each


def test_merging_shortens_what_the_other_was_trained_on() -> None:
    before, other = trained("byte_bpe"), trained("byte_bpe", OTHER)
    after = before.merged(other)
    assert len(after.encode(OTHER[0])) < 0.6 * len(before.encode(OTHER[0]))
    assert after.encode(SENTENCES[0])[-1] == 3
    assert len(after.encode(SENTENCES[0])) <= len(before.encode(SENTENCES[0]))


def test_what_was_extended_is_saved_whole(tmp_path) -> None:  # type: ignore[no-untyped-def]
    after = trained("unigram").extended(["hydrangea"], ["fr"])
    after.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").encode("a hydrangea") == after.encode("a hydrangea")


def test_only_the_same_kind_can_be_merged() -> None:
    with pytest.raises(ValueError, match="expected a tokenizer of the kind words; got bpe"):
        trained("words").merged(trained("bpe"))
