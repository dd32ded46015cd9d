"""Words in: a vector for each number of a token."""

import math

from torch import Tensor, nn

from regard.models.contract import Encoded, Encoder


class Words(Encoder):
    """x_i = E[token_i], times √width where scaled: then tied vectors of an output may stay small."""

    def __init__(self, vocabulary: int, width: int, *, scaled: bool = False) -> None:
        super().__init__()
        self.width = width
        self.vectors = nn.Embedding(vocabulary, width)
        self.scale = math.sqrt(width) if scaled else 1.0
        nn.init.normal_(self.vectors.weight, std=width**-0.5)

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        x = self.vectors(source)
        return Encoded(x if self.scale == 1 else x * self.scale, lengths)
