"""The functions of a formula that know nothing of attention: of each cell, along an axis, of two rows, and joining.

Rows are vectors; an axis is 0 (down the columns) or 1 (along a row). `sum_` and `max_` are called sum and max.
"""

import torch
from torch import Tensor

from regard.tracing import label
from regard.worked.limits import room, spelled


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
    return x.sum() if axis is None else x.sum(axis_of(x, axis))


def mean(x: Tensor, axis: int | None = None) -> Tensor:
    """Of all cells, or along an axis."""
    return x.mean() if axis is None else x.mean(axis_of(x, axis))


def var(x: Tensor, axis: int | None = None, *, correction: int = 0) -> Tensor:
    """Σ (x - mean)² / n of all cells, or along an axis; correction=1 divides by n - 1."""
    axis = None if axis is None else axis_of(x, axis)
    count = x.numel() if axis is None else x.shape[axis]
    if not 0 <= correction < count:
        raise ValueError(f"the correction of a variance of {count} cells is 0 to {count - 1}; it is {correction}")
    mean = x.mean() if axis is None else x.mean(axis, keepdim=True)
    squares = label((x - mean).square(), "squares", "(x - mean)²")
    return (squares.sum() if axis is None else squares.sum(axis)) / (count - correction)


def max_(x: Tensor, axis: int | None = None) -> Tensor:
    """The largest of all cells, or along an axis."""
    return x.amax() if axis is None else x.amax(axis_of(x, axis))


def argmax(x: Tensor, axis: int | None = None) -> Tensor:
    """The place of the largest, counted from 0; of equal ones the first."""
    place = x.argmax() if axis is None else x.argmax(axis_of(x, axis))
    return place.to(torch.float64)


def norm(x: Tensor, axis: int | None = None) -> Tensor:
    """√Σ x², of all cells or along an axis."""
    squares = x.square()
    return (squares.sum() if axis is None else squares.sum(axis_of(x, axis))).sqrt()


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Σ a b of two rows of numbers."""
    two_rows("dot", a, b)
    return a @ b


def correlation(a: Tensor, b: Tensor) -> Tensor:
    """Pearson's: Σ (a - ā)(b - b̄) / √(Σ (a - ā)² Σ (b - b̄)²), of two rows of numbers."""
    two_rows("correlation", a, b)
    a, b = a - a.mean(), b - b.mean()
    return (a @ b) / ((a @ a) * (b @ b)).sqrt()


def concat(a: Tensor, *others: Tensor, axis: int = -1) -> Tensor:
    """[a; b; …]: side by side, or one under the other with axis=0; a row of numbers joins each row of a matrix."""
    parts = [a, *others]
    if any(part.ndim == 0 for part in parts):
        raise ValueError("concat joins rows and matrices; for single numbers there is stack")
    rank = max(part.ndim for part in parts)
    along = axis_of(next(part for part in parts if part.ndim == rank), axis)
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


def axis_of(x: Tensor, axis: int) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(
            f"axis {axis}: {spelled(x.shape)} has {'the axes 0 to ' + str(x.ndim - 1) if x.ndim else 'none'}"
        )
    return axis % x.ndim


def two_rows(name: str, a: Tensor, b: Tensor) -> None:
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"{name} takes two rows of as many numbers; got {spelled(a.shape)} and {spelled(b.shape)}")


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
