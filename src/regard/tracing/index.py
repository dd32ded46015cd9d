"""Which cell of one tensor a cell of another stands for: index maps, and moves made of them.

A flat index counts the cells of a tensor row by row, whatever its strides in memory are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Flat = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class IndexMap:
    """From places (i_0, i_1, …) to flat indices of a source:

    offset + Σ_d strides[d] i_d + table[Σ_d lookup[d] i_d]

    The table stands only where the map is not affine; a negative entry says that there is no cell.
    """

    strides: tuple[int, ...]
    offset: int = 0
    table: Flat | None = None
    lookup: tuple[int, ...] = ()

    def at(self, places: Sequence["int | Flat"]) -> Flat:
        """Flat indices for places, one entry an axis, which broadcast against each other; -1 where there is none."""
        flat = np.asarray(_dot(self.strides, places) + self.offset, np.int64)
        if self.table is None:
            return flat
        row = self.table[_dot(self.lookup, places)]
        return np.asarray(np.where(row < 0, -1, row + flat), np.int64)

    def everywhere(self, shape: Sequence[int]) -> Flat:
        """The map over all places of a shape."""
        return np.broadcast_to(self.at(np.ogrid[tuple(slice(n) for n in shape)]), tuple(shape))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndexMap):
            return NotImplemented
        mine, theirs = (self.strides, self.offset, self.lookup), (other.strides, other.offset, other.lookup)
        return mine == theirs and _same(self.table, other.table)

    __hash__ = None  # type: ignore[assignment]  # it holds an array


def compressed(index: Flat) -> IndexMap:
    """The map whose flat indices over all its places are these, as few numbers as possible.

    Axes along which the index grows evenly become strides; the others are looked up.
    """
    if index.size == 0:
        return IndexMap((0,) * index.ndim)
    if index.min() < 0:  # a cell that is not there must stay so whatever is added to it
        return IndexMap((0,) * index.ndim, 0, np.ascontiguousarray(index).ravel(), row_strides(index.shape))
    strides, left, corner = [], [], [slice(None)] * index.ndim
    for axis, size in enumerate(index.shape):
        steps = np.diff(index, axis=axis)
        even = size == 1 or bool((steps == steps.flat[0]).all())
        strides.append(int(steps.flat[0]) if even and size > 1 else 0)
        left.append(1 if even else size)
        if even:
            corner[axis] = slice(0, 1)
    rest = np.ascontiguousarray(index[tuple(corner)])
    if rest.size == 1:
        return IndexMap(tuple(strides), int(rest.flat[0]))
    lookup = tuple(s if n > 1 else 0 for s, n in zip(row_strides(left), left, strict=True))
    return IndexMap(tuple(strides), 0, rest.ravel(), lookup)


@dataclass(frozen=True)
class Piece:
    """A box of cells that are those of another step, without any arithmetic."""

    step: int
    start: tuple[int, ...]
    size: tuple[int, ...]
    map: IndexMap
    """From places counted from the start of the box; where it has no cell, another piece or the fill holds."""


@dataclass(frozen=True)
class Move:
    """A view, gather, join or slice: each cell is one cell of another step, or the fill. Later pieces lie on top."""

    pieces: tuple[Piece, ...]
    fill: float | None = None

    def sources(self, shape: Sequence[int], flat: Flat) -> tuple[Flat, Flat]:
        """For flat indices of the moved tensor: the step (-1: the fill) and the flat index there."""
        places = np.unravel_index(flat, tuple(shape)) if len(shape) else ()
        step, index = np.full(flat.shape, -1, np.int64), np.full(flat.shape, -1, np.int64)
        for piece in self.pieces:
            inside = np.ones(flat.shape, bool)
            for place, start, size in zip(places, piece.start, piece.size, strict=True):
                inside &= (place >= start) & (place < start + size)
            if not inside.any():
                continue
            found = piece.map.at([place[inside] - start for place, start in zip(places, piece.start, strict=True)])
            found = np.broadcast_to(found, (int(inside.sum()),))
            step[inside] = np.where(found >= 0, piece.step, step[inside])
            index[inside] = np.where(found >= 0, found, index[inside])
        return step, index


def row_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """How far apart in flat indices neighbours along each axis are."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def whole(step: int, shape: Sequence[int], index: IndexMap | None = None) -> Move:
    """A move of one piece: all cells from one step, by default each from the cell at its own place."""
    same = IndexMap(row_strides(shape)) if index is None else index
    return Move((Piece(step, (0,) * len(shape), tuple(shape), same),))


def _dot(strides: Sequence[int], places: Sequence["int | Flat"]) -> "int | Flat":
    total: int | Flat = 0
    for stride, place in zip(strides, places, strict=True):
        if stride:
            total = total + stride * place
    return total


def _same(mine: Flat | None, theirs: Flat | None) -> bool:
    return mine is theirs if mine is None or theirs is None else bool(np.array_equal(mine, theirs))
