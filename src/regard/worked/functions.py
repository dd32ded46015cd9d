"""The functions of a formula, on float64 tensors. Rows are vectors; an axis is 0 (down the columns) or 1 (along a row).

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
from regard.models import cells
from regard.tracing import label
from regard.worked.limits import room, spelled
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
    axis = _axis(x, axis)
    along = x if axis == x.ndim - 1 else x.movedim(axis, -1)
    nothing = torch.isneginf(along).all(-1, keepdim=True)
    # As attend has it: a row with nothing to attend to has weights 0.
    empty = bool(nothing.any())
    weights = normalise.named(name).weights(torch.where(nothing, 0.0, along) if empty else along)
    weights = torch.where(nothing, 0.0, weights) if empty else weights
    return weights if axis == x.ndim - 1 else weights.movedim(-1, axis)


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return torch.relu(x)


def tanh(x: Tensor) -> Tensor:
    """(e^x - e^-x) / (e^x + e^-x)."""
    return torch.tanh(x)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e^-x)."""
    return torch.sigmoid(x)


def exp(x: Tensor) -> Tensor:
    """e^x."""
    return torch.exp(x)


def log(x: Tensor) -> Tensor:
    """The natural logarithm."""
    return torch.log(x)


def log10(x: Tensor) -> Tensor:
    """The logarithm of base ten."""
    return torch.log10(x)


def sqrt(x: Tensor) -> Tensor:
    """The square root."""
    return torch.sqrt(x)


def sum_(x: Tensor, axis: int | None = None) -> Tensor:
    """Of all cells, or along an axis."""
    return x.sum() if axis is None else x.sum(_axis(x, axis))


def mean(x: Tensor, axis: int | None = None) -> Tensor:
    """Of all cells, or along an axis."""
    return x.mean() if axis is None else x.mean(_axis(x, axis))


def var(x: Tensor, axis: int | None = None, *, correction: int = 0) -> Tensor:
    """Σ (x - mean)² / n of all cells, or along an axis; correction=1 divides by n - 1."""
    axis = None if axis is None else _axis(x, axis)
    count = x.numel() if axis is None else x.shape[axis]
    if not 0 <= correction < count:
        raise ValueError(f"the correction of a variance of {count} cells is 0 to {count - 1}; it is {correction}")
    mean = x.mean() if axis is None else x.mean(axis, keepdim=True)
    squares = label((x - mean).square(), "squares", "(x - mean)²")
    return (squares.sum() if axis is None else squares.sum(axis)) / (count - correction)


def max_(x: Tensor, axis: int | None = None) -> Tensor:
    """The largest of all cells, or along an axis."""
    return x.amax() if axis is None else x.amax(_axis(x, axis))


def argmax(x: Tensor, axis: int | None = None) -> Tensor:
    """The place of the largest, counted from 0; of equal ones the first."""
    place = x.argmax() if axis is None else x.argmax(_axis(x, axis))
    return place.to(torch.float64)


def norm(x: Tensor, axis: int | None = None) -> Tensor:
    """√Σ x², of all cells or along an axis."""
    squares = x.square()
    return (squares.sum() if axis is None else squares.sum(_axis(x, axis))).sqrt()


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Σ a b of two rows of numbers."""
    _two_rows("dot", a, b)
    return a @ b


def correlation(a: Tensor, b: Tensor) -> Tensor:
    """Pearson's: Σ (a - ā)(b - b̄) / √(Σ (a - ā)² Σ (b - b̄)²), of two rows of numbers."""
    _two_rows("correlation", a, b)
    a, b = a - a.mean(), b - b.mean()
    return (a @ b) / ((a @ a) * (b @ b)).sqrt()


def concat(a: Tensor, *others: Tensor, axis: int = -1) -> Tensor:
    """[a; b; …]: side by side, or one under the other with axis=0; a row of numbers joins each row of a matrix."""
    parts = [a, *others]
    if any(part.ndim == 0 for part in parts):
        raise ValueError("concat joins rows and matrices; for single numbers there is stack")
    rank = max(part.ndim for part in parts)
    along = _axis(next(part for part in parts if part.ndim == rank), axis)
    leading = _common([part.shape for part in parts], rank, along)
    widths = [part.shape[along - rank] if rank - along <= part.ndim else 1 for part in parts]
    shapes = [(*leading[:along], width, *leading[along + 1 :]) for width in widths]
    room((*leading[:along], sum(shape[along] for shape in shapes), *leading[along + 1 :]))
    return torch.cat([part.expand(shape) for part, shape in zip(parts, shapes, strict=True)], along)


