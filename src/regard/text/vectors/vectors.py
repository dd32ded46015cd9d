"""Vectors of words: where they come from, what is near to what."""

from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.support.nearest import unknown

if TYPE_CHECKING:
    from regard.text.tokenizer import Tokenizer
    from regard.text.vectors.mapping import Mapped


class Near(NamedTuple):
    """A word and how near it is."""

    word: str
    cosine: float


class Vectors:
    """A vector for each of some words."""

    def __init__(self, words: Iterable[str], matrix: ArrayLike) -> None:
        """Words, each once, and [words, width]."""
        self.words = tuple(words)
        self.matrix: NDArray[np.float32] = np.ascontiguousarray(matrix, np.float32)
        if self.matrix.ndim != 2 or len(self.matrix) != len(self.words):
            raise ValueError(f"matrix: expected [{len(self.words)}, width]; got {list(self.matrix.shape)}")
        if self.matrix.size and not np.isfinite([self.matrix.min(), self.matrix.max()]).all():
            place = int(np.flatnonzero(~np.isfinite(self.matrix).all(axis=1))[0])
            raise ValueError(f"matrix: expected finite numbers; the vector of {self.words[place]!r} has others")
        self.left_out: dict[str, int] = {}
        """Of the file they were read from: words that were not taken, by reason."""
        self._places = {word: place for place, word in enumerate(self.words)}
        if len(self._places) < len(self.words):
            twice = next(word for place, word in enumerate(self.words) if self._places[word] != place)
            raise ValueError(f"words: {twice!r} stands among them twice")

    @classmethod
    def read(cls, path: str | Path, words: Container[str] | None = None, most: int | None = None) -> "Vectors":
        """From a file of GloVe's or word2vec's (text or binary), compressed or not; its own form is found out.

        `words`: only those that are in it are kept, and only these are held in memory. `most`: no more than so many
        from the beginning, where the commonest stand. Of a word that comes twice the first vector counts; the others,
        and words that are not UTF-8, are counted in `left_out`.
        """
        from regard.text.vectors.reading import read

        return read(Path(path), words, most)

    @classmethod
    def learn(
        cls,
        texts: Iterable[str],
        width: int = 100,
        *,
        window: int = 4,
        min_count: int = 5,
        most: int = 50_000,
        lowercase: bool = True,
        seed: int = 0,
    ) -> "Vectors":
        """From texts: words that stand in like company (within `window` words) get like vectors; see `learning`."""
        from regard.text.vectors.learning import learn

        return learn(
            texts, width, window=window, min_count=min_count, most=most, lowercase=lowercase, seed=seed
        )  # fmt: skip

    def save(self, path: str | Path, *, binary: bool = False) -> None:
        """As word2vec writes them, atomically; other tools read it."""
        from regard.text.vectors.reading import write

        write(Path(path), self, binary=binary)

    @property
    def width(self) -> int:
        """Numbers a word."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        """[width]: the vector of a word."""
        row: NDArray[np.float32] = self.matrix[self.place(word)]
        return row

    def place(self, word: str) -> int:
        """Which row is a word's."""
        if word not in self._places:
            raise KeyError(self._missing(word))
        return self._places[word]

    def of(self, words: Sequence[str]) -> NDArray[np.float32]:
        """[words, width]: the vectors of several."""
        return np.stack([self[word] for word in words])

    def __repr__(self) -> str:
        left_out = "".join(f"; left out: {count:,} × {reason}" for reason, count in self.left_out.items())
        return f"<Vectors of {len(self):,} words, {self.width} wide{left_out}>"

    def nearest(self, to: str | ArrayLike, count: int = 10, *, without: Iterable[str] = ()) -> list[Near]:
        """The words whose vectors point most nearly where that of a word (or a given vector) does; not the word itself.

        nearest(v["king"] - v["man"] + v["woman"], without=["king", "man", "woman"]) is the well-known riddle.
        """
        vector = self[to] if isinstance(to, str) else np.asarray(to, np.float32)
        if vector.shape != (self.width,):
            raise ValueError(f"to: expected a word or a vector [{self.width}]; got {list(vector.shape)}")
        if not np.isfinite(vector).all():
            raise ValueError("to: expected finite numbers")
        left_out = {*without, *([to] if isinstance(to, str) else [])}
        cosines = self._directions @ _direction(vector)
        wanted = min(count + len(left_out), len(self))
        best = np.argpartition(-cosines, wanted - 1)[:wanted] if wanted else np.zeros(0, np.int64)
        ranked = best[np.lexsort((best, -cosines[best]))]
        found = (Near(self.words[place], float(cosines[place])) for place in ranked)
        return [near for near in found if near.word not in left_out][:count]

    def mapped(self, vocabulary: "Tokenizer | Sequence[str]", *, seed: int = 0) -> "Mapped":
        """A row for each token of a tokenizer (or each word of a list), and how many of them have a vector here."""
        from regard.text.vectors.mapping import mapped

        return mapped(self, vocabulary, seed)

    @cached_property
    def _directions(self) -> NDArray[np.float32]:
        return _direction(self.matrix)

    def _missing(self, word: str) -> str:
        if word.lower() in self:
            return f"there is no vector for {word!r}; there is one for {word.lower()!r}"
        return unknown("word", word, self.words[:10_000]).split(" (known")[0]


def cosine(a: ArrayLike, b: ArrayLike) -> Any:
    """a · b / (|a| |b|) over the last axis: 1 where they point the same way, 0 at right angles (and of zeros)."""
    first, second = _alike(a, b)
    return (_direction(first) * _direction(second)).sum(axis=-1)[()]


def correlation(a: ArrayLike, b: ArrayLike) -> Any:
    """Pearson's r over the last axis: the cosine of what is left when each has its mean taken off."""
    first, second = _alike(a, b)
    return cosine(first - first.mean(axis=-1, keepdims=True), second - second.mean(axis=-1, keepdims=True))


def _alike(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both as arrays; ValueError where they are not vectors of the same width, or not as many."""
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    shapes = f"got {list(first.shape)} and {list(second.shape)}"
    if not first.ndim or not second.ndim or first.shape[-1] != second.shape[-1] or not first.shape[-1]:
        raise ValueError(f"a and b: expected vectors with as many numbers each; {shapes}")
    try:
        np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise ValueError(f"a and b: expected as many vectors on both sides, or one on one; {shapes}") from None
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a and b: expected finite numbers")
    return first, second


def _direction(vectors: NDArray[Any]) -> NDArray[Any]:
    """Of length 1, or 0 where they are 0."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    directions: NDArray[Any] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return directions
