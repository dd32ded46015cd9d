"""How tags, labels, captions and texts that go on came about: the numbers are the model's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard import cli
from regard.pipeline.explaining import explain
from regard.pipeline.explaining_answers import explain_answer, explain_any
from regard.pipeline.results import Labelled, Tagged
from regard.support.errors import Misuse
from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer
from tests.pipeline.test_answering import TEXTS, saved


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, TokenizerSettings(vocabulary=300, min_count=1))


def run(*arguments: str, status: int = 0) -> None:
    with pytest.raises(SystemExit, match=f"^{status}$"):
        cli.main([*arguments])


def test_each_words_tag_is_explained(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = saved(tmp_path, "tag", tokenizer, ("A", "B", "C"), source=tokenizer.vocabulary, tags=3)
    told = explain_answer(model, TEXTS[0], candidates=2)
    assert isinstance(told.result, Tagged)
    [plain] = model.predict([TEXTS[0]])
    assert [each.token for each in told.steps] == list(plain.tags)  # type: ignore[union-attr]
    assert [each.probability for each in told.steps] == pytest.approx(plain.scores, abs=1e-6)  # type: ignore[union-attr]
    assert {len(each.candidates) for each in told.steps} == {2}
    shares = told.derivation(4)["p"].array.reshape(-1)
    assert shares.max() == pytest.approx(told.steps[4].probability, abs=1e-6)
    assert "ABC"[int(shares.argmax())] == told.steps[4].token
    look = told.look(layer=1, head=2)
    assert look is not None
    weights, rows, columns = look
    assert rows == columns == (*told.result.words, "</s>")
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
    assert not np.allclose(weights, told.look()[0])  # type: ignore[index]
    assert f"astronomer  {told.steps[4].token}" in told.lines()
    with pytest.raises(Misuse, match=r"step: expected 1 to 9, as many as the text has words; got 10"):
        told.derivation(9)
    for nothing in ("  ", []):
        with pytest.raises(Misuse, match=r"there is nothing to explain: the text is empty"):
            explain_answer(model, nothing)


def test_a_label_is_explained_by_the_words_that_counted(tmp_path: Path, tokenizer: Tokenizer, capsys: Any) -> None:
    model = saved(tmp_path / "m", "classify", tokenizer, ("good", "bad"), source=tokenizer.vocabulary, labels=2)
    told = explain_any(model, TEXTS[0])
    assert isinstance(told.result, Labelled)
    assert dict(told.steps[0].candidates) == pytest.approx(told.result.probabilities, abs=1e-6)
    assert told.derivation()["p"].array.max() == pytest.approx(told.result.score, abs=1e-6)
    look = told.look()
    assert look is not None
    weights, rows, columns = look
    assert rows == (told.result.label,)
    assert columns[4] == "astronomer"
    assert told.result.weights is not None
    begin = TEXTS[0].index("astronomer")
    own = [n for n, each in enumerate(told.result.pieces) if begin <= each.start < each.end <= begin + 10]
    assert weights[0, 4] == pytest.approx(told.result.weights[own].sum())
    with pytest.raises(Misuse, match=r"each word is weighed once here: there is neither a layer nor a head"):
        told.look(layer=1)
    page, picture = tmp_path / "d.html", tmp_path / "a.svg"
    run("explain", str(tmp_path / "m"), TEXTS[0], "--html", str(page), "--picture", str(picture), "--threads", "1")
    out = capsys.readouterr().out
    assert f"{TEXTS[0]}\n{told.result.label}\n\nlabel" in out
    assert "█ from .7" in out
    assert f"{told.result.label}: {TEXTS[0]}" in page.read_text()
    assert ">astronomer<" in picture.read_text()


def test_a_series_is_explained_step_by_step(tmp_path: Path) -> None:
    model = saved(tmp_path, "classify", None, ("up", "down"), input_width=2, labels=2)
    told = explain_answer(model, "1,2 3,4 5,6")
    weights, _, columns = told.look()  # type: ignore[misc]
    assert columns == ("1", "2", "3")
    assert weights.sum() == pytest.approx(1, abs=1e-5)


def test_a_caption_is_explained_with_the_places_of_its_image(tmp_path: Path, tokenizer: Tokenizer, capsys: Any) -> None:
    pillow = pytest.importorskip("PIL.Image")
    model = saved(tmp_path / "m", "caption", tokenizer, target=tokenizer.vocabulary, image=(1, 16, 0))
    pixels = np.random.default_rng(0).integers(0, 255, (16, 40), np.uint8)
    pillow.fromarray(pixels).save(tmp_path / "a.png")
    told = explain(model, str(tmp_path / "a.png"))
    [plain] = model.predict([pixels])
    assert told.result.text == plain.text
    assert [each.probability for each in told.steps] == pytest.approx(np.exp(plain.token_scores), abs=1e-5)  # type: ignore[union-attr]
    weights, rows, columns = told.look()  # type: ignore[misc]
    assert len(rows) == len(weights)
    assert columns[0] == "1"
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-4)
    token = told.derivation(1)["p"].array.reshape(-1)
    assert token.sum() == pytest.approx(1, abs=1e-5)
    assert told.steps[1].probability == pytest.approx(float(token[told.said[2]]), abs=1e-5)
    run("explain", str(tmp_path / "m"), str(tmp_path / "none.png"), status=2)
    assert capsys.readouterr().err == f"regard: {tmp_path / 'none.png'}: there is no such image\n"
    run("explain", str(tmp_path / "m"), str(tmp_path / "a.png"), "--picture", str(tmp_path / "p.png"), "--threads", "1")
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_a_text_that_goes_on_is_explained_from_its_beginning(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = saved(tmp_path, "language_model", tokenizer, target=tokenizer.vocabulary)
    told = explain(model, "the man")
    [plain] = model.predict(["the man"])
    assert told.result.text == plain.text
    assert told.result.text.startswith("the man")
    assert told.look() is None
    network: Any = model.model
    with torch.inference_mode():
        shares = network(torch.tensor([[0]]), torch.tensor([told.said])).softmax(-1)[0]
    assert told.steps[3].probability == pytest.approx(float(shares[3, told.said[4]]), abs=1e-5)
    assert told.derivation(3)["p"].array.reshape(-1) == pytest.approx(shares[3].numpy(), abs=1e-5)
    with pytest.raises(Misuse, match=r"there is no attention to draw"):
        told.picture()
