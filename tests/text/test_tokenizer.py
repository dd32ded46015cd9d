"""Tokenizers: what comes back, what never becomes a control token, what the file holds, what is refused."""

import pickle
import re
import subprocess
import sys
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

import regard.text.tokenizer
from regard.support.errors import Misuse
from regard.text.settings import LOSES, TokenizerSettings
from regard.text.specials import END, SPECIALS, UNKNOWN
from regard.text.tokenizer import Tokenizer

FEW = settings(deadline=None, derandomize=True, max_examples=150)
KINDS = list(LOSES)
CONTROL = ["<pad>", "<unk>", "<s>", "</s>", "<2es>", "<2pt-BR>"]
SENTENCES = [
    "A man in a blue shirt is standing on a ladder cleaning a window.",
    "Un hombre con camisa azul está de pie en una escalera, limpiando una ventana.",
    "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
    "Un homme en chemise bleue est debout sur l'échelle; il n'a pas 1234 fenêtres.",
    "मैं घर जा रहा हूँ।",
    # Control tokens in the training text itself, often enough to be learned as pieces if anything allowed it.
    *[" ".join(CONTROL), "".join(CONTROL), "a<pad>b </s>c <2es>"] * 20,
]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
seeded = st.lists(st.one_of(texts, st.sampled_from([*CONTROL, " ", "  ", "\n", "\t", "<", "▁", "Ġ"]))).map("".join)


@cache
def trained(kind: str, vocabulary: int = 420, **values: object) -> Tokenizer:
    return Tokenizer.train(
        SENTENCES, TokenizerSettings(kind=kind, vocabulary=vocabulary, **values), languages=["es", "pt-BR"]
    )


@FEW
@given(seeded)
@example("")
@example(" a")
@example("a ")
@example("\ufffd\x00")
def test_bytes_give_back_every_text(text: str) -> None:
    tokenizer = trained("byte_bpe")
    assert tokenizer.loses == ""
    assert tokenizer.decode(tokenizer.encode(text, language="es")) == text


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(text=seeded)
def test_text_never_becomes_a_control_token(kind: str, text: str) -> None:
    tokenizer = trained(kind)
    allowed = {UNKNOWN} if tokenizer.loses else set()
    control = {*tokenizer.special.values(), *tokenizer.tags.values()} - allowed
    assert not control & set(tokenizer.encode(text, end=False))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("control", CONTROL)
def test_a_control_token_typed_by_a_person_is_its_characters(kind: str, control: str) -> None:
    tokenizer = trained(kind)
    back = tokenizer.decode(tokenizer.encode(control)).replace(" ", "")
    assert back == control
    assert tokenizer.encode(control, end=False)[0] not in (tokenizer.special.get(control), tokenizer.tags.get(control))


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_of_special_tokens_and_tags_are_the_first(kind: str) -> None:
    tokenizer = trained(kind)
    assert tokenizer.pieces[:6] == (*SPECIALS, "<2es>", "<2pt-BR>")
    assert tokenizer.special == {"<pad>": 0, "<unk>": 1, "<s>": 2, "</s>": 3}
    assert (tokenizer.tags, tokenizer.languages) == ({"es": 4, "pt-BR": 5}, ("es", "pt-BR"))
    assert tokenizer.kind == kind
    assert len(tokenizer.pieces) == tokenizer.vocabulary <= 420


def test_the_tag_stands_in_front_and_the_end_behind_where_they_are_asked_for() -> None:
    tokenizer = trained("byte_bpe")
    plain = tokenizer.encode("A man", end=False)
    assert END not in plain
    assert tokenizer.encode("A man") == [*plain, END]
    assert tokenizer.encode_batch(["A man", ""], language="pt-BR") == [[5, *plain, END], [5, END]]


