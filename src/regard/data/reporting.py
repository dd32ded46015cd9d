"""The report of a preparation: everything that was counted, in words."""

from collections.abc import Iterator, Mapping
from typing import Any


def report(manifest: Mapping[str, Any]) -> str:
    """A paragraph for each split."""
    counts = manifest["counts"]
    return "\n".join(line for name, split in manifest["splits"].items() for line in _split(name, split, counts))


def _split(name: str, split: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[str]:
    made = [_values(column, number, split["unknown"]) for column, number in split["values"].items()]
    yield f"{name}: " + ", ".join([f"{split['examples']:,} examples", *made])
    if name not in counts:
        yield "  held out of train"
        return
    own = counts[name]
    for source in own["sources"]:
        yield f"  {source['read']:,} read from {source['name']}"
    for what in ("cannot be used", "left out"):
        if own[what]:
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in own[what].items())
            yield f"  {sum(own[what].values()):,} {what}: {reasons}"
    if own["changed by the normal form"]:
        yield f"  {own['changed by the normal form']:,} texts changed by the normal form"
    if held := own.get("held out"):
        yield f"  held out: {', '.join(f'{number:,} for {split}' for split, number in held.items())}"
    yield from _shared(name, own)


def _shared(name: str, own: Mapping[str, Any]) -> Iterator[str]:
    shared = own.get("shared with train", {})
    if shared.get("side"):
        yield f"  {shared['pair']:,} training examples stand in it too, {shared['side']:,} share a side with it"
    if names := own.get("names that train never shows"):
        yield f"  names that train never shows: {', '.join(names)}"


def _values(column: str, number: int, unknown: Mapping[str, int]) -> str:
    lost = unknown.get(column, 0)
    return f"{number:,} {column} tokens" + (f" ({lost / max(number, 1):.2%} unknown)" if lost else "")
