"""Which examples came before: exact, in any order of magnitude, in bounded memory.

An example is 128 bits of a cryptographic hash of what it says (among a billion, two different ones are taken for the
same with a probability of 1 in 10²¹). The hashes are dealt out to files by their first bits, each small enough to be
sorted in memory; what is behind the first of its like there came before.
"""

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
"""[rows, 2]: the halves of 128 bits."""

SORTED_AT_ONCE: Final = 1 << 19
"""Examples: 12 MB as they lie in a file, three times that while they are sorted."""


def repeats(chunks: Iterable[Hashes], total: int, fates: NDArray[np.uint8], fate: int, folder: Path) -> int:
    """Give this fate to every example that came before, and say how many there are; `chunks` are read once."""
    parts = max(1, -(-total // SORTED_AT_ONCE))
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(parts)]
        start = 0
        for chunk in chunks:
            _deal(chunk, start, files)
            start += len(chunk)
        found = 0
        for file in files:
            rows = _behind_the_first(file)
            fates[rows] = fate
            found += len(rows)
    return found


def _deal(chunk: Hashes, start: int, files: Sequence[IO[bytes]]) -> None:
    numbered = np.column_stack([chunk, np.arange(start, start + len(chunk), dtype=np.uint64)])
    part = chunk[:, 0] % np.uint64(len(files))
    for number, file in enumerate(files):
        file.write(numbered[part == number].tobytes())


def _behind_the_first(file: IO[Any]) -> NDArray[np.int64]:
    file.seek(0)
    table = np.frombuffer(file.read(), np.uint64).reshape(-1, 3)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]  # equal ones stay in the order of their rows
    same = (table[1:, :2] == table[:-1, :2]).all(axis=1)
    rows: NDArray[np.int64] = table[1:, 2][same].astype(np.int64)
    return rows