@pytest.mark.parametrize("at_once", [1, 5, 12, 1000])
def test_how_many_texts_are_encoded_at_once_changes_nothing(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = trained("byte_bpe")
    batch = ["A man", "", "a longer text than others", "", "", "x", "two cats"]
    alone = [tokenizer.encode(text) for text in batch]
    monkeypatch.setattr(regard.text.tokenizer, "AT_ONCE", at_once)
    assert tokenizer.encode_batch(batch) == alone
    with pytest.raises(ValueError, match="text 6 of 7: expected text; got int"):
        tokenizer.encode_batch([*batch[:5], 5, "x"])  # type: ignore[list-item]


@FEW
@given(st.lists(seeded, max_size=5))
def test_a_batch_is_its_texts_one_by_one(batch: list[str]) -> None:
    tokenizer = trained("bpe")
    encoded = tokenizer.encode_batch(batch)
    assert encoded == [tokenizer.encode(text) for text in batch]
    assert tokenizer.decode_batch(encoded) == [tokenizer.decode(each) for each in encoded]


@pytest.mark.parametrize(
    ("kind", "text", "back"),
    [
        ("bpe", "A man Ω  a▁ladder ", "A man <unk>  a ladder "),
        ("unigram", "A man ΩΩ  a▁ladder ", "A man <unk>  a ladder "),
        ("words", "A  man, Ω.\n", "A man , <unk> ."),
        ("characters", "A  man Ω.\n", "A  man <unk>.<unk>"),
    ],
)
def test_each_lossy_kind_loses_what_it_says_and_nothing_else(kind: str, text: str, back: str) -> None:
    tokenizer = trained(kind, min_count=1)
    assert tokenizer.loses == LOSES[kind] != ""
    assert tokenizer.decode(tokenizer.encode(text)) == back


@pytest.mark.parametrize("kind", ["bpe", "unigram", "characters"])
@FEW
@given(text=st.text("abcdefghilmnorstuvwz éáहूँ.,<>/ ", max_size=40))
def test_kinds_of_characters_give_back_text_of_characters_they_know(kind: str, text: str) -> None:
    tokenizer = trained(kind, min_count=1)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_lower_case_and_normal_forms_change_the_text_and_say_so() -> None:
    tokenizer = trained("byte_bpe", lowercase=True, normal_form="NFC")
    text = unicodedata.normalize("NFD", "Él está AQUÍ")
    assert tokenizer.decode(tokenizer.encode(text)) == "él está aquí"
    assert tokenizer.loses == "text is brought to the normal form NFC; capital letters become small"


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(text=seeded)
def test_tokens_stand_for_stretches_of_the_text_in_order(kind: str, text: str) -> None:
    tokenizer = trained(kind)
    tokens = tokenizer.tokens(text)
    assert [token.number for token in tokens] == tokenizer.encode(text, end=False)
    starts = [token.start for token in tokens]
    assert starts == sorted(starts)
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens)
    covered = {place for token in tokens for place in range(token.start, token.end)}
    assert covered >= {place for place, character in enumerate(text) if not character.isspace() and character != "▁"}


def test_a_token_names_its_characters_without_the_space_in_front() -> None:
    text = "Un  hombre, 😀"
    tokens = Tokenizer.train([text[:-1]] * 2, TokenizerSettings(vocabulary=280)).tokens(text)
    assert [(token.piece, text[token.start : token.end]) for token in tokens[:4]] == [
        (" Un", "Un"), (" ", " "), (" hombre", "hombre"), (",", ",")
    ]  # fmt: skip
    assert {text[token.start : token.end] for token in tokens[-3:]} == {"😀"}
    assert tokens[-1].piece == "\\x80"


def test_the_marks_of_a_script_stay_with_its_letters() -> None:
    assert [token.piece for token in trained("words", min_count=1).tokens("मैं घर हूँ।")] == ["मैं", "घर", "हूँ", "।"]


def test_words_keep_apostrophes_hyphens_and_decimals_inside() -> None:
    tokenizer = Tokenizer.train(["don't pay 3.14, well-known <b>!"], TokenizerSettings(kind="words", min_count=1))
    assert [each.piece for each in tokenizer.tokens("don't pay 3.14, well-known <b>!")] == [
        "don't", "pay", "3.14", ",", "well-known", "<", "b", ">", "!"
    ]  # fmt: skip
    as_given = Tokenizer.train(
        ["can 't 3.14, AH0"], TokenizerSettings(kind="words", min_count=1, split_punctuation=False)
    )
    assert [each.piece for each in as_given.tokens("can 't 3.14, AH0")] == ["can", "'t", "3.14,", "AH0"]


def test_digits_stand_alone_unless_they_are_let_together() -> None:
    often = ["1234 times"] * 9
    alone = Tokenizer.train(often, TokenizerSettings(vocabulary=400))
    together = Tokenizer.train(often, TokenizerSettings(vocabulary=400, split_digits=False))
    assert [each.piece for each in alone.tokens("1234")] == [" 1", "2", "3", "4"]
    assert [each.piece for each in together.tokens("1234")] == [" 1234"]


