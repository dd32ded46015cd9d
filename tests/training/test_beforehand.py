"""What is found out before any work starts."""

import sys
from pathlib import Path
from typing import Any

import pytest

from regard.config import settings_from
from regard.support.errors import Misuse
from regard.training import beforehand, shipped
from regard.training.config import Config
from regard.training.running import resolved, train


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"network": {"kind": "recurrent", "input": {"vectors": "nowhere.txt"}}}, "nowhere.txt: there is no such file"),
        ({"network": {"parts": "encoder"}}, "network: parts: the task translate needs 'encoder-decoder'"),
        ({"data": {"tokenizer": {"joint": False}}}, "network: share_embeddings: source and target must have one"),
        ({"training": {"tensorboard": True}}, "TensorBoard is not installed"),
        ({"network": {"kind": "window"}}, "network: kind: a window gives tags or a label"),
    ],
)
def test_nothing_is_read_or_written_for_a_run_that_cannot_be(
    changed: dict[str, Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    (tmp_path / "a.tsv").write_text("a\tb\n" * 20)
    values = {"output": "m", **changed, "data": {"train": "a.tsv", **changed.get("data", {})}}
    with pytest.raises(Misuse, match=told):
        train(values, quiet=True)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", [each for each in shipped.names() if not each.startswith("results/")])
def test_the_network_of_every_shipped_configuration_can_be(name: str) -> None:
    beforehand.check(resolved(shipped.found(name)))


def test_a_missing_corpus_is_told_by_its_name(tmp_path: Path) -> None:
    config = settings_from({"data": {"train": str(tmp_path / "a.tsv")}, "output": str(tmp_path / "m")}, Config)
    with pytest.raises(Misuse, match=r"a\.tsv: there is no such file"):
        train(config, quiet=True)
