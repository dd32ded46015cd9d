"""Telling a hypothesis that only repeats itself from one that is getting on."""

import torch
from torch import Tensor

LONGEST_PERIOD = 8
FEWEST_TOKENS = 24
FEWEST_TIMES = 5


def looping(so_far: Tensor) -> Tensor:
    """Which rows of so_far [R, t] end in the same 1 to 8 tokens at least 5 times over, for at least 24 tokens."""
    rows, done = so_far.shape
    stuck = torch.zeros(rows, dtype=torch.bool, device=so_far.device)
    for period in range(1, LONGEST_PERIOD + 1):
        stretch = max(FEWEST_TOKENS, FEWEST_TIMES * period)
        if done >= stretch:
            tail = so_far[:, -stretch:]
            stuck |= (tail[:, period:] == tail[:, :-period]).all(-1)
    return stuck
