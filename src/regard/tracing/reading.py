"""From a tape to a derivation: what a tensor came from, in order, named, folded and with a rule each."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regard.tracing.attention import attention_names
from regard.tracing.derivation import GIVEN, Derivation
from regard.tracing.folding import Folding
from regard.tracing.forms import Form, Rule
from regard.tracing.formulas import Formulas
from regard.tracing.gradients import begins
from regard.tracing.index import Move, Piece
from regard.tracing.naming import names
from regard.tracing.record import Called, Record, Ref
from regard.tracing.rules import RULES
from regard.tracing.rules.call import Call, LeftOut, Source
from regard.tracing.rules.norms import NAMES, STATISTICS
from regard.tracing.rules.wrapping import unwrapped
from regard.tracing.step import Step, flat_array

if TYPE_CHECKING:
    from regard.tracing.tape import Tape


def read(tape: "Tape", tensor: Tensor, gradients: Sequence[Tensor], also: Sequence[Tensor] = ()) -> Derivation:
    target = asked(tape, tensor)
    found = [gradient_for(tape, target, each) for each in gradients]
    return Reading(tape, target, dict(found), [asked(tape, each) for each in also]).derivation()


def asked(tape: "Tape", tensor: object) -> int:
    """The record of the tensor that was asked for."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"a derivation is asked for of a tensor; got {type(tensor).__name__}")
    number = tape.find(tensor)
    if number is None:
        raise ValueError(
            f"this tensor {list(tensor.shape)} was not part of the trace: pass one that was computed or read inside "
            "`with regard.trace() as tape:`"
        )
    return number


def gradient_for(tape: "Tape", target: int, tensor: Tensor) -> tuple[int, int]:
    """The record of the gradient for a tensor, of the last backward pass that began at the target; and what it is for:
    the tensor as it was before the target, also where it has been written over since.
    """
    numbers = list(dict.fromkeys((*tape.gradients.numbers(tensor), asked(tape, tensor))))
    found = [each for number in numbers for each in tape.gradients.of.get(number, ())]
    if not found:
        raise ValueError(
            f"no gradient for this tensor {list(tensor.shape)} was computed in the trace: differentiate inside it, on "
            "a CPU (loss.backward() or torch.autograd.grad), with respect to a tensor that requires gradients"
        )
    began = tape.gradients.began_at(target)
    from_target = [gradient for gradient, run in found if run in began]
    if not from_target:
        raise ValueError(
            f"the gradient for this tensor {list(tensor.shape)} that was computed in the trace is not of the tensor "
            "that was asked for: its backward pass began at another one, like a scaled loss, or with a gradient of the "
            "code's own. Ask for the derivation of what was differentiated; in place of y.backward(v) differentiate "
            "(y * v).sum()"
        )
    return from_target[-1], max((each for each in numbers if each <= target), default=numbers[-1])


