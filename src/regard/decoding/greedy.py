"""One token after the other: the likeliest (greedy search), or one drawn by its probability (sampling).

B sentences, n results each, R = B n rows.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.decoding.candidates import log_sum, top
from regard.decoding.loops import looping
from regard.decoding.results import NO_ATTENTION, NO_PROBABILITIES, Ending, Hypothesis
from regard.decoding.rules import Places, Rules
from regard.decoding.settings import SearchSettings
from regard.models.contract import Memory, SequenceModel
from regard.support.errors import Failure, Misuse


class OneByOne:
    """One search over a batch; `lines` fill until every one has ended."""

    def __init__(
        self,
        model: SequenceModel,
        memory: Memory,
        limits: Tensor,
        numbers: Sequence[int],
        settings: SearchSettings,
        rules: Rules,
        want_weights: bool,
    ) -> None:
        self.model, self.memory, self.settings, self.rules = model, memory, settings, rules
        self.want_weights = want_weights
        self.each = settings.nbest if settings.sample else 1
        self.places = Places.over(rules.columns, model.vocabulary, limits.device, model.end_token)
        self.sentence = torch.arange(len(limits), device=limits.device).repeat_interleave(self.each)
        """[R]: the sentence of each row that still runs; its rows stay together until the last has ended."""
        self.limits = limits
        self.lines = [_Line() for _ in range(len(limits) * self.each)]
        self.row_line = list(range(len(self.lines)))
        self.dice = _dice(settings.seed, numbers, self.each, int(limits.max())) if settings.sample else None

    def run(self) -> list[list[Hypothesis]]:
        """Each sentence's results, best first."""
        state = self.model.start(self.memory)
        tokens = torch.full_like(self.limits, self.model.start_token)
        so_far = tokens.new_zeros(len(self.sentence), 0)
        for done in range(int(self.limits.max())):
            logits, state, weights = self.model.step(
                tokens, state, self.memory, columns=self.places.columns, want_weights=self.want_weights
            )
            if self.want_weights and weights is None:
                raise Misuse(NO_ATTENTION)
            if done == 0 and self.each > 1:
                logits, state = logits[self.sentence], state.select(self.sentence)
                weights = None if weights is None else weights[self.sentence]
            tokens, values = self._choose(logits.float(), so_far, done)
            so_far = torch.cat([so_far, tokens.unsqueeze(1)], 1)
            going = self._note(so_far, values, weights if self.want_weights else None)
            if not going:
                break
            if len(going) < len(self.sentence):
                index = torch.tensor(going, device=tokens.device)
                tokens, so_far, state = tokens[index], so_far[index], state.select(index)
                self._leave(index)
        return [self._of_sentence(number) for number in range(len(self.limits))]

    def _choose(self, logits: Tensor, so_far: Tensor, done: int) -> tuple[Tensor, Tensor]:
        """A token for each row, and its log-probability."""
        whole = log_sum(logits)
        allowed = self.rules.allow(logits, so_far, self.sentence, self.settings, self.places)
        if self.dice is None:
            values, places = top(allowed, 1)
        else:
            places = drawn(allowed, self.dice[self.row_line, done].to(logits), self.settings).unsqueeze(-1)
            values = allowed.gather(-1, places)
        return self.places.tokens(places.squeeze(-1)), (values - whole).squeeze(-1)

    def _note(self, so_far: Tensor, values: Tensor, weights: Tensor | None) -> list[int]:
        """Write the step down; the rows whose sentence goes on."""
        cut = (self.limits[self.sentence] <= so_far.shape[1]).tolist()
        stuck = looping(so_far).tolist() if self.settings.stop_loops else [False] * len(cut)
        steps = zip(self.row_line, so_far[:, -1].tolist(), values.tolist(), cut, stuck, strict=True)
        for row, (line, token, value, at_limit, loops) in enumerate(steps):
            self.lines[line].add(token, value, None if weights is None else weights[row])
            self.lines[line].end(token == self.places.end, at_limit, loops)
        return [
            row
            for first in range(0, len(self.row_line), self.each)
            if not all(self.lines[line].ending for line in self.row_line[first : first + self.each])
            for row in range(first, first + self.each)
        ]

    def _leave(self, index: Tensor) -> None:
        self.sentence = self.sentence[index]
        self.row_line = [self.row_line[row] for row in index.tolist()]
        self.memory = self.memory.select(index[:: self.each] // self.each)

    def _of_sentence(self, number: int) -> list[Hypothesis]:
        lines = self.lines[number * self.each : (number + 1) * self.each]
        found = [line.hypothesis(self.settings.length_penalty) for line in lines]
        return sorted(found, key=lambda each: each.score, reverse=True)


class _Line:
    """One result as it grows."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.scores: list[float] = []
        self.weights: list[Tensor] = []
        self.ending: Ending | None = None

    def add(self, token: int, value: float, weights: Tensor | None) -> None:
        if self.ending is not None:
            return
        if math.isnan(value):
            raise Failure(NO_PROBABILITIES)
        if value == -math.inf:
            self.ending = "nothing"
            return
        self.scores.append(value)
        if weights is not None:
            self.weights.append(weights)
        self.tokens.append(token)

    def end(self, by_itself: bool, at_limit: bool, loops: bool) -> None:
        """Whether the token just added was the last; one that says the end is no part of the result."""
        if self.ending is None:
            self.ending = "end" if by_itself else "limit" if at_limit else "loop" if loops else None
            if by_itself:
                self.tokens.pop()

    def hypothesis(self, length_penalty: float) -> Hypothesis:
        total = sum(self.scores)
        score = total / max(1, len(self.scores)) ** length_penalty
        weights = torch.stack(self.weights) if self.weights else None
        return Hypothesis(self.tokens, score, total, self.scores, self.ending or "limit", weights)


def drawn(allowed: Tensor, dice: Tensor, settings: SearchSettings) -> Tensor:
    """The place [R] at which each row's cumulative probability passes its die: drawn by probability, repeatably."""
    values, places = torch.sort(allowed / settings.temperature, stable=True, dim=-1, descending=True)
    if settings.top_k:
        values, places = values[:, : settings.top_k], places[:, : settings.top_k]
    probabilities = torch.softmax(values, -1)
    sums = probabilities.cumsum(-1)
    if settings.top_p < 1:  # the likeliest that together reach top_p: those whose forerunners do not
        probabilities = probabilities.masked_fill(sums - probabilities >= settings.top_p, 0.0)
        sums = probabilities.cumsum(-1)
    at = torch.searchsorted(sums, (dice.unsqueeze(-1) * sums[:, -1:]).contiguous(), right=True)
    last = (probabilities > 0).sum(-1, keepdim=True) - 1
    return places.gather(-1, at.minimum(last).clamp(min=0)).squeeze(-1)


def _dice(seed: int, numbers: Sequence[int], each: int, longest: int) -> Tensor:
    """A number from 0 to 1 for each row and step, the same whatever else is in the batch."""
    rows = [np.random.default_rng([seed, number, which]).random(longest) for number in numbers for which in range(each)]
    return torch.from_numpy(np.stack(rows))
