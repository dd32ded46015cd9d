"""Small shard sets for tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.shards import Column, ShardSet
from regard.data.writing import write_set

TOKENS = Column("uint16", "tokens", 1000)


def pairs(folder: Path, lengths: Sequence[tuple[int, int]]) -> ShardSet:
    """Pairs of these lengths. Every token of example n is 4 + n (on the target's side </s> stands behind)."""
    source = [[4 + n] * s for n, (s, _) in enumerate(lengths)]
    target = [[4 + n] * (t - 1) + [3] for n, (_, t) in enumerate(lengths)]
    write_set(folder, {"source": TOKENS, "target": TOKENS}, {"source": source, "target": target}, rows_a_shard=64)
    return ShardSet(folder)


def captions(folder: Path, count: int = 3000, seed: int = 0) -> ShardSet:
    """Pairs with lengths like those of image captions and their translations: 14 tokens on average, up to 50."""
    random = np.random.default_rng(seed)
    source = np.clip(np.rint(random.lognormal(2.6, 0.3, count)), 4, 50).astype(int)
    target = np.clip(np.rint(source * random.lognormal(0.05, 0.15, count)), 3, 50).astype(int)
    return pairs(folder, list(zip(source.tolist(), target.tolist(), strict=True)))


def of(
    folder: Path, columns: dict[str, Column], examples: dict[str, Sequence[Any]], **names: Sequence[str]
) -> ShardSet:
    """A set of any columns."""
    write_set(folder, columns, examples, names=names)
    return ShardSet(folder)
