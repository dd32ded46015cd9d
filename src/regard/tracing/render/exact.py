"""Whether a written equation is exactly true: its numbers as they are written, worked out as fractions."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce

from regard.tracing.cell import Expression
from regard.tracing.render.numbers import shown

Exact = Fraction | float
"""A fraction, or ±∞ as a float."""


class _Rounded(Exception):
    """Some number is not written in full, or some function gives none that could be."""


def exactly(expression: Expression, digits: int) -> Exact | None:
    """The value of an expression from its numbers as written; None where one of them is rounded."""
    try:
        return _value(expression, digits)
    except (_Rounded, ZeroDivisionError, OverflowError):
        return None


def _value(a: Expression, digits: int) -> Exact:
    if a.form in ("cell", "number"):
        return _written(a, digits)
    if a.form == "softmax":
        return _softmax(a)
    if a.form == "choose":
        condition, yes, no = a.of
        return _value(yes if _value(condition, digits) else no, digits)
    parts = [_value(each, digits) for each in a.of]
    if a.form == "over":
        return _over(a, [_value(each, digits) for each in a.terms])
    if a.form == "compare":
        return Fraction(_COMPARED[a.name](*parts))
    if a.form == "power":
        return _power(*parts)
    if a.form == "function":
        return _function(a.name, parts)
    if a.form not in _PLAIN:
        raise _Rounded
    return _PLAIN[a.form](parts)


_PLAIN: dict[str, Callable[[Sequence[Exact]], Exact]] = {
    "sum": lambda parts: _sum(parts),
    "product": lambda parts: _product(parts),
    "difference": lambda parts: parts[0] - parts[1],
    "quotient": lambda parts: parts[0] / parts[1],
    "negative": lambda parts: -parts[0],
}

_COMPARED: dict[str, Callable[[Exact, Exact], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "xor": lambda a, b: bool(a) != bool(b),
}


def _written(a: Expression, digits: int) -> Exact:
    if a.value is None:
        raise _Rounded
    exact = shown(a.value, digits, "float64" if a.step is None else a.step.dtype).exact
    if exact is None:
        raise _Rounded
    return exact


def _sum(parts: Sequence[Exact]) -> Exact:
    none: Exact = Fraction(0)
    return reduce(lambda a, b: a + b, parts, none)


def _product(parts: Sequence[Exact]) -> Exact:
    one: Exact = Fraction(1)
    return reduce(lambda a, b: a * b, parts, one)


def _power(a: Exact, b: Exact) -> Exact:
    if isinstance(a, float) or isinstance(b, float) or b.denominator != 1 or abs(b) > 64:
        raise _Rounded
    return Fraction(a ** int(b))


def _function(name: str, parts: Sequence[Exact]) -> Exact:
    a = parts[0]
    if name in ("relu", "maximum", "minimum"):
        several = [Fraction(0), a] if name == "relu" else parts
        return min(several) if name == "minimum" else max(several)
    if name in ("abs", "square", "reciprocal", "not", "sign"):
        return _EASY[name](a)
    at_zero: dict[str, Fraction | int] = {
        "exp": 1,
        "tanh": 0,
        "sin": 0,
        "cos": 1,
        "sigmoid": Fraction(1, 2),
        "sqrt": 0,
        "gelu": 0,
        "silu": 0,
    }
    if a == 0 and name in at_zero:
        return Fraction(at_zero[name])
    if name == "exp" and a == -math.inf:
        return Fraction(0)
    raise _Rounded


_EASY: dict[str, Callable[[Exact], Exact]] = {
    "abs": lambda a: max(a, -a),
    "square": lambda a: a * a,
    "reciprocal": lambda a: Fraction(1) / a,
    "not": lambda a: Fraction(not a),
    "sign": lambda a: Fraction((a > 0) - (a < 0)),
}


def _over(a: Expression, terms: Sequence[Exact]) -> Exact:
    if a.name in ("sum", "mean"):
        total = _sum(terms)
        return total if a.name == "sum" else total / len(terms)
    if a.name in ("max", "min") and terms:
        return max(terms) if a.name == "max" else min(terms)
    if a.name in ("argmax", "argmin") and terms:
        return Fraction(terms.index((max if a.name == "argmax" else min)(terms)))
    if a.name in ("any", "all"):
        return Fraction((any if a.name == "any" else all)(terms))
    if a.name == "product":
        return _product(terms)
    raise _Rounded


def _softmax(a: Expression) -> Exact:
    """0 where the cell is blocked, 1 where it is alone; all other weights are written rounded."""
    if a.of[0].value == -math.inf:
        return Fraction(0)
    if sum(each.value != -math.inf for each in a.terms) == 1:
        return Fraction(1)
    raise _Rounded
