"""Means of weights over time, which are evaluated and saved in place of the last ones."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from regard.training.settings import AveragingSettings


class Averaging:
    """Keeps the mean of a model's parameters; buffers are taken as they are."""

    def __init__(self, settings: AveragingSettings, model: nn.Module) -> None:
        self.settings, self.model = settings, model
        self.updates = 0
        self.mean: list[Tensor] = []
        self.snapshots: list[list[Tensor]] = []
        self.own = [each.detach() for each in model.parameters()]

    def after_step(self) -> None:
        """Exponential: w ← d w + (1 - d) new, with d = min(decay, (1 + n) / (10 + n)) after n steps."""
        if self.settings.name != "exponential":
            return
        if not self.mean:
            self.mean = [each.clone() for each in self.own]
        decay = min(self.settings.decay, (1 + self.updates) / (10 + self.updates))
        torch._foreach_lerp_(self.mean, self.own, 1 - decay)
        self.updates += 1

    def before_evaluation(self) -> None:
        """Last: one more snapshot, the oldest forgotten."""
        if self.settings.name == "last":
            self.snapshots = [*self.snapshots, [each.clone() for each in self.own]][-self.settings.count :]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside the block the model has the mean weights; afterwards its own again, to the bit."""
        mean = self._current()
        if mean is None:
            yield
            return
        own = [each.clone() for each in self.own]
        _copy(mean, self.own)
        try:
            yield
        finally:
            _copy(own, self.own)

    def settle(self) -> None:
        """The model has the mean weights from now on."""
        if (mean := self._current()) is not None:
            _copy(mean, self.own)

    def state(self) -> dict[str, object]:
        return {"updates": self.updates, "mean": self.mean, "snapshots": self.snapshots}

    def restore(self, state: dict[str, object]) -> None:
        like = self.own
        self.updates = int(state["updates"])  # type: ignore[call-overload]
        self.mean = _as(state["mean"], like)
        self.snapshots = [_as(each, like) for each in state["snapshots"]]  # type: ignore[attr-defined]

    def _current(self) -> list[Tensor] | None:
        if self.snapshots:
            return [torch.stack(each).mean(0) for each in zip(*self.snapshots, strict=True)]
        return self.mean or None


def _copy(source: list[Tensor], target: list[Tensor]) -> None:
    with torch.no_grad():
        torch._foreach_copy_(target, source)


def _as(held: object, like: list[Tensor]) -> list[Tensor]:
    assert isinstance(held, list)
    return [each.to(own.device) for each, own in zip(held, like, strict=False)]
