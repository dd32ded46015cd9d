"""What fresh eyes found: cases in which a fast path once parted from the reference, or bad input once passed."""

from typing import Any

import pytest
import torch
from torch import Tensor

import regard
from regard.attention import MultiHead, attend, local_p, masks, normalise, positions, scores, settle, weigh
from tests.attention.paths import PATHS, Path, some


def rows(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return some(*shape, dtype=dtype, seed=len(shape) + shape[-2], grad=False)


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
@pytest.mark.parametrize(("queries", "keys"), [(3, 5), (3, 40), (1, 2)])
def test_keys_behind_the_last_query_do_not_leak_under_a_mask_from_the_start(
    path: Path, poison: float, queries: int, keys: int
) -> None:
    query, key, value = (some(1, 1, n, 8, dtype=torch.float32, seed=n) for n in (queries, keys, keys))
    truth = attend(query, key, value, mask=masks.causal(align="start"), implementation="reference")
    with torch.no_grad():
        key[:, :, queries:] = value[:, :, queries:] = poison
    output = path(query, key, value, mask=masks.causal(align="start"))
    torch.testing.assert_close(output, truth)
    for each in torch.autograd.grad(output.sum(), (query, key, value)):
        assert each.isfinite().all()


WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64}


@pytest.mark.parametrize(("dtype", "wide"), WIDER.items(), ids=str)
@pytest.mark.parametrize("number", [-1e5, 1e5])
def test_a_bias_too_large_for_the_query_gives_what_the_reference_gives(
    dtype: torch.dtype, wide: torch.dtype, number: float
) -> None:
    query, key, value = (rows(1, 1, 3, 8, dtype=dtype) for _ in range(3))
    steps = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [3.0, 0.0, 1.0]], dtype=wide)
    bias = (number + 1e4 * steps).requires_grad_()
    both = [attend(query, key, value, bias=bias, implementation=each) for each in ("fused", "reference")]
    torch.testing.assert_close(*both, atol=2e-2, rtol=2e-2)
    assert all(each.isfinite().all() for each in both)


@pytest.mark.parametrize(("dtype", "wide"), WIDER.items(), ids=str)
def test_the_least_of_all_numbers_as_a_bias_moves_nothing(dtype: torch.dtype, wide: torch.dtype) -> None:
    query, key, value = (rows(1, 1, 3, 8, dtype=dtype) for _ in range(3))
    output = attend(query, key, value, bias=torch.full((3, 3), torch.finfo(wide).min, dtype=wide))
    torch.testing.assert_close(output, attend(query, key, value), atol=2e-2, rtol=2e-2)


