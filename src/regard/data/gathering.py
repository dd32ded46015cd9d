"""Reading a source once: its examples checked, cleaned and put on the disk in pieces, everything else counted.

record = gather(source, folder, settings, train=True, told=progress)

folder/
  00000.json …            pieces
  sides.bin               [N, sides] uint64: what tells whether two examples share a side
  whole.bin               [N, 2] uint64: what tells duplicates, where these are left out
  left.tsv                what was left out, where that is to be written
  record.json             the counts, written last: a source that has it need not be read again
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from regard.data.checking import Checker, as_text
from regard.data.cleaning import Cleaner
from regard.data.pieces import ARRAYS, PieceWriter
from regard.data.readers import Bad, Example, Files, reading
from regard.data.settings import DataSettings
from regard.data.sources import Languages, Sort, Source
from regard.data.split import side_hash
from regard.support.atomic import write_text
from regard.support.errors import Misuse

RECORD: Final = "record.json"
Told = Callable[[int, float], None]
"""How many examples more were read, and how much of the source has been, from 0 to 1."""


@dataclass
class Record:
    """What was found in one source."""

    name: str
    read: int = 0
    """Examples and lines that are none."""
    bad: dict[str, int] = field(default_factory=dict)
    """Lines that cannot be used, by reason."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Examples that the cleaning left out, by reason."""
    changed: int = 0
    """Texts that the normal form changed."""
    pieces: list[int] = field(default_factory=list)
    """Examples of each piece."""
    names: dict[str, list[str]] = field(default_factory=dict)
    """The tags and labels there are, sorted."""
    widths: dict[str, list[int]] = field(default_factory=dict)
    """Of numbers [width], of images [channels × height, channels]."""

    @property
    def kept(self) -> int:
        """Examples in the pieces."""
        return sum(self.pieces)


def gather(source: Source, folder: Path, settings: DataSettings, *, train: bool, told: Told) -> Record:
    """Read a source that was not read yet, and tell what was found."""
    if (folder / RECORD).exists():
        record = Record(**json.loads((folder / RECORD).read_bytes()))
        told(record.read, 1.0)
        return record
    folder.mkdir(parents=True, exist_ok=True)
    record = _Gathering(source, folder, settings, train).run(told)
    write_text(folder / RECORD, json.dumps(asdict(record), ensure_ascii=False))
    return record


