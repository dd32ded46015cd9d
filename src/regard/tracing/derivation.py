"""A derivation: the steps by which a tensor was computed, in order, and the arithmetic of each of their cells.

It only reads what was recorded. Its fine steps are the primitive operations; `steps` are those of them that a
person would write down, and each of these has the primitives between it and the steps before it folded in.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.support.nearest import unknown
from regard.tracing.cell import Cell, Frame
from regard.tracing.index import Flat, Move
from regard.tracing.step import Axes, Step, flat_array

if TYPE_CHECKING:
    from regard.tracing.render.selecting import Only

GIVEN = ("given", "parameter", "constant", "random")


class Derivation:
    """Named steps in order. `d["A"]` is a step, `d.why("A", 1, 2)` the arithmetic of one of its cells."""

    def __init__(self, fine: Sequence[Step], target: int) -> None:
        self.fine: tuple[Step, ...] = tuple(copy(step) for step in fine)
        """Every primitive and everything given, in the order of the computation."""
        for step in self.fine:
            step.derivation = self
        self.target: Step = self.fine[target]
        """The tensor that was asked for: the last of `steps`, unless gradients were asked for as well."""
        shown = [step for step in self.fine if step.shown]
        self.steps: tuple[Step, ...] = tuple(s for s in shown if s.role not in GIVEN or s is self.target)
        """The steps a person would write, in order."""
        self.givens: tuple[Step, ...] = tuple(s for s in shown if s.role in GIVEN and s is not self.target)
        """What they were made from: inputs, parameters, constants, random draws."""
        self._names = {step.name: step for step in self.fine}
        self._aliases: dict[str, list[Step]] = {}
        for step in self.fine:
            for alias in step.aliases:
                self._aliases.setdefault(alias, []).append(step)

    def __getitem__(self, name: str) -> Step:
        """A step by its name, its label or the path of the module whose output it is."""
        if name in self._names:
            return self._names[name]
        found = self._aliases.get(name, [])
        if len(found) == 1:
            return found[0]
        if found:
            full = ", ".join(step.name for step in found)
            raise ValueError(f"{name!r} stands {len(found)} times in this derivation; ask for one of: {full}")
        if not isinstance(name, str):
            raise ValueError(f"a step is asked for by its name, a text; got {type(name).__name__}")
        shown = [step.name for step in (*self.steps, *self.givens)]
        raise ValueError(unknown("step", name, {*shown, *self._aliases}))

    def __contains__(self, name: object) -> bool:
        return name in self._names or len(self._aliases.get(str(name), ())) == 1

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def why(self, name: str, *index: int, fine: bool = False) -> Cell:
        """The arithmetic of one cell: `.value`, `.text`, `.parents`, `.expression`.

        With `fine` in the terms of the primitive that made it, else in those of the shown steps.
        """
        step = self[name]
        return Cell(self, step, place(step, index), fine)

    def with_axes(self, axes: Mapping[str, Sequence[Sequence[str] | None]]) -> "Derivation":
        """The same derivation with tokens on axes: `{"A": (None, target, source)}`, the last axes of each step.

        An axis given None stays bare. A name that stands several times goes to every step of that name.
        """
        steps = [copy(step) for step in self.fine]
        for name, tokens in axes.items():
            for step in self._aliases.get(name) or [self[name]]:
                steps[step.position].axes = _axes(step, tokens)
        return Derivation(steps, self.target.position)

    def frame(self, step: Step, flat: int, fine: bool = False) -> Frame:
        """The operands of one cell, found."""
        return Frame(self, step, flat, fine)

    def folded_into(self, step: Step) -> tuple[Step, ...]:
        """The hidden primitives between a step and the shown ones before it, and the step itself."""
        found, waiting = {step.position}, list(step.sources)
        while waiting:
            position = waiting.pop()
            if position not in found and not self.fine[position].shown:
                found.add(position)
                waiting += self.fine[position].sources
        return tuple(self.fine[position] for position in sorted(found))

    def passed(self, owner: Flat, index: Flat) -> tuple[Flat, Flat]:
        """Cells (a step and a flat index each) passed on through every move that is not shown, to where they come from.

        A step of -1 is the fill of the move whose position stands in place of the index; -2 is no cell at all.
        """
        while True:
            moves = [each for each in np.unique(owner).tolist() if each >= 0 and self._skipped(each)]
            if not moves:
                return owner, index
            owner, index = owner.copy(), index.copy()
            for position in moves:
                here, step = owner == position, self.fine[position]
                assert isinstance(step.rule, Move)
                steps, indices = step.rule.sources(step.shape, index[here])
                owner[here], index[here] = steps, np.where(steps < 0, position, indices)

    def _skipped(self, position: int) -> bool:
        step = self.fine[position]
        return not step.shown and isinstance(step.rule, Move)

    def moved(self, step: Step, move: Move, flat: Flat) -> "np.ndarray[Any, Any] | None":
        """Numbers of a move, read where they stand."""
        owners, indices = move.sources(step.shape, flat)
        array = np.full(flat.shape, 0 if move.fill is None else move.fill, flat_array(_empty(step.dtype)).dtype)
        for position in (int(each) for each in np.unique(owners) if each >= 0):
            here = owners == position
            part = self.fine[position].cells(indices[here])
            if part is None:
                return None
            array[here] = part
        return array

    def moved_whole(self, step: Step, move: Move) -> "np.ndarray[Any, Any] | None":
        """All of them, row by row; a plain view at once."""
        piece = move.pieces[0] if len(move.pieces) == 1 else None
        if piece is None or piece.map.table is not None or piece.size != step.shape or any(piece.start):
            return self.moved(step, move, np.arange(step.size, dtype=np.int64))
        part = self.fine[piece.step].array
        if part is None or step.size == 0:
            return part
        strides = [each * part.itemsize for each in piece.map.strides]
        return np.lib.stride_tricks.as_strided(part[piece.map.offset :], step.shape, strides).reshape(-1)

    def text(self, digits: int = 4, only: "Only" = None, width: int | None = None, color: bool | None = None) -> str:
        """As lines for a terminal: every step, or `only` some (`"A, O[0]"`), with 2 to 6 significant digits."""
        from regard.tracing.render.text import text

        return text(self, digits, only, width, color)

    def markdown(self, digits: int = 4, only: "Only" = None) -> str:
        """As Markdown, with a table a step."""
        from regard.tracing.render.markdown import markdown

        return markdown(self, digits, only)

    def latex(self, digits: int = 4, only: "Only" = None, document: bool = True) -> str:
        """As LaTeX: a plain article, or without `document` its body."""
        from regard.tracing.render.latex import latex

        return latex(self, digits, only, document)

    def html(self, title: str | None = None, digits: int = 4, largest: int | None = None) -> str:
        """As one HTML file in which every number opens; numbers of steps of more than `largest` cells stay out.

        By default as many numbers are in it as a browser takes at ease: 4 million.
        """
        from regard.tracing.render.html import html

        return html(self, title, digits, largest)

    def _repr_html_(self) -> str:
        """In a notebook: the page, in a frame."""
        from regard.tracing.render.html import framed

        return framed(self)

    def save(self, path: str | Path) -> None:
        """Write it to a file, as what its name ends in."""
        from regard.tracing.render.saving import save

        save(self, path)

    def to_json(self, *, largest: int | None = None, packed: bool | None = None) -> str:
        """As JSON (docs/derivation.schema.json): every value once, and a rule for each step.

        Values of steps with more than `largest` cells are left out. `packed` writes the bytes of a tensor in
        base64, else they are plain numbers; by default plain up to 2,000 numbers in all.
        """
        from regard.tracing.storing import written

        return written(self, largest, packed)

    @staticmethod
    def from_json(text: str) -> "Derivation":
        """The derivation that was written; nothing is executed."""
        from regard.tracing.storing import read

        return read(text)

    @staticmethod
    def load(path: str | Path) -> "Derivation":
        """A derivation from a file that `save` wrote as .json."""
        from regard.tracing.storing import load

        return load(path)

    def __eq__(self, other: object) -> bool:
        from regard.tracing.storing import equal

        return equal(self, other) if isinstance(other, Derivation) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equality is by content, and the content is tensors

    def __repr__(self) -> str:
        return f"Derivation of {self.target.name} in {len(self.steps)} steps ({len(self.fine)} primitive)"


def place(step: Step, index: Sequence[int]) -> tuple[int, ...]:
    """An index checked against the step's shape; negative ones count from the end."""
    if len(index) != len(step.shape):
        raise ValueError(
            f"{step.name!r} has the shape {list(step.shape)}: expected {len(step.shape)} indices, got {len(index)}"
        )
    for axis, (at, size) in enumerate(zip(index, step.shape, strict=True)):
        if isinstance(at, bool) or not hasattr(at, "__index__"):
            raise ValueError(f"{step.name!r}: an index is a whole number; got {at!r} on axis {axis}")
        if not -size <= at < size:
            raise ValueError(
                f"{step.name!r} has the shape {list(step.shape)}: index {at} on axis {axis} is out of range"
                + (f" (0 to {size - 1})" if size else " (the axis is empty)")
            )
    return tuple(int(at) % size for at, size in zip(index, step.shape, strict=True))


def _axes(step: Step, tokens: Sequence[Sequence[str] | None]) -> Axes:
    if len(tokens) > len(step.shape):
        raise ValueError(f"axes: {step.name!r} has the shape {list(step.shape)}; got tokens for {len(tokens)} axes")
    full = (None,) * (len(step.shape) - len(tokens)) + tuple(None if t is None else tuple(t) for t in tokens)
    for axis, (size, words) in enumerate(zip(step.shape, full, strict=True)):
        if words is not None and len(words) != size:
            raise ValueError(f"axes: axis {axis} of {step.name!r} has {size} places; got {len(words)} tokens")
    return full


def _empty(dtype: str) -> Any:
    import torch

    return torch.empty(0, dtype=getattr(torch, dtype))
