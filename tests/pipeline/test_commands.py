"""regard translate over lines: in order, whatever is wrong with some of them, and gone on with after a stop."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regard import cli
from regard.data.lines import Undecodable
from regard.pipeline.lines import FromFile, FromStream, ToFile
from regard.pipeline.model import Pipeline
from regard.support.errors import Failure


def run(*arguments: str, status: int = 0) -> None:
    """The command in this process."""
    with pytest.raises(SystemExit, match=f"^{status}$"):
        cli.main([*arguments, "--threads", "1"])


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts bytes on standard input."""

    def put(text: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))

    return put


def test_lines_are_translated_in_order_and_an_empty_one_stays_empty(folder: Path, given: Any, capsys: Any) -> None:
    given(b"one two.\n\r\n\nseven one nine.\nthree.")
    run("translate", "--model", str(folder), "--to", "es")
    assert capsys.readouterr().out == "uno dos.\n\n\nsiete uno nueve.\ntres.\n"


def test_what_is_wrong_is_told_by_line_and_the_rest_is_done(folder: Path, given: Any, capsys: Any) -> None:
    given(b"one.\nfive \xff six.\n" + b"one " * 300_000 + b"\ntwo.\n")
    run("translate", "-m", str(folder), "--to", "de", status=1)
    out, told = capsys.readouterr()
    assert out == "eins.\n\n\nzwei.\n"
    assert told.splitlines() == [
        "regard: line 2: byte 0xff at place 6 is not UTF-8",
        "regard: line 3: a sentence of 1,199,999 characters ('one one one one one one one on…'), and at most 512 "
        "tokens are taken at once",
        "regard: 2 of 4 lines could not be used; the others are done",
    ]


@pytest.mark.parametrize(("arguments", "said"), [
    (["--to", "fr"], "unknown language 'fr'. (known: de, es)"),
    ([], "say into which one, with to= (--to); this model knows de, es"),
    (["--to", "es", "--format", "xml"], "--format: unknown choice 'xml'. (known: json, text, tsv)"),
    (["--to", "es", "--set", "no_repeat=x"], "no_repeat: expected a whole number, came 'x'"),
    (["--to", "es", "--cut", "nevr"], "--cut: unknown choice 'nevr'; did you mean 'never'?"),
    (["--to", "es", "--device", "gpu"], "--device gpu: expected cpu, cuda, cuda:1 or mps"),
    (["--to", "es", "--input", "x.txt"], "give texts or --input, not both"),
    (["--to", "es", "--beam", "2", "--nbest", "5"], "nbest 5 is more than the beam of 2 can give; raise the beam"),
], ids=str)  # fmt: skip
def test_misuse_is_one_line(arguments: list[str], said: str, folder: Path, capsys: Any) -> None:
    run("translate", "one.", "-m", str(folder), *arguments, status=2)
    out, told = capsys.readouterr()
    assert out == ""
    assert said in told
    assert len(told.splitlines()) == 1


def test_a_folder_that_is_none_is_said_so(tmp_path: Path, capsys: Any) -> None:
    run("translate", "one.", "-m", str(tmp_path / "nothing"), status=2)
    assert capsys.readouterr().err == f"regard: {tmp_path / 'nothing'}: no such folder\n"


def test_formats_hold_scores_ranks_and_alignments(folder: Path, capsys: Any) -> None:
    texts = ["one two.", "", "nine."]
    run("translate", *texts, "-m", str(folder), "--to", "es", "-f", "tsv", "--nbest", "2", "--alignment")
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [["1", "1"], ["1", "2"], ["2", "1"], ["3", "1"], ["3", "2"]]
    assert rows[0][3] == "uno dos."
    assert float(rows[0][2]) > float(rows[1][2])
    assert len(rows[0][4].split()) == 3
    run("translate", *texts, "-m", str(folder), "--to", "es", "-f", "json", "--alignment")
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["text"] for each in records] == ["uno dos.", "", "nueve."]
    assert records[0]["alignment"]["output"] == ["uno", "dos", ".", "</s>"]
    assert sum(records[0]["alignment"]["weights"][0]) == pytest.approx(1, abs=1e-3)
    assert len(records[0]["token_scores"]) == len(records[0]["tokens"]) + 1
    run("translate", *texts, "-m", str(folder), "--to", "es", "--nbest", "2")
    assert len(capsys.readouterr().out.split("\n")) == 7  # two lines each, empty ones where there are fewer


