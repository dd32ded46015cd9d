"""What cannot be measured, drawn or written so is told in a line, before any work."""

from pathlib import Path
from typing import Any

import pytest

from regard import cli
from regard.evaluation.pictures import kind_of
from regard.pipeline.model import Pipeline


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands run: pairs, and files that are none."""
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("one two.\tuno dos.\nnine two.\tnueve dos.\n")
    Path("empty.tsv").write_text("")
    Path("tags.txt").write_text("one\tA\n\n")
    return tmp_path


@pytest.mark.parametrize(("command", "said"), [
    (["evaluate", "M", "empty.tsv"], "empty.tsv: there is nothing in it to measure a model on"),
    (["evaluate", "M", "{tagged: tags.txt}"], "tags.txt: holds tags, and this model was built to translate"),
    (["evaluate", "M", "pairs.tsv", "--measure", "blue"], "unknown measure of text 'blue'; did you mean 'bleu'?"),
    (["evaluate", "M", "pairs.tsv", "--tokenize", "13b"], "unknown tokenizer '13b'; did you mean '13a'?"),
    (["evaluate", "M", "pairs.tsv", "--report", "no/r.html"], "no/r.html: there is no folder no"),
    (["evaluate", "M", "pairs.tsv", "--plot", "p.gif"], "p.gif: pictures are written as png, svg, pdf"),
    (["evaluate", "M", "pairs.tsv", "--to", "fr"], "unknown language 'fr'"),
    (["compare", "M", "--data", "pairs.tsv"], "compare: expected two models or more; got 1"),
    (["compare", "M", "M", "--data", "pairs.tsv", "--plot", "p"], "p: pictures are written as png, svg, pdf"),
    (["explain", "M", "one.", "--to", "es", "--layer", "9"], "layer: expected 1 to 2; got 9"),
    (["explain", "M", "one.", "--to", "es", "--head", "0"], "head: expected 1 to 4; got 0"),
    (["explain", "M", "one.", "--to", "es", "--step", "1", "--only", "zzz"], "unknown step 'zzz'"),
    (["explain", "M", "one.", "--to", "es", "--html", "no/d.html"], "no/d.html: there is no folder no"),
    (["explain", "M", "one " * 600, "--to", "es"], "tokens, and at most 512 tokens are taken at once"),
    (["plot", "alignment", "M", "one.", "--to", "es", "--layer", "3"], "layer: expected 1 to 2; got 3"),
    (["plot", "heads", "M", "one.", "--to", "es", "--layer", "7"], "layer: expected 1 to 1; got 7"),
    (["translate", "-m", "M", "--to", "es", "-o", "no/out.txt", "one."], "no/out.txt: no such file or directory"),
], ids=lambda each: each if isinstance(each, str) else " ".join(each)[:60])  # fmt: skip
def test_what_cannot_be_is_told_in_a_line_before_the_work(
    command: list[str], said: str, folder: Path, data: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    plain = Pipeline.translate

    def translate(self: Pipeline, texts: Any, **rest: Any) -> Any:
        asked.extend(texts)
        return plain(self, texts, **rest)

    monkeypatch.setattr(Pipeline, "translate", translate)
    with pytest.raises(SystemExit, match=r"^[12]$"):
        cli.main([str(folder) if each == "M" else each for each in command] + ["--threads", "1"])
    told = capsys.readouterr().err
    assert said in told.splitlines()[-1]
    assert not [text for text in asked if "two" in text] or "--to" in command
    assert "Traceback" not in told


def test_a_model_is_scored_drawn_and_compared(folder: Path, data: Path, capsys: Any) -> None:
    more = ["--to", "es", "--threads", "1", "--quiet"]
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main(["evaluate", str(folder), "pairs.tsv", "--ensemble", str(folder), "--plot", "p.svg", "--report",
                  "r.html", "--json", "o.json", "--perplexity", *more])  # fmt: skip
    out = capsys.readouterr().out
    assert "BLEU" in out
    assert "100.00" in out
    assert "perplexity" in out
    assert kind_of(Path("p.svg")) == "svg"
    assert Path("p.svg").read_text().startswith("<?xml")
    assert "nueve dos." in Path("r.html").read_text()
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main(
            ["compare", str(folder), str(folder), "--data", "pairs.tsv", "--measure", "wer", "--perplexity", *more]
        )
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.split("\n\n")[2].splitlines()] == [
        "perplexity", "1:en-es-de", "2:en-es-de",
    ]  # fmt: skip
    assert "errors a word" in out
    assert "as good as 1:en-es-de to the last digit" in out
