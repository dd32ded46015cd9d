"""The sentences that `configs/quickstart.yaml` learns from, and the twelve it is asked in the end, from Tatoeba.

    python benchmarks/results/make_quickstart.py tatoeba/en-es.tsv.gz src/regard/data/samples

Short sentences of common words. The twelve were picked before any model was trained; no example to learn from has the
English or any of the Spanish of one of them, whatever its case and punctuation.
"""

import argparse
import gzip
import re
from collections import Counter
from pathlib import Path

EVERYDAY = (
    "Where is the school?", "I am your father.", "He was very tired.", "I love coffee.", "My father is busy.",
    "He has a book.", "Are you sure?", "I like your car.", "You need help.", "It's too late.", "Where is my car?",
    "He was a good friend.",
)  # fmt: skip
WORDS = {"English": 400, "Spanish": 700}
"""How many of the commonest words of each language are used."""
LONGEST = {"English": 6, "Spanish": 7}
NAMES = ("quickstart.en-es.tsv", "everyday.en-es.tsv")


def words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def plain(text: str) -> str:
    return " ".join(words(text))


def common(texts: list[str], count: int) -> set[str]:
    found = Counter(word for text in texts for word in set(words(text)))
    return {word for word, _ in sorted(found.items(), key=lambda each: (-each[1], each[0]))[:count]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    with gzip.open(given.pairs, "rt", encoding="utf-8") as file:
        pairs = [tuple(line.rstrip("\n").split("\t")[:2]) for line in file]
    known = [common([pair[side] for pair in pairs], count) for side, count in enumerate(WORDS.values())]
    asked = [pair for pair in pairs if pair[0] in EVERYDAY]
    away = [{plain(pair[side]) for pair in asked} for side in (0, 1)]
    kept = [
        pair for pair in pairs
        if all(1 <= len(words(pair[side])) <= most for side, most in enumerate(LONGEST.values()))
        and all(set(words(pair[side])) <= known[side] and plain(pair[side]) not in away[side] for side in (0, 1))
    ]  # fmt: skip
    for name, each in zip(NAMES, (kept, asked), strict=True):
        (given.folder / name).write_text("".join(f"{a}\t{b}\n" for a, b in each), encoding="utf-8")
    print(f"{len(kept):,} pairs to learn from; {len(EVERYDAY)} sentences asked, with {len(asked)} translations")


if __name__ == "__main__":
    main()
