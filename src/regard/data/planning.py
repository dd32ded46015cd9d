"""Which examples make up which batch of an epoch: settled before the epoch begins, from lengths alone.

    plan = planned(lengths, settings, seed=0, epoch=3, shuffle=True, ranks=2)
    plan.rows(batch)        numbers of the examples of a batch
    plan.shapes[batch]      its rows and the places of each side

The examples are put in an order where neighbours have like lengths: by target, and among equal targets by source, once
up and once down; equal ones as the seed and the epoch have it. That order is cut where the budget is full. The batches
are dealt out so that the ranks get batches of like size at the same time, in an order that the seed and the epoch give.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.batch_settings import BatchSettings
from regard.data.shapes import Lengths, choose
from regard.support.errors import Misuse

ROUND_FROM = 16
"""Batches of a bounded shape have rows in eights from here on: what matrix units like."""


@dataclass(frozen=True)
class Plan:
    """The batches of an epoch, of all ranks: batch i of rank r is number i * ranks + r."""

    order: NDArray[np.int64]
    """[N]: the numbers of all examples, batch by batch."""
    starts: NDArray[np.int64]
    """[batches + 1]: batch i is order[starts[i]:starts[i + 1]]."""
    shapes: NDArray[np.int64]
    """[batches, 1 + sides]: rows, and places of each side."""
    ranks: int

    def __len__(self) -> int:
        """How many batches each rank has."""
        return len(self.shapes) // self.ranks

    def rows(self, batch: int) -> NDArray[np.int64]:
        """The numbers of the examples of a batch."""
        return self.order[self.starts[batch] : self.starts[batch + 1]]


def planned(
    lengths: Lengths,
    settings: BatchSettings,
    *,
    seed: int,
    epoch: int,
    shuffle: bool,
    ranks: int = 1,
    shapes: Lengths | None = None,
) -> Plan:
    """The batches of one epoch; `shapes` [K, sides] bounds their shapes."""
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths)) if shuffle else np.arange(len(lengths))
    if shapes is None:
        share = float(random.uniform(0.5, 1.0)) if shuffle else 1.0
        found = _free(lengths, order, settings, share)
    else:
        found = _bounded(lengths, order, settings, shapes)
    found = _divisible(found, ranks, lengths if shapes is None else None)
    groups = np.arange(len(found)).reshape(-1, ranks)
    if shuffle:
        groups = np.argsort([rows * sum(places) for _, (rows, *places) in found], kind="stable").reshape(-1, ranks)
        groups = random.permutation(random.permuted(groups, axis=1))
    return _plan([found[each] for each in groups.flat], ranks)


Planned = tuple[NDArray[np.int64], tuple[int, ...]]
"""The examples of a batch and its shape."""


def _plan(found: list[Planned], ranks: int) -> Plan:
    starts = np.zeros(len(found) + 1, np.int64)
    np.cumsum([len(rows) for rows, _ in found], out=starts[1:])
    return Plan(np.concatenate([rows for rows, _ in found]), starts, np.array([shape for _, shape in found]), ranks)


def costs(sides: NDArray[Any], settings: BatchSettings) -> NDArray[np.int64]:
    """[..., sides] → [...]: the places that count, of one row of a batch with such sides."""
    if settings.count == "longest":
        found = sides.max(axis=-1)
    elif settings.count == "both":
        found = sides.sum(axis=-1)
    else:
        found = sides[..., 0 if settings.count == "source" else -1]
    return np.asarray(np.maximum(found, 1), np.int64)


def _free(lengths: Lengths, order: NDArray[np.int64], settings: BatchSettings, share: float) -> list[Planned]:
    """Batches of any shape; the first one's budget is a share of the others', so that no two epochs cut alike."""
    order = _like_by_like(lengths, order)
    sides = lengths[order]
    found: list[Planned] = []
    start, budget = 0, int(settings.tokens * share)
    while start < len(order):
        count = _fitting(sides[start:], max(budget, int(costs(sides[start], settings))), settings)
        found.append((order[start : start + count], _shape(sides[start : start + count])))
        start, budget = start + count, settings.tokens
    return found


def _like_by_like(lengths: Lengths, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The examples by their last side, among equals by their first, up and down in turn."""
    last = lengths[order, -1]
    first = lengths[order, 0] if lengths.shape[1] > 1 else np.zeros_like(last)
    turned = np.where(last % 2 == 0, first, -first)
    widest = int(np.abs(turned).max(initial=0)) + 1
    return order[np.argsort(last * (2 * widest) + turned + widest, kind="stable")]


