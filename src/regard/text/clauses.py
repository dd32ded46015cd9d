"""A sentence that is too long, cut into parts that are not: at the ends of clauses, else between words.

[each.text for each in clauses(Sentence("He came, he saw; and so on.", ""), lambda text: len(text) < 12)]
["He came,", "he saw;", "and so on."]
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from regard.text.sentences import Sentence

_BOUNDS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<=[;:؛；：])[\])}\"'»”’]*\s+|(?<=[；：])|\s+(?=[–—])",  # clauses
        r"(?<=[,،、，])\s+|(?<=[、，])",
        r"\s+",  # words
        r"(?<=[^\s])(?=[^\s])",  # characters, where nothing else is to be had
    )
)
"""From the best place to cut to the worst: what is matched stands between two parts."""
_EDGE: Final = 0.15
"""No cut nearer to an end than this share of the whole, as long as there is another place."""


def clauses(sentence: Sentence, fits: Callable[[str], bool]) -> Iterator[Sentence]:
    """The parts in order, each of which fits; with what stands behind each they are the sentence again."""
    if len(sentence.text) < 2 or fits(sentence.text):
        yield sentence
        return
    start, end = _middle(sentence.text)
    yield from clauses(Sentence(sentence.text[:start], sentence.text[start:end]), fits)
    yield from clauses(Sentence(sentence.text[end:], sentence.after), fits)


def _middle(text: str) -> tuple[int, int]:
    """Where the first part ends and the second begins: the best place that is nearest to the middle."""
    size = len(text)
    found: list[tuple[int, int]] = []
    for edge in (_EDGE * size, 1):
        for bound in _BOUNDS:
            found = [each.span() for each in bound.finditer(text) if edge <= each.start() and each.end() <= size - edge]
            if found:
                return min(found, key=lambda span: abs(sum(span) - size))
    return size // 2, size // 2
