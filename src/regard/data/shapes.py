"""A few shapes for all batches, chosen so that as few places as can be stay empty.

An example with sides of lengths (s, t) goes into the smallest shape (S, T) with s ≤ S and t ≤ T, and wastes
S − s + T − t places. The shapes are shelves: the target's lengths are cut at a few places, and between two cuts the
source's lengths are cut on their own. Among all such shelves those with the least waste are found exactly, by dynamic
programming over the lengths that occur (over 48 quantiles of them where there are more).
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.int64]
"""[N, sides]: how many places each example has on each side; one side or two."""

EDGES: Final = 48
FAR: Final = np.inf


def choose(lengths: Lengths, count: int) -> Lengths:
    """[at most count, sides]: the shapes, from the smallest to the largest; every example fits the last."""
    if lengths.shape[1] == 1:
        lengths = np.concatenate([lengths, np.zeros_like(lengths)], axis=1)
        return choose(lengths, count)[:, :1]
    sources, targets = edges(lengths[:, 0]), edges(lengths[:, 1])
    cells = np.zeros((len(targets), len(sources)))
    at = np.searchsorted(targets, lengths[:, 1]), np.searchsorted(sources, lengths[:, 0])
    np.add.at(cells, at, 1)
    found = [(int(sources[s]), int(targets[t])) for s, t in _shelves(cells, sources, targets, count)]
    return np.array(sorted(found, key=lambda shape: (sum(shape), shape)), np.int64)


def edges(lengths: NDArray[Any]) -> Lengths:
    """The lengths at which may be cut, the greatest among them, rising."""
    found = np.unique(lengths)
    if len(found) > EDGES:
        found = np.unique(np.quantile(lengths, np.linspace(0, 1, EDGES), method="higher"))
    return found.astype(np.int64)


def _shelves(cells: NDArray[Any], sources: Lengths, targets: Lengths, count: int) -> list[tuple[int, int]]:
    """The corners (source edge, target edge) of the best at most `count` shapes.

    cells [T, S]: how many examples lie at each pair of edges.
    best[k, b] = min over a < b and j ≤ k of best[k − j, a] + cost of the targets (a, b] cut at j sources.
    The last shelf reaches to the last source, so that one shape takes up whatever is left over of the others.
    """
    T = len(targets)
    total = np.concatenate([np.zeros((1, cells.shape[1])), np.cumsum(cells, axis=0)])
    best = np.full((count + 1, T + 1), FAR)
    best[0, 0] = 0.0
    came: dict[tuple[int, int], tuple[int, int, list[int]]] = {}
    for b in range(1, T + 1):
        for a in range(b):
            costs, cuts = _cuts(total[b] - total[a], sources, int(targets[b - 1]), count, whole=b == T)
            for j in range(1, len(costs)):
                reached = best[: count + 1 - j, a] + costs[j]
                for k in np.flatnonzero(reached < best[j:, b] - 1e-9).tolist():
                    best[k + j, b] = reached[k]
                    came[k + j, b] = (k, a, cuts[j])
    place = int(np.argmin(best[:, T])), T
    corners: list[tuple[int, int]] = []
    while place[1]:
        k, a, sides = came[place]
        corners += [(s, place[1] - 1) for s in sides]
        place = k, a
    return corners


def _cuts(
    counts: NDArray[Any], sources: Lengths, target: int, most: int, whole: bool
) -> tuple[list[float], list[list[int]]]:
    """For j = 0, 1, … shapes on one shelf: the places they take, and at which source edges they end.

    Only edges at which examples lie are ends (and the last one, on a `whole` shelf).
    """
    ends = np.union1d(np.flatnonzero(counts), [len(sources) - 1] if whole else []).astype(np.int64)
    before = np.concatenate([[0.0], np.cumsum(counts[ends])])
    take = before[None, 1:] - before[:-1, None]  # [c, d]: examples behind end c − 1 up to end d
    take = np.where(np.tri(len(ends), dtype=bool).T, take * (sources[ends] + target)[None], FAR)
    costs: list[float] = [FAR]
    cuts: list[list[int]] = [[]]
    row = take[0]
    back: list[NDArray[np.int64]] = []
    for _ in range(min(most, len(ends))):
        costs.append(float(row[-1]))
        cuts.append(_walked(back, ends))
        following = np.concatenate([[FAR], row[:-1]])[:, None] + take
        back.append(np.argmin(following, axis=0))
        row = following.min(axis=0)
    return costs, cuts


def _walked(back: list[NDArray[np.int64]], ends: NDArray[Any]) -> list[int]:
    """The ends of the shapes, from the last one back."""
    at = len(ends) - 1
    found = [int(ends[at])]
    for each in reversed(back):
        at = int(each[at]) - 1
        found.append(int(ends[at]))
    return found
