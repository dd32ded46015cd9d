"""Writing what `shards` reads: one shard at a time, by any process, and the manifest of the split last.

    entry = write_shard(folder, 0, {"source": ragged(rows, "uint16")}, origins)     a process for each shard
    write_manifest(folder, columns, [entry, ...], files, names)                     one, at the end

    write_set(folder, columns, {"source": rows})                                    all of it, for what fits in memory

The bytes depend on the examples alone: neither on the time nor on which process wrote which shard.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.shards import FORMAT, LINE_BITS, MANIFEST, Column, Values, sha256
from regard.support.atomic import write_text, writing

Entry = dict[str, Any]


class Ragged(NamedTuple):
    """Runs of values behind one another: run i is values[offsets[i]:offsets[i + 1]]."""

    values: Values
    offsets: NDArray[np.uint32]


def smallest(size: int) -> str:
    """The type for numbers from 0 to size - 1: 16 bit, or 32 where that is too small."""
    return "uint16" if size <= 1 << 16 else "uint32"


def ragged(rows: Sequence[Any], dtype: str, width: int | None = None) -> Ragged:
    """Rows of different lengths as one run of values; rows of a column with a width are [length, width]."""
    offsets = np.zeros(len(rows) + 1, np.uint32)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    if width is not None:
        arrays = [np.asarray(row, dtype).reshape(-1, width) for row in rows]
        joined = np.concatenate(arrays) if arrays else np.zeros((0, width), dtype)
        return Ragged(np.ascontiguousarray(joined), offsets)  # files hold rows, whatever order the arrays came in
    flat = np.fromiter((each for row in rows for each in row), dtype, int(offsets[-1]))
    return Ragged(flat, offsets)


def origins(files: Sequence[int], lines: Sequence[int]) -> NDArray[np.int64]:
    """The number that says where an example came from: its file's number and the line, from 1."""
    return (np.asarray(files, np.int64) << LINE_BITS) | np.asarray(lines, np.int64)


def write_shard(folder: Path, number: int, columns: Mapping[str, Ragged], origin: NDArray[np.int64]) -> Entry:
    """Write one shard atomically, and what the manifest says of it."""
    from safetensors.numpy import save

    arrays: dict[str, Values] = {"origin": np.ascontiguousarray(origin, np.int64)}
    for name, (values, offsets) in columns.items():
        arrays |= {f"{name}.values": np.ascontiguousarray(values), f"{name}.offsets": offsets}
    path = folder / f"{number:05}.safetensors"
    data = save(arrays)
    with writing(path) as file:
        file.write(data)
    values_of = {name: len(each.values) for name, each in columns.items()}
    return {
        "file": path.name,
        "rows": len(origin),
        "values": values_of,
        "bytes": len(data),
        "sha256": sha256(path),
    }


def write_manifest(
    folder: Path,
    columns: Mapping[str, Column],
    entries: Sequence[Entry],
    files: Sequence[str],
    names: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write the manifest of a split, which makes a ShardSet of its shards."""
    manifest = {
        "format": FORMAT,
        "rows": sum(entry["rows"] for entry in entries),
        "values": {name: sum(entry["values"][name] for entry in entries) for name in columns},
        "columns": {name: asdict(column) for name, column in columns.items()},
        "names": {name: list(each) for name, each in (names or {}).items()},
        "files": list(files),
        "shards": list(entries),
    }
    write_text(folder / MANIFEST, as_json(manifest))


def write_set(
    folder: Path,
    columns: Mapping[str, Column],
    examples: Mapping[str, Sequence[Any]],
    *,
    names: Mapping[str, Sequence[str]] | None = None,
    rows_a_shard: int = 10_000,
) -> None:
    """Write examples that are in memory as a ShardSet; their origin is their number, from 1, in `memory`."""
    folder.mkdir(parents=True, exist_ok=True)
    total = len(next(iter(examples.values())))
    entries = []
    for number, start in enumerate(range(0, total, rows_a_shard)):
        part = slice(start, start + rows_a_shard)
        arrays = {name: ragged(examples[name][part], each.dtype, each.width) for name, each in columns.items()}
        lines = range(start + 1, min(start + rows_a_shard, total) + 1)
        entries.append(write_shard(folder, number, arrays, origins([0] * len(lines), lines)))
    write_manifest(folder, columns, entries, ["memory"], names)


def as_json(values: Any) -> str:
    """JSON as the manifests are written: the same text for the same values."""
    return json.dumps(values, ensure_ascii=False, indent=1) + "\n"
