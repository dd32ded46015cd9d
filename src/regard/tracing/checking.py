"""Whether equations are true: the recorded operands, worked out again, must give the recorded number.

A tape sees what goes through PyTorch's dispatcher. Memory that is written past it (by numpy, by a pointer, in another
thread) changes numbers after they were read, and an equation with them would be false. What is within the rounding of
its precision is true; nothing is asked where numbers were left out.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regard.tracing import estimates
from regard.tracing.estimates import ZERO, Estimate, Reals
from regard.tracing.forms import Form, Rule
from regard.tracing.index import Flat, Move
from regard.tracing.reducing import Terms, reduced

if TYPE_CHECKING:
    from regard.tracing.derivation import Derivation
    from regard.tracing.step import Step

SLACK = 8
"""How many roundings an operation is granted: functions are not rounded correctly, and work in several steps."""
COARSE = 2.0**-10
"""The rounding of products on a device that may take the first digits of their factors only (TF32)."""
LARGEST = 8_000_000
"""Terms that are worked out at once."""


class _Unknown(Exception):
    """A number was left out, or is none that can be compared."""


class _TooMany(Exception):
    """More terms than are worked out at once."""


def holds(derivation: "Derivation", step: "Step", flat: int, fine: bool) -> bool:
    """Whether the equation of a cell is true, as far as can be said."""
    return not untrue_among(derivation, step, _places(step, np.array([flat])), fine).any()


def untrue(derivation: "Derivation", step: "Step", fine: bool) -> Flat:
    """Flat indices of all cells of a step whose equations are not true."""
    if step.size == 0 or not isinstance(step.rule, Rule | Move):
        return np.empty(0, np.int64)
    if not step.shape:
        return np.flatnonzero(untrue_among(derivation, step, (np.zeros(1, np.int64),), fine))
    return np.flatnonzero(_everywhere(derivation, step, [slice(0, n) for n in step.shape], fine))


def all_untrue(derivation: "Derivation") -> dict[int, tuple[Flat, Flat]]:
    """By the positions of steps where some equations are not true the cells: in the terms of the shown steps, and in
    those of the primitives. A formula in terms of shown steps is made of primitive ones: where these are true it is.
    """
    fine = {step.position: untrue(derivation, step, True) for step in derivation.fine}
    wrong = {position for position, cells in fine.items() if cells.size}
    found: dict[int, tuple[Flat, Flat]] = {}
    for step in derivation.fine if wrong else ():
        concerned = any(each.position in wrong for each in step.fine)
        folded = untrue(derivation, step, False) if concerned else np.empty(0, np.int64)
        if folded.size or fine[step.position].size:
            found[step.position] = folded, fine[step.position]
    return found


def _everywhere(derivation: "Derivation", step: "Step", box: list[slice], fine: bool) -> "np.ndarray[Any, Any]":
    """Over a box of cells; in halves where it is too large."""
    try:
        return untrue_among(derivation, step, tuple(np.ogrid[tuple(box)]), fine)
    except _TooMany:
        axis = max(range(len(box)), key=lambda d: box[d].stop - box[d].start)
        middle = (box[axis].start + box[axis].stop) // 2
        if middle == box[axis].start:
            return np.zeros([s.stop - s.start for s in box], bool)
        halves = [[*box[:axis], half, *box[axis + 1 :]] for half in (
            slice(box[axis].start, middle), slice(middle, box[axis].stop)
        )]  # fmt: skip
        return np.concatenate([_everywhere(derivation, step, half, fine) for half in halves], axis)


def untrue_among(derivation: "Derivation", step: "Step", places: Sequence[Flat], fine: bool) -> "np.ndarray[Any, Any]":
    """For cells at these places, one entry an axis, which broadcast against each other."""
    shape = np.broadcast_shapes(*(np.shape(each) for each in places))
    if isinstance(step.rule, Move) and step.held is None:
        return np.zeros(shape, bool)  # its numbers are those of its sources
    if not step.has_values or step.dtype.startswith("complex"):
        return np.zeros(shape, bool)
    flat = _raveled(step, places, shape)
    with np.errstate(all="ignore"):
        try:
            if isinstance(step.rule, Move):
                found = Estimate(_moved(derivation, step, step.rule, flat), ZERO)
            elif isinstance(step.rule, Rule) and step.rule.body.form not in ("made", "drawn"):
                found = _Working(derivation, fine).ruled(step, places)
            else:
                return np.zeros(shape, bool)
        except _Unknown:
            return np.zeros(shape, bool)
        recorded = _numbers(step, flat)
        return np.broadcast_to(~_same(found, recorded, step.dtype), shape)


def _same(found: Estimate, recorded: Reals, dtype: str) -> "np.ndarray[Any, Any]":
    value, error = found
    kind = getattr(torch, dtype)
    least = torch.finfo(kind).tiny if kind.is_floating_point else 0.0
    beyond = np.isinf(recorded) & (np.abs(value) + error > torch.finfo(kind).max) if kind.is_floating_point else False
    same = (value == recorded) | (np.isnan(value) & np.isnan(recorded)) | np.isinf(error) | np.isnan(error)
    return np.asarray(same | beyond | (np.abs(value - recorded) <= error + least))


def _moved(derivation: "Derivation", step: "Step", move: Move, flat: Flat) -> Reals:
    owners, indices = move.sources(step.shape, flat.reshape(-1))
    found = np.full(owners.shape, 0 if move.fill is None else move.fill, np.float64)
    for owner in np.unique(owners[owners >= 0]).tolist():
        here = owners == owner
        found[here] = _numbers(derivation.fine[owner], indices[here])
    return found.reshape(flat.shape)


def _numbers(step: "Step", flat: Flat) -> Reals:
    cells = step.cells(flat) if flat.size * 4 < step.size else step.whole(flat)
    if cells is None or cells.dtype.kind == "c":
        raise _Unknown
    found: Reals = cells.astype(np.float64)
    return found


def _places(step: "Step", flat: Flat) -> tuple[Flat, ...]:
    return tuple(np.unravel_index(flat, step.shape)) if step.shape else (np.zeros_like(flat),)


def _raveled(step: "Step", places: Sequence[Flat], shape: tuple[int, ...]) -> Flat:
    if not step.shape:
        return np.zeros(shape, np.int64)
    return np.ravel_multi_index(tuple(np.broadcast_to(each, shape) for each in places), step.shape)


class _Working:
    """Works out rules: in the terms of the shown steps, or of the primitives."""

    def __init__(self, derivation: "Derivation", fine: bool) -> None:
        self._derivation, self._fine = derivation, fine

    def ruled(self, step: "Step", places: Sequence[Flat]) -> Estimate:
        """The cells of a step at these places: the shape is that of the places, as they broadcast."""
        rule = step.rule
        assert isinstance(rule, Rule)
        deep = max((np.ndim(each) for each in places), default=0)
        inner = [
            np.arange(n).reshape([-1 if e == deep + d else 1 for e in range(deep + len(rule.inner))])
            for d, n in enumerate(rule.inner)
        ]
        lead = [np.reshape(each, (*np.shape(each), *(1,) * len(rule.inner))) for each in places]
        at = [*lead, *inner] if step.shape else inner
        flats = [_deep(operand.map.at(at), deep + len(rule.inner)) for operand in rule.operands]
        cells = [self._operand(operand.step, flat) for operand, flat in zip(rule.operands, flats, strict=True)]
        body = _Body(rule, deep, cells, _mask(flats), self._unit(step, rule)).of(rule.body)
        return Estimate(*(np.reshape(_deep(each, deep + len(inner)), np.shape(_deep(each, deep + len(inner)))[:deep])
                          for each in body))  # fmt: skip

    def _unit(self, step: "Step", rule: Rule) -> float:
        """The rounding of one operation of the step, with some slack."""
        dtypes = [step.dtype, *(self._derivation.fine[each.step].dtype for each in rule.operands if each.step >= 0)]
        kinds = [getattr(torch, each) for each in dtypes]
        floats = [torch.finfo(kind).eps for kind in kinds if kind.is_floating_point]
        if step.held is not None and step.held.tensor.device.type != "cpu" and rule.inner:
            floats.append(COARSE)
        return SLACK * max(floats, default=2.0**-52)

    def _operand(self, position: int, flat: Flat) -> Estimate:
        step = self._derivation.fine[position]
        if flat.size and flat.min() >= 0 and (self._fine or step.shown or not isinstance(step.rule, Move)):
            return self._cells(position, flat)
        owner, index = np.where(flat < 0, -2, position), flat
        if not self._fine:
            owner, index = self._derivation.passed(owner, index.copy())
        owners = np.unique(owner).tolist()
        if len(owners) == 1:
            return self._cells(owners[0], index)
        value, error = np.zeros(flat.shape), np.zeros(flat.shape)
        for each in owners:
            here = owner == each
            value[here], error[here] = self._cells(each, index[here])
        return Estimate(value, error)

    def _cells(self, owner: int, index: Flat) -> Estimate:
        """Those of one step: read where they are shown, else worked out and rounded as they were."""
        if owner == -2:
            return Estimate(np.zeros(index.shape), ZERO)
        if owner == -1:
            moves, which = np.unique(index, return_inverse=True)
            rules = [self._derivation.fine[each].rule for each in moves.tolist()]
            fills = np.array([rule.fill or 0 for rule in rules if isinstance(rule, Move)], np.float64)
            return Estimate(fills[which].reshape(index.shape), ZERO)
        step = self._derivation.fine[owner]
        if step.shown or self._fine or not isinstance(step.rule, Rule):
            return Estimate(_numbers(step, index), ZERO)
        if step.rule.body.form in ("made", "drawn"):
            return Estimate(_numbers(step, index), ZERO)
        value, error = self.ruled(step, np.unravel_index(index, step.shape) if step.shape else (index * 0,))
        kind = getattr(torch, step.dtype)
        if kind.is_floating_point:
            error = np.where(np.abs(value) + error > torch.finfo(kind).max, np.inf, error + torch.finfo(kind).tiny)
        return Estimate(value, error)


class _Body:
    """Works out the formula of a rule from its operands, over the axes of the places and then the inner ones."""

    def __init__(self, rule: Rule, deep: int, cells: list[Estimate], mask: Any, unit: float) -> None:
        self._inner, self._cells, self._mask, self._unit = rule.inner, cells, mask, unit
        self._shape = (*(1,) * deep, *rule.inner)
        self._axes = tuple(range(deep, deep + len(rule.inner)))

    def of(self, form: Form) -> Estimate:
        name = form.form
        if name == "cell":
            return self._cells[form.operand]
        if name == "number":
            value = np.asarray(float(form.number or 0))
            whole = not np.isfinite(value) or value == np.round(value)
            return Estimate(value, ZERO if whole else np.asarray(self._unit * abs(value)))
        if name == "over":
            return self._over(form)
        parts = [self.of(each) for each in form.of]
        if name in ("softmax", "log_softmax"):
            others = Estimate(*(self._spread(each) for each in parts[1]))
            return estimates.soft(parts[0], others, self._axes, self._mask, self._unit, name == "log_softmax")
        return self._plain(form, parts)

    def _plain(self, form: Form, parts: list[Estimate]) -> Estimate:
        name, unit = form.form, self._unit
        if name == "sum":
            return estimates.added(parts, unit)
        if name == "difference":
            return estimates.added([parts[0], estimates.negated(parts[1])], unit)
        if name == "product":
            found = parts[0]
            for each in parts[1:]:
                found = estimates.multiplied(found, each, unit)
            return found
        if name == "function":
            return estimates.called(form.name, parts, unit)
        if name == "compare":
            return estimates.compared(form.name, *parts)
        if name == "choose":
            return estimates.chosen(*parts)
        if name == "round":
            return _cast(parts[0], form.name)
        if name == "negative":
            return estimates.negated(parts[0])
        if name == "quotient":
            return estimates.divided(parts[0], parts[1], unit)
        if name == "power":
            return estimates.raised(parts[0], parts[1], unit)
        raise _Unknown

    def _over(self, form: Form) -> Estimate:
        inside = form.of[0]
        number = float(form.number or 0)
        if form.name == "sum" and inside.form == "product" and len(inside.of) == 2:
            found = self._contracted(*(self.of(each) for each in inside.of))
            if found is not None:
                return found
        terms = self.of(inside)
        spread = Estimate(*(self._spread(each) for each in terms))
        return reduced(form.name, Terms(spread, self._axes, self._mask, self._unit), number)

    def _spread(self, each: Reals) -> Reals:
        """Over all inner places."""
        shape = np.broadcast_shapes(np.shape(each), self._shape)
        if np.prod(shape) > LARGEST:
            raise _TooMany
        return np.broadcast_to(each, shape)

    def _contracted(self, a: Estimate, b: Estimate) -> Estimate | None:
        """Σ a b of factors that stand apart, as the product of matrices that it is."""
        count = int(np.prod(self._inner))
        if np.prod(np.broadcast_shapes(a.value.shape, b.value.shape, self._shape)) < 100_000:
            return None
        one, other = self._held(a.value), self._held(b.value)
        masked = any(_within(self._mask, each.value) for each in (a, b))
        if not masked or not (np.isfinite(one).all() and np.isfinite(other).all()):
            return None
        value, size = self._product(one, other), self._product(np.abs(one), np.abs(other))
        error = self._unit * (8 + 4 * count**0.5) * size
        for off, factor in ((a.error, other), (b.error, one)):
            if np.any(off > 0):
                error = error + self._product(np.broadcast_to(off, np.broadcast_shapes(off.shape, (1,) * factor.ndim)),
                                              np.abs(factor))  # fmt: skip
        return Estimate(value, error)

    def _held(self, value: Reals) -> Reals:
        """With 0 where there is no term."""
        return np.where(self._mask, value, 0) if _within(self._mask, value) else value

    def _product(self, a: Reals, b: Reals) -> Reals:
        """Over the inner axes, which stay with size 1. An axis of size 1 is left to the other factor."""
        deep = len(self._shape)
        letters = "abcdefghijklmnopqrstuvwxyz"[:deep]
        kept = [d for d in range(deep) if d not in self._axes and max(a.shape[d], b.shape[d]) > 1]
        alone = np.prod([n for d, n in enumerate(self._shape) if d in self._axes and a.shape[d] == b.shape[d] == 1])
        parts, names = [], []
        for each in (a, b):
            axes = [d for d in range(deep) if each.shape[d] > 1]
            parts.append(each.reshape([each.shape[d] for d in axes]))
            names.append("".join(letters[d] for d in axes))
        found = np.einsum(f"{names[0]},{names[1]}->{''.join(letters[d] for d in kept)}", *parts, optimize=True)
        full = [max(a.shape[d], b.shape[d]) if d not in self._axes else 1 for d in range(deep)]
        result: Reals = np.asarray(found * alone).reshape(full)
        return result


def _within(mask: Any, value: Reals) -> bool:
    """Whether the mask is no larger."""
    return np.broadcast_shapes(np.shape(mask), value.shape) == value.shape


def _mask(flats: list[Flat]) -> Any:
    """True, or where every operand has a cell."""
    mask: Any = True
    for flat in flats:
        if flat.size and flat.min() < 0:
            mask = mask & (flat >= 0)
    return mask


def _deep(flat: Any, axes: int) -> Any:
    return np.reshape(flat, (1,) * axes) if np.ndim(flat) < axes else flat


def _cast(a: Estimate, name: str) -> Estimate:
    """Rounded to a dtype; to whole numbers towards 0."""
    kind = getattr(torch, name)
    if kind == torch.bool:
        return Estimate((a.value != 0).astype(np.float64), (a.error > 0).astype(np.float64))
    if not kind.is_floating_point:
        room = torch.iinfo(kind)
        beyond = (a.value < room.min) | (a.value > room.max)
        return Estimate(np.trunc(a.value), np.where(beyond, np.inf, np.where(a.error > 0, a.error + 1, 0.0)))
    info = torch.finfo(kind)
    error = a.error + np.abs(a.value) * info.eps + info.tiny
    return Estimate(a.value, np.where(np.isfinite(a.value), error, a.error))
