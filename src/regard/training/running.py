"""From a configuration to a model folder.

result = train(Config(...))                     or train("train.yaml", ["training.steps=1000"])
result.folder, result.figures
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from regard.config import read_config, settings_from
from regard.support.errors import Misuse
from regard.support.progress import duration
from regard.training import beforehand, checkpoint
from regard.training.assembling import corpus_of, model_of, run_of
from regard.training.config import Config
from regard.training.corpus import Corpus
from regard.training.finishing import Result, finish
from regard.training.loop import Run
from regard.training.processes import Processes, processes
from regard.training.recording import METRICS, Recorder
from regard.training.recording import read as read_metrics
from regard.training.resuming import restore
from regard.training.telling import Teller

__all__ = ["Result", "resolved", "train"]


def train(
    config: Config | Mapping[str, Any] | str | Path,
    overrides: Sequence[str] = (),
    *,
    quiet: bool = False,
    fresh: bool = False,
    anyway: bool = False,
) -> Result:
    """Train a model and write its folder. A run that was interrupted goes on where its checkpoint is.

    fresh: begin anew whatever is there; anyway: go on though settings differ from those of the checkpoint.
    """
    settled = resolved(config, overrides)
    torch.set_num_threads(settled.threads or _threads())
    with processes(settled.device) as team, Teller(quiet=quiet or not team.first) as teller:
        return _trained(settled, team, teller, fresh=fresh, anyway=anyway)


def resolved(config: Config | Mapping[str, Any] | str | Path, overrides: Sequence[str] = ()) -> Config:
    """The configuration, from whatever it was given as, with what was set on top; every mistake told at once."""
    if isinstance(config, Config):
        return settings_from(config.model_dump(mode="json"), Config, overrides) if overrides else config
    if isinstance(config, Mapping):
        return settings_from(config, Config, overrides)
    return read_config(config, Config, overrides)


def _threads() -> int:
    """As many threads as this process may use cores; those of torchrun share them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return (
        int(asked)
        if asked.isdecimal() and int(asked)
        else max(cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), 1)
    )


def _trained(config: Config, team: Processes, teller: Teller, *, fresh: bool, anyway: bool) -> Result:
    begun = time.monotonic()
    beforehand.check(config)
    saved = _found_checkpoint(config, fresh=fresh, anyway=anyway)
    team.wait()
    if fresh and team.first:
        checkpoint.forget(config.output)
    corpus = corpus_of(config, team, teller)
    torch.manual_seed(config.seed)
    model = model_of(config, corpus, teller).to(team.device)
    torch.manual_seed(config.seed + team.rank)
    run = run_of(config, corpus, model, team, teller)
    if saved is not None:
        restore(run, saved)
        teller.say(f"going on from {checkpoint.path_in(config.output)}, step {run.counters.step:,}")
    if team.first:
        tensorboard = config.training.tensorboard
        folder = Path(config.output) / checkpoint.FOLDER
        run.recorder = Recorder(folder, step=run.counters.step, tensorboard=tensorboard)
    _tell_beginning(run, corpus)
    run.train()
    result = finish(run, corpus) if team.first else Result(Path(config.output), run.counters.step, run.counters.seconds)
    team.wait()
    teller.say(f"{result.folder}: trained {result.steps:,} steps in {duration(time.monotonic() - begun)}")
    return result


def _found_checkpoint(config: Config, *, fresh: bool, anyway: bool) -> dict[str, Any] | None:
    """The checkpoint to go on from; Misuse where that would not be the same run."""
    if fresh:
        return None
    saved = checkpoint.read(config.output)
    if saved is None:
        if (Path(config.output) / "model.json").exists():
            raise Misuse(f"{config.output}: holds a model already; --fresh trains another in its place")
        return None
    differing = checkpoint.differences(saved["config"], config.model_dump(mode="json"))
    if differing and not anyway:
        listed = "\n".join(f"  {each}" for each in differing)
        raise Misuse(
            f"{checkpoint.path_in(config.output)}: was written with other settings; --anyway goes on with those of "
            f"now, --fresh begins anew:\n{listed}"
        )
    if saved["counters"]["done"] and not differing and _is_written(config, saved["counters"]["step"]):
        raise Misuse(f"{config.output}: this run is done; --fresh trains anew, more training.epochs and --anyway go on")
    saved["counters"]["done"] = saved["counters"]["done"] and not differing
    return saved


def _is_written(config: Config, step: int) -> bool:
    """Whether the model of a run that is done stands in its folder: a kill may have come in between."""
    metrics = read_metrics(Path(config.output) / checkpoint.FOLDER / METRICS)
    return any(line["kind"] == "final" and line["step"] == step for line in metrics)


def _tell_beginning(run: Run, corpus: Corpus) -> None:
    count = sum(each.numel() for each in run.model.parameters())
    dev = 0 if corpus.dev is None else len(corpus.dev.examples)
    run.teller.say(
        f"{run.config.task}: {len(corpus.train):,} examples, {dev:,} of development; {count:,} parameters; "
        f"{run.stream.batches_an_epoch():,} batches an epoch; into {run.config.output}"
    )
