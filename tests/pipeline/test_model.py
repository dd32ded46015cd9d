"""regard.load: text in, text out, and what is wrong said in a sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.decoding import Hypothesis, SearchSettings
from regard.models.build import build
from regard.models.folder import save_folder
from regard.models.rnn_settings import RecurrentSettings
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.pipeline.forbidding import without
from regard.pipeline.model import Pipeline
from regard.pipeline.precision import Halved, Packed, in_precision
from regard.pipeline.results import Piece, by_words
from regard.support.errors import Failure, Misuse
from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer

SMALL = TransformerSettings(width=8, heads=2, feed_forward=12, encoder_layers=1, decoder_layers=1)


def test_texts_become_texts_in_order(model: Pipeline) -> None:
    found = model.translate(["one two three.", "", "nine.", "  five seven.  "], to="es")
    assert [each.text for each in found] == ["uno dos tres.", "", "nueve.", "cinco siete."]
    assert [each.source for each in found] == ["one two three.", "", "nine.", "  five seven.  "]
    assert model.translate("two.", to="de")[0].text == "zwei."


def test_a_result_says_its_tokens_and_what_each_was_worth(model: Pipeline) -> None:
    [found] = model.translate(["one two."], to="es")
    assert "".join(found.tokens).strip() == found.text
    assert len(found.token_scores) == len(found.tokens) + 1
    assert found.log_prob == pytest.approx(sum(found.token_scores))
    assert found.score == pytest.approx(found.log_prob / len(found.token_scores))
    assert (found.ending, found.remarks, found.problem, found.others) == ("end", (), "", ())


def test_the_attention_lies_on_the_word_that_is_translated(model: Pipeline) -> None:
    [found] = model.translate(["six two nine."], to="de", attention=True)
    assert found.attention is not None
    weights, rows, columns = found.attention.of_words(layer=-1)
    assert rows == ("sechs", "zwei", "neun", ".", "</s>")
    assert columns == ("<2de>", "six", "two", "nine", ".", "</s>")
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
    heads, names, _, _ = found.attention.every_head()
    assert (heads.shape, names[-1]) == ((8, 5, 6), "layer 2, head 4")
    best = heads[:, :3, 1:4].max(0).argmax(1)
    assert best.tolist() == [0, 1, 2]  # some head looks where each word comes from
    with pytest.raises(ValueError, match=r"layer: expected 1 to 2; got 3"):
        found.attention.of(layer=3)


def test_words_gather_their_tokens() -> None:
    weights = np.array([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]], np.float32)
    rows = (Piece("ch", 0, 2), Piece("at", 2, 4), Piece("</s>", 4, 4))
    columns = (Piece(" ", 0, 0), Piece("cat", 0, 3), Piece("s", 3, 4))
    merged, outputs, sources = by_words(weights, "chat", "cats", rows, columns)
    assert (outputs, sources) == (("chat", "</s>"), ("cats",))
    np.testing.assert_allclose(merged, [[1.0], [1.0]], atol=1e-6)
    apart = (Piece("ch", 0, 2), Piece("at", 3, 5), rows[2])
    merged, outputs, _ = by_words(weights, "ch at", "cats", apart, (Piece("c", 0, 1), *columns[1:]))
    assert outputs == ("ch", "at", "</s>")


def test_other_results_come_best_first(model: Pipeline) -> None:
    [found] = model.translate(["one two."], to="es", nbest=7)
    assert len(found.all) == 7
    scores = [each.score for each in found.all]
    assert scores == sorted(scores, reverse=True)
    assert len({each.text for each in found.all}) == 7


def test_prefixes_and_forbidden_words_are_kept_to(model: Pipeline) -> None:
    assert model.translate(["one two."], to="es", prefix="nueve")[0].text.startswith("nueve")
    assert "dos" not in model.translate(["one two."], to="es", forbidden=["dos"])[0].text


def test_a_forbidden_word_is_not_spelled_otherwise(model: Pipeline) -> None:
    tokenizer = model.tokenizers["target"]
    whole, apart = tokenizer.encode("dos", end=False), [tokenizer.pieces.index(each) for each in "Ġdos"]
    assert len(whole) == 1
    asked: list[Any] = []

    def search(places: Any, spellings: Any) -> Any:
        """Says the word in one piece, then letter by letter, then something else; another source never says it."""
        asked.append((list(places), [list(each) for each in spellings]))
        spelled = (whole, apart, tokenizer.encode("dosis", end=False))
        tokens = next(each for each in spelled if each not in asked[-1][1])
        return [[Hypothesis(tokens if place == 0 else [5], 0.0, 0.0, [], "end")] for place in places]

    found = without(["dos"], 2, tokenizer, search)
    assert asked == [([0, 1], [whole]), ([0], [whole, apart])]
    assert tokenizer.decode(found[0][0].tokens) == "dosis"
    asked.clear()
    without(["dos"], 1, tokenizer, search, begun=4)  # it was asked for as the beginning, and stands
    assert len(asked) == 1
    with pytest.raises(Misuse, match=r"forbidden: expected words; got ' '"):
        model.translate(["one."], to="es", forbidden=[" "])


def test_a_long_text_is_cut_at_its_sentences_and_put_together_again(model: Pipeline, monkeypatch: Any) -> None:
    monkeypatch.setattr(type(model), "longest", property(lambda self: 9))
    text = "one two three.\n\nFour five."
    [whole] = model.translate([text], to="es", nbest=2)
    parts = model.translate(["one two three.", "Four five."], to="es", nbest=2)
    assert whole.text == f"{parts[0].text}\n\n{parts[1].text}"
    assert whole.others[0].text == f"{parts[0].others[0].text}\n\n{parts[1].others[0].text}"
    assert whole.log_prob == pytest.approx(sum(each.log_prob for each in parts))
    assert [each.text for each in whole.parts] == [each.text for each in parts]
    with pytest.raises(Misuse, match=r"too long: \d+ tokens, and at most 9 tokens are taken at once"):
        model.translate([text], to="es", cut="never")


def test_what_is_too_long_is_refused_with_its_limit_and_the_rest_is_done(model: Pipeline) -> None:
    endless = "one " * 300_000
    found = model.translate(["one.", endless, "two."], to="es", keep_problems=True)
    assert [each.text for each in found] == ["uno.", "", "dos."]
    assert found[1].problem.startswith("a sentence of 1,199,999 characters ('one one one")
    assert found[1].problem.endswith("and at most 512 tokens are taken at once")
    with pytest.raises(Misuse, match=r"text 2 of 3: a sentence of 1,199,999 characters"):
        model.translate(["one.", endless, "two."], to="es")
    lines = model.translate(["one two.\nthree."], to="es", cut="never")[0]
    assert lines.problem == ""
    assert lines.parts == ()


def test_a_sentence_that_is_too_long_is_cut_at_its_clauses_and_that_is_told(model: Pipeline, monkeypatch: Any) -> None:
    monkeypatch.setattr(type(model), "longest", property(lambda self: 9))
    first, second = "one two three four;", "five six seven."
    [whole] = model.translate([f"{first}  {second}"], to="es")
    parts = model.translate([first, second], to="es")
    assert whole.text == f"{parts[0].text}  {parts[1].text}"
    note = "a sentence of more than 9 tokens ('one two three four;  five six …') was cut into 2"
    assert whole.remarks[0] == note
    assert whole.record()["remarks"][0] == note
    assert model.translate(["one two."], to="es")[0].notes == ()
    [endless] = model.translate(["one" * 40], to="es")
    assert "".join(each.source for each in endless.parts) == "one" * 40


def test_languages_are_those_of_the_model(model: Pipeline) -> None:
    assert model.languages == ("es", "de")
    with pytest.raises(Misuse, match=r"unknown language 'fr'.*\(known: de, es\)"):
        model.translate(["one."], to="fr")
    with pytest.raises(Misuse, match=r"say into which one, with to= \(--to\); this model knows de, es"):
        model.translate(["one."])


def test_half_a_surrogate_is_no_text(model: Pipeline) -> None:
    with pytest.raises(ValueError, match=r"half a surrogate pair \(U\+D800\) at character 0 is no text"):
        model.translate(["\ud800"], to="es")


def test_text_of_unknown_signs_is_translated_and_remarked_upon(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tokenizer = Tokenizer.train(["ab ba"], TokenizerSettings(kind="characters", vocabulary=10, min_count=1))
    sizes = Sizes(source=tokenizer.vocabulary, target=tokenizer.vocabulary)
    network = build(SMALL, sizes, "translate")
    save_folder(tmp_path, network, task="translate", tokenizers={"source": tokenizer, "target": tokenizer})
    [found] = regard.load(tmp_path).translate(["☃☃☃"])
    assert found.unknown == 1
    assert "the model does not know 100% of the source's tokens" in found.remarks


def test_weights_that_are_no_numbers_are_an_error_in_a_sentence(folder: Path) -> None:
    broken = regard.load(folder)
    with torch.no_grad():
        next(broken.model.parameters()).fill_(torch.nan)
    with pytest.raises(Failure, match=r"the model gives no probabilities: there is a NaN among its logits"):
        broken.translate(["one."], to="es")


def test_a_model_without_attention_says_so(tmp_path: Path, folder: Path) -> None:
    tokenizer = regard.load(folder).tokenizers["source"]
    plain = RecurrentSettings(attention=None, width=8, embedding=8)
    sizes = Sizes(source=tokenizer.vocabulary, target=tokenizer.vocabulary)
    both = {"source": tokenizer, "target": tokenizer}
    save_folder(tmp_path, build(plain, sizes, "translate"), task="translate", tokenizers=both)
    loaded = regard.load(tmp_path)
    for beam in (1, 3):
        with pytest.raises(Misuse, match=r"this model has no attention to show"):
            loaded.translate(["one."], to="es", attention=True, beam=beam)


def test_bfloat16_says_nearly_always_the_same(folder: Path, model: Pipeline) -> None:
    quick = regard.load(folder, precision="bfloat16")
    assert sum(isinstance(each, Halved) for each in quick.model.modules()) > 10
    texts = [f"{a} {b} {c}." for a in ("one", "six") for b in ("two", "ten", "nine") for c in ("four", "eight")]
    one, other = (each.translate(texts, to="de") for each in (model, quick))
    assert [each.text for each in one] == [each.text for each in other]
    assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=0.02)
    assert [each.score for each in one] != [each.score for each in other]
    with pytest.raises(Misuse, match=r"unknown precision 'bf16'; did you mean 'bfloat16'\?"):
        regard.load(folder, precision="bf16")  # type: ignore[arg-type]


def test_packed_says_the_same_to_the_last_digit_but_one(folder: Path, model: Pipeline) -> None:
    quick = regard.load(folder, precision="packed")
    assert sum(isinstance(each, Packed) for each in quick.model.modules()) > 10
    texts = [f"{a} {b} {c}." for a in ("one", "six") for b in ("two", "ten", "nine") for c in ("four", "eight")]
    one, other = (each.translate(texts, to="de", nbest=3) for each in (model, quick))
    assert [[each.text for each in found.all] for found in one] == [
        [each.text for each in found.all] for found in other
    ]
    assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-5)
    layer = next(each for each in quick.model.modules() if isinstance(each, Packed))
    x = torch.randn(40, 1, layer.in_features)
    with torch.inference_mode():
        torch.testing.assert_close(layer(x), layer.own(x), rtol=1e-5, atol=1e-5)
    assert layer(x).requires_grad  # whoever differentiates gets the plain product
    assert regard.load(folder, precision="auto").translate(["one."], to="es")[0].text == "uno."


def test_in_bfloat16_the_best_logits_are_those_of_float32(folder: Path) -> None:
    plain, quick = (regard.load(folder).model for _ in range(2))
    source = torch.tensor([[8, 9, 10, 3]])
    with torch.inference_mode():
        memory = plain.encode(source)  # type: ignore[operator]
        h = torch.randn(3, 48, generator=torch.Generator().manual_seed(0))
        exact = plain.output(h)  # type: ignore[operator]
        in_precision(quick, "bfloat16")
        rounded = quick.output(h)  # type: ignore[operator]
    assert memory is not None
    best = exact.topk(8, -1)
    torch.testing.assert_close(rounded.gather(1, best.indices), best.values, rtol=1e-5, atol=1e-5)
    assert not torch.equal(rounded, exact)


@pytest.mark.parametrize(("asked", "said"), [
    ({"beam": 2, "nbest": 3}, r"nbest 3 is more than the beam of 2 can give"),
    ({"beem": 2}, r"beem"),
], ids=str)  # fmt: skip
def test_settings_that_cannot_be_are_refused(model: Pipeline, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse, match=said):
        model.translate(["one."], to="es", **asked)
    assert model.translate(["one."], to="es", settings=SearchSettings(beam=1))[0].text == "uno."
