"""What becomes of each example of the training data: trained on, held out for dev or a test, or left out.

Decided from hashes alone, chunk by chunk. A fate is one byte an example, in a file that workers map.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from regard.data.cleaning import DUPLICATE, HELD_OUT
from regard.data.duplicates import repeats
from regard.data.gathering import Record
from regard.data.settings import DataSettings
from regard.data.split import SideHashes

TRAIN: Final = 0
DEV: Final = 1
TEST: Final = 2
REPEATED: Final = 3
KNOWN: Final = 4
REASONS: Final[dict[int, str]] = {REPEATED: DUPLICATE, KNOWN: HELD_OUT}
"""The fates of those that are left out."""

CHUNK: Final = 1 << 18
Fates = NDArray[np.uint8]
Overlap = dict[str, int]


@dataclass(frozen=True)
class Read:
    """One source of a split that was read."""

    folder: Path
    record: Record
    sides: int
    kind: str
    """Examples of one kind have the same languages."""


def decide(
    train: Sequence[Read], held_out: Mapping[str, Sequence[Read]], settings: DataSettings, folder: Path
) -> tuple[Fates, dict[str, Overlap]]:
    """The fate of every training example, and for each given dev or test how many of them stand in it too."""
    total = sum(each.record.kept for each in train)
    path = folder / "fates.bin"
    np.zeros(max(total, 1), np.uint8).tofile(path)
    fates: Fates = np.memmap(path, np.uint8, "r+")[:total]
    if settings.clean.duplicates != "keep":
        repeats(_chunks(train, "whole.bin", lambda each: 2), total, fates, REPEATED, folder)
    overlaps = {split: _overlap(train, reads, fates, settings) for split, reads in held_out.items()}
    _split(train, fates, settings, folder, dev="dev" not in held_out)
    return fates, overlaps


def rows_of_fate(fates: Fates, fate: int) -> Iterator[NDArray[np.int64]]:
    """The numbers of the examples with a fate, chunk by chunk, rising."""
    for start in range(0, len(fates), CHUNK):
        yield start + np.flatnonzero(fates[start : start + CHUNK] == fate)


def count(fates: Fates, fate: int) -> int:
    """How many have it."""
    return sum(len(rows) for rows in rows_of_fate(fates, fate))


def chosen_evenly(fates: Fates, fate: int, size: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """At most `size` of the examples with a fate, any as likely as another, rising, chunk by chunk."""
    random = np.random.default_rng([seed, 1])
    left = count(fates, fate)
    wanted = min(size, left)
    for rows in rows_of_fate(fates, fate):
        some = int(random.hypergeometric(len(rows), left - len(rows), wanted)) if left else 0
        left, wanted = left - len(rows), wanted - some
        yield np.sort(random.choice(rows, some, replace=False, shuffle=False)) if some else rows[:0]


def _chunks(reads: Sequence[Read], name: str, width: Any) -> Iterator[NDArray[np.uint64]]:
    """[rows, width]: the hashes of all examples, in order."""
    for each in reads:
        with (each.folder / name).open("rb") as file:
            while data := file.read(CHUNK * 8 * width(each)):
                yield np.frombuffer(data, np.uint64).reshape(-1, width(each))


def _sides(reads: Sequence[Read]) -> Iterator[NDArray[np.uint64]]:
    return _chunks(reads, "sides.bin", lambda each: each.sides)


def _overlap(train: Sequence[Read], reads: Sequence[Read], fates: Fates, settings: DataSettings) -> Overlap:
    """How many training examples stand in a dev or test: as a whole, or with one side; and what is left out for it."""
    held = list(_sides(reads))
    known = np.unique(np.concatenate([each.ravel() for each in held])) if held else np.zeros(0, np.uint64)
    pairs = np.unique(np.concatenate([_mixed(each) for each in held])) if held else known
    found = {"pair": 0, "side": 0}
    start = 0
    for chunk in _sides(train):
        here = fates[start : start + len(chunk)]
        free = here != REPEATED
        whole = np.isin(_mixed(chunk), pairs) & free
        side = np.isin(chunk, known).any(axis=1) & free
        found["pair"] += int(whole.sum())
        found["side"] += int(side.sum())
        drop = {"keep": np.zeros_like(whole), "pair": whole, "side": side}[settings.clean.held_out]
        here[drop] = KNOWN
        start += len(chunk)
    return found


def _mixed(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One number for all sides together, whichever side comes first."""
    spread = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    mixed: NDArray[np.uint64] = np.add.reduce(spread, axis=1)
    return mixed


def _split(train: Sequence[Read], fates: Fates, settings: DataSettings, folder: Path, dev: bool) -> None:
    """Take dev and a test out of the training data, where they are not given."""
    free = count(fates, TRAIN)
    sizes = [min(settings.test_size, free // 10), min(settings.dev_size, free // 10) if dev else 0]
    if not any(sizes):
        return
    with SideHashes(folder, across=True) as hashes:
        kinds: dict[str, list[range]] = {}
        start = 0
        for each in train:
            before = len(hashes)
            for chunk in _sides([each]):
                hashes.add_hashes(chunk[fates[start : start + len(chunk)] == TRAIN])
                start += len(chunk)
            kinds.setdefault(each.kind, []).append(range(before, len(hashes)))
        filled = [spans for spans in kinds.values() if any(map(len, spans))]
        test_rows, dev_rows = hashes.held_out_rows(sizes, settings.seed, filled)
    places = {fate: _nth(fates, rows) for fate, rows in ((TEST, test_rows), (DEV, dev_rows))}
    for fate, rows in places.items():
        fates[rows] = fate


def _nth(fates: Fates, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of the examples that are the n-th of those still free, for rising n."""
    found = [ranks[:0]]
    before = 0
    for rows in rows_of_fate(fates, TRAIN):
        here = ranks[(ranks >= before) & (ranks < before + len(rows))]
        found.append(rows[here - before])
        before += len(rows)
    return np.concatenate(found)
