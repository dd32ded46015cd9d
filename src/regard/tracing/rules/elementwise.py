"""Operations that make each cell from the cells at its own place."""

import math
from functools import partial

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
from regard.tracing.index import Move
from regard.tracing.rules.call import Call
from regard.tracing.rules.moves import copied
from regard.tracing.rules.table import rule

SAME = (
    "exp", "log", "sqrt", "tanh", "sigmoid", "relu", "erf", "abs", "sin", "cos", "reciprocal", "rsqrt",
    "floor", "ceil", "trunc", "sign", "log1p", "expm1", "log2", "log10", "exp2", "tan", "atan", "silu", "isinf",
    "isnan",
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
