"""Strips of digits: single digits side by side with random gaps, and what they are, digit by digit, in words.

A strip is drawn from its seed alone: its length, its digits, and the empty columns before, between and behind them.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from regard.data.readers.examples import Example, Read
from regard.data.readers.files import Files
from regard.data.readers.images import idx
from regard.data.sources import Digits
from regard.support.errors import Misuse

WORDS: Final[Mapping[str, str]] = {
    "en": "zero one two three four five six seven eight nine",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun",
    "it": "zero uno due tre quattro cinque sei sette otto nove",
    "hi": "शून्य एक दो तीन चार पाँच छह सात आठ नौ",
    "bn": "শূন্য এক দুই তিন চার পাঁচ ছয় সাত আট নয়",
    "pt": "zero um dois três quatro cinco seis sete oito nove",
    "nl": "nul een twee drie vier vijf zes zeven acht negen",
    "sv": "noll ett två tre fyra fem sex sju åtta nio",
    "pl": "zero jeden dwa trzy cztery pięć sześć siedem osiem dziewięć",
    "ru": "ноль один два три четыре пять шесть семь восемь девять",
    "tr": "sıfır bir iki üç dört beş altı yedi sekiz dokuz",
    "id": "nol satu dua tiga empat lima enam tujuh delapan sembilan",
}
"""The digits from 0 to 9 in each language."""


def read(source: Digits, files: Files) -> Read:
    """As many strips as are asked for; the line of each is its number."""
    images, labels = _singles(files)
    words = WORDS[source.language].split()
    random = np.random.default_rng(source.seed)
    for number in range(1, source.count + 1):
        length = int(random.integers(source.shortest, source.longest + 1))
        chosen = random.integers(0, len(images), length)
        gaps = random.integers(0, source.gap + 1, length + 1)
        files.told = number / source.count
        yield Example(number, (strip(images[chosen], gaps), " ".join(words[label] for label in labels[chosen])))


def strip(digits: NDArray[np.uint8], gaps: NDArray[np.int64]) -> NDArray[np.uint8]:
    """[n, height, width] digits, n + 1 gaps → [height, all columns, 1]."""
    height = digits.shape[1]
    parts = [np.zeros((height, int(gaps[0])), np.uint8)]
    for digit, gap in zip(digits, gaps[1:], strict=True):
        parts += [digit, np.zeros((height, int(gap)), np.uint8)]
    return np.concatenate(parts, axis=1)[..., None]


def _singles(files: Files) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """[N, height, width] digits and [N] what they are."""
    images = list(idx(files.open(0), files.names[0]))
    said = list(idx(files.open(1), files.names[1]))
    if any(each.ndim for each in said[:1]):
        swapped = "; are the two files swapped?" if images and not images[0].ndim else ""
        raise Misuse(f"{files.names[1]}: expected labels, one number each, and these are images{swapped}")
    labels = np.array([int(each) for each in said], np.uint8)
    if len(images) != len(labels):
        raise Misuse(f"{files.names[0]} has {len(images):,} images and {files.names[1]} {len(labels):,} labels")
    if not images or images[0].ndim != 2 or labels.max() > 9:
        raise Misuse(f"{files.names[0]}: expected grey images of digits, labelled 0 to 9 in {files.names[1]}")
    return np.stack(images), labels