def test_words_given_as_such_know_their_tokens() -> None:
    tokenizer = trained("byte_bpe")
    numbers, owners = tokenizer.encode_words(["A", "man", "zzz", ""])
    assert (numbers[-1], owners[-1]) == (END, -1)
    by_word = [[n for n, o in zip(numbers, owners, strict=True) if o == word] for word in range(4)]
    assert by_word == [
        *(tokenizer.encode(word, end=False) for word in ("A", "man", "zzz")), [UNKNOWN]
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_gives_the_same_tokenizer_and_other_tools_read_it(kind: str, tmp_path: Path) -> None:
    tokenizer = trained(kind)
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    copied = pickle.loads(pickle.dumps(tokenizer))
    plain = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in SENTENCES:
        assert loaded.encode(text) == copied.encode(text) == tokenizer.encode(text)
        if "<" not in text:
            assert plain.encode(text).ids == tokenizer.encode(text)
    assert loaded.hash == copied.hash == tokenizer.hash
    assert loaded == tokenizer != trained("bpe" if kind != "bpe" else "words")


def test_transformers_reads_the_file(tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    tokenizer = trained("byte_bpe")
    tokenizer.save(tmp_path / "tokenizer.json")
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    numbers = theirs("Un hombre.")["input_ids"]
    assert numbers == tokenizer.encode("Un hombre.")
    assert theirs.decode(numbers, skip_special_tokens=True) == "Un hombre."


@pytest.mark.parametrize("kind", ["byte_bpe", "bpe", "words", "characters"])
def test_training_twice_gives_the_same(kind: str) -> None:
    settings = TokenizerSettings(kind=kind, vocabulary=420)
    assert Tokenizer.train(iter(SENTENCES), settings) == Tokenizer.train(SENTENCES, settings)


def test_it_needs_no_torch_and_is_quick_to_import() -> None:
    code = "import sys, regard.text.tokenizer; print('torch' in sys.modules, 'numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]


def test_what_cannot_be_encoded_is_named() -> None:
    tokenizer = trained("byte_bpe")
    with pytest.raises(ValueError, match=re.escape("text 2 of 2: half a surrogate pair (U+D800) at character 1")):
        tokenizer.encode_batch(["a", "b\ud800"])
    with pytest.raises(ValueError, match="text 1 of 1: expected text; got int"):
        tokenizer.encode(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="text 1 of 1: half a surrogate pair"):
        tokenizer.tokens("\udfff")
    with pytest.raises(ValueError, match=re.escape("unknown language 'en'. (known: es, pt-BR)")):
        tokenizer.encode("a", language="en")


@pytest.mark.parametrize("number", [-1, 10_000])
def test_a_number_outside_the_vocabulary_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=rf"token: expected a number from 0 to \d+; got {number}"):
        trained("byte_bpe").decode([5, number])
    with pytest.raises(ValueError, match="expected a number from 0"):
        trained("byte_bpe").shown([number])


def test_training_that_cannot_be_is_refused() -> None:
    with pytest.raises(Misuse, match=r"byte_bpe needs at least 261 tokens .*1 tags of languages, 256 bytes.*got 260"):
        Tokenizer.train(["a"], TokenizerSettings(vocabulary=260), languages=["es"])
    with pytest.raises(ValueError, match="there is no text to train a tokenizer on"):
        Tokenizer.train([" ", ""])
    with pytest.raises(ValueError, match="text 2 of those to train on: half a surrogate pair"):
        Tokenizer.train(["a", "\ud800"])
    with pytest.raises(ValueError, match="expected a code like 'es'"):
        Tokenizer.train(["a"], languages=["es>"])


def test_a_file_that_is_no_tokenizer_of_ours_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text("{}")
    with pytest.raises(Misuse, match=r"tokenizer\.json: not a tokenizer\.json"):
        Tokenizer.load(file)
    other = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[PAD]": 0}, unk_token="[UNK]"))
    other.save(str(file))
    with pytest.raises(Misuse, match=r"token 0 must be the special token <pad>; it is \[PAD\]"):
        Tokenizer.load(file)


@pytest.mark.parametrize("kind", ["byte_bpe", "bpe", "unigram", "words", "characters"])
@pytest.mark.parametrize("form", ["NFC", "NFKC", "none"])
def test_a_mark_that_a_normal_form_joins_stays_with_its_character(kind: Any, form: Any) -> None:
    text = "cafe\u0301 \u1112\u1161\u11ab e\u0301x"
    made = Tokenizer.train([text, "cafe noir"] * 9, TokenizerSettings(kind=kind, vocabulary=300, normal_form=form))
    spans = [(token.start, token.end) for token in made.tokens(text)]
    held = {place for span in spans for place in range(*span)}
    assert held >= {place for place, each in enumerate(text) if not each.isspace()}
    if form != "none":
        assert all(start not in (4, 7, 8, 11) for start, _ in spans)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "characters", "words"])
def test_tags_ends_and_spaces_are_no_tokens_that_the_model_knows(kind: Any) -> None:
    tokenizer = Tokenizer.train(["ab ba"] * 9, TokenizerSettings(kind=kind, vocabulary=12, min_count=1), ["es"])
    share = {text: tokenizer.unknown_share(tokenizer.encode(text, language="es")) for text in ("☃ ☃ ꙮ", "ab ba", "")}
    assert share == {"☃ ☃ ꙮ": 1, "ab ba": 0, "": 0}
