"""What a rule sees of a call: its arguments by name, tensors as sources, and ways to read them cell by cell."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.tracing.forms import Form, Operand, Rule, cell, number
from regard.tracing.index import Flat, IndexMap, Move, compressed, row_strides, whole


class LeftOut(Exception):
    """A rule depends on values (indices, lengths) that were not recorded."""


class Source(NamedTuple):
    """A tensor that went in: its step, and its numbers where a rule depends on them."""

    step: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    reading: Callable[[], Tensor | None]

    def read(self) -> Tensor:
        value = self.reading()
        if value is None:
            raise LeftOut
        return value.detach().cpu()

    @property
    def axes(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


class Call:
    """One output of one call of an operation."""

    def __init__(
        self, function: Any, arguments: dict[str, Any], shape: tuple[int, ...], dtype: torch.dtype, output: int,
        siblings: Sequence[Source | None],
    ) -> None:  # fmt: skip
        self.function, self.arguments = function, arguments
        self.shape, self.dtype, self.output = shape, dtype, output
        self.siblings = siblings
        """All tensors that came out; None where there was none."""
        self.operands: list[Operand] = []
        self.inner: tuple[int, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.arguments.get(name, default)

    def source(self, name: str) -> Source:
        value = self.arguments[name]
        assert isinstance(value, Source), name
        return value

    def sibling(self, output: int) -> Source:
        found = self.siblings[output]
        if found is None:
            raise LeftOut
        return found

    def read(self, source: Source, index: IndexMap | Sequence[int], offset: int = 0) -> Form:
        """The cell of a source, by a map or by strides over the axes of the output and then the inner ones."""
        made = index if isinstance(index, IndexMap) else IndexMap(tuple(index), offset)
        self.operands.append(Operand(source.step, made))
        return cell(len(self.operands) - 1)

    def at(self, value: Any, axes: Iterable[int] | None = None) -> Form:
        """A source at the place of the cell, as broadcasting has it; a number as itself.

        axes: on which axis of the output each axis of the source lies; by default the last ones.
        """
        if not isinstance(value, Source):
            return number(value)
        lies = range(len(self.shape) - value.axes, len(self.shape)) if axes is None else axes
        strides = [0] * (len(self.shape) + len(self.inner))
        for axis, size, stride in zip(lies, value.shape, row_strides(value.shape), strict=True):
            strides[axis] += 0 if size == 1 else stride
        return self.read(value, strides)

    def rule(self, body: Form) -> Rule:
        return Rule(body, tuple(self.operands), self.inner)


Maker = Callable[[Call], Rule | Move | None]


def table(index: Flat, **strides: int) -> IndexMap:
    """A map that looks up what is not affine; `d2=5` adds a stride of 5 on axis 2. Axes of size 1 count for nothing."""
    found = compressed(index)
    full = list(found.strides)
    for name, stride in strides.items():
        full[int(name[1:])] += stride
    lookup = tuple(0 if n == 1 else step for n, step in zip(index.shape, found.lookup, strict=False))
    return IndexMap(tuple(full), found.offset, found.table, lookup)


def sent(call: Call, name: str, **others: Any) -> Move:
    """A move found by sending the indices of a source through the operation itself. A cell it makes from nothing
    is filled, with 0."""
    source = call.source(name)
    indices = torch.arange(1, source.size + 1).reshape(source.shape)
    arguments = {key: _plain(value) for key, value in (call.arguments | others).items()}
    result = run(call.function, arguments | {name: indices})
    found = (result if isinstance(result, Tensor) else result[call.output]).numpy().reshape(call.shape) - 1
    move = whole(source.step, call.shape, compressed(found))
    return Move(move.pieces, 0) if (found < 0).any() else move


def run(function: Any, arguments: dict[str, Any]) -> Any:
    """The plain operation on other tensors."""
    schema = function._schema.arguments
    args = [arguments[each.name] for each in schema if not each.kwarg_only]
    return function(
        *args, **{each.name: arguments[each.name] for each in schema if each.kwarg_only and not each.is_out}
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Source):
        return value.read()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return torch.device("cpu") if isinstance(value, torch.device) else value


def axis(dim: int, axes: int) -> int:
    """An axis counted from the start."""
    return dim % max(axes, 1)


def all_axes(dims: Any, axes: int) -> list[int]:
    """Axes counted from the start; none or no list is all of them."""
    if dims is None or (isinstance(dims, list | tuple) and not dims):
        return list(range(axes))
    return sorted({axis(each, axes) for each in ([dims] if isinstance(dims, int) else dims)})
