"""Every fast path against the reference, and the reference against the formula, over whatever Hypothesis thinks of."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention import attend, masks, scores
from regard.attention.checks import checked
from regard.attention.fast import flex, sdpa
from regard.attention.normalise import softmax
from tests.attention.paths import by_flex, by_reference, by_sdpa, some
from tests.attention.test_masks import combined

TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.bfloat16: 5e-2, torch.float16: 5e-3}


@st.composite
def calls(draw: st.DrawFn, axes: int | None = None, bias: bool = True) -> tuple[list[Tensor], dict[str, Any]]:
    """Query, key and value of two to five axes, heads grouped or broadcast, and what goes with them."""
    axes = draw(st.integers(0, 3)) if axes is None else axes
    leading = [2, 4, 3][-axes:] if axes == 2 else [2, 3, 4][:axes]
    heads = draw(st.sampled_from([1, 2, 4])) if axes > 1 else 0
    fewer = leading if axes < 2 else [*leading[:-1], heads]
    if axes == 2:
        leading, fewer = [2, 4], [draw(st.sampled_from([1, 2])), heads]
    queries, keys, width = draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from(list(TOLERANCE)))
    seed = draw(st.integers(0, 99))
    tensors = [
        some(*leading, queries, width, seed=seed, dtype=dtype),
        some(*fewer, keys, width, seed=seed + 1, dtype=dtype),
        some(*fewer, keys, draw(st.integers(1, 3)), seed=seed + 2, dtype=dtype),
    ]
    given: dict[str, Any] = {"score": draw(st.sampled_from([scores.Dot(), scores.ScaledDot(), scores.Cosine(0.7)]))}
    rules = combined if axes else combined.filter(lambda mask: "[" not in repr(mask))
    given["mask"] = draw(rules if not bias else st.one_of(st.none(), rules))
    if bias and draw(st.booleans()):
        cells = some(draw(st.sampled_from([1, queries])), keys, seed=seed + 3, dtype=dtype, grad=False)
        given["bias"] = cells.masked_fill(cells > draw(st.sampled_from([0.5, 9.0])), -torch.inf).requires_grad_()
    return tensors, given


def close(got: Tensor, truth: Tensor, inputs: list[Tensor]) -> None:
    tolerance = TOLERANCE[got.dtype]
    torch.testing.assert_close(got, truth, atol=tolerance, rtol=tolerance)
    tilt = some(*got.shape, seed=77, grad=False).to(got)
    pairs = (torch.autograd.grad((each * tilt).sum(), inputs, materialize_grads=True) for each in (got, truth))
    for one, other in zip(*pairs, strict=True):
        assert one.isfinite().all()
        torch.testing.assert_close(one, other, atol=2 * tolerance, rtol=2 * tolerance)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(calls())
def test_sdpa_gives_the_values_and_gradients_of_the_reference(call: tuple[list[Tensor], dict[str, Any]]) -> None:
    tensors, given = call
    inputs = tensors + ([given["bias"]] if "bias" in given else [])
    close(by_sdpa(*tensors, **given), by_reference(*tensors, **given), inputs)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(calls(axes=2, bias=False))
def test_flex_gives_the_values_and_gradients_of_the_reference(call: tuple[list[Tensor], dict[str, Any]]) -> None:
    tensors, given = call
    close(by_flex(*tensors, **given), by_reference(*tensors, **given), tensors)


@pytest.mark.parametrize("mask", [masks.causal() & masks.lengths([4, 2]), ~masks.block(2), masks.lengths(0)], ids=repr)
def test_flex_itself_gives_the_values_of_the_reference(mask: masks.Mask) -> None:
    still = [some(2, heads, 5, 4, seed=heads, grad=False, dtype=torch.float32) for heads in (4, 2, 2)]
    torch.testing.assert_close(by_flex(*still, mask=mask), by_reference(*still, mask=mask))


@settings(deadline=None, derandomize=True, max_examples=150)
@given(calls())
def test_the_reference_is_the_formula_cell_by_cell(call: tuple[list[Tensor], dict[str, Any]]) -> None:
    tensors, given = call
    exact = [each.detach().double() for each in tensors]
    given = {name: each.detach().double() if isinstance(each, Tensor) else each for name, each in given.items()}
    output, details = attend(*exact, **given, implementation="reference", details=True)
    shape = details.weights.shape
    if exact[0].ndim > 3 and exact[1].shape[-3] > 1:
        exact[1:] = [each.repeat_interleave(exact[0].shape[-3] // each.shape[-3], -3) for each in exact[1:]]
    query, key, value = (each.expand(*shape[:-2], *each.shape[-2:]).reshape(-1, *each.shape[-2:]) for each in exact)
    keep = torch.ones(shape, dtype=torch.bool) if given["mask"] is None else given["mask"].dense(shape).expand(shape)
    bias = given.get("bias", torch.zeros(1, 1)).expand(shape)
    flat = zip(query, key, value, keep.reshape(-1, *shape[-2:]), bias.reshape(-1, *shape[-2:]), strict=True)
    truth = [row(given["score"], q, ks, vs, may, add) for qs, ks, vs, mays, adds in flat
             for q, may, add in zip(qs, mays, adds, strict=True)]  # fmt: skip
    torch.testing.assert_close(output.reshape(-1, output.shape[-1]), torch.stack(truth))


def row(score: scores.Score, q: Tensor, keys: Tensor, values: Tensor, may: Tensor, add: Tensor) -> Tensor:
    """One query: the exponentials of what it may attend to, shared out."""
    total, mixed = 0.0, torch.zeros(values.shape[-1], dtype=torch.float64)
    for j, (key, value) in enumerate(zip(keys, values, strict=True)):
        if may[j] and add[j] > -torch.inf:
            weight = torch.exp(score(q[None], key[None])[0, 0] + add[j]).item()
            total, mixed = total + weight, mixed + weight * value
    return mixed / total if total else mixed


def test_explaining_is_for_the_call_that_is_made() -> None:
    assert masks.holds_cells(~(masks.causal() & masks.tensor(torch.tensor(True))))
    assert not masks.holds_cells(masks.causal() | ~masks.lengths([1]))


def unsafe(
    query: Tensor, key: Tensor, value: Tensor, *, attn_mask: Tensor | None = None, scale: float, **_: Any
) -> Tensor:
    """scaled_dot_product_attention as some back ends have it: a row with nothing to attend to is NaN."""
    scores = query @ key.mT * scale
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    return torch.softmax(scores, -1) @ value


@pytest.mark.parametrize("mask", [None, masks.lengths([3, 0]) & masks.causal()], ids=repr)
@pytest.mark.parametrize("biased", [False, True])
def test_sdpa_answers_for_empty_rows_itself_whatever_the_kernel_makes_of_them(
    monkeypatch: pytest.MonkeyPatch, mask: masks.Mask | None, biased: bool
) -> None:
    tensors = [some(2, 2, 4, 3, seed=seed) for seed in range(3)]
    bias = torch.zeros(4, 4, dtype=torch.float64).index_fill(0, torch.tensor([2]), -torch.inf) if biased else None
    truth = by_reference(*tensors, mask=mask, bias=bias)
    monkeypatch.setattr(sdpa, "scaled_dot_product_attention", unsafe)
    close(by_sdpa(*tensors, mask=mask, bias=bias), truth, tensors)


def test_flex_answers_for_empty_rows_itself_whatever_the_kernel_makes_of_them() -> None:
    query, key, value = (some(1, 2, 4, 3, seed=seed) for seed in range(3))
    mask = masks.causal() & masks.block(2) & ~masks.window(0, 0)  # the first query of each block sees nothing
    call = checked(query, key, value, scores.Dot(), None, mask, softmax, 0.0, None)
    output = flex.run(call, attention=lambda q, k, v, **_: torch.full_like(q, torch.nan))
    assert torch.equal(output[:, :, 0::2], torch.zeros(1, 2, 2, 3))
    assert output[:, :, 1::2].isnan().all()


@pytest.mark.parametrize("mask", [None, masks.causal(), masks.lengths([4, 0])], ids=repr)
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_in_half_precision_a_cpu_trains_through_float32(
    kind: torch.dtype, mask: masks.Mask | None, autocast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds, kernel = [], sdpa.scaled_dot_product_attention
    monkeypatch.setattr(
        sdpa, "scaled_dot_product_attention", lambda *each, **said: kinds.append(each[0].dtype) or kernel(*each, **said)
    )
    tensors = [some(2, 2, 4, 8, seed=which, dtype=kind) for which in range(3)]
    with torch.autocast("cpu", kind, enabled=autocast):
        output = by_sdpa(*tensors, mask=mask)
        assert output.dtype == kind
        assert kinds == [torch.float32]
        with torch.no_grad():
            by_sdpa(*tensors, mask=mask)
        assert kinds == [torch.float32, kind]
    close(output, by_reference(*tensors, mask=mask), tensors)
