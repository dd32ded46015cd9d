"""From vectors to logits. A vocabulary whose size no 8 divides is rounded up, for products want rows that begin at 16
bytes: the rows of the logits then stand farther apart than they are long, and so do those of their gradient.
"""

from typing import Any

import torch
from torch import Tensor

from regard.models.fused.linear import product


class Logits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, matrix)
        ctx.words = len(weight)
        return (x @ matrix.T)[:, : len(weight)]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, matrix = ctx.saved_tensors
        dy = _whole(grads[0], len(matrix))
        return dy @ matrix, None, product(dy.T, x)[: ctx.words]


def logits(x: Tensor, matrix: Tensor, weight: Tensor) -> Tensor:
    """[N, D] → [N, V], by a copy of the weight [V, D] that is as long as `linear.rounded` says, and 0 behind V."""
    y: Tensor = Logits.apply(x, matrix, weight)  # type: ignore[no-untyped-call]
    return y


def room_like(logits: Tensor) -> Tensor:
    """For their gradient, laid out as they are: [N, as many numbers as the rows are apart]."""
    return logits.new_empty(len(logits), logits.stride(0) if logits.stride(1) == 1 else logits.shape[1])


def _whole(gradient: Tensor, width: int) -> Tensor:
    """With the columns behind it, which hold zeros where it stands in such a room."""
    rows, words = gradient.shape
    if words == width:
        return gradient.contiguous()
    base = gradient._base
    if base is not None and base.shape == (rows, width) and base.data_ptr() == gradient.data_ptr():
        return base
    return torch.nn.functional.pad(gradient, (0, width - words))
