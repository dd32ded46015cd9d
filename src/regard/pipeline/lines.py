"""Lines in, lines out, in order: read as they come, written as they are done, and gone on with after a stop.

No torch here: what makes results of lines is passed in.
"""

import json
import os
import queue
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol, Self

from regard.data.lines import Line, Undecodable, lines
from regard.support.atomic import sync_folder, write_text
from regard.support.compressed import opened
from regard.support.errors import Failure, Misuse

MARK = b"\xef\xbb\xbf"
"""Of byte order, at the beginning of some texts; it is none of it."""
AT_ONCE = 1024
"""Lines that are read before the first is written, where they are there: among many the lengths are alike."""


class Reader(Protocol):
    """Lines in groups, as many as are there, and how much of the whole that is."""

    def groups(self, skip: int = 0) -> Iterator[list[Line]]:
        """From the line behind the first `skip` on."""

    def share(self) -> float | None: ...


class FromFile:
    """The lines of a file, compressed or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._share = 0.0

    def groups(self, skip: int = 0) -> Iterator[list[Line]]:
        with opened(self.path) as file:
            group: list[Line] = []
            seen = 0
            for number, line in enumerate(lines(file)):
                seen += len((line if isinstance(line, str) else line.text).encode()) + 1
                if number >= skip:
                    group.append(line)
                if len(group) == AT_ONCE:  # of a compressed file only what was read is known, which is more
                    self._share = file.share() if file.compressed else min(seen / file.size, 1.0)
                    yield group
                    group = []
            self._share = 1.0
            if group:
                yield group

    def share(self) -> float | None:
        return self._share


class FromStream:
    """The lines of a pipe or a terminal: a group is what has come by the time it is wanted."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._trouble: OSError | None = None

    def groups(self, skip: int = 0) -> Iterator[list[Line]]:
        coming: queue.Queue[Line | None] = queue.Queue(2 * AT_ONCE)
        threading.Thread(target=self._read, args=(coming,), daemon=True).start()
        while (line := coming.get()) is not None:
            group = [line]
            with suppress(queue.Empty):
                while len(group) < AT_ONCE:
                    if (line := coming.get(timeout=0.01)) is None:
                        coming.put(None)
                        break
                    group.append(line)
            yield group
        if self._trouble is not None:
            raise Failure(f"standard input: cannot be read: {self._trouble.strerror or self._trouble}")

    def _read(self, coming: "queue.Queue[Line | None]") -> None:
        """Whatever happens, an end comes: somebody waits for it."""
        try:
            for number, raw in enumerate(self._stream):
                coming.put(_line(raw.removeprefix(MARK) if number == 0 else raw))
        except OSError as error:
            self._trouble = error
        finally:
            coming.put(None)

    def share(self) -> float | None:
        return None


def _line(raw: bytes) -> Line:
    plain = raw.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return plain.decode()
    except UnicodeDecodeError as error:
        said = f"byte {plain[error.start]:#04x} at place {error.start + 1} is not UTF-8"
        return Undecodable(said, plain.decode(errors="backslashreplace"))


class Given:
    """Texts that are there."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)

    def groups(self, skip: int = 0) -> Iterator[list[Line]]:
        yield list(self._texts[skip:])

    def share(self) -> float | None:
        return None


class ToStream:
    """Written and flushed at once."""

    done = unusable = 0

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, texts: Iterable[str], lines: int, unusable: int = 0) -> None:
        for text in texts:
            self._stream.write(text)
        self._stream.flush()
        self.done += lines
        self.unusable += unusable

    def whole(self) -> None:
        """All is written."""


class ToFile:
    """A file that grows beside its name, and takes it when it is whole; after a stop it is gone on with.

    `NAME.part` holds what is done, `NAME.part.json` how many lines of the input that is, and of what they were made: a
    part that was made otherwise is begun again.
    """

    def __init__(self, path: Path, made_of: Mapping[str, Any], *, fresh: bool = False) -> None:
        self.path = path
        self._part = path.with_name(path.name + ".part")
        self._note = path.with_name(path.name + ".part.json")
        self._made_of = dict(made_of)
        self.done, self.unusable, size = (0, 0, 0) if fresh else self._found()
        """Lines of the input whose results are there already, and how many of them gave none."""
        try:
            self._file = self._part.open("r+b" if size else "wb")
        except OSError as error:  # names the file as it was given, not the one that grows beside it
            raise OSError(error.errno, error.strerror, str(path)) from None
        self._file.seek(size)
        self._file.truncate()

    def _found(self) -> tuple[int, int, int]:
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            if note["made_of"] == self._made_of and self._part.stat().st_size >= note["bytes"]:
                return int(note["lines"]), int(note["unusable"]), int(note["bytes"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return 0, 0, 0

    def write(self, texts: Iterable[str], lines: int, unusable: int = 0) -> None:
        for text in texts:
            self._file.write(text.encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        self.done += lines
        self.unusable += unusable
        note = {
            "made_of": self._made_of, "lines": self.done, "unusable": self.unusable, "bytes": self._file.tell()
        }  # fmt: skip
        write_text(self._note, json.dumps(note))

    def whole(self) -> None:
        """All is written: the file takes its name."""
        self._file.close()
        os.replace(self._part, self.path)
        self._note.unlink(missing_ok=True)
        sync_folder(self.path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._file.close()


Writer = ToStream | ToFile


def reader(texts: list[str], path: Path | None) -> Reader:
    """What there is to do: the texts, else the file, else standard input."""
    if texts and path is not None:
        raise Misuse("give texts or --input, not both")
    if texts:
        return Given(texts)
    if path is not None and str(path) != "-":
        return FromFile(path)
    if sys.stdin is None:
        raise Misuse("there is nothing to read: standard input is closed (give texts, or a file with --input)")
    if sys.stdin.isatty():
        print("regard: one text a line; Ctrl-D ends", file=sys.stderr)
    return FromStream(sys.stdin.buffer)


@contextmanager
def writer(path: Path | None, made_of: Mapping[str, Any], *, fresh: bool = False) -> Iterator[Writer]:
    """Where results go: the file, else standard output."""
    if path is None:
        yield ToStream(sys.stdout)
        return
    with ToFile(path, made_of, fresh=fresh) as file:
        yield file
