"""Duplicates, overlaps with held-out sets, and the sample that tokenizers learn from."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import deciding, duplicates
from regard.data.deciding import chosen_evenly
from regard.data.duplicates import repeats

FEW = settings(deadline=None, derandomize=True, max_examples=100)


def hashes(keys: list[int]) -> np.ndarray:
    """[rows, 2]: equal where keys are, and half equal where they are not."""
    return np.array([[key // 3, key % 3] for key in keys], np.uint64).reshape(-1, 2)


@FEW
@given(st.lists(st.integers(0, 20), max_size=80), st.integers(1, 30), st.integers(1, 90))
def test_all_but_the_first_of_its_like_came_before(
    tmp_path_factory: pytest.TempPathFactory, keys: list[int], chunk: int, at_once: int
) -> None:
    fates = np.zeros(len(keys), np.uint8)
    whole = hashes(keys)
    chunks: Iterator[np.ndarray] = (whole[start : start + chunk] for start in range(0, len(keys), chunk))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates, "SORTED_AT_ONCE", at_once)
        found = repeats(chunks, len(keys), fates, 3, tmp_path_factory.getbasetemp())
    expected = [3 * (key in keys[:place]) for place, key in enumerate(keys)]
    assert fates.tolist() == expected
    assert found == expected.count(3)


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_a_sample_is_of_the_size_asked_for_and_even(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "CHUNK", chunk)
    fates = np.array([0, 1, 0, 0, 2] * 60, np.uint8)
    kept = set(np.flatnonzero(fates == 0).tolist())
    often = np.zeros(300)
    for seed in range(200):
        rows = [row for each in chosen_evenly(fates, 0, 90, seed) for row in each.tolist()]
        assert len(rows) == 90
        assert rows == sorted(set(rows))
        assert set(rows) <= kept
        often[rows] += 1
    share = often[sorted(kept)] / 200
    assert share.mean() == pytest.approx(0.5)
    assert share.std() < 0.06  # of 200 draws of a half it is 0.035
    assert abs(share[:90].mean() - share[90:].mean()) < 0.02


def test_a_sample_larger_than_the_data_is_all_of_them() -> None:
    fates = np.array([0, 1, 0], np.uint8)
    assert [row for each in chosen_evenly(fates, 0, 10, 0) for row in each.tolist()] == [0, 2]
    assert [row for each in chosen_evenly(fates, 5, 10, 0) for row in each.tolist()] == []
