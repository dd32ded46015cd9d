"""Which tiles a kernel of `kernels` works on."""

from typing import NamedTuple

from torch import Tensor

CELLS = 2048
"""Numbers of a tile."""
CELLS_BACK = 1024
"""Of one whose sums stay in registers from row to row."""
COLUMNS = 256
"""Of a tile that is summed over its rows."""


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
