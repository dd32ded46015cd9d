"""Long work tells how it goes: what, how far, how fast, how long still.

    with Progress("reading", "pairs", total=200_000) as progress:
        for part in parts:
            ...
            progress.add(len(part))

On a terminal one line that lives (rich draws it) and stays when the work is done; elsewhere plain lines, a second
after the start and then at growing distances, and one at the end. Quiet: nothing. All of it goes to standard error,
so that what a command prints can be piped.
"""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TextIO

if TYPE_CHECKING:
    from rich.live import Live

FIRST_LINE = 1.0
GROWTH = 1.5
LONGEST_SILENCE = 60.0
FRAMES_A_SECOND = 8


class Progress:
    """How one piece of work goes; a context manager."""

    def __init__(
        self,
        what: str,
        unit: str,
        total: int | None = None,
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.what, self.unit, self.total = what, unit, total
        self.done = 0
        self._skipped = 0
        self._share: float | None = None
        self._quiet, self._stream, self._clock = quiet, stream or sys.stderr, clock
        self._begun = clock()
        self._next = self._begun + FIRST_LINE
        self._pause = FIRST_LINE
        self._live: Live | None = None
        self._last = ""

    def add(self, count: int = 1, *, share: float | None = None, done_before: bool = False) -> None:
        """So many more are done. `share`: how much of all the work that is, where the total is not known.

        `done_before`: they were found done already, by an earlier run, and say nothing about the speed.
        """
        self.done += count
        self._skipped += count if done_before else 0
        self._share = share if share is not None else self._share
        self._show()

    def __enter__(self) -> Self:
        if not self._quiet and self._stream.isatty():
            self._live = _live(self._stream, self)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if self._live is not None:
            self._live.update(self.ended() if kind is None else str(self), refresh=True)
            self._live.stop()
        elif kind is None:
            self._say(self.ended())

    def __rich__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """`encoding: 120,000 of 200,000 pairs, 31,000 a second, 3 s still`."""
        far = f"{self.done:,} of {self.total:,} {self.unit}" if self.total else f"{self.done:,} {self.unit}"
        if self.total is None and self._share is not None:
            far += f" ({self._share:.0%})"
        speed, still = self.speed(), self.still()
        parts = [far]
        parts += [f"{readable(speed)} a second"] if speed else []
        parts += [f"{duration(still)} still"] if still is not None else []
        return f"{self.what}: {', '.join(parts)}"

    def ended(self) -> str:
        """`encoding: 200,000 pairs in 6.4 s, 31,000 a second`."""
        spent, speed = self._clock() - self._begun, self.speed()
        fast = f", {readable(speed)} a second" if speed and spent >= FIRST_LINE else ""
        return f"{self.what}: {self.done:,} {self.unit} in {duration(spent)}{fast}"

    def speed(self) -> float:
        """Pieces a second, of those this run did itself."""
        spent = self._clock() - self._begun
        return (self.done - self._skipped) / spent if spent > 0 else 0.0

    def still(self) -> float | None:
        """Seconds until the end as far as can be told; None where it cannot."""
        if self.total is not None:
            speed = self.speed()
            return max(self.total - self.done, 0) / speed if speed else None
        if not self._share:
            return None
        return (self._clock() - self._begun) * (1 - self._share) / self._share

    def _show(self) -> None:
        """The living line looks by itself; plain lines come when it is time for one."""
        if self._live is None and self._clock() >= self._next:
            self._say(str(self))
            self._pause = min(self._pause * GROWTH, LONGEST_SILENCE)
            self._next = self._clock() + self._pause

    def _say(self, line: str) -> None:
        if not self._quiet and line != self._last:
            print(line, file=self._stream, flush=True)
            self._last = line


def readable(number: float) -> str:
    """Two significant digits from ten up, as a speed is known no better: 31,400 → 31,000; 3.14 → 3.1."""
    if number < 10:
        return f"{number:.1f}"
    digits = 10 ** (len(str(int(number))) - 2)
    return f"{round(number / digits) * digits:,}"


def duration(seconds: float) -> str:
    """0.4 s, 42 s, 3 min 5 s, 2 h 10 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, left = divmod(whole, 60)
    return f"{minutes} min {left} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _live(stream: TextIO, shown: Progress) -> "Live":
    """rich's living line; its import is paid for on terminals only."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream, highlight=False, markup=False)
    return Live(shown, console=console, refresh_per_second=FRAMES_A_SECOND, redirect_stdout=False)
