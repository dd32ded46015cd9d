"""Telling a hypothesis that only repeats itself from one that is getting on."""

import torch
from torch import Tensor

from regard.decoding.repeating import LONGEST_PERIOD, stretch


def looping(so_far: Tensor) -> Tensor:
    """Which rows of so_far [R, t] end in the same 1 to 8 tokens at least 5 times over, for at least 24 tokens."""
    rows, done = so_far.shape
    stuck = torch.zeros(rows, dtype=torch.bool, device=so_far.device)
    for period in range(1, LONGEST_PERIOD + 1):
        if done >= (length := stretch(period)):
            tail = so_far[:, -length:]
            stuck |= (tail[:, period:] == tail[:, :-period]).all(-1)
    return stuck
