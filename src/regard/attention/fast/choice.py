"""The one table that decides which path a call takes.

A path says in words what stands in its way; where nothing does, it may run. The first of `PATHS` that may is
taken; the reference is taken where none may, where a derivation is being recorded, and where it is asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from regard.attention.call import Call
from regard.attention.fast import additive, flex, once, sdpa, short
from regard.attention.fast.additive import cpu
from regard.attention.scores import Score
from regard.attention.settled import Kept
from regard.support.nearest import unknown
from regard.tracing.labels import active

IMPLEMENTATIONS = ("auto", "reference", "fused")


@dataclass(frozen=True)
class Path:
    """A faster way: what stands in its way for a call (None where nothing does), and how it runs one."""

    name: str
    obstacle: Callable[[Call], str | None]
    run: Callable[[Call], Tensor] | None = None
    by_itself: bool = True
    """Whether "auto" takes it, or only an explicit "fused"."""
    scored: Callable[[Score, Tensor, Tensor, Kept | None], Tensor] | None = None
    """In place of `run`: the scores alone. What follows them is the reference's own, and weights are handed out."""
    worth: Callable[[Call], str | None] | None = None
    """Why "auto" had rather not take it; an explicit "fused" does not ask."""
    how: Callable[[], str] | None = None
    """More of the reason, in words."""

    def hindrance(self, call: Call, implementation: str) -> str | None:
        """What stands in its way for a call with this wish."""
        said = self.obstacle(call)
        return self.worth(call) if said is None and self.worth is not None and implementation == "auto" else said


PATHS = (
    Path("short", short.obstacle, short.run, how=once.said),
    Path("flex", flex.obstacle, flex.run, how=once.said),
    Path("sdpa", sdpa.obstacle, sdpa.run, how=once.said),
    # Called one by one from Python it is not yet quick at every size: until then it waits to be asked.
    Path("additive", additive.obstacle, additive.run, by_itself=False, how=once.said),
    Path("additive_cpu", cpu.obstacle, scored=cpu.scored, worth=cpu.worth, how=cpu.how),
)


@dataclass(frozen=True)
class Choice:
    """Which path a call would take, why, and what stood in the way of the others."""

    path: str
    why: str
    obstacles: dict[str, str]

    def __str__(self) -> str:
        rows = [f"{self.path}: {self.why}", *(f"not {name}: {said}" for name, said in self.obstacles.items())]
        return "\n".join(rows)


def pick(call: Call, implementation: str) -> Path | None:
    """The path to take; None is the reference. An explicit "fused" that cannot be served is an error."""
    if implementation == "reference" or (implementation == "auto" and active()):
        return None
    if implementation not in IMPLEMENTATIONS:
        raise ValueError(unknown("implementation", str(implementation), IMPLEMENTATIONS))
    for path in PATHS:
        if (path.by_itself or implementation == "fused") and path.hindrance(call, implementation) is None:
            return path
    if implementation == "fused":
        said = "; ".join(f"{path.name}: {path.obstacle(call)}" for path in PATHS)
        raise ValueError(f"implementation='fused': no fused path can serve this call ({said})")
    return None


def explain(call: Call, implementation: str) -> Choice:
    """The same choice, in words."""
    path = pick(call, implementation)
    obstacles = {each.name: said for each in PATHS if (said := each.hindrance(call, implementation)) is not None}
    if path is not None:
        how = "" if path.how is None else f" ({path.how()})"
        return Choice(path.name, f"gives the same answer for this call, faster{how}", obstacles)
    if implementation == "reference":
        return Choice("reference", "asked for", obstacles)
    if active():
        return Choice("reference", "a derivation is being recorded, and only this path shows every step", obstacles)
    if len(obstacles) < len(PATHS):
        return Choice("reference", "the fused path that can serve this call waits to be asked for", obstacles)
    return Choice("reference", "no fused path can serve this call", obstacles)
