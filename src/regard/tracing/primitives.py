"""Global settings under which fused operations run as their primitives, and back to what they were."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


class Shared:
    """The settings as all traces have them: the first sets them, and whichever is the last to leave puts them back."""

    def __init__(self) -> None:
        self._lock, self._depth, self._eager = Lock(), 0, False
        self._stack = ExitStack()

    def enter(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._set()
            # The first import of dynamo costs a second, and what is not loaded has compiled nothing.
            if "torch._dynamo" in sys.modules and not self._eager:
                self._stack.enter_context(torch.compiler.set_stance("force_eager"))
                self._eager = True
            self._depth += 1

    def leave(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._eager = False
                self._stack.close()

    def _set(self) -> None:
        with ExitStack() as stack:
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            stack.enter_context(_switched_off(torch.backends.mkldnn))
            stack.enter_context(_switched_off(torch.backends.cudnn))
            stack.enter_context(_without_fast_path())
            stack.enter_context(_quiet("Using `torch.compile\\(module\\)` when there are global hooks"))
            self._stack = stack.pop_all()


SHARED = Shared()


@contextmanager
def primitives() -> Iterator[None]:
    """Within it attention, recurrent cells and encoder layers come apart; compiled code runs eagerly."""
    SHARED.enter()
    try:
        yield
    finally:
        SHARED.leave()


@contextmanager
def _switched_off(backend: Any) -> Iterator[None]:
    """Its `flags` would also set, and so change, what is not asked for."""
    before = backend.enabled
    backend.enabled = False
    try:
        yield
    finally:
        backend.enabled = before


@contextmanager
def _quiet(message: str) -> Iterator[None]:
    """Without a warning about what is meant so. Other filters that are set meanwhile stay."""
    warnings.filterwarnings("ignore", message)
    own = warnings.filters[0]
    try:
        yield
    finally:
        if own in warnings.filters:
            warnings.filters.remove(own)  # type: ignore[attr-defined]


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """nn.TransformerEncoder has a fused kernel of its own."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
