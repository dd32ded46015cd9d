"""Smoothed cross-entropy of logits in half precision, summed: they are read once forward and once backward.

L = Σ_t (1 - ε) (-log p(y_t)) + ε mean_v (-log p(v))        as `training.objective.smoothed` has it
"""

from typing import Any

import torch
from torch import Tensor

from regard.data.collating import NOTHING
from regard.models.fused.launching import cut, interpreted, power
from regard.models.fused.logits import room_like

WIDEST = 8192
"""Logits that a program reads at a time."""


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor, smoothing: float) -> Tensor:
        from regard.models.fused.kernels import loss_kernel

        N, V = logits.shape
        losses, logs = (logits.new_empty(N, dtype=torch.float32) for _ in range(2))
        BV = min(WIDEST, power(V))
        loss_kernel[(N,)](
            logits, wanted, losses, logs, logits.stride(0), smoothing, NOTHING, V, BV,
            num_warps=min(8, max(1, BV // 1024)),
        )  # fmt: skip
        ctx.save_for_backward(logits, wanted, logs)
        ctx.smoothing = smoothing
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from regard.models.fused.kernels import loss_back_kernel

        logits, wanted, logs = ctx.saved_tensors
        (N, V), gradient = logits.shape, room_like(logits)
        W = gradient.shape[1]
        BV = min(WIDEST // 2, power(W))
        loss_back_kernel[(N, cut(W, BV))](
            logits, wanted, logs, grads[0].float(), gradient, logits.stride(0), ctx.smoothing, NOTHING, V, W, BV,
            interpreted(logits), num_warps=min(8, max(1, BV // 1024)),
        )  # fmt: skip
        return gradient if W == V else gradient[:, :V], None, None


def smoothed(logits: Tensor, wanted: Tensor, smoothing: float) -> Tensor:
    """Of logits [..., V] and wanted [...], a float32 scalar."""
    logits = logits.flatten(0, -2)
    logits = logits if logits.stride(-1) == 1 else logits.contiguous()
    loss: Tensor = Loss.apply(logits, wanted.flatten(), smoothing)  # type: ignore[no-untyped-call]
    return loss
