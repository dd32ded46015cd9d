"""Where each letter of a problem file stands: in the file itself, and in a text of it, however that is written there.

The value of a YAML text is not what stands in the file: a quotation mark is left out, an escape is one letter, lines
are folded into one. All but white space comes in the same order in both, and so one is found in the other.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple


class Place(NamedTuple):
    """Line and column, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class Source:
    """A text that is read, by the name that messages call it."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self._starts = [0, *(each.end() for each in re.finditer("\r\n?|[\n\x85\u2028\u2029]", text))]

    def place(self, index: int) -> Place:
        """Of its letter `index`, counted from 0."""
        line = bisect_right(self._starts, index)
        return Place(line, index - self._starts[line - 1] + 1)


PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
"""An anchor or a tag, which stands before a text and is no part of it."""
ESCAPE = re.compile(r"\\(?:x(\w{2})|u(\w{4})|U(\w{8})|\s+|[tnrfv_NLP ]|.)", re.DOTALL)
QUOTED = {"'": re.compile(r"''|.", re.DOTALL), '"': re.compile(rf"{ESCAPE.pattern}|.", re.DOTALL)}
BLANK_ESCAPES = frozenset("tnrfv_NLP")


def letters(raw: str) -> list[int]:
    """Where in a YAML text as written the letters of its value stand, those that are no white space."""
    start = PROPERTIES.match(raw).end()  # type: ignore[union-attr]
    mark = raw[start : start + 1]
    if mark in QUOTED:
        return [start + 1 + at for at in _unquoted(raw[start + 1 : -1], mark)]
    if mark in ("|", ">"):
        start = len(raw) if (header := raw.find("\n", start)) < 0 else header
    return [at for at in range(start, len(raw)) if not raw[at].isspace()]


def _unquoted(inside: str, mark: str) -> Iterator[int]:
    for found in QUOTED[mark].finditer(inside):
        if not _is_blank(found[0], "".join(found.groups(default="")) if found.re.groups else ""):
            yield found.start()


def _is_blank(written: str, code: str) -> bool:
    """Whether a letter as written, perhaps an escape with its code, is white space or nothing at all."""
    if len(written) < 2 or written == "''":
        return written.isspace()
    return chr(int(code, 16)).isspace() if code else written[1].isspace() or written[1] in BLANK_ESCAPES


def located(value: str, raw: str, found: list[int], offset: int) -> int:
    """Where in `raw` the letter `offset` of the value stands; `found` are its `letters`.

    White space, and the end, stand as far behind the letter before them as they do in the value.
    """
    before = min(sum(not letter.isspace() for letter in value[:offset]), len(found))
    here = found[before] if before < len(found) else len(raw)
    if not before or value[offset : offset + 1].strip():  # a letter
        return here
    behind = offset - len(value[:offset].rstrip())
    return min(found[before - 1] + 1 + behind, here)
