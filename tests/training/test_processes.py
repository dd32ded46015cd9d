"""Several processes learn what one learns, go on as any other number of them, and end together."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.support.errors import Misuse
from regard.training import checkpoint
from regard.training.processes import device_named
from tests.training.conftest import Warm, config, ranks

TWENTY: dict[str, Any] = {
    "training": {"steps": 20, "epochs": 20, "tell_every": 1e-9, "clip": 0.5},
    "network": {"dropout": 0.0},
}


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def losses(output: Path) -> dict[int, float]:
    """Of each reading, by its step."""
    lines = [json.loads(line) for line in (output / "training" / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if line["kind"] == "train"}


def means(every: dict[int, float], steps: list[int]) -> list[float]:
    """The means of the losses of single steps over the same spans as other readings."""
    spans = zip([0, *steps[:-1]], steps, strict=True)
    return [sum(every[step] for step in range(a + 1, b + 1)) / (b - a) for a, b in spans]


@pytest.mark.parametrize("shard", [False, True])
def test_two_processes_give_the_losses_of_one(warm: Warm, pairs: Path, tmp_path: Path, shard: bool) -> None:
    own = TWENTY | {"training": TWENTY["training"] | {"shard_optimizer": shard}}
    assert warm.run(config(pairs, tmp_path / "one", **own)) == [0], warm.said()
    assert warm.run(config(pairs, tmp_path / "two", **own), ranks(2, port())) == [0, 0], warm.said()
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert sorted(one) == list(range(1, 21))
    assert list(two.values()) == pytest.approx(means(one, list(two)), abs=1e-6)
    assert len(two) >= 2


def test_another_number_of_processes_continues_the_epoch(warm: Warm, pairs: Path, tmp_path: Path) -> None:
    """Ten steps by two processes and ten by one are the twenty of one, in the midst of an epoch."""
    assert warm.run(config(pairs, tmp_path / "one", **TWENTY)) == [0], warm.said()
    half = TWENTY | {"training": TWENTY["training"] | {"steps": 10}}
    assert warm.run(config(pairs, tmp_path / "both", **half), ranks(2, port())) == [0, 0], warm.said()
    position = checkpoint.read(tmp_path / "both")["stream"]  # type: ignore[index]
    assert position["batch"] > 0
    assert warm.run(config(pairs, tmp_path / "both", **TWENTY), [{"options": {"anyway": True}}]) == [0], warm.said()
    one, both = losses(tmp_path / "one"), losses(tmp_path / "both")
    later = [step for step in both if step > 10]
    assert [both[step] for step in later] == pytest.approx([one[step] for step in later], abs=1e-6)
    assert len(later) == 10


def test_a_process_that_dies_ends_the_others_with_an_error(warm: Warm, pairs: Path, tmp_path: Path) -> None:
    own = config(pairs, tmp_path, training={"epochs": 500, "evaluate_every": 500, "patience": None})
    runs: list[dict[str, Any]] = ranks(2, port())
    runs[1]["overrides"] = ["training.optimizer.rate=1e30", "training.not_finite=2", "training.clip=0"]
    statuses = warm.run(own, runs)
    assert 0 not in statuses
    assert "not finite" in warm.said()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpu", "expected auto, cpu, cuda, cuda:1 or mps; got 'gpu'"),
        pytest.param(
            "cuda", "this torch sees no GPU", marks=pytest.mark.skipif(torch.cuda.is_available(), reason="it sees one")
        ),
    ],
)
def test_a_device_that_is_not_there_is_told(name: str, said: str) -> None:
    with pytest.raises(Misuse, match=said):
        device_named(name)


def test_a_gpu_has_its_number_and_each_process_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", set_to.append)
    found = [device_named("auto"), device_named("cuda:1"), device_named("cuda", 1), device_named("cpu", 1)]
    assert [str(each) for each in found] == ["cuda:0", "cuda:1", "cuda:1", "cpu"]
    assert [str(each) for each in set_to] == ["cuda:0", "cuda:1", "cuda:1"]
    with pytest.raises(Misuse, match="device: cuda:2 is asked for, and there are 2 GPUs"):
        device_named("cuda:2")
