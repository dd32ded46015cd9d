"""How an output came about: the candidates are the model's, and the derivation's numbers too."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard import cli
from regard.decoding import SearchSettings
from regard.pipeline.explaining import explain, lines
from regard.pipeline.looking import inside
from regard.pipeline.model import Pipeline, load
from regard.support.errors import Misuse


def test_candidates_are_those_of_the_model_at_each_step(model: Pipeline) -> None:
    told = explain(model, "two six.", to="es", candidates=3)
    network: Any = model.model
    tokenizer = model.tokenizers["target"]
    with torch.inference_mode():
        shares = network(torch.tensor([told.source]), torch.tensor([told.said])).softmax(-1)[0]
    assert len(told.steps) == len(told.result.token_scores) == len(told.said)
    for place, step in enumerate(told.steps):
        best = shares[place].topk(3)
        assert [name for name, _ in step.candidates] == tokenizer.shown(best.indices.tolist())
        assert [share for _, share in step.candidates] == pytest.approx(best.values.tolist(), abs=1e-5)
        assert step.probability == pytest.approx(float(torch.tensor(told.result.token_scores[place]).exp()), abs=1e-4)
    assert told.steps[-1].token == "</s>"
    assert "rank" in lines(told)


def test_the_derivation_of_a_step_ends_in_its_probabilities(model: Pipeline) -> None:
    told = explain(model, "two six.", to="es", settings=SearchSettings(beam=1))
    for step in (0, 2):
        derivation = told.derivation(step)
        token = model.tokenizers["target"].pieces.index("</s>") if step == len(told.steps) - 1 else None
        values = derivation["p"].array.reshape(-1)
        best = int(values.argmax()) if token is None else token
        assert values[best] == pytest.approx(told.steps[step].probability, abs=1e-5)
        assert values.sum() == pytest.approx(1, abs=1e-5)
    with pytest.raises(Misuse, match=r"step: expected 1 to 4, as many as the output has; got 9"):
        told.derivation(8)


def test_explaining_changes_no_answer(model: Pipeline) -> None:
    before = model.translate(["nine four."], to="de")[0]
    explained = explain(model, "nine four.", to="de").result
    assert (explained.text, explained.token_scores) == (before.text, pytest.approx(before.token_scores, abs=1e-5))
    with pytest.raises(Misuse, match=r"there is nothing to explain: the text is empty"):
        explain(model, "  ", to="de")


def test_the_command_shows_steps_a_map_a_page_and_a_picture(folder: Path, tmp_path: Path, capsys: Any) -> None:
    page, picture = tmp_path / "d.html", tmp_path / "a.png"
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main([
            "explain", str(folder), "two six.", "--to", "es", "--html", str(page), "--picture", str(picture), "--step",
            "2", "--threads", "1",
        ])  # fmt: skip
    out = capsys.readouterr().out
    assert "two six.\ndos seis.\n" in out
    assert "likeliest" in out
    assert "█ from .7" in out
    assert "Step 2 of two six. → dos seis." in page.read_text()
    assert picture.read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(SystemExit, match=r"^2$"):
        cli.main(["explain", str(folder), "two.", "--to", "es", "--step", "7", "--threads", "1"])
    assert "step: expected 1 to 3" in capsys.readouterr().err


def test_pictures_are_drawn_by_the_command(folder: Path, tmp_path: Path, capsys: Any) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("money 1 0 0\nriver 0 1 0\nbank 0.6 0.6 0.2\n")
    for command in (
        ["alignment", str(folder), "two six.", "--to", "es"],
        ["alignment", str(folder), "two six.", "--to", "es", "--every-head", "--layer", "2"],
        ["heads", str(folder), "two six.", "--to", "es", "--word", "six"],
        ["words", "one two", "two six", "--model", str(folder), "--to", "es"],
        ["words", "money bank", "river bank", "--vectors", str(vectors)],
        ["words", "money bank", "--vectors", str(vectors), "--no-attention"],
    ):
        picture = tmp_path / "p.svg"
        with pytest.raises(SystemExit, match=r"^0$"):
            cli.main(["plot", *command, "-o", str(picture), "--threads", "1"])
        text = picture.read_text()
        assert "<svg" in text
        assert any(word in text for word in ("six", "bank"))
        picture.unlink()
    out = capsys.readouterr().out
    assert "six → " in out
    looked = {line.split(":")[0]: float(line[-4:]) for line in out.splitlines() if "most by" in line}
    assert set(looked) == {"six → two", "two → six", "six → .", ". → six"}
    heads = inside(load(folder), "two six.", "es").attention.every_head()[0]
    place = heads.shape[1] - 3  # the tag, two, six, the full stop, the end
    assert looked["six → two"] == pytest.approx(heads[:, place, place - 1].max(), abs=0.005)
    assert looked["two → six"] == pytest.approx(heads[:, place - 1, place].max(), abs=0.005)
    for wrong, said in (
        (["words", "money bank"], "name a file of --vectors, or a --model"),
        (["words", "money tree", "--vectors", str(vectors)], "vectors: there are none for tree"),
        (["words", "money bank", "--vectors", str(vectors), "-o", str(tmp_path / "p.gif")], "written as png, svg, pdf"),
        (["alignment", str(folder), " ", "--to", "es"], "there are no words in the text"),
        (["alignment", str(folder), "one. " * 600, "--to", "es"], "and at most 512 tokens are taken at once"),
        (["image", str(folder), "x.png"], "this model was built to translate; a captioner is needed"),
    ):
        with pytest.raises(SystemExit, match=r"^2$"):
            cli.main(["plot", *wrong])
        assert said in capsys.readouterr().err
