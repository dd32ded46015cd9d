"""Masks: what each rule holds, how they combine, print and refuse."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import attend, masks, weigh
from regard.attention.masks import Mask
from regard.attention.places import Indices
from tests.attention.paths import qkv, some

FEW = settings(deadline=None, derandomize=True, max_examples=100)

align = st.sampled_from(["end", "start"])
width = st.one_of(st.none(), st.integers(0, 4))
rules = st.one_of(
    st.builds(masks.causal, align),
    st.builds(masks.window, width, width, align),
    st.builds(masks.block, st.integers(1, 4), align),
    st.builds(masks.lengths, st.lists(st.integers(0, 7), min_size=2, max_size=2)),
    st.builds(masks.lengths, st.integers(0, 7), st.lists(st.integers(0, 7), min_size=2, max_size=2)),
)


def joined(of: st.SearchStrategy[Mask]) -> st.SearchStrategy[Mask]:
    pairs = st.tuples(of, of)
    return st.one_of(
        pairs.map(lambda two: two[0] & two[1]), pairs.map(lambda two: two[0] | two[1]), of.map(lambda a: ~a)
    )


combined = st.recursive(rules, joined, max_leaves=5)
sizes = st.tuples(st.just(2), st.integers(1, 3), st.integers(0, 6), st.integers(0, 6))


def whole(mask: Mask, shape: tuple[int, ...]) -> torch.Tensor:
    return mask.dense(shape).expand(shape)


def by_loops(says: object, queries: int, keys: int, align: str) -> list[list[bool]]:
    """A rule of a query's own place i and a key's place j, cell by cell."""
    shift = keys - queries if align == "end" else 0
    return [[bool(says(query + shift, key)) for key in range(keys)] for query in range(queries)]  # type: ignore[operator]


RULES = {
    "causal": (lambda align: masks.causal(align), lambda i, j: j <= i),
    "window": (lambda align: masks.window(2, 1, align), lambda i, j: i - 2 <= j <= i + 1),
    "left": (lambda align: masks.window(1, None, align), lambda i, j: i - 1 <= j),
    "right": (lambda align: masks.window(None, 0, align), lambda i, j: j <= i),
    "free": (lambda align: masks.window(None, None, align), lambda i, j: True),
    "block": (lambda align: masks.block(2, align), lambda i, j: i // 2 == j // 2),
}


@pytest.mark.parametrize(("made", "says"), RULES.values(), ids=RULES)
@pytest.mark.parametrize("align", ["end", "start"])
@pytest.mark.parametrize(("queries", "keys"), [(4, 4), (2, 5), (5, 3), (1, 6)])
def test_each_rule_holds_where_its_sentence_says(made, says, align: str, queries: int, keys: int) -> None:  # type: ignore[no-untyped-def]
    assert whole(made(align), (queries, keys)).tolist() == by_loops(says, queries, keys, align)


def test_lengths_hide_the_padding_of_each_sequence() -> None:
    keep = whole(masks.lengths([3, 0]), (2, 1, 2, 4))
    assert keep[:, 0, 0].tolist() == [[True, True, True, False], [False] * 4]
    both = whole(masks.lengths(3, queries=[1, 2]), (2, 1, 2, 4))
    assert both[0, 0].tolist() == [[True, True, True, False], [False] * 4]
    assert whole(masks.lengths(2), (3, 4)).tolist() == [[True, True, False, False]] * 3


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 5, 3, 4), (2, 6, 5, 3, 4)], ids=str)
def test_lengths_go_with_axis_0(shape: tuple[int, ...]) -> None:
    keep = whole(masks.lengths([1, 4]), shape)
    assert keep[0].sum() == keep[0].numel() // 4
    assert keep[1].all()


@FEW
@given(combined, sizes)
def test_a_rule_asked_place_by_place_answers_as_the_table_does(mask: Mask, shape: tuple[int, ...]) -> None:
    queries, keys = shape[-2:]
    index = torch.meshgrid(*(torch.arange(size) for size in shape), indexing="ij")
    asked = mask.holds(Indices(*index, shift=keys - queries))
    assert torch.equal(asked.expand(shape), whole(mask, shape))


@FEW
@given(combined, combined, sizes)
def test_masks_are_an_algebra_of_booleans(a: Mask, b: Mask, shape: tuple[int, ...]) -> None:
    left, right = whole(a, shape), whole(b, shape)
    assert torch.equal(whole(a & b, shape), left & right)
    assert torch.equal(whole(a | b, shape), left | right)
    assert torch.equal(whole(~a, shape), ~left)
    assert torch.equal(whole(~(a & b), shape), whole(~a | ~b, shape))


@FEW
@given(combined, sizes)
def test_a_mask_prints_as_it_can_be_written(mask: Mask, shape: tuple[int, ...]) -> None:
    written = eval(repr(mask), {name: getattr(masks, name) for name in ("causal", "window", "block", "lengths")})
    assert repr(written) == repr(mask)
    assert torch.equal(whole(written, shape), whole(mask, shape))


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (masks.causal(), "causal()"),
        (masks.causal("start"), "causal(align='start')"),
        (masks.window(2, None) & ~masks.block(3), "window(2, None) & ~block(3)"),
        (~(masks.causal() & masks.lengths([2, 3])), "~(causal() & lengths([2, 3]))"),
        ((masks.causal() | masks.block(2)) & masks.causal(), "(causal() | block(2)) & causal()"),
        (
            masks.causal() & masks.block(2) & masks.window(1, 1, align="start"),
            "causal() & block(2) & window(1, 1, align='start')",
        ),
        (masks.lengths(4, queries=[1, 2]), "lengths(4, queries=[1, 2])"),
        (torch.ones(2, 3, dtype=torch.bool) & masks.causal(), "tensor([2, 3]) & causal()"),
        (masks.causal() | torch.ones(2, 3, dtype=torch.bool), "causal() | tensor([2, 3])"),
        (masks.around(torch.zeros(4), 2), "around([4], 2)"),
    ],
)
def test_masks_print_as_they_were_written(mask: Mask, text: str) -> None:
    assert repr(mask) == text


def test_a_picture_shows_who_may_attend() -> None:
    assert masks.causal().picture(2, 3) == "■ ■ ·\n■ ■ ■"


def test_a_rule_is_built_only_over_the_axes_it_speaks_of() -> None:
    huge = (1 << 12, 1 << 12, 1 << 20, 1 << 12)  # 2^56 cells
    assert masks.lengths(list(range(1 << 12))).dense(huge).shape == (1 << 12, 1, 1, 1 << 12)
    assert masks.causal().dense((1 << 20, 1 << 20, 3, 4)).numel() == 12


def test_masks_are_told_apart_without_comparing_tables() -> None:
    assert masks.causal() == masks.causal() != masks.causal("start")
    one = masks.lengths([1, 2])
    assert one == one
    assert one != masks.lengths([1, 2])
    assert (one & masks.causal()) == (one & masks.causal())


def test_around_keeps_both_ends_of_its_interval() -> None:
    keep = whole(masks.around(torch.tensor([1.0, 2.5]), 1), (2, 5))
    assert keep.tolist() == [[True, True, True, False, False], [False, False, True, True, False]]


SAYS = {
    "negative width": (
        lambda: masks.window(-1, 2),
        "window: left must be a whole number of places, 0 or more, or None; got -1",
    ),
    "broken width": (lambda: masks.window(1, 1.5), "window: right must be a whole number of places"),
    "true width": (lambda: masks.window(True, 1), "window: left must be a whole number"),
    "block of 0": (lambda: masks.block(0), "block: size must be a whole number, 1 or more; got 0"),
    "align": (lambda: masks.causal("ends"), "unknown align 'ends'; did you mean 'end'?"),
    "negative length": (lambda: masks.lengths([2, -1]), r"lengths: keys must be 0 or more; got [2, -1]"),
    "broken length": (
        lambda: masks.lengths(torch.tensor([1.5])),
        "one whole number or one for each sequence; got float32 [1]",
    ),
    "boolean length": (lambda: masks.lengths([True]), "lengths: keys must be one whole number"),
    "no tensor": (lambda: masks.tensor([[True]]), "mask: expected a tensor of booleans; got list"),
    "numbers": (lambda: masks.causal() & torch.ones(2, 2), "mask: expected booleans (True = may attend); got float32"),
    "no batch": (
        lambda: weigh(*qkv(4, 5)[:2], mask=masks.lengths([1, 2])),
        "lengths: one number for each sequence, but the scores [4, 4] have no batch",
    ),
    "other batch": (
        lambda: weigh(*qkv(3, 4, 5)[:2], mask=masks.lengths([1, 2])),
        "lengths: 2 lengths of keys for a batch of 3",
    ),
    "cells": (
        lambda: weigh(*qkv(4, 5)[:2], mask=torch.ones(3, 4, dtype=torch.bool)),
        "mask: [3, 4] does not broadcast to the scores' shape [4, 4]",
    ),
    "cells inside": (
        lambda: weigh(*qkv(4, 5)[:2], mask=~masks.tensor(torch.ones(2, 4, 4, dtype=torch.bool)) & masks.causal()),
        "mask: [2, 4, 4] does not broadcast",
    ),
    "centres": (
        lambda: weigh(*qkv(2, 3, 4, 5)[:2], mask=masks.around(torch.zeros(2, 4), 1)),
        "around: one centre for each query [..., T], [2, 4] does not fit the scores' shape [2, 3, 4, 4]",
    ),
    "centre": (lambda: masks.around(2.0, 1), "around: centre must be a tensor, one number for each query; got float"),
    "around": (lambda: masks.around(torch.zeros(2), -1.0), "around: width must be 0 or more; got -1.0"),
    "another device": (
        lambda: masks.tensor(torch.ones(2, 2, dtype=torch.bool)).dense((2, 2), "meta"),
        "mask: is on cpu, the query on meta",
    ),
}


@pytest.mark.parametrize(("bad", "says"), SAYS.values(), ids=SAYS)
def test_a_wrong_mask_is_refused_in_words(bad, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=re.escape(says)):
        bad()


def test_lengths_of_a_batch_of_none() -> None:
    query, key, value = some(0, 2, 3), some(0, 4, 3), some(0, 4, 3)
    assert attend(query, key, value, mask=masks.lengths([])).shape == (0, 2, 3)
