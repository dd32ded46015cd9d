"""Additive scores on a CPU by PyTorch's own operations, in blocks that stay in its cache, where nothing is compiled.

With a = e^2q and b = e^2k, tanh(q + k) = 1 - 2 / (1 + a b). Two terms share a fraction,

    v_1 / (1 + a_1 b_1) + v_2 / (1 + a_2 b_2) - (v_1 + v_2) / 2 = above / below

and above and below are sums of the four products 1, a_1 b_1, a_2 b_2, a_1 a_2 b_1 b_2: for all queries and keys one
product of matrices with an inner size of four. That leaves one division for two terms, and half an addition each.
Backward each term is 1 / (1 + a b) by a product of inner size two.

Dimensions in which |q| + |k| may be so large that the products overflow go term by term, through the sigmoid.
Shape letters: N sequences, T queries, S keys, D dimensions; m sequences, R queries, P dimensions or pairs of a block.
"""

from collections.abc import Callable, Iterator
from itertools import product
from math import prod

import torch
from torch import Tensor
from torch.nn.functional import pad

FORWARD, BACKWARD = 1 << 20, 1 << 18
"""Numbers in a block: 4 MB, and 1 MB where they are gone over more often."""
ROWS = 64
"""Queries of a block, where there is no room for all of them."""
NEAR = 16.0
"""Up to this |q| + |k| a product of two terms is far from the largest number: (1 + e^2x)² < e^65, and v may be 10⁹."""

Fractions = Callable[[Tensor, Tensor, "Room"], Tensor]
Block = tuple[slice, slice, slice]
"""Of sequences, queries and dimensions."""


