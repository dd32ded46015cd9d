"""The signs of a formula on float64 tensors, with the shapes checked first and said in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.worked.limits import HIGHEST_POWER, room, spelled


@dataclass(frozen=True)
class Misfit(Exception):
    """Two shapes that do not go together under a sign."""

    left: tuple[int, ...]
    right: tuple[int, ...]

    def told(self, sign: str, left: str, right: str) -> str:
        """What does not fit, and what would."""
        shapes = f"{_short(left)} is {spelled(self.left)} and {_short(right)} is {spelled(self.right)}"
        if sign != "@":
            hint = "; the product of matrices is written @" if sign == "*" and _meet(self.left, self.right) else ""
            return f"the shapes do not fit: {shapes}, and {sign} goes cell by cell{hint}"
        if not self.left or not self.right:
            return f"the shapes do not fit: {shapes}, and @ multiplies matrices; a number times anything is written *"
        meeting = f"{self.left[-1]} columns on the left meet {_rows(self.right)} rows on the right"
        hint = f"; {left} @ {right}.T would fit" if _meet(self.left, self.right[:-2] + self.right[-2:][::-1]) else ""
        return f"the shapes do not fit: {shapes}, so {meeting}{hint}"


def binary(sign: str, left: Tensor | float, right: Tensor | float) -> Tensor:
    """left sign right. A number that stands in the formula comes as a float."""
    if sign == "@":
        return _product(_tensor(left), _tensor(right))
    if isinstance(left, float) and isinstance(right, float):
        left = _tensor(left)
    shape = _broadcast(_shape(left), _shape(right))
    room(shape)
    if sign == "**":
        return _power(left, right)
    a: Any = left
    b: Any = right
    result: Tensor = a + b if sign == "+" else a - b if sign == "-" else a * b if sign == "*" else a / b
    return result


def _power(base: Tensor | float, exponent: Tensor | float) -> Tensor:
    size = abs(exponent) if isinstance(exponent, float) else float(exponent.detach().abs().amax())
    if not size <= HIGHEST_POWER:
        raise ValueError(f"powers go up to {HIGHEST_POWER}, either way; this one is {size:g}")
    return torch.pow(base, exponent) if isinstance(exponent, Tensor) else _tensor(base) ** exponent


def _product(left: Tensor, right: Tensor) -> Tensor:
    if not _meet(left.shape, right.shape):
        raise Misfit(tuple(left.shape), tuple(right.shape))
    room((*left.shape[:-1], *right.shape[:-2], *right.shape[-1:]) if right.ndim > 1 else left.shape[:-1])
    return times(left, right)


def times(left: Tensor, right: Tensor) -> Tensor:
    """left @ right; a row times a matrix as a matrix of one row, whose cells a trace can open."""
    return (left.unsqueeze(0) @ right)[0] if left.ndim == 1 and right.ndim == 2 else left @ right


def _meet(left: Sequence[int], right: Sequence[int]) -> bool:
    if not left or not right or left[-1] != _rows(right):
        return False
    try:
        _broadcast(tuple(left[:-2]), tuple(right[:-2]))
    except Misfit:
        return False
    return True


def _rows(shape: Sequence[int]) -> int:
    return shape[-2] if len(shape) > 1 else shape[-1]


def _broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a cell-by-cell sign: an axis of one cell serves any number."""
    rank = max(len(left), len(right))
    pairs = list(zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise Misfit(left, right)
    return tuple(b if a == 1 else a for a, b in pairs)


def check_index(name: str, value: Tensor, keys: Sequence[Any]) -> None:
    """Refuse places that are not there."""
    if len(keys) > value.ndim:
        raise ValueError(f"{len(keys)} indices, but {_short(name)} is {spelled(value.shape)}")
    for axis, (key, size) in enumerate(zip(keys, value.shape, strict=False)):
        if isinstance(key, int) and not -size <= key < size:
            kind = ("row", "column", "cell")[axis] if value.ndim > 1 else "cell"
            last = f"0 to {size - 1}" if size else "none"
            raise ValueError(
                f"{_short(name)} is {spelled(value.shape)} and has no {kind} {key} (counted from 0: {last})"
            )
    if any(
        isinstance(key, tuple) and not range(size)[slice(*key)] for key, size in zip(keys, value.shape, strict=False)
    ):
        raise ValueError(f"nothing is left of {_short(name)}, which is {spelled(value.shape)}")


def _shape(value: Tensor | float) -> tuple[int, ...]:
    return tuple(value.shape) if isinstance(value, Tensor) else ()


def _tensor(value: Tensor | float) -> Tensor:
    return value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)


def _short(text: str, longest: int = 30) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
