"""x' = x + drop(a + b) and y = norm(x'), in one pass forward and one backward.

x [N, D] is the residual stream, in float32; a [N, D] what a sublayer adds, without the bias b of its last matrix, whose
gradient is a sum that the backward pass has at hand.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.models.fused.drawing import Drawn
from regard.models.fused.launching import CELLS, CELLS_BACK, PROGRAMS, cut, interpreted, summed, tile


class Normed(NamedTuple):
    """What a norm has: LayerNorm's weight and bias, or RMSNorm's weight alone."""

    weight: Tensor
    shift: Tensor | None
    epsilon: float


class AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, a: Tensor | None, b: Tensor | None, weight: Tensor, shift: Tensor | None, epsilon: float,
        drawn: Drawn, kind: torch.dtype,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        from regard.models.fused.kernels import add_norm_kernel

        (N, D), (BR, BD, warps) = x.shape, tile(x.shape[1], CELLS)
        out = x if a is None else torch.empty_like(x)
        y = x.new_empty(N, D, dtype=kind)
        rate = x.new_empty(N)
        mean = rate if shift is None else x.new_empty(N)
        add_norm_kernel[(cut(N, BR),)](
            x, x if a is None else a, x if b is None else b, weight, weight if shift is None else shift, drawn.seed,
            out, y, mean, rate, N, drawn.place, drawn.level, drawn.scale, epsilon, D, BR, BD, a is not None,
            b is not None, drawn.drops, shift is not None, interpreted(x), num_warps=warps,
        )  # fmt: skip
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(out, mean, rate, weight, drawn.seed)
        ctx.drawn, ctx.kind, ctx.adds, ctx.has_b, ctx.layer = (
            drawn,
            kind,
            a is not None,
            b is not None,
            shift is not None,
        )
        return x.view_as(x) if a is None else out, y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from regard.models.fused.kernels import add_norm_back_kernel

        dx, dy = grads
        x, mean, rate, weight, seed = ctx.saved_tensors
        drawn, (N, D), (BR, BD, warps) = ctx.drawn, x.shape, tile(x.shape[1], CELLS_BACK)
        programs = min(PROGRAMS, cut(N, BR))
        dy = x.new_zeros(N, D, dtype=ctx.kind) if dy is None else dy.contiguous()
        dout, da = torch.empty_like(x), x.new_empty(N, D, dtype=ctx.kind) if ctx.adds else None
        sums = x.new_empty(programs, 3, D)
        add_norm_back_kernel[(programs,)](
            x if dx is None else dx.contiguous(), dy, x, mean, rate, weight, seed, dout, dout if da is None else da,
            sums, N, drawn.place, drawn.level, drawn.scale, cut(N, BR), D, BR, BD, dx is not None, ctx.adds,
            drawn.drops, ctx.layer, interpreted(x), num_warps=warps,
        )  # fmt: skip
        of_weight, of_shift, of_b = summed(sums).unbind(0)
        return dout, da, of_b if ctx.has_b else None, of_weight, of_shift if ctx.layer else None, None, None, None


def add_norm(
    x: Tensor, a: Tensor | None, b: Tensor | None, norm: Normed, drawn: Drawn, kind: torch.dtype
) -> tuple[Tensor, Tensor]:
    """x' and y; without a, x itself and its norm."""
    found: tuple[Tensor, Tensor] = AddNorm.apply(  # type: ignore[no-untyped-call]
        x, a, b, norm.weight, norm.shift, norm.epsilon, drawn, kind
    )
    return found
