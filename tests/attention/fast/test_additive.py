"""Additive attention's kernels, run on a CPU by Triton's interpreter, against the formula in float64."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention import additive_attention, attend, explain_choice, masks, scores
from regard.attention.checks import checked
from regard.attention.fast import additive
from regard.attention.fast.additive.series import NEAREST, table
from regard.attention.normalise import softmax
from tests.attention.paths import by_reference, some

triton = pytest.importorskip("triton", reason="Triton is not installed (it is made for Linux)")
pytestmark = [
    pytest.mark.skipif(not triton.knobs.runtime.interpret, reason="Triton was imported before its interpreter was on"),
    # Numbers beyond reach overflow on their way to 1 and 0, as they do on a GPU, which does not speak of it.
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
]

MASKS = {
    "none": None,
    "causal": masks.causal(),
    "from the start": masks.causal("start"),
    "window": masks.window(3, 2),
    "lengths": masks.lengths([5, 30]),
    "padding on both sides": masks.lengths([30, 0], queries=[11, 20]),
    "both": masks.causal() & masks.lengths([30, 17]),
    "a table": masks.tensor(some(2, 20, 30, seed=4, grad=False) > 0.3),
    "a table for all": masks.tensor(some(20, 30, seed=5, grad=False) > 0),
}


def fused(query: Tensor, key: Tensor, value: Tensor, score: Any, mask: masks.Mask | None = None) -> Tensor:
    """By the kernels, on whatever device."""
    call = checked(query, key, value, score, None, mask, softmax, 0.0, None)
    assert additive.unlike(call) is None
    return additive.run(call)


def call(
    *leading: int, queries: int = 20, keys: int = 30, width: int = 24, dtype: torch.dtype = torch.float32,
    scale: float = 1.0,
) -> tuple[list[Tensor], scores.Additive]:  # fmt: skip
    """Query, key, value and a score of that width."""
    tensors = [some(*leading, n, d, seed=n + d, dtype=dtype) for n, d in ((queries, 6), (keys, 5), (keys, 9))]
    W_q, W_k = some(6, width, seed=1, grad=False) * 0.6 * scale, some(5, width, seed=2, grad=False) * 0.6 * scale
    v, b = some(width, seed=3, grad=False) * width**-0.5, some(width, seed=4, grad=False) * scale
    return tensors, scores.Additive(*(each.to(dtype).requires_grad_() for each in (W_q, W_k, v, b)))


def gradients(output: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    tilt = some(*output.shape, seed=77, grad=False).to(output)
    return list(torch.autograd.grad((output * tilt).sum(), inputs, materialize_grads=True))


def inputs_of(tensors: list[Tensor], score: scores.Additive) -> list[Tensor]:
    return (
        [*tensors, *score.parameters()]
        if list(score.parameters())
        else [*tensors, score.W_q, score.W_k, score.v, score.b]
    )


def error(got: Tensor, truth: Tensor) -> float:
    return ((got.double() - truth.double()).norm() / truth.double().norm().clamp(min=1e-30)).item()


def wide(tensors: list[Tensor], score: scores.Additive) -> tuple[list[Tensor], scores.Additive]:
    """The same numbers in float64."""
    own = (score.W_q, score.W_k, score.v, score.b)
    return [each.detach().double().requires_grad_() for each in tensors], scores.Additive(
        *(each.detach().double().requires_grad_() for each in own)
    )


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize(("queries", "seed"), [(20, 0), (1, 1), (3, 2)])
def test_in_float32_it_is_the_formula_to_its_last_digits(mask: masks.Mask | None, queries: int, seed: int) -> None:
    if mask is not None and queries != 20:
        mask = masks.lengths([30, 7]) if seed == 1 else masks.causal()
    tensors, score = call(2, queries=queries)
    exact_tensors, exact = wide(tensors, score)
    output, truth = fused(*tensors, score, mask), by_reference(*exact_tensors, score=exact, mask=mask)
    assert error(output, truth) < 1e-5
    got, true = gradients(output, inputs_of(tensors, score)), gradients(truth, inputs_of(exact_tensors, exact))
    for one, other in zip(got, true, strict=True):
        assert error(one, other) < 1e-5


@pytest.mark.parametrize("mask", [None, MASKS["causal"], MASKS["both"], MASKS["padding on both sides"]], ids=repr)
def test_in_bfloat16_it_is_no_worse_than_twice_the_reference(mask: masks.Mask | None) -> None:
    tensors, score = call(2, dtype=torch.bfloat16, width=40)
    exact_tensors, exact = wide(tensors, score)
    truth = by_reference(*exact_tensors, score=exact, mask=mask)
    ours, plain = fused(*tensors, score, mask), by_reference(*tensors, score=score, mask=mask)
    assert error(ours, truth) < 2 * error(plain, truth)
    found = [gradients(each, inputs_of(tensors, score)) for each in (ours, plain)]
    for mine, reference, true in zip(*found, gradients(truth, inputs_of(exact_tensors, exact)), strict=True):
        assert error(mine, true) < 2 * error(reference, true) + 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("scale", [8.0, 1e4])
def test_large_numbers_are_no_trouble(dtype: torch.dtype, scale: float) -> None:
    tensors, score = call(1, dtype=dtype, scale=min(scale, 300.0) if dtype == torch.float16 else scale)
    exact_tensors, exact = wide(tensors, score)
    hidden, true = additive.under(score, *tensors[:2]), additive.under(exact, *exact_tensors[:2])
    # What is under the tanh is rounded before the kernels see it: they are held to their own part.
    true = [each.detach().double() for each in hidden] if dtype != torch.float32 else true
    truth = by_reference(true[0], true[1], exact_tensors[2], score=scores.Additive(None, None, true[2]))
    output = fused(*tensors, score)
    assert error(output, truth) < {torch.float32: 2e-3 if scale > 1e3 else 1e-5}.get(dtype, 2e-2)
    assert all(each.isfinite().all() for each in gradients(output, tensors))


@pytest.mark.parametrize("queries", [20, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["lengths", "padding on both sides", "from the start", "a table"])
def test_nothing_in_padding_leaks(name: str, dtype: torch.dtype, queries: int) -> None:
    mask = MASKS[name] if queries == 20 else masks.lengths([5, 0], queries=[1, 0])
    tensors, score = call(2, dtype=dtype, queries=queries)
    kept = mask.dense((2, queries, 30)).expand(2, queries, 30)
    clean = fused(*tensors, score, mask)
    truth = gradients(clean, tensors)
    with torch.no_grad():
        tensors[0][~kept.any(-1)] = torch.nan
        tensors[1][~kept.any(-2)] = torch.inf
        tensors[2][~kept.any(-2)] = torch.nan
    output = fused(*tensors, score, mask)
    torch.testing.assert_close(output, clean, rtol=0, atol=0)
    for one, other in zip(gradients(output, tensors), truth, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_a_row_with_nothing_to_attend_to_is_zero() -> None:
    tensors, score = call(2)
    output = fused(*tensors, score, MASKS["padding on both sides"])
    assert not output[1].any()
    assert not output[0, 11:].any()
    assert output[0, :11].any()


@pytest.mark.parametrize("half", [False, True])
def test_queries_taken_in_turns_give_what_all_at_once_give(half: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.attention.fast.additive import gpu

    tensors, score = call(1, queries=150, keys=70, width=16, dtype=torch.bfloat16 if half else torch.float32)
    whole = fused(*tensors, score, masks.causal())
    truth = gradients(whole, tensors)
    monkeypatch.setattr(gpu, "SCRATCH", 1)
    monkeypatch.setattr(gpu, "plan", small(gpu.plan))
    parts = fused(*tensors, score, masks.causal())
    for one, other in zip([parts, *gradients(parts, tensors)], [whole, *truth], strict=True):
        torch.testing.assert_close(one, other, rtol=2e-2 if half else 1e-5, atol=1e-2 if half else 1e-5)


def test_second_derivatives_are_refused_in_words() -> None:
    (query, key, value), score = call(queries=3, keys=4)
    (first,) = torch.autograd.grad(fused(query, key, value, score).square().sum(), query, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives need implementation='reference'"):
        torch.autograd.grad(first.sum(), query)


def small(plan: Any) -> Any:
    """Tiles of 32 queries, so that there are several turns."""
    from dataclasses import replace

    return lambda pairs, tables, **rest: replace(plan(pairs, tables, **rest), rows=32, BT=32)


@settings(deadline=None, derandomize=True, max_examples=14)
@given(
    leading=st.sampled_from([(), (1,), (2,), (2, 1)]), queries=st.integers(1, 20), keys=st.integers(1, 20),
    width=st.integers(1, 20), half=st.booleans(), which=st.sampled_from(["none", "causal", "window"]),
)  # fmt: skip
def test_every_shape_is_served(
    leading: tuple[int, ...], queries: int, keys: int, width: int, half: bool, which: str
) -> None:
    dtype = torch.bfloat16 if half else torch.float32
    tensors, score = call(*leading, queries=queries, keys=keys, width=width, dtype=dtype)
    output, truth = fused(*tensors, score, MASKS[which]), by_reference(*tensors, score=score, mask=MASKS[which])
    tolerance = 4e-2 if half else 2e-5
    torch.testing.assert_close(output, truth, rtol=tolerance, atol=tolerance)
    for one, other in zip(gradients(output, tensors), gradients(truth, tensors), strict=True):
        assert one.isfinite().all()
        assert (one - other).norm() <= 2 * tolerance * max(1.0, other.norm())


def test_heads_that_share_keys_and_concat_scores_are_served() -> None:
    query, key, value = (
        some(2, 4, 5, 6, dtype=torch.float32),
        *(some(2, 2, 7, 6, seed=s, dtype=torch.float32) for s in (1, 2)),
    )
    for score in (scores.Concat.of(6, 6, 8), scores.Additive.of(6, 6, 8)):
        torch.testing.assert_close(fused(query, key, value, score), by_reference(query, key, value, score=score))
        projected = score.project(key)
        torch.testing.assert_close(
            fused(query, projected, value, score.projected), by_reference(query, key, value, score=score)
        )


def test_one_function_is_the_score_in_attend() -> None:
    tensors, score = call(2)
    mask = masks.lengths([5, 30])
    output = additive_attention(*tensors, score.v, W_q=score.W_q, W_k=score.W_k, b=score.b, mask=mask)
    torch.testing.assert_close(output, attend(*tensors, score=score, mask=mask), rtol=0, atol=0)
    plain = torch.tanh((tensors[0] @ score.W_q).unsqueeze(-2) + (tensors[1] @ score.W_k).unsqueeze(-3) + score.b)
    cells = mask.dense((2, 20, 30))
    truth = (plain @ score.v).masked_fill(~cells, -torch.inf).softmax(-1) @ tensors[2]
    torch.testing.assert_close(output, truth)


def test_it_compiles_whole_and_a_tracer_knows_its_shapes() -> None:
    tensors, score = call(1, queries=2, keys=3, width=4)
    ours = torch.compile(fused, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(ours(*tensors, score), by_reference(*tensors, score=score))


def test_the_table_says_when_it_would_be_taken() -> None:
    tensors, score = call(1)
    said = str(explain_choice(*tensors, score=score))
    assert "not additive: its kernels run on a GPU only" in said
    tensors, score = wide(tensors, score)
    with pytest.raises(ValueError, match=r"no fused path can serve this call .*additive: its kernels run on a GPU"):
        attend(*tensors, score=score, implementation="fused")


@pytest.mark.parametrize(
    ("score", "expected"),
    [(scores.Dot(), "no sum under a tanh"), (scores.Additive.of(6, 6, 8, depth=2), "more than one hidden layer")],
)
def test_what_the_kernels_do_not_compute_is_said(score: Any, expected: str) -> None:
    call = checked(
        *(some(1, 3, 6, seed=s, dtype=torch.float32) for s in range(3)), score, None, None, softmax, 0.0, None
    )
    assert expected in str(additive.unlike(call))


@pytest.mark.parametrize(("error", "slopes"), [(8e-4, False), (1.2e-3, True), (1e-4, False), (1.5e-4, True)])
def test_sums_of_sines_are_tanh_as_far_as_they_reach(error: float, slopes: bool) -> None:
    found = table(error, slopes)
    assert found.reach[0] == NEAREST
    assert len(found.reach) >= 6
    assert list(found.terms) == sorted(found.terms)
    for level, (reach, rate, terms) in enumerate(zip(found.reach, found.rate, found.terms, strict=True)):
        x = np.linspace(-reach, reach, 5003)
        angles = np.outer(x, np.arange(1, 2 * terms, 2)) * rate
        assert abs(np.sin(angles) @ found.sines[level, :terms] - np.tanh(x)).max() < 1.1 * error
        if slopes:
            steep = np.cos(angles) @ found.cosines[level, :terms] - (1 - np.tanh(x) ** 2)
            assert abs(steep).max() < 2.2 * error
