"""Additive attention as PyTorch operations, so that autograd, torch.compile and CUDA graphs know them."""

from typing import Any

import torch
from torch import Tensor

from regard.attention.fast.additive import gpu
from regard.attention.fast.additive.gpu import Pairs
from regard.attention.fast.once import differentiable_once

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


def attended(
    q: Tensor, k: Tensor, v: Tensor, value: Tensor, query_counts: Tensor, key_counts: Tensor, keep: Tensor | None,
    left: int, right: int, shift: int,
) -> Tensor:  # fmt: skip
    """The output alone. A compiler is given the operation it knows; others are spared 50 µs that it costs a call."""
    tensors, bounds = (q, k, v, value), (query_counts, key_counts, keep, left, right, shift)
    if torch.compiler.is_compiling():
        known: Tensor = additive_attention(*tensors, *bounds)[0]
        return known
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        output: Tensor = AdditiveKernels.apply(*tensors, *bounds)  # type: ignore[no-untyped-call]
        return differentiable_once(output, "AdditiveKernels")
    return gpu.forward(Pairs(_rows(q), _rows(k), v, _rows(value), *bounds), _cpu(q))[0]


class AdditiveKernels(torch.autograd.Function):
    """The same operation for autograd alone."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        q, k, v, value, *bounds = inputs
        pairs = Pairs(_rows(q), _rows(k), v, _rows(value), *bounds)
        output, lse = gpu.forward(pairs, _cpu(q))
        query_counts, key_counts, keep, *sides = bounds
        ctx.save_for_backward(output, lse, q, k, v, value, query_counts, key_counts, keep)
        ctx.sides = sides
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        output, lse, *tensors = ctx.saved_tensors
        if torch.is_grad_enabled():  # a graph of the gradients is made: the operation refuses to be differentiated
            return (*backward(grads[0], output, lse, *tensors, *ctx.sides), None, None, None, None, None, None)
        q, k, v, value, *bounds = tensors
        pairs = Pairs(_rows(q), _rows(k), v, _rows(value), *bounds, *ctx.sides)
        found = gpu.backward(pairs, output, lse, grads[0], _cpu(q))
        return (*found, None, None, None, None, None, None)


def _rows(tensor: Tensor) -> Tensor:
    """With the numbers of a row side by side, as the kernels read them."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _cpu(q: Tensor) -> bool:
    """Only an interpreter runs the kernels on a CPU."""
    return q.device.type == "cpu"
