"""Lines of text files, streamed. A line ends with LF or CR LF and nothing else: no other character splits one."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from regard.support.compressed import Opened, opened
from regard.support.errors import Misuse

BOM = "\ufeff"
LONGEST = 1 << 26
"""Bytes of a line; a longer one is no line, and would have to be held in memory."""


class Undecodable(NamedTuple):
    """A line that is not UTF-8: what is wrong with it, and its text with the wrong bytes as \\x.."""

    said: str
    text: str


Line = str | Undecodable


def lines(file: Opened) -> Iterator[Line]:
    """The lines of an opened file without their ends; a mark of byte order at the start is left out."""
    first = True
    for block in _whole_lines(file):
        try:
            text = block.decode()
        except UnicodeDecodeError:
            found: list[Line] = [_decoded(line) for line in block.split(b"\n")]
        else:
            found = (
                list(text.split("\n")) if "\r" not in text else [each.removesuffix("\r") for each in text.split("\n")]
            )
        if first and isinstance(found[0], str):
            found[0] = found[0].removeprefix(BOM)
        first = False
        yield from found


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a file, which is open as long as they are asked for."""
    with opened(path) as file:
        yield from lines(file)


def _whole_lines(file: Opened) -> Iterator[bytes]:
    """Pieces of the file that end where a line does, without that line's end."""
    pending: list[bytes] = []
    held = 0
    for number, block in enumerate(file.blocks()):
        if number == 0 and block[:2] in (b"\xff\xfe", b"\xfe\xff"):
            _refuse_utf16(file)
        cut = block.rfind(b"\n")
        if cut < 0:
            pending.append(block)
            held += len(block)
            if held > LONGEST:
                raise Misuse(f"{file.path}: a line of more than {LONGEST:,} bytes; is this a text file?")
            continue
        yield b"".join([*pending, block[:cut]])
        pending, held = ([block[cut + 1 :]], len(block) - cut - 1) if cut + 1 < len(block) else ([], 0)
    if pending:
        yield b"".join(pending)


def _refuse_utf16(file: Opened) -> None:
    raise Misuse(f"{file.path}: begins as UTF-16 does; text files are UTF-8 (iconv -f UTF-16 -t UTF-8 makes them so)")


def _decoded(line: bytes) -> Line:
    line = line.removesuffix(b"\r")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        said = f"byte {line[error.start]:#04x} at place {error.start + 1} is not UTF-8"
        return Undecodable(said, line.decode(errors="backslashreplace"))
