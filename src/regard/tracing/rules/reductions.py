"""Sums, means, maxima, softmax and their like over axes."""

from typing import Any

import numpy as np
import torch

from regard.tracing.forms import Form, Rule, choose, compare, function, number, over, total
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


@rule("over", "linalg_vector_norm", "norm")
def norm(c: Call) -> Rule:
    source, order = c.source("self"), c.get("ord", c.get("p"))
    return c.rule(over("norm", reduced(c, source, _dims(c, source)), 2 if order is None else order))


@rule("over", "cumsum", "cumprod")
def cumulated(c: Call) -> Rule:
    """The sum or the product over the places up to its own."""
    source = c.source("self")
    join = "product" if c.function._overloadpacket.__name__.startswith("cumprod") else "sum"
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


@rule("over", "max_pool2d_with_indices")
def max_pool(c: Call) -> Rule | None:
    return None if c.output else c.rule(over("max", _windows(c)))


@rule("over", "avg_pool2d")
def avg_pool(c: Call) -> Rule | None:
    if c["ceil_mode"] or c["divisor_override"] is not None:
        return None
    cells, kernel = _windows(c), int(np.prod(c.inner))
    padded = any(c["padding"])
    if padded and c["count_include_pad"]:
        from regard.tracing.forms import divided

        return c.rule(divided(total(cells), number(kernel)))
    return c.rule(over("mean", cells))


def _windows(c: Call) -> Form:
    """The cells under a window of two axes, places … and then those of the window."""
    source = c.source("self")
    lead = source.axes - 2
    sizes, kernel = source.shape[lead:], _pair(c["kernel_size"])
    stride, padding, dilation = _pair(c["stride"] or kernel), _pair(c["padding"]), _pair(c.get("dilation", [1]))
    at = []
    outside: Any = False
    for d in range(2):
        p = np.arange(c.shape[lead + d])[:, None] * stride[d] - padding[d] + np.arange(kernel[d]) * dilation[d]
        shape = [1, 1, 1, 1]
        shape[d], shape[2 + d] = p.shape
        at.append(p.reshape(shape))
        outside = outside | ((p < 0) | (p >= sizes[d])).reshape(shape)
    index = np.where(outside, -1, at[0] * sizes[1] + at[1])
    c.inner = (kernel[0], kernel[1])
    leading = {f"d{d}": stride for d, stride in enumerate(row_strides(source.shape)[:lead])}
    return c.read(source, table(index.reshape(*(1,) * lead, *index.shape), **leading))


def _pair(value: Any) -> list[int]:
    return list(value) * (2 if len(value) == 1 else 1)
