"""Shares of an epoch by temperature: small groups of examples come more often than they would, large ones less.

A group with n_g of all N examples gets k_g = N n_g^(1/T) / Σ_h n_h^(1/T) places of every epoch. Each group is gone
through in one permutation after another, and an epoch goes on where the last one ended: so all examples of a group
come equally often, to within one, however many epochs there are.
"""

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def tempered(groups: Rows, temperature: float, *, seed: int, epoch: int) -> Rows:
    """The numbers of the examples of an epoch, as many as there are; `groups` [N] says to which each belongs."""
    found, counts = np.unique(groups, return_counts=True)
    shares = shares_of(counts, temperature)
    rows = [
        _stretch(np.flatnonzero(groups == group), epoch * share, share, [seed, int(group)])
        for group, share in zip(found, shares.tolist(), strict=True)
    ]
    return np.concatenate(rows)


def shares_of(counts: NDArray[np.int64], temperature: float) -> Rows:
    """[groups]: how many places of an epoch each group gets, one at the least; together as many as there are."""
    if not counts.any():
        return counts
    total = int(counts.sum())
    weights = counts.astype(np.float64) ** (1 / temperature)
    exact = weights / weights.sum() * total
    shares: Rows = np.maximum(exact.astype(np.int64), 1)
    for group in np.argsort(shares - exact, kind="stable")[: max(total - int(shares.sum()), 0)]:
        shares[group] += 1
    return shares


def _stretch(rows: Rows, start: int, count: int, seed: list[int]) -> Rows:
    """Places start to start + count of one permutation of the rows after another."""
    first, last = start // len(rows), (start + count - 1) // len(rows)
    orders = [np.random.default_rng([*seed, number]).permutation(rows) for number in range(first, last + 1)]
    inside = start - first * len(rows)
    return np.concatenate(orders)[inside : inside + count]
