"""The hidden layer of a feed-forward network, h = drop(act(x Wᵀ + b)), with its bias's gradient from the same pass.

relu goes with the product itself; of gelu and silu what goes in is kept, for their slope.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.models.fused.drawing import Drawn
from regard.models.fused.launching import CELLS, cut, interpreted, power
from regard.models.fused.linear import Joined, product
from regard.models.fused.sums import Slot, Sums, columns


class Layer(NamedTuple):
    """A hidden layer: its matrix and bias, what is done with them, and where the bias's gradient goes."""

    joined: Joined
    act: str
    drawn: Drawn
    slot: Slot | None

    @property
    def bias(self) -> Tensor | None:
        """In float32."""
        return self.joined.biases[0] if self.joined.biases else None


class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, token: Tensor, layer: Layer, weight: Tensor) -> Tensor:
        matrix, half = layer.joined.matrix, layer.joined.bias
        if layer.act == "relu" and not layer.drawn.drops and half is not None:
            z = h = torch._addmm_activation(half, x, matrix.T)
        else:
            z = x @ matrix.T
            h = _activated(z, layer)
        # What relu gave says where it sloped, and which of it was dropped.
        ctx.save_for_backward(x, matrix, h if layer.act == "relu" else z)
        ctx.layer = layer
        return h

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from regard.models.fused.kernels import hidden_back_kernel

        x, matrix, z = ctx.saved_tensors
        layer, dh = ctx.layer, grads[0].contiguous()
        (N, C), (BR, BC), dz = dh.shape, columns(dh.shape[1]), torch.empty_like(dh)
        parts = dh if layer.slot is None else layer.slot.parts(dh)
        programs = cut(N, BR) if layer.slot is None else len(parts)
        adds = layer.bias is not None and layer.act != "relu"
        hidden_back_kernel[(programs, cut(C, BC))](
            dh, z, layer.bias if adds else z, layer.drawn.seed, dz, parts, N, layer.drawn.place, layer.drawn.level,
            layer.drawn.scale, cut(N, BR), parts.stride(0), C, BR, BC, adds, layer.drawn.drops, layer.act,
            layer.slot is not None, interpreted(dh), num_warps=4,
        )  # fmt: skip
        return dz @ matrix, None, None, product(dz.T, x)


def _activated(z: Tensor, layer: Layer) -> Tensor:
    from regard.models.fused.kernels import hidden_kernel

    (N, C), BC = z.shape, min(512, power(z.shape[1]))
    h, BR, drawn = torch.empty_like(z), CELLS // BC, layer.drawn
    hidden_kernel[(cut(N, BR), cut(C, BC))](
        z, z if layer.bias is None else layer.bias, drawn.seed, h, N, drawn.place, drawn.level, drawn.scale, C, BR, BC,
        layer.bias is not None, drawn.drops, layer.act, interpreted(z), num_warps=4,
    )  # fmt: skip
    return h


def hidden(x: Tensor, joined: Joined, act: str, drawn: Drawn, sums: Sums) -> Tensor:
    """[N, inputs] → [N, hidden]."""
    slot = sums.over_columns.slot(joined.biases) if joined.biases else None
    h: Tensor = Hidden.apply(  # type: ignore[no-untyped-call]
        x, sums.token, Layer(joined, act, drawn, slot), joined.weights[0]
    )
    return h
