"""Several models as one: the mean of their probabilities at each step. A model like any other to the search."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.models.contract import Memory, SequenceModel, State, Step


@dataclass(frozen=True, eq=False)
class Several:
    """What each model holds, memories or states, side by side."""

    each: tuple[Any, ...]

    @property
    def lengths(self) -> Tensor | None:
        lengths: Tensor | None = self.each[0].lengths
        return lengths

    def select(self, index: Tensor) -> "Several":
        return Several(tuple(one.select(index) for one in self.each))


class Ensemble(SequenceModel):
    """log p = log Σ_m p_m / M over models with one vocabulary."""

    def __init__(self, models: Sequence[SequenceModel]) -> None:
        super().__init__()
        sizes = {model.vocabulary for model in models}
        if len(sizes) != 1:
            raise ValueError(f"ensemble: expected models with one vocabulary; got sizes {sorted(sizes)}")
        around = {(model.start_token, model.end_token) for model in models}
        if len(around) != 1:
            raise ValueError(f"ensemble: expected models that start and end with the same tokens; got {sorted(around)}")
        self.models = nn.ModuleList(models)
        self.vocabulary = sizes.pop()
        self.start_token, self.end_token = around.pop()
        limits = [model.longest for model in models if model.longest is not None]
        self.longest = min(limits) if limits else None

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Memory:
        return Several(tuple(model.encode(source, lengths) for model in self._all()))

    def start(self, memory: Memory) -> State:
        assert isinstance(memory, Several)
        return Several(tuple(model.start(own) for model, own in zip(self._all(), memory.each, strict=True)))

    def step(
        self,
        tokens: Tensor,
        state: State,
        memory: Memory,
        *,
        columns: Tensor | None = None,
        want_weights: bool = False,
    ) -> Step:
        """The weights shown are the mean over models, layers and heads: [R, 1, 1, S]."""
        assert isinstance(memory, Several)
        assert isinstance(state, Several)
        steps = [
            model.step(tokens, own, sources, columns=columns, want_weights=want_weights)
            for model, own, sources in zip(self._all(), state.each, memory.each, strict=True)
        ]
        shown = [step.weights.mean((1, 2), keepdim=True) for step in steps if step.weights is not None]
        return Step(
            _mean([step.logits for step in steps]),
            Several(tuple(step.state for step in steps)),
            torch.stack(shown).mean(0) if shown else None,
        )

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        return _mean([model(source, target, lengths, target_lengths) for model in self._all()])

    def _all(self) -> list[SequenceModel]:
        return list(self.models)  # type: ignore[arg-type]


def _mean(logits: list[Tensor]) -> Tensor:
    """The log of the mean probability."""
    return torch.stack([each.float().log_softmax(-1) for each in logits]).logsumexp(0) - math.log(len(logits))
