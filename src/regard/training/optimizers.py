"""Optimizers by name, with weight decay on matrices alone."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from regard.training.settings import OptimizerSettings


def make(settings: OptimizerSettings, model: nn.Module, *, sharded: bool = False) -> list[Optimizer]:
    """One optimizer, or with muon two: it takes the matrices inside the network, adamw all else.

    sharded: each of several processes keeps the state of its share of the parameters alone.
    """
    parameters = {name: each for name, each in model.named_parameters() if each.requires_grad}
    if settings.name != "muon":
        return [_plain(settings, parameters.values(), sharded=sharded)]
    if not hasattr(torch.optim, "Muon"):
        raise ValueError("training.optimizer.name: this torch has no Muon; take adamw, or torch 2.9 or newer")
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    inside = [each for each in parameters.values() if each.ndim == 2 and id(each) not in tables]
    own = {id(each) for each in inside}
    rest = [each for each in parameters.values() if id(each) not in own]
    muon = torch.optim.Muon(inside, lr=settings.highest, momentum=settings.momentum, weight_decay=settings.weight_decay)
    # Muon's rate is some ten times that which suits adam.
    return [muon, _plain(settings.changed(name="adamw", rate=settings.highest / 10), rest)]


def _plain(settings: OptimizerSettings, parameters: Iterable[nn.Parameter], *, sharded: bool = False) -> Optimizer:
    """What is one vector (biases, gains) is not drawn to 0."""
    held = list(parameters)
    groups = [
        {"params": [each for each in held if each.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [each for each in held if each.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    kind: type[Optimizer] = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}.get(settings.name, torch.optim.Adam)
    own: dict[str, Any] = {"lr": settings.highest, "fused": True}
    own |= {"momentum": settings.momentum} if settings.name == "sgd" else {
        "betas": settings.betas, "eps": settings.epsilon
    }  # fmt: skip
    if not sharded:
        return kind(groups, **own)
    from torch.distributed.optim import ZeroRedundancyOptimizer

    return ZeroRedundancyOptimizer(groups, optimizer_class=kind, **own)


def whole(optimizer: Optimizer) -> Optimizer:
    """The optimizer that makes the steps: of a sharded one that inside it."""
    inner = getattr(optimizer, "optim", optimizer)
    assert isinstance(inner, Optimizer)
    return inner


def for_graphs(optimizers: Iterable[Optimizer], device: torch.device) -> None:
    """Rates and counts of steps as numbers on the GPU, where a captured step can read what they have become."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["capturable"] = True
            group.setdefault("highest", group["lr"])
            group["lr"] = torch.tensor(float(group["lr"]), device=device)
        for state in optimizer.state.values():
            if "step" in state:
                state["step"] = state["step"].to(device)


def set_rate(optimizers: Iterable[Optimizer], share: float) -> None:
    """Every group's rate, as a share of the rate it began with."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group.setdefault("highest", group["lr"])
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(group["highest"] * share)
            else:
                group["lr"] = group["highest"] * share


def fused(optimizers: Iterable[Optimizer]) -> bool:
    """Whether all of them can leave a step out, or shorten it, by numbers that stay on the device."""
    return all(group.get("fused") for optimizer in optimizers for group in optimizer.param_groups)
