"""The functions of a formula, on float64 tensors: those of attention here, the plainer ones in `elementary`.

Where the package has the formula already (weights, masks, positions, scores) it is called, not written again.
"""

import math
from collections.abc import Callable
from functools import reduce

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention import masks, normalise
from regard.attention.masks import Mask
from regard.attention.positions import sinusoids
from regard.attention.scores import Additive
from regard.worked.elementary import (
    argmax,
    axis_of,
    concat,
    correlation,
    dot,
    exp,
    log,
    log10,
    max_,
    mean,
    norm,
    relu,
    sigmoid,
    sqrt,
    stack,
    sum_,
    tanh,
    var,
)
from regard.worked.limits import room, spelled
from regard.worked.recurrent import gru_cell, lstm_cell, rnn_cell
from regard.worked.table import Function


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """e^x / Σ e^x along the last axis, or another; blocked cells (-inf) get 0."""
    return _normalised("softmax", x, axis)


def sparsemax(x: Tensor, axis: int = -1) -> Tensor:
    """max(x - τ, 0) with τ such that the sum is 1: like softmax, with zeros."""
    if not bool((x < torch.inf).all()):
        raise ValueError("sparsemax weighs numbers, and one of these is none or has no end")
    return _normalised("sparsemax", x, axis)


def _normalised(name: str, x: Tensor, axis: int) -> Tensor:
    axis = axis_of(x, axis)
    along = x if axis == x.ndim - 1 else x.movedim(axis, -1)
    nothing = torch.isneginf(along).all(-1, keepdim=True)
    # As attend has it: a row with nothing to attend to has weights 0.
    empty = bool(nothing.any())
    weights = normalise.named(name).weights(torch.where(nothing, 0.0, along) if empty else along)
    weights = torch.where(nothing, 0.0, weights) if empty else weights
    return weights if axis == x.ndim - 1 else weights.movedim(-1, axis)


def mask(scores: Tensor, *rules: Mask) -> Tensor:
    """-inf where a query may not attend to a key: causal, window(n), lengths(n, …), a matrix of ones and zeros."""
    if scores.ndim < 2:
        raise ValueError(f"a mask goes over scores, one row a query; these are {spelled(scores.shape)}")
    rule = reduce(lambda one, other: one & other, rules)
    blocked = (~rule.dense(scores.shape)).expand(scores.shape).flatten().nonzero().flatten().tolist()
    # What is left open is not worked out anew: each such cell is the score in its place.
    return scores.flatten().scatter(0, torch.tensor(blocked), -torch.inf).view(scores.shape)


def scale(x: Tensor, d: float) -> Tensor:
    """x / √d."""
    if d <= 0:
        raise ValueError(f"scale divides by the root of d, which must be above 0; it is {d:g}")
    return x / math.sqrt(d)


def positional(n: int, d: int) -> Tensor:
    """n rows of d: sin(p / 10000^(2i/d)) and cos(p / 10000^(2i/d)) in turn, for the places p = 0, 1, …"""
    if n < 1 or d < 1:
        raise ValueError(f"positional takes a number of places and a width, 1 or more; got {n} and {d}")
    room((n, d))
    return sinusoids(n, d)


def one_hot(word: Tensor, n: int) -> Tensor:
    """1 at the place of a word (counted from 0) among n, 0 elsewhere; a row for each of several."""
    if n < 1:
        raise ValueError(f"one_hot takes the size of the vocabulary, 1 or more; got {n}")
    room((*word.shape, n))
    _places("word", word, n)
    one, zero = torch.tensor([1.0, 0.0], dtype=torch.float64)
    return torch.where(word.unsqueeze(-1) == torch.arange(n, dtype=torch.float64), one, zero)


def embed(table: Tensor, word: Tensor) -> Tensor:
    """The row of a word (counted from 0, or by the name of the row); a row for each of several."""
    if table.ndim != 2:
        raise ValueError(f"embed reads a table, one row a word; this is {spelled(table.shape)}")
    room((*word.shape, table.shape[1]))
    return F.embedding(_places("word", word, table.shape[0]), table)


