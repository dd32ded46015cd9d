"""What a search gives."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

Ending = Literal["end", "limit", "loop", "nothing"]
ENDINGS: tuple[Ending, ...] = ("end", "limit", "loop", "nothing")

NO_ATTENTION = "this model has no attention to show, and none to reckon coverage with"
NO_PROBABILITIES = "the model gives no probabilities: there is a NaN among its logits (are its weights finite?)"


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One sequence that was found."""

    tokens: list[int]
    """Without the start and the end."""
    score: float
    """What it was ranked by: its log-probability after the penalties of length and coverage."""
    log_prob: float
    """The sum of `token_scores`."""
    token_scores: list[float]
    """The model's log-probability of each token, and of the end where it came to one."""
    ending: Ending
    """end: the model ended it; limit: cut at the longest length; loop: it only repeated itself; nothing: there was
    no token left that it was allowed."""
    weights: "Tensor | None" = None
    """[T, L, H, S]: where each step, layer and head looked, where it was asked for (a step for the end included)."""
