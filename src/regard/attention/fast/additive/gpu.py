"""Additive attention by the Triton kernels: which tiles, how much memory, and PyTorch's names for it.

    output, lse = forward(Pairs(q, k, v, value, …))

No tensor of T × S × d is made. Scores of some queries at a time, and in the backward pass their weights and gradients,
stand in a scratch whose size is bounded (`Plan.rows`). Nothing is added up by atomics: the same call gives the same
bits, gradients included.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.fast.additive.series import table

FREE = 1 << 30
"""Of `left` and `right`: no bound on that side."""
SCRATCH = 32 << 20
"""Bytes that scores may take at a time, unless the inputs themselves take more."""
FEW = 8
"""Up to so many queries each has a program of its own."""
WIDEST = 4096
"""The widest q and k, and the widest value of few queries, that fit into a program."""
ERRORS = {torch.bfloat16: (8e-4, 1.2e-3), torch.float16: (1e-4, 1.5e-4)}
"""Of the sums of sines: forward, and backward (whose slopes may be twice as far off). Half precision itself is off by
2e-3 and 2.4e-4 a term."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """One call: q [N, T, D], k [N, S, D], v [D], value [N, S, E], and which pairs may be attended."""

    q: Tensor
    k: Tensor
    v: Tensor
    value: Tensor
    query_counts: Tensor
    """[N] int32: the real queries."""
    key_counts: Tensor
    """[N] int32."""
    keep: Tensor | None
    """[N or 1, T or 1, S or 1] booleans."""
    left: int
    right: int
    shift: int
    """Only pairs with -left <= s - (t + shift) <= right."""

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """N, T, S, D, E."""
        return *self.q.shape[:2], self.k.shape[1], self.q.shape[2], self.value.shape[2]

    @property
    def half(self) -> bool:
        return self.q.dtype in ERRORS

    @property
    def mask(self) -> tuple[Tensor, tuple[int, int, int]]:
        """The table as the kernels read it, and its strides."""
        if self.keep is None:
            return self.key_counts, (0, 0, 0)
        strides = (0 if size == 1 else step for size, step in zip(self.keep.shape, self.keep.stride(), strict=True))
        n, t, s = strides
        return self.keep, (n, t, s)


@dataclass(frozen=True)
class Plan:
    """Tiles for a call."""

    rows: int
    """Queries whose scores are in memory at a time."""
    BT: int
    BS: int
    BD: int
    warps: int


def plan(pairs: Pairs, tables: int, *, backwards: bool = False) -> Plan:
    """`tables`: bytes that a pair takes in the scratch. Tiles are those that were quickest on an H200."""
    N, T, S, _, _ = pairs.sizes
    inputs = sum(each.numel() * each.element_size() for each in (pairs.q, pairs.k, pairs.value))
    BT, BS, BD, warps = _tile(T, S, half=pairs.half, backwards=backwards)
    rows = max(SCRATCH, inputs // 2) // max(N * S * tables, 1) // BT * BT
    return Plan(min(max(rows, BT), T), BT, BS, BD, warps)


def _tile(T: int, S: int, *, half: bool, backwards: bool) -> tuple[int, int, int, int]:
    """Queries, keys, numbers of their width at a time, and warps."""
    if not half:
        return (64, 64, 64, 4) if not backwards else (128 if T > 64 else 64, 128 if S > 64 else 64, 64, 8)
    if min(T, S) >= 512 and not backwards:
        return 128, 256, 16, 8
    return 128 if T > 64 else 64, 128 if S > 64 else 64, 32, 8


def forward(pairs: Pairs, exact: bool = False) -> tuple[Tensor, Tensor]:
    """The output [N, T, E], and the logarithms of the sums of exponentials [N, T]. `exact`: without instructions that
    an interpreter has not."""
    from regard.attention.fast.additive import kernels

    N, T, S, D, E = pairs.sizes
    out = pairs.q.new_empty(N, T, E, dtype=pairs.value.dtype)
    lse = pairs.q.new_empty(N, T, dtype=torch.float32)
    keep, keeps = pairs.mask
    bounds = pairs.left, pairs.right, pairs.shift
    if is_few(pairs):
        kernels.few_kernel[(N, T)](
            pairs.q, pairs.k, pairs.v, pairs.query_counts, pairs.key_counts, keep, pairs.value, out, lse, T, S, D, E,
            *bounds, *pairs.q.stride()[:2], *pairs.k.stride()[:2], *keeps, *pairs.value.stride()[:2],
            **_few(pairs, exact),
        )  # fmt: skip
        return out, lse
    p = plan(pairs, 4)
    levels, numbers = _levels(pairs, 0)
    score = pairs.q.new_empty(N, p.rows, S, dtype=torch.float32)
    BE = min(128, _power(E)) if pairs.half else min(64, _power(E))
    for first in range(0, T, p.rows):
        kernels.scores_kernel[(_cut(S, p.BS), _cut(p.rows, p.BT), N)](
            pairs.q, pairs.k, pairs.v, numbers, pairs.query_counts, pairs.key_counts, keep, score, first, T, S, D,
            *bounds, *pairs.q.stride()[:2], *pairs.k.stride()[:2], *keeps, p.rows, _power(D), p.BT, p.BS, p.BD,
            levels, pairs.keep is not None, exact, num_warps=p.warps,
        )  # fmt: skip
        kernels.mix_kernel[(_cut(E, BE), _cut(p.rows, 64), N)](
            score, pairs.value, pairs.key_counts, out, lse, first, T, S, E, *pairs.value.stride()[:2], p.rows, 64,
            64 if pairs.half else 32, BE, not pairs.half, exact, num_warps=4,
        )  # fmt: skip
    return out, lse


def backward(
    pairs: Pairs, out: Tensor, lse: Tensor, grad: Tensor, exact: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of q, k, v and value."""
    from regard.attention.fast.additive import kernels

    N, T, S, D, E = pairs.sizes
    grad = grad.contiguous()
    delta = (grad.float() * out.float()).sum(-1)
    keep, keeps = pairs.mask
    bounds = pairs.left, pairs.right, pairs.shift
    if T == 1 and is_few(pairs):
        dq, dk = torch.empty_like(pairs.q.contiguous()), pairs.k.new_empty(N, S, D)
        dvalue, dv = pairs.value.new_empty(N, S, E), pairs.q.new_empty(N, D, dtype=torch.float32)
        kernels.few_back_kernel[(N,)](
            pairs.q, pairs.k, pairs.v, pairs.query_counts, pairs.key_counts, keep, pairs.value, lse, delta, grad, dq,
            dk, dvalue, dv, S, D, E, *bounds, pairs.q.stride(0), *pairs.k.stride()[:2], keeps[0], keeps[2],
            *pairs.value.stride()[:2], **_few(pairs, exact),
        )  # fmt: skip
        return dq, dk, dv.sum(0).to(pairs.v.dtype), dvalue
    p = plan(pairs, 4 if pairs.half else 8, backwards=True)
    levels, numbers = _levels(pairs, 1)
    kind = torch.bfloat16 if pairs.half else torch.float32
    several = p.rows < T
    weights = pairs.q.new_empty(N, p.rows, S, dtype=pairs.value.dtype)
    ds = pairs.q.new_empty(N, p.rows, S, dtype=kind)
    dq = pairs.q.new_empty(N, T, D)
    dk = pairs.k.new_empty(N, S, D, dtype=torch.float32 if several else pairs.k.dtype)
    values: Tensor | None = None
    blocks = _cut(T, p.BT)
    dv = pairs.q.new_zeros(N * blocks, D, dtype=torch.float32)
    for first in range(0, T, p.rows):
        rows = min(p.rows, T - first)
        kernels.back_kernel[(_cut(S, p.BS), _cut(rows, p.BT), N)](
            pairs.q, pairs.k, pairs.v, numbers, pairs.query_counts, pairs.key_counts, keep, pairs.value, lse, delta,
            grad, weights, ds, first, T, S, D, E, *bounds, *pairs.q.stride()[:2], *pairs.k.stride()[:2], *keeps,
            *pairs.value.stride()[:2], p.rows, _power(D), p.BT, p.BS, p.BD, min(64 if pairs.half else 32, _power(E)),
            levels, pairs.keep is not None, not pairs.half, exact, num_warps=p.warps,
        )  # fmt: skip
        part = torch.bmm(weights[:, :rows].transpose(1, 2), grad[:, first : first + rows].to(weights.dtype))
        values = part if not several else part.float() if values is None else values + part
        slopes = kernels.slopes_kernel
        BR, BC, BD = p.BT, p.BS if pairs.half else 32, 32
        slopes[(_cut(D, BD), _cut(rows, BR), N)](
            pairs.q, pairs.k, pairs.v, numbers, pairs.query_counts, pairs.key_counts, ds, dq, dv, first, 0, rows, S, D,
            pairs.left, pairs.right, pairs.shift + first, *pairs.q.stride()[:2], *pairs.k.stride()[:2], p.rows * S, S,
            1, T * D, blocks, BR, BC, BD, levels, True, False, exact, num_warps=p.warps,
        )  # fmt: skip
        BR, BC = p.BS, p.BT if pairs.half else 32
        slopes[(_cut(D, BD), _cut(S, BR), N)](
            pairs.k, pairs.q, pairs.v, numbers, pairs.key_counts, pairs.query_counts, ds, dk, dv, 0, first, S, rows, D,
            pairs.right, pairs.left, -(pairs.shift + first), *pairs.k.stride()[:2], *pairs.q.stride()[:2], p.rows * S,
            1, S, S * D, blocks, BR, BC, BD, levels, False, first > 0, exact, num_warps=p.warps,
        )  # fmt: skip
    assert values is not None
    return dq, dk.to(pairs.k.dtype), dv.sum(0).to(pairs.v.dtype), values.to(pairs.value.dtype)


