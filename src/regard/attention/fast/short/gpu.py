"""The kernels of short rows as functions of tensors: which tiles, which strides."""

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

SHORT = 128
"""Up to so many queries and keys the gradients are reckoned, all pairs of a head at a time."""
WIDEST = 128
"""The widest q, k and value that fit into a program …"""
WIDE = 64
"""… and, with gradients, into one of more than this many queries or keys."""
FREE = 1 << 30
"""Of `shift`: no bound on what a query sees."""
LOG2E = 1.4426950408889634
KEPT, KEPT_LONG = 96 << 10, 160 << 10
"""Bytes that a program holds beside its registers at the most, and for the gradients of more than `WIDE` places."""


def too_much(places: int, width: int, device: torch.device, *, trains: bool) -> str | None:
    """Why so many places (of queries or keys, the more of them) of such heads do not fit, in words; None: they do."""
    if width > WIDEST:
        return f"heads are wider than {WIDEST}"
    if trains and places > SHORT:
        return f"gradients of more than {SHORT} places are not computed at a time"
    if trains and places > WIDE and width > WIDE:
        return f"gradients of more than {WIDE} places are computed of heads up to {WIDE} wide"
    needed = KEPT_LONG if trains and places > WIDE else KEPT
    if device.type == "cuda" and _room(device) < needed:
        return "this GPU holds too little at a time"
    return None


@cache
def _room(device: torch.device) -> int:
    """The bytes that a program may hold beside its registers; 0 on a GPU that does not multiply bfloat16."""
    facts = torch.cuda.get_device_properties(device)
    return int(getattr(facts, "shared_memory_per_block_optin", 0)) if facts.major >= 8 else 0


@dataclass(frozen=True, eq=False)
class Rows:
    """One call: q [B, T, H, D], k [B, S, G, D], value [B, S, G, E], and which pairs may be attended."""

    q: Tensor
    k: Tensor
    value: Tensor
    queries: Tensor | None
    """[B] int32: the real ones. None: all."""
    keys: Tensor | None
    keep: Tensor | None
    """[B or 1, H or 1, T or 1, S or 1] booleans."""
    shift: int
    """Only keys with s <= t + shift."""
    scale: float

    @property
    def sizes(self) -> tuple[int, int, int, int, int, int, int]:
        """B, T, S, H, G, D, E."""
        batch, queries, heads, width = self.q.shape
        return batch, queries, self.k.shape[1], heads, self.k.shape[2], width, self.value.shape[3]

    @property
    def strides(self) -> list[int]:
        return [*self.q.stride()[:3], *self.k.stride()[:3], *self.value.stride()[:3]]

    @property
    def keeps(self) -> list[int]:
        if self.keep is None:
            return [0, 0, 0, 0]
        return [0 if size == 1 else step for size, step in zip(self.keep.shape, self.keep.stride(), strict=True)]

    @property
    def tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """What the kernels read of the mask; any tensor where there is nothing to read."""
        some = (self.queries, self.keys, self.keep)
        first, second, third = (self.q if each is None else each for each in some)
        return first, second, third

    @property
    def has(self) -> dict[str, bool]:
        given = {"QUERIES": self.queries, "KEYS": self.keys, "KEEP": self.keep}
        return {f"HAS_{name}": each is not None for name, each in given.items()}


def forward(rows: Rows, exact: bool = False, want_lse: bool = True) -> tuple[Tensor, Tensor]:
    """The output [B, T, H, E] and the logarithms of the sums of exponentials [B, H, T] (empty where not wanted).
    `exact`: for an interpreter, which has no products of bfloat16."""
    from regard.attention.fast.short.kernels import forward_kernel

    B, T, S, H, G, D, E = rows.sizes
    out = rows.value.new_empty(B, T, H, E)
    lse = rows.q.new_empty((B, H, T) if want_lse else (0,), dtype=torch.float32)
    BT, BS, DP, EP = min(_power(T), 64), min(_power(S), 64), _power(D), _power(E)
    forward_kernel[(B * H, -(-T // BT))](
        rows.q, rows.k, rows.value, out, lse, *rows.tables, T, S, H, G, D, E, rows.shift, rows.scale * LOG2E,
        *rows.strides, *rows.keeps, **rows.has, WANT_LSE=want_lse, BT=BT, BS=BS, DP=DP, EP=EP, EXACT=exact,
        num_warps=4, num_stages=2,
    )  # fmt: skip
    return out, lse


Gradients = tuple[Tensor, Tensor, Tensor]


def backward(
    rows: Rows, lse: Tensor, grad: Tensor, exact: bool = False, into: Gradients | None = None,
    sums: Gradients | None = None,
) -> Gradients:  # fmt: skip
    """Of q, k and value; `into`: where they are to be written (the numbers of a head side by side); `sums`: where in
    float32 what each adds up to in a sequence is to be, [B, H D], [B, G D] and [B, G E] with rows equally far apart."""
    from regard.attention.fast.short.kernels import backward_kernel

    B, T, S, H, G, D, E = rows.sizes
    grad = grad if grad.stride(-1) == 1 else grad.contiguous()
    if into is None:
        into = rows.q.new_empty(B, T, H, D), rows.k.new_empty(B, S, G, D), rows.value.new_empty(B, S, G, E)
    strides = [step for each in into for step in each.stride()[:3]]
    BT, BS, DP, EP = _power(T), _power(S), _power(D), _power(E)
    apart = 0 if sums is None else sums[0].stride(0)
    backward_kernel[(B * G,)](
        rows.q, rows.k, rows.value, lse, grad, *into, *(into if sums is None else sums), *rows.tables, T, S, H, G, D, E,
        rows.shift, rows.scale, *rows.strides, *grad.stride()[:3], *strides, apart, *rows.keeps, **rows.has, BT=BT,
        BS=BS, DP=DP, EP=EP, SUMS=sums is not None, EXACT=exact, num_warps=8 if BT * BS > 64 * 64 else 4, num_stages=1,
    )  # fmt: skip
    return into


def _power(size: int) -> int:
    """The next power of two, 16 at the least."""
    return max(16, 1 << (size - 1).bit_length())
