"""Models that read words by their letters are asked with the letters that they were trained with."""

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.preparing import prepare
from regard.data.settings import DataSettings
from regard.models.build import build
from regard.models.folder import save_folder
from regard.models.input_settings import CharacterSettings, WordSettings
from regard.models.rnn_settings import RecurrentSettings
from regard.models.sizes import Sizes
from regard.pipeline import letters, load
from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer

TEXTS = ["the cat sat down", "a dog ran", "the dog sat"]
SPELLED = WordSettings(width=8, characters=CharacterSettings(width=4, output=8, longest=5))


def folder(path: Path, task: str, kind: str = "words") -> Path:
    torch.manual_seed(0)
    tokenizer = Tokenizer.train(TEXTS, TokenizerSettings(kind=kind, min_count=1, vocabulary=300))  # type: ignore[arg-type]
    size = tokenizer.vocabulary
    model = build(
        RecurrentSettings(width=8, embedding=8, input=SPELLED),
        Sizes(source=size, target=size, tags=3, labels=2, characters=257), task,
    )  # fmt: skip
    names = {"tag": ("A", "B", "C"), "classify": ("no", "yes")}.get(task, ())
    save_folder(path, model, task=task, tokenizers={"source": tokenizer, "target": tokenizer}, names=names)
    return path


def test_a_word_never_seen_is_tagged_by_its_letters(tmp_path: Path) -> None:
    model = load(folder(tmp_path, "tag"))
    one, other = (model.predict([["the", unknown, "sat"]])[0] for unknown in ("zorbling", "xyx"))
    assert one.scores != other.scores
    assert one.scores == model.predict([["the", "zorblative", "sat"]])[0].scores  # five letters are read


@pytest.mark.parametrize("kind", ["words", "byte_bpe"])
def test_texts_of_other_tasks_come_with_letters_too(tmp_path: Path, kind: str) -> None:
    labelled = load(folder(tmp_path / "c", "classify", kind)).predict(["the xyx sat", "a dog"])
    assert [each.problem for each in labelled] == ["", ""]
    [result] = load(folder(tmp_path / "t", "translate", kind)).translate(["the xyx sat"], beam=2, attention=True)
    assert result.problem == ""


@pytest.mark.parametrize("kind", ["words", "byte_bpe"])
def test_what_is_asked_is_what_was_prepared(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"{text}\t{text}\n" for text in TEXTS * 5))
    data = DataSettings(train=str(tmp_path / "a.tsv"), dev_size=0, characters=5,  # type: ignore[arg-type]
                        tokenizer=TokenizerSettings(kind=kind, min_count=1, vocabulary=300))  # type: ignore[arg-type] # fmt: skip
    prepared = prepare(data, tmp_path / "data", quiet=True)
    tokenizer = prepared.tokenizers["source"]
    model = build(RecurrentSettings(width=8, input=SPELLED), Sizes(source=300, labels=2, characters=257), "classify")
    for row, text in enumerate(TEXTS):
        tokens, _ = prepared.train.gather("source", np.array([row]))
        spelt, _ = prepared.train.gather("characters", np.array([row]))
        given = letters.of_text(model, tokenizer, text, tokenizer.encode(text))
        assert np.array_equal(given, np.concatenate([np.asarray(tokens)[:, None], np.asarray(spelt)], 1))
