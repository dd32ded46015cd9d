"""What is told while a model trains, and what is written down."""

import io
from pathlib import Path

import pytest

from regard.evaluation.evaluating import Sample
from regard.support.errors import Misuse
from regard.training import recording
from regard.training.telling import State, Teller


def test_a_state_reads_as_one_line() -> None:
    state = State(epoch=3.2, step=4100, loss=2.3127, speed=31_400, rate=0.0004, still=185)
    assert str(state) == "epoch 3.20, step 4,100: loss 2.313, 31,000 tokens a second, rate 0.0004, 3 min 5 s still"


def test_evaluations_are_a_table_with_one_head_and_samples_show_what_was_expected() -> None:
    stream = io.StringIO()
    with Teller(stream=stream) as teller:
        for bleu in ("1.00", "12.50"):
            teller.row({"epoch": "1.00", "BLEU": bleu})
        teller.samples((Sample("a cat", "un chat", "un chat"), Sample("a dog", "un chat", "un chien")))
    assert stream.getvalue().splitlines() == [
        "    epoch       BLEU",
        "     1.00       1.00",
        "     1.00      12.50",
        "    a cat",
        "      → un chat",
        "    a dog",
        "      → un chat",
        "      = un chien",
    ]


def test_a_quiet_teller_says_nothing() -> None:
    stream = io.StringIO()
    with Teller(quiet=True, stream=stream) as teller:
        teller.say("a")
        teller.row({"a": "b"})
        teller.update(State(1, 1, 1, 1, 1, None))
    assert stream.getvalue() == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_line_lives_and_what_is_said_stays_above_it() -> None:
    stream = Terminal()
    with Teller(stream=stream) as teller:
        teller.update(State(epoch=1, step=7, loss=1, speed=10, rate=1, still=None))
        teller.say("an evaluation")
    assert "epoch 1.00, step 7" in stream.getvalue()
    assert "an evaluation" in stream.getvalue()


def test_figures_that_are_not_finite_are_null_and_cut_lines_are_left_out(tmp_path: Path) -> None:
    recorder = recording.Recorder(tmp_path, step=0, tensorboard=False)
    recorder("train", 1, {"loss": float("nan"), "rate": 0.5})
    recorder("train", 2, {"loss": 1.5})
    with (tmp_path / recording.METRICS).open("a") as file:
        file.write('{"step": 3, "ki')
    assert recording.read(tmp_path / recording.METRICS) == [
        {"step": 1, "kind": "train", "loss": None, "rate": 0.5},
        {"step": 2, "kind": "train", "loss": 1.5},
    ]
    recording.Recorder(tmp_path, step=1, tensorboard=False)
    assert [each["step"] for each in recording.read(tmp_path / recording.METRICS)] == [1]


def test_a_picture_shows_what_there_is(tmp_path: Path) -> None:
    lines = [{"step": n, "kind": "train", "loss": 3 / n} for n in range(1, 9)]
    recording.picture(lines, tmp_path / "a.svg", "bleu")
    dev = [{"step": n, "kind": "dev", "loss": 4 / n, "bleu": 5.0 * n} for n in (4, 8)]
    recording.picture(lines + dev, tmp_path / "b.svg", "bleu")
    assert (tmp_path / "b.svg").stat().st_size > (tmp_path / "a.svg").stat().st_size > 1000
    recording.picture([], tmp_path / "c.svg", "loss")


def test_tensorboard_is_asked_for_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(Misuse, match=r"training.tensorboard: TensorBoard is not installed; pip install tensorboard"):
        recording.Recorder(tmp_path, step=0, tensorboard=True)
