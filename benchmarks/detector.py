"""Make the language detector that comes with the package, and measure it on sentences it has not seen.

    python benchmarks/detector.py FOLDER [--write]

FOLDER holds Tatoeba pairs, en-es.tsv.gz and so on: English, TAB, the other language. A tenth of the sentences of each
language is held out by a hash of the sentence, so that the same sentence is never on both sides.
"""

import argparse
import gzip
import zlib
from collections import Counter
from pathlib import Path

from regard.builtin import DETECTOR
from regard.text.detector import Detector

MOST = 40_000
"""Sentences of a language to learn from, so that none is better known than the others by much."""


def sentences(folder: Path) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for path in sorted(folder.glob("en-*.tsv.gz")):
        other = path.name.split(".")[0].partition("-")[2]
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                english, _, foreign = line.rstrip("\n").partition("\t")
                found.setdefault("en", {})[english] = None
                found.setdefault(other, {})[foreign.split("\t")[0]] = None
    return {language: list(each) for language, each in found.items()}


def held_out(sentence: str) -> bool:
    return zlib.crc32(sentence.encode()) % 10 == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=int, default=4000)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    texts = sentences(given.folder)
    detector = Detector.learn(
        {language: [each for each in own if not held_out(each)][:MOST] for language, own in texts.items()}, given.keep
    )
    print(f"{len(detector.languages)} languages, {given.keep} pieces")
    for language, own in texts.items():
        unseen = [each for each in own if held_out(each)][:2000]
        said = Counter(detector.detect(each)[0].language for each in unseen)
        others = ", ".join(f"{name} {count}" for name, count in said.most_common(4) if name != language)
        print(f"{language}: {said[language] / len(unseen):.1%} of {len(unseen)} right ({others})")
    if given.write:
        detector.save(DETECTOR)
        print(f"{DETECTOR}: {DETECTOR.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
