"""Attention over short rows as PyTorch operations, so that autograd, torch.compile and CUDA graphs know them."""

import torch
from torch import Tensor

from regard.attention.fast.short import gpu
from regard.attention.fast.short.gpu import Rows


@torch.library.custom_op("regard::short_attention", mutates_args=())
def short_attention(
    q: Tensor, k: Tensor, value: Tensor, queries: Tensor | None, keys: Tensor | None, keep: Tensor | None, shift: int,
    scale: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The output [B, T, H, E] and log Σ e^score [B, H, T]; see `gpu.Rows` for what goes in."""
    return gpu.forward(Rows(q, k, value, queries, keys, keep, shift, scale), q.device.type == "cpu")


@short_attention.register_fake
def _(
    q: Tensor, k: Tensor, value: Tensor, queries: Tensor | None, keys: Tensor | None, keep: Tensor | None, shift: int,
    scale: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    batch, places, heads, _ = q.shape
    out = value.new_empty(batch, places, heads, value.shape[3])
    return out, q.new_empty(batch, heads, places, dtype=torch.float32)


@torch.library.custom_op("regard::short_attention_backward", mutates_args=())
def backward(
    grad: Tensor, lse: Tensor, q: Tensor, k: Tensor, value: Tensor, queries: Tensor | None, keys: Tensor | None,
    keep: Tensor | None, shift: int, scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of q, k and value."""
    rows = Rows(q, k, value, queries, keys, keep, shift, scale)
    return gpu.backward(rows, lse, grad, q.device.type == "cpu")


@backward.register_fake
def _(
    grad: Tensor, lse: Tensor, q: Tensor, k: Tensor, value: Tensor, queries: Tensor | None, keys: Tensor | None,
    keep: Tensor | None, shift: int, scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return q.new_empty(q.shape), k.new_empty(k.shape), value.new_empty(value.shape)


def _keep(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: tuple[Tensor, Tensor]) -> None:
    tensors, ctx.bounds = inputs[:6], inputs[6:]  # type: ignore[attr-defined]
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1], *tensors)  # type: ignore[arg-type]


def _gradients(ctx: torch.autograd.function.FunctionCtx, grad: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    lse, *tensors = ctx.saved_tensors  # type: ignore[attr-defined]
    found = backward(grad, lse, *tensors, *ctx.bounds)  # type: ignore[attr-defined]
    return (*found, None, None, None, None, None)


short_attention.register_autograd(_gradients, setup_context=_keep)
