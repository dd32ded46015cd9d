"""Where in a storage the cells of a tensor lie: with it every view explains itself, without a rule of its own."""

from math import gcd
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.tracing.index import Flat, IndexMap, compressed, row_strides


class Geometry(NamedTuple):
    """Cell (i_0, i_1, …) lies at offset + Σ_d strides[d] i_d, counted in elements."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    conjugate: bool = False

    @property
    def size(self) -> int:
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def last(self) -> int:
        """Where the farthest cell lies; before the offset where there is none."""
        last = self.offset
        for n, stride in zip(self.shape, self.strides, strict=True):
            if n == 0:
                return self.offset - 1
            last += (n - 1) * stride
        return last

    @property
    def bytes(self) -> tuple[int, int]:
        """The bytes from the first cell to behind the last."""
        wide = self.dtype.itemsize
        return self.offset * wide, (self.last + 1) * wide

    @property
    def dense(self) -> bool:
        """Whether it fills all places between its first and its last cell."""
        return self.last - self.offset + 1 == self.size and not any(
            n > 1 and stride == 0 for n, stride in zip(self.shape, self.strides, strict=True)
        )

    @property
    def row_by_row(self) -> bool:
        """Whether its cells lie one after the other in the order of flat indices."""
        return all(
            n == 1 or stride == row
            for n, stride, row in zip(self.shape, self.strides, row_strides(self.shape), strict=True)
        )

    def alike(self, other: "Geometry") -> bool:
        """Whether both read the bytes in the same way."""
        return self.dtype == other.dtype and self.conjugate == other.conjugate

    def overlaps(self, other: "Geometry") -> bool:
        """Whether they may share a cell."""
        (lo, hi), (low, high) = self.bytes, other.bytes
        return lo < high and low < hi and not (self.alike(other) and self._apart(other))

    def _apart(self, other: "Geometry") -> bool:
        """Whether they are columns of the same rows that do not touch: chunks of a row, slices of a last axis."""
        (mine, steps), (theirs, others) = self._run(), other._run()
        row = gcd(*steps, *others)
        if row == 0:
            return False
        a, b = self.offset % row, other.offset % row
        return a + mine <= row and b + theirs <= row and (a + mine <= b or b + theirs <= a)

    def _run(self) -> tuple[int, list[int]]:
        """How many cells lie one after the other, and the strides from one such run to others."""
        run, steps = 1, []
        for stride, n in sorted(zip(self.strides, self.shape, strict=True)):
            if n > 1 and stride == run:
                run *= n
            elif n > 1 and stride > 0:
                steps.append(stride)
        return run, steps

    def covers(self, other: "Geometry") -> bool:
        """Whether every cell of the other surely is one of its own."""
        if not self.alike(other):
            return False
        if self.dense:
            return self.offset <= other.offset and other.last <= self.last
        return self[:3] == other[:3] or self._has(other)

    def _has(self, other: "Geometry") -> bool:
        """Whether the other is a box of cells of its own: along each axis a stretch of it."""
        left, theirs = other.offset - self.offset, dict(other._axes())
        for stride, size in self._axes():
            start, left = divmod(left, stride)
            if start < 0 or start + theirs.pop(stride, 1) > size:
                return False
        return left == 0 and not theirs

    def _axes(self) -> list[tuple[int, int]]:
        """Strides and sizes, the largest stride first; axes that lie one in the other's steps are one."""
        axes: list[tuple[int, int]] = []
        for stride, size in sorted(zip(self.strides, self.shape, strict=True), reverse=True):
            if size > 1 and stride > 0:
                if axes and axes[-1][0] == stride * size:
                    stride, size = stride, size * axes.pop()[1]
                axes.append((stride, size))
        return axes

    def addresses(self) -> Flat:
        """Of every cell, in the shape of the tensor."""
        return IndexMap(self.strides, self.offset).everywhere(self.shape)

    def _strided(self, other: "Geometry") -> IndexMap | None:
        """The map to one that fills its places, in whatever order its axes lie, where no step of this one carries over
        from one axis of it to the next; None otherwise.
        """
        if not other.dense or not (other.offset <= self.offset and self.last <= other.last):
            return None
        lies = zip(other.strides, other.shape, row_strides(other.shape), strict=True)
        axes: list[tuple[int, int, int]] = []
        for stride, n, row in sorted((each for each in lies if each[1] > 1), reverse=True):
            if axes and axes[-1][0] == stride * n and axes[-1][2] == row * n:  # one goes on where the other ends
                n *= axes.pop()[1]
            axes.append((stride, n, row))
        counts, flats = [0] * len(axes), []
        steps = [(self.offset - other.offset, 2), *zip(self.strides, self.shape, strict=True)]
        for step, n in steps:
            flat = 0
            for k, (stride, _, row) in enumerate(axes):
                digit, step = divmod(step, stride)
                flat += digit * row
                counts[k] += digit * max(n - 1, 0)
            flats.append(flat)
        inside = all(count < size for count, (_, size, _) in zip(counts, axes, strict=True))
        return IndexMap(tuple(flats[1:]), flats[0]) if inside else None

    def to(self, other: "Geometry") -> IndexMap:
        """From places of this tensor to flat indices of another in the same storage; -1 where that has no cell."""
        if other.row_by_row and other.offset <= self.offset and self.last <= other.last:
            return IndexMap(self.strides, self.offset - other.offset)
        if self[:3] == other[:3]:
            return IndexMap(row_strides(self.shape))
        strided = self._strided(other)
        if strided is not None:
            return strided
        found = np.full(max(other.last - other.offset + 1, 0), -1, np.int64)
        found[other.addresses().reshape(-1) - other.offset] = np.arange(other.size)
        here = self.addresses() - other.offset
        inside = (here >= 0) & (here < found.size)
        return compressed(np.where(inside, found[np.where(inside, here, 0)], -1) if found.size else here * 0 - 1)


def geometry(tensor: Tensor) -> Geometry:
    return Geometry(int(tensor.storage_offset()), tensor.shape, tensor.stride(), tensor.dtype, tensor.is_conj())
