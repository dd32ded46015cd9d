"""What a person sees while a model trains: one living line, a table of evaluations, a few outputs.

On a terminal the line lives and the table grows above it; elsewhere plain lines at growing distances. All of it goes
to standard error.
"""

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from regard.evaluation.evaluating import Sample
from regard.support.progress import FIRST_LINE, GROWTH, LONGEST_SILENCE, duration, readable

if TYPE_CHECKING:
    from rich.live import Live


@dataclass(frozen=True)
class State:
    """How a run goes."""

    epoch: float
    step: int
    loss: float
    speed: float
    """Target tokens (tags, labels) a second."""
    rate: float
    still: float | None
    """Seconds until the end as far as can be told."""

    def __str__(self) -> str:
        """`epoch 3.2, step 4,100: loss 2.31, 31,000 a second, rate 0.0004, 3 min still`"""
        parts = [f"loss {self.loss:.3f}", f"{readable(self.speed)} tokens a second", f"rate {self.rate:.2g}"]
        parts += [f"{duration(self.still)} still"] if self.still is not None else []
        return f"epoch {self.epoch:.2f}, step {self.step:,}: {', '.join(parts)}"


class Teller:
    """Tells; a context manager. `quiet` tells nothing."""

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.quiet, self.stream = quiet, stream or sys.stderr
        self.state: State | None = None
        self.doing = ""
        self._live: Live | None = None
        self._begun = time.monotonic()
        self._next, self._pause = self._begun + FIRST_LINE, FIRST_LINE
        self._columns: tuple[str, ...] = ()

    def __enter__(self) -> "Teller":
        if not self.quiet and self.stream.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self.stream, highlight=False, markup=False)
            self._live = Live(self, console=console, refresh_per_second=8, redirect_stdout=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __rich__(self) -> str:
        return self.doing or ("" if self.state is None else str(self.state))

    def say(self, line: str) -> None:
        """A line that stays."""
        if self.quiet:
            return
        if self._live is not None:
            self._live.console.print(line)
        else:
            print(line, file=self.stream, flush=True)

    def update(self, state: State) -> None:
        """How it goes now; away from a terminal a line when it is time for one."""
        self.state, self.doing = state, ""
        now = time.monotonic()
        if self._live is None and now >= self._next:
            self.say(str(state))
            self._pause = min(self._pause * GROWTH, LONGEST_SILENCE)
            self._next = now + self._pause

    def row(self, figures: dict[str, str]) -> None:
        """A row of the table of evaluations; its head comes first."""
        widths = [max(len(name), 9) for name in figures]
        if tuple(figures) != self._columns:
            self._columns = tuple(figures)
            self.say("  ".join(name.rjust(width) for name, width in zip(figures, widths, strict=True)))
        self.say("  ".join(value.rjust(width) for value, width in zip(figures.values(), widths, strict=True)))

    def samples(self, samples: tuple[Sample, ...]) -> None:
        """What came out, and what was expected."""
        for each in samples:
            self.say(f"    {each.source}")
            self.say(f"      → {each.output}")
            if each.output != each.reference:
                self.say(f"      = {each.reference}")
