"""Operations without arithmetic: each cell of theirs is a cell of an input. Views need no rule: see `geometry`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from regard.tracing.forms import Rule, over, plus, times, total
from regard.tracing.index import IndexMap, Move, Piece, compressed, row_strides, whole
from regard.tracing.rules.call import Call, Source, axis, run, sent, table
from regard.tracing.rules.table import rule


@rule(
    "move", "repeat", "flip", "roll", "index_select", "index", "gather", "take", "tril", "triu",
    "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "reflection_pad1d", "reflection_pad2d", "replication_pad1d",
    "replication_pad2d", "masked_select", "diag_embed", "select_backward", "slice_backward", "diagonal_backward",
    "view_copy", "permute_copy", "expand_copy", "unfold_copy", "select_copy", "slice_copy",
    "diagonal_copy", "rot90", "reflection_pad3d", "replication_pad3d",
)  # fmt: skip
def gathered(c: Call) -> Move:
    """Explained by sending the indices through."""
    return sent(c, next(name for name in ("self", "input", "grad_output", "grad") if name in c.arguments))


def copied(c: Call, source: Source) -> Move:
    """Every cell from the one at its place."""
    c.at(source)
    return Move((Piece(source.step, (0,) * len(c.shape), c.shape, c.operands[-1].map),))


@rule("move", "clone")
def clone(c: Call) -> Move:
    return copied(c, c.source("self"))


@rule("each", "fill")
def fill(c: Call) -> Move:
    """With the one number of a tensor; with a number of the code it is no operation but a constant."""
    return copied(c, c.source("value"))


@rule("move", "_pack_padded_sequence")
def packed(c: Call) -> Move | None:
    """The rows of sentences, place by place; how many there are at each place is read off their lengths."""
    return sent(c, "input") if c.output == 0 else None


@rule("move", "constant_pad_nd")
def padded(c: Call) -> Move:
    return Move(sent(c, "self", value=0).pieces, c["value"])


@rule("move", "cat")
def cat(c: Call) -> Move:
    parts = [part for part in c["tensors"] if part.shape != (0,) or len(c.shape) == 1]
    return _joined(c, parts, axis(c["dim"], len(c.shape)))


@rule("move", "stack")
def stack(c: Call) -> Move:
    dim = axis(c["dim"], len(c.shape))
    parts = [part._replace(shape=(*part.shape[:dim], 1, *part.shape[dim:])) for part in c["tensors"]]
    return _joined(c, parts, dim)


def _joined(c: Call, parts: list[Source], dim: int) -> Move:
    pieces, start = [], [0] * len(c.shape)
    for part in parts:
        pieces.append(Piece(part.step, tuple(start), part.shape, IndexMap(row_strides(part.shape))))
        start[dim] += part.shape[dim]
    return Move(tuple(pieces))


@rule("move", "embedding")
def embedding(c: Call) -> Move:
    """Row i of the table for each index i."""
    weight, indices = c.source("weight"), c.source("indices").read()
    rows = np.asarray(indices.numpy(), np.int64)[..., None] * weight.shape[1]
    return whole(weight.step, c.shape, table(rows, **{f"d{indices.dim()}": 1}))


def _onto(c: Call, base: Source, piece: Source, positions: np.ndarray[Any, Any]) -> Move:
    """A tensor with some cells from another; positions are -1 where there is none of it."""
    under = whole(base.step, c.shape).pieces
    return Move((*under, *whole(piece.step, c.shape, compressed(positions)).pieces))


def _placed(c: Call, name: str, source: Source) -> np.ndarray[Any, Any]:
    """Where the cells of a source come to lie in the output, -1 elsewhere: its indices sent through."""
    arguments = {key: _values(value) for key, value in c.arguments.items()}
    arguments |= {"self": torch.full(c.shape, -1), name: torch.arange(source.size).reshape(source.shape)}
    result: np.ndarray[Any, Any] = run(c.function, arguments).numpy().reshape(c.shape)
    return result


def _values(value: Any) -> Any:
    if isinstance(value, Source):
        return value.read()
    return [_values(each) for each in value] if isinstance(value, list | tuple) else value


def _written(name: str) -> Callable[[Call], Move | Rule | None]:
    """An operation that writes the cells of the argument `name` into a copy."""

    def make(c: Call) -> Move | Rule | None:
        if c.get("accumulate") or c.get("reduce") is not None:
            return None
        if not isinstance(c[name], Source):
            return _numbers_written(c, name)
        return _onto(c, c.source("self"), c.source(name), _placed(c, name, c.source(name)))

    return make


def _numbers_written(c: Call, name: str) -> Move:
    """One number of the code, written into a copy."""
    arguments = {key: _values(value) for key, value in c.arguments.items()}
    kept = torch.arange(1, c.source("self").size + 1).reshape(c.shape)
    found = run(c.function, arguments | {"self": kept, name: 0}).numpy() - 1
    return Move(whole(c.source("self").step, c.shape, compressed(found)).pieces, c[name])


for _name, _argument in (
    ("slice_scatter", "src"), ("select_scatter", "src"), ("diagonal_scatter", "src"), ("index_copy", "source"),
    ("masked_scatter", "source"),
):  # fmt: skip
    rule("move", _name)(_written(_argument))


@rule("move", "scatter")
def scatter(c: Call) -> Move | Rule | None:
    return _written("src" if "src" in c.arguments else "value")(c)


@rule("move", "index_fill")
def index_fill(c: Call) -> Move | Rule | None:
    return _written("value")(c)


@rule("over", "index_put")
def index_put(c: Call) -> Move | Rule | None:
    if not c["accumulate"]:
        return _written("values")(c)
    added, landing = c.source("values"), torch.arange(int(np.prod(c.shape))).reshape(c.shape)
    lands = landing[tuple(slice(None) if each is None else each.read() for each in c["indices"])]
    # One number for many places counts at each of them.
    values = torch.arange(added.size).reshape(added.shape).expand(lands.shape)
    return _added_up(c, added, lands.numpy().reshape(-1), values.numpy().reshape(-1))


@rule("over", "scatter_add")
def scatter_add(c: Call) -> Rule:
    return _added(c, "src")


@rule("over", "index_add")
def index_add(c: Call) -> Rule | None:
    return _added(c, "source") if c.get("alpha", 1) == 1 else None


def _added(c: Call, name: str, times_: bool = False) -> Rule:
    """Σ of what lands on a cell, found by gathering the flat indices of the output as it scatters."""
    source, dim = c.source(name), axis(c["dim"], len(c.shape))
    landing = torch.arange(int(np.prod(c.shape))).reshape(c.shape)
    index = c.source("index").read()
    if name == "src":
        lands = torch.gather(landing, dim, index)
        values = torch.arange(source.size).reshape(source.shape)[tuple(slice(n) for n in index.shape)]
    else:
        lands, values = landing.index_select(dim, index), torch.arange(source.size).reshape(source.shape)
    return _added_up(c, source, lands.numpy().reshape(-1), values.numpy().reshape(-1), times_)


def _added_up(
    c: Call, source: Source, lands: np.ndarray[Any, Any], values: np.ndarray[Any, Any], times_: bool = False
) -> Rule:
    """self + Σ of the values that land on the cell; or self · Π of them."""
    found = contributions(lands, values, int(np.prod(c.shape))).reshape(*c.shape, -1)
    c.inner = (found.shape[-1],)
    base = c.at(c.source("self"))
    cells = c.read(source, compressed(found))
    return c.rule(times(base, over("product", cells)) if times_ else plus(base, total(cells)))


def contributions(lands: np.ndarray[Any, Any], values: np.ndarray[Any, Any], cells: int) -> np.ndarray[Any, Any]:
    """For each cell the values that land on it, filled up with -1."""
    order = np.argsort(lands, kind="stable")
    counts = np.bincount(lands, minlength=cells)
    found = np.full((cells, max(int(counts.max(initial=0)), 1)), -1, np.int64)
    starts = np.cumsum(counts) - counts
    place = np.arange(lands.size) - starts[lands[order]]
    found[lands[order], place] = values[order]
    return found


@rule("over", "embedding_dense_backward")
def embedding_backward(c: Call) -> Rule:
    """∂/∂W[v, d] = Σ of the gradients at the places that read row v."""
    gradient, indices = c.source("grad_output"), c.source("indices").read().numpy().reshape(-1)
    width, places = c.shape[1], np.arange(indices.size)
    read = indices != c["padding_idx"]
    rows = contributions(indices[read], places[read] * width, c.shape[0])
    c.inner = (rows.shape[1],)
    return c.rule(total(c.read(gradient, table(rows[:, None, :], d1=1))))


@rule("over", "scatter_reduce")
def scatter_reduce(c: Call) -> Rule | None:
    """self + Σ, or self · Π, of what is scattered onto a cell."""
    if c["reduce"] not in ("sum", "prod") or not c["include_self"]:
        return None
    return _added(c, "src", c["reduce"] == "prod")


@rule("move", "median", "nanmedian", "kthvalue", "mode")
def picked(c: Call) -> Move | None:
    """Along an axis: the value that stands where the index says."""
    if "dim" not in c.arguments or c.output:
        return None
    source, dim = c.source("self"), c["dim"]
    found = c.sibling(1).read()
    flat = torch.arange(source.size).reshape(source.shape)
    at = found if found.dim() == flat.dim() else found.unsqueeze(dim)
    taken = torch.gather(flat, dim, at) if flat.dim() else flat
    return whole(source.step, c.shape, compressed(taken.reshape(c.shape).numpy()))


@rule("move", "sort", "topk")
def ordered(c: Call) -> Move | Rule | None:
    """The values: each from where its index says. The indices themselves are found, not computed."""
    if c.output == 1:
        return None
    source = c.source("self")
    dim = axis(c["dim"], len(c.shape))
    found = c.sibling(1).read()
    flat = torch.arange(source.size).reshape(source.shape)
    return whole(source.step, c.shape, compressed(torch.gather(flat, dim, found).numpy() if c.shape else flat.numpy()))
