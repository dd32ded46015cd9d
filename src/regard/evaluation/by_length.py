"""Scores by the length of the source: where a context of one vector gives in, and attention does not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from regard.evaluation.scores import Score

EDGES: Final = (10, 20, 30, 40)
"""The last length, in words, of each bucket but the last one, which is open."""
FEW: Final = 30
"""A score of fewer sentences than this says little."""


@dataclass(frozen=True)
class Bucket:
    """Sources of like lengths and how good their outputs are."""

    first: int
    last: int | None
    """None where there is no end."""
    count: int
    score: Score | None
    """None where there is no source of such a length."""

    @property
    def name(self) -> str:
        return f"over {self.first - 1}" if self.last is None else f"{self.first}-{self.last}"

    @property
    def few(self) -> bool:
        return self.count < FEW


def by_length(
    lengths: Sequence[int], score: Callable[[list[int]], Score], edges: Sequence[int] = EDGES
) -> tuple[Bucket, ...]:
    """`score` is asked for the score of the examples at some places; a source without words counts as one of 1."""
    bounds = list(zip([1, *(edge + 1 for edge in edges)], [*edges, None], strict=True))
    found = []
    for first, last in bounds:
        places = [
            place for place, length in enumerate(lengths)
            if max(length, 1) >= first and (last is None or max(length, 1) <= last)
        ]  # fmt: skip
        found.append(Bucket(first, last, len(places), score(places) if places else None))
    return tuple(found)