def _fitting(sides: Lengths, budget: int, settings: BatchSettings) -> int:
    """How many of the next examples make a full batch."""
    most = budget // int(costs(sides[0], settings)) + 1
    most = min(most, settings.examples or most)
    grown = np.maximum.accumulate(sides[:most], axis=0)
    places = costs(grown, settings) * np.arange(1, len(grown) + 1)
    return max(int(np.searchsorted(places, budget, side="right")), 1)


def shapes_of(lengths: Lengths, settings: BatchSettings) -> Lengths | None:
    """The shapes all batches will have, where the settings bound them."""
    return None if settings.shapes is None else choose(lengths, settings.shapes)


def rows_of(shape: Lengths, settings: BatchSettings) -> int:
    """How many rows a batch of a bounded shape has."""
    rows = settings.tokens // int(costs(shape, settings))
    rows = max(rows - rows % 8 if rows >= ROUND_FROM else rows, 1)
    return min(rows, settings.examples or rows)


def _bounded(lengths: Lengths, order: NDArray[np.int64], settings: BatchSettings, shapes: Lengths) -> list[Planned]:
    """Full batches of each shape from the smallest up; what is left over moves up to the next shape it fits."""
    waiting = _sorted_in(lengths, order, shapes)
    found: list[Planned] = []
    for place, shape in enumerate(shapes):
        rows = rows_of(shape, settings)
        taken = np.concatenate(waiting[place]) if waiting[place] else order[:0]
        above = [each for each in range(place + 1, len(shapes)) if (shapes[each] >= shape).all()]
        whole = len(taken) - len(taken) % rows if above else len(taken)
        found += [(taken[start : start + rows], (rows, *map(int, shape))) for start in range(0, whole, rows)]
        if whole < len(taken):
            waiting[above[0]].insert(0, taken[whole:])
    return found


def _sorted_in(lengths: Lengths, order: NDArray[np.int64], shapes: Lengths) -> list[list[NDArray[np.int64]]]:
    """For each shape the examples whose smallest it is."""
    smallest = np.full(len(order), len(shapes), np.int64)
    for place in reversed(range(len(shapes))):
        smallest[(lengths[order] <= shapes[place]).all(axis=1)] = place
    return [[order[smallest == place]] for place in range(len(shapes))]


def _divisible(found: list[Planned], ranks: int, lengths: Lengths | None) -> list[Planned]:
    """As many batches as every rank can have equally many of: the fullest are halved until it comes out even.

    With `lengths` a half has the shape of its examples; without, that of the whole, some of its rows not filled.
    """
    while len(found) % ranks:
        fullest = max(range(len(found)), key=lambda each: len(found[each][0]))
        rows, shape = found[fullest]
        if len(rows) < 2:
            count = sum(len(rows) for rows, _ in found)
            raise Misuse(f"{count:,} examples, one a batch, cannot be shared evenly by {ranks} ranks")
        halves = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        found[fullest : fullest + 1] = [(half, shape if lengths is None else _shape(lengths[half])) for half in halves]
    return found


def _shape(sides: Lengths) -> tuple[int, ...]:
    """The shape of a batch of examples with these sides."""
    return (len(sides), *map(int, sides.max(axis=0)))
