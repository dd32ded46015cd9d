"""Sums, means, extremes and their like of estimates over the inner axes of a rule."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from regard.tracing.estimates import Estimate, Reals, rounded

Axes = tuple[int, ...]


class Terms:
    """Estimates over the inner axes, which are the last; where the mask is false there is no term."""

    def __init__(self, of: Estimate, axes: Axes, mask: Any, unit: float) -> None:
        self.value, self.error = (np.broadcast_to(each, np.broadcast_shapes(*map(np.shape, of))) for each in of)
        self.axes, self.mask, self.unit = axes, mask, unit
        here = np.broadcast_to(np.asarray(mask), np.broadcast_shapes(np.shape(mask), self.value.shape))
        self.count = here.sum(axes, keepdims=True)
        self.many = unit * (8 + 4 * math.sqrt(max(int(self.count.max(initial=1)), 1)))
        """The rounding of a sum of so many, in parts of the sum of their sizes."""

    def sum(self, of: Reals) -> Reals:
        found: Reals = np.sum(of, self.axes, keepdims=True, where=self.mask)
        return found

    def most(self, of: Reals, initial: float = 0.0) -> Reals:
        found: Reals = np.max(of, self.axes, keepdims=True, where=self.mask, initial=initial)
        return found


def reduced(name: str, terms: Terms, number: float) -> Estimate:
    return REDUCED[name](terms, number)


def _sum(t: Terms, number: float) -> Estimate:
    return rounded(t.sum(t.value), t.sum(t.error) + t.many * t.sum(np.abs(t.value)), t.unit)


def _mean(t: Terms, number: float) -> Estimate:
    value, error = _sum(t, number)
    return rounded(value / t.count, error / t.count, t.unit)


def _product(t: Terms, number: float) -> Estimate:
    value: Reals = np.prod(t.value, t.axes, keepdims=True, where=t.mask)
    relative = t.sum(np.where(t.value != 0, t.error / np.abs(t.value), np.where(t.error > 0, np.inf, 0)))
    off = np.where(relative == 0, 0, np.abs(value) * np.expm1(np.minimum(relative, 700)))
    return rounded(value, np.where(np.isinf(relative), np.inf, off), t.many)


def _extreme(t: Terms, number: float, sign: int = 1) -> Estimate:
    return Estimate(sign * t.most(sign * t.value, -np.inf), t.most(t.error))


def _where_extreme(t: Terms, number: float, sign: int = 1) -> Estimate:
    """Its place among the terms; not known where others come as close as they may be off."""
    best = t.most(sign * t.value, -np.inf)
    there = (sign * t.value >= best - 2 * t.most(t.error)) & t.mask
    lead = there.shape[: len(there.shape) - len(t.axes)]
    first = there.reshape(*lead, -1).argmax(-1).reshape(best.shape).astype(np.float64)
    return Estimate(first, np.where(there.sum(t.axes, keepdims=True) > 1, np.inf, 0.0))


def _variance(t: Terms, number: float) -> Estimate:
    """Σ (x - mean)² / (count - what is taken off it)"""
    mean = t.sum(t.value) / t.count
    away, left = np.abs(t.value - mean), t.count - number
    value = t.sum(away**2) / left
    off = t.many * np.abs(mean) + t.most(t.error) * 2
    error = (2 * t.sum(away) * off + t.count * off**2) / left
    return rounded(value, error, t.many)


def _logsumexp(t: Terms, number: float) -> Estimate:
    top = t.most(t.value, -np.inf)
    with_top = np.where(np.isfinite(top), top, 0)
    value = with_top + np.log(t.sum(np.exp(t.value - with_top)))
    return Estimate(value, t.most(t.error) + t.many * (1 + np.abs(with_top)))


def _norm(t: Terms, number: float) -> Estimate:
    sizes = np.abs(t.value)
    if math.isinf(number):
        return Estimate(t.most(sizes), t.most(t.error)) if number > 0 else Estimate(
            -t.most(-sizes, -np.inf), t.most(t.error)
        )  # fmt: skip
    if number == 0:
        return Estimate(t.sum((sizes != 0).astype(np.float64)), t.sum((t.error > 0).astype(np.float64)))
    value = t.sum(sizes**number) ** (1 / number)
    return rounded(value, t.sum(t.error), t.many * max(1.0, abs(number)))


def _truth(t: Terms, number: float, join: Any = np.any) -> Estimate:
    found = join(t.value != 0, t.axes, keepdims=True, where=t.mask).astype(np.float64)
    return Estimate(found, (t.most(t.error) > 0).astype(np.float64))


REDUCED: dict[str, Callable[[Terms, float], Estimate]] = {
    "sum": _sum, "mean": _mean, "product": _product, "max": _extreme, "min": lambda t, n: _extreme(t, n, -1),
    "argmax": _where_extreme, "argmin": lambda t, n: _where_extreme(t, n, -1), "variance": _variance, "any": _truth,
    "all": lambda t, n: _truth(t, n, np.all), "logsumexp": _logsumexp, "norm": _norm,
}  # fmt: skip
