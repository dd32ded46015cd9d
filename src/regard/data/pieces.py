"""Examples on their way: what was read and checked, on the disk in pieces until the tokenizers are known.

    with PieceWriter(folder, sorts) as writer:
        writer.add(line, fields)
    writer.sizes                               examples of each piece
    read_piece(folder, 0, sorts)               Piece

A piece is JSON, with the columns that are numbers or pixels beside it as safetensors. Pixels [height, width, channels]
stand as in shards: [width, channels × height], a column of the image behind the other.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from regard.data.shards import mapped
from regard.data.sources import Sort
from regard.data.writing import ragged
from regard.support.atomic import write_text, writing

EXAMPLES: Final = 10_000
BYTES: Final = 1 << 24
"""A piece ends with so many examples, or behind the one that makes its texts, numbers and pixels so large."""

ARRAYS: Final = {"numbers": "float32", "image": "uint8"}
"""The sorts that are arrays, and of what."""


@dataclass
class Piece:
    """Some examples: for each column one field an example."""

    columns: dict[str, list[Any]]
    lines: list[int] = field(default_factory=list)
    """Where each example begins in its file."""

    def __len__(self) -> int:
        return len(self.lines)

    def of(self, places: Sequence[int]) -> "Piece":
        """Some of the examples."""
        columns = {name: [each[place] for place in places] for name, each in self.columns.items()}
        return Piece(columns, [self.lines[place] for place in places])


class PieceWriter:
    """Puts examples into pieces, each written whole."""

    def __init__(self, folder: Path, sorts: Mapping[str, Sort]) -> None:
        self.folder, self.sorts = folder, sorts
        self.sizes: list[int] = []
        self._arrays = [place for place, sort in enumerate(sorts.values()) if sort in ARRAYS]
        self._texts = [place for place, sort in enumerate(sorts.values()) if sort == "text"]
        self._begin()

    def add(self, line: int, fields: Sequence[Any]) -> None:
        """One more example."""
        self._lines.append(line)
        self._rows.append(fields)
        for place in self._arrays:
            self._bytes += fields[place].nbytes
        for place in self._texts:
            self._bytes += len(fields[place])
        if len(self._lines) >= EXAMPLES or self._bytes >= BYTES:
            self._write()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None and self._lines:
            self._write()

    def _begin(self) -> None:
        self._lines: list[int] = []
        self._rows: list[Sequence[Any]] = []
        self._bytes = 0

    def _write(self) -> None:
        columns = dict(zip(self.sorts, map(list, zip(*self._rows, strict=True)), strict=True))
        write_piece(self.folder, len(self.sizes), self.sorts, Piece(columns, self._lines))
        self.sizes.append(len(self._lines))
        self._begin()


def write_piece(folder: Path, number: int, sorts: Mapping[str, Sort], piece: Piece) -> None:
    """One piece, atomically: its arrays first, so that a piece that is there is whole."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, sort in sorts.items():
        if sort in ARRAYS:
            rows = [_flat(each) for each in piece.columns[name]]
            runs = ragged(rows, ARRAYS[sort], rows[0].shape[1] if rows else 1)
            arrays |= {f"{name}.values": runs.values, f"{name}.offsets": runs.offsets}
    if arrays:
        from safetensors.numpy import save

        with writing(_path(folder, number, "safetensors")) as file:
            file.write(save(arrays))
    plain = {name: piece.columns[name] for name, sort in sorts.items() if sort not in ARRAYS}
    text = json.dumps({"lines": piece.lines, "columns": plain}, ensure_ascii=False, separators=(",", ":"))
    write_text(_path(folder, number, "json"), text)


def read_piece(folder: Path, number: int, sorts: Mapping[str, Sort]) -> Piece:
    """What was written."""
    held = json.loads(_path(folder, number, "json").read_bytes())
    arrays = mapped(_path(folder, number, "safetensors")) if any(sort in ARRAYS for sort in sorts.values()) else {}
    columns = {
        name: _apart(arrays[f"{name}.values"], arrays[f"{name}.offsets"]) if sort in ARRAYS else held["columns"][name]
        for name, sort in sorts.items()
    }
    return Piece(columns, held["lines"])


def joined(pieces: Iterator[Piece], sorts: Mapping[str, Sort]) -> Iterator[Piece]:
    """Small pieces put together as large ones."""
    made = Piece({name: [] for name in sorts})
    for piece in pieces:
        for name in sorts:
            made.columns[name] += piece.columns[name]
        made.lines += piece.lines
        if len(made) >= EXAMPLES:
            yield made
            made = Piece({name: [] for name in sorts})
    if made.lines:
        yield made


def _flat(field: NDArray[Any]) -> NDArray[Any]:
    """Pixels [height, width, channels] as [width, channels × height]; what has two axes stays."""
    return field if field.ndim == 2 else field.transpose(1, 2, 0).reshape(field.shape[1], -1)


def _apart(values: NDArray[Any], offsets: NDArray[Any]) -> list[NDArray[Any]]:
    return np.split(values, offsets[1:-1].astype(np.int64))


def _path(folder: Path, number: int, ending: str) -> Path:
    return folder / f"{number:05}.{ending}"
