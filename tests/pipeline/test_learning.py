"""Losses of several models in one picture, from what their training wrote down."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard import cli
from regard.pipeline.learning import curves
from regard.support.errors import Misuse


def trained(folder: Path, shift: float = 0.0) -> Path:
    (folder / "training").mkdir(parents=True)
    lines: list[dict[str, Any]] = [
        {"step": 1, "kind": "train", "loss": 3 + shift, "rate": 0.1}, {"step": 2, "kind": "train", "loss": 2 + shift},
        {"step": 2, "kind": "dev", "loss": 2.5 + shift, "bleu": 10.0}, {"step": 3, "kind": "train", "loss": None},
        {"step": 3, "kind": "final", "loss": 0.0},
    ]  # fmt: skip
    (folder / "training" / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return folder


def test_curves_are_the_figures_that_were_written_down(tmp_path: Path) -> None:
    one, other = trained(tmp_path / "one"), trained(tmp_path / "other", 1.0)
    assert curves([one]) == {"training": [(1, 3.0), (2, 2.0)], "development": [(2, 2.5)]}
    assert curves([one], "bleu") == {"development": [(2, 10.0)]}
    assert list(curves([one, other])) == [
        "one, training", "one, development", "other, training", "other, development",
    ]  # fmt: skip
    assert curves([one, other])["other, training"] == [(1, 4.0), (2, 3.0)]
    assert len(curves([one, one])) == 4


def test_what_was_not_written_down_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(Misuse, match=r"empty: holds no figures of its training \(training/metrics.jsonl\)"):
        curves([tmp_path / "empty"])
    with pytest.raises(Misuse, match=r"unknown figure 'blue'; did you mean 'bleu'\?"):
        curves([trained(tmp_path / "one")], "blue")


def test_the_command_draws_them(tmp_path: Path, capsys: Any) -> None:
    one, other = trained(tmp_path / "one"), trained(tmp_path / "other", 1.0)
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main(["plot", "loss", str(one), str(other), "-o", str(tmp_path / "l.svg")])
    text = (tmp_path / "l.svg").read_text()
    assert "other, development" in text
    assert "loss a token (nats)" in text
