"""Which path a call would take, and why."""

import torch
from torch import Tensor

from regard.attention import checks, scores
from regard.attention import normalise as normalisers
from regard.attention.core import Implementation
from regard.attention.fast.choice import Choice, explain
from regard.attention.masks import Mask
from regard.attention.normalise import Normaliser
from regard.attention.scores import Score


def explain_choice(
    query: Tensor,
    key: Tensor,
    value: Tensor | None = None,
    *,
    score: Score | str = scores.PLAIN["scaled_dot"],
    bias: Tensor | None = None,
    mask: Mask | Tensor | None = None,
    normalise: Normaliser | str = normalisers.softmax,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    implementation: Implementation = "auto",
) -> Choice:
    """Which path `attend` would take for these arguments (`weigh`, without a value). Nothing is computed."""
    call = checks.checked(query, key, value, score, bias, mask, normalise, dropout, generator)
    return explain(call, implementation)
