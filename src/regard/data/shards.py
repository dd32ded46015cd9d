"""Shards: examples as memory-mapped numbers on the disk, read in any order without loading the rest.

    prepared/
      manifest.json           what was prepared from what: settings, inputs, counts, the hash of the tokenizer
      tokenizer.json
      train/                  a ShardSet; dev/ and the tests are others
        manifest.json         columns, shards with their rows, bytes and SHA-256, the names of tags and labels
        00000.safetensors     some ten thousand examples each; other tools open them as they are

    examples = ShardSet("prepared/train")
    len(examples)                          examples
    examples.columns["source"]             Column: dtype, width, kind, size
    examples.lengths("source")             [N] int32: places of every example, no token is read
    examples.tokens("source", 7)           [length] or [length, width]: a view into the file, read-only
    examples.gather("source", rows)        flat [total] or [total, width], offsets [len(rows) + 1] int64:
                                           row i of the call is flat[offsets[i]:offsets[i + 1]]
    examples.origin(7)                     Origin("corpus.en", 8): where the example came from
    examples.names("label")                the names that the numbers of tags and labels stand for
    examples.verify()                      reads all bytes; names the shard that was altered

An example has one run of values in each column, and the runs have different lengths:

    kind      values            dtype              of
    tokens    [length]          uint16 or uint32   a vocabulary of `size`; as Tokenizer.encode gives them: </s>
                                                   behind, the tag of a language in front; no start token
    names     [length]          uint16 or uint32   `names`: one a word for tags, exactly one for a label and for `pair`,
                                                   the languages of an example ("en-es") where there are several pairs
    counts    [length]          uint16             `words` beside `source`: the tokens of each word (not of </s>)
    spelling  [length, width]   uint16             `characters` beside `source`: the bytes of each token's text + 1, and
                                                   zeros behind them; all zeros for </s> and tags
    numbers   [length, width]   float32            time steps of a series
    image     [length, width]   uint8              columns of pixels from left to right, each [channels × height]

A shard set opens in a microsecond a shard, is pickled as the name of its folder (so that worker processes map the
same pages), and checks at opening that no shard is missing or cut short.
"""

import hashlib
import json
import math
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.support.errors import Failure, Misuse
from regard.support.nearest import unknown

FORMAT = 1
MANIFEST = "manifest.json"
LINE_BITS = 40
"""An origin is one number: the file's number above these bits, the line below."""

Kind = Literal["tokens", "names", "counts", "spelling", "numbers", "image"]
Values = NDArray[Any]
Told = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Column:
    """What one column holds."""

    dtype: str
    kind: Kind
    size: int | None = None
    """How many different values there are: the vocabulary, or the names."""
    width: int | None = None
    """Numbers a place; None where a place is one number."""
    channels: int | None = None
    """Of an image; its height is width / channels."""