def is_few(pairs: Pairs) -> bool:
    _, T, _, D, E = pairs.sizes
    return T <= FEW and max(D, E) <= WIDEST


def _few(pairs: Pairs, exact: bool) -> dict[str, int | bool]:
    _, _, _, D, E = pairs.sizes
    DP, EP = _power(D), _power(E)
    BS = max(1, min(32, 16384 // max(DP, EP)))
    return {
        "BS": BS, "DP": DP, "EP": EP, "HAS_KEEP": pairs.keep is not None, "PRECISE": not pairs.half, "EXACT": exact,
        "num_warps": 4 if BS * max(DP, EP) <= 8192 else 8,
    }  # fmt: skip


_tables: dict[tuple[float, bool, torch.device], tuple[int, Tensor]] = {}


def _levels(pairs: Pairs, backwards: int) -> tuple[int, Tensor]:
    """How many levels there are, and their numbers on the device; none where each tanh is to be exact."""
    if not pairs.half:
        return 0, pairs.key_counts
    error = ERRORS[pairs.q.dtype][backwards]
    key = error, bool(backwards), pairs.q.device
    if key not in _tables:
        flat = table(error, bool(backwards)).flat()
        _tables[key] = len(flat), torch.from_numpy(flat).to(pairs.q.device)
    return _tables[key]


def _cut(size: int, by: int) -> int:
    return -(-size // by)


def _power(size: int) -> int:
    """The next power of two, 16 at the least."""
    return max(16, 1 << (size - 1).bit_length())
