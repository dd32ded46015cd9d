"""Which tensor is the gradient for which: a hook on everything that a backward pass inside the trace may reach."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from regard.tracing.tape import Tape


class Gradients:
    """For a record the records of its gradients, one for each backward pass, in their order."""

    def __init__(self, tape: "Tape") -> None:
        self._tape, self._thread = tape, threading.get_ident()
        self._hooks: dict[int, Any] = {}
        self.of: dict[int, list[int]] = {}

    def watch(self, tensor: Tensor, number: int) -> None:
        """Be told of the gradient for a tensor. Hooks return nothing, so the gradient stays what it is."""
        if not tensor.requires_grad or number in self._hooks or not torch.is_grad_enabled():
            return
        receive: Callable[[Tensor | None], None] = partial(self._receive, number)
        self._hooks[number] = tensor.register_hook(receive)  # type: ignore[no-untyped-call]

    def _receive(self, number: int, gradient: Tensor | None) -> None:
        """There is none for what only the backward pass reads, like the statistics of a norm. On a GPU it is computed
        in a thread of PyTorch's own, and what it was made from is not recorded.
        """
        if gradient is not None and threading.get_ident() == self._thread:
            self.of.setdefault(number, []).append(self._tape.number(gradient))

    def close(self) -> None:
        for hook in self._hooks.values():
            hook.remove()
        self._hooks.clear()