class Origin(NamedTuple):
    """Where an example was read: a file as it was named, and the line in it, or the row, from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class ShardSet:
    """The examples of one split, as one long table over all its shards."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)
        self.columns: dict[str, Column] = {name: Column(**column) for name, column in self.manifest["columns"].items()}
        self.files: tuple[str, ...] = tuple(self.manifest["files"])
        self._shards = [_Shard(self.folder / each["file"], each["bytes"]) for each in self.manifest["shards"]]
        rows = [each["rows"] for each in self.manifest["shards"]]
        self._starts = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)]).astype(np.int64)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __reduce__(self) -> tuple[type["ShardSet"], tuple[Path]]:
        return ShardSet, (self.folder,)

    def names(self, column: str) -> tuple[str, ...]:
        """The names that the numbers of a column of tags or labels stand for, in the order of the numbers."""
        self._known(column)
        if column not in self.manifest["names"]:
            raise ValueError(f"{self.folder}: the column {column!r} holds {self.columns[column].kind}, not names")
        return tuple(self.manifest["names"][column])

    def lengths(self, column: str) -> NDArray[np.int32]:
        """[N]: how many places each example has in the column; reads the offsets and no values."""
        self._known(column)
        found = [np.diff(shard[f"{column}.offsets"].astype(np.int64)) for shard in self._shards]
        return np.concatenate(found).astype(np.int32) if found else np.zeros(0, np.int32)

    def tokens(self, column: str, row: int) -> Values:
        """The values of one example: a view into the file, which cannot be written to."""
        shard, inside = self._place(row)
        self._known(column)
        offsets = self._shards[shard][f"{column}.offsets"]
        return self._shards[shard][f"{column}.values"][offsets[inside] : offsets[inside + 1]]

    def gather(self, column: str, rows: Sequence[int] | NDArray[np.integer[Any]]) -> tuple[Values, NDArray[np.int64]]:
        """The values of many examples behind one another, in the order asked for, and where each begins.

        Flat [total] or [total, width], offsets [len(rows) + 1]. Slicing row by row costs 0.7 µs a row, which no
        indexing of whole shards beats unless most of a batch comes from one shard; shuffled batches do not.
        """
        found = self._known(column)
        index = np.asarray(rows, np.int64)
        if index.size and (index.min() < 0 or index.max() >= len(self)):
            raise IndexError(f"{self.folder}: rows {index.min()} to {index.max()} asked for, of {len(self)}")
        shards = np.searchsorted(self._starts, index, side="right") - 1
        pieces = list(self._pieces(column, shards.tolist(), (index - self._starts[shards]).tolist()))
        offsets = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
        empty = np.zeros((0, found.width) if found.width else 0, found.dtype)
        return np.concatenate(pieces) if pieces else empty, offsets

    def _pieces(self, column: str, shards: list[int], inside: list[int]) -> Iterator[Values]:
        tables = {each: (self._shards[each][f"{column}.values"], self._shards[each][f"{column}.offsets"])
                  for each in set(shards)}  # fmt: skip
        for shard, row in zip(shards, inside, strict=True):
            values, offsets = tables[shard]
            yield values[offsets[row] : offsets[row + 1]]

    def origin(self, row: int) -> Origin:
        """The file and the line that an example was read from."""
        shard, inside = self._place(row)
        file, line = divmod(int(self._shards[shard]["origin"][inside]), 1 << LINE_BITS)
        return Origin(self.files[file], line)

    def verify(self, told: Told = lambda count: None) -> None:
        """Read every byte; a Failure names each shard that is not what was written. `told` hears of bytes read."""
        entries = zip(self._shards, self.manifest["shards"], strict=True)
        altered = [str(shard.path) for shard, entry in entries if sha256(shard.path, told) != entry["sha256"]]
        if altered:
            raise Failure(f"{', '.join(altered)}: altered since it was written; prepare the data again")

    def _known(self, column: str) -> Column:
        if column not in self.columns:
            raise ValueError(f"{self.folder}: {unknown('column', column, self.columns)}")
        return self.columns[column]

    def _place(self, row: int) -> tuple[int, int]:
        if not 0 <= row < len(self):
            raise IndexError(f"{self.folder}: row {row} asked for, of {len(self)}")
        shard = int(np.searchsorted(self._starts, row, side="right")) - 1
        return shard, row - int(self._starts[shard])


class _Shard(Mapping[str, Values]):
    """One safetensors file: its arrays, mapped into memory when the first of them is asked for."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self._arrays: dict[str, Values] | None = None
        try:
            came = path.stat().st_size
        except FileNotFoundError:
            raise Failure(f"{path}: this shard is missing; prepare the data again") from None
        if came != size:
            raise Failure(f"{path}: this shard has {came:,} bytes, expected {size:,}; prepare the data again")

    def __getitem__(self, name: str) -> Values:
        if self._arrays is None:
            self._arrays = mapped(self.path)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays or mapped(self.path))

    def __len__(self) -> int:
        return len(list(iter(self)))


DTYPES = {"U8": "<u1", "U16": "<u2", "U32": "<u4", "I64": "<i8", "F32": "<f4"}
"""The types of safetensors that shards are made of, for numpy."""


def mapped(path: Path) -> dict[str, Values]:
    """The arrays of a safetensors file as views into the file; the library would copy them into memory."""
    with path.open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = 8 + int.from_bytes(memory[:8], "little")
    try:
        header = json.loads(memory[8:start])
        return {name: _view(memory, start, each) for name, each in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError):
        raise Failure(f"{path}: altered since it was written; prepare the data again") from None


def _view(memory: mmap.mmap, start: int, described: dict[str, Any]) -> Values:
    shape: list[int] = described["shape"]
    first = start + int(described["data_offsets"][0])
    return np.frombuffer(memory, DTYPES[described["dtype"]], math.prod(shape), first).reshape(shape)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a split; Misuse where the folder holds none or one of another version."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise Misuse(f"{folder}: no prepared data here (there is no {MANIFEST}); run regard prepare") from None
    except ValueError:
        raise Failure(f"{path}: altered since it was written; prepare the data again") from None
    if not isinstance(manifest, dict) or "shards" not in manifest:
        splits = ", ".join(sorted(str(each.parent) for each in folder.glob(f"*/{MANIFEST}")))
        raise Misuse(f"{folder}: not the folder of a split" + (f"; there are {splits}" if splits else ""))
    if manifest.get("format") != FORMAT:
        raise Misuse(f"{path}: written in format {manifest.get('format')}, this version reads {FORMAT}; prepare again")
    return manifest


def sha256(path: Path, told: Told = lambda count: None) -> str:
    """The checksum of a file, read in pieces; `told` hears of the bytes of each."""
    made = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            made.update(block)
            told(len(block))
    return made.hexdigest()
