"""Which tiles a kernel of `kernels` works on, and the sums of its programs."""

from typing import NamedTuple

import torch
from torch import Tensor

PROGRAMS = 660
"""That walk over rows and add up: as many as fit on the 132 multiprocessors of a large GPU at a time, 5 on each."""
CELLS = 2048
"""Numbers of a tile."""
CELLS_BACK = 1024
"""Of one whose sums stay in registers from row to row."""


def power(size: int) -> int:
    """The next power of two."""
    return 1 << max(size - 1, 0).bit_length()


def cut(size: int, by: int) -> int:
    return -(-size // by)


class Tile(NamedTuple):
    """Of whole rows."""

    rows: int
    numbers: int
    """Of a row, and what makes it a power of two."""
    warps: int


def tile(width: int, cells: int) -> Tile:
    """Of about so many cells; four warps, or as many as a wide row needs for 16 cells a thread."""
    wide = power(width)
    rows = max(1, cells // wide)
    return Tile(rows, wide, max(4, rows * wide // 512))


def interpreted(tensor: Tensor) -> bool:
    """Only an interpreter runs the kernels on a CPU."""
    return tensor.device.type == "cpu"


def summed(sums: Tensor) -> Tensor:
    """[programs, …] → […]."""
    return sums.sum(0)


def summed_rows(rows: Tensor) -> Tensor:
    """[N, C] → [C] in float32."""
    from regard.models.fused.kernels import hidden_back_kernel

    BR, BC, programs = columns(rows)
    sums = rows.new_empty(programs, rows.shape[1], dtype=torch.float32)
    hidden_back_kernel[(programs, cut(rows.shape[1], BC))](
        rows, rows, rows, rows, rows, sums, len(rows), 0, 0, 1.0, cut(len(rows), BR), rows.shape[1], BR, BC, False,
        False, "none", interpreted(rows), num_warps=4,
    )  # fmt: skip
    return summed(sums)


def columns(rows: Tensor) -> tuple[int, int, int]:
    """Of tiles for sums over rows [N, C]: rows, columns, and how many programs go down."""
    BC = min(256, max(16, power(rows.shape[1])))
    BR = CELLS // BC
    return BR, BC, max(1, min(cut(len(rows), BR), 1056 // cut(rows.shape[1], BC)))
