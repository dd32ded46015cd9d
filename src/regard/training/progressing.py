"""What a run goes on with after it was resumed: numbers, the best evaluations; and how it is asked to stop."""

import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import Any


class Stopped(Exception):
    """Asked to stop by a signal; everything is saved."""

    def __init__(self, signal_number: int, path: str) -> None:
        super().__init__(f"stopped; saved in {path}, and the same command goes on from there")
        self.signal_number = signal_number


@dataclass
class Best:
    """One of the best evaluations so far."""

    step: int
    rank: list[float]
    """The more the better: the score that decides, and for equals the loss."""
    file: str
    figures: dict[str, float]


@dataclass
class Counters:
    """Numbers that a run goes on with after it was resumed."""

    step: int = 0
    """Updates, those that were left out counted."""
    places: int = 0
    """Target tokens (tags, labels) seen."""
    seconds: float = 0.0
    """Spent in training, evaluations included."""
    training_seconds: float = 0.0
    """Spent in updates alone."""
    evaluations: int = 0
    without_better: int = 0
    left_out: int = 0
    """Updates whose loss was not finite."""
    in_a_row: int = 0
    done: bool = False


class Heeding:
    """SIGTERM and Ctrl-C ask to stop after the present update; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.asked = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Heeding":
        with suppress(ValueError):  # not in the main thread nobody can be heard
            self._before = {each: signal.signal(each, self._heard) for each in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, number: int, _: Any) -> None:
        if self.asked == signal.SIGINT == number:
            raise KeyboardInterrupt
        self.asked = number
