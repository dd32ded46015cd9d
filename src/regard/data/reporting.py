"""The report of a preparation: everything that was counted, in words."""

from collections.abc import Mapping
from typing import Any


def report(manifest: Mapping[str, Any]) -> str:
    """One paragraph a split, one line for the tokenizers."""
    return "\n".join(_split(name, each) for name, each in manifest["counts"].items())


def _split(name: str, counts: Mapping[str, Any]) -> str:
    parts = [f"{counts['read']:,} read"]
    parts += [
        f"{sum(counts[what].values()):,} {what} ({_reasons(counts[what])})"
        for what in ("cannot be used", "left out")
        if counts[what]
    ]
    return f"{name}: {'; '.join(parts)}"


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {reason}" for reason, number in counts.items())
