"""Batches: what is in them, which come in an epoch, how little of them is empty, and going on in the middle."""

import json
import pickle
import re
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batches import Batches, BatchSettings
from regard.data.planning import planned
from regard.data.shapes import choose
from regard.data.shards import ShardSet
from regard.support.errors import Misuse
from tests.data.sets import captions, pairs

FEW = settings(deadline=None, derandomize=True, max_examples=100)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> ShardSet:
    return captions(tmp_path_factory.mktemp("captions"))


def rows(batches: Batches) -> list[list[int]]:
    return [batch.rows.tolist() for batch in batches]


def test_a_batch_holds_its_examples_side_by_side(tmp_path: Path) -> None:
    batch = next(iter(Batches(pairs(tmp_path, [(2, 3), (4, 2)]), BatchSettings(tokens=40), shuffle=False)))
    assert batch.rows.tolist() == [1, 0]
    assert batch.source is not None
    assert batch.source.tolist() == [[5, 5, 5, 5], [4, 4, 0, 0]]
    assert batch.target is not None
    assert batch.target.tolist() == [[5, 3, 0], [4, 4, 3]]
    assert (batch.source.dtype, batch.target.dtype) == (torch.int64, torch.int64)
    assert batch.lengths is not None
    assert batch.target_lengths is not None
    assert (batch.lengths.tolist(), batch.target_lengths.tolist()) == ([4, 2], [2, 3])
    assert (batch.tokens, batch.places) == (5, 14)


@FEW
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=8, max_size=60),
    st.sampled_from(["longest", "source", "target", "both"]),
    st.integers(36, 90),
    st.sampled_from([None, 1, 3, 8]),
    st.integers(1, 4),
    st.booleans(),
)
def test_every_example_comes_once_within_the_budget_and_all_ranks_have_as_many_batches(
    lengths: list[tuple[int, int]], count: str, tokens: int, shapes: int | None, ranks: int, shuffle: bool
) -> None:
    sides = np.array(lengths)
    chosen = BatchSettings(tokens=tokens, count=count, shapes=shapes)
    bounds = None if shapes is None else choose(sides, shapes)
    plan = planned(sides, chosen, seed=1, epoch=2, shuffle=shuffle, ranks=ranks, shapes=bounds)
    assert sorted(plan.order.tolist()) == list(range(len(lengths)))
    assert len(plan) * ranks == len(plan.shapes)
    counted = {"longest": max, "both": sum, "source": lambda side: side[0], "target": lambda side: side[1]}[count]
    for batch, (height, *places) in enumerate(plan.shapes.tolist()):
        held = sides[plan.rows(batch)]
        assert 0 < len(held) <= height
        assert (held <= places).all()
        assert height * counted(places) <= tokens
        if shapes is None:
            assert (len(held), *held.max(axis=0)) == (height, *places)
    if shapes is not None:
        assert len({tuple(shape) for shape in plan.shapes.tolist()}) <= shapes


def test_no_batch_could_take_the_next_example_too(examples: ShardSet) -> None:
    batches = Batches(examples, BatchSettings(tokens=512), shuffle=False)
    plan = batches.plan()
    for batch in range(len(plan) - 1):
        more = batches.lengths[np.concatenate([plan.rows(batch), plan.rows(batch + 1)[:1]])]
        assert len(more) * more.max() > 512


def test_no_batch_has_more_examples_than_allowed(examples: ShardSet) -> None:
    for shapes in (None, 4):
        sizes = [len(each) for each in rows(Batches(examples, BatchSettings(examples=7, shapes=shapes)))]
        assert max(sizes) == 7
        assert sum(sizes) == len(examples)


def test_padding_is_little_where_shapes_are_free_and_bounded_where_they_are_bounded(examples: ShardSet) -> None:
    """Of captions, a tenth as many as the benchmark's; benchmarks/batches.py measures the real ones."""
    assert Batches(examples, BatchSettings(tokens=512)).empty() < 0.05
    bounded = Batches(examples, BatchSettings(tokens=512, shapes=16))
    assert bounded.empty() < 0.15
    assert len({tuple(shape) for shape in bounded.plan().shapes.tolist()}) <= 16
    places = sum(batch.places for batch in bounded)
    assert 1 - bounded.lengths.sum() / places == pytest.approx(bounded.empty(0))


def test_bounded_shapes_are_the_shapes_of_the_tensors_and_unfilled_rows_hold_nothing(examples: ShardSet) -> None:
    batches = Batches(examples, BatchSettings(tokens=512, shapes=5))
    shapes, unfilled = set(), 0
    for batch in batches:
        assert batch.source is not None
        assert batch.target is not None
        assert batch.lengths is not None
        shapes.add((*batch.source.shape, batch.target.shape[1]))
        empty = batch.lengths == 0
        assert empty.sum() == len(empty) - len(batch.rows)
        assert not empty[: len(batch.rows)].any()
        assert not batch.source[empty].any()
        assert not batch.target[empty].any()
        unfilled += int(empty.sum())
    assert len(shapes) <= 5
    assert 0 < unfilled < 130


