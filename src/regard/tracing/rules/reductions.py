"""Sums, means, maxima, softmax and their like over axes."""

import numpy as np
import torch

from regard.tracing.forms import Form, Rule, choose, compare, function, minus, number, over, total
from regard.tracing.index import row_strides
from regard.tracing.rules.call import Call, Source, all_axes, axis, table
from regard.tracing.rules.table import rule


def reduced(c: Call, source: Source, dims: list[int]) -> Form:
    """The cells of a source over the given axes, which become the inner ones."""
    c.inner = tuple(source.shape[d] for d in dims)
    strides = row_strides(source.shape)
    kept = [d for d in range(source.axes) if d not in dims]
    # With keepdim the output has all axes, else only those kept.
    outer = [0 if d in dims else strides[d] for d in range(source.axes)] if len(c.shape) == source.axes else [
        strides[d] for d in kept
    ]  # fmt: skip
    return c.read(source, (*outer, *(strides[d] for d in dims)))


def _dims(c: Call, source: Source) -> list[int]:
    return all_axes(c.get("dim"), source.axes)


@rule("over", "sum", "mean", "amax", "amin", "prod", "any", "all")
def simple(c: Call) -> Rule:
    name = c.function._overloadpacket.__name__
    name = {"amax": "max", "amin": "min", "prod": "product"}.get(name, name)
    source = c.source("self")
    return c.rule(over(name, reduced(c, source, _dims(c, source))))


@rule("over", "max", "min")
def extreme(c: Call) -> Rule | None:
    """Of all cells, along an axis (values and where they stand), or of two tensors."""
    name, source = c.function._overloadpacket.__name__, c.source("self")
    if "other" in c.arguments:
        return c.rule(function(f"{name}imum", c.at(source), c.at(c["other"])))
    return c.rule(over(name if c.output == 0 else f"arg{name}", reduced(c, source, _dims(c, source))))


@rule("over", "argmax", "argmin")
def where_extreme(c: Call) -> Rule:
    source = c.source("self")
    return c.rule(over(c.function._overloadpacket.__name__, reduced(c, source, _dims(c, source))))


@rule("over", "var", "std", "var_mean", "std_mean")
def variance(c: Call) -> Rule:
    """Σ (x - mean)² / (count - correction)"""
    name, source = c.function._overloadpacket.__name__, c.source("self")
    cells = reduced(c, source, _dims(c, source))
    if c.output == 1:
        return c.rule(over("mean", cells))
    correction = c.get("correction", 1 if c.get("unbiased", True) else 0)
    body = over("variance", cells, 1 if correction is None else correction)
    return c.rule(function("sqrt", body) if name.startswith("std") else body)


@rule("over", "isin")
def isin(c: Call) -> Rule | None:
    """Whether any of the others is the same."""
    elements, others = c.get("elements"), c.get("test_elements")
    if c.get("invert") or not isinstance(elements, Source) or not isinstance(others, Source):
        return None
    c.inner = (others.size,)
    return c.rule(over("any", compare("==", c.at(elements), c.read(others, (*(0 for _ in c.shape), 1)))))


@rule("over", "logsumexp")
def logsumexp(c: Call) -> Rule:
    return c.rule(over("logsumexp", reduced(c, c.source("self"), _dims(c, c.source("self")))))


@rule("over", "nansum")
def nansum(c: Call) -> Rule:
    source = c.source("self")
    cells = reduced(c, source, _dims(c, source))
    return c.rule(total(choose(function("isnan", cells), number(0), cells)))


@rule("over", "count_nonzero")
def count_nonzero(c: Call) -> Rule:
    source = c.source("self")
    return c.rule(total(compare("!=", reduced(c, source, _dims(c, source)), number(0))))


@rule("over", "aminmax")
def aminmax(c: Call) -> Rule:
    source = c.source("self")
    return c.rule(over("max" if c.output else "min", reduced(c, source, _dims(c, source))))


@rule("over", "trace")
def trace(c: Call) -> Rule:
    """Σ_i A[i, i]"""
    source = c.source("self")
    c.inner = (min(source.shape),)
    return c.rule(total(c.read(source, (sum(row_strides(source.shape)),))))


@rule("over", "_cdist_forward")
def distance(c: Call) -> Rule | None:
    """The norm of x - y for each row x of the one and y of the other."""
    x, y = c.source("x1"), c.source("x2")
    if c["p"] == 0 or x.shape[:-2] != y.shape[:-2]:
        return None
    c.inner = (x.shape[-1],)
    (*lead, row, along), (*others, column, beside) = row_strides(x.shape), row_strides(y.shape)
    away = minus(c.read(x, (*lead, row, 0, along)), c.read(y, (*others, 0, column, beside)))
    return c.rule(over("norm", away, c["p"]))


@rule("over", "linalg_vector_norm", "norm")
def norm(c: Call) -> Rule:
    source, order = c.source("self"), c.get("ord", c.get("p"))
    return c.rule(over("norm", reduced(c, source, _dims(c, source)), 2 if order is None else order))


UP_TO = {"cumsum": "sum", "cumprod": "product", "cummax": "max", "cummin": "min", "logcumsumexp": "logsumexp"}


@rule("over", *UP_TO)
def cumulated(c: Call) -> Rule | None:
    """The sum, product, … over the places up to its own."""
    source = c.source("self")
    if c.output:
        return None
    join = UP_TO[c.function._overloadpacket.__name__.removesuffix("_")]
    if not source.axes:
        return c.rule(over(join, c.at(source)))
    dim = axis(c["dim"], source.axes)
    n, strides = source.shape[dim], row_strides(source.shape)
    here, there = np.ogrid[:n, :n]
    upto = np.where(there <= here, there * strides[dim], -1)
    shape = [1] * source.axes + [n]
    shape[dim] = n
    c.inner = (n,)
    others = {f"d{d}": strides[d] for d in range(source.axes) if d != dim}
    return c.rule(over(join, c.read(source, table(upto.reshape(shape), **others))))


def row(c: Call, source: Source, dim: int) -> tuple[int, ...]:
    """Strides at which a source is read over the row in which the cell stands."""
    c.inner = (source.shape[dim],) if source.axes else (1,)
    strides = row_strides(source.shape)
    return (*(0 if d == dim else stride for d, stride in enumerate(strides)), strides[dim] if source.axes else 0)


@rule("over", "_softmax", "_log_softmax", "_safe_softmax")
def softmax(c: Call) -> Rule:
    source, name = c.source("self"), c.function._overloadpacket.__name__
    dim = axis(c["dim"], source.axes)
    strides = row(c, source, dim)
    own, others = c.at(source), c.read(source, strides)
    body = Form("log_softmax" if name == "_log_softmax" else "softmax", (own, others))
    if name == "_safe_softmax" and _some_row_is_empty(source, dim):
        body = choose(compare("==", over("max", others), number(-torch.inf)), number(0), body)
    return c.rule(body)


def _some_row_is_empty(source: Source, dim: int) -> bool:
    return bool(torch.isneginf(source.read()).all(dim).any())
