"""The hidden layer of a feed-forward network, h = drop(act(x Wᵀ + b)), with its bias's gradient from the same pass.

relu goes with the product itself; of gelu and silu what goes in is kept, for their slope.
"""

from typing import Any

import torch
from torch import Tensor

from regard.models.fused.drawing import Drawn
from regard.models.fused.launching import CELLS, columns, cut, interpreted, power, summed
from regard.models.fused.linear import Joined, product


class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, matrix: Tensor, half: Tensor | None, weight: Tensor, bias: Tensor | None, act: str,
        drawn: Drawn,
    ) -> Tensor:  # fmt: skip
        ctx.act, ctx.drawn, ctx.has_b = act, drawn, bias is not None
        if act == "relu" and not drawn.drops and half is not None:
            z = h = torch._addmm_activation(half, x, matrix.T)
        else:
            z = x @ matrix.T
            h = _activated(z, bias, act, drawn)
        # What relu gave says where it sloped, and which of it was dropped.
        ctx.save_for_backward(x, matrix, h if act == "relu" else z, bias, drawn.seed)
        return h

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from regard.models.fused.kernels import hidden_back_kernel

        x, matrix, z, bias, seed = ctx.saved_tensors
        dh, drawn = grads[0].contiguous(), ctx.drawn
        (N, C), (BR, BC, programs) = dh.shape, columns(dh)
        dz, sums = torch.empty_like(dh), dh.new_empty(programs, C, dtype=torch.float32)
        adds = ctx.has_b and ctx.act != "relu"
        hidden_back_kernel[(programs, cut(C, BC))](
            dh, z, bias if adds else z, seed, dz, sums, N, drawn.place, drawn.level, drawn.scale, cut(N, BR), C, BR, BC,
            adds, drawn.drops, ctx.act, interpreted(dh), num_warps=4,
        )  # fmt: skip
        of_b = summed(sums) if ctx.has_b else None
        return dz @ matrix, None, None, product(dz.T, x), of_b, None, None


def _activated(z: Tensor, bias: Tensor | None, act: str, drawn: Drawn) -> Tensor:
    from regard.models.fused.kernels import hidden_kernel

    (N, C), BC = z.shape, min(512, power(z.shape[1]))
    h, BR = torch.empty_like(z), CELLS // BC
    hidden_kernel[(cut(N, BR), cut(C, BC))](
        z, z if bias is None else bias, drawn.seed, h, N, drawn.place, drawn.level, drawn.scale, C, BR, BC,
        bias is not None, drawn.drops, act, interpreted(z), num_warps=4,
    )  # fmt: skip
    return h


def hidden(x: Tensor, joined: Joined, act: str, drawn: Drawn) -> Tensor:
    """[N, inputs] → [N, hidden]."""
    (weight,), bias = joined.weights, joined.biases[0] if joined.biases else None
    h: Tensor = Hidden.apply(x, joined.matrix, joined.bias, weight, bias, act, drawn)  # type: ignore[no-untyped-call]
    return h
