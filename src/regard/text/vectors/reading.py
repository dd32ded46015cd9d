"""Files of word vectors.

GloVe            word 0.1 0.2 …                            a word a line; some words have spaces in them
word2vec text    400000 300, then lines like GloVe's
word2vec binary  400000 300, then for each the word, a space and the numbers as four bytes each
"""

from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.support.atomic import writing
from regard.support.compressed import Opened, opened
from regard.support.errors import Misuse
from regard.text.vectors.vectors import Vectors

Row = NDArray[np.float32]
WIDEST: Final = 100_000
"""Numbers of a vector; a file that says more is damaged."""
NOT_UTF8: Final = "a word that is not UTF-8"
TWICE: Final = "a word that stood before"
LONGEST_WORD: Final = 10_000
"""Bytes; a binary file with a longer one is none."""


class _Head(NamedTuple):
    words: int
    width: int


def read(path: Path, words: Container[str] | None, most: int | None) -> Vectors:
    """The vectors of a file, of whichever form."""
    if not path.is_file():
        raise Misuse(f"{path}: there is no such file")
    found: dict[str, Row] = {}
    left_out: Counter[str] = Counter()
    with opened(path) as file:
        bytes_ = _Bytes(file)
        first = bytes_.line()
        head = _head(first)
        if head is not None and not 0 < head.width <= WIDEST:
            raise Misuse(f"{path}:1: damaged: it says that a vector has {head.width:,} numbers")
        rows = _glove(bytes_, path, first) if head is None else _word2vec(bytes_, path, head)
        for bytes_of_word, row in rows:
            word = _word(bytes_of_word)
            if word is None:
                left_out[NOT_UTF8] += 1
            elif words is None or word in words:
                left_out[TWICE] += word in found
                found.setdefault(word, row)
            if most is not None and len(found) >= most:
                break
    width = head.width if head else len(next(iter(found.values()), ()))
    vectors = Vectors(found, np.stack(list(found.values())) if found else np.zeros((0, width), np.float32))
    vectors.left_out = {reason: count for reason, count in left_out.items() if count}
    return vectors


def _word(found: bytes) -> str | None:
    """None where its bytes are no text: as a text it could be another word's."""
    try:
        return found.decode()
    except UnicodeDecodeError:
        return None


def write(path: Path, vectors: Vectors, *, binary: bool) -> None:
    """As word2vec does; ValueError where a word could not be read again."""
    for word in vectors.words:
        _check(word, binary)
    with writing(path) as file:
        file.write(f"{len(vectors)} {vectors.width}\n".encode())
        for word, row in zip(vectors.words, vectors.matrix, strict=True):
            file.write(f"{word} ".encode())
            file.write(row.astype("<f4").tobytes() if binary else " ".join(map(repr, row.tolist())).encode())
            file.write(b"\n")


def _check(word: str, binary: bool) -> None:
    if binary and any(each.isspace() for each in word):
        raise ValueError(f"words: {word!r} has white space in it, which the binary form cannot hold; save it as text")
    if "\n" in word or word != word.rstrip("\r"):
        raise ValueError(f"words: {word!r} has a line end in it, which a file of vectors cannot hold")
    if any("\ud800" <= each <= "\udfff" for each in word):
        raise ValueError(f"words: {word!r} has half a surrogate pair, which UTF-8 cannot hold")


class _Bytes:
    """A file that is read now up to a mark, now so many bytes."""

    def __init__(self, file: Opened) -> None:
        self._file = file
        self._held = b""
        self._at = 0
        self.number = 0
        """Lines read."""

    def line(self) -> bytes | None:
        """Up to the next line's end, which is left out; None at the end."""
        self.number += 1
        found = self.until(b"\n")
        return self.rest() or None if found is None else found

    def until(self, mark: bytes, longest: int | None = None) -> bytes | None:
        """Up to the mark, which is left out; None where it does not come any more."""
        while (end := self._held.find(mark, self._at)) < 0:
            if (longest is not None and len(self._held) - self._at > longest) or not self._more():
                return None
        found, self._at = self._held[self._at : end], end + len(mark)
        return found

    def take(self, count: int) -> bytes | None:
        """So many bytes; None where there are fewer."""
        while len(self._held) - self._at < count:
            if not self._more():
                return None
        found, self._at = self._held[self._at : self._at + count], self._at + count
        return found

    def peek(self, count: int) -> bytes:
        """What comes next, at most so much."""
        while len(self._held) - self._at < count and self._more():
            pass
        return self._held[self._at : self._at + count]

    def rest(self) -> bytes:
        """What is held and was not read."""
        found, self._held, self._at = self._held[self._at :], b"", 0
        return found

    def _more(self) -> bool:
        block = self._file.read(1 << 20)
        self._held, self._at = self._held[self._at :] + block, 0
        return bool(block)


