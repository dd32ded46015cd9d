"""A run to the disk and back, to the bit."""

from typing import TYPE_CHECKING, Any

import torch

from regard.training.progressing import Best, Counters

if TYPE_CHECKING:
    from regard.training.loop import Run


def state_of(run: "Run") -> dict[str, Any]:
    """All that a run is; only the first process's is whole."""
    for optimizer in run.optimizers:
        if hasattr(optimizer, "consolidate_state_dict"):
            optimizer.consolidate_state_dict(0)
    return {
        "config": run.config.model_dump(mode="json"),
        "model": dict(run.model.state_dict()),
        "optimizers": [each.state_dict()["state"] for each in run.optimizers] if run.processes.first else [],
        "schedule": run.schedule.state(),
        "averaging": run.averaging.state(),
        "stream": run.stream.state(),
        "random": run.processes.gathered(_random_state(run.device)),
        "counters": vars(run.counters),
        "best": [vars(each) for each in run.best],
    }


def restore(run: "Run", state: dict[str, Any]) -> None:
    """Become what was saved."""
    run.model.load_state_dict(state["model"])
    for optimizer, held in zip(run.optimizers, state["optimizers"], strict=True):
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": held, "param_groups": groups})
    run.schedule.restore(state["schedule"])
    run.averaging.restore(state["averaging"])
    run.stream.restore(state["stream"])
    run.counters = Counters(**state["counters"])
    run.best = [Best(**each) for each in state["best"]]
    if run.processes.rank < len(state["random"]):
        _restore_random_state(state["random"][run.processes.rank], run.device)
    run.forget_time()


def _random_state(device: torch.device) -> dict[str, Any]:
    state: dict[str, Any] = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def _restore_random_state(state: dict[str, Any], device: torch.device) -> None:
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
