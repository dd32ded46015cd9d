"""The learning rate as a share of its highest: a function of the step, so that a resumed run needs no memory of it.

Plateau alone remembers: it hears every evaluation.
"""

import math
from dataclasses import dataclass

from regard.training.settings import ScheduleSettings


@dataclass
class Schedule:
    """`share(step)` for steps 1, 2, 3, …; `last` is the last one, where it is known."""

    settings: ScheduleSettings
    last: int | None = None
    best: float | None = None
    without: int = 0
    """Evaluations since the best, for plateau."""
    falls: int = 0
    clock_gone: float | None = None
    """How much of the time is gone, where the clock ends the run: cosine and linear then fall by the clock."""

    def share(self, step: int) -> float:
        """Of the highest rate, at this step."""
        warmup = self.settings.warmup
        if step < warmup:
            return step / warmup
        return _AFTER[self.settings.name](self, step)

    def hear(self, score: float, *, higher_is_better: bool) -> None:
        """An evaluation; plateau lowers the rate when they stop getting better."""
        value = score if higher_is_better else -score
        if self.best is None or value > self.best:
            self.best, self.without = value, 0
            return
        self.without += 1
        if self.without >= self.settings.patience:
            self.falls, self.without = self.falls + 1, 0

    def state(self) -> dict[str, float | int | None]:
        return {"best": self.best, "without": self.without, "falls": self.falls}

    def restore(self, state: dict[str, float | int | None]) -> None:
        self.best = state["best"]
        self.without, self.falls = int(state["without"] or 0), int(state["falls"] or 0)

    def _gone(self, step: int) -> float:
        """How much of the way from the end of the warm-up to the last step is gone, or of the time."""
        clock = self.clock_gone or 0.0
        if self.last is None or self.last <= self.settings.warmup:
            return clock
        return min(1.0, max(clock, (step - self.settings.warmup) / (self.last - self.settings.warmup)))


def _inverse_root(schedule: Schedule, step: int) -> float:
    return math.sqrt(max(schedule.settings.warmup, 1) / max(step, 1))


def _cosine(schedule: Schedule, step: int) -> float:
    final = schedule.settings.final
    return final + (1 - final) * (1 + math.cos(math.pi * schedule._gone(step))) / 2


def _linear(schedule: Schedule, step: int) -> float:
    return 1 - (1 - schedule.settings.final) * schedule._gone(step)


def _constant(schedule: Schedule, step: int) -> float:
    return 1.0


def _plateau(schedule: Schedule, step: int) -> float:
    return float(schedule.settings.factor**schedule.falls)


_AFTER = {
    "inverse_root": _inverse_root,
    "cosine": _cosine,
    "linear": _linear,
    "constant": _constant,
    "plateau": _plateau,
}
