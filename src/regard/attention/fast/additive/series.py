"""tanh as a short sum of sines, so that a score of sums becomes a product of matrices.

    tanh(x) ≈ Σ_m c_m sin(m ω x)        1 - tanh²(x) ≈ Σ_m g_m cos(m ω x)        m = 1, 3, 5, …        |x| ≤ reach

sin(m ω (q + k)) = sin(m ω q) cos(m ω k) + cos(m ω q) sin(m ω k): what a pair (q, k) costs is a multiplication and an
addition of the matrix units for each of 2 M features, and the features are made once a tile. tanh is flat where it has
turned, so that a quarter of the period may be shorter than the reach, and the sum converges the faster for it.

A wider reach needs more terms; each level of a table has half as much again as the one before. Where even the last is
too short the kernels take each tanh by itself.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

LONGEST = 32
"""Terms of the longest sum."""
FARTHER = 1.3
"""How much farther each level reaches than the one before."""
NEAREST = 4.5
"""The reach of the first level."""
QUARTERS = np.linspace(0.56, 1.2, 17)
"""Of the reach: the quarter periods that are tried."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Sums for one accuracy, by level."""

    reach: tuple[float, ...]
    """The largest |x| of each level."""
    rate: tuple[float, ...]
    """ω."""
    terms: tuple[int, ...]
    """M."""
    sines: NDArray[np.float32]
    """[levels, LONGEST]: c_m."""
    cosines: NDArray[np.float32]
    """[levels, LONGEST]: g_m."""

    def flat(self) -> NDArray[np.float32]:
        """[levels, 3 + 2 LONGEST]: reach, ω, M, then c_m and g_m; as the kernels read it."""
        columns = np.stack([self.reach, self.rate, self.terms], 1).astype(np.float32)
        return np.concatenate([columns, self.sines, self.cosines], 1)


@cache
def table(error: float, slopes: bool = False) -> Table:
    """The sums whose largest error is about this; with `slopes` that of the cosines too may be twice as much."""
    levels: list[tuple[float, float, Values, Values]] = []
    reach, terms = NEAREST, 3
    while (found := _shortest(reach, error, terms, slopes)) is not None:
        levels.append((reach, *found))
        reach, terms = reach * FARTHER, len(found[1])
    reaches, rates, sines, cosines = zip(*levels, strict=True)
    return Table(
        reaches, rates, tuple(len(each) for each in sines), np.stack([_padded(each) for each in sines]),
        np.stack([_padded(each) for each in cosines]),
    )  # fmt: skip


def _shortest(reach: float, error: float, terms: int, slopes: bool) -> tuple[float, Values, Values] | None:
    """The fewest terms that will do, from so many on."""
    for count in range(terms, LONGEST + 1):
        rate, worst, sines, cosines = _best(reach, count, slopes)
        if worst <= error:
            return rate, sines, cosines
    return None


def _best(reach: float, terms: int, slopes: bool) -> tuple[float, float, Values, Values]:
    """The best of the quarter periods: ω, the error, c and g."""
    x = reach * np.linspace(0, 1, 8 * terms + 64)
    tried = []
    for quarter in QUARTERS:
        rate = math.pi / (2 * quarter * reach)
        angles = np.outer(x, np.arange(1, 2 * terms, 2)) * rate
        sines, worst = _fitted(np.sin(angles), np.tanh(x))
        cosines, steep = _fitted(np.cos(angles), 1 - np.tanh(x) ** 2) if slopes else (sines, 0.0)
        tried.append((max(worst, steep / 2), rate, sines, cosines))
    worst, rate, sines, cosines = min(tried, key=lambda each: each[0])
    return rate, worst, sines, cosines


def _fitted(features: Values, wanted: Values) -> tuple[Values, float]:
    """Least squares, weighed anew where the error is largest, and the largest error that is left."""
    weights, tried = np.ones(len(wanted)), list[tuple[float, Values]]()
    for _ in range(5):
        found = np.linalg.lstsq(features * weights[:, None], wanted * weights, rcond=1e-10)[0].astype(np.float64)
        errors = np.abs(features @ found - wanted)
        tried.append((float(errors.max()), found))
        weights = weights * np.sqrt(0.3 + errors / errors.max())
    least, best = min(tried, key=lambda each: each[0])
    return best, least


def _padded(terms: Values) -> NDArray[np.float32]:
    return np.pad(terms, (0, LONGEST - len(terms))).astype(np.float32)
