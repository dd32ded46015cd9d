"""predict: tags, labels, captions, texts that go on; and what is wrong with an input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import cli
from regard.evaluation.reading import read_examples
from regard.models.build import build
from regard.models.folder import save_folder
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.pipeline import looking
from regard.pipeline.model import Pipeline
from regard.pipeline.results import Labelled, Result, Tagged
from regard.pipeline.scoring import evaluate
from regard.support.errors import Failure, Misuse
from regard.text.settings import TokenizerSettings
from regard.text.specials import START
from regard.text.tokenizer import Tokenizer

SMALL = TransformerSettings(width=8, heads=2, feed_forward=12, encoder_layers=2, decoder_layers=1)
TEXTS = ["the man saw the astronomer with a telescope.", "a well-known dog doesn't bark."]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, TokenizerSettings(vocabulary=300, min_count=1))


def saved(folder: Path, task: str, tokenizer: Tokenizer | None, names: tuple[str, ...] = (), **sizes: Any) -> Pipeline:
    torch.manual_seed(0)
    settings = SMALL.changed(head={"pooling": "attention"}) if task == "classify" else SMALL
    side = "target" if task in ("caption", "language_model") else "source"
    tokenizers = {} if tokenizer is None else {side: tokenizer}
    save_folder(folder, build(settings, Sizes(**sizes), task), task=task, tokenizers=tokenizers, names=names)
    return regard.load(folder)


def test_every_word_gets_the_tag_its_model_gives(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = saved(tmp_path, "tag", tokenizer, ("A", "B", "C"), source=tokenizer.vocabulary, tags=3)
    words = ["a", "well-known", "dog", "does", "n't", "bark", "."]
    found = model.predict([TEXTS[0], words, "", "telescope"])
    assert all(isinstance(each, Tagged) for each in found)
    assert [len(each.tags) for each in found] == [9, 7, 0, 1]  # type: ignore[union-attr]
    assert found[0].words == ("the", "man", "saw", "the", "astronomer", "with", "a", "telescope", ".")  # type: ignore[union-attr]
    numbers, owners = tokenizer.encode_words(words)
    counts = torch.tensor([[owners.count(place) for place in range(len(words))]])
    with torch.inference_mode():
        network: Any = model.model
        logits = network.predict(network.encode(torch.tensor([numbers]), None, counts))[0]
    assert found[1].tags == tuple("ABC"[tag] for tag in logits.argmax(-1).tolist())  # type: ignore[union-attr]
    assert found[1].scores == pytest.approx(logits.softmax(-1).amax(-1).tolist(), abs=1e-5)  # type: ignore[union-attr]
    assert found[1].text.startswith("a/")
    alone = [model.predict([each])[0] for each in (TEXTS[0], words, "telescope")]
    together = [found[0], found[1], found[3]]
    assert [each.tags for each in alone] == [each.tags for each in together]  # type: ignore[union-attr]
    assert found[0].tags[:7] != found[1].tags  # type: ignore[union-attr]


def test_a_label_comes_with_all_probabilities_and_what_was_looked_at(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = saved(tmp_path, "classify", tokenizer, ("good", "bad"), source=tokenizer.vocabulary, labels=2)
    one, other = model.predict([TEXTS[0], TEXTS[1] * 3])
    assert isinstance(one, Labelled)
    assert isinstance(other, Labelled)
    assert sum(one.probabilities.values()) == pytest.approx(1)
    assert one.score == max(one.probabilities.values()) == one.probabilities[one.label]
    assert one.weights is not None
    assert one.weights.sum() == pytest.approx(1, abs=1e-5)
    assert len(one.weights) == len(one.pieces)
    [alone] = model.predict([TEXTS[0]])
    assert alone.score == pytest.approx(one.score, abs=1e-6)
    with pytest.raises(Misuse, match=r"this model was built to classify: ask it with predict"):
        model.translate(["a dog"])


def test_a_series_is_rows_of_numbers_or_a_line_of_them(tmp_path: Path) -> None:
    model = saved(tmp_path, "classify", None, ("up", "down"), input_width=2, labels=2)
    rows = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    one, line = model.predict([rows, "1,2 3,4 5,6"])
    assert one.score == pytest.approx(line.score)
    with pytest.raises(Misuse, match=r"expected finite numbers \[length, 2\]; got \[2, 3\]"):
        model.predict([np.ones((2, 3))])
    kept = model.predict(["1,2 3", "1,2"], keep_problems=True)
    assert kept[0].problem == "rows: expected as many numbers, 2, in each step"
    assert kept[1].problem == ""


def test_an_image_gets_a_caption_and_a_map_for_each_word(tmp_path: Path, tokenizer: Tokenizer) -> None:
    pillow = pytest.importorskip("PIL.Image")
    model = saved(tmp_path, "caption", tokenizer, target=tokenizer.vocabulary, image=(1, 16, 0))
    pixels = np.random.default_rng(0).integers(0, 255, (16, 40), np.uint8)
    pillow.fromarray(pixels).save(tmp_path / "a.png")
    wide = np.repeat(np.repeat(pixels, 2, 0), 2, 1)
    plain, file, scaled = model.predict([pixels, str(tmp_path / "a.png"), wide], attention=True, beam=2)
    assert isinstance(plain, Result)
    assert (plain.text, plain.score) == (file.text, pytest.approx(file.score))
    assert isinstance(scaled, Result)
    seen, maps, words = looking.captioned(model, tmp_path / "a.png")
    assert seen.shape == (16, 40)
    assert maps.shape == (len(words), 16, 40)
    assert words[-1] == "</s>" or plain.ending != "end"
    found = model.predict(["nothing.png", str(tmp_path / "a.png")], keep_problems=True)
    assert (found[0].problem, found[1].text) == ("nothing.png: there is no such image", model.predict([pixels])[0].text)
    with pytest.raises(Misuse, match=r"expected pixels \[height, width\] from 0 to 255 \(uint8\); got float64"):
        model.predict([pixels / 255])


def test_a_language_model_goes_on_from_a_text(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = saved(tmp_path, "language_model", tokenizer, target=tokenizer.vocabulary)
    found = model.predict(["the man", "a", ""], beam=3, limit_plus=12, limit_factor=0)
    assert [each.text.startswith(text) for each, text in zip(found, ["the man", "a", ""], strict=True)] == [True] * 3
    assert found[1].text == model.predict("a", beam=3, limit_plus=12, limit_factor=0)[0].text


def test_a_language_model_is_told_by_its_perplexity(tmp_path: Path, tokenizer: Tokenizer, capsys: Any) -> None:
    model = saved(tmp_path, "language_model", tokenizer, target=tokenizer.vocabulary)
    (tmp_path / "texts.txt").write_text("\n".join([*TEXTS, "word " * 15]))
    examples = read_examples([str(tmp_path / "texts.txt")])
    found = evaluate(model, examples)
    loss = count = 0.0
    network: Any = model.model
    for text in (*TEXTS, "word " * 15):
        tokens = tokenizer.encode(text)
        with torch.inference_mode():
            shares = network(torch.tensor([[0]]), torch.tensor([[START, *tokens[:-1]]])).log_softmax(-1)
        loss, count = loss - float(shares[0, range(len(tokens)), tokens].sum()), count + len(tokens)
    assert found.scores[0].value == pytest.approx(float(np.exp(loss / count)), rel=1e-4)
    assert [each.count for each in found.lengths] == [2, 1, 0, 0, 0]
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main(
            ["evaluate", str(tmp_path), str(tmp_path / "texts.txt"), "--report", str(tmp_path / "r.html"), "--quiet"]
        )
    assert f"perplexity  {found.scores[0].value:>8.2f}" in capsys.readouterr().out
    assert "perplexity by length" in (tmp_path / "r.html").read_text()


def test_self_attention_is_that_of_the_running_heads(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = saved(tmp_path, "tag", tokenizer, ("A", "B"), source=tokenizer.vocabulary, tags=2)
    text = TEXTS[0]
    seen = looking.inside(model, text)
    network: Any = model.model
    with torch.inference_mode():
        x = network.encoder.input(torch.tensor([tokenizer.encode(text)])).states
        block = network.encoder.stack.layers[0]
        x = network.encoder.stack.positions.add(x)
        weights = block.attention(block.attention_norm(x), want_weights=True).weights[0]
    np.testing.assert_allclose(seen.attention.weights[:, 0].transpose(1, 0, 2), weights.numpy(), atol=1e-6)
    assert seen.attention.weights.shape[1:3] == (2, 2)
    told = looking.joined_by(seen.attention, "telescope")
    assert len(told) == 4
    assert told[0].startswith("layer 1, head 1: telescope → ")
    with pytest.raises(Misuse, match=r"unknown word 'telescop'; did you mean 'telescope'\?"):
        looking.joined_by(seen.attention, "telescop")
    stacked, names, rows, _ = seen.attention.every_head()
    word, saw = rows.index("telescope"), rows.index("saw")
    by = int(stacked[:, saw, word].argmax())
    assert f"saw → telescope: most by {names[by]}, {stacked[by, saw, word]:.2f}" in looking.joined_most(
        seen.attention, "telescope"
    )
    assert not network.encoder.stack.layers[0].attention._forward_hooks
    [moved] = looking.moved_by(model, [text])
    assert moved.words[-2:] == ("telescope", ".")
    assert moved.before.shape == moved.after.shape == (9, 8)
    for vectors in (moved.before, moved.after):  # their directions are compared
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("task", ["tag", "classify"])
def test_weights_that_are_no_numbers_give_no_answer(task: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    sizes = {"tags": 2} if task == "tag" else {"labels": 2}
    model = saved(tmp_path, task, tokenizer, ("A", "B"), source=tokenizer.vocabulary, **sizes)
    with torch.no_grad():
        next(model.model.parameters()).fill_(torch.nan)
    with pytest.raises(Failure, match=r"the model gives no probabilities: there is a NaN among its logits"):
        model.predict([TEXTS[0]])


def test_a_name_without_end_is_told_in_a_line(tmp_path: Path, tokenizer: Tokenizer) -> None:
    pytest.importorskip("PIL.Image")
    model = saved(tmp_path, "caption", tokenizer, target=tokenizer.vocabulary, image=(1, 16, 0))
    [found] = model.predict(["x" * 1_000_000], keep_problems=True)
    assert found.problem == f"{'x' * 60}… (1,000,000 characters): no name of an image is so long"


def test_predict_searches_as_it_is_told_and_writes_what_counted(
    tmp_path: Path, tokenizer: Tokenizer, capsys: Any
) -> None:
    saved(tmp_path / "lm", "language_model", tokenizer, target=tokenizer.vocabulary)
    saved(tmp_path / "label", "classify", tokenizer, ("good", "bad"), source=tokenizer.vocabulary, labels=2)
    for more, count in ((["--nbest", "3"], 3), (["--sample", "--nbest", "2", "--seed", "4", "--beam", "1"], 2)):
        with pytest.raises(SystemExit, match=r"^0$"):
            cli.main(["predict", "a dog", "-m", str(tmp_path / "lm"), "-f", "tsv", "--threads", "1", *more])
        rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
        assert [row[1] for row in rows] == [str(rank) for rank in range(1, count + 1)]
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main(["predict", TEXTS[0], "-m", str(tmp_path / "label"), "-f", "json", "--alignment", "--threads", "1"])
    told = json.loads(capsys.readouterr().out)
    assert told["alignment"]["source"][4] == "astronomer"
    assert sum(told["alignment"]["weights"]) == pytest.approx(1, abs=1e-3)
