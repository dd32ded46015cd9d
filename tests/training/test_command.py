"""`regard train` on the command line."""

from pathlib import Path

import pytest

from regard import cli
from regard.models.folder import load_folder

SMALL = [
    "--set", "training.epochs=3", "--set", "training.evaluate_every=3", "--set", "network.width=4", "--quiet",
    "--device", "cpu", "--threads", "1",
]  # fmt: skip


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", *arguments])
    return int(ended.value.code or 0)


def test_a_shipped_configuration_trains_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("two-pairs", *SMALL, "--output", "here", "--seed", "5") == 0
    loaded = load_folder(tmp_path / "here")
    assert loaded.about["seed"] == 5
    assert loaded.model.settings.width == 4  # type: ignore[attr-defined]
    assert len(loaded.tokenizers["source"].pieces) == 4 + 5
    assert len(loaded.tokenizers["target"].pieces) == 4 + 5


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["two-pirs"], "regard: two-pirs: there is no such file"),
        (["two-pairs", "--set", "training.epoch=3"], "unknown key 'epoch'; did you mean 'epochs'?"),
        (["two-pairs", "--set", "data.train=nowhere.tsv"], "regard: nowhere.tsv: "),
    ],
)
def test_a_misuse_is_told_in_a_line_without_a_traceback(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments, "--quiet") == 2
    assert told in capsys.readouterr().err
