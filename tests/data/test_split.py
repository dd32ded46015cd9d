"""The dev split: whole groups of sentences that share a side, so that nothing leaks."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.data import split
from regard.data.split import SideHashes, dev_rows, side_hash

FEW = settings(deadline=None, derandomize=True, max_examples=200)
Pairs = list[tuple[str, str]]
names = st.integers(0, 30).map(str)
pairs = st.lists(st.tuples(names, names), max_size=60)


def groups(examples: Sequence[Sequence[str]]) -> list[set[int]]:
    """The connected groups, by going from example to example."""
    left, found = set(range(len(examples))), []
    while left:
        group, edge = set(), {min(left)}
        while edge:
            group |= edge
            left -= edge
            edge = {
                other for other in left for one in edge
                if any(a == b for a, b in zip(examples[one], examples[other], strict=True))
            }  # fmt: skip
        found.append(group)
    return found


@FEW
@given(pairs, st.integers(0, 40), st.integers(0, 5))
@example([("a", "x"), ("b", "x"), ("b", "y"), ("c", "z")], 3, 0)
def test_whole_groups_are_taken_and_never_more_than_asked(examples: Pairs, size: int, seed: int) -> None:
    rows = dev_rows(examples, size, seed)
    assert len(rows) <= size
    assert rows.tolist() == sorted(set(rows.tolist()))
    for group in groups(examples):
        assert group <= set(rows.tolist()) or group.isdisjoint(rows.tolist())


@FEW
@given(pairs, st.integers(0, 40), st.integers(0, 5))
def test_neither_side_of_a_dev_example_stands_in_training(examples: Pairs, size: int, seed: int) -> None:
    dev = set(dev_rows(examples, size, seed).tolist())
    for side in (0, 1):
        held_out = {each[side] for row, each in enumerate(examples) if row in dev}
        assert held_out.isdisjoint(each[side] for row, each in enumerate(examples) if row not in dev)


@FEW
@given(st.lists(st.tuples(names, names, names), max_size=40), st.integers(0, 40))
def test_any_number_of_sides_may_be_shared(examples: list[tuple[str, str, str]], size: int) -> None:
    rows = set(dev_rows(examples, size, 0).tolist())
    assert all(group <= rows or group.isdisjoint(rows) for group in groups(examples))


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_how_much_is_read_at_a_time_changes_nothing(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)
    examples = [(str(a), str(b)) for a, b in random.integers(0, 900, (600, 2))]
    at_once = dev_rows(examples, 60, 3)
    monkeypatch.setattr(split, "CHUNK", chunk)
    monkeypatch.setattr(split, "BUFFER", 8)
    assert dev_rows(examples, 60, 3).tolist() == at_once.tolist() != []


def test_without_shared_sides_exactly_as_many_as_asked_come() -> None:
    examples = [(f"a{n}", f"b{n}") for n in range(5000)]
    rows = dev_rows(examples, 200, 0)
    assert len(rows) == 200
    assert 2000 < rows.mean() < 3000


def test_the_seed_decides() -> None:
    examples = [(f"a{n}", f"b{n}") for n in range(500)]
    assert dev_rows(iter(examples), 50, 1).tolist() == dev_rows(examples, 50, 1).tolist()
    assert dev_rows(examples, 50, 1).tolist() != dev_rows(examples, 50, 2).tolist()


def test_a_group_that_holds_most_of_the_data_stays_in_training() -> None:
    """A label everything shares, or sentences that all hang together, however they are spread over the file."""
    chain = [(f"c{n // 2}", f"d{(n + 1) // 2}") for n in range(900)]
    alone = [(f"a{n}", f"b{n}") for n in range(100)]
    rows = dev_rows([*chain[:500], *alone, *chain[500:]], 80, 0)
    assert len(rows) > 0
    assert set(rows.tolist()) <= set(range(500, 600))
    assert dev_rows([(f"a{n}", "x") for n in range(1000)], 100, 0).tolist() == []


def test_large_groups_are_not_followed_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is bounded by the size of the dev split, whatever the data hang together like."""
    taken = []
    whole = split._Groups.take

    def counted(self: split._Groups, rows: np.ndarray, hashes: np.ndarray) -> None:
        taken.append(len(rows))
        whole(self, rows, hashes)

    monkeypatch.setattr(split._Groups, "take", counted)
    dev_rows([(f"a{n}", f"b{n % 3}") for n in range(20_000)], 20, 0)
    assert sum(taken) < 500


def test_case_white_space_and_composed_accents_make_no_other_sentence() -> None:
    assert side_hash("Hola,  \u00e9l") == side_hash("hola, e\u0301l ")
    assert side_hash("a b") != side_hash("ab")
    assert dev_rows([("Thanks", "Danke"), ("thanks ", "Merci")], 1, 0).tolist() == []


def test_kinds_are_drawn_in_equal_shares_but_no_more_than_a_tenth_of_any() -> None:
    with SideHashes() as hashes:
        for n in range(2110):
            hashes.add((f"a{n}", f"b{n}"))
        kinds = [[range(1000), range(1110, 2110)], [range(1000, 1100)], *([range(n, n + 1)] for n in range(1100, 1110))]
        test, dev = hashes.held_out_rows([60, 90], 0, kinds)
    for rows, size, small in ((test, 60, 10), (dev, 90, 10)):
        assert len(rows) == size
        assert sum(1000 <= row < 1100 for row in rows) == small
        assert not any(1100 <= row < 1110 for row in rows)
        assert sum(row >= 1110 for row in rows) > 15
    assert set(test.tolist()).isdisjoint(dev.tolist())


def test_equal_sides_in_other_columns_hang_together_only_across() -> None:
    examples = [("a", "b"), ("c", "a")]
    for across, sizes in [(True, {0}), (False, {1})]:
        with SideHashes(across=across) as hashes:
            for sides in examples:
                hashes.add(sides)
            assert {len(hashes.dev_rows(1, seed)) for seed in range(5)} == sizes


def test_examples_of_other_sides_are_refused() -> None:
    with SideHashes() as hashes:
        hashes.add(("a", "b"))
        with pytest.raises(ValueError, match="example 1: expected 2 sides; got 1 sides"):
            hashes.add(("a",))
        with pytest.raises(ValueError, match=re.escape("example 1: expected 2 sides; got a text")):
            hashes.add("ab")
        with pytest.raises(ValueError, match="size: expected 0 or more; got -1"):
            hashes.dev_rows(-1, 0)
        assert len(hashes) == 1
