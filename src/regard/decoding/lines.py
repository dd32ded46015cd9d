"""Hypotheses side by side, as tensors: those that run, and the best of those that have ended.

B sentences, n or K hypotheses each, L the longest result.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decoding.results import ENDINGS, Ending


@dataclass(frozen=True, eq=False)
class Lines:
    """Hypotheses side by side: [B, n] and [B, n, L]."""

    score: Tensor
    """Σ log p so far; for finished ones what they are ranked by, in float64."""
    tokens: Tensor
    token_scores: Tensor
    trail: Tensor
    """Which row of each step's weights a hypothesis came through."""

    @classmethod
    def none(cls, sentences: int, beam: int, longest: int, like: Tensor) -> "Lines":
        shape = (sentences, beam, longest)
        return cls(
            like.new_full(shape[:2], -torch.inf),
            torch.zeros(shape, dtype=torch.long, device=like.device),
            like.new_zeros(shape),
            torch.zeros(shape, dtype=torch.long, device=like.device),
        )

    def of(self, sentences: Tensor) -> "Lines":
        """Some of the sentences."""
        return Lines(*(each[sentences] for each in self._all()))

    def take(self, index: Tensor) -> "Lines":
        """Some of each sentence's hypotheses: index [B, m]."""
        wide = index.unsqueeze(-1)
        return Lines(
            *(each.gather(1, index if each.ndim == 2 else wide.expand(-1, -1, each.shape[-1])) for each in self._all())
        )

    def beside(self, others: "Lines") -> "Lines":
        pairs = zip(self._all(), others._all(), strict=True)
        return Lines(*(torch.cat([mine, theirs.to(mine.dtype)], 1) for mine, theirs in pairs))

    def _all(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.score, self.tokens, self.token_scores, self.trail


@dataclass(frozen=True, eq=False)
class Finished:
    """The best of what has ended, [B, K]."""

    lines: Lines
    length: Tensor
    ending: Tensor
    count: Tensor
    """[B]: how many have ended, those that were dropped again included."""

    def of(self, sentences: Tensor) -> "Finished":
        return Finished(self.lines.of(sentences), self.length[sentences], self.ending[sentences], self.count[sentences])

    def add(self, lines: Lines, length: int, ending: Ending) -> "Finished":
        """With further ones; a score of -inf is none."""
        keep = self.length.shape[1]
        joined = self.lines.beside(lines)
        order = joined.score.topk(keep, -1).indices
        beside = torch.full_like(lines.score, length, dtype=torch.long)
        kind = torch.full_like(beside, ENDINGS.index(ending))
        return Finished(
            joined.take(order),
            torch.cat([self.length, beside], 1).gather(1, order),
            torch.cat([self.ending, kind], 1).gather(1, order),
            self.count + lines.score.isfinite().sum(-1) * (ending != "limit"),
        )
