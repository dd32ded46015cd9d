"""Words as numbers by looking at them: their characters' codes, their place in a list, how often they occur."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.support.errors import Misuse
from regard.support.nearest import unknown
from regard.text.words import words as words_of


def character_codes(words: Sequence[str]) -> NDArray[np.int64]:
    """[words, longest]: the numbers Unicode gives the characters (a: 97), 0 behind a word's end."""
    if isinstance(words, str):
        raise ValueError("words: expected a list of words; got one text")
    table = np.zeros((len(words), max(map(len, words), default=0)), np.int64)
    for row, word in enumerate(words):
        table[row, : len(word)] = [ord(character) for character in word]
    return table


def one_hot(words: Sequence[str], vocabulary: Sequence[str]) -> NDArray[np.int64]:
    """[words, vocabulary]: a 1 at the place of each word, 0 elsewhere. No word is like another: their dot is 0."""
    places = {word: place for place, word in enumerate(vocabulary)}
    if len(places) < len(vocabulary):
        twice = next(word for place, word in enumerate(vocabulary) if places[word] != place)
        raise ValueError(f"vocabulary: {twice!r} stands in it twice")
    for word in words:
        if word not in places:
            raise ValueError(unknown("word", word, vocabulary))
    table = np.zeros((len(words), len(vocabulary)), np.int64)
    table[np.arange(len(words)), [places[word] for word in words]] = 1
    return table


@dataclass(frozen=True)
class Table:
    """A row for each text, a column for each word."""

    words: tuple[str, ...]
    """In the order of the alphabet, or as the vocabulary was given."""
    values: Any
    """[texts, words], as a sparse matrix of scipy: most words are in few texts."""

    @property
    def dense(self) -> NDArray[Any]:
        """[texts, words] with its zeros."""
        return np.asarray(self.values.toarray())

    def column(self, word: str) -> NDArray[Any]:
        """[texts]: what is said of one word."""
        if word not in self.words:
            raise ValueError(unknown("word", word, self.words))
        return np.asarray(self.values[:, [self.words.index(word)]].toarray())[:, 0]

    def __str__(self) -> str:
        rows = [["", *self.words]]
        rows += [[str(number), *(f"{value:.4g}" for value in row)] for number, row in enumerate(self.dense, 1)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def bag_of_words(
    texts: Sequence[str], vocabulary: Sequence[str] | None = None, *, occurs: bool = False, lowercase: bool = True
) -> Table:
    """How often each word occurs in each text; with `occurs` 1 where it does at all. Their order is forgotten."""
    counter = _sklearn().CountVectorizer(
        analyzer=partial(words_in, lowercase=lowercase),
        vocabulary=None if vocabulary is None else list(vocabulary),
        binary=occurs,
    )
    if isinstance(texts, str):
        raise ValueError("texts: expected a list of texts; got one text")
    try:
        values = counter.fit_transform(texts)
    except ValueError as error:
        raise ValueError(f"texts: {error}") from None
    return Table(tuple(map(str, counter.get_feature_names_out())), values)


def tf_idf(
    texts: Sequence[str],
    vocabulary: Sequence[str] | None = None,
    *,
    formula: Literal["smooth", "plain"] = "smooth",
    lowercase: bool = True,
) -> Table:
    """How much a word says about a text: how often it is there (tf), times how few texts it is in (idf).

    smooth   scikit-learn's: tf = n,          idf = ln((1 + N) / (1 + df)) + 1, each row of length 1
    plain    the textbooks': tf = n / length, idf = ln(N / df): a word that is in every text tells nothing

    n: how often the word is in the text, N: texts, df: texts with the word.
    """
    counts = bag_of_words(texts, vocabulary, lowercase=lowercase)
    if formula == "smooth":
        return Table(counts.words, _sklearn().TfidfTransformer().fit_transform(counts.values))
    if formula != "plain":
        raise ValueError(unknown("formula", formula, ["smooth", "plain"]))
    length = np.maximum(np.asarray(counts.values.sum(axis=1)).ravel(), 1)
    df = np.asarray((counts.values > 0).sum(axis=0)).ravel()
    idf = np.log(np.divide(len(texts), df, out=np.ones(len(df)), where=df > 0))
    return Table(counts.words, counts.values.multiply(1 / length[:, None]).multiply(idf[None]).tocsr())


def words_in(text: str, lowercase: bool) -> list[str]:
    """The words of a text, punctuation left out."""
    found = (word.text for word in words_of(text.lower() if lowercase else text))
    return [word for word in found if any(each.isalnum() for each in word)]


def _sklearn() -> Any:
    try:
        from sklearn.feature_extraction import text
    except ImportError:
        raise Misuse("to count words: pip install 'regard[data]'") from None
    return text
