"""The best few of a large vocabulary, with their log-probabilities.

R rows of hypotheses, V vocabulary.
"""

import torch
from torch import Tensor

CHUNK = 64


def best(logits: Tensor, allowed: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of each row, best first: (log-probabilities, places), both [R, k].

    `allowed` are the logits [R, V] with what may not be chosen at -inf; the probabilities are the model's own, so
    what is forbidden takes its share with it.
    """
    values, places = top(allowed, k)
    return values - logits.logsumexp(-1, keepdim=True), places


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
