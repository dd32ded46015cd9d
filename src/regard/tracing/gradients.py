"""Which tensor is the gradient for which: a hook on everything that a backward pass inside the trace may reach."""

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.tracing.record import Record, Ref

if TYPE_CHECKING:
    from regard.tracing.tape import Tape


class Gradients:
    """For a record the records of its gradients, and for each backward pass the tensors that it began at."""

    def __init__(self, tape: "Tape") -> None:
        self._tape, self._thread = tape, threading.get_ident()
        self._hooks: dict[int, Any] = {}
        self._leaves: dict[int, tuple[weakref.ref[Tensor], list[int]]] = {}
        """By identity: what an optimiser writes to is another record then, but the same tensor."""
        self.of: dict[int, list[tuple[int, int]]] = {}
        """Each with its pass, in their order."""
        self._roots: dict[int, set[int]] = {}
        self._within: dict[int, int] = {}
        """Of a backward pass the one in whose course it ran: a checkpoint differentiates its part by itself."""
        self._running: list[int] = []

    def watch(self, tensor: Tensor, number: int) -> None:
        """Be told of the gradient for a tensor. Hooks return nothing, so the gradient stays what it is."""
        if self._running and torch._C._current_graph_task_id() < 0:
            self._running.clear()
        if not tensor.requires_grad or number in self._hooks or not torch.is_grad_enabled():
            return
        if tensor.is_leaf:
            earlier = self.numbers(tensor)
            if earlier:  # what it is now has its gradients from here on
                self._hooks[earlier[-1]].remove()
            self._leaves[id(tensor)] = weakref.ref(tensor), [*earlier, number]
        receive: Callable[[Tensor | None], None] = partial(self._receive, number)
        self._hooks[number] = tensor.register_hook(receive)  # type: ignore[no-untyped-call]

    def numbers(self, tensor: Tensor) -> list[int]:
        """The records under which a tensor that code holds, like a parameter, was differentiated for."""
        known = self._leaves.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else []

    def began_at(self, target: int) -> set[int]:
        """The backward passes that began at a tensor, with the gradient 1, and those that are parts of such."""
        found = {each for each, roots in self._roots.items() if target in roots}
        for run, around in self._within.items():  # in the order in which they began
            if around in found and run not in self._roots:
                found.add(run)
        return found

    def _receive(self, number: int, gradient: Tensor | None) -> None:
        """There is none for what only the backward pass reads, like the statistics of a norm. On a GPU it is computed
        in a thread of PyTorch's own, and what it was made from is not recorded.
        """
        if gradient is not None and threading.get_ident() == self._thread:
            found, run = self._tape.number(gradient), torch._C._current_graph_task_id()
            self._runs(run)
            self.of.setdefault(number, []).append((found, run))
            if begins(self._tape.records[found], number):
                self._roots.setdefault(run, set()).add(number)

    def _runs(self, run: int) -> None:
        if run in self._running:
            del self._running[self._running.index(run) + 1 :]
            return
        if self._running:
            self._within[run] = self._running[-1]
        self._running.append(run)

    def close(self) -> None:
        for hook in self._hooks.values():
            hook.remove()
        self._hooks.clear()


def begins(record: Record, target: int) -> bool:
    """Whether this is the 1 with which a backward pass from the target begins."""
    called = record.called
    return called is not None and called.operation == "aten.ones_like" and called.args[0] == Ref(target)
