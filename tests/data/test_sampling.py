"""Shares of an epoch by temperature."""

from pathlib import Path

import numpy as np
import pytest

from regard.data.batches import Batches, BatchSettings
from regard.data.sampling import shares_of, tempered
from regard.data.shards import Column, ShardSet
from tests.data.sets import TOKENS, of


def test_shares_follow_the_root_of_the_counts() -> None:
    counts = np.array([160_000, 10_000, 10])
    assert shares_of(counts, 1).tolist() == counts.tolist()
    # 400 + 100 + √10, of 170,010
    assert shares_of(counts, 2) == pytest.approx([170_010 * root / 503.16228 for root in (400, 100, 3.16228)], abs=1)
    assert shares_of(counts, 5).sum() == 170_010
    assert np.ptp(shares_of(np.array([5, 500, 50]), 100)) < 10


def test_all_of_a_group_come_equally_often() -> None:
    groups = np.array([0] * 900 + [1] * 70 + [2] * 30)
    often = np.zeros(1000, int)
    for epoch in range(7):
        rows = tempered(groups, 3, seed=4, epoch=epoch)
        assert len(rows) == 1000
        np.add.at(often, rows, 1)
    for group in range(3):
        assert np.ptp(often[groups == group]) <= 1
    assert often[:900].mean() < 7 < 2 * 7 < often[970:].mean()


def test_seed_and_epoch_decide() -> None:
    groups = np.array([0] * 90 + [1] * 10)
    first = tempered(groups, 2, seed=1, epoch=0).tolist()
    assert tempered(groups, 2, seed=1, epoch=0).tolist() == first
    assert sorted(tempered(groups, 2, seed=1, epoch=1).tolist()) != sorted(first)
    assert sorted(tempered(groups, 2, seed=2, epoch=0).tolist()) != sorted(first)


def _two_pairs(folder: Path) -> ShardSet:
    columns = {"source": TOKENS, "target": TOKENS, "pair": Column("uint16", "names", 2)}
    told = {"source": [[5, 3]] * 100, "target": [[6, 3]] * 100, "pair": [[int(n >= 80)] for n in range(100)]}
    return of(folder, columns, told, pair=["en-de", "en-bn"])


def test_batches_draw_pairs_by_temperature_and_go_on_exactly(tmp_path: Path) -> None:
    examples = _two_pairs(tmp_path)
    batches = Batches(examples, BatchSettings(tokens=20, temperature=5))
    first = [batch.rows.tolist() for batch in batches]
    small = sum(row >= 80 for rows in first for row in rows)
    assert small == shares_of(np.array([80, 20]), 5)[1] == 43
    coming = iter(batches)
    seen = [next(coming).rows.tolist() for _ in range(3)]
    after = Batches(examples, BatchSettings(tokens=20, temperature=5))
    after.restore(batches.state())
    rest = [batch.rows.tolist() for batch in after]
    whole = Batches(examples, BatchSettings(tokens=20, temperature=5))
    list(whole)
    assert [batch.rows.tolist() for batch in whole] == [*seen, *rest]
    assert batches.empty() == pytest.approx(0)


def test_at_one_and_without_shuffling_every_example_comes_once(tmp_path: Path) -> None:
    examples = _two_pairs(tmp_path)
    for batches in (
        Batches(examples, BatchSettings(tokens=20)),
        Batches(examples, BatchSettings(tokens=20, temperature=5), shuffle=False),
    ):
        assert sorted(row for batch in batches for row in batch.rows.tolist()) == list(range(100))
