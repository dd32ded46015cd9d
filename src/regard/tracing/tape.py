"""The tape: every primitive operation of a computation, with what went in, what came out, and where it ran."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.tracing import labels
from regard.tracing.derivation import GIVEN
from regard.tracing.dispatch import Dispatch
from regard.tracing.geometry import Geometry
from regard.tracing.gradients import Gradients
from regard.tracing.memory import Layer, Memory, dense, real
from regard.tracing.modules import Modules
from regard.tracing.operations import Operation, outputs_in, role_of, written_by
from regard.tracing.primitives import primitives
from regard.tracing.record import Called, Record, Ref
from regard.tracing.recurrent import ORDERS, Recurrent
from regard.tracing.step import Held, Role

if TYPE_CHECKING:
    from regard.tracing.derivation import Derivation

MAX_ELEMENTS = 2**28


@contextmanager
def trace(
    root: nn.Module | None = None, *, max_elements: int = MAX_ELEMENTS, largest: int | None = None
) -> Iterator["Tape"]:
    """Record what PyTorch computes within it: `with regard.trace() as tape: …`, then `tape.derivation(output)`.

    root: where module paths begin; by default at the first module that is called.
    max_elements: how many numbers may be recorded in all; more are an error.
    largest: values computed inside with more numbers than that are left out; their steps and formulas stay.
    """
    if root is not None and not isinstance(root, nn.Module):
        raise ValueError(f"root: expected the module at which paths begin; got {type(root).__name__}")
    tape = Tape(max_elements, largest)
    if root is not None:
        tape.modules.add_root(root)
    with primitives(), tape.recording():
        yield tape


class Tape:
    """What was recorded. `derivation(tensor)` reads how a tensor was computed."""

    def __init__(self, max_elements: int = MAX_ELEMENTS, largest: int | None = None) -> None:
        for name, value in (("max_elements", max_elements), ("largest", largest)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ValueError(f"{name}: expected a whole number of 0 or more; got {value!r}")
        self.records: list[Record] = []
        self.elements = 0
        """How many numbers were recorded."""
        self.modules = Modules(self._named, self._entered)
        self._recurrent: Recurrent | None = None
        self.gradients = Gradients(self)
        self._memory = Memory(self._viewed)
        self._max_elements, self._largest = max_elements, largest
        self._helds: list[Held] = []
        self._thread = threading.get_ident()

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"Tape of {len(self.records)} tensors, {self.elements:,} numbers"

    def derivation(self, tensor: Tensor, gradients: Sequence[Tensor] | Tensor = ()) -> "Derivation":
        """How a tensor was computed, and its gradients for others, where it was differentiated inside the trace."""
        from regard.tracing.reading import read

        return read(self, tensor, [gradients] if isinstance(gradients, Tensor) else gradients)

    @contextmanager
    def recording(self) -> Iterator[None]:
        labels.recorders.append(self)
        try:
            with self.modules.watched(), Dispatch(self).recording():
                yield
        finally:
            labels.recorders.remove(self)
            self.gradients.close()
            for held in self._helds:
                held.settle()

    def name(self, tensor: Tensor, name: str, formula: str) -> None:
        """What `label` says, in the thread that is recorded."""
        if threading.get_ident() != self._thread:
            return
        _check_label(tensor, name, formula)
        record = self.records[self.number(tensor)]
        record.labels.append((name, formula, self.modules.path))
        if record.view is not None:  # the module's name for the same numbers, laid out otherwise, stands back
            self._memory.name(tensor, record.number, lambda number: not self.records[number].labels)
        self.gradients.watch(tensor, record.number)

    def find(self, tensor: Tensor) -> int | None:
        """The number of the record of a tensor; None where it was no part of the trace."""
        return self._memory.find(tensor)

    def number(self, tensor: Tensor) -> int:
        """The number of the record of a tensor; what was never seen comes from outside."""
        found = self._memory.find(tensor)
        return self._given(tensor) if found is None else found

    def run(self, function: Any, op: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operation as it would have run, and record it."""
        reads: list[int] = []
        noted = tuple([self._noted(each, reads) for each in args])
        named = {k: self._noted(v, reads) for k, v in kwargs.items() if k not in op.results} if kwargs else kwargs
        if op.views:
            if op.name == "aten.lift_fresh":  # torch.tensor(...): numbers of the code, not an input
                self.records[reads[0]].role, self.records[reads[0]].operation = "constant", "tensor"
            self._memory.before_turning(args[0])
            return function(*args, **kwargs)
        written = written_by(op, args, kwargs) if op.writes else []
        for tensor in written:
            self._keep(tensor)
        result = function(*args, **kwargs)
        if op.name == "aten.copy":  # nothing is left of what was there
            reads = [noted[1].record]
        self._note(op, Called(op.name, function, noted, named, tuple(reads)), outputs_in(result), written)
        return result

    def _note(self, op: Operation, called: Called, outputs: list[Tensor | None], written: list[Tensor]) -> None:
        """A record for each tensor that came out, and for what was written to besides."""
        numbers = [-1] * len(outputs)
        for place in (*range(1, len(outputs)), 0) if outputs else ():  # what is made with statistics stands after them
            output = outputs[place]
            if output is None:
                continue
            in_place = any(output is each for each in written)
            if in_place or not self._memory.known(output):
                numbers[place] = self._add(output, *role_of(op, called, place), called, place)
                if self._recurrent is not None:
                    self._recurrent.saw(op.name, called, numbers[place])
        called.outputs = tuple(numbers)
        for tensor in written:
            if not any(tensor is each for each in outputs):
                self._add(tensor, "opaque", op.name, tuple(dict.fromkeys(called.reads)), called, -1)

    def _noted(self, value: Any, reads: list[int]) -> Any:
        """An argument with a Ref in the place of each tensor."""
        if isinstance(value, Tensor):
            number = self.number(value)
            reads.append(number)
            self.gradients.watch(value, number)
            return Ref(number)
        if isinstance(value, list | tuple):
            return [self._noted(each, reads) for each in value]
        return value

    def _keep(self, tensor: Tensor) -> None:
        """What lies where something is about to be written stays as it was."""
        for held in self._memory.before_writing(tensor):
            self._count(held.tensor.numel(), "a copy of what is written over in place")
            held.keep()

    def _given(self, tensor: Tensor) -> int:
        role: Role = "parameter" if isinstance(tensor, nn.Parameter) else "given"
        return self._add(tensor, role, role, (), None, 0)

    def _add(
        self, tensor: Tensor, role: Role, operation: str, sources: tuple[int, ...], called: Called | None, place: int
    ) -> int:
        """A record of a tensor that holds its own numbers."""
        number, size, plain = len(self.records), tensor.numel(), dense(tensor)
        held = None
        if plain and real(tensor) and (called is None or self._largest is None or size <= self._largest):
            if called is not None:
                self._count(size, operation)
            held = Held(tensor)
            self._helds.append(held)
        if called is not None and not (plain and all(self.records[each].dense for each in called.reads)):
            role, sources = "opaque", tuple(dict.fromkeys(called.reads))
        shape = torch.Size((size,)) if tensor.is_nested else tensor.shape
        self.records.append(
            Record(number, shape, tensor.dtype, role, operation, self.modules.path, sources, held, called, place, plain)
        )
        self._memory.put(tensor, number, held)
        return number

    def _viewed(self, tensor: Tensor, at: Geometry, layers: list[Layer]) -> int:
        number, sources = len(self.records), tuple(dict.fromkeys(layer.record for layer in layers))
        same = all(layer.at.alike(at) for layer in layers)
        role: Role = "move" if same else "opaque"
        held = None
        if not same:  # its own numbers: they are not those of its sources
            held = Held(tensor)
            self._helds.append(held)
        record = Record(number, tensor.shape, tensor.dtype, role, "view", self.modules.path, sources, held)
        record.view = (at, tuple(layers))
        self.records.append(record)
        return number

    def _entered(self, module: nn.Module, begins: bool) -> None:
        """A module is about to run, or has returned; of those that know no labels some parts have names."""
        if type(module) in ORDERS:
            if not begins and self._recurrent is not None:
                self._recurrent.done()
            self._recurrent = Recurrent(self, module) if begins else None

    def _named(self, tensor: Tensor, what: str, name: str) -> None:
        """What the modules say of a tensor."""
        if what == "output":
            number = self.find(tensor)
            if number is not None:
                self.records[number].outputs_of.append(name)
                if self.records[number].view is not None:
                    self._memory.name(tensor, number)
            return
        record = self.records[self.number(tensor)]
        if record.known_as or record.labels or (what == "input" and record.role not in GIVEN):
            return
        record.known_as = name
        if what != "input":  # also where the trace saw how it was filled at the start
            record.role, record.operation = ("parameter", what) if what == "parameter" else ("constant", what)
            record.sources, record.called = (), None
            if record.view is not None:  # made as a view of another one, like what a parametrisation holds
                record.view, record.held = None, Held(tensor)
                self._helds.append(record.held)
                self._memory.hold(tensor, record.held)

    def _count(self, size: int, what: str) -> None:
        self.elements += size
        if self.elements > self._max_elements:
            where = f" in {self.modules.path}" if self.modules.path else ""
            raise ValueError(
                f"the trace holds more than max_elements={self._max_elements:,} numbers, at {what}{where}: trace less, "
                "raise max_elements, or leave the values of big tensors out with largest="
            )


def _check_label(tensor: Any, name: Any, formula: Any) -> None:
    """Looked at here, where a tape listens: without one a label costs nothing."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"label: expected a tensor to name; got {type(tensor).__name__}")
    if not isinstance(name, str) or not name.isprintable() or not name.strip():
        raise ValueError(f"label: expected a name of letters on one line; got {name!r}")
    if not isinstance(formula, str):
        raise ValueError(f"label: expected a formula as text; got {formula!r}")
