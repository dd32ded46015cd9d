"""A model in memory on prepared data: what is decoded is what is scored, for every task."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.shards import Column, ShardSet
from regard.decoding import SearchSettings, search
from regard.evaluation.evaluating import evaluate
from regard.evaluation.perplexity import perplexity, perplexity_of
from regard.models.build import build
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.text.settings import TokenizerSettings
from regard.text.specials import END, START
from regard.text.tokenizer import Tokenizer
from tests.data.sets import of

SMALL = TransformerSettings(width=8, heads=2, feed_forward=12, encoder_layers=1, decoder_layers=1)
TEXTS = ["a small cat", "the small dogs bark", "a dog and a cat", "the cat"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, TokenizerSettings(kind="words", min_count=1, vocabulary=50))


def model_for(task: str, **sizes: Any) -> Any:
    torch.manual_seed(0)
    return build(SMALL, Sizes(**sizes), task)


def pairs(folder: Path, tokenizer: Tokenizer) -> ShardSet:
    tokens = Column("uint16", "tokens", tokenizer.vocabulary)
    encoded = tokenizer.encode_batch(TEXTS)
    return of(folder, {"source": tokens, "target": tokens}, {"source": encoded, "target": encoded[::-1]})


def test_sequences_are_searched_and_scored(tmp_path: Path, tokenizer: Tokenizer) -> None:
    size = tokenizer.vocabulary
    model = model_for("translate", source=size, target=size)
    told: list[int] = []
    asked = SearchSettings(beam=2, limit_plus=4)
    found = evaluate(model, pairs(tmp_path, tokenizer), {"source": tokenizer, "target": tokenizer}, search=asked,
                     samples=2, done=told.append)  # fmt: skip
    assert model.training  # as it was
    model.eval()
    each = [search(model, torch.tensor([tokenizer.encode(text)]), None, asked)[0][0].tokens for text in TEXTS]
    assert list(found.outputs) == tokenizer.decode_batch(each)
    assert list(found.references) == TEXTS[::-1]
    assert [score.name for score in found.scores] == ["BLEU", "chrF2", "exact"]
    assert found.main.name == "BLEU"
    assert [sample.source for sample in found.samples] == [TEXTS[0], TEXTS[3]]
    assert sum(told) == 4
    few = evaluate(
        model, pairs(tmp_path, tokenizer), {"source": tokenizer, "target": tokenizer}, search=asked, at_most=2
    )
    assert few.outputs == (found.outputs[0], found.outputs[3])
    with pytest.raises(ValueError, match=r"tokenizers: the target's is needed to tell texts; got none"):
        evaluate(model, pairs(tmp_path, tokenizer))


def test_tags_are_told_word_by_word(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = model_for("tag", source=tokenizer.vocabulary, tags=3)
    names = ("DET", "NOUN", "ADJ")
    counts = [[1] * len(text.split()) for text in TEXTS]
    columns = {
        "source": Column("uint16", "tokens", tokenizer.vocabulary), "words": Column("uint16", "counts"),
        "tags": Column("uint16", "names", 3),
    }  # fmt: skip
    model.eval()
    with torch.inference_mode():
        memories = [model.encode(torch.tensor([tokenizer.encode(text)]), None, torch.tensor([own]))
                    for text, own in zip(TEXTS, counts, strict=True)]  # fmt: skip
        best = [model.predict(memory)[0].argmax(-1) for memory in memories]
    right = [each.tolist() for each in best]
    right[1][0] = (right[1][0] + 1) % 3  # one of 14 words is not as the model says
    examples = of(
        tmp_path, columns, {"source": tokenizer.encode_batch(TEXTS), "words": counts, "tags": right}, tags=names
    )
    found = evaluate(model, examples, {"source": tokenizer})
    assert found.main.value == pytest.approx(13 / 14)
    assert found.outputs[0] == [names[tag] for tag in best[0].tolist()]
    assert found.samples[0].output == " ".join(found.outputs[0])


def test_labels_are_told(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = model_for("classify", source=tokenizer.vocabulary, labels=2).eval()
    with torch.inference_mode():
        best = [int(model.predict(model.encode(torch.tensor([tokenizer.encode(text)]))).argmax()) for text in TEXTS]
    columns = {"source": Column("uint16", "tokens", tokenizer.vocabulary), "label": Column("uint16", "names", 2)}
    labels = [[best[0]], [best[1]], [best[2]], [1 - best[3]]]
    examples = of(tmp_path, columns, {"source": tokenizer.encode_batch(TEXTS), "label": labels}, label=("no", "yes"))
    found = evaluate(model, examples, {"source": tokenizer})
    assert found.main.value == 0.75
    assert found.outputs == tuple(("no", "yes")[each] for each in best)


def test_images_are_captioned_as_a_model_sees_them(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = model_for("caption", target=tokenizer.vocabulary, image=(1, 16, 0)).eval()
    dice = np.random.default_rng(0)
    images = [dice.integers(0, 255, (width, 16), np.uint8) for width in (20, 33, 24, 20)]
    columns = {"source": Column("uint8", "image", width=16, channels=1),
               "target": Column("uint16", "tokens", tokenizer.vocabulary)}  # fmt: skip
    examples = of(tmp_path, columns, {"source": images, "target": tokenizer.encode_batch(TEXTS)})
    asked = SearchSettings(beam=2, limit_plus=3, limit_factor=0)
    found = evaluate(model, examples, {"target": tokenizer}, search=asked)
    pixels = torch.from_numpy(images[1].T[None, None].astype(np.float32) / 255)
    alone = search(model, pixels, torch.tensor([33]), asked)[0][0].tokens
    assert found.outputs[1] == tokenizer.decode(alone)


def test_perplexity_is_the_exponent_of_the_mean_loss(tmp_path: Path, tokenizer: Tokenizer) -> None:
    size = tokenizer.vocabulary
    model = model_for("translate", source=size, target=size).eval()
    loss = count = 0.0
    for source, target in zip(TEXTS, TEXTS[::-1], strict=True):
        right = tokenizer.encode(target)
        logits = model(torch.tensor([tokenizer.encode(source)]), torch.tensor([[START, *right[:-1]]])).detach()
        loss -= float(logits.log_softmax(-1)[0, range(len(right)), right].sum())
        count += len(right)
        assert right[-1] == END
    expected = math.exp(loss / count)
    assert perplexity(model, pairs(tmp_path, tokenizer)).value == pytest.approx(expected, rel=1e-4)
    both = tokenizer.encode_batch(TEXTS), tokenizer.encode_batch(TEXTS[::-1])
    assert perplexity_of(model, *both).value == pytest.approx(expected, rel=1e-4)


def test_a_language_model_is_told_by_its_perplexity(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = model_for("language_model", target=tokenizer.vocabulary)
    tokens = Column("uint16", "tokens", tokenizer.vocabulary)
    found = evaluate(model, of(tmp_path, {"target": tokens}, {"target": tokenizer.encode_batch(TEXTS)}), {})
    assert found.main.name == "perplexity"
    assert not found.main.higher_is_better
    assert 1 < found.main.value < 100
