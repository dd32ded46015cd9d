"""Where views lie, against the numbers in them: a tensor of its own addresses, viewed at random."""

import random

import torch
from torch import Tensor

from regard.tracing.geometry import geometry


def viewed(x: Tensor, draw: random.Random) -> Tensor:
    """Up to three turns, slices, selections, repetitions and flattenings."""
    for _ in range(draw.randrange(4)):
        kind, axis = draw.randrange(5), draw.randrange(max(x.dim(), 1))
        if kind == 0 and x.dim() > 1:
            x = x.transpose(axis, draw.randrange(x.dim()))
        elif kind == 1 and x.dim():
            start = draw.randrange(x.shape[axis])
            end = draw.randrange(start, x.shape[axis]) + 1
            x = x[(slice(None),) * axis + (slice(start, end, draw.choice([1, 1, 2])),)]
        elif kind == 2 and x.dim():
            x = x.select(axis, draw.randrange(x.shape[axis]))
        elif kind == 3:
            x = x.unsqueeze(axis)
            x = x.expand([draw.choice([1, 2]) if n == 1 else n for n in x.shape])
        elif x.is_contiguous():
            x = x.view(-1)
    return x


def test_what_is_said_of_two_views_is_true_of_their_cells() -> None:
    draw, whole = random.Random(0), torch.arange(4 * 6 * 3).view(4, 6, 3)
    covered = 0
    for _ in range(3_000):
        one = viewed(whole, draw)
        other = viewed(draw.choice([one, whole]), draw)
        mine, theirs = set(one.flatten().tolist()), set(other.flatten().tolist())
        a, b = geometry(one), geometry(other)
        if a.covers(b):
            covered += 1
            assert theirs <= mine, (a, b)
        if not a.overlaps(b):
            assert not mine & theirs, (a, b)
        places = torch.from_numpy(b.to(a).everywhere(other.shape).copy())
        found = torch.where(places >= 0, one.flatten()[places.clamp_min(0)], -1)
        own = torch.tensor([value in mine for value in other.flatten().tolist()]).view(other.shape)
        assert torch.equal(found, torch.where(own, other, -1)), (a, b)
    assert covered > 1_000