def _head(line: bytes | None) -> _Head | None:
    """How many words and numbers, where a first line says so."""
    parts = (line or b"").split()
    return _Head(int(parts[0]), int(parts[1])) if len(parts) == 2 and all(p.isdigit() for p in parts) else None


def _glove(file: _Bytes, path: Path, first: bytes | None) -> Iterator[tuple[bytes, Row]]:
    if first is None:
        raise Misuse(f"{path}: there is nothing in it")
    width = _width(first)
    if not width:
        raise Misuse(f"{path}:1: expected a word and its numbers, with spaces between; came {_shown(first)}")
    line: bytes | None = first
    while line is not None:
        if line.strip():
            yield _of_line(line, width, path, file.number)
        line = file.line()


def _width(line: bytes) -> int:
    """Numbers at the end of a line: all of its parts but the first, or fewer where a word has spaces in it."""
    parts = line.split()
    count = 0
    for part in reversed(parts[1:]):
        try:
            float(part)
        except ValueError:
            break
        count += 1
    return count


def _of_line(line: bytes, width: int, path: Path, number: int) -> tuple[bytes, Row]:
    parts = line.rstrip().rsplit(b" ", width)
    if len(parts) <= width:
        came = len(line.split()) - 1
        raise Misuse(f"{path}:{number}: expected a word and {width} numbers; came {came} numbers: {_shown(line)}")
    try:
        with np.errstate(over="ignore"):
            row = np.array(parts[1:], np.float32)
    except ValueError:
        raise Misuse(f"{path}:{number}: expected {width} numbers behind the word: {_shown(line)}") from None
    if not np.isfinite(row).all():
        raise Misuse(f"{path}:{number}: expected finite numbers: {_shown(line)}")
    return parts[0], row


def _word2vec(file: _Bytes, path: Path, head: _Head) -> Iterator[tuple[bytes, Row]]:
    if _looks_like_text(file, head.width):
        for number in range(head.words):
            line = file.line()
            if line is None:
                raise Misuse(f"{path}: cut short: it says {head.words:,} words, and there are {number:,}")
            yield _of_line(line, head.width, path, file.number)
        while (line := file.line()) is not None:
            if line.strip():
                raise _more(path, head)
        return
    for number in range(head.words):
        word = file.until(b" ", LONGEST_WORD)
        values = file.take(4 * head.width) if word is not None else None
        if word is None or values is None:
            raise Misuse(f"{path}: cut short or damaged: {number:,} of {head.words:,} words are whole")
        row = np.frombuffer(values, "<f4")
        if not np.isfinite(row).all():
            raise Misuse(f"{path}: damaged: the vector of word {number + 1:,}, {_shown(word)}, is not finite")
        yield word.lstrip(b"\n"), row.copy()
    if file.peek(1024).strip(b"\n"):
        raise _more(path, head)


def _more(path: Path, head: _Head) -> Misuse:
    return Misuse(f"{path}: damaged: its first line says {head.words:,} words, and there are more")


def _looks_like_text(file: _Bytes, width: int) -> bool:
    """Whether the first vector is written in digits: its bytes up to the line's end are a word and its numbers."""
    line = file.peek(LONGEST_WORD + 32 * width).split(b"\n")[0]
    parts = line.rstrip().rsplit(b" ", width)
    try:
        return len(parts) == width + 1 and all(np.isfinite(float(part)) for part in parts[1:])
    except ValueError:
        return False


def _shown(line: bytes) -> str:
    text = line.decode(errors="backslashreplace")
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
