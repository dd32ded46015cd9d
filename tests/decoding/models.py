"""A small model whose probabilities can be enumerated: they depend on the source and on all that was said."""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.models.contract import Encoded, SequenceModel, Step


@dataclass(frozen=True, eq=False)
class Said:
    """All tokens of each row, the start included: [R, t]."""

    tokens: Tensor

    def select(self, index: Tensor) -> "Said":
        return Said(self.tokens[index])


class Hashed(SequenceModel):
    """Logits that are a fixed, wild function of the sentence and of the whole history."""

    def __init__(self, vocabulary: int = 7, sharpness: float = 2.0, seed: int = 0, end_bonus: float = 0.0) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.sharpness, self.seed, self.end_bonus = sharpness, seed, end_bonus
        self.steps = 0
        self.rows: list[int] = []

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        return Encoded(source.unsqueeze(-1).double(), lengths)

    def start(self, memory: Encoded) -> Said:
        return Said(torch.zeros(len(memory.states), 0, dtype=torch.long))

    def step(
        self,
        tokens: Tensor,
        state: Said,
        memory: Encoded,
        *,
        columns: Tensor | None = None,
        want_weights: bool = False,
    ) -> Step:
        self.steps += 1
        self.rows.append(len(tokens))
        said = torch.cat([state.tokens, tokens.unsqueeze(1)], 1)
        each = len(said) // len(memory.states)
        rows, weights = [], []
        for row, history in enumerate(said.tolist()):
            sentence = row // each
            real = None if memory.lengths is None else int(memory.lengths[sentence])
            source = memory.states[sentence, :real, 0].long().tolist()
            generator = torch.Generator().manual_seed(hash((self.seed, *history, -1, *source)) % 2**31)
            rows.append(self.sharpness * torch.randn(self.vocabulary, dtype=torch.float64, generator=generator))
            looked = torch.zeros(memory.states.shape[1], dtype=torch.float64)
            looked[: len(source)] = torch.rand(len(source), dtype=torch.float64, generator=generator)
            weights.append((looked / looked.sum()).view(1, 1, -1))
        logits = torch.stack(rows)
        logits[:, self.end_token] += self.end_bonus
        shown = torch.stack(weights) if want_weights else None
        return Step(logits if columns is None else logits[:, columns], Said(said), shown)

    def forward(
        self, source: Tensor, target: Tensor, lengths: Tensor | None = None, target_lengths: Tensor | None = None
    ) -> Tensor:
        memory, state, all_logits = self.encode(source, lengths), None, []
        for place in range(target.shape[1]):
            state = self.start(memory) if state is None else state
            logits, state, _ = self.step(target[:, place], state, memory)
            all_logits.append(logits)
        return torch.stack(all_logits, 1)