def test_a_file_is_gone_on_with_where_it_was_stopped(
    folder: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.pipeline.lines.AT_ONCE", 3)
    lines = [f"{word}." for word in ("one", "two", "three", "four", "five", "six", "seven", "eight")]
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("\n".join(lines))
    command = ["translate", "-m", str(folder), "--to", "es", "-i", str(source), "-o", str(output)]
    asked: list[str] = []
    plain = Pipeline.translate

    def stopped(self: Pipeline, texts: Any, **rest: Any) -> Any:
        asked.extend(texts)
        if "seven." in texts and len(asked) > 6 and not output.with_name("out.txt.stopped").exists():
            output.with_name("out.txt.stopped").touch()
            raise Failure("the power went out")
        return plain(self, texts, **rest)

    monkeypatch.setattr(Pipeline, "translate", stopped)
    run(*command, status=1)
    assert not output.exists()
    assert (tmp_path / "out.txt.part").read_text() == "uno.\ndos.\ntres.\ncuatro.\ncinco.\nseis.\n"
    asked.clear()
    run(*command)
    assert asked == ["seven.", "eight."]
    assert output.read_text().splitlines() == ["uno.", "dos.", "tres.", "cuatro.", "cinco.", "seis.", "siete.", "ocho."]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.txt", "out.txt", "out.txt.stopped"]
    assert "going on behind line 6" in capsys.readouterr().err


def test_a_file_is_whole_though_a_line_could_not_be_used(
    folder: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.pipeline.lines.AT_ONCE", 1)
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(b"one.\n\xff\ntwo.\n")
    command = ["translate", "-m", str(folder), "--to", "es", "-i", str(source), "-o", str(output)]
    run(*command, status=1)
    assert output.read_text() == "uno.\n\ndos.\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.txt", "out.txt"]
    assert "1 of 3 lines could not be used; the others are done" in capsys.readouterr().err

    plain = Pipeline.translate
    monkeypatch.setattr(Pipeline, "translate", _stopped_at("two.", plain))
    run(*command, status=1)
    monkeypatch.setattr(Pipeline, "translate", plain)
    run(*command, status=1)  # what was told before the stop counts
    assert "1 of 3 lines could not be used; the others are done" in capsys.readouterr().err


def _stopped_at(text: str, plain: Any) -> Any:
    def stopped(self: Pipeline, texts: Any, **rest: Any) -> Any:
        if text in texts:
            raise Failure("the power went out")
        return plain(self, texts, **rest)

    return stopped


def test_a_part_of_something_else_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for made_of, found in (({"beam": 5}, 0), ({"beam": 5}, 2), ({"beam": 1}, 0)):
        file = ToFile(path, made_of)
        assert file.done == found
        file.write(["a\n", "b\n"], 2)
        file.__exit__(KeyboardInterrupt)
    for fresh, rest in ((True, "a\nb\n"), (False, "")):  # asked for; cut shorter than it is noted to be
        (tmp_path / "out.part").write_text(rest)
        file = ToFile(path, {"beam": 1}, fresh=fresh)
        assert file.done == 0
        file.__exit__(KeyboardInterrupt)


def test_lines_of_a_pipe_come_as_they_are_there() -> None:
    groups = list(FromStream(io.BytesIO(b"a\nb\r\n\xfe\n\nlast")).groups())
    flat = [line for group in groups for line in group]
    assert flat[:2] == ["a", "b"]
    assert isinstance(flat[2], Undecodable)
    assert flat[3:] == ["", "last"]
    assert list(FromStream(io.BytesIO(b"")).groups()) == []


def test_a_mark_of_byte_order_is_no_text_and_trouble_in_reading_is_told() -> None:
    assert [*FromStream(io.BytesIO(b"\xef\xbb\xbfa\n\xef\xbb\xbfb")).groups()] == [["a", "\ufeffb"]]

    class Torn(io.BytesIO):
        def __next__(self) -> bytes:
            if self.tell():
                raise IsADirectoryError(21, "Is a directory")
            return super().__next__()

    groups = FromStream(Torn(b"a\nb\n")).groups()
    assert next(groups) == ["a"]
    with pytest.raises(Failure, match=r"standard input: cannot be read: Is a directory"):
        next(groups)


def test_nothing_to_read_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    run("translate", "-m", str(folder), "--to", "es", status=2)
    assert "standard input is closed" in capsys.readouterr().err


def test_how_far_a_file_is_goes_by_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.pipeline.lines.AT_ONCE", 2)
    (tmp_path / "in.txt").write_text("äb\ncd\nefgh\nijk\nl")
    reader = FromFile(tmp_path / "in.txt")
    assert [reader.share() for _ in reader.groups()] == [7 / 17, 16 / 17, 1.0]


def test_a_broken_pipe_ends_quietly(folder: Path) -> None:
    code = (
        "import sys; from regard.cli import main\n"
        f"main(['translate', '-m', {str(folder)!r}, '--to', 'es', '--threads', '1'])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"one.\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"uno.\n"  # while standard input is still open
        process.stdout.close()
        process.stdin.write(b"two.\n" * 3000)
        process.stdin.close()
        assert process.wait(60) in (1, 141)
        assert process.stderr.read() == b""
