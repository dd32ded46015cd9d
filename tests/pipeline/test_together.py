"""Ensembles and vocabulary maps, as a person asks for them: folders and files."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import cli
from regard.decoding import Ensemble, SearchSettings, VocabularyMap
from regard.decoding.many import search_many
from regard.models.build import build
from regard.models.folder import save_folder
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.pipeline.mapping import learned, read_map, tokenizers_of
from regard.pipeline.model import Pipeline
from regard.support.errors import Misuse
from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer
from tests.pipeline.toy import sentence

SMALL = TransformerSettings(width=8, heads=2, feed_forward=12, encoder_layers=1, decoder_layers=1)


def made(folder: Path, tokenizer: Tokenizer, task: str = "translate", **about: Any) -> Path:
    torch.manual_seed(3)
    sizes = Sizes(source=tokenizer.vocabulary, target=tokenizer.vocabulary, labels=2 if task == "classify" else None)
    tokenizers = {"source": tokenizer} | ({"target": tokenizer} if task == "translate" else {})
    names = ("a", "b") if task == "classify" else ()
    save_folder(folder, build(SMALL, sizes, task), task=task, tokenizers=tokenizers, names=names, about=about)
    return folder


def run(*arguments: str, status: int = 0) -> None:
    with pytest.raises(SystemExit, match=f"^{status}$"):
        cli.main([*arguments])


def test_folders_together_say_what_the_mean_of_their_probabilities_says(
    folder: Path, model: Pipeline, tmp_path: Path, capsys: Any
) -> None:
    other = made(tmp_path / "other", model.tokenizers["source"], longest=77)
    both = regard.load([folder, other])
    assert both.longest == 77
    text = "six two nine."
    [found] = both.translate([text], to="de", attention=True)
    tokens = model.tokenizers["source"].encode(text, language="de")
    networks: list[Any] = [model.model, regard.load(other).model]
    [[expected]] = search_many(Ensemble(networks), [tokens], SearchSettings())
    assert found.token_scores == pytest.approx(expected.token_scores, abs=1e-5)
    assert found.token_scores != pytest.approx(model.translate([text], to="de")[0].token_scores, abs=1e-3)
    assert found.attention is not None
    assert found.attention.weights.shape[1:3] == (1, 1)
    run("translate", text, "-m", str(folder), "--ensemble", str(folder), "--to", "de", "--threads", "1")
    assert capsys.readouterr().out == "sechs zwei neun.\n"


def test_models_that_do_not_go_together_are_refused_with_the_reason(
    folder: Path, model: Pipeline, tmp_path: Path, capsys: Any
) -> None:
    tokenizer = model.tokenizers["source"]
    with pytest.raises(Misuse, match=r"name a model folder; got none"):
        regard.load([])
    classifier = made(tmp_path / "label", tokenizer, "classify")
    with pytest.raises(Misuse, match=r"label: only models that give sequences make an ensemble; this one was built to"):
        regard.load([folder, classifier])
    strange = made(tmp_path / "strange", Tokenizer.train(["x y"], TokenizerSettings(vocabulary=280, min_count=1)))
    run("translate", "one.", "-m", str(folder), "--ensemble", str(strange), "--to", "de", "--threads", "1", status=2)
    assert capsys.readouterr().err == (
        f"regard: {strange}: cannot be in an ensemble with {folder}: its source has another tokenizer; models of an "
        "ensemble are trained with the same one\n"
    )


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """All number words but one, in German."""
    lines = [f"{sentence('en', [n, n])}\t{sentence('de', [n, n])}\n" for n in range(10) if n != 1]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(lines))
    return path


def test_a_vocabulary_map_is_learned_and_kept_to_by_the_commands(
    folder: Path, pairs: Path, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "map.npz"
    run("vocabulary-map", str(folder), str(pairs), "-o", str(path), "--common", "0", "--each", "3")
    assert "from 9 pairs; of 354 target tokens" in capsys.readouterr().out
    text = "six two nine."
    text = "six two nine."
    run("translate", text, "-m", str(folder), "--to", "de", "--threads", "1", "--vocabulary-map", str(path))
    out = capsys.readouterr().out.strip()
    assert out.startswith("sechs ")
    assert "zwei" not in out
    tokenizer = tokenizers_of(folder)["target"]
    source = tokenizer.encode(text, language="de")
    allowed = read_map(path, tokenizers_of(folder)).columns(torch.tensor([source])).tolist()
    [whole] = tokenizer.encode("zwei", end=False)
    assert whole not in allowed  # it was never seen, and may be spelled at best
    assert {tokenizer.pieces.index(letter) for letter in "zwei"} <= set(allowed)


def test_a_map_of_another_model_is_refused(folder: Path, model: Pipeline, tmp_path: Path, capsys: Any) -> None:
    strange = Tokenizer.train(["x y"], TokenizerSettings(vocabulary=280, min_count=1))
    learned({"source": strange, "target": strange}, ["x"], ["y"]).save(tmp_path / "other.npz")
    VocabularyMap(np.zeros((3, 2), np.int64), np.array([3])).save(tmp_path / "small.npz")
    (tmp_path / "torn.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:200])
    for name, said in (
        ("other.npz", "was learned for other tokenizers than this model's"),
        ("small.npz", "is from 3 source tokens to 4 or more; this model has 354 and 354"),
        ("torn.npz", "no vocabulary map, or a damaged one"),
        ("none.npz", "no such file"),
    ):
        run("translate", "one.", "-m", str(folder), "--to", "de", "--vocabulary-map", str(tmp_path / name),
            "--threads", "1", status=1 if name == "none.npz" else 2)  # fmt: skip
        told = capsys.readouterr().err
        assert said in told
        assert len(told.splitlines()) == 1
    label = made(tmp_path / "label", model.tokenizers["source"], "classify")
    run("vocabulary-map", str(label), str(tmp_path / "x.tsv"), status=2)
    assert "vocabulary maps are for text to text; this model was built to classify" in capsys.readouterr().err


def test_a_file_is_begun_again_when_the_ensemble_or_the_map_is_another(
    folder: Path, pairs: Path, tmp_path: Path
) -> None:
    from regard.cli.opening import marked

    copy = shutil.copytree(folder, tmp_path / "copy")
    before = marked(copy)
    assert before == marked(copy)
    (copy / "weights.safetensors").write_bytes(b"others")
    assert marked(copy) != before
    assert marked(pairs) != marked(copy)
