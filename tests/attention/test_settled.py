"""Masks made ready once for many layers: the same answer, and promises that are taken at their word."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import attend, masks, settle
from regard.attention.masks import Mask
from tests.attention.paths import some
from tests.attention.test_masks import FEW, combined


@FEW
@given(combined, st.integers(1, 5), st.integers(1, 6), st.sampled_from(["reference", "fused"]))
def test_a_settled_mask_is_the_mask(mask: Mask, queries: int, keys: int, path: str) -> None:
    shape = (2, 3, queries, keys)
    tensors = [some(2, 3, length, 4, seed=length) for length in (queries, keys, keys)]
    settled = settle(mask, shape, "cpu")
    assert repr(settled) == repr(mask)
    for given_ in (settled, settled & masks.window(None, None)):
        got, truth = (attend(*tensors, mask=each, implementation=path) for each in (given_, mask))
        assert torch.equal(got, truth)


def test_a_mask_settled_for_one_query_serves_many() -> None:
    settled = settle(masks.lengths([2, 0]), (2, 1, 1, 3), "cpu")
    query, key = some(2, 4, 5, 8), some(2, 4, 3, 8, seed=1)
    assert torch.equal(attend(query, key, key, mask=settled), attend(query, key, key, mask=masks.lengths([2, 0])))


@pytest.mark.parametrize("path", ["reference", "fused"])
def test_what_is_promised_clean_is_not_cleared(path: str) -> None:
    key = some(1, 1, 3, 4, grad=False)
    key[..., 2, :] = torch.nan
    mask = masks.lengths([2])
    assert (
        attend(key, key, key, mask=settle(mask, (1, 1, 3, 3), "cpu"), implementation=path)[..., :2, :].isfinite().all()
    )
    clean = settle(mask, (1, 1, 3, 3), "cpu", clean=True)
    assert attend(key, key, key, mask=clean, implementation=path).isnan().any()


def test_promises_are_kept_only_where_they_were_given() -> None:
    mask = masks.lengths([2, 0])
    seen = settle(mask, (2, 1, 1, 3), "cpu").kept
    assert seen.queries.tolist() == [[[True]], [[False]]]
    assert seen.keys.tolist() == [[[True, True, False]], [[False, False, False]]]
    assert settle(mask, (2, 1, 1, 3), "cpu", clean=True).kept.keys is None
    assert settle(mask, (2, 1, 1, 3), "cpu", alive=True).kept.queries is None


def test_a_settled_mask_of_another_shape_is_refused() -> None:
    settled = settle(masks.causal(), (1, 1, 3, 3), "cpu")
    with pytest.raises(ValueError, match=r"mask: \[3, 3\] does not broadcast to the scores' shape \[2, 4, 4\]"):
        attend(some(2, 4, 8), some(2, 4, 8), some(2, 4, 8), mask=settled)
