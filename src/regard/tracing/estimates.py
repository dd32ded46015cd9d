"""Numbers worked out again in float64, each with how far the recorded one may lie off it by rounding alone.

First-order error analysis: every operation adds its own rounding to what came with its operands.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number, and how far off it what was computed in a coarser precision may be: infinite where nobody knows."""

    value: Reals
    error: Reals


ZERO = np.zeros((), np.float64)
_erf, _erfc = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)


def erf(a: Reals) -> Reals:
    found: Reals = np.asarray(_erf(a), np.float64)
    return found


def sigmoid(a: Reals) -> Reals:
    """With all its digits where it is small: 1 + tanh(a / 2) has none there."""
    e = np.exp(-np.abs(a))
    found: Reals = np.where(a < 0, e, 1.0) / (1 + e)
    return found


def gelu(a: Reals) -> Reals:
    found: Reals = a * np.asarray(_erfc(-a / math.sqrt(2)), np.float64) / 2
    return found


FUNCTIONS: dict[str, Callable[[Reals], Any]] = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "sigmoid": sigmoid, "erf": erf, "abs": np.abs,
    "relu": lambda a: np.maximum(a, 0), "silu": lambda a: a * sigmoid(a), "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "gelu": gelu, "atan": np.arctan, "floor": np.floor, "ceil": np.ceil, "round": np.round,
    "gelu_tanh": lambda a: a * sigmoid(math.sqrt(8 / math.pi) * (a + 0.044715 * a**3)),
    "trunc": np.trunc, "sign": np.sign, "log1p": np.log1p, "expm1": np.expm1, "softplus": lambda a: np.logaddexp(a, 0),
    "log2": np.log2, "log10": np.log10, "exp2": np.exp2, "not": lambda a: a == 0, "isinf": np.isinf, "isnan": np.isnan,
    "reciprocal": lambda a: 1 / a, "rsqrt": lambda a: 1 / np.sqrt(a), "square": np.square, "asin": np.arcsin,
    "acos": np.arccos, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip
"""Of one number. Those of two are below."""

EXACT = frozenset({"abs", "relu", "floor", "ceil", "round", "trunc", "sign", "not", "isinf", "isnan"})
"""Whose results need no rounding."""

HALVED = frozenset({"gelu", "gelu_tanh"})
"""Computed as a · (1 + f) / 2 with f near -1 where a is far below 0: what is left of 1 + f is its rounding."""

