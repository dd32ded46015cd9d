"""A text cut into sentences, and put together again with its spaces and lines.

    cut = sentences("Hello, Dr. Wu!  How are you?\\n- Fine.")
    [each.text for each in cut]       ["Hello, Dr. Wu!", "How are you?", "- Fine."]
    [each.after for each in cut]      ["  ", "\\n", ""]

A sentence ends with its line, or with one of . ! ? … (and what other scripts have in their place) and the brackets
and quotation marks that close behind it, where white space follows and the next word does not go on in small
letters. A point behind a single letter, a number that counts, or a known abbreviation ends nothing.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_KNOWN: Final = """
mr mrs ms dr prof rev hon st jr sr vs etc vol fig ca approx inc ltd co corp dept sgt capt maj e.g i.e a.m p.m u.s
sra srta ud uds dña avda núm pág p.ej sig dott ing avv egr gent spett pag p.es mme mlle mm env c.-à-d
hr fr nr bzw usw evtl ggf inkl vgl bsp z.b d.h u.a
"""
ABBREVIATIONS: Final = frozenset(_KNOWN.split())
"""Words that a point belongs to, in small letters. Those that also stand at ends are left out."""

_END: Final = re.compile(
    r"""
    (?: [.!?…‼⁇⁈⁉؟۔।॥]+ [\])}"'»”’›]* (?=\s)     # Latin and its neighbours: white space must follow
      | [。！？．｡]+ [\])}"'»”’›」』）】]*           # Chinese, Japanese: nothing need follow
    )
    """,
    re.VERBOSE,
)
_LAST_WORD: Final = re.compile(r"(?:^|(?<=[\s(\[{\"'«“‘¿¡]))([^\s(\[{\"'«“‘¿¡]+)$")
_SPACE: Final = re.compile(r"\s*")
_WORD_BEFORE: Final = 40
"""How far back the word before a point is looked for: no abbreviation is longer."""


class Sentence(NamedTuple):
    """One sentence, and the white space that stands behind it."""

    text: str
    after: str


def sentences(text: str) -> list[Sentence]:
    """The sentences in order; joined with what stands behind each they are the text again.

    White space at the beginning is a sentence of no words with that behind it.
    """
    found: list[Sentence] = []
    for line, end in _lines(text):
        found += _of_line(line, end)
    return found


def joined(cut: Sequence[Sentence], texts: Sequence[str]) -> str:
    """Other texts, in most cases translations, in the places of the sentences."""
    return "".join(text + each.after for each, text in zip(cut, texts, strict=True))


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Each line without the white space at its end, and all white space up to the next words."""
    at = _SPACE.match(text).end()  # type: ignore[union-attr]  # it matches nothing at the least
    if at:
        yield "", text[:at]
    for found in re.finditer(r"(\S[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*)(\s*)", text[at:]):
        line = found.group(1).rstrip()
        yield line, found.group(1)[len(line) :] + found.group(2)


def _of_line(line: str, end: str) -> Iterator[Sentence]:
    start = 0
    for found in _END.finditer(line):
        behind = _SPACE.match(line, found.end()).end()  # type: ignore[union-attr]
        if behind < len(line) and _ends(line, start, found, behind):
            yield Sentence(line[start : found.end()], line[found.end() : behind])
            start = behind
    yield Sentence(line[start:], end)


def _ends(line: str, start: int, found: re.Match[str], behind: int) -> bool:
    """Whether a sentence ends here, and not only an abbreviation, an initial, a number in a list."""
    mark = found.group()
    if line[behind].islower():
        return mark[0] in "。！？．｡।॥۔؟"
    if mark != ".":
        return True
    word = _LAST_WORD.search(line[max(start, found.start() - _WORD_BEFORE) : found.start()])
    if word is None:
        return True
    last = word.group(1)
    alone = len(last) == 1 and last.isalpha() and not (last == "I" and start < found.start() - 1)
    counts = last.isdecimal() and found.start() - len(last) == start
    return not (alone or counts or last.casefold() in ABBREVIATIONS)
