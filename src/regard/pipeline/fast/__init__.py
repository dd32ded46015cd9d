"""A Transformer run by CTranslate2, where that is installed: int8 on a CPU, and no torch in the process.

    export_folder("models/en-de", "models/en-de-fast")          once: regard export
    fast = load_fast("models/en-de-fast")
    fast.translate(["A cat."], beam=5)[0].text

An exported folder holds what the engine reads (model.bin, config.json, vocabularies) and, beside it, what the text side
needs: the tokenizers, and exported.json.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.pipeline.fast.engine import Fast, is_exported, load_fast
    from regard.pipeline.fast.export import export_folder

__all__ = ["Fast", "available", "export_folder", "is_exported", "load_fast"]

_HOMES = {
    "Fast": "regard.pipeline.fast.engine",
    "export_folder": "regard.pipeline.fast.export",
    "is_exported": "regard.pipeline.fast.engine",
    "load_fast": "regard.pipeline.fast.engine",
}


def available() -> bool:
    """Whether CTranslate2 is installed."""
    return find_spec("ctranslate2") is not None


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'regard.pipeline.fast' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
