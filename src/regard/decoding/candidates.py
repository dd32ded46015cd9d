"""The best few of a large vocabulary, and what their logits are log-probabilities against.

R rows of hypotheses, V vocabulary.
"""

import torch
from torch import Tensor

CHUNK = 64
BLOCK = 1 << 18
"""Numbers that are summed up at once on a CPU: they fit its cache, and so does what is made of them on the way."""


def log_sum(logits: Tensor) -> Tensor:
    """log Σ_v exp(logit_v) of each row: [R, 1]."""
    rows = BLOCK // max(1, logits.shape[-1])
    if logits.device.type != "cpu" or len(logits) <= rows or not rows:
        return logits.logsumexp(-1, keepdim=True)
    return torch.cat([block.logsumexp(-1, keepdim=True) for block in torch.split(logits, rows)])


def top(numbers: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """torch.topk along the last axis, quicker on a CPU where there are many numbers to few wanted.

    The k largest numbers stand in at most k of the chunks, and those are the k with the largest maxima.
    """
    rows, size = numbers.shape
    chunks = size // CHUNK
    if numbers.device.type != "cpu" or chunks < 4 * k:
        return torch.topk(numbers, min(k, size), -1)
    cut = chunks * CHUNK
    chunked = numbers[:, :cut].view(rows, chunks, CHUNK)
    chosen = chunked.amax(-1).topk(k, -1).indices
    inside = chunked.gather(1, chosen.unsqueeze(-1).expand(-1, -1, CHUNK)).view(rows, k * CHUNK)
    places = (chosen.unsqueeze(-1) * CHUNK + torch.arange(CHUNK)).view(rows, k * CHUNK)
    if cut < size:
        inside = torch.cat([inside, numbers[:, cut:]], -1)
        places = torch.cat([places, torch.arange(cut, size).expand(rows, -1)], -1)
    values, index = inside.topk(k, -1)
    return values, places.gather(-1, index)
