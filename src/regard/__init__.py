"""regard: sequence-to-sequence models with attention, with the arithmetic of every number in them.

The public names are imported on first use: `import regard` reads no torch and takes milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.version import __version__

if TYPE_CHECKING:
    from regard.attention import Details, attend, weigh
    from regard.data.preparing import prepare
    from regard.pipeline.model import load
    from regard.tracing import label, trace
    from regard.training.config import Config
    from regard.training.running import train

# Where each public name lives. Adding one here (and above, for type checkers) makes it public.
_HOMES = {
    "Config": "regard.training.config",
    "Details": "regard.attention",
    "attend": "regard.attention",
    "label": "regard.tracing",
    "load": "regard.pipeline.model",
    "prepare": "regard.data.preparing",
    "trace": "regard.tracing",
    "train": "regard.training.running",
    "weigh": "regard.attention",
}

__all__ = ["Config", "Details", "__version__", "attend", "label", "load", "prepare", "trace", "train", "weigh"]


# Rooms that may be reached as attributes: `regard.attention.explain_choice` after `import regard` alone.
_ROOMS = (
    "attention",
    "config",
    "data",
    "decoding",
    "evaluation",
    "models",
    "pipeline",
    "text",
    "tracing",
    "training",
    "worked",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"regard.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