def layer_norm(x: Tensor, gain: Tensor | None = None, shift: Tensor | None = None, *, eps: float = 1e-5) -> Tensor:
    """(x - mean) / √(variance + eps) of each row, times the gain, plus the shift."""
    if x.ndim == 0:
        raise ValueError("layer_norm takes a row of numbers or a matrix; this is one number")
    for name, own in (("gain", gain), ("shift", shift)):
        if own is not None and own.shape != x.shape[-1:]:
            raise ValueError(f"the {name} has one number for each of {x.shape[-1]} columns; it is {spelled(own.shape)}")
    if eps < 0:
        raise ValueError(f"eps keeps the root from 0 and is 0 or more; it is {eps:g}")
    return F.layer_norm(x, x.shape[-1:], gain, shift, eps)


def cross_entropy(p: Tensor, y: Tensor, *, base: float = math.e) -> Tensor:
    """-Σ y log p of each row of probabilities; y the row that should be (one-hot), or the place of the right class."""
    if p.ndim == 0:
        raise ValueError("cross_entropy takes a row of probabilities; this is one number")
    if base <= 0 or base == 1:
        raise ValueError(f"the base of a logarithm is above 0 and not 1; it is {base:g}")
    if y.shape == p.shape[:-1]:
        y = F.one_hot(_places("y", y, p.shape[-1]), p.shape[-1]).to(p.dtype)
    if y.shape != p.shape:
        raise ValueError(
            f"p is {spelled(p.shape)} and y {spelled(y.shape)}: y has p's shape, or one class for each row"
        )
    if bool((p == 0).any()):  # 0 log 0 is 0, and so is its gradient
        p = torch.where(y == 0, 1.0, p)
    logs = torch.log(p) if base == math.e else torch.log10(p) if base == 10 else torch.log(p) / math.log(base)
    return -(y * logs).sum(-1)


def additive_score(query: Tensor, key: Tensor, W_q: Tensor, W_k: Tensor, v: Tensor, b: Tensor | None = None) -> Tensor:
    """v · tanh(q W_q + k W_k + b), for each query and key; a single query gives a row."""
    if query.ndim > 2 or key.ndim != 2 or W_q.ndim != 2 or W_k.ndim != 2 or query.ndim == 0:
        raise ValueError("additive_score takes a query or rows of queries, rows of keys, two matrices and a vector")
    queries = query.unsqueeze(0) if query.ndim == 1 else query
    room((queries.shape[0], key.shape[0], W_k.shape[1]))
    score = Additive(W_q, W_k, v, b)
    score.check(queries, key)
    found: Tensor = score(queries, key)
    return found.squeeze(0) if query.ndim == 1 else found


def _places(name: str, given: Tensor, size: int) -> Tensor:
    """Whole numbers from 0 to size - 1, as indices."""
    places = given.detach()
    wrong = places[(places != places.round()) | (places < 0) | (places >= size) | places.isnan()]
    if wrong.numel():
        raise ValueError(f"{name}: a place is a whole number from 0 to {size - 1}; got {float(wrong.flatten()[0]):g}")
    return torch.tensor(places.tolist(), dtype=torch.long)


ALL: list[Callable[..., Tensor]] = [
    softmax, sparsemax, relu, tanh, sigmoid, exp, log, log10, sqrt, sum_, mean, var, max_, argmax, norm, dot, concat,
    stack, mask, scale, positional, one_hot, embed, layer_norm, cross_entropy, correlation, additive_score, rnn_cell,
    gru_cell, lstm_cell,
]  # fmt: skip
FUNCTIONS = {each.name: each for each in map(Function.of, ALL)}

RULES = {"causal": "causal", "window": "window(n)", "lengths": "lengths(n, …)"}


def rule(name: str, counts: list[int]) -> Mask:
    """A rule of `mask(…)` by its name: window(n) reaches n places to either side, window(left, right) each its own."""
    if name == "causal" and not counts:
        return masks.causal()
    if name == "window" and 1 <= len(counts) <= 2:
        return masks.window(counts[0], counts[-1])
    if name == "lengths" and counts:
        return masks.lengths(counts[0] if len(counts) == 1 else counts)
    if name == "none":
        raise ValueError("a mask of none blocks nothing; leave it out")
    raise ValueError(f"this rule is written {RULES[name]}")


def ones_and_zeros(matrix: Tensor) -> Mask:
    """A rule given cell by cell."""
    if bool(((matrix != 0) & (matrix != 1)).any()):
        raise ValueError("a mask that is given has 1 where a query may attend to a key and 0 where not, nothing else")
    return masks.tensor(matrix != 0)