def test_masked_keys_do_not_decide_where_a_large_bias_is_counted_from() -> None:
    query, key, value = (rows(1, 1, 3, 8, dtype=torch.float16) for _ in range(3))
    bias = torch.tensor([[0.0, -1e5, -1e5 - 1], [0.0, -1e5, -1e5 - 1], [0.0, -1e5, -1e5 - 1]])
    mask = masks.tensor(torch.tensor([False, True, True]))
    both = [attend(query, key, value, bias=bias, mask=mask, implementation=each) for each in ("fused", "reference")]
    torch.testing.assert_close(*both, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_in_half_precision_weights_seen_are_those_that_were_used(dtype: torch.dtype) -> None:
    query, key, value = (4 * rows(2, 4, 64, 32, dtype=dtype) for _ in range(3))
    truth = attend(query.double(), key.double(), value.double())
    for output in (
        attend(query, key, value),
        attend(query, key, value, implementation="reference"),
        weigh(query, key) @ value,
    ):
        assert (output.double() - truth).norm() / truth.norm() < 1e-2
    large = torch.full((1, 1, 4, 64), 60.0, dtype=dtype)
    output, details = attend(large, large, rows(1, 1, 4, 8, dtype=dtype), score="dot", details=True)
    assert output.isfinite().all()
    assert details.weights.isfinite().all()


def test_a_mask_is_neither_true_nor_false() -> None:
    with pytest.raises(ValueError, match=r"mask: causal\(\) is neither true nor false; join masks with & \| ~"):
        masks.causal() and masks.lengths([2, 3])


def test_a_value_without_heads_goes_to_all_of_them() -> None:
    query, key, value = rows(2, 8, 4, 8), rows(2, 2, 5, 8), rows(5, 3)
    for implementation in ("auto", "reference"):
        torch.testing.assert_close(
            attend(query, key, value, implementation=implementation), attend(query, key, value.expand(2, 2, 5, 3))
        )


X = rows(2, 5, 16)
ALIBI = positions.Alibi(4)
BAD: dict[str, tuple[Any, str]] = {
    "boolean bias": (lambda: MultiHead(16, 4, positions=ALIBI)(X, bias=X[0] > 0), "bias: expected floating"),
    "bias shape": (lambda: MultiHead(16, 4, positions=ALIBI)(X, bias=rows(3, 3)), r"bias: \[3, 3\] does not broadcast"),
    "integers": (lambda: MultiHead(16, 4)(torch.ones(2, 5, 16).long()), "x: is int64, the layer float32"),
    "other kind": (lambda: MultiHead(16, 4)(X.double()), "x: is float64, the layer float32"),
    "other device": (lambda: MultiHead(16, 4)(X.to("meta")), "x: is on meta, the layer on cpu"),
    "memory": (lambda: MultiHead(16, 4)(X, X.double()), "memory: is float64"),
    "positions by name": (lambda: MultiHead(16, 4, positions="rotary"), "positions: expected some of"),  # type: ignore[arg-type]
    "score class": (lambda: MultiHead(16, 4, score=scores.Dot), "score: expected a score"),  # type: ignore[arg-type]
    "head width": (lambda: MultiHead(16, 4, head_width=0), "width: expected 1 or more"),
    "heads as text": (lambda: MultiHead(16, "4"), "heads: expected a whole number; got '4'"),  # type: ignore[arg-type]
    "cache": (lambda: MultiHead(16, 4)(X[:1], cache=MultiHead(16, 4)(X).cache), r"cache: holds keys of \[2, 4\]"),
    "devices of a score": (
        lambda: scores.Additive(rows(8, 3), rows(8, 3), rows(1, 3)[0].to("meta")),
        "additive: W_q is on cpu, v on meta",
    ),
    "kinds of a score": (lambda: scores.Concat(rows(8, 3), rows(1, 3)[0].double()), "concat: v is float64, W float32"),
    "coverage": (
        lambda: attend(
            rows(2, 4, 8), rows(2, 7, 8), rows(2, 7, 8), score=scores.Coverage.of(8, 8, 3).given(rows(3, 7))
        ),
        "coverage: expected one row for each",
    ),
    "centres": (lambda: local_p([1, 2], 2), "local_p: centre must be a tensor"),  # type: ignore[arg-type]
    "whole centres": (lambda: masks.around(torch.ones(2).long(), 1), "around: centre must hold real numbers"),
    "lengths of nothing": (lambda: masks.lengths(None), "lengths: keys must be one whole number"),  # type: ignore[arg-type]
    "lengths of letters": (lambda: masks.lengths("ab"), "lengths: keys must be one whole number"),  # type: ignore[arg-type]
    "temperature": (lambda: normalise.gumbel(temperature="a"), "gumbel: temperature must be above 0"),  # type: ignore[arg-type]
    "scale": (lambda: scores.ScaledDot(float("nan")), "scaled_dot: scale must be a finite number"),
    "no width": (lambda: scores.General.of(0, 0), "widths: expected 1 or more"),
    "generator": (lambda: attend(X, X, X, generator=5), "generator: expected a torch.Generator"),  # type: ignore[call-overload]
}  # fmt: skip


@pytest.mark.parametrize(("call", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_a_sentence(call: Any, said: str) -> None:
    with torch.no_grad(), pytest.raises(ValueError, match=said):
        call()


def test_booleans_may_be_settled_as_they_are() -> None:
    cells = rows(5, 7) > 0
    assert settle(cells, (5, 7), "cpu").cells is cells  # type: ignore[arg-type]


def test_half_precision_does_not_round_the_slopes_of_alibi_for_good() -> None:
    alibi = positions.Alibi(12)
    before = alibi.slopes.clone()
    assert torch.equal(alibi.half().float().slopes, before)
    assert torch.equal(positions.Alibi(2).bfloat16().bias(4, 1000), positions.Alibi(2).bias(4, 1000))


def test_rooms_are_reached_from_the_package() -> None:
    assert regard.attention.explain_choice is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = regard.nothing
