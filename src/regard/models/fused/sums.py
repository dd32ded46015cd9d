"""Gradients of all vectors of a network (of norms, of biases) by one sum.

Each is a sum over rows, of which every program of a kernel makes a part. In place of a sum after each kernel, all write
their parts beside one another into one room [programs, columns], and when the last has, one operation adds them up.
Every part is added in the same order each time.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.models.fused.launching import CELLS, CELLS_BACK, COLUMNS, cut, power, tile

WALKERS = 660
"""Programs that walk over whole rows: as many as the 132 multiprocessors of a large GPU hold at a time, 5 on each."""
DOWN = 132
"""Programs that walk over some columns."""


class Slot(NamedTuple):
    """Columns of a room."""

    room: "Room"
    start: int

    def parts(self, like: Tensor) -> Tensor:
        """[programs, columns from here on], to be written to."""
        return self.room.taken(like.device)[:, self.start :]


class Room:
    def __init__(self, programs: int) -> None:
        self.programs, self.columns = programs, 0
        self.members: list[tuple[Tensor, int]] = []
        self.held: Tensor | None = None

    def slot(self, vectors: Sequence[Tensor | None], width: int | None = None) -> Slot:
        """For vectors that stand one behind the other, each as wide as said; None keeps its place free."""
        start = at = self.columns
        for each in vectors:
            if each is not None:
                self.members.append((each, at))
            at += (len(each) if each is not None else 0) if width is None else width
        self.columns = start + cut(at - start, 32) * 32
        return Slot(self, start)

    def taken(self, device: torch.device) -> Tensor:
        if self.held is None:
            self.held = torch.empty(self.programs, self.columns, device=device)
        return self.held

    def summed(self) -> dict[int, Tensor]:
        """Each vector's gradient, by its identity."""
        if self.held is None:
            return {}
        total, self.held = self.held.sum(0), None
        return {id(each): total[start : start + len(each)] for each, start in self.members}


class Sums:
    """The rooms of one pass, and a token: whoever takes it is waited for before the sums are made."""

    def __init__(self, vectors: Sequence[Tensor], rows: int, width: int, sentences: int) -> None:
        self.over_rows = Room(min(WALKERS, cut(rows, tile(width, CELLS_BACK).rows)))
        self.over_columns = Room(min(DOWN, cut(rows, CELLS // COLUMNS)))
        self.over_sentences = Room(sentences)
        self.token: Tensor = Token.apply(self, *vectors)  # type: ignore[no-untyped-call]
        self.vectors = [id(each) for each in vectors]

    def gradients(self) -> list[Tensor | None]:
        found = self.over_rows.summed() | self.over_columns.summed() | self.over_sentences.summed()
        return [found.get(each) for each in self.vectors]


class Token(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sums: Sums, *vectors: Tensor) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.sums = sums
        return vectors[0].new_empty(0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.sums.gradients()


def columns(width: int) -> tuple[int, int]:
    """Rows and columns of a tile of rows [N, width] whose columns are summed."""
    numbers = min(COLUMNS, max(16, power(width)))
    return CELLS // COLUMNS, numbers


def sum_columns(rows: Tensor, slot: Slot) -> None:
    """Parts of the sums over rows [N, C]."""
    from regard.models.fused.kernels import hidden_back_kernel

    (BR, BC), parts = columns(rows.shape[1]), slot.parts(rows)
    hidden_back_kernel[(len(parts), cut(rows.shape[1], BC))](
        rows, rows, rows, rows, rows, parts, len(rows), 0, 0, 1.0, cut(len(rows), BR), parts.stride(0), rows.shape[1],
        BR, BC, False, False, "none", True, rows.device.type == "cpu", num_warps=4,
    )  # fmt: skip
