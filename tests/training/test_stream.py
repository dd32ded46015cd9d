"""Batches without end, from any position."""

from pathlib import Path

import numpy as np
import pytest

from regard.data.batch_settings import BatchSettings
from regard.training.stream import Stream
from regard.training.views import View
from tests.data.sets import captions, pairs


def rows(stream: Stream, count: int) -> list[list[int]]:
    """The examples of the next batches, by the tokens that tell them apart."""
    return [stream.source.gather("source", stream.next().rows)[0].tolist() for _ in range(count)]


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("behind", [0, 1, 7, 25, 26, 40])
def test_a_stream_goes_on_behind_any_batch(tmp_path: Path, temperature: float, behind: int) -> None:
    examples = captions(tmp_path, 300)
    groups = (np.arange(300) >= 250).astype(np.int64)
    made = [
        Stream(examples, BatchSettings(tokens=200, shapes=4), seed=3, groups=groups, temperature=temperature)
        for _ in range(2)
    ]
    rows(made[0], behind)
    made[1].restore(made[0].state())
    assert made[1].epochs == pytest.approx(made[0].epochs)
    assert rows(made[0], 30) == rows(made[1], 30)
    for each in made:
        each.close()


def test_an_epoch_holds_every_example_once_and_the_next_in_another_order(tmp_path: Path) -> None:
    stream = Stream(captions(tmp_path, 300), BatchSettings(tokens=200), seed=3)
    first = rows(stream, stream.batches_an_epoch())
    assert stream.epochs == 1
    assert sum(map(len, first)) == int(stream.source.lengths("source").sum())
    assert first != rows(stream, stream.batches_an_epoch())
    stream.close()


def test_a_temperature_brings_small_groups_more_often(tmp_path: Path) -> None:
    examples = pairs(tmp_path, [(3, 3)] * 100)
    groups = (np.arange(100) >= 90).astype(np.int64)
    stream = Stream(examples, BatchSettings(tokens=30, ahead=0), seed=1, groups=groups, temperature=2.0)
    seen = np.concatenate([
        np.asarray(stream.source.index)[stream.next().rows] for _ in range(stream.batches_an_epoch())  # type: ignore[attr-defined]
    ])  # fmt: skip
    expected = 100 * 10**0.5 / (10**0.5 + 90**0.5)
    assert (seen >= 90).sum() == pytest.approx(expected, abs=1)
    stream.close()


def test_a_view_gives_examples_in_its_own_order(tmp_path: Path) -> None:
    examples = pairs(tmp_path, [(1, 2), (2, 3), (3, 4)])
    view = View(examples, np.array([2, 0, 0]))
    assert len(view) == 3
    assert view.lengths("target").tolist() == [4, 2, 2]
    assert view.tokens("source", 0).tolist() == [6, 6, 6]
    assert str(view.origin(0)) == "memory:3"
    assert view.gather("source", [1, 0])[0].tolist() == [4, 6, 6, 6]
    own = View(examples, as_source=True)
    assert own.tokens("source", 1).tolist() == examples.tokens("target", 1).tolist()