def stack(a: Tensor, *others: Tensor, axis: int = 0) -> Tensor:
    """Numbers to a row, rows to a matrix, one under the other."""
    parts = [a, *others]
    for part in others:
        if part.shape != a.shape:
            raise ValueError(f"stack takes values of one shape; got {spelled(a.shape)} and {spelled(part.shape)}")
    if not -a.ndim - 1 <= axis <= a.ndim:
        raise ValueError(f"axis {axis}: what is stacked of {spelled(a.shape)} has the axes 0 to {a.ndim}")
    room((len(parts), *a.shape))
    return torch.stack(parts, axis)


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


def rnn_cell(
    x: Tensor, h: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None = None, b_h: Tensor | None = None
) -> Tensor:
    """tanh(x W_x + b + h W_h + b_h)."""
    from_x, from_h = _recurrent("rnn_cell", 1, x, h, W_x, W_h, b, b_h)
    return cells.rnn_mix(from_x, from_h, (h,))[0]


def gru_cell(
    x: Tensor, h: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None = None, b_h: Tensor | None = None
) -> Tensor:
    """(1 - z) n + z h; the columns of W_x, W_h, b and b_h are the gates r, z, n side by side, as in PyTorch."""
    from_x, from_h = _recurrent("gru_cell", 3, x, h, W_x, W_h, b, b_h)
    return cells.gru_mix(from_x, from_h, (h,))[0]


def lstm_cell(
    x: Tensor, h: Tensor, c: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None = None, b_h: Tensor | None = None
) -> Tensor:
    """Two rows, h' and c'; the columns of W_x, W_h, b and b_h are the gates i, f, g, o side by side, as in PyTorch."""
    if c.shape != h.shape:
        raise ValueError(f"lstm_cell: c has the shape of h; got {spelled(c.shape)} and {spelled(h.shape)}")
    from_x, from_h = _recurrent("lstm_cell", 4, x, h, W_x, W_h, b, b_h)
    return torch.stack(cells.lstm_mix(from_x, from_h, (h, c)))


def _recurrent(
    name: str, gates: int, x: Tensor, h: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None, b_h: Tensor | None
) -> tuple[Tensor, Tensor]:
    """x W_x + b and h W_h + b_h, for one row x and one row h."""
    if x.ndim != 1 or h.ndim != 1:
        raise ValueError(f"{name} takes a row x and a row h; got {spelled(x.shape)} and {spelled(h.shape)}")
    width = gates * h.shape[0]
    wanted: list[tuple[str, Tensor, tuple[int, ...]]] = [
        ("W_x", W_x, (x.shape[0], width)),
        ("W_h", W_h, (h.shape[0], width)),
    ]
    wanted += [(side, bias, (width,)) for side, bias in (("b", b), ("b_h", b_h)) if bias is not None]
    for side, own, shape in wanted:
        if own.shape != shape:
            raise ValueError(f"{name}: {side} must be {spelled(shape)} here; it is {spelled(own.shape)}")
    # As matrices of one row, which is what a trace finds again.
    from_x = _labelled("from_x", "x W_x", x.unsqueeze(0) @ W_x, b)
    return from_x[0], _labelled("from_h", "h W_h", h.unsqueeze(0) @ W_h, b_h)[0]


def _labelled(name: str, formula: str, product: Tensor, bias: Tensor | None) -> Tensor:
    return label(product, name, formula) if bias is None else label(product + bias, name, f"{formula} + b")


def _axis(x: Tensor, axis: int) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(
            f"axis {axis}: {spelled(x.shape)} has {'the axes 0 to ' + str(x.ndim - 1) if x.ndim else 'none'}"
        )
    return axis % x.ndim


def _two_rows(name: str, a: Tensor, b: Tensor) -> None:
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"{name} takes two rows of as many numbers; got {spelled(a.shape)} and {spelled(b.shape)}")


def _places(name: str, given: Tensor, size: int) -> Tensor:
    """Whole numbers from 0 to size - 1, as indices."""
    places = given.detach()
    wrong = places[(places != places.round()) | (places < 0) | (places >= size) | places.isnan()]
    if wrong.numel():
        raise ValueError(f"{name}: a place is a whole number from 0 to {size - 1}; got {float(wrong.flatten()[0]):g}")
    return torch.tensor(places.tolist(), dtype=torch.long)


def _common(shapes: "list[torch.Size]", rank: int, along: int) -> tuple[int, ...]:
    """The shape but for the axis that grows; missing axes in front, and those of one cell, are repeated."""
    common = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, start=rank - len(shape)):
            if axis != along and size != common[axis] and 1 not in (size, common[axis]):
                listed = " and ".join(spelled(each) for each in shapes)
                raise ValueError(f"what is joined must agree in all axes but the one that grows; got {listed}")
            common[axis] = size if common[axis] == 1 else common[axis]
    return tuple(common)


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
