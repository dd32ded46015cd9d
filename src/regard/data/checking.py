"""Whether an example can be used: no side empty, no stray control characters, a tag for each word.

check = Checker(source)
check(example)          None, or a Bad that says what is wrong
"""

import re
from typing import Any, Final

from regard.data.readers.examples import Bad, Example, Reason
from regard.data.sources import Digits, Images, Parallel, Sort, Source

STRAY: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]|\r(?!\n)")
"""Control characters but tabs and line ends, and halves of surrogate pairs."""

INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]"
)
"""Characters of no width: soft hyphen, zero width, joiners, marks of direction and byte order, variation selectors."""

Found = tuple[Reason, str] | None


class Checker:
    """Of the examples of one source."""

    def __init__(self, source: Source) -> None:
        self._sorts = source.sorts()
        self._names = list(self._sorts)
        self._in_two_files = isinstance(source, (Parallel, Images, Digits))
        self._texts = [place for place, sort in enumerate(self._sorts.values()) if sort in ("text", "label")]
        self._others = [
            (place, sort) for place, sort in enumerate(self._sorts.values()) if sort not in ("text", "label")
        ]
        self._pairs_up = {"words", "tags"} <= set(self._sorts.values())

    def __call__(self, example: Example) -> Bad | None:
        """What is wrong with it, if anything."""
        fields = example.fields
        for place in self._texts:
            if not (fields[place].isprintable() and fields[place].strip(" ")) and (found := self._text(fields[place])):
                return self._bad(example, place, found)
        for place, sort in self._others:
            if other := self._other(fields[place], sort):
                return self._bad(example, place, other[:2], word=other[2])
        if self._pairs_up and len(fields[0]) != len(fields[1]):
            said = f"{len(fields[0])} words and {len(fields[1])} tags; expected a tag for each word"
            return self._bad(example, 0, ("words and tags that do not pair up", said))
        return None

    def _text(self, text: str) -> Found:
        if not text or text.isspace():
            return "an empty side", "is empty"
        if not INVISIBLE.sub("", text).strip():
            return "an empty side", "is empty but for characters that cannot be seen"
        if found := STRAY.search(text):
            code = ord(found.group()[0])
            what = "half a surrogate pair" if 0xD800 <= code <= 0xDFFF else "a control character"
            return "control characters", f"has {what}, U+{code:04X}, at place {found.start() + 1}"
        return None

    def _other(self, field: Any, sort: Sort) -> tuple[Reason, str, int] | None:
        """What is wrong, and with which word or tag (from 1; 0: with all of them)."""
        if not len(field) or (sort == "image" and not field.size):
            return "an empty side", "is empty", 0
        if sort in ("words", "tags"):
            for number, word in enumerate(field, 1):
                if not word.isprintable() or not word.strip(" "):
                    reason, said = self._text(word) or (None, "")
                    if reason:
                        return reason, f"{'word' if sort == 'words' else 'tag'} {number} {said}", number
        return None

    def _bad(self, example: Example, place: int, found: tuple[Reason, str], word: int = 0) -> Bad:
        reason, said = found
        line = example.lines[word - 1] if word and example.lines else example.line
        shown = f"the {self._names[place]} {said}" if said.startswith(("is ", "has ")) else said
        return Bad(line, reason, shown, as_text(example.fields), file=int(self._in_two_files and place > 0))


def as_text(fields: tuple[Any, ...]) -> str:
    """The text of an example in one line, tabs between its columns."""
    return "\t".join(
        field if isinstance(field, str) else " ".join(field) if isinstance(field, list) else "…" for field in fields
    )
