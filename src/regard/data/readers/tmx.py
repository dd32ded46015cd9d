"""Translation memories (TMX 1.4): segments with their inline markup reduced to text, streamed.

Of the markup inside a segment, `hi` is text that stands out and is kept; `bpt`, `ept`, `ph`, `it` and `ut` hold the
codes of some other format, and are left out with all that is in them. Nothing outside the file is read: a DOCTYPE
may name its DTD, which is not fetched, and a file that declares entities of its own is refused.
"""

from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from regard.data.readers.examples import Bad, Example, Read
from regard.data.readers.files import Files
from regard.data.sources import Tmx
from regard.support.errors import Misuse

CODES = ("bpt", "ept", "ph", "it", "ut")


def read(source: Tmx, files: Files) -> Read:
    """Each unit that has both languages, as a pair."""
    for line, segments in _units(files):
        found = [_of(language, segments) for language in (source.languages.source, source.languages.target)]
        if found[0] is not None and found[1] is not None:
            yield Example(line, (found[0], found[1]))
        else:
            missing = source.languages.source if found[0] is None else source.languages.target
            said = f"no segment in {missing}; there are {', '.join(sorted(segments)) or 'none'}"
            yield Bad(line, "a language that is missing", said, " | ".join(segments.values()))


def _of(language: str, segments: dict[str, str]) -> str | None:
    """The segment in a language: by its whole code, or as en of en-US."""
    wanted = language.lower()
    if wanted in segments:
        return segments[wanted]
    return next((text for code, text in segments.items() if code.split("-")[0] == wanted), None)


def _units(files: Files) -> Iterator[tuple[int, dict[str, str]]]:
    """The line of each unit, and its segments by language; the first of each language."""
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
        self.finished: list[tuple[int, dict[str, str]]] = []
        self._name = name
        self._line = 0
        self._segments: dict[str, str] = {}
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

    def feed(self, data: bytes, *, last: bool = False) -> None:
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            said = expat.ErrorString(error.code)
            raise Misuse(f"{self._name}:{error.lineno}: not well-formed XML: {said}") from None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tu":
            self._line, self._segments = self._parser.CurrentLineNumber, {}
        elif name == "tuv":
            language = attributes.get("xml:lang") or attributes.get("lang") or ""
            self._language = language.lower().replace("_", "-")
        elif name == "seg":
            self._text, self._codes = [], 0
        elif self._text is not None and name in CODES:
            self._codes += 1

    def _end(self, name: str) -> None:
        if name == "tu":
            self.finished.append((self._line, self._segments))
        elif name == "seg" and self._text is not None:
            self._segments.setdefault(self._language, " ".join("".join(self._text).split()))
            self._text = None
        elif self._text is not None and name in CODES:
            self._codes -= 1

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._codes:
            self._text.append(text)

    def _entity(self, name: str, *rest: Any) -> None:
        line = self._parser.CurrentLineNumber
        raise Misuse(f"{self._name}:{line}: declares the entity {name!r}; a memory that does is not read")

    def _outside(self, *what: Any) -> int:
        line = self._parser.CurrentLineNumber
        raise Misuse(f"{self._name}:{line}: refers to something outside the file, which is not read")
