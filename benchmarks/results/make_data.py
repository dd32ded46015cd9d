"""The corpora behind docs/results.md, in the forms that configs/results/ name, under one folder.

    python benchmarks/results/make_data.py FROM TO

FROM holds, gzipped or not and each in a folder of its own: multi30k ({train,val,test_2016_flickr}.{en,de}),
europarl_en_de and europarl_en_fr ({train,valid,test,test_long}.{en,de,fr}), ud_english_ewt ({train,dev}.tsv: words,
UPOS tags, tabs between), sst2 ({train,dev}.tsv), cmudict (cmudict.tsv: word, phones), mnist (the four idx files),
glove_100d_50k (glove.6B.100d.top50k.txt), tatoeba. TO gets what training reads: links where a corpus is as it should
be, files where it has to be made (tags, spellings split by word, strips of digits).
"""

import argparse
import gzip
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

AS_THEY_ARE = ("multi30k", "europarl_en_de", "europarl_en_fr", "sst2", "glove_100d_50k", "tatoeba")
HELD_OUT = 20
"""Of the words of CMUdict every 20th is for the test, and every 20th but one for development."""
STRIP, TRAIN, DEV, TEST = 5, 30_000, 1_000, 2_000
"""Digits of a strip at most, and how many strips there are of each split."""


def lines(path: Path) -> list[str]:
    """Of a file, or of the gzipped one beside its name."""
    if path.exists():
        return path.read_text(encoding="utf-8").splitlines()
    with gzip.open(path.with_name(path.name + ".gz"), "rt", encoding="utf-8") as file:
        return file.read().splitlines()


NOTES = (
    "1\tnvidia today reported revenue for the second quarter ended july 28 , 2024 , of $ 30.0 billion , up 15 % from "
    "the previous quarter and up 122 % from a year ago .\n"
    "1\tthe phone battery is bad but the overall phone is good\n"
)
"""The two texts that the lecture notes feel for their sentiment, written as SST-2 writes: positive, both."""


def tags(source: Path, target: Path) -> None:
    """A word and its UPOS tag a line, an empty line between sentences."""
    target.mkdir(exist_ok=True)
    for split in ("train", "dev"):
        sentences = [line.split("\t")[:2] for line in lines(source / f"{split}.tsv")]
        pairs = [zip(words.split(" "), marks.split(" "), strict=True) for words, marks in sentences]
        text = "\n".join("".join(f"{word}\t{tag}\n" for word, tag in each) for each in pairs)
        (target / f"{split}.tsv").write_text(text, encoding="utf-8")


def spellings(source: Path, target: Path) -> None:
    """Letters TAB phones, spaces between; words held out whole, with all their pronunciations."""
    target.mkdir(exist_ok=True)
    said: dict[str, list[str]] = defaultdict(list)
    for line in lines(source / "cmudict.tsv"):
        word, phones = line.split("\t")[:2]
        if word.isascii() and word.replace("'", "").isalpha():
            said[word].append(phones)
    order = np.random.default_rng(0).permutation(len(said))
    splits: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    words = sorted(said)
    for place, number in enumerate(order.tolist()):
        split = {0: "test", 1: "dev"}.get(place % HELD_OUT, "train")
        splits[split] += [f"{' '.join(words[number])}\t{phones}\n" for phones in said[words[number]]]
    for name, each in splits.items():
        (target / f"{name}.tsv").write_text("".join(each), encoding="utf-8")


def digits(source: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """[N, 28, 28] and [N] of MNIST."""
    images = opened(source / f"{split}-images-idx3-ubyte")
    labels = opened(source / f"{split}-labels-idx1-ubyte")
    count, height, width = struct.unpack(">III", images[4:16])
    return np.frombuffer(images, np.uint8, offset=16).reshape(count, height, width), np.frombuffer(
        labels, np.uint8, offset=8
    )


def opened(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else gzip.decompress(path.with_name(path.name + ".gz").read_bytes())


def strips(source: Path, target: Path) -> None:
    """Images of two to five digits side by side, with blank columns between and about them, all of one width.

    Those of development and test are made of digits that those of training are not.
    """
    target.mkdir(exist_ok=True)
    train, test = digits(source, "train"), digits(source, "t10k")
    last = train[0][-5000:], train[1][-5000:]
    for name, count, (images, labels), seed in [
        ("train", TRAIN, (train[0][:-5000], train[1][:-5000]), 1), ("dev", DEV, last, 2), ("test", TEST, test, 3),
    ]:  # fmt: skip
        made = list(made_of(images, labels, count, seed))
        pixels = np.stack([each for each, _ in made])
        header = struct.pack(">IIII", 0x803, len(made), *pixels.shape[1:])
        (target / f"{name}-images.idx.gz").write_bytes(gzip.compress(header + pixels.tobytes(), 6, mtime=0))
        (target / f"{name}.txt").write_text("".join(f"{text}\n" for _, text in made), encoding="utf-8")


def made_of(images: np.ndarray, labels: np.ndarray, count: int, seed: int) -> Iterator[tuple[np.ndarray, str]]:
    random = np.random.default_rng(seed)
    for _ in range(count):
        chosen = random.integers(len(images), size=random.integers(2, STRIP + 1))
        strip = np.zeros((28, 28 * STRIP + 20), np.uint8)
        free = strip.shape[1] - 28 * len(chosen)
        gaps = random.multinomial(free, np.full(len(chosen) + 1, 1 / (len(chosen) + 1)))
        start = 0
        for gap, number in zip(gaps, chosen, strict=False):
            start += int(gap)
            strip[:, start : start + 28] = images[number]
            start += 28
        yield strip, " ".join(str(labels[number]) for number in chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    given.target.mkdir(parents=True, exist_ok=True)
    for name in AS_THEY_ARE:
        link = given.target / name
        if (given.source / name).is_dir() and not link.exists():
            link.symlink_to((given.source / name).resolve(), target_is_directory=True)
    (given.target / "notes-reviews.tsv").write_text(NOTES, encoding="utf-8")
    for name, make in {"ud_english_ewt": tags, "cmudict": spellings, "mnist": strips}.items():
        if (given.source / name).is_dir():
            make(given.source / name, given.target / {"mnist": "strips"}.get(name, name))
            print(f"{given.target / name}: made", flush=True)


if __name__ == "__main__":
    main()
