"""Files as they are meant, whether compressed or not: gzip, zstd, xz and bzip2 by their first bytes, not by name."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from regard.support.errors import Failure, Misuse

BLOCK = 1 << 17

MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2"}


def kind(start: bytes) -> str | None:
    """How a file that begins with these bytes is compressed; None: it is not."""
    return next((name for magic, name in MAGIC.items() if start.startswith(magic)), None)


class Opened:
    """A file being read: its plain bytes, and how much of what is on the disk has been read."""

    def __init__(self, path: Path, raw: IO[bytes], plain: IO[bytes]) -> None:
        self.path, self._raw, self.plain = path, raw, plain
        self.size = path.stat().st_size

    @property
    def compressed(self) -> bool:
        """Whether its plain bytes are others than those on the disk."""
        return self.plain is not self._raw

    def share(self) -> float:
        """How much of the file has been read, from 0 to 1."""
        return self._raw.tell() / self.size if self.size else 1.0

    def blocks(self, size: int = BLOCK) -> Iterator[bytes]:
        """The plain bytes, piece by piece."""
        while block := self.read(size):
            yield block

    def read(self, size: int) -> bytes:
        """The next plain bytes, at most so many; nothing at the end."""
        try:
            return self.plain.read(size)
        except EOFError:
            raise Failure(f"{self.path}: cut short: the compressed data end before their end is marked") from None
        except (OSError, zlib.error, lzma.LZMAError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise Failure(f"{self.path}: the compressed data are damaged: {error}") from None


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """Open a file for reading its plain bytes."""
    with path.open("rb") as raw:
        sort = kind(raw.read(8))
        raw.seek(0)
        yield Opened(path, raw, _plain(raw, sort, path))


def _plain(raw: IO[bytes], sort: str | None, path: Path) -> IO[bytes]:
    if sort == "gzip":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="rb"))
    if sort == "xz":
        return cast(IO[bytes], io.BufferedReader(_Streams(raw, _xz, padding=4), BLOCK))
    if sort == "bzip2":
        return cast(IO[bytes], io.BufferedReader(_Streams(raw, bz2.BZ2Decompressor), BLOCK))
    return cast(IO[bytes], io.BufferedReader(_Zstd(raw, path), BLOCK)) if sort == "zstd" else raw


def _xz() -> Any:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ)


class _Streams(io.RawIOBase):
    """Streams of xz or bzip2 behind one another; the standard library's own files end silently where junk follows one.

    Between and behind streams of xz there may be zeros, `padding` of them or a multiple.
    """

    def __init__(self, raw: IO[bytes], new: Callable[[], Any], padding: int = 0) -> None:
        self._raw, self._new, self._padding = raw, new, padding
        self._stream: Any = None
        self._fed = b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        while self._stream is not None or self._begins():
            if self._stream.needs_input and not self._fed and not self._more():
                raise EOFError
            fed, self._fed = self._fed, b""
            data = self._stream.decompress(fed, len(into))
            if self._stream.eof:
                self._fed, self._stream = self._stream.unused_data, None
            if data:
                into[: len(data)] = data
                return len(data)
        return 0

    def _begins(self) -> bool:
        """Whether another stream does, and not the end of the file."""
        zeros = 0
        while self._fed or self._more():
            left = self._fed.lstrip(b"\0") if self._padding else self._fed
            zeros, self._fed = zeros + len(self._fed) - len(left), left
            if left:
                break
        if self._padding and zeros % self._padding:
            raise lzma.LZMAError(f"{zeros} zeros behind a stream, no multiple of {self._padding}")
        self._stream = self._new() if self._fed else None
        return self._stream is not None

    def _more(self) -> bool:
        self._fed = self._raw.read(BLOCK)
        return bool(self._fed)


class _Zstd(io.RawIOBase):
    """Frames of zstd behind one another; the library's own reader does not tell a file that is cut short."""

    def __init__(self, raw: IO[bytes], path: Path) -> None:
        try:
            import zstandard
        except ImportError:
            raise Misuse(f"{path}: compressed with zstd; to read it: pip install 'regard[data]'") from None
        self._raw, self._new = raw, zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj
        self._error = zstandard.ZstdError
        self._frame: Any = None
        self._fed = b""
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        while not self._left and self._feed():
            pass
        count = min(len(into), len(self._left))
        into[:count], self._left = self._left[:count], self._left[count:]
        return count

    def _feed(self) -> bool:
        """Decompress one more piece; False at the end of the file."""
        data = self._fed or self._raw.read(BLOCK)
        if not data:
            if self._frame is not None:
                raise EOFError
            return False
        self._frame = self._frame or self._new()
        try:
            self._left = self._frame.decompress(data)
        except self._error as error:
            raise zlib.error(str(error)) from None
        self._fed = self._frame.unused_data if self._frame.eof else b""
        self._frame = None if self._frame.eof else self._frame
        return True
