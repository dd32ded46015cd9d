"""Operations that make each cell from the cells at its own place."""

import math
from functools import partial

import numpy as np
import torch

from regard.tracing.forms import (
    Form,
    Rule,
    choose,
    compare,
    divided,
    function,
    minus,
    negative,
    number,
    plus,
    power,
    rounded,
    scaled,
    times,
)  # fmt: skip
from regard.tracing.index import Move, row_strides
from regard.tracing.rules.call import Call, Source, axis, table
from regard.tracing.rules.moves import copied
from regard.tracing.rules.table import rule

SAME = (
    "exp", "log", "sqrt", "tanh", "sigmoid", "relu", "erf", "abs", "sin", "cos", "reciprocal", "rsqrt",
    "floor", "ceil", "trunc", "sign", "log1p", "expm1", "log2", "log10", "exp2", "tan", "atan", "silu", "isinf",
    "isnan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh",
)  # fmt: skip
"""Operations that are called as the function of `forms.FUNCTIONS` that they are."""


def _named(name: str, c: Call) -> Rule:
    return c.rule(function(name, c.at(c["self"])))


for _name in SAME:
    rule("each", _name)(partial(_named, _name))


@rule("each", "neg")
def neg(c: Call) -> Rule:
    return c.rule(negative(c.at(c["self"])))


@rule("each", "sgn")
def sgn(c: Call) -> Rule:
    return _named("sign", c)


@rule("each", "xlogy")
def xlogy(c: Call) -> Rule:
    """x log y, and 0 where x is 0"""
    x = c.at(c["self"])
    product = times(x, function("log", c.at(c["other"])))
    return c.rule(choose(compare("==", x, number(0)), number(0), product))


@rule("each", "add")
def add(c: Call) -> Rule:
    return c.rule(_signed_sum(c.at(c["self"]), c.at(c["other"]), c.get("alpha", 1)))


@rule("each", "sub")
def sub(c: Call) -> Rule:
    return c.rule(minus(c.at(c["self"]), scaled(c.at(c["other"]), c.get("alpha", 1))))


@rule("each", "rsub")
def rsub(c: Call) -> Rule:
    own = c.at(c["self"])
    return c.rule(minus(c.at(c["other"]), scaled(own, c.get("alpha", 1))))


def _signed_sum(a: Form, b: Form, alpha: float) -> Form:
    return minus(a, scaled(b, -alpha)) if alpha < 0 else plus(a, scaled(b, alpha))


@rule("each", "mul")
def mul(c: Call) -> Rule:
    return c.rule(times(c.at(c["self"]), c.at(c["other"])))


@rule("each", "div")
def div(c: Call) -> Rule:
    a, b, how = c.at(c["self"]), c.at(c["other"]), c.get("rounding_mode")
    if how == "floor":
        return c.rule(function("floor_divide", a, b))
    return c.rule(function("trunc", divided(a, b)) if how == "trunc" else divided(a, b))


@rule("each", "floor_divide", "remainder", "maximum", "minimum")
def two(c: Call) -> Rule:
    name = c.function._overloadpacket.__name__.removesuffix("_")
    return c.rule(function(name, c.at(c["self"]), c.at(c["other"])))


@rule("each", "pow")
def pow_(c: Call) -> Rule:
    return c.rule(power(c.at(c["self"]), c.at(c["exponent"])))


@rule("each", "addcmul")
def addcmul(c: Call) -> Rule:
    product = times(c.at(c["tensor1"]), c.at(c["tensor2"]))
    return c.rule(plus(c.at(c["self"]), scaled(product, c["value"])))


@rule("each", "addcdiv")
def addcdiv(c: Call) -> Rule:
    quotient = divided(c.at(c["tensor1"]), c.at(c["tensor2"]))
    return c.rule(plus(c.at(c["self"]), scaled(quotient, c["value"])))


@rule("each", "lerp")
def lerp(c: Call) -> Rule:
    """a + w (b - a)"""
    a, b, weight = c.at(c["self"]), c.at(c["end"]), c.at(c["weight"])
    return c.rule(plus(a, times(weight, minus(b, a))))


@rule("each", "clamp", "clamp_min", "clamp_max", "hardtanh")
def clamp(c: Call) -> Rule:
    low = next((c[name] for name in ("min", "min_val") if c.get(name) is not None), None)
    high = next((c[name] for name in ("max", "max_val") if c.get(name) is not None), None)
    body = c.at(c["self"])
    body = body if low is None else function("maximum", body, c.at(low))
    return c.rule(body if high is None else function("minimum", body, c.at(high)))


COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "logical_and": "and",
            "logical_or": "or", "logical_xor": "xor"}  # fmt: skip
BITS = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}


@rule("each", *COMPARED)
def compared(c: Call) -> Rule:
    name = c.function._overloadpacket.__name__.removesuffix("_")
    return c.rule(compare(COMPARED[name], c.at(c["self"]), c.at(c["other"])))


@rule("each", *BITS)
def bits(c: Call) -> Rule | None:
    """Of truth values alone: of whole numbers they work digit by digit."""
    if c.dtype != torch.bool:
        return None
    name = c.function._overloadpacket.__name__.removesuffix("_")
    return c.rule(compare(BITS[name], c.at(c["self"]), c.at(c["other"])))


@rule("each", "logical_not", "bitwise_not")
def not_(c: Call) -> Rule | None:
    if c.dtype != torch.bool:
        return None
    return c.rule(function("not", c.at(c["self"])))


