"""Checkpoints: all that a run is, in one file that is there whole or not at all.

output/training/checkpoint.safetensors      model, optimizer, schedule, averages, position, random states, counters
output/training/step-000400.safetensors     the weights of one of the best evaluations
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.models.weights import tensors
from regard.support.atomic import writing
from regard.support.errors import Failure, Misuse
from regard.training import packing

FOLDER, NAME = "training", "checkpoint.safetensors"
FORMAT = 1

UNIMPORTANT = {
    "output", "name", "device", "threads", "training.samples", "training.tell_every", "training.save_every",
    "training.tensorboard", "training.keep_best", "batches.ahead", "evaluation.tokens",
}  # fmt: skip
"""Settings that a run may be resumed with whatever they were: they change nothing of what is learned."""


def path_in(output: str | Path) -> Path:
    return Path(output) / FOLDER / NAME


def write(output: str | Path, state: Mapping[str, Any]) -> None:
    """Put a checkpoint in the place of the last one; where that fails the last one stays."""
    path = path_in(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        packing.write(path, {"format": FORMAT, **state})
    except OSError as error:
        stays = f"; the last good checkpoint stays: {path}" if path.exists() else ""
        raise Failure(f"{path}: cannot be written ({(error.strerror or str(error)).lower()}){stays}") from None


def read(output: str | Path) -> dict[str, Any] | None:
    """The checkpoint in an output folder, or None where there is none."""
    path = path_in(output)
    if not path.exists():
        return None
    try:
        state = packing.read(path)
    except ValueError as error:
        raise Misuse(f"{error}; train anew with --fresh") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise Misuse(f"{path}: written by another version of regard; train anew with --fresh")
    return state


def differences(saved: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Which settings of a saved run are others here, one line each, but for those that change nothing."""
    before, now = flat(saved), flat(here)
    return [
        f"{key}: it was {before.get(key, 'unset')!r}, here it is {now.get(key, 'unset')!r}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key) and key not in UNIMPORTANT
    ]


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """{a: {b: 1}} → {a.b: 1}"""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{above}{key}.")
        else:
            found[f"{above}{key}"] = value
    return found


def write_weights(output: str | Path, step: int, model: nn.Module) -> str:
    """The weights as they are, for a model that may turn out the best; the name of the file."""
    from safetensors.torch import save

    name = f"step-{step:06}.safetensors"
    folder = Path(output) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with writing(folder / name) as file:
        file.write(save({key: each.contiguous().cpu() for key, each in tensors(model).items()}))
    return name


def read_weights(output: str | Path, name: str, model: nn.Module) -> None:
    """Put such weights into the model."""
    from safetensors.torch import load_file

    held = load_file(Path(output) / FOLDER / name)
    with torch.no_grad():
        for key, own in tensors(model).items():
            own.copy_(held[key])


def forget_all_but(output: str | Path, names: Iterable[str]) -> None:
    """Weights that are none of the best any more, and what a kill left half written."""
    kept = {*names, NAME}
    folder = Path(output) / FOLDER
    for path in folder.glob("*.safetensors"):
        if path.name not in kept:
            path.unlink(missing_ok=True)
    for path in folder.glob(".*.part"):
        path.unlink(missing_ok=True)


def forget(output: str | Path) -> None:
    """Begin anew: nothing of an earlier run is left in the folder of checkpoints."""
    folder = Path(output) / FOLDER
    for path in [*folder.glob("*.safetensors"), *folder.glob(".*.part"), folder / "metrics.jsonl"]:
        path.unlink(missing_ok=True)
