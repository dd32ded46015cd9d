"""Which keys a query may attend to. True = may attend.

A mask is a rule, not a tensor: it is evaluated where it is used, for the shape that is there, and only over
the axes it speaks of (`lengths` never makes a [T, S] table). Rules combine with `&`, `|` and `~`, and print as
they were written.

Shape letters: B batch, H heads, T queries, S keys.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.attention.places import Align, Everywhere, Places, own_place
from regard.attention.shapes import broadcasts, dtype_of
from regard.support.nearest import unknown

ALIGNMENTS = ("end", "start")


class Mask(ABC):
    """A rule that says for each query and key whether the one may attend to the other."""

    @abstractmethod
    def holds(self, at: Places) -> Tensor:
        """True where the query may attend to the key; broadcasts against the indices of `at`."""

    def check(self, shape: torch.Size) -> None:
        """Raise a ValueError where the rule cannot go with scores of this shape [..., T, S]."""
        return

    def dense(self, shape: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        """The rule as booleans that broadcast to scores of this shape [..., T, S]."""
        shape = torch.Size(shape)
        self.check(shape)
        return self.holds(Everywhere(shape, torch.device(device)))

    def on(self, device: torch.device) -> "Mask":
        """The same rule with the numbers it holds on this device, for code that cannot move them as it asks."""
        return self

    def picture(self, queries: int, keys: int) -> str:
        """The rule for one sequence, a row a query: ■ may attend, · may not."""
        cells = self.dense((1, 1, queries, keys)).expand(1, 1, queries, keys)[0, 0]
        return "\n".join(" ".join("■" if cell else "·" for cell in row) for row in cells.tolist())

    def __and__(self, other: "Mask | Tensor") -> "Mask":
        return _Joined("&", self, as_mask(other))

    def __or__(self, other: "Mask | Tensor") -> "Mask":
        return _Joined("|", self, as_mask(other))

    def __rand__(self, other: Tensor) -> "Mask":
        return as_mask(other) & self

    def __ror__(self, other: Tensor) -> "Mask":
        return as_mask(other) | self

    def __invert__(self) -> "Mask":
        return _Not(self)

    def __bool__(self) -> bool:
        raise ValueError(f"mask: {self!r} is neither true nor false; join masks with & | ~, not with and, or, not")


def causal(align: Align = "end") -> Mask:
    """Each query sees its own place and those before: j <= i.

    With T queries and S keys, `align="end"` puts the last query beside the last key (a cache holds the earlier
    keys), `align="start"` the first beside the first.
    """
    return Causal(_alignment(align))


def window(left: int | None, right: int | None, align: Align = "end") -> Mask:
    """Each query sees from `left` places before its own to `right` after; None is no bound on that side."""
    for side, width in (("left", left), ("right", right)):
        if width is not None and (isinstance(width, bool) or not isinstance(width, int) or width < 0):
            raise ValueError(f"window: {side} must be a whole number of places, 0 or more, or None; got {width!r}")
    return Window(left, right, _alignment(align))


def block(size: int, align: Align = "end") -> Mask:
    """Places are cut into blocks of `size` from the first key on; each query sees the keys of its own block."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"block: size must be a whole number, 1 or more; got {size!r}")
    return Block(size, _alignment(align))


def lengths(keys: "Tensor | Sequence[int] | int", queries: "Tensor | Sequence[int] | int | None" = None) -> Mask:
    """Of each sequence in the batch (axis 0), only the first `keys[b]` keys are real; the rest is padding.

    With `queries` the padding among the queries attends to nothing either, so whatever stands in it cannot
    reach the gradients of the keys.
    """
    return Lengths(_counts("keys", keys), None if queries is None else _counts("queries", queries))


def tensor(cells: Tensor) -> Mask:
    """A mask given cell by cell: booleans that broadcast to [..., T, S], True = may attend."""
    if not isinstance(cells, Tensor):
        raise ValueError(f"mask: expected a tensor of booleans; got {type(cells).__name__}")
    if cells.dtype != torch.bool:
        raise ValueError(
            f"mask: expected booleans (True = may attend); got {dtype_of(cells)}. Numbers that are to be added "
            "to the scores go in bias="
        )
    return Cells(cells)


