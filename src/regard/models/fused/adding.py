"""x' = x + drop(a + b) and y = norm(x'), in one pass forward and one backward.

x [N, D] is the residual stream, in float32; a [N, D] what a sublayer adds, without the bias b of its last matrix, whose
gradient is a sum that the backward pass has at hand.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.models.fused.drawing import Drawn
from regard.models.fused.launching import CELLS, CELLS_BACK, cut, interpreted, tile
from regard.models.fused.sums import Slot, Sums


class Normed(NamedTuple):
    """What a norm has: LayerNorm's weight and bias, or RMSNorm's weight alone."""

    weight: Tensor
    shift: Tensor | None
    epsilon: float


class Place(NamedTuple):
    """One sum and norm of the network: the bias of what is added, the norm, the chance, where their gradients go."""

    b: Tensor | None
    norm: Normed
    drawn: Drawn
    kind: torch.dtype
    """Of y, and of a."""
    slot: Slot


class AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, a: Tensor | None, token: Tensor, place: Place) -> tuple[Tensor, Tensor]:
        from regard.models.fused.kernels import add_norm_kernel

        (N, D), (BR, BD, warps) = x.shape, tile(x.shape[1], CELLS)
        b, (weight, shift, epsilon), drawn, kind, _ = place
        out = x if a is None else torch.empty_like(x)
        y, rate = x.new_empty(N, D, dtype=kind), x.new_empty(N)
        mean = rate if shift is None else x.new_empty(N)
        add_norm_kernel[(cut(N, BR),)](
            x, x if a is None else a, x if b is None else b, weight, weight if shift is None else shift, drawn.seed,
            out, y, mean, rate, N, drawn.place, drawn.level, drawn.scale, epsilon, D, BR, BD, a is not None,
            b is not None, drawn.drops, shift is not None, interpreted(x), num_warps=warps,
        )  # fmt: skip
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(out, mean, rate)
        ctx.place, ctx.adds = place, a is not None
        return x.view_as(x) if a is None else out, y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from regard.models.fused.kernels import add_norm_back_kernel

        dx, dy = grads
        x, mean, rate = ctx.saved_tensors
        (N, D), (BR, BD, warps) = x.shape, tile(x.shape[1], CELLS_BACK)
        _, norm, drawn, kind, slot = ctx.place
        dy = x.new_zeros(N, D, dtype=kind) if dy is None else dy.contiguous()
        dout, da = torch.empty_like(x), x.new_empty(N, D, dtype=kind) if ctx.adds else None
        parts = slot.parts(x)
        add_norm_back_kernel[(len(parts),)](
            x if dx is None else dx.contiguous(), dy, x, mean, rate, norm.weight, drawn.seed, dout,
            dout if da is None else da, parts, N, drawn.place, drawn.level, drawn.scale, cut(N, BR), parts.stride(0), D,
            BR, BD, dx is not None, ctx.adds, drawn.drops, norm.shift is not None, interpreted(x), num_warps=warps,
        )  # fmt: skip
        return dout, da, None, None


def add_norm(
    x: Tensor, a: Tensor | None, b: Tensor | None, norm: Normed, drawn: Drawn, kind: torch.dtype, sums: Sums
) -> tuple[Tensor, Tensor]:
    """x' and y; without a, x itself and its norm."""
    slot = sums.over_rows.slot((norm.weight, norm.shift, b), x.shape[1])
    place = Place(b, norm, drawn, kind, slot)
    found: tuple[Tensor, Tensor] = AddNorm.apply(x, a, sums.token, place)  # type: ignore[no-untyped-call]
    return found
