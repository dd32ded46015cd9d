"""Losses that are operations of their own; the others come apart into simpler ones."""

from collections.abc import Callable
from typing import Any

import numpy as np

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
    over,
    plus,
    times,
    total,
)  # fmt: skip
from regard.tracing.index import IndexMap, row_strides
from regard.tracing.rules.call import Call, Source, table
from regard.tracing.rules.table import rule

NONE, MEAN, SUM = 0, 1, 2
"""How PyTorch counts the ways to reduce."""


def _pairs(c: Call, body: Callable[[Form, Form], Form]) -> Rule | None:
    """A loss for each pair of cells, weighted where there are weights, or the mean or sum of them all."""
    a, b, weight = c.source("self"), c.source("target"), c.get("weight")
    if c["reduction"] == NONE:
        found = body(c.at(a), c.at(b))
        return c.rule(found if weight is None else times(c.at(weight), found))
    c.inner = (a.size,)
    found = body(c.read(a, (1,)), c.read(b, (1,)))
    found = found if weight is None else times(_spread(c, weight, a.shape), found)
    return c.rule(over("mean" if c["reduction"] == MEAN else "sum", found))


def _spread(c: Call, source: Source, shape: tuple[int, ...]) -> Form:
    """The cells of what broadcasts to a shape, over all its places."""
    index = np.arange(source.size).reshape(source.shape)
    return c.read(source, table(np.broadcast_to(index, shape).reshape(-1)))


@rule("over", "mse_loss")
def mse_loss(c: Call) -> Rule | None:
    """(a - b)²"""
    return _pairs(c, lambda a, b: function("square", minus(a, b)))


@rule("over", "binary_cross_entropy")
def binary_cross_entropy(c: Call) -> Rule | None:
    """-(t log p + (1 - t) log(1 - p)), no logarithm below -100"""

    def log(a: Form) -> Form:
        return function("maximum", function("log", a), number(-100))

    def body(p: Form, t: Form) -> Form:
        return negative(plus(times(t, log(p)), times(minus(number(1), t), log(minus(number(1), p)))))

    return _pairs(c, body)


@rule("over", "binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(c: Call) -> Rule | None:
    """(1 - t) x + log(1 + e^-x); with a weight p of what is true (1 - t) x + (1 + (p - 1) t) log(1 + e^-x)"""
    heavy = c.get("pos_weight")

    def body(x: Form, t: Form) -> Form:
        soft = function("softplus", negative(x))
        if heavy is not None:
            p = c.at(heavy) if c["reduction"] == NONE else _spread(c, heavy, c.source("self").shape)
            soft = times(plus(number(1), times(minus(p, number(1)), t)), soft)
        return plus(times(minus(number(1), t), x), soft)

    return _pairs(c, body)


@rule("over", "smooth_l1_loss", "huber_loss")
def rounded_corner(c: Call) -> Rule | None:
    """d² / 2 where |d| is under the bound, else the line that goes on from there. smooth_l1_loss divides by it."""
    bound, smooth = c.get("beta", c.get("delta")), "beta" in c.arguments

    def body(a: Form, b: Form) -> Form:
        away = function("abs", minus(a, b))
        near, far = divided(function("square", minus(a, b)), number(2)), minus(away, number(bound / 2))
        near, far = (divided(near, number(bound)), far) if smooth else (near, times(number(bound), far))
        return choose(compare("<", away, number(bound)), near, far)

    return _pairs(c, body)


def targets(c: Call, source: Source, axis: int) -> np.ndarray[Any, Any]:
    """Flat indices of the cells of the right classes in the order of the targets; -1 where one is ignored."""
    target = c.source("target").read().numpy().reshape(-1)
    counted = target != c["ignore_index"]
    strides = row_strides(source.shape)
    others = [n for d, n in enumerate(source.shape) if d != axis]
    places = np.zeros(others, np.int64)
    for d, at in enumerate(np.ogrid[tuple(slice(n) for n in others)]):
        places = places + at * strides[d + (d >= axis)]
    return np.where(counted, places.reshape(-1) + np.where(counted, target, 0) * strides[axis], -1)


@rule("over", "nll_loss_forward", "nll_loss2d_forward")
def nll_loss(c: Call) -> Rule:
    """-Σ w log p / Σ w over the right classes; what is ignored counts for nothing. Also Σ w, or their number."""
    source, weight = c.source("self"), c.get("weight")
    axis = 1 if source.axes > 1 else 0
    right = targets(c, source, axis)
    if c.output == 0 and c["reduction"] == NONE:
        return _each(c, source, weight, right.reshape(c.shape))
    if c["reduction"] == NONE:
        return c.rule(number(0))  # nothing is divided by it
    c.inner = right.shape
    weights = _weights(c, weight, right)
    if c.output == 1:
        return c.rule(total(weights))
    cells = c.read(source, table(right))
    terms = negative(cells) if weight is None else times(weights, negative(cells))
    return c.rule(divided(total(terms), c.at(c.sibling(1))) if c["reduction"] == MEAN else total(terms))


def _weights(c: Call, weight: Source | None, right: np.ndarray[Any, Any]) -> Form:
    """The weight of each target's class; 1 where classes have none."""
    target = c.source("target")
    classes = target.read().numpy().reshape(-1)
    if weight is not None:
        return c.read(weight, table(np.where(right < 0, -1, classes)))
    c.read(target, table(np.where(right < 0, -1, np.arange(right.size))))
    return number(1)


def _each(c: Call, source: Source, weight: Source | None, right: np.ndarray[Any, Any]) -> Rule:
    """One loss for each target: a sum of one term, or of none."""
    c.inner = (1,)
    cells = c.read(source, table(right[..., None]))
    if weight is None:
        return c.rule(total(negative(cells)))
    classes = c.source("target").read().numpy().reshape(right.shape)
    return c.rule(total(times(c.read(weight, table(np.where(right < 0, -1, classes)[..., None])), negative(cells))))


@rule("over", "nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(c: Call) -> Rule:
    """-g w / Σ w at the right class, 0 elsewhere"""
    source, weight = c.source("self"), c.get("weight")
    axis = 1 if source.axes > 1 else 0
    right = targets(c, source, axis)
    hit = np.full(source.size, -1, np.int64)
    hit[right[right >= 0]] = np.flatnonzero(right >= 0) if c["reduction"] == NONE else 0
    c.inner = (1,)
    gradient = c.read(c.source("grad_output"), table(hit.reshape(*c.shape, 1)))
    if weight is not None:
        strides = [0] * (len(c.shape) + 1)
        strides[axis] = 1
        gradient = times(gradient, c.read(weight, IndexMap(tuple(strides))))
    mean = c["reduction"] == MEAN
    return c.rule(total(negative(divided(gradient, c.at(c["total_weight"])) if mean else gradient)))
