"""Words of a text, as a person sees them, and which tokens they are made of: what pictures of attention stand on.

words("Don't stop.")                       [Word("Don't", 0, 5), Word("stop", 6, 10), Word(".", 10, 11)]
tokens_of_words(tokenizer.tokens(text), words(text))        for each word the places of its tokens
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

WORD: Final = (
    r"[\p{L}\p{M}\p{N}]+(?:['’.,\-](?=[\p{L}\p{M}\p{N}])[\p{L}\p{M}\p{N}]+)*"  # don't, 3.14, well-known
    r"|[^\s]"
)
"""A run of letters, marks and digits, with apostrophes, hyphens, points and commas inside; or one other character."""


class Span(Protocol):
    """A stretch of a text: text[start:end]."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


class Word(NamedTuple):
    """A word, or a mark of punctuation, and where it stands in its text: text[start:end]."""

    text: str
    start: int
    end: int


_SPACED: Final = Split(Regex(r"\s+"), "removed")
_APART: Final = Split(Regex(WORD), "isolated")


def words(text: str, *, punctuation: bool = True) -> list[Word]:
    """The words of a text in order; without `punctuation` apart, whatever stands between white space."""
    chunks = _SPACED.pre_tokenize_str(text)
    if not punctuation:
        return [Word(chunk, *span) for chunk, span in chunks]
    return [
        Word(word, start + first, start + last)
        for chunk, (start, _) in chunks
        for word, (first, last) in _APART.pre_tokenize_str(chunk)
    ]


def tokens_of_words(tokens: Sequence[Span], parts: Sequence[Span]) -> list[list[int]]:
    """For each word the places of the tokens that share characters with it.

    A token over several words (or over a word and its punctuation) belongs to each; one that stands for no character
    belongs to none. Both come in the order of the text.
    """
    found: list[list[int]] = [[] for _ in parts]
    first = 0
    for place, token in enumerate(tokens):
        while first < len(parts) and parts[first].end <= token.start:
            first += 1
        for word in range(first, len(parts)):
            if parts[word].start >= token.end:
                break
            if token.start < min(parts[word].end, token.end):
                found[word].append(place)
    return found