class Reading:
    """The records that a derivation is made of, and what they become."""

    def __init__(self, tape: "Tape", target: int, gradients: Mapping[int, int], also: Sequence[int] = ()) -> None:
        self._all, self._of, self._began = tape.records, tape.gradients.of, tape.gradients.began_at(target)
        self._target, self._gradients = target, gradients
        self._asked = {target, *gradients, *also}
        self._sources: dict[int, tuple[int, ...]] = {}
        self._collect([*self._asked])
        self._records = [self._all[number] for number in sorted(self._sources)]
        self._positions = {record.number: position for position, record in enumerate(self._records)}

    def _collect(self, waiting: list[int]) -> None:
        while waiting:
            number = waiting.pop()
            if number not in self._sources:
                self._sources[number] = sources = self._made_with(self._all[number])
                waiting += sources

    def _made_with(self, record: Record) -> tuple[int, ...]:
        """What the operation read, and its other outputs that its rule speaks of."""
        if record.called is None or record.role != "computed":
            return record.sources
        if record.output in NAMES.get(record.operation, ()):
            return record.sources[:1]
        others = STATISTICS.get(record.operation, {}).get(record.output, ())
        found = [record.called.outputs[k] for k in others if k < len(record.called.outputs)]
        return (*record.sources, *(each for each in found if each >= 0))

    def derivation(self) -> Derivation:
        folding = Folding(self._records, self._sources, self._asked)
        # Of the whole tape: what is the weights of an attention does not depend on which output was asked for.
        known = attention_names(self._all, {record.number: record.sources for record in self._all})
        called, others = names(self._records, folding.shown, self._target, {}, known, bool(self._gradients))
        if self._gradients:
            named = self._gradient_names(folding.shown, called)
            folding = Folding(self._records, self._sources, self._asked | set(named))
            called, others = names(self._records, folding.shown, self._target, named, known, True)
            named = self._gradient_names(folding.shown, called)  # what they are for may now be called more simply
            called, others = names(self._records, folding.shown, self._target, named, known, True)
        formulas = Formulas({each.number: each for each in self._records}, folding.shown, called)
        steps = [
            Step(
                self._positions[record.number],
                called[record.number],
                tuple(record.shape),
                str(record.dtype).removeprefix("torch."),
                record.role,
                record.operation,
                record.labels[-1][0] if record.labels else "",
                formulas.of(record),
                record.labels[-1][2] if record.labels else record.module,
                record.number in folding.shown,
                tuple(called[number] for number in self._inputs(record, folding.shown)),
                tuple(self._positions[number] for number in self._sources[record.number]),
                others[record.number],
                held=record.held,
                making=self._making(record, record.number in folding.shown),
            )
            for record in self._records
        ]
        return Derivation(steps, self._positions[self._target])

    def _gradient_names(self, shown: set[int], called: dict[int, str]) -> dict[int, str]:
        """For the records that are gradients for steps: ∂loss/∂ and the name of the step."""
        loss = called[self._target]
        found = {gradient: f"∂{loss}/∂{called[of]}" for gradient, of in self._gradients.items() if of in called}
        for record in self._records:
            if begins(record, self._target):
                found[record.number] = f"∂{loss}/∂{loss}"
            elif record.number in shown:
                for gradient, run in reversed(self._of.get(record.number, ())):
                    if run in self._began and gradient in self._positions and gradient not in found:
                        found[gradient] = f"∂{loss}/∂{called[record.number]}"
                        break
        return found

    def _inputs(self, record: Record, shown: set[int]) -> list[int]:
        """Of a shown step the shown ones it was made from, of another what it read."""
        if record.number not in shown:
            return list(self._sources[record.number])
        found: dict[int, None] = {}
        waiting = list(reversed(self._sources[record.number]))
        passed: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number in shown:
                found[number] = None
            elif number not in passed:
                passed.add(number)
                waiting += reversed(self._sources[number])
        return list(found)

    def _making(self, record: Record, shown: bool) -> "Rule | Move | Callable[[], Rule | Move | None] | None":
        if record.view is not None:
            return (lambda: self._view(record)) if record.role == "move" else None
        if record.called is None or record.role == "opaque":
            return None
        if record.role in GIVEN:
            if not shown:
                return None
            return Rule(Form("made" if record.role == "constant" else "drawn", name=record.operation))
        return lambda: self._ruled(record, record.called)

    def _view(self, record: Record) -> Move:
        assert record.view is not None
        at, layers = record.view
        start = (0,) * len(at.shape)
        return Move(
            tuple(Piece(self._positions[each.record], start, tuple(at.shape), at.to(each.at)) for each in layers)
        )

    def _ruled(self, record: Record, called: Called | None) -> Rule | Move | None:
        assert called is not None
        arguments = self._arguments(called)
        sources = [each for each in _leaves(arguments.values()) if isinstance(each, Source)]
        others = [
            self._source(number) if number in self._positions or number >= 0 else None for number in called.outputs
        ]
        call = Call(called.function, arguments, tuple(record.shape), record.dtype, record.output, others)
        entry = RULES[called.operation]
        if entry.sort != "move" and any(each.dtype.is_complex for each in sources):
            return None
        try:
            made = entry.make(call)
            if not isinstance(made, Rule):
                return made
            return unwrapped(call, made, called.operation, value(self._all, record.number))
        except LeftOut:
            return None

    def _arguments(self, called: Called) -> dict[str, Any]:
        """By the names of the schema, with what was not passed as its default."""
        schema = called.function._schema.arguments
        given = {each.name: value for each, value in zip(schema, called.args, strict=False)} | called.kwargs
        full = {each.name: each.default_value for each in schema if each.has_default_value()} | given
        return {name: self._sourced(value) for name, value in full.items()}

    def _sourced(self, value: Any) -> Any:
        if isinstance(value, Ref):
            return self._source(value.record)
        return [self._sourced(each) for each in value] if isinstance(value, list | tuple) else value

    def _source(self, number: int) -> Source:
        record = self._all[number]
        return Source(
            self._positions.get(number, -1), tuple(record.shape), record.dtype, lambda: value(self._all, number)
        )


def value(records: Sequence[Record] | Mapping[int, Record], number: int) -> Tensor | None:
    """The recorded numbers of a record, read through views; None where they were left out."""
    record = records[number]
    if record.held is not None:
        return record.held.read(f"tensor {number}")
    if record.view is None or record.role != "move":
        return None
    at, layers = record.view
    found = np.zeros(int(np.prod(at.shape)), flat_array(torch.empty(0, dtype=record.dtype)).dtype)
    for layer in layers:
        under = value(records, layer.record)
        if under is None:
            return None
        index = at.to(layer.at).everywhere(at.shape).reshape(-1)
        found[index >= 0] = flat_array(under)[index[index >= 0]]
    return torch.from_numpy(found).to(record.dtype).reshape(at.shape)


def _leaves(values: Any) -> list[Any]:
    found = []
    for each in values:
        found += _leaves(each) if isinstance(each, list) else [each]
    return found