def forward(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Scores [N, T, S] for q [N, T, D], k [N, S, D] and v [D]."""
    out = q.new_zeros(q.shape[0], q.shape[1], k.shape[1])
    near, far = _parted(q, k)
    for dims, add in ((near, _add_pairs), (far, _add_terms)):
        if len(dims):
            own = (q, k, v) if len(dims) == len(v) else (q[..., dims], k[..., dims], v[dims])
            add(out, *_doubled(*own[:2]), own[2], Room(out))
    return out.mul_(-2)


def backward(q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v from that of the scores."""
    near, far = _parted(q, k)
    if not len(far):
        return _gradients(_near_fractions, q, k, v, grad)
    found = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    for dims, fractions in ((near, _near_fractions), (far, _far_fractions)):
        if len(dims):
            for whole, part in zip(
                found, _gradients(fractions, q[..., dims], k[..., dims], v[dims], grad), strict=True
            ):
                whole[..., dims] = part
    return found


def _gradients(fractions: Fractions, q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    of_queries, of_keys, of_terms = _slopes(fractions, *_doubled(q, k), grad)
    return (of_queries.mT * (4 * v)).contiguous(), (of_keys.mT * (4 * v)).contiguous(), -2 * of_terms


def _parted(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Which dimensions may go by products, and which may not (what is no number goes there too)."""
    near = q.abs().amax((0, 1)) + k.abs().amax((0, 1)) <= NEAR
    return near.nonzero().squeeze(1), (~near).nonzero().squeeze(1)


def _doubled(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """2 q [N, D, T] and 2 k [N, D, S]."""
    return (2 * q).mT.contiguous(), (2 * k).mT.contiguous()


def _add_pairs(out: Tensor, a: Tensor, b: Tensor, v: Tensor, room: "Room") -> None:
    if len(v) % 2:  # a dimension of no weight
        a, b, v = pad(a, (0, 0, 0, 1)), pad(b, (0, 0, 0, 1)), pad(v, (0, 1))
    (N, D, T), S = a.shape, b.shape[2]
    first, second = v.view(2, D // 2, 1)
    weights = torch.stack([first + second, second - first, first - second, -first - second], -2) / 2
    a, b = a.view(N, 2, D // 2, T).transpose(1, 2), b.view(N, 2, D // 2, S).transpose(1, 2)
    for n, t, d in _blocks(FORWARD // 2, N, T, S, D // 2):
        x, y = a[n, d, :, t], b[n, d]
        m, P, R = x.shape[0], x.shape[1], x.shape[3]
        left, right = room("left", m, P, 4, 2 * R), room("right", m, P, 4, S)
        _products(x, left[..., R:])
        _products(y, right)
        torch.mul(left[..., R:], weights[d], out=left[..., :R])
        both = room("both", m * P, 2 * R, S)
        torch.bmm(left.flatten(0, 1).mT, right.flatten(0, 1), out=both)
        above, below = both[:, :R], both[:, R:]
        out[n, t] += above.div_(below).view(m, P, R, S).sum(1)


def _products(x: Tensor, out: Tensor) -> None:
    """1, e^x_1, e^x_2 and their product [m, P, 4, n], from x [m, P, 2, n]."""
    out[:, :, 0] = 1
    torch.exp(x, out=out[:, :, 1:3])
    torch.mul(out[:, :, 1], out[:, :, 2], out=out[:, :, 3])


def _add_terms(out: Tensor, a: Tensor, b: Tensor, v: Tensor, room: "Room") -> None:
    for n, t, d in _blocks(BACKWARD, a.shape[0], a.shape[2], b.shape[2], len(v)):
        terms = _far_fractions(a[n, d, t], b[n, d], room).sub_(0.5)
        out[n, t] += (v[d] @ terms.flatten(2)).view(out[n, t].shape)


def _near_fractions(a: Tensor, b: Tensor, room: "Room") -> Tensor:
    """1 / (1 + e^(a + b)) [m, P, R, S]."""
    (m, P, R), S = a.shape, b.shape[2]
    left, right = room("left", m, P, 2, R).fill_(1), room("right", m, P, 2, S).fill_(1)
    torch.exp(a, out=left[:, :, 0])
    torch.exp(b, out=right[:, :, 0])
    out = torch.bmm(left.flatten(0, 1).mT, right.flatten(0, 1), out=room("fractions", m * P, R, S))
    return out.reciprocal_().view(m, P, R, S)


def _far_fractions(a: Tensor, b: Tensor, room: "Room") -> Tensor:
    out = room("fractions", *a.shape, b.shape[2])
    return torch.add(a.unsqueeze(-1), b.unsqueeze(-2), out=out).neg_().sigmoid_()


def _slopes(fractions: Fractions, a: Tensor, b: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """With r = 1 / (1 + e^(a + b)): Σ_s g r (1 - r) [N, D, T], Σ_t of the same [N, D, S], and Σ g (r - 1/2) [D]."""
    (N, D, T), S, room = a.shape, b.shape[2], Room(a)
    of_queries, of_keys, of_terms = torch.empty_like(a), torch.zeros_like(b), a.new_zeros(D)
    ones = a.new_ones(max(T, S))
    for n, t, d in _blocks(BACKWARD, N, T, S, D):
        r, g = fractions(a[n, d, t], b[n, d], room), grad[n, t]
        m, P, R = r.shape[:3]
        terms = r.view(P, -1) @ g.flatten() if m == 1 else (r.flatten(2) @ g.reshape(m, -1, 1)).sum((0, 2))
        of_terms[d] += terms - g.sum() / 2
        slope = r.addcmul_(r, r, value=-1).mul_(g.unsqueeze(1))
        of_queries[n, d, t] = torch.mv(slope.view(-1, S), ones[:S]).view(m, P, R)
        of_keys[n, d] += torch.bmm(ones[:R].expand(m * P, 1, R), slope.view(-1, R, S)).view(m, P, S)
    return of_queries, of_keys, of_terms


class Room:
    """Memory that the blocks share, a piece a name: fresh memory would cost more than what is done in it."""

    def __init__(self, like: Tensor) -> None:
        self.like, self.held = like, dict[str, Tensor]()

    def __call__(self, name: str, *shape: int) -> Tensor:
        size = prod(shape)
        if name not in self.held or self.held[name].numel() < size:
            self.held[name] = self.like.new_empty(size)
        return self.held[name][:size].view(shape)


def _blocks(most: int, N: int, T: int, S: int, D: int) -> Iterator[Block]:
    """Blocks of at most so many numbers [m, P, R, S], where one key of one query has room."""
    rows = T if most >= 8 * T * S else min(T, ROWS)
    dims = max(1, min(D, most // (rows * S)))
    several = max(1, most // (rows * S * D)) if dims == D and rows == T else 1
    cut = (
        [slice(at, at + size) for at in range(0, whole, size)] for whole, size in ((N, several), (T, rows), (D, dims))
    )
    return product(*cut)
