"""What a report shows of a model's outputs: some of each kind, each source once, by their places in the data."""

from pathlib import Path

import numpy as np
import pytest

from regard.evaluation.reading import Examples
from regard.pipeline.model import Pipeline
from regard.pipeline.samples import samples
from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer
from tests.pipeline.test_answering import TEXTS, saved


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, TokenizerSettings(vocabulary=300, min_count=1))


def test_texts_are_shown_once_each_with_where_they_looked(model: Pipeline) -> None:
    sources = ("one two.", "one two.", "nine.", "one " * 30, "")
    found = samples(model, Examples("e", sources, (("uno dos.",),) * 5, "text"), to="es")
    assert [each.source for each in found] == ["one two.", "nine."]
    assert found[0].output == found[0].reference == "uno dos."
    assert found[0].weights is not None
    assert found[0].weights.shape == (len(found[0].rows), len(found[0].columns))


def test_tags_are_shown_beside_those_expected(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = saved(tmp_path, "tag", tokenizer, ("A", "B", "C"), source=tokenizer.vocabulary, tags=3)
    [found] = samples(model, Examples("e", (["a", "dog"],), ((["A", "C"],),), "tags"))
    [plain] = model.predict([["a", "dog"]])
    assert found.tags == (("a", plain.tags[0], "A"), ("dog", plain.tags[1], "C"))  # type: ignore[union-attr]


def test_labels_are_shown_with_the_words_that_counted(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = saved(tmp_path, "classify", tokenizer, ("good", "bad"), source=tokenizer.vocabulary, labels=2)
    [found] = samples(model, Examples("e", (TEXTS[0],), (("good",),), "label"))
    assert found.rows == (found.output,)
    assert "astronomer" in found.columns
    assert found.weights is not None
    assert found.weights.sum() == pytest.approx(1, abs=1e-4)


def test_captions_are_shown_over_their_images_by_number(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = saved(tmp_path, "caption", tokenizer, target=tokenizer.vocabulary, image=(1, 16, 0))
    images = tuple(np.random.default_rng(n).integers(0, 255, (16, 40), np.uint8) for n in range(4))
    found = samples(model, Examples("e", images, (("a dog",),) * 4, "text"), count=2)
    assert [each.source for each in found] == ["example 1", "example 3"]
    assert all(each.picture.startswith(b"\x89PNG") for each in found)