def test_seed_and_epoch_decide_the_order_and_nothing_else_does(examples: ShardSet) -> None:
    first = rows(Batches(examples, BatchSettings(tokens=512, ahead=0), seed=3))
    assert rows(Batches(examples, BatchSettings(tokens=512, ahead=5), seed=3)) == first
    batches = Batches(pickle.loads(pickle.dumps(examples)), BatchSettings(tokens=512), seed=3)
    assert rows(batches) == first
    assert batches.epoch == 1
    second = rows(batches)
    assert second != first
    together = {frozenset(each) for each in first} & {frozenset(each) for each in second}
    assert len(together) < 0.2 * len(first)
    assert rows(Batches(examples, BatchSettings(tokens=512), seed=4)) != first


def test_without_shuffling_each_epoch_is_the_same(examples: ShardSet) -> None:
    batches = Batches(examples, BatchSettings(tokens=512), shuffle=False)
    assert rows(batches) == rows(batches)
    assert (np.diff([shape[2] for shape in batches.plan().shapes]) >= 0).all()


@pytest.mark.parametrize("ahead", [0, 3])
@pytest.mark.parametrize("shapes", [None, 4])
def test_an_interrupted_epoch_goes_on_exactly(examples: ShardSet, ahead: int, shapes: int | None) -> None:
    chosen = BatchSettings(tokens=512, ahead=ahead, shapes=shapes)
    whole = Batches(examples, chosen, seed=5)
    expected = [rows(whole), rows(whole)]
    before = Batches(examples, chosen, seed=5)
    list(before)
    seen = [batch.rows.tolist() for batch in islice(before, 7)]
    state = json.loads(json.dumps(before.state()))
    after = Batches(examples, chosen, seed=5)
    after.restore(state)
    assert after.epoch == 1
    assert [*seen, *rows(after)] == expected[1]
    assert after.epoch == 2


def test_the_position_behind_the_last_batch_is_the_next_epoch(examples: ShardSet) -> None:
    batches = Batches(examples, BatchSettings(tokens=512))
    for _ in batches:
        state = batches.state()
    assert (state["epoch"], state["batch"]) == (1, 0)
    assert state == batches.state()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seed": -1}, "seed: expected a whole number from 0; got -1"),
        ({"rank": 3, "ranks": 3}, "rank: expected 0 to 2, one of 3 ranks; got 3"),
    ],
)
def test_an_order_that_cannot_be_is_refused(examples: ShardSet, given: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        Batches(examples, BatchSettings(tokens=512), **given)  # type: ignore[arg-type]


def test_a_position_in_another_order_is_refused(examples: ShardSet, tmp_path: Path) -> None:
    batches = Batches(examples, BatchSettings(tokens=512))
    next(iter(batches))
    state = batches.state()
    for other, said in [
        (Batches(examples, BatchSettings(tokens=512), seed=1), "the position was saved with seed 0; here it is 1"),
        (Batches(examples, BatchSettings(tokens=512), ranks=2), "saved with ranks 1; here it is 2"),
        (Batches(examples, BatchSettings(tokens=600)), "saved with settings {'tokens': 512"),
        (Batches(captions(tmp_path, 50), BatchSettings(tokens=512)), "saved with other data"),
    ]:
        for position in (state, state | {"batch": 0, "epoch": 4}):
            with pytest.raises(Misuse, match=re.escape(said)):
                other.restore(position)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch": 10**9}, "the position is behind batch 1,000,000,000 of epoch 0, which has"),
        ({"batch": -1}, "with batch a whole number from 0; got -1"),
        ({"epoch": -1}, "with epoch a whole number from 0; got -1"),
        ({"epoch": "1"}, "with epoch a whole number from 0; got '1'"),
        ({"batch": 1.5}, "with batch a whole number from 0; got 1.5"),
        ({"batch": True}, "with batch a whole number from 0; got True"),
        ({}, "with epoch a whole number from 0; got none"),
        (None, "expected what state() gave; got None"),
        ([1, 2], "expected what state() gave; got [1, 2]"),
    ],
)
def test_a_position_that_is_none_is_refused_and_changes_nothing(examples: ShardSet, change: Any, said: str) -> None:
    batches = Batches(examples, BatchSettings(tokens=512))
    state = batches.state() | change if isinstance(change, dict) and change else change
    with pytest.raises(Misuse, match=re.escape(said)):
        batches.restore(state)
    assert (batches.epoch, batches.state()["batch"]) == (0, 0)