def around(centre: Tensor, width: float) -> Mask:
    """Keys at most `width` places from a real-valued centre for each query: centre [..., T] (Luong's local-p)."""
    if not isinstance(centre, Tensor):
        raise ValueError(f"around: centre must be a tensor, one number for each query; got {type(centre).__name__}")
    if not centre.is_floating_point():
        raise ValueError(f"around: centre must hold real numbers; got {dtype_of(centre)}")
    if not isinstance(width, (int, float)) or not width >= 0:
        raise ValueError(f"around: width must be 0 or more; got {width!r}")
    return Around(centre, float(width))


def holds_cells(mask: "Mask") -> bool:
    """Whether the rule reads a table or one number a query: such a one cannot be asked place by place."""
    if isinstance(mask, _Joined):
        return holds_cells(mask.left) or holds_cells(mask.right)
    return holds_cells(mask.of) if isinstance(mask, _Not) else isinstance(mask, (Cells, Around))


def parts(mask: "Mask") -> list["Mask"]:
    """The rules that all have to hold: what & joins, taken apart."""
    if isinstance(mask, _Joined) and mask.sign == "&":
        return parts(mask.left) + parts(mask.right)
    return [mask]


def as_mask(mask: "Mask | Tensor") -> Mask:
    """A mask as given, or booleans wrapped as one; numbers are refused."""
    return mask if isinstance(mask, Mask) else tensor(mask)


@dataclass(frozen=True, repr=False)
class Causal(Mask):
    align: Align

    def holds(self, at: Places) -> Tensor:
        return at.key <= own_place(at, self.align)

    def __repr__(self) -> str:
        return f"causal({_aligned(self.align)})"


@dataclass(frozen=True, repr=False)
class Window(Mask):
    left: int | None
    right: int | None
    align: Align

    def holds(self, at: Places) -> Tensor:
        own = own_place(at, self.align)
        after = torch.ones_like(at.key, dtype=torch.bool) if self.left is None else at.key >= own - self.left
        return after if self.right is None else after & (at.key <= own + self.right)

    def __repr__(self) -> str:
        return f"window({self.left}, {self.right}{_aligned(self.align, ', ')})"


@dataclass(frozen=True, repr=False)
class Block(Mask):
    size: int
    align: Align

    def holds(self, at: Places) -> Tensor:
        return at.key // self.size == own_place(at, self.align) // self.size

    def __repr__(self) -> str:
        return f"block({self.size}{_aligned(self.align, ', ')})"


@dataclass(frozen=True, repr=False, eq=False)
class Lengths(Mask):
    keys: Tensor
    queries: Tensor | None

    def check(self, shape: torch.Size) -> None:
        for side, counts in (("keys", self.keys), ("queries", self.queries)):
            if counts is None or counts.ndim == 0:
                continue
            if len(shape) < 3:
                raise ValueError(f"lengths: one number for each sequence, but the scores {list(shape)} have no batch")
            if shape[0] != counts.shape[0]:
                raise ValueError(f"lengths: {counts.shape[0]} lengths of {side} for a batch of {shape[0]}")

    def on(self, device: torch.device) -> Mask:
        return Lengths(self.keys.to(device), None if self.queries is None else self.queries.to(device))

    def holds(self, at: Places) -> Tensor:
        real = at.key < at.of_sequence(self.keys)
        return real if self.queries is None else real & (at.query < at.of_sequence(self.queries))

    def __repr__(self) -> str:
        queries = "" if self.queries is None else f", queries={self.queries.tolist()}"
        return f"lengths({self.keys.tolist()}{queries})"