class _Gathering:
    """The counts and open files while one source is read."""

    EVERY = 2000
    """Examples between two words about the progress, and as many hashes are written at once."""

    def __init__(self, source: Source, folder: Path, settings: DataSettings, train: bool) -> None:
        self.source, self.folder, self.settings, self.train = source, folder, settings, train
        self.sorts = source.sorts()
        self.record = Record(source.name)
        self.check = Checker(source)
        self.cleaner = Cleaner(settings.clean, self.sorts)
        self.sides = sides_of(self.sorts)
        self.spoken = spoken(self.sorts, getattr(source, "languages", None))
        self.whole = _whole(self.sorts, settings.clean.duplicates) if train else None
        self.bad: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.seen: dict[str, set[str]] = {name: set() for name, sort in self.sorts.items() if sort in ("tags", "label")}

    def run(self, told: Told) -> Record:
        with ExitStack() as stack:
            read, files = stack.enter_context(reading(self.source))
            writer = stack.enter_context(PieceWriter(self.folder, self.sorts))
            side_file = stack.enter_context((self.folder / "sides.bin").open("wb"))
            whole_file = stack.enter_context((self.folder / "whole.bin").open("wb")) if self.whole else None
            self.left = self._left(stack)
            self.names = self.source.files() or [self.source.name]
            self._all(read, files, writer, side_file, whole_file, told)
        self.record.bad, self.record.left_out = dict(self.bad), dict(self.left_out)
        self.record.pieces = writer.sizes
        self.record.names = {name: sorted(each) for name, each in self.seen.items()}
        return self.record

    def _all(
        self, read: Any, files: Files, writer: PieceWriter, side_file: IO[bytes], whole_file: Any, told: Told
    ) -> None:
        hashes: list[int] = []
        wholes: list[bytes] = []
        new = 0
        for each in read:
            new += 1
            if (found := self._usable(each)) is not None:
                writer.add(each.line, found)
                hashes += [
                    side_hash(_said(found[place]), of) for place, of in zip(self.sides, self.spoken, strict=True)
                ]
                if self.whole:
                    wholes.append(_digest(found, self.whole))
            if new == self.EVERY:
                self._flush(hashes, wholes, side_file, whole_file)
                told(new, files.share())
                self.record.read, new = self.record.read + new, 0
        self._flush(hashes, wholes, side_file, whole_file)
        for file in filter(None, (side_file, whole_file, self.left)):
            file.flush()
            os.fsync(file.fileno())  # the record, which says that they are whole, comes to the disk after them
        told(new, 1.0)
        self.record.read += new

    def _flush(self, hashes: list[int], wholes: list[bytes], side_file: IO[bytes], whole_file: Any) -> None:
        side_file.write(np.array(hashes, np.uint64).tobytes())
        if whole_file:
            whole_file.write(b"".join(wholes))
        hashes.clear()
        wholes.clear()

    def _usable(self, each: Example | Bad) -> tuple[Any, ...] | None:
        """The fields of an example that stays."""
        bad = each if isinstance(each, Bad) else self.check(each)
        if bad is not None:
            self._bad(bad)
            return None
        fields, changed = self.cleaner.formed(each.fields)  # type: ignore[union-attr]
        self.record.changed += changed
        if self.train and (reason := self.cleaner.reason(fields)):
            self.left_out[reason] += 1
            self._write_left(each.line, 0, reason, as_text(fields))
            return None
        self._look(each.line, fields)
        return fields

    def _look(self, line: int, fields: tuple[Any, ...]) -> None:
        """Remember the names and widths that occur."""
        for (name, sort), found in zip(self.sorts.items(), fields, strict=True):
            if sort == "label":
                self.seen[name].add(found)
            elif sort == "tags":
                self.seen[name].update(found)
            elif sort in ARRAYS and name not in self.record.widths:
                image = sort == "image"
                self.record.widths[name] = (
                    [found.shape[0] * found.shape[2], found.shape[2]] if image else [found.shape[1]]
                )

    def _bad(self, bad: Bad) -> None:
        if self.settings.on_bad == "stop":
            raise Misuse(
                f"{self.names[bad.file]}:{bad.line}: {bad.reason}: {bad.said}. "
                "(data.on_bad: skip leaves out what cannot be used and counts it)"
            )
        self.bad[bad.reason] += 1
        self._write_left(bad.line, bad.file, f"{bad.reason}: {bad.said}", bad.text)

    def _left(self, stack: ExitStack) -> IO[str] | None:
        if self.settings.skipped is None:
            return None
        return stack.enter_context((self.folder / "left.tsv").open("w", encoding="utf-8", newline="\n"))

    def _write_left(self, line: int, file: int, reason: str, text: str) -> None:
        if self.left is not None:
            self.left.write(left_line(self.names[file], line, reason, text))


def left_line(file: str, line: int, reason: str, text: str) -> str:
    """A line of the file of what was left out: file, line, reason and text; tabs in it are \\t, line ends \\n."""
    text = text.encode(errors="backslashreplace").decode()
    text = text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return f"{file}\t{line}\t{reason}\t{text}\n"


def sides_of(sorts: Mapping[str, Sort]) -> list[int]:
    """The columns by which examples hang together: all texts, or the source alone where the target may be shared.

    A label is shared by many, and so is the caption of an image of digits; these are no reason to hold together.
    """
    texts = [place for place, sort in enumerate(sorts.values()) if sort in ("text", "words")]
    return texts if texts and texts[0] == 0 else [0]


def spoken(sorts: Mapping[str, Sort], languages: Languages | None) -> list[str]:
    """What tells the sides apart: their languages where they are known, else the names of their columns."""
    names = list(sorts)
    sides = [names[place] for place in sides_of(sorts)]
    return [getattr(languages, side) if languages is not None else side for side in sides]


def _said(field: Any) -> str | bytes:
    if isinstance(field, str):
        return field
    return " ".join(field) if isinstance(field, list) else field.tobytes()


def _whole(sorts: Mapping[str, Sort], what: str) -> list[int] | None:
    """The columns that make an example a duplicate."""
    if what == "keep":
        return None
    names = list(sorts)
    if what == "pair":
        return list(range(len(names)))
    if what not in names:
        raise Misuse(f"data.clean.duplicates: {what}: the data have no {what}; they have {', '.join(names)}")
    return [names.index(what)]


def _digest(fields: Sequence[Any], places: Sequence[int]) -> bytes:
    """128 bits of what an example says, to the letter."""
    made = blake2b(digest_size=16)
    for place in places:
        said = _said(fields[place]) if not isinstance(fields[place], list) else "\x1f".join(fields[place])
        made.update(said.encode() if isinstance(said, str) else said)
        made.update(b"\x1e")
    return made.digest()
