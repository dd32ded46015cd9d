"""Two files, line by line; and where they part, when one has more lines than the other."""

import math
import re
from collections.abc import Iterator
from itertools import islice, zip_longest
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from regard.data.lines import Line, Undecodable, lines, read_lines
from regard.data.readers.examples import Bad, Example, Read
from regard.data.readers.files import Files
from regard.support.errors import Misuse

MOST_TO_COMPARE = 2_000_000
Looks = NDArray[np.float32]
CLEAR = 4.0
"""How much better a place must fit than the end for it to be told."""

SHIFTS = 20
"""How many lines may be missing before the first place where lines are, if others are missing further on."""

SURE = 15.0
"""How much better the lines behind a place must fit when they are shifted, for it to be that place."""


def read(files: Files) -> Read:
    """Line n of the one with line n of the other; Misuse at the end where one has more lines."""
    source, target = files.open(0), files.open(1)
    number = 0
    for number, (left, right) in enumerate(zip_longest(lines(source), lines(target)), 1):
        if isinstance(left, str) and isinstance(right, str):
            yield Example(number, (left, right))
        elif left is None or right is None:
            raise _different(files, number - 1)
        elif isinstance(left, Undecodable):
            yield Bad(number, "not UTF-8", left.said, left.text)
        elif isinstance(right, Undecodable):
            yield Bad(number, "not UTF-8", right.said, right.text, file=1)


def _different(files: Files, paired: int) -> Misuse:
    counts = [sum(1 for _ in read_lines(path)) for path in files.paths]
    names, longer = files.names, int(counts[1] > counts[0])
    said = (
        f"{names[0]} has {counts[0]:,} lines and {names[1]} has {counts[1]:,}; "
        "line by line they must be translations of one another"
    )
    parted = parting(files.paths[0], files.paths[1]) if max(counts) <= MOST_TO_COMPARE else None
    if parted is None:
        return Misuse(f"{said}. {names[longer]}:{paired + 1} is the first line without a partner")
    texts = [next(islice(read_lines(path), parted, None), "") for path in files.paths]
    shown = "\n".join(f"  {name}:{parted + 1}: {_short(text)}" for name, text in zip(names, texts, strict=True))
    return Misuse(f"{said}. They seem to part at line {parted + 1}:\n{shown}")


def parting(source: Path, target: Path) -> int | None:
    """The first line (from 0) from which two files no longer belong together, as far as their lines' looks tell.

    The longer file has d more lines. Wherever they are cut out at one place p, the lines before p pair as they
    stand and those behind p are shifted by d: the p with the least sum of differences in looks is the place. Where
    lines are missing in several places, the first is the one from which some other shift fits for a while. None
    where it fits as well to cut them off at the end.
    """
    looks = [_looks(source), _looks(target)]
    if len(looks[0]) > len(looks[1]):
        looks.reverse()
    shorter, longer = looks
    found = _only_place(shorter, longer)
    before = _first_of_several(shorter, longer, len(shorter) if found is None else found)
    return found if before is None else before


def _only_place(shorter: Looks, longer: Looks) -> int | None:
    """The place from which on all lines fit shifted; None where it fits as well to cut the longer off at the end."""
    straight = np.concatenate([[0.0], np.cumsum(_difference(shorter, longer[: len(shorter)]))])
    shifted = np.concatenate([[0.0], np.cumsum(_difference(shorter, longer[len(longer) - len(shorter) :]))])
    costs = straight + shifted[-1] - shifted
    best = int(np.argmin(costs))
    return best if costs[-1] - costs[best] >= CLEAR else None


def _first_of_several(shorter: Looks, longer: Looks, end: int) -> int | None:
    """The first line from which a few lines more or less fit better, and go on to until that is sure; before `end`."""
    straight, first = _difference(shorter, longer[: len(shorter)]), None
    for shift in [each for each in range(-SHIFTS, SHIFTS + 1) if each]:
        start = max(-shift, 0)
        stop = max(min(end, len(longer) - shift), start)
        moved = _difference(shorter[start:stop], longer[start + shift : stop + shift])
        gains = np.concatenate([[0.0], np.cumsum(straight[start:stop] - moved)])
        risen = gains - np.minimum.accumulate(gains) > SURE
        if risen.any():
            sure = int(np.argmax(risen))
            first, end = start + int(np.argmin(gains[: sure + 1])) + min(shift, 0), start + sure
    return first


def _looks(path: Path) -> Looks:
    """What shows in a line in any language: how long it is, the digits in it, how it ends."""
    return np.fromiter((value for line in read_lines(path) for value in _look(line)), np.float32).reshape(-1, 3)


def _look(line: Line) -> Iterator[float]:
    text = line if isinstance(line, str) else line.text
    yield math.log(len(text) + 5)
    digits = "".join(re.findall(r"\d", text))
    yield float(crc32(digits.encode()) % 999_983 + 1 if digits else 0)
    end = text.rstrip()[-1:]
    yield float("?!:;".find(end) if end in "?!:;" and end else -1)


def _difference(a: Looks, b: Looks) -> NDArray[np.float64]:
    """[n]: how unlike lines are; the ratio of lengths is measured against its usual value in these files."""
    ratio = a[:, 0] - b[:, 0]
    usual = float(np.median(ratio)) if len(ratio) else 0.0
    cost: NDArray[np.float64] = np.minimum(np.abs(ratio - usual), 2.0).astype(np.float64)
    cost += a[:, 1] != b[:, 1]
    cost += a[:, 2] != b[:, 2]
    return cost


def _short(line: Line) -> str:
    text = line if isinstance(line, str) else line.text
    return text if len(text) <= 70 else f"{text[:69]}…"
