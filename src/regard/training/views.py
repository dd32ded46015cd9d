"""Some examples of a shard set, in any order and perhaps several times, as a shard set of their own."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.shards import Column, Origin, ShardSet, Values

Index = NDArray[np.int64]


class View(ShardSet):
    """The examples of these numbers. `as_source`: a target without a source is its own source (reconstruct)."""

    def __init__(self, examples: ShardSet, index: Index | None = None, *, as_source: bool = False) -> None:
        self.inner = examples
        self.index = np.arange(len(examples)) if index is None else index
        self.folder: Path = examples.folder
        self.manifest: dict[str, Any] = examples.manifest
        self.files = examples.files
        target = {"source": examples.columns["target"]} if as_source else {}
        self.columns: dict[str, Column] = target | examples.columns
        self._own = {"source": "target"} if as_source else {}

    def __len__(self) -> int:
        return len(self.index)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.inner, self.index, bool(self._own))

    def names(self, column: str) -> tuple[str, ...]:
        return self.inner.names(column)

    def lengths(self, column: str) -> NDArray[np.int32]:
        return self.inner.lengths(self._own.get(column, column))[self.index]

    def tokens(self, column: str, row: int) -> Values:
        return self.inner.tokens(self._own.get(column, column), int(self.index[row]))

    def gather(self, column: str, rows: Any) -> tuple[Values, NDArray[np.int64]]:
        return self.inner.gather(self._own.get(column, column), self.index[np.asarray(rows, np.int64)])

    def origin(self, row: int) -> Origin:
        return self.inner.origin(int(self.index[row]))


def _again(examples: ShardSet, index: Index, as_source: bool) -> View:
    return View(examples, index, as_source=as_source)
