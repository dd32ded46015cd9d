"""Nothing is lost: a run that was killed, or asked to stop, ends as one that was not."""

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from regard.support.errors import Failure, Misuse
from regard.training import checkpoint
from regard.training.running import train
from tests.training.conftest import Warm, config


def figures(output: Path) -> list[dict[str, Any]]:
    """The evaluations of a run, without what depends on the clock."""
    lines = [json.loads(line) for line in (output / "training" / "metrics.jsonl").read_text().splitlines()]
    timed = {"seconds", "tokens_a_second"}
    return [{k: v for k, v in line.items() if k not in timed} for line in lines if line["kind"] != "train"]


def same_weights(one: Path, other: Path) -> bool:
    """To the bit: those that were saved in the end, and all that the last checkpoint holds."""
    a, b = (load_file(each / "weights.safetensors") for each in (one, other))
    assert a.keys() == b.keys()
    states = [checkpoint.read(each) for each in (one, other)]
    held = [
        [x for part in ("model", "optimizers", "averaging", "random") for x in leaves(state[part])] for state in states
    ]  # type: ignore[index]
    pairs = [*zip(*held, strict=True), *((a[name], b[name]) for name in a)]
    assert len(pairs) > 100
    return all(torch.equal(x, y) for x, y in pairs)


def leaves(state: Any) -> list[torch.Tensor]:
    """All tensors in a nested state."""
    if isinstance(state, torch.Tensor):
        return [state]
    inside = state.values() if isinstance(state, dict) else state if isinstance(state, list) else []
    return [leaf for each in inside for leaf in leaves(each)]


def wait_until(happens: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not happens():
        time.sleep(0.001)


def written(output: Path) -> float:
    """When the checkpoint was written; 0 where there is none."""
    path = checkpoint.path_in(output)
    return path.stat().st_mtime if path.exists() else 0.0


def wait_for_a_random_moment(output: Path, random: Random, kill: int) -> None:
    """At the very beginning, some updates later, or while a file is being written."""
    before = written(output)
    if kill % 5 == 4:
        time.sleep(random.uniform(0, 0.2))
        return
    wait_until(lambda: written(output) > before)
    time.sleep(random.uniform(0, 0.08))
    if kill % 2:
        wait_until(lambda: any((output / "training").glob(".*.part")), 1.0)


@pytest.mark.timeout(600)  # twenty-two starts take long where the machine is busy
def test_a_run_killed_twenty_times_ends_with_the_same_weights_to_the_bit(
    warm: Warm, pairs: Path, tmp_path: Path
) -> None:
    long = {"steps": 90, "epochs": 99, "evaluate_every": 4, "patience": None, "keep_best": 2, "save_every": 1e-9}
    own = {"training": long, "network": {"dropout": 0.2}, "evaluation": {"best": "loss"}}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert warm.run(config(pairs, whole, **own)) == [0], warm.said()
    random, resumed = Random(5), 0
    for kill in range(20):
        (child,) = warm.begin(config(pairs, killed, **own))
        wait_for_a_random_moment(killed, random, kill)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        assert warm.end() == [-signal.SIGKILL], warm.said()
        resumed += "going on from" in warm.said()
    assert warm.run(config(pairs, killed, **own)) == [0], warm.said()
    assert resumed >= 10
    assert "going on from" in warm.said()
    assert same_weights(whole, killed)
    assert figures(whole) == figures(killed)
    final = checkpoint.read(whole)
    assert final is not None
    assert final["best"][0]["step"] > 50  # what was saved came long after most of the kills
    assert sorted(each.name for each in (killed / "training").iterdir()) == sorted(
        each.name for each in (whole / "training").iterdir()
    )


def test_a_run_asked_to_stop_saves_says_where_and_goes_on(warm: Warm, pairs: Path, tmp_path: Path) -> None:
    own = {"training": {"epochs": 40, "patience": None, "evaluate_every": 40}}
    (child,) = warm.begin(config(pairs, tmp_path / "run", **own))
    while not (tmp_path / "run" / "training" / "metrics.jsonl").exists():
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(child, signal.SIGTERM)
    assert warm.end() == [128 + signal.SIGTERM]
    assert f"saved in {checkpoint.path_in(tmp_path / 'run')}, and the same command goes on from there" in warm.said()
    saved = checkpoint.read(tmp_path / "run")
    assert saved is not None
    assert 0 < saved["counters"]["step"] < 300
    assert not saved["counters"]["done"]


def test_other_settings_are_listed_and_refused_unless_asked_for(pairs: Path, tmp_path: Path) -> None:
    train(config(pairs, tmp_path, training={"epochs": 1}), quiet=True)
    longer = config(pairs, tmp_path, training={"epochs": 2, "samples": 1}, seed=7)
    told = r"(?s)--anyway goes on .*training.epochs: it was 1.0, here it is 2.0\n  seed: it was 1, here it is 7$"
    with pytest.raises(Misuse, match=told):
        train(longer, quiet=True)
    steps = checkpoint.read(tmp_path)["counters"]["step"]  # type: ignore[index]
    assert train(longer, quiet=True, anyway=True).steps > steps


def test_a_run_that_is_done_and_a_folder_with_a_model_are_not_trained_over(pairs: Path, tmp_path: Path) -> None:
    values = config(pairs, tmp_path, training={"epochs": 1})
    first = train(values, quiet=True)
    with pytest.raises(Misuse, match="this run is done; --fresh trains anew"):
        train(values, quiet=True)
    assert train(values, quiet=True, fresh=True).steps == first.steps
    checkpoint.forget(tmp_path)
    with pytest.raises(Misuse, match="holds a model already; --fresh trains another in its place"):
        train(values, quiet=True)


def test_a_full_disk_leaves_the_last_good_checkpoint(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = config(pairs, tmp_path, training={"epochs": 1})
    train(values, quiet=True)
    before = checkpoint.path_in(tmp_path).read_bytes()
    monkeypatch.setattr(checkpoint.packing, "save", fails_with(OSError(28, "No space left on device")))
    with pytest.raises(Failure, match=r"cannot be written \(no space left on device\); the last good checkpoint stays"):
        train(config(pairs, tmp_path, training={"epochs": 2}), quiet=True, anyway=True)
    assert checkpoint.path_in(tmp_path).read_bytes() == before


def fails_with(error: Exception) -> Any:
    def fails(*_: Any) -> None:
        raise error

    return fails


def test_a_damaged_checkpoint_is_told(pairs: Path, tmp_path: Path) -> None:
    path = checkpoint.path_in(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half a checkpoint")
    with pytest.raises(Misuse, match="no checkpoint, or a damaged one; train anew with --fresh"):
        train(config(pairs, tmp_path), quiet=True)


def test_metrics_of_a_resumed_run_hold_every_step_once(pairs: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "training" / "metrics.jsonl"
    train(config(pairs, tmp_path, training={"epochs": 1}), quiet=True)
    metrics.write_text(metrics.read_text() + '{"step": 9999, "kind": "train"}\n{"step": 12, "ki')
    train(config(pairs, tmp_path, training={"epochs": 2}), quiet=True, anyway=True)
    steps = [json.loads(line)["step"] for line in metrics.read_text().splitlines() if '"train"' in line]
    assert steps == sorted(set(steps))
    assert 9999 not in steps
