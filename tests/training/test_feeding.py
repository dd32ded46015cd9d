"""Batches as models take them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.collating import NOTHING, Batch, collate
from regard.training.feeding import feed, noised, shared, shifted
from regard.training.settings import NoiseSettings
from tests.data.sets import pairs

CPU = torch.device("cpu")


def batch(folder: Path, rows: int = 5) -> Batch:
    examples = pairs(folder, [(3 + n, 4 + n) for n in range(rows)])
    return collate(examples, np.arange(rows))


def test_what_is_fed_is_one_place_behind_what_is_wanted(tmp_path: Path) -> None:
    fed = feed(batch(tmp_path, 2), start=2, device=CPU)
    assert fed.target is not None
    assert fed.target.tolist() == [[2, 4, 4, 4, 3], [2, 5, 5, 5, 5]]
    assert fed.wanted.tolist() == [[4, 4, 4, 3, NOTHING], [5, 5, 5, 5, 3]]
    assert fed.lengths.tolist() == [3, 4]


def test_rows_that_no_example_fills_want_nothing(tmp_path: Path) -> None:
    examples = pairs(tmp_path, [(2, 3)])
    fed = feed(collate(examples, np.arange(1), (3, 4, 5)), start=2, device=CPU)
    assert (fed.wanted[1:] == NOTHING).all()
    assert fed.lengths.tolist() == [2, 0, 0]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 7])
def test_processes_share_every_row_of_a_batch_once(tmp_path: Path, ranks: int) -> None:
    whole = batch(tmp_path)
    parts = [shared(whole, rank, ranks) for rank in range(ranks)]
    assert sorted(int(row) for part in parts for row in part.rows) == list(range(5))
    assert sum(part.tokens for part in parts) == whole.tokens
    for part in parts[5:]:  # those without a row of their own do the same work and learn nothing of it
        fed = feed(part, start=2, device=CPU)
        assert fed.source.shape[0] == 1
        assert (fed.wanted == NOTHING).all()


def test_shifting_leaves_the_target_as_it_is() -> None:
    target = torch.tensor([[5, 6, 3]])
    assert shifted(target, 2).tolist() == [[2, 5, 6]]
    assert target.tolist() == [[5, 6, 3]]


def reconstructed(tmp_path: Path, noise: NoiseSettings, seed: int = 0) -> tuple[list[list[int]], list[list[int]]]:
    target = torch.tensor([[*range(10, 40), 3, 0, 0], [*range(50, 82), 3]])
    given = Batch(np.arange(2), target=target, target_lengths=torch.tensor([31, 33]))
    made = noised(given, noise, (1, 2, seed))
    assert made.source is not None
    assert made.lengths is not None
    rows = zip(made.source.tolist(), made.lengths.tolist(), strict=True)
    return [row[:length] for row, length in rows], [target[0, :31].tolist(), target[1].tolist()]


def test_noise_drops_hides_and_moves_tokens_and_keeps_the_end(tmp_path: Path) -> None:
    whole, target = reconstructed(tmp_path, NoiseSettings())
    assert whole == target
    dropped, _ = reconstructed(tmp_path, NoiseSettings(drop=0.5))
    for row, truth in zip(dropped, target, strict=True):
        assert row == [each for each in truth if each in row]
        assert 5 < len(row) < 27
        assert row[-1] == 3
    hidden, _ = reconstructed(tmp_path, NoiseSettings(mask=0.5))
    assert all(a in (b, 1) for row, truth in zip(hidden, target, strict=True) for a, b in zip(row, truth, strict=True))
    assert 15 < sum(each == 1 for row in hidden for each in row) < 48
    moved, _ = reconstructed(tmp_path, NoiseSettings(shuffle=3))
    for row, truth in zip(moved, target, strict=True):
        assert sorted(row) == sorted(truth)
        assert row != truth
        assert max(abs(row.index(each) - truth.index(each)) for each in truth) < 3


def test_noise_is_the_same_for_the_same_place_in_training_and_another_for_others(tmp_path: Path) -> None:
    noise = NoiseSettings(drop=0.3, shuffle=4)
    assert reconstructed(tmp_path, noise) == reconstructed(tmp_path, noise)
    assert reconstructed(tmp_path, noise) != reconstructed(tmp_path, noise, seed=1)
