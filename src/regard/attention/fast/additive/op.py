"""Additive attention as PyTorch operations, so that autograd, torch.compile and CUDA graphs know them."""

import torch
from torch import Tensor

from regard.attention.fast.additive import gpu
from regard.attention.fast.additive.gpu import Pairs

Output = tuple[Tensor, Tensor]


@torch.library.custom_op("regard::additive_attention", mutates_args=())
def additive_attention(
    q: Tensor, k: Tensor, v: Tensor, value: Tensor, query_counts: Tensor, key_counts: Tensor, keep: Tensor | None,
    left: int, right: int, shift: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The output [N, T, E] and log Σ e^score [N, T]; see `gpu.Pairs` for what goes in."""
    return gpu.forward(
        Pairs(_rows(q), _rows(k), v, _rows(value), query_counts, key_counts, keep, left, right, shift), _cpu(q)
    )


@additive_attention.register_fake
def _(
    q: Tensor, k: Tensor, v: Tensor, value: Tensor, query_counts: Tensor, key_counts: Tensor, keep: Tensor | None,
    left: int, right: int, shift: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    shape = q.shape[:2]
    return value.new_empty(*shape, value.shape[2]), q.new_empty(shape, dtype=torch.float32)


@torch.library.custom_op("regard::additive_attention_backward", mutates_args=())
def backward(
    grad: Tensor, out: Tensor, lse: Tensor, q: Tensor, k: Tensor, v: Tensor, value: Tensor, query_counts: Tensor,
    key_counts: Tensor, keep: Tensor | None, left: int, right: int, shift: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of q, k, v and value."""
    pairs = Pairs(_rows(q), _rows(k), v, _rows(value), query_counts, key_counts, keep, left, right, shift)
    return gpu.backward(pairs, out, lse, grad, _cpu(q))


@backward.register_fake
def _(
    grad: Tensor, out: Tensor, lse: Tensor, q: Tensor, k: Tensor, v: Tensor, value: Tensor, query_counts: Tensor,
    key_counts: Tensor, keep: Tensor | None, left: int, right: int, shift: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), value.new_empty(value.shape)


def _keep(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: Output) -> None:
    tensors, ctx.bounds = inputs[:7], inputs[7:]  # type: ignore[attr-defined]
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*output, *tensors)  # type: ignore[arg-type]


def _gradients(ctx: torch.autograd.function.FunctionCtx, grad: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    found = backward(grad, *ctx.saved_tensors, *ctx.bounds)  # type: ignore[attr-defined]
    return (*found, None, None, None, None, None, None)


additive_attention.register_autograd(_gradients, setup_context=_keep)


def _rows(tensor: Tensor) -> Tensor:
    """With the numbers of a row side by side, as the kernels read them."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _cpu(q: Tensor) -> bool:
    """Only an interpreter runs the kernels on a CPU."""
    return q.device.type == "cpu"