@rule("each", "isneginf", "isposinf")
def infinite(c: Call) -> Rule:
    sign = -1 if "neg" in c.function._overloadpacket.__name__ else 1
    return c.rule(compare("==", c.at(c["self"]), number(sign * math.inf)))


@rule("each", "where")
def where(c: Call) -> Rule:
    return c.rule(choose(c.at(c["condition"]), c.at(c["self"]), c.at(c["other"])))


@rule("each", "masked_fill")
def masked_fill(c: Call) -> Rule:
    own, mask = c.at(c["self"]), c.at(c["mask"])
    return c.rule(choose(mask, c.at(c["value"]), own))


@rule("each", "_to_copy", "copy")
def to_copy(c: Call) -> Rule | Move:
    """A copy; to another dtype it is rounded."""
    source = c.source("src" if "src" in c.arguments else "self")
    if source.dtype != c.dtype:
        return c.rule(rounded(c.at(source), str(c.dtype).removeprefix("torch.")))
    return copied(c, source)


@rule("each", "round")
def round_(c: Call) -> Rule | None:
    """To the nearest whole number, halves to the even one."""
    return None if c.get("decimals") else _named("round", c)


@rule("each", "erfc")
def erfc(c: Call) -> Rule:
    return c.rule(minus(number(1), function("erf", c.at(c["self"]))))


@rule("each", "logit")
def logit(c: Call) -> Rule | None:
    x = c.at(c["self"])
    return None if c["eps"] is not None else c.rule(function("log", divided(x, minus(number(1), x))))


@rule("each", "fmod")
def fmod(c: Call) -> Rule:
    """a - b trunc(a / b)"""
    a, b = c.at(c["self"]), c.at(c["other"])
    return c.rule(minus(a, times(b, function("trunc", divided(a, b)))))


@rule("each", "logaddexp")
def logaddexp(c: Call) -> Rule:
    a, b = c.at(c["self"]), c.at(c["other"])
    return c.rule(function("log", plus(function("exp", a), function("exp", b))))


@rule("each", "hypot")
def hypot(c: Call) -> Rule:
    a, b = c.at(c["self"]), c.at(c["other"])
    return c.rule(function("sqrt", plus(function("square", a), function("square", b))))


@rule("each", "atan2")
def atan2(c: Call) -> Rule:
    return c.rule(function("atan2", c.at(c["self"]), c.at(c["other"])))


@rule("each", "frac")
def frac(c: Call) -> Rule:
    x = c.at(c["self"])
    return c.rule(minus(x, function("trunc", x)))


@rule("each", "logaddexp2")
def logaddexp2(c: Call) -> Rule:
    a, b = c.at(c["self"]), c.at(c["other"])
    return c.rule(function("log2", plus(function("exp2", a), function("exp2", b))))


@rule("each", "ldexp")
def ldexp(c: Call) -> Rule:
    return c.rule(times(c.at(c["self"]), power(number(2), c.at(c["other"]))))


@rule("each", "deg2rad", "rad2deg")
def turned(c: Call) -> Rule:
    to_degrees = c.function._overloadpacket.__name__.startswith("rad")
    return c.rule(times(c.at(c["self"]), number(180 / math.pi if to_degrees else math.pi / 180)))


@rule("each", "heaviside")
def heaviside(c: Call) -> Rule:
    x = c.at(c["self"])
    return c.rule(choose(compare("==", x, number(0)), c.at(c["values"]), compare(">", x, number(0))))


@rule("each", "fmax", "fmin")
def of_numbers(c: Call) -> Rule:
    """The larger or the smaller one; of a number and none, the number."""
    a, b = c.at(c["self"]), c.at(c["other"])
    best = function("maximum" if "max" in c.function._overloadpacket.__name__ else "minimum", a, b)
    return c.rule(choose(function("isnan", a), b, choose(function("isnan", b), a, best)))


@rule("each", "nan_to_num")
def nan_to_num(c: Call) -> Rule:
    x, least = c.at(c["self"]), torch.finfo(c.dtype) if c.dtype.is_floating_point else torch.iinfo(c.dtype)
    high = least.max if c["posinf"] is None else c["posinf"]
    low = least.min if c["neginf"] is None else c["neginf"]
    if not c.dtype.is_floating_point:
        return c.rule(plus(x))
    below = choose(compare("==", x, number(-math.inf)), number(low), x)
    finite = choose(compare("==", x, number(math.inf)), number(high), below)
    return c.rule(choose(function("isnan", x), number(c["nan"] or 0), finite))


@rule("over", "linalg_cross")
def cross(c: Call) -> Rule:
    """a_{i+1} b_{i+2} - a_{i+2} b_{i+1}, i counted round 0, 1, 2."""
    a, b = c.source("self"), c.source("other")
    dim = axis(c["dim"], len(c.shape))

    def along(source: Source, by: int) -> Form:
        strides = row_strides(source.shape)
        shape = [1] * len(c.shape)
        shape[dim] = 3
        index = ((np.arange(3) + by) % 3 * strides[dim]).reshape(shape)
        others = {f"d{d}": s for d, s in enumerate(strides) if d != dim and source.shape[d] > 1}
        return c.read(source, table(index, **others))

    return c.rule(minus(times(along(a, 1), along(b, 2)), times(along(a, 2), along(b, 1))))
