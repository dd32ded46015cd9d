"""What was computed: any PyTorch computation as a derivation, down to each number."""

from typing import TYPE_CHECKING, Any

from regard.tracing.labels import active, label

if TYPE_CHECKING:
    from regard.tracing.derivation import Derivation
    from regard.tracing.tape import Tape, trace

# Whoever only labels does not load what records.
_HOMES = {"Derivation": "regard.tracing.derivation", "Tape": "regard.tracing.tape", "trace": "regard.tracing.tape"}

__all__ = ["Derivation", "Tape", "active", "label", "trace"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard.tracing' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
