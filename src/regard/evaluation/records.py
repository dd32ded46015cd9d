"""An assessment as plain values, for JSON."""

from collections.abc import Hashable, Mapping
from typing import Any

from regard.evaluation.assessment import Assessment
from regard.evaluation.scores import F1


def record(found: Assessment) -> dict[str, Any]:
    """Scores with their signatures, by length, diagnostics, labels, and what they came about with."""
    held: dict[str, Any] = {
        "model": found.model, "data": found.examples.name, "examples": len(found.examples),
        "scores": {
            score.name: {"value": score.value, **({"signature": score.signature} if score.signature else {})}
            for score in found.scores
        },
        "by_length": [
            {"words": each.name, "sentences": each.count, "score": each.score.value if each.score else None}
            for each in found.lengths
        ],
        "settings": found.settings,
    }  # fmt: skip
    if found.diagnostics is not None:
        shares = {key: value for key, value in vars(found.diagnostics).items() if key != "worst"}
        held["diagnostics"] = shares | {"hints": list(found.diagnostics.hints)}
        held["worst"] = [vars(each) | {"place": each.place + 1} for each in found.diagnostics.worst]
    if found.by_label:
        held["labels"] = _f1s(found.by_label)
        if found.by_span:
            held["spans"] = _f1s(found.by_span)
        held["confusion"] = [
            {"true": str(true), "told": str(said), "count": count} for (true, said), count in found.confusion.items()
        ]
    return held


def _f1s(each: Mapping[Hashable, F1]) -> dict[str, dict[str, float]]:
    return {
        str(name): {"precision": one.precision, "recall": one.recall, "f1": one.f1, "true": one.true}
        for name, one in each.items()
    }
