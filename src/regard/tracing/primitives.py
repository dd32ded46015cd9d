"""Global settings under which fused operations run as their primitives, and back to what they were."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


@contextmanager
def primitives() -> Iterator[None]:
    """Within it attention, recurrent cells and encoder layers come apart; compiled code runs eagerly."""
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(_switched_off(torch.backends.mkldnn))
        stack.enter_context(_switched_off(torch.backends.cudnn))
        stack.enter_context(_without_fast_path())
        stack.enter_context(_quiet("Using `torch.compile\\(module\\)` when there are global hooks"))
        # The first import of dynamo costs a second, and what is not loaded has compiled nothing.
        if "torch._dynamo" in sys.modules:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield


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
