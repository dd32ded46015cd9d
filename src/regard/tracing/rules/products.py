"""Products of matrices, and convolutions: sums of products."""

from typing import Any

import numpy as np

from regard.tracing.forms import Form, Rule, plus, scaled, times, total
from regard.tracing.index import IndexMap, row_strides
from regard.tracing.rules.call import Call, Source, table
from regard.tracing.rules.table import rule


@rule("over", "mm", "bmm")
def mm(c: Call) -> Rule:
    """C[.., i, j] = Σ_k A[.., i, k] B[.., k, j]"""
    return c.rule(_product(c, c.source("self"), c.source("mat2")))


def _product(c: Call, a: Source, b: Source) -> Form:
    c.inner = (a.shape[-1],)
    (*batch_a, row, along_a), (*batch_b, along_b, column) = row_strides(a.shape), row_strides(b.shape)
    return total(times(c.read(a, (*batch_a, row, 0, along_a)), c.read(b, (*batch_b, 0, column, along_b))))


@rule("over", "addmm", "baddbmm")
def addmm(c: Call) -> Rule:
    """β bias + α A B"""
    first, second = ("mat1", "mat2") if "mat1" in c.arguments else ("batch1", "batch2")
    product = scaled(_product(c, c.source(first), c.source(second)), c["alpha"])
    return c.rule(product if c["beta"] == 0 else plus(product, scaled(c.at(c["self"]), c["beta"])))


@rule("over", "mv")
def mv(c: Call) -> Rule:
    return c.rule(_vector(c, c.source("self"), c.source("vec")))


@rule("over", "addmv")
def addmv(c: Call) -> Rule:
    product = scaled(_vector(c, c.source("mat"), c.source("vec")), c["alpha"])
    return c.rule(product if c["beta"] == 0 else plus(product, scaled(c.at(c["self"]), c["beta"])))


def _vector(c: Call, a: Source, b: Source) -> Form:
    c.inner = b.shape
    return total(times(c.read(a, row_strides(a.shape)), c.read(b, (0, 1))))


@rule("over", "dot", "vdot")
def dot(c: Call) -> Rule:
    c.inner = c.source("self").shape
    return c.rule(
        total(times(c.read(c.source("self"), (1,)), c.read(c["tensor" if "tensor" in c.arguments else "other"], (1,))))
    )


@rule("over", "linear")
def linear(c: Call) -> Rule:
    """x Wᵀ + b; seen whole where nothing records gradients."""
    x, weight = c.source("input"), c.source("weight")
    c.inner = (x.shape[-1],)
    *places, along = row_strides(x.shape)
    body = total(
        times(c.read(x, (*places, 0, along)), c.read(weight, (*(0 for _ in places), *row_strides(weight.shape))))
    )
    return c.rule(body if c.get("bias") is None else plus(body, c.at(c["bias"])))


@rule("over", "convolution")
def convolution(c: Call) -> Rule:
    """y[n, o, p] = b[o] + Σ_{c, k} x[n, c, s p + d k - pad] w[o, c, k]; a place outside of x counts for nothing."""
    x, weight, groups = c.source("input"), c.source("weight"), c["groups"]
    dims = x.axes - 2
    kernel = weight.shape[2:]
    into = weight.shape[0 if c["transposed"] else 1] // (groups if c["transposed"] else 1)
    c.inner = (into, *kernel)
    spatial = _spatial(c, x.shape[2:], kernel)
    channels, outs = np.arange(into), c.shape[1]
    group = np.arange(outs) // (outs // groups)
    size = int(np.prod(x.shape[2:]))
    # Axes: n, o, places …, c, kernel …
    shape = (1, outs if groups > 1 else 1, *spatial.shape[:dims], into, *spatial.shape[dims:])
    first = (group if groups > 1 else group[:1]) * into * size
    index = _outer(first, channels * size, spatial, dims)
    cells = c.read(x, table(np.broadcast_to(index, shape), d0=int(np.prod(x.shape[1:]))))
    body = total(times(cells, c.read(weight, _kernel(c, weight, dims, groups))))
    return c.rule(body if c.get("bias") is None else plus(body, c.at(c["bias"], [1])))


def _outer(first: Any, channel: Any, spatial: Any, dims: int) -> Any:
    """Flat indices within one sentence or image, for (o, places …, c, kernel …); -1 outside."""
    ones = (1,) * dims
    inside = spatial.reshape(1, *spatial.shape[:dims], 1, *spatial.shape[dims:])
    where = first.reshape(-1, *ones, 1, *ones) + channel.reshape(1, *ones, -1, *ones) + inside
    return np.where(inside < 0, -1, where)[None]


def _spatial(c: Call, sizes: tuple[int, ...], kernel: tuple[int, ...]) -> Any:
    """Flat places in x for (places …, kernel …), -1 where there is none."""
    dims, outs = len(sizes), c.shape[2:]
    options = [_each(c[name], dims) for name in ("stride", "padding", "dilation")]
    places = np.zeros((*outs, *kernel), np.int64)
    outside = np.zeros(places.shape, bool)
    for d in range(dims):
        stride, padding, dilation = (option[d] for option in options)
        p = np.arange(outs[d]).reshape([-1 if e == d else 1 for e in range(2 * dims)])
        k = np.arange(kernel[d]).reshape([-1 if e == d + dims else 1 for e in range(2 * dims)])
        if c["transposed"]:
            at, left = np.divmod(p + padding - dilation * k, stride)
        else:
            at, left = stride * p + dilation * k - padding, np.zeros(1, np.int64)
        outside |= (at < 0) | (at >= sizes[d]) | (left != 0)
        places = places * sizes[d] + at
    return np.where(outside, -1, places)


def _each(value: Any, dims: int) -> list[int]:
    return list(value) * (dims if len(value) == 1 else 1)


def _kernel(c: Call, weight: Source, dims: int, groups: int) -> IndexMap:
    """The weight for (n, o, places …, c, kernel …); of a transposed one [c, o / groups, kernel …]."""
    first, second, *rest = row_strides(weight.shape)
    none = (0,) * dims
    if not c["transposed"]:
        return IndexMap((0, first, *none, second, *rest))
    outs, into = np.arange(c.shape[1]), weight.shape[0] // groups
    each = c.shape[1] // groups
    index = (outs // each) * into * first + (outs % each) * second
    strides = {f"d{2 + dims}": first} | {f"d{3 + dims + d}": stride for d, stride in enumerate(rest)}
    return table(index.reshape(1, -1, *none_axes(dims)), **strides)


def none_axes(dims: int) -> tuple[int, ...]:
    """Sizes of axes on which nothing depends: the places, the channel and the kernel."""
    return (1,) * (2 * dims + 1)
