"""Windows over places: pooling, unfolding into windows and folding them back, making an image larger."""

from typing import Any

import numpy as np
import torch

from regard.tracing.forms import Form, Rule, divided, number, over, total
from regard.tracing.index import Move, compressed, row_strides, whole
from regard.tracing.rules.call import Call, LeftOut, Source, run, table
from regard.tracing.rules.moves import contributions
from regard.tracing.rules.table import rule


@rule("over", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(c: Call) -> Rule | None:
    return None if c.output else c.rule(over("max", _windows(c, _axes(c))))


@rule("over", "avg_pool2d", "avg_pool3d")
def avg_pool(c: Call) -> Rule | None:
    """Σ over a window, divided by its size; or only by what of it lies inside."""
    cells, padded = _windows(c, _axes(c)), any(c["padding"]) and c["count_include_pad"]
    if c["divisor_override"] is not None:
        return c.rule(divided(total(cells), number(c["divisor_override"])))
    if padded and c["ceil_mode"]:
        return None  # the last windows reach beyond the padding as well
    return c.rule(divided(total(cells), number(int(np.prod(c.inner)))) if padded else over("mean", cells))


@rule("over", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_pool(c: Call) -> Rule | None:
    """Windows from ⌊i n / m⌋ to ⌈(i + 1) n / m⌉."""
    if c.output:
        return None
    dims = _axes(c)
    name = "max" if "max" in c.function._overloadpacket.__name__ else "mean"
    sizes = c.source("self").shape[-dims:]
    spans = []
    for n, m in zip(sizes, c.shape[-dims:], strict=True):
        first, last = np.arange(m) * n // m, -(-(np.arange(m) + 1) * n // m)
        p = first[:, None] + np.arange(int((last - first).max()))
        spans.append(np.where(p < last[:, None], p, -1))
    return c.rule(over(name, _seen(c, c.source("self"), spans)))


def _axes(c: Call) -> int:
    return 3 if "3d" in c.function._overloadpacket.__name__ else 2


def _windows(c: Call, dims: int) -> Form:
    """The cells under a window, places … and then those of the window."""
    source = c.source("self")
    kernel = _each(c["kernel_size"], dims)
    stride = _each(c["stride"] or kernel, dims)
    padding, dilation = _each(c["padding"], dims), _each(c.get("dilation", [1]), dims)
    spans = []
    for d in range(dims):
        p = np.arange(c.shape[d - dims])[:, None] * stride[d] - padding[d] + np.arange(kernel[d]) * dilation[d]
        spans.append(np.where((p < 0) | (p >= source.shape[d - dims]), -1, p))
    return _seen(c, source, spans)


def _seen(c: Call, source: Source, spans: list[np.ndarray[Any, Any]]) -> Form:
    """The cells at the places that each window sees along each axis; -1 where it sees none."""
    dims, index, outside = len(spans), np.zeros(1, np.int64), np.zeros(1, bool)
    lead = source.axes - dims
    for d, span in enumerate(spans):
        shape = [1] * (2 * dims)
        shape[d], shape[dims + d] = span.shape
        at = span.reshape(shape)
        index, outside = index * source.shape[lead + d] + at, outside | (at < 0)
    c.inner = tuple(span.shape[1] for span in spans)
    found = np.where(outside, -1, index)
    leading = {f"d{d}": stride for d, stride in enumerate(row_strides(source.shape)[:lead])}
    return c.read(source, table(found.reshape(*(1,) * lead, *found.shape), **leading))


def _each(value: Any, dims: int) -> list[int]:
    return list(value) * (dims if len(value) == 1 else 1)


@rule("move", "im2col", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
      "_upsample_nearest_exact2d")  # fmt: skip
def carried(c: Call) -> Move | None:
    """Explained by sending the indices through, as numbers with a point."""
    source = c.source("self" if "self" in c.arguments else "input")
    name = "self" if "self" in c.arguments else "input"
    if source.size >= 2**52:
        raise LeftOut
    indices = torch.arange(1, source.size + 1, dtype=torch.float64).reshape(source.shape)
    found = run(c.function, c.arguments | {name: indices}).numpy().astype(np.int64).reshape(c.shape) - 1
    return Move(whole(source.step, c.shape, compressed(found)).pieces, 0 if (found < 0).any() else None)


@rule("over", "col2im")
def folded(c: Call) -> Rule:
    """Σ of the cells of all windows that lie on a place."""
    source = c.source("self")
    places = torch.arange(1, int(np.prod(c.shape)) + 1, dtype=torch.float64).reshape(c.shape)
    lands = torch.nn.functional.unfold(
        places.reshape(-1, *c.shape[-3:]), c["kernel_size"], c["dilation"], c["padding"], c["stride"]
    )
    flat = lands.numpy().astype(np.int64).reshape(-1) - 1
    inside = flat >= 0
    found = contributions(flat[inside], np.arange(flat.size)[inside], int(np.prod(c.shape)))
    c.inner = (found.shape[-1],)
    return c.rule(total(c.read(source, compressed(found.reshape(*c.shape, -1)))))
