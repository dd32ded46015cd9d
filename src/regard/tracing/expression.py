"""The expression that made a cell: a formula with the recorded numbers in their places.

It is a view on a rule: its parts are made when they are looked at, so that the first terms of a sum of thousands cost
nothing more than a short one.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from regard.tracing.forms import Form, Rule
from regard.tracing.index import Flat, Move

if TYPE_CHECKING:
    from regard.tracing.derivation import Derivation
    from regard.tracing.step import Step

Number = float | int | bool | complex

CELL = Form("cell", operand=0)
ROWS = ("over", "softmax", "log_softmax")
"""Forms whose last part runs over the inner places."""


Cells = tuple[Flat, Flat]
"""Positions of steps, and flat indices in them."""


class Frame:
    """The operands of one cell, found: for each the step and the flat index, at all inner places or at one for all."""

    def __init__(self, derivation: "Derivation", step: "Step", flat: int, fine: bool = False) -> None:
        self.derivation, self.step, self.flat, self.fine = derivation, step, flat, fine
        rule = step.rule
        self.inner: tuple[int, ...] = ()
        self.found: list[tuple[Flat, Flat]] = []
        if isinstance(rule, Move):
            owner, index = rule.sources(step.shape, np.array([flat]))
            index = np.where(owner < 0, step.position, index)
            self.body = CELL
            self.found = [self._passed(owner, index)]
        elif isinstance(rule, Rule):
            self.body, self.inner = rule.body, rule.inner
            outer = [int(i) for i in np.unravel_index(flat, step.shape)]
            inner = np.ogrid[tuple(slice(n) for n in rule.inner)]
            self.found = [self._operand(operand.step, operand.map.at([*outer, *inner])) for operand in rule.operands]
        else:
            form = "given" if step.role in ("given", "parameter", "constant", "random") else "opaque"
            self.body = Form(form, name=step.operation)

    def _operand(self, step: int, flat: Flat) -> tuple[Flat, Flat]:
        if self.inner and flat.size > 1:
            flat = np.broadcast_to(flat, self.inner)
        flat = flat.reshape(-1)
        return self._passed(np.where(flat < 0, -2, step), flat.copy())

    def _passed(self, owner: Flat, index: Flat) -> tuple[Flat, Flat]:
        return (owner, index) if self.fine else self.derivation.passed(owner, index)

    def places(self) -> Flat:
        """The inner places at which every operand has a cell."""
        count = int(np.prod(self.inner))
        here = np.ones(count, bool)
        for owner, _ in self.found:
            here &= owner != -2
        return np.flatnonzero(here)

    def part(self, form: Form, at: int | None) -> "Expression":
        """The expression of a form of the body, at an inner place; a hidden step opens into its own."""
        if form.form != "cell":
            return Expression(self, form, at)
        owners, indices = self.found[form.operand]
        k = 0 if at is None or owners.size == 1 else at
        owner, index = int(owners[k]), int(indices[k])
        if owner < 0:
            move = self.derivation.fine[index].rule
            assert isinstance(move, Move)
            return Expression(self, Form("number", number=move.fill, name="fill"), at)
        step = self.derivation.fine[owner]
        if step.shown or self.fine or not isinstance(step.rule, Rule):
            return Expression(self, CELL, None, step, index)
        nested = self.derivation.frame(step, index)
        return nested.part(nested.body, None)

    def cells(self, form: Form, places: Flat) -> Iterator[Cells]:
        """The cells in a form at all these inner places, place by place; those of steps that are shown at once."""
        found = [(_at(owners, places), _at(indices, places)) for owners, indices in self.found]
        columns = self._columns(form, found)
        if columns is None:
            for k in places.tolist():
                yield from self.part(form, k).cells()
        elif columns:
            owners, indices = (np.stack(each, 1).ravel() for each in zip(*columns, strict=True))
            yield owners[owners >= 0], indices[owners >= 0]

    def _columns(self, form: Form, found: Sequence[Cells]) -> list[Cells] | None:
        """For each cell of a form, from left to right, which it is at all places; hidden steps of single cells are
        opened on the way. None where that cannot be done for all places at once.
        """
        columns: list[Cells] = []
        for owners, indices in (found[k] for k in operands_in(form)):
            if self._stands(owners):
                columns.append((owners, indices))
                continue
            step = self.derivation.fine[int(owners[0])]
            if not isinstance(step.rule, Rule) or step.rule.inner or (owners != owners[0]).any():
                return None
            places = np.unravel_index(indices, step.shape) if step.shape else ()
            inside = []
            for operand in step.rule.operands:
                flat = np.broadcast_to(operand.map.at(places), indices.shape)
                inside.append(self._passed(np.where(flat < 0, -2, operand.step), flat.copy()))
            opened = self._columns(step.rule.body, inside)
            if opened is None:
                return None
            columns += opened
        return columns

    def _stands(self, owners: Flat) -> bool:
        """Whether the cells are shown as numbers, none of them as the arithmetic of a hidden step."""
        steps = [self.derivation.fine[each] for each in np.unique(owners).tolist() if each >= 0]
        return all(step.shown or self.fine or not isinstance(step.rule, Rule) for step in steps)


class Expression:
    """A formula with numbers: a form (one of `forms.FORMS`), what it is of, and of a cell its step, index, value."""

    __slots__ = ("_flat", "_frame", "_template", "at", "step")

    def __init__(
        self, frame: Frame, template: Form, at: int | None, step: "Step | None" = None, flat: int = -1
    ) -> None:
        self._frame, self._template, self.at, self.step, self._flat = frame, template, at, step, flat

    @property
    def form(self) -> str:
        return self._template.form

    @property
    def name(self) -> str:
        """Which function, comparison, dtype or operation, where the form needs one."""
        return self._template.name

    @property
    def number(self) -> Number | None:
        """Of a number: itself. Of a variance what is taken off the count, of a norm its order."""
        return self._template.number

    @property
    def index(self) -> tuple[int, ...]:
        """Of a cell: its place in its step."""
        if self.step is None:
            return ()
        return tuple(int(i) for i in np.unravel_index(self._flat, self.step.shape))

    @property
    def value(self) -> Number | None:
        """Of a cell or number: the recorded number; None where it was left out."""
        if self.step is None:
            return self.number
        found = self.step.cells(np.array([self._flat]))
        return None if found is None else found.item()

    @property
    def of(self) -> tuple["Expression", ...]:
        """What it is of, without the part that runs over the inner places."""
        parts = self._template.of[:-1] if self.form in ROWS else self._template.of
        return tuple(self._frame.part(part, self.at) for part in parts)

    @property
    def terms(self) -> "Terms":
        """Of a form over inner places: the terms, made as they are looked at."""
        return Terms(self._frame, self._template.of[-1] if self.form in ROWS else None)

    def leaves(self) -> Iterator["Expression"]:
        """Its cells, from left to right, each as often as it stands."""
        if self.step is not None:
            yield self
            return
        for part in self.of:
            yield from part.leaves()
        if self.form in ROWS:
            for term in self.terms:
                yield from term.leaves()

    def cells(self) -> Iterator[Cells]:
        """As `leaves`, but as arrays: of thousands of terms they are found at once."""
        if self.step is not None:
            yield np.array([self.step.position]), np.array([self._flat])
            return
        for part in self.of:
            yield from part.cells()
        if self.form in ROWS and len(self.terms):
            yield from self._frame.cells(self._template.of[-1], self._frame.places())

    def __repr__(self) -> str:
        from regard.tracing.render.equation import plain

        return plain(self)


class Terms:
    """The terms over the inner places at which there is a cell."""

    def __init__(self, frame: Frame, template: Form | None) -> None:
        self._frame, self._template = frame, template
        self._places: Flat = frame.places() if template is not None else np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, k: int) -> Expression:
        assert self._template is not None
        return self._frame.part(self._template, int(self._places[k]))

    def __iter__(self) -> Iterator[Expression]:
        return (self[k] for k in range(len(self)))


def _at(cells: Flat, places: Flat) -> Flat:
    """Those at some inner places, of one for all or one for each."""
    return np.broadcast_to(cells if cells.size == 1 else cells[places], places.shape)


def operands_in(form: Form) -> list[int]:
    """The operands in a form from left to right."""
    if form.form == "cell":
        return [form.operand]
    return [operand for part in form.of for operand in operands_in(part)]