@dataclass(frozen=True, repr=False, eq=False)
class Cells(Mask):
    cells: Tensor

    def check(self, shape: torch.Size) -> None:
        if not broadcasts(self.cells.shape, shape):
            raise ValueError(f"mask: {list(self.cells.shape)} does not broadcast to the scores' shape {list(shape)}")

    def dense(self, shape: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        self.check(torch.Size(shape))
        if self.cells.device != torch.device(device):
            raise ValueError(f"mask: is on {self.cells.device}, the query on {device}")
        return self.cells

    def holds(self, at: Places) -> Tensor:
        raise AssertionError("a table of cells is read whole (dense), never asked place by place")

    def __repr__(self) -> str:
        return f"tensor({list(self.cells.shape)})"


@dataclass(frozen=True, repr=False, eq=False)
class Around(Mask):
    centre: Tensor
    width: float

    def check(self, shape: torch.Size) -> None:
        if not broadcasts((*self.centre.shape, 1), shape):
            raise ValueError(
                f"around: one centre for each query [..., T], {list(self.centre.shape)} does not fit "
                f"the scores' shape {list(shape)}"
            )

    def holds(self, at: Places) -> Tensor:
        # Two compares rather than one with abs(): p - D <= j <= p + D as the paper has it, also where D is 0.
        centre = self.centre.unsqueeze(-1)
        return (at.key >= centre - self.width) & (at.key <= centre + self.width)

    def __repr__(self) -> str:
        return f"around({list(self.centre.shape)}, {self.width:g})"


@dataclass(frozen=True, repr=False)
class _Joined(Mask):
    sign: str
    left: Mask
    right: Mask

    def check(self, shape: torch.Size) -> None:
        self.left.check(shape)
        self.right.check(shape)

    def dense(self, shape: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        return self._join(self.left.dense(shape, device), self.right.dense(shape, device))

    def on(self, device: torch.device) -> Mask:
        return _Joined(self.sign, self.left.on(device), self.right.on(device))

    def holds(self, at: Places) -> Tensor:
        return self._join(self.left.holds(at), self.right.holds(at))

    def _join(self, left: Tensor, right: Tensor) -> Tensor:
        return left & right if self.sign == "&" else left | right

    def __repr__(self) -> str:
        return f"{_bracketed(self.left, self.sign)} {self.sign} {_bracketed(self.right, self.sign)}"


@dataclass(frozen=True, repr=False)
class _Not(Mask):
    of: Mask

    def check(self, shape: torch.Size) -> None:
        self.of.check(shape)

    def dense(self, shape: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        return ~self.of.dense(shape, device)

    def on(self, device: torch.device) -> Mask:
        return _Not(self.of.on(device))

    def holds(self, at: Places) -> Tensor:
        return ~self.of.holds(at)

    def __repr__(self) -> str:
        return f"~{_bracketed(self.of, '~')}"


def _counts(side: str, counts: "Tensor | Sequence[int] | int") -> Tensor:
    try:
        given = torch.as_tensor(counts)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"lengths: {side} must be one whole number or one for each sequence; got {counts!r}") from None
    given = given if given.numel() else given.long()  # an empty list has no numbers to be whole
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool or given.ndim > 1:
        raise ValueError(
            f"lengths: {side} must be one whole number or one for each sequence; "
            f"got {dtype_of(given)} {list(given.shape)}"
        )
    # Numbers already on a GPU are not fetched to be looked at; the compare treats a negative one as 0.
    if given.device.type == "cpu" and not _compiling() and given.numel() and int(given.min()) < 0:
        raise ValueError(f"lengths: {side} must be 0 or more; got {given.tolist()}")
    return given


def _compiling() -> bool:
    return torch.compiler.is_compiling()


def _alignment(align: Any) -> Align:
    if align not in ALIGNMENTS:
        raise ValueError(unknown("align", str(align), ALIGNMENTS))
    return align  # type: ignore[no-any-return]


def _aligned(align: Align, before: str = "") -> str:
    return "" if align == "end" else f"{before}align={align!r}"


def _bracketed(mask: Mask, sign: str) -> str:
    mixed = isinstance(mask, _Joined) and mask.sign != sign
    return f"({mask!r})" if mixed else repr(mask)
