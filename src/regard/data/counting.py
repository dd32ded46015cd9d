"""What a preparation counted, for its manifest. Nothing is left out anywhere that does not show up here."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from regard.data.cleaning import TOKENS
from regard.data.deciding import DEV, REASONS, TEST, Fates, Overlap, Read, count

Note = Mapping[str, Any]
"""What a worker wrote down about a shard."""


def counted(
    train: Sequence[Read],
    others: Mapping[str, Sequence[Read]],
    notes: Sequence[Note],
    fates: Fates,
    overlaps: Mapping[str, Overlap],
) -> dict[str, Any]:
    """For each split that was read: how much, what cannot be used, what was left out, and where the rest went."""
    left = Counter({reason: count(fates, fate) for fate, reason in REASONS.items()})
    left[TOKENS] = sum(note["too_long"] for note in notes)
    found: dict[str, Any] = {"train": _summed(train, left)}
    found["train"]["held out"] = {name: n for name, fate in (("dev", DEV), ("test", TEST)) if (n := count(fates, fate))}
    for split, reads in others.items():
        found[split] = _summed(reads, Counter()) | {"shared with train": overlaps[split]}
        if unseen := _unseen(train, reads):
            found[split]["names that train never shows"] = unseen
    return found


def _summed(reads: Sequence[Read], left: Counter[str]) -> dict[str, Any]:
    bad: Counter[str] = Counter()
    for each in reads:
        bad.update(each.record.bad)
        left.update(each.record.left_out)
    return {
        "read": sum(each.record.read for each in reads),
        "cannot be used": dict(sorted(bad.items())),
        "left out": {reason: number for reason, number in sorted(left.items()) if number},
        "changed by the normal form": sum(each.record.changed for each in reads),
        "sources": [{"name": r.record.name, "read": r.record.read, "kept": r.record.kept} for r in reads],
    }


def _unseen(train: Sequence[Read], reads: Sequence[Read]) -> list[str]:
    """Tags or labels that a model can only guess at."""
    known = {name for each in train for names in each.record.names.values() for name in names}
    return sorted({name for each in reads for names in each.record.names.values() for name in names} - known)
