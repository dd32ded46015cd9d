"""Dropout, which on a CPU is drawn sixteen bits a number and not by one call of the generator each.

PyTorch's own takes about 10 ns a number there, a tenth of a training step; 16 bits of a 64-bit draw take 1 to 2.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from regard.tracing.labels import active

LEVELS = 1 << 16
"""How finely the share is cut; 0.1 is dropped as 6,554 / 65,536."""


def drop(x: Tensor, share: float) -> Tensor:
    """x with each number 0 by this chance, the others times 1 / (1 - share)."""
    return x * keeping(x, share) if _by_bits(x) else functional.dropout(x, share)


def add_dropped(x: Tensor, added: Tensor, share: float) -> Tensor:
    """x + drop(added), the sum in the kind of numbers of x."""
    if not _by_bits(x):
        return x + (functional.dropout(added, share) if share > 0 else added)
    added = added.to(x.dtype)  # a sum of two kinds of numbers is slow on a CPU
    return torch.addcmul(x, added, keeping(x, share)) if share > 0 else x + added


def keeping(x: Tensor, share: float) -> Tensor:
    """Like x: 0 by this chance, else 1 / (1 - share)."""
    count = x.numel()
    bits = torch.empty(math.ceil(count / 4), dtype=torch.int64).random_(-(1 << 63), None)
    kept = bits.view(torch.int16)[:count].view(x.shape) >= round(share * LEVELS) - LEVELS // 2
    return kept.to(x.dtype).mul_(1 / (1 - share))


def _by_bits(x: Tensor) -> bool:
    return x.device.type == "cpu" and not torch.compiler.is_compiling() and not active()
