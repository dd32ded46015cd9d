"""What can be set about a search. Reads no torch, for a configuration names these settings."""

from typing import Literal, Self

from pydantic import Field, model_validator

from regard.config import Settings


class SearchSettings(Settings):
    """How sequences are sought, and how those that are found are ranked.

    A finished sequence y of n tokens, its end counted, is worth

        Σ log p(y_t) / n^length_penalty + coverage_penalty · Σ_j log min(Σ_t A_tj, 1)
    """

    beam: int = Field(default=5, ge=1)
    """How many hypotheses are kept for a sentence; 1 is greedy search."""
    nbest: int = Field(default=1, ge=1)
    """How many results a sentence gets, best first."""
    length_penalty: float = 1.0
    """The exponent of the length a score is divided by: 0 ranks by probability alone, above 0 favours longer ones."""
    coverage_penalty: float = Field(default=0.0, ge=0)
    """How much it costs to leave source words unattended (Wu and others 2016); needs a model with attention."""
    stop: Literal["enough", "certain"] = "enough"
    """enough: leave a sentence when `beam` hypotheses have ended; certain: when none that runs could do better."""
    groups: int = Field(default=1, ge=1)
    """Diverse beam search: the beam is cut into so many groups, each kept apart from those before it."""
    diversity: float = Field(default=0.5, ge=0)
    """What a token costs a group for each hypothesis of earlier groups that chose it at the same step."""
    sample: bool = False
    """Draw tokens by their probabilities instead of searching for the best; `nbest` is how many are drawn."""
    temperature: float = Field(default=1.0, gt=0)
    """For sampling: below 1 sharper, above 1 flatter."""
    top_k: int = Field(default=0, ge=0)
    """For sampling: only from the k likeliest tokens; 0 is all of them."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """For sampling: only from the likeliest tokens that together have this probability."""
    seed: int = Field(default=0, ge=0)
    """For sampling: the same seed draws the same, whatever else is in the batch."""
    limit_factor: float = Field(default=2.0, ge=0)
    """A result may be this many times as long as its source, in tokens, …"""
    limit_plus: int = Field(default=20, ge=0)
    """… and so many tokens more."""
    fewest: int = Field(default=0, ge=0)
    """The fewest tokens of a result."""
    no_repeat: int = Field(default=0, ge=0)
    """No sequence of so many tokens stands twice in a result; 0 allows all."""
    unknown: bool = True
    """Whether the unknown token may be given out."""
    stop_loops: bool = True
    """End a hypothesis that only repeats itself, and flag it."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.sample and self.nbest > self.beam:
            raise ValueError(f"nbest {self.nbest} is more than the beam of {self.beam} can give; raise the beam")
        if self.beam % self.groups:
            raise ValueError(f"groups {self.groups} must divide the beam of {self.beam}")
        if self.sample and self.groups > 1:
            raise ValueError("groups belong to beam search, not to sampling")
        return self

    def limit(self, source_length: int) -> int:
        """The most tokens, end counted, of a result for a source of so many."""
        return max(1, int(self.limit_factor * source_length) + self.limit_plus)
