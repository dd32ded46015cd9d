"""Translation memories (TMX 1.4): segments with their inline markup reduced to text, streamed.

Of the markup inside a segment, `hi` is text that stands out and is kept; `bpt`, `ept`, `ph`, `it` and `ut` hold the
codes of some other format, and are left out with all that is in them. Nothing outside the file is read: a DOCTYPE
may name its DTD, which is not fetched, and a file that declares entities of its own is refused. The entities of HTML 4
(`&nbsp;`, `&eacute;`) are read as what they are in HTML; any other is refused: what it stands for cannot be known.
"""

from collections.abc import Iterator
from html.entities import name2codepoint
from typing import Any, Final, NamedTuple
from xml.parsers import expat

from regard.data.readers.examples import Bad, Example, Read
from regard.data.readers.files import Files
from regard.data.sources import Tmx
from regard.support.errors import Misuse

CODES = ("bpt", "ept", "ph", "it", "ut")
TAIL: Final = 4
"""Bytes of the block before that are kept, to look at a character that begins in it."""


class _Unit(NamedTuple):
    """The line it begins on, its first segment in each language, and the segments that come after one in theirs."""

    line: int
    segments: dict[str, "_Segment"]
    more: list["_Segment"]


class _Segment(NamedTuple):
    line: int
    language: str
    text: str


def read(source: Tmx, files: Files) -> Read:
    """Each unit that has both languages, as a pair; a second segment in one of them is told."""
    wanted = source.languages.source.lower(), source.languages.target.lower()
    for unit in _units(files):
        line, segments, _ = unit
        codes = [_code(language, segments) for language in wanted]
        if codes[0] is not None and codes[1] is not None:
            yield Example(line, (segments[codes[0]].text, segments[codes[1]].text))
        else:
            missing = source.languages.source if codes[0] is None else source.languages.target
            said = f"no segment in {missing}; there are {', '.join(sorted(segments)) or 'none'}"
            yield Bad(line, "a language that is missing", said, " | ".join(each.text for each in segments.values()))
        yield from _seconds(unit, wanted, codes)


def _seconds(unit: _Unit, wanted: tuple[str, str], codes: list[str | None]) -> Iterator[Bad]:
    """Segments in a language that was asked for and has one already: with the same code, or en-GB behind en-US."""
    taken = {language: code for language, code in zip(wanted, codes, strict=True) if code is not None}
    spare = [each for code, each in unit.segments.items() if code not in codes and code.split("-")[0] in taken]
    for where, code, text in sorted([*spare, *(each for each in unit.more if _told(each, taken))]):
        has = code if code in codes else taken[code.split("-")[0]]
        said = f"the unit of line {unit.line} has one in {has} already; the first of them counts"
        yield Bad(where, "a second segment in one language", said, text)


def _told(segment: _Segment, taken: dict[str, str]) -> bool:
    """Whether it is in one of the languages that are taken."""
    return segment.language in taken.values() or segment.language.split("-")[0] in taken


def _code(language: str, segments: dict[str, _Segment]) -> str | None:
    """The code that stands for a language: the same, or en-US for en."""
    if language in segments:
        return language
    return next((code for code in segments if code.split("-")[0] == language), None)


def _units(files: Files) -> Iterator[_Unit]:
    file = files.open()
    units = _Units(files.names[0])
    for block in file.blocks():
        units.feed(block)
        yield from units.finished
        units.finished.clear()
    units.feed(b"", last=True)
    yield from units.finished


class _Units:
    """What the parser's events add up to."""

    def __init__(self, name: str) -> None:
        self.finished: list[_Unit] = []
        self._name = name
        self._unit = _Unit(0, {}, [])
        self._line = 0
        self._block, self._end_of_block = b"", 0
        self._utf8 = True
        self._language = ""
        self._text: list[str] | None = None
        self._codes = 0
        parser = self._parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._entity
        parser.ExternalEntityRefHandler = self._outside
        parser.SkippedEntityHandler = self._skipped
        parser.XmlDeclHandler = self._declared

    def feed(self, data: bytes, *, last: bool = False) -> None:
        if not self._end_of_block:
            self._utf8 = not data.startswith((b"\xff\xfe", b"\xfe\xff"))
        if data:
            self._block, self._end_of_block = self._block[-TAIL:] + data, self._end_of_block + len(data)
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            said = self._wrong_byte() or f"not well-formed XML: {expat.ErrorString(error.code)}"
            raise Misuse(f"{self._name}:{error.lineno}: {said}") from None

    def _wrong_byte(self) -> str | None:
        """What is wrong with the byte where the parser stopped; None where it is one that text may have."""
        at = len(self._block) - (self._end_of_block - self._parser.ErrorByteIndex)
        if not self._utf8 or not 0 <= at < len(self._block):
            return None
        code = self._block[at]
        if code >= 0x80:
            return f"byte {code:#04x} is not UTF-8"
        stray = code < 0x20 and code not in b"\t\n\r"
        return f"has a control character, U+{code:04X}{' (NUL)' if not code else ''}" if stray else None

    def _declared(self, version: str, encoding: str | None, standalone: int) -> None:
        self._utf8 = self._utf8 and (encoding or "utf-8").lower() in ("utf-8", "utf8", "us-ascii")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tu":
            self._unit = _Unit(self._parser.CurrentLineNumber, {}, [])
        elif name == "tuv":
            language = attributes.get("xml:lang") or attributes.get("lang") or ""
            self._language = language.lower().replace("_", "-")
        elif name == "seg":
            self._text, self._codes, self._line = [], 0, self._parser.CurrentLineNumber
        elif self._text is not None and name in CODES:
            self._codes += 1

    def _end(self, name: str) -> None:
        if name == "tu":
            self.finished.append(self._unit)
        elif name == "seg" and self._text is not None:
            text = " ".join("".join(self._text).split())
            segment = _Segment(self._line, self._language, text)
            if self._language in self._unit.segments:
                self._unit.more.append(segment)
            else:
                self._unit.segments[self._language] = segment
            self._text = None
        elif self._text is not None and name in CODES:
            self._codes -= 1

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._codes:
            self._text.append(text)

    def _entity(self, name: str, *rest: Any) -> None:
        line = self._parser.CurrentLineNumber
        raise Misuse(f"{self._name}:{line}: declares the entity {name!r}; a memory that does is not read")

    def _skipped(self, name: str, is_parameter: int) -> None:
        """An entity that the DTD may declare, which is not read."""
        if is_parameter:
            return
        if name not in name2codepoint:
            line = self._parser.CurrentLineNumber
            raise Misuse(
                f"{self._name}:{line}: &{name}; is declared nowhere in the file; what is meant cannot be known"
            )
        self._characters(chr(name2codepoint[name]))

    def _outside(self, *what: Any) -> int:
        line = self._parser.CurrentLineNumber
        raise Misuse(f"{self._name}:{line}: refers to something outside the file, which is not read")
