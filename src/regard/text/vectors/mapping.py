"""Pretrained vectors for the vocabulary of a model: a row for each token, and how many have one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.text.languages import language
from regard.text.specials import PAD, SPECIALS
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from regard.text.vectors.vectors import Vectors


@dataclass(frozen=True)
class Coverage:
    """How much of a vocabulary has a pretrained vector; special tokens and tags do not count."""

    words: int
    """In the vocabulary."""
    found: int
    """Of them, with a vector."""
    lowered: int
    """Of those found, by their small letters."""
    missing: tuple[str, ...] = field(repr=False)
    """Without one, in the order of the vocabulary: the commonest first where it was learned."""

    @property
    def share(self) -> float:
        """Of the words that have one, from 0 to 1."""
        return self.found / self.words if self.words else 0.0

    def __str__(self) -> str:
        """`18,300 of 20,000 words (91.5%), 1,204 of them by small letters; without: Brexit, …`."""
        told = f"{self.found:,} of {self.words:,} words ({self.share:.1%})"
        told += f", {self.lowered:,} of them by small letters" if self.lowered else ""
        some = ", ".join(self.missing[:5]) + (", …" if len(self.missing) > 5 else "")
        return told + (f"; without: {some}" if some else "")

    def of_texts(self, counts: Mapping[str, int]) -> float:
        """The share of running words that have a vector, by how often each word occurs."""
        missing = set(self.missing)
        total = sum(counts.values())
        return 1 - sum(number for word, number in counts.items() if word in missing) / total if total else 0.0


class Mapped(NamedTuple):
    """A row for each token, what is known of them, and how much that is."""

    matrix: NDArray[np.float32]
    """[vocabulary, width]: those without a vector are drawn with the mean and spread of the others; padding is 0."""
    known: NDArray[np.bool_]
    """[vocabulary]: which rows are pretrained ones."""
    coverage: Coverage


def mapped(vectors: "Vectors", vocabulary: Tokenizer | Sequence[str], seed: int) -> Mapped:
    """Each token by its text, a space in front left out, else by its small letters."""
    words = _words(vocabulary)
    found = [_place(vectors, word) for word in words]
    known = np.array([place is not None for place, _ in found], bool)
    places = np.array([place for place, _ in found if place is not None], np.int64)
    matrix = _drawn(vectors.matrix[places], len(words), vectors.width, seed)
    matrix[known] = vectors.matrix[places]
    if isinstance(vocabulary, Tokenizer):
        matrix[PAD] = 0
    real = [number for number, word in enumerate(words) if word is not None]
    coverage = Coverage(
        words=len(real),
        found=int(known.sum()),
        lowered=sum(lowered for _, lowered in found),
        missing=tuple(word for number in real if not known[number] and (word := words[number]) is not None),
    )
    return Mapped(matrix, known, coverage)


def _words(vocabulary: Tokenizer | Sequence[str]) -> list[str | None]:
    """What each token says; None for those that are no text."""
    if not isinstance(vocabulary, Tokenizer):
        return list(vocabulary)
    shown = vocabulary.shown(range(vocabulary.vocabulary))
    return [
        None if number < len(SPECIALS) or language(text) is not None else text.strip()
        for number, text in enumerate(shown)
    ]


def _place(vectors: "Vectors", word: str | None) -> tuple[int | None, bool]:
    """The row of a word, and whether it was found by its small letters."""
    if word is None:
        return None, False
    if word in vectors:
        return vectors.place(word), False
    small = word.lower()
    return (vectors.place(small), True) if small in vectors else (None, False)


def _drawn(like: NDArray[np.float32], count: int, width: int, seed: int) -> NDArray[np.float32]:
    random = np.random.default_rng(seed)
    mean, spread = (like.mean(axis=0), like.std(axis=0)) if len(like) else (np.zeros(width), np.full(width, 0.1))
    return (mean + spread * random.standard_normal((count, width))).astype(np.float32)
