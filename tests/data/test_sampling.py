"""Shares of an epoch by temperature."""

import numpy as np
import pytest

from regard.data.sampling import shares_of, tempered


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
