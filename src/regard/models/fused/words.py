"""Words in: drop(E[token] √d + P[place]), in float32 and one pass; and the gradients of tables, each by one sum.

A table that several read (source and target) has one gradient: all write theirs into one room, and when the last has,
they are added up by word.
"""

from typing import Any

import torch
from torch import Tensor

from regard.models.fused.drawing import Drawn
from regard.models.fused.launching import CELLS, cut, tile


class Reading:
    """All that reads one table in one pass."""

    def __init__(self, table: Tensor) -> None:
        self.table = table
        self.tokens: list[Tensor] = []
        self.held: Tensor | None = None
        self.token: Tensor = Token.apply(self, table)  # type: ignore[no-untyped-call]

    def enters(self, tokens: Tensor) -> int:
        """Where the rows of these tokens begin in the room."""
        start = sum(each.numel() for each in self.tokens)
        self.tokens.append(tokens.flatten())
        return start

    def room(self) -> Tensor:
        if self.held is None:
            rows = sum(each.numel() for each in self.tokens)
            self.held = self.table.new_empty(rows, self.table.shape[1])
        return self.held

    def gradient(self) -> Tensor | None:
        room, self.held = self.held, None
        if room is None:
            return None
        tokens = self.tokens[0] if len(self.tokens) == 1 else torch.cat(self.tokens)
        found: Tensor = torch.ops.aten.embedding_dense_backward(room, tokens, len(self.table), -1, False)
        return found


class Token(torch.autograd.Function):
    """Whoever takes it is waited for before the gradient is made."""

    @staticmethod
    def forward(ctx: Any, reading: Reading, table: Tensor) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.reading = reading
        return table.new_empty(0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return None, ctx.reading.gradient()


class Words(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tokens: Tensor, token: Tensor, reading: Reading, times: float, at: Tensor | None, trained: bool,
        drawn: Drawn,
    ) -> Tensor:  # fmt: skip
        from regard.models.fused.kernels import words_kernel

        table = reading.table
        N, D, (BR, BD, warps) = tokens.numel(), table.shape[1], tile(table.shape[1], CELLS)
        x = table.new_empty(N, D)
        words_kernel[(cut(N, BR),)](
            tokens.contiguous(), table, table if at is None else at, drawn.seed, x, N, tokens.shape[1], drawn.place,
            drawn.level, drawn.scale, times, D, BR, BD, at is not None, drawn.drops, num_warps=warps,
        )  # fmt: skip
        ctx.reading, ctx.start, ctx.shape = reading, reading.enters(tokens), tokens.shape
        ctx.drawn, ctx.times, ctx.trained = drawn, times, trained
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from regard.models.fused.kernels import dropped_kernel

        (dx,), drawn = grads, ctx.drawn
        (N, D), (BR, BD, warps) = dx.shape, tile(dx.shape[1], CELLS)
        out = ctx.reading.room()[ctx.start : ctx.start + N]
        dropped_kernel[(cut(N, BR),)](
            dx.contiguous(), drawn.seed, out, N, drawn.place, drawn.level, drawn.scale * ctx.times, D, BR, BD,
            num_warps=warps,
        )  # fmt: skip
        of_places = out.view(*ctx.shape, -1).sum(0).div_(ctx.times) if ctx.trained else None
        return None, None, None, None, of_places, None, None


def words(tokens: Tensor, reading: Reading, times: float, at: Tensor | None, drawn: Drawn) -> Tensor:
    """[B, T] → [B T, D]; at [T, D]: what is added for each place."""
    trained = at is not None and at.requires_grad
    x: Tensor = Words.apply(tokens, reading.token, reading, times, at, trained, drawn)  # type: ignore[no-untyped-call]
    return x
