"""Words in: drop(E[token] √d + P[place]), in float32 and one pass."""

from typing import Any

import torch
from torch import Tensor

from regard.models.fused.drawing import Drawn
from regard.models.fused.launching import CELLS, cut, tile


class Words(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tokens: Tensor, table: Tensor, times: float, at: Tensor | None, trained: bool, drawn: Drawn
    ) -> Tensor:
        from regard.models.fused.kernels import words_kernel

        N, D, (BR, BD, warps) = tokens.numel(), table.shape[1], tile(table.shape[1], CELLS)
        x = table.new_empty(N, D)
        words_kernel[(cut(N, BR),)](
            tokens.contiguous(), table, table if at is None else at, drawn.seed, x, N, tokens.shape[1], drawn.place,
            drawn.level, drawn.scale, times, D, BR, BD, at is not None, drawn.drops, num_warps=warps,
        )  # fmt: skip
        ctx.save_for_backward(tokens, drawn.seed)
        ctx.drawn, ctx.times, ctx.words, ctx.trained = drawn, times, len(table), trained
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        tokens, seed = ctx.saved_tensors
        dx = _dropped(grads[0].contiguous(), ctx.drawn._replace(seed=seed))
        of_table = torch.ops.aten.embedding_dense_backward(dx, tokens.flatten(), ctx.words, -1, False)
        of_table = of_table if ctx.times == 1 else of_table.mul_(ctx.times)
        of_places = dx.view(*tokens.shape, -1).sum(0) if ctx.trained else None
        return None, of_table, None, of_places, None, None


def _dropped(x: Tensor, drawn: Drawn) -> Tensor:
    from regard.models.fused.kernels import dropped_kernel

    if not drawn.drops:
        return x
    (N, D), (BR, BD, warps) = x.shape, tile(x.shape[1], CELLS)
    out = torch.empty_like(x)
    dropped_kernel[(cut(N, BR),)](
        x, drawn.seed, out, N, drawn.place, drawn.level, drawn.scale, D, BR, BD, num_warps=warps
    )
    return out


def words(tokens: Tensor, table: Tensor, times: float, at: Tensor | None, drawn: Drawn) -> Tensor:
    """[B, T] → [B T, D]; at [T, D]: what is added for each place."""
    trained = at is not None and at.requires_grad
    x: Tensor = Words.apply(tokens, table, times, at, trained, drawn)  # type: ignore[no-untyped-call]
    return x
