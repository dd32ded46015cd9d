"""Losses that are operations of their own; the others come apart into simpler ones."""

from typing import Any

import numpy as np

from regard.tracing.forms import Form, Rule, divided, function, minus, negative, number, over, times, total
from regard.tracing.index import IndexMap, row_strides
from regard.tracing.rules.call import Call, Source, table
from regard.tracing.rules.table import rule

NONE, MEAN, SUM = 0, 1, 2
"""How PyTorch counts the ways to reduce."""


@rule("over", "mse_loss")
def mse_loss(c: Call) -> Rule:
    """(a - b)², their mean or sum"""
    a, b = c.source("self"), c.source("target")
    if c["reduction"] == NONE:
        return c.rule(function("square", minus(c.at(a), c.at(b))))
    c.inner = (a.size,)
    body = function("square", minus(c.read(a, (1,)), c.read(b, (1,))))
    return c.rule(over("mean" if c["reduction"] == MEAN else "sum", body))


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
