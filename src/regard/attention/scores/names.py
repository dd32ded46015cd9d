"""Scores by name: those without parameters as they are, the others where the widths are known."""

from collections.abc import Callable
from typing import Any

from regard.attention.scores.base import Score
from regard.attention.scores.coverage import Coverage
from regard.attention.scores.hidden import Additive, Concat, Location
from regard.attention.scores.products import Cosine, Dot, General, LowRank, ScaledDot
from regard.support.nearest import unknown

PLAIN: dict[str, Score] = {"dot": Dot(), "scaled_dot": ScaledDot(), "cosine": Cosine()}
PARAMETRIC: dict[str, type[General | Additive | Concat | Location | LowRank | Coverage]] = {
    "general": General, "additive": Additive, "concat": Concat, "location": Location, "low_rank": LowRank,
    "coverage": Coverage,
}  # fmt: skip


def named(score: Any) -> Score:
    """A score as given, or the one of that name, where it needs no parameters."""
    if isinstance(score, Score):
        return score
    if not isinstance(score, str):
        came = f"the class {score.__name__}" if isinstance(score, type) else type(score).__name__
        raise ValueError(f"score: expected a score, as scores.Dot(), or its name; got {came}")
    if score in PARAMETRIC:
        kind = PARAMETRIC[score].__name__
        raise ValueError(
            f"score {score!r} has parameters: pass scores.{kind}(...) with its matrices, or scores.{kind}.of(...)"
        )
    if score not in PLAIN:
        raise ValueError(unknown("score", score, [*PLAIN, *PARAMETRIC]))
    return PLAIN[score]


def make(
    name: str, d_q: int, d_k: int, *, width: int | None = None, depth: int = 1, places: int | None = None
) -> Score:
    """A score by name with parameters of its own, for a model that is built from a configuration.

    `width` is the hidden layer of additive, concat and coverage and the rank of low_rank (d_k unless given);
    `places` the most keys that location can tell apart.
    """
    width = d_k if width is None else width
    if name == "location":
        if places is None:
            raise ValueError("score 'location' needs places=, the most keys it can tell apart")
        return Location.of(d_q, places)
    makers: dict[str, Callable[[], Score]] = {
        "general": lambda: General.of(d_q, d_k),
        "low_rank": lambda: LowRank.of(d_q, d_k, width),
        "additive": lambda: Additive.of(d_q, d_k, width, depth),
        "concat": lambda: Concat.of(d_q, d_k, width),
        "coverage": lambda: Coverage.of(d_q, d_k, width, depth),
    }
    return makers[name]() if name in makers else named(name)
