"""Convolutions and their gradients: sums over a kernel, in which a place outside counts for nothing.

The axes of a map are those of the output, then the inner ones. Spatial axes are written p (of the input), q (of what
comes out) and k (of the kernel): p = s q + d k - pad.
"""

from typing import Any

import numpy as np

from regard.tracing.forms import Form, Rule, plus, times, total
from regard.tracing.index import IndexMap, row_strides
from regard.tracing.rules.call import Call, Source, table
from regard.tracing.rules.table import rule

Places = Any
"""Flat places for (one spatial axis after the other, then those of the kernel); -1 where there is none."""


@rule("over", "convolution")
def convolution(c: Call) -> Rule:
    """y[n, o, q] = b[o] + Σ_{c, k} x[n, c, p] w[o, c, k]; of a transposed one p and q change places."""
    x, weight, groups = c.source("input"), c.source("weight"), c["groups"]
    dims, kernel = x.axes - 2, weight.shape[2:]
    into = x.shape[1] // groups
    c.inner = (into, *kernel)
    where = _into if c["transposed"] else _onto
    cells = _of_channels(c, x, groups, where(c, c.shape[2:], x.shape[2:], kernel))
    first, second, *rest = row_strides(weight.shape)
    if c["transposed"]:
        shared = _weight_of(c, weight, groups, dims)
    else:
        shared = IndexMap((0, first, *(0,) * dims, second, *rest))
    body = total(times(cells, c.read(weight, shared)))
    return c.rule(body if c.get("bias") is None else plus(body, c.at(c["bias"], [1])))


@rule("over", "convolution_backward")
def backward(c: Call) -> Rule | None:
    """Σ_{o, k} g[n, o, q] w[o, c, k] for x; Σ_{n, q} g[n, o, q] x[n, c, p] for w; Σ_{n, q} g[n, o, q] for b"""
    if c["transposed"]:
        return None
    g, x, weight = c.source("grad_output"), c.source("input"), c.source("weight")
    if c.output == 0:
        dims, kernel, groups = x.axes - 2, weight.shape[2:], c["groups"]
        c.inner = (g.shape[1] // groups, *kernel)
        cells = _of_channels(c, g, groups, _into(c, c.shape[2:], g.shape[2:], kernel))
        return c.rule(total(times(cells, c.read(weight, _weight_of(c, weight, groups, dims)))))
    c.inner = (g.shape[0], *g.shape[2:])
    batch, channel, *places = row_strides(g.shape)
    if c.output == 2:
        return c.rule(total(c.read(g, (channel, batch, *places))))
    gradient = c.read(g, (channel, 0, *(0,) * (g.axes - 2), batch, *places))
    return c.rule(total(times(gradient, _seen_by_the_kernel(c, x, weight.shape[2:], g.shape[2:]))))


def _of_channels(c: Call, x: Source, groups: int, spatial: Places) -> Form:
    """x[n, channel, place] for (n, o, places …, c, kernel …), the channels those of the group of o."""
    dims, outs, into, size = x.axes - 2, c.shape[1], c.inner[0], int(np.prod(x.shape[2:]))
    group = np.arange(outs) // (outs // groups) if groups > 1 else np.zeros(1, np.int64)
    ones = (1,) * dims
    inside = spatial.reshape(1, *spatial.shape[:dims], 1, *spatial.shape[dims:])
    first = (group * into * size).reshape(-1, *ones, 1, *ones)
    channels = (np.arange(into) * size).reshape(1, *ones, -1, *ones)
    index = np.where(inside < 0, -1, first + channels + inside)
    return c.read(x, table(index[None], d0=int(np.prod(x.shape[1:]))))


def _weight_of(c: Call, weight: Source, groups: int, dims: int) -> IndexMap:
    """The weight [channels summed over, those that come out in a group, kernel …] for (n, o, places …, c, kernel …)."""
    first, second, *rest = row_strides(weight.shape)
    outs = np.arange(c.shape[1])
    each = c.shape[1] // groups
    index = (outs // each) * c.inner[0] * first + (outs % each) * second
    strides = {f"d{2 + dims}": first} | {f"d{3 + dims + d}": stride for d, stride in enumerate(rest)}
    return table(index.reshape(1, -1, *(1,) * (2 * dims + 1)), **strides)


def _seen_by_the_kernel(c: Call, x: Source, kernel: tuple[int, ...], outs: tuple[int, ...]) -> Form:
    """x[n, c, p] for (o, c, kernel …, n, q …)"""
    dims, size = len(kernel), int(np.prod(x.shape[2:]))
    places = _onto(c, outs, x.shape[2:], kernel)  # q …, k …
    inside = np.moveaxis(places, range(dims), range(dims, 2 * dims)).reshape(1, *kernel, 1, *outs)
    groups, into = c["groups"], c.shape[1]
    group = np.arange(c.shape[0]) // (c.shape[0] // groups) if groups > 1 else np.zeros(1, np.int64)
    first = (group * into * size).reshape(-1, *(1,) * (2 * dims + 1))
    index = np.where(inside < 0, -1, first + inside)[:, None]
    return c.read(x, table(index, d1=size, **{f"d{2 + dims}": int(np.prod(x.shape[1:]))}))


def _onto(c: Call, outs: tuple[int, ...], sizes: tuple[int, ...], kernel: tuple[int, ...]) -> Places:
    """p for (q …, k …)"""
    return _places(c, outs, sizes, kernel, lambda q, k, s, pad, d: (s * q + d * k - pad, np.zeros(1, np.int64)))


def _into(c: Call, outs: tuple[int, ...], sizes: tuple[int, ...], kernel: tuple[int, ...]) -> Places:
    """q for (p …, k …)"""
    return _places(c, outs, sizes, kernel, lambda p, k, s, pad, d: np.divmod(p + pad - d * k, s))


def _places(c: Call, outs: tuple[int, ...], sizes: tuple[int, ...], kernel: tuple[int, ...], at: Any) -> Places:
    dims = len(sizes)
    options = [_each(c[name], dims) for name in ("stride", "padding", "dilation")]
    places = np.zeros((*outs, *kernel), np.int64)
    outside = np.zeros(places.shape, bool)
    for d in range(dims):
        here = np.arange(outs[d]).reshape([-1 if e == d else 1 for e in range(2 * dims)])
        k = np.arange(kernel[d]).reshape([-1 if e == d + dims else 1 for e in range(2 * dims)])
        there, left = at(here, k, *(option[d] for option in options))
        outside |= (there < 0) | (there >= sizes[d]) | (left != 0)
        places = places * sizes[d] + there
    return np.where(outside, -1, places)


def _each(value: Any, dims: int) -> list[int]:
    return list(value) * (dims if len(value) == 1 else 1)
