"""The few shapes that all batches have: as little waste as any shelves allow."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.shapes import EDGES, choose, edges

FEW = settings(deadline=None, derandomize=True, max_examples=60)


def places(lengths: np.ndarray, shapes: np.ndarray) -> int:
    """Places that the examples take, each in the smallest shape it fits."""
    fits = (lengths[:, None] <= shapes[None]).all(axis=2)
    return int(np.where(fits, shapes.sum(axis=1)[None], 10**9).min(axis=1).sum())


def shelves(sources: list[int], targets: list[int], count: int) -> list[list[tuple[int, int]]]:
    """All sets of shapes where the targets are cut first and each shelf's sources on their own."""
    if not targets:
        return [[]]
    found = []
    for end in range(1, len(targets) + 1):
        for taken in range(1, count + 1):
            for cuts in combinations(sources[:-1], taken - 1):
                shelf = [(s, targets[end - 1]) for s in (*cuts, sources[-1])]
                found += [shelf + rest for rest in shelves(sources, targets[end:], count - taken)]
    return found


@FEW
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=12), st.integers(1, 4))
def test_no_shelves_waste_less(lengths: list[tuple[int, int]], count: int) -> None:
    sides = np.array(lengths)
    shapes = choose(sides, count)
    assert len(shapes) <= count
    assert (sides <= shapes[-1]).all()
    sources, targets = sorted(set(sides[:, 0].tolist())), sorted(set(sides[:, 1].tolist()))
    best = min(places(sides, np.array(each)) for each in shelves(sources, targets, count) if each)
    assert places(sides, shapes) <= best


def test_one_side_is_cut_where_it_pays_most() -> None:
    assert choose(np.array([[3]] * 50 + [[4]] * 20 + [[9]] * 40 + [[10]]), 2).tolist() == [[4], [10]]


def test_as_many_shapes_as_lengths_waste_nothing() -> None:
    sides = np.array([(1, 5), (2, 3), (7, 7), (2, 3)])
    assert places(sides, choose(sides, 9)) == sides.sum()


@pytest.mark.parametrize("count", [1, 16])
def test_many_different_lengths_are_cut_at_quantiles(count: int) -> None:
    sides = np.random.default_rng(0).integers(1, 900, (4000, 2))
    assert len(edges(sides[:, 0])) <= EDGES
    shapes = choose(sides, count)
    assert len(shapes) == count
    assert (sides <= shapes[-1]).all()