COMPARED: dict[str, Callable[[Reals, Reals], Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
JOINED: dict[str, Callable[[Any, Any], Any]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}  # fmt: skip


def rounded(value: Reals, error: Reals, unit: float) -> Estimate:
    """With the rounding of the operation itself. What left the range of float64 on the way is not known."""
    return Estimate(value, np.where(np.isfinite(value), error + unit * np.abs(value), np.inf))


def added(parts: list[Estimate], unit: float) -> Estimate:
    value, error = parts[0]
    for each in parts[1:]:
        value, error = value + each.value, error + each.error + unit * (np.abs(value) + np.abs(each.value))
    return rounded(value, error, unit)


def multiplied(a: Estimate, b: Estimate, unit: float) -> Estimate:
    error = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
    return rounded(a.value * b.value, np.where(np.isnan(error), np.inf, error), unit)


def negated(a: Estimate) -> Estimate:
    return Estimate(-a.value, a.error)


def divided(a: Estimate, b: Estimate, unit: float) -> Estimate:
    value, room = a.value / b.value, np.abs(b.value) - b.error
    error = np.where(room > 0, (a.error + np.abs(value) * b.error) / room, np.inf)
    return rounded(value, np.where((b.error == 0) & (a.error == 0), 0, error), unit)


def raised(a: Estimate, b: Estimate, unit: float) -> Estimate:
    """a to the power b, whose digits after the point count as often as the logarithm of a is large."""
    value = a.value**b.value
    slope = np.abs(b.value * value / a.value) * a.error + np.abs(value * np.log(np.abs(a.value))) * b.error
    error = np.where((a.error == 0) & (b.error == 0), 0, np.where(np.isnan(slope), np.inf, slope))
    return rounded(value, error, unit * 4)


def called(name: str, parts: list[Estimate], unit: float) -> Estimate:
    """A function, at the number and as far off it as that may be: its error is what comes of that."""
    if len(parts) == 2:
        return _of_two(name, parts[0], parts[1], unit)
    function, (value, error) = FUNCTIONS[name], parts[0]
    found = np.asarray(function(value), np.float64)
    off: Reals = ZERO
    if np.any(error > 0):
        with_more, with_less = (np.asarray(function(at), np.float64) for at in (value + error, value - error))
        off = np.maximum(np.abs(with_more - found), np.abs(with_less - found))
        off = np.where(error > 0, np.where(np.isnan(off), np.inf, off), 0)
    if name in HALVED:
        off = off + unit * np.abs(value) / 2
    return Estimate(found, off) if name in EXACT else rounded(found, off, unit * 4)


def _of_two(name: str, a: Estimate, b: Estimate, unit: float) -> Estimate:
    if name in ("maximum", "minimum"):
        function = np.maximum if name == "maximum" else np.minimum
        return Estimate(function(a.value, b.value), np.maximum(a.error, b.error))
    if name == "atan2":
        size = np.hypot(a.value, b.value)
        return rounded(np.arctan2(a.value, b.value), np.where(size > 0, (a.error + b.error) / size, 0), unit * 4)
    ratio = divided(a, b, unit)
    exact = (a.error == 0) & (b.error == 0)
    edge = ~exact & (np.abs(ratio.value - np.round(ratio.value)) <= ratio.error)
    whole = np.where(exact, np.floor_divide(a.value, b.value), np.floor(ratio.value))
    if name == "floor_divide":
        return Estimate(whole, np.where(edge, np.where(ratio.error < 1, 1.0, ratio.error), 0.0))
    left = a.error + np.abs(whole) * b.error + unit * np.abs(a.value)
    remains = np.where(exact, np.remainder(a.value, b.value), a.value - b.value * whole)
    return Estimate(remains, np.where(edge, np.abs(b.value) + left, left))


def compared(name: str, a: Estimate, b: Estimate) -> Estimate:
    """1 or 0; either, where they are closer than they may be off."""
    if name in JOINED:
        unsure = (a.error + b.error) > 0
        return Estimate(JOINED[name](a.value != 0, b.value != 0).astype(np.float64), unsure.astype(np.float64))
    error = a.error + b.error
    unsure = (error > 0) & (np.abs(a.value - b.value) <= error)
    return Estimate(COMPARED[name](a.value, b.value).astype(np.float64), unsure.astype(np.float64))


def chosen(condition: Estimate, yes: Estimate, no: Estimate) -> Estimate:
    holds = condition.value != 0
    error = np.where(holds, yes.error, no.error)
    either = np.abs(yes.value - no.value) + yes.error + no.error
    return Estimate(np.where(holds, yes.value, no.value), np.where(condition.error > 0, either, error))


def soft(own: Estimate, others: Estimate, axes: tuple[int, ...], mask: Any, unit: float, logarithm: bool) -> Estimate:
    """e^own / Σ e^others, or its logarithm."""
    top = np.max(others.value, axes, keepdims=True, where=mask, initial=-np.inf)
    total = np.sum(np.exp(others.value - top), axes, keepdims=True, where=mask)
    off = own.error + np.max(others.error, axes, keepdims=True, where=mask, initial=0)
    many = unit * (8 + 4 * math.sqrt(max(others.value.size // max(total.size, 1), 1)))
    if logarithm:
        value = own.value - top - np.log(total)
        sizes = np.where(np.isfinite(own.value), np.abs(own.value), 0) + np.abs(top)
        return Estimate(value, off + many + unit * (sizes + np.abs(value)))
    value = np.exp(own.value - top) / total
    far = np.where(np.isfinite(own.value), np.abs(own.value - top), 0)
    return Estimate(value, value * (off + many + unit * (1 + far)))
