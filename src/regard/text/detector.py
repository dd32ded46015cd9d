"""Which language a text is in, among those a detector has learned: naive Bayes over the pieces of its words.

    detector = Detector.learn({"en": english_texts, "es": spanish_texts})
    detector.detect("¿Dónde está?")         [Guess("es", 0.99), Guess("en", 0.01)]

Every word, with its ends marked, is read as its runs of 1 to 4 letters and as a whole. Each order is a multinomial of
its own, and a piece counts for a language by

    log (c + 1/2) - log (n + v/2)      c: how often it stood there, n: pieces of this order, v: different ones

Neighbouring pieces tell much the same, so their sum is taken `SHARPNESS` times. A letter that no language has speaks
against all of them: its share of the text is taken off the confidence.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.support.atomic import write_text
from regard.support.errors import Misuse
from regard.text.words import words

FORMAT: Final = 1
ORDERS: Final = (1, 2, 3, 4, 0)
"""Runs of so many letters; 0 is the word as a whole."""
LONGEST_WORD: Final = 16
SHARPNESS: Final = 0.2
"""At which confidence is as often right as it says, on Tatoeba sentences of seven languages."""
UNIT: Final = 20
"""Logarithms are kept in twentieths, which is more than they are good for."""
READ: Final = 2_000
"""Characters of a text that are looked at: more tell nothing new."""


class Guess(NamedTuple):
    """A language, and how sure it is, from 0 to 1."""

    language: str
    confidence: float


class Detector:
    """Tells languages apart. Never changes after it was made."""

    def __init__(self, languages: Sequence[str], pieces: Sequence[str], table: NDArray[np.int16]) -> None:
        self.languages = tuple(languages)
        self._pieces = tuple(pieces)
        self._table = table
        self._places = {piece: place for place, piece in enumerate(pieces)}

    @classmethod
    def learn(cls, texts: Mapping[str, Iterable[str]], keep: int = 5_000) -> "Detector":
        """From texts of each language; the `keep` commonest pieces of all are kept, counted by shares."""
        if len(texts) < 2:
            raise ValueError(f"texts: expected two languages or more to tell apart; got {len(texts)}")
        counts = {language: _counted(each) for language, each in texts.items()}
        if silent := [language for language, each in counts.items() if not each]:
            raise ValueError(f"texts: there are no letters in {' and '.join(silent)}")
        sums = {language: _sums(each) for language, each in counts.items()}
        shares: Counter[str] = Counter()
        for language, each in counts.items():
            for piece, count in each.items():
                shares[piece] += count / sums[language][_order(piece)]  # type: ignore[assignment]
        pieces = sorted(sorted(shares), key=shares.__getitem__, reverse=True)[:keep]
        different = Counter(_order(piece) for piece in pieces)
        rows = [
            [_weight(counts[language][piece], sums[language][_order(piece)], different[_order(piece)])
             for piece in pieces]
            for language in texts
        ]  # fmt: skip
        return cls(tuple(texts), pieces, np.array(rows, np.int16))

    def detect(self, text: str) -> list[Guess]:
        """Every language it knows with its confidence, the likeliest first; all 0 where there is nothing to go by."""
        found = [self._places[piece] for piece in _pieces_of(text[:READ]) if piece in self._places]
        letters = [each for each in text[:READ].casefold() if each.isalpha()]
        known = sum(each in self._places for each in letters) / len(letters) if letters else 0.0
        if not found or not known:
            return [Guess(language, 0.0) for language in self.languages]
        scores = self._table[:, found].sum(1).astype(np.float64) * (SHARPNESS / UNIT)
        shares = np.exp(scores - scores.max())
        shares *= known / shares.sum()
        guesses = (Guess(language, float(share)) for language, share in zip(self.languages, shares, strict=True))
        return sorted(guesses, key=lambda guess: -guess.confidence)

    def save(self, path: str | Path) -> None:
        """As JSON, atomically."""
        record = {"format": FORMAT, "languages": self.languages, "pieces": self._pieces, "table": self._table.tolist()}
        write_text(path, json.dumps(record, ensure_ascii=False, separators=(",", ":")))

    @classmethod
    def load(cls, path: str | Path) -> "Detector":
        """What `save` wrote; Misuse names a file that is no such thing."""
        try:
            record: Any = json.loads(Path(path).read_text(encoding="utf-8"))
            if record["format"] != FORMAT:
                raise Misuse(f"{path}: written in format {record['format']!r}, this version reads {FORMAT}")
            languages, pieces = record["languages"], record["pieces"]
            table = np.array(record["table"], np.int16).reshape(len(languages), len(pieces))
        except Misuse:
            raise
        except (ValueError, KeyError, TypeError, OverflowError):
            raise Misuse(f"{path}: no language detector, or a damaged one") from None
        return cls(languages, pieces, table)

    def __repr__(self) -> str:
        return f"<Detector of {' '.join(self.languages)}, {len(self._pieces)} pieces>"


def _pieces_of(text: str) -> Iterator[str]:
    """Letters alone, and with the marks of the ends (a space) longer runs and the whole word between two marks."""
    for word in words(text.casefold()):
        if not any(each.isalpha() for each in word.text):
            continue
        yield from word.text
        marked = f" {word.text} "
        for order in ORDERS[1:-1]:
            for at in range(len(marked) - order + 1):
                yield marked[at : at + order]
        if len(word.text) <= LONGEST_WORD:
            yield f" {marked}"


def _order(piece: str) -> int:
    """The length of a run; a whole word begins with two spaces."""
    return 0 if piece.startswith("  ") else len(piece)


def _counted(texts: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(_pieces_of(text))
    return counts


def _sums(counts: Counter[str]) -> dict[int, int]:
    sums = dict.fromkeys(ORDERS, 0)
    for piece, count in counts.items():
        sums[_order(piece)] += count
    return sums


def _weight(count: int, of: int, different: int) -> int:
    return round(UNIT * (math.log(count + 0.5) - math.log(of + different / 2)))
