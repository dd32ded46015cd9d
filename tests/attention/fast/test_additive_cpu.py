"""Additive scores on a CPU, compiled and by blocks, against the formula in float64."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention import attend, masks, scores, weigh
from regard.attention.fast.additive import blocks, cpu_op, native
from tests.attention.paths import by_reference, some
from tests.attention.test_masks import combined

FORMS = ["compiled", "blocks"]
MASKS = {
    "none": None,
    "causal": masks.causal(),
    "window": masks.window(3, 2),
    "padding on both sides": masks.lengths([30, 0], queries=[11, 20]),
    "both": masks.causal() & masks.lengths([30, 17]),
    "a table": masks.tensor(some(2, 20, 30, seed=4, grad=False) > 0.3),
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each form in turn; blocks small enough that there are several, whatever the sizes."""
    if request.param == "compiled" and native.built().code is None:
        pytest.skip(native.built().how)
    if request.param == "blocks":
        monkeypatch.setattr(native, "built", lambda: native.Built(None, "not in this test"))
        monkeypatch.setattr(cpu_op, "FEW", 1)
        for name, size in (("FORWARD", 900), ("BACKWARD", 700), ("ROWS", 3)):
            monkeypatch.setattr(blocks, name, size)
    return request.param


def fused(*tensors: Tensor, **settings: Any) -> Tensor:
    return attend(*tensors, implementation="fused", **settings)


def call(
    *leading: int, queries: int = 20, keys: int = 30, width: int = 70, scale: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> tuple[list[Tensor], scores.Additive]:  # fmt: skip
    tensors = [some(*leading, n, d, seed=n + d, dtype=dtype) for n, d in ((queries, 6), (keys, 5), (keys, 9))]
    W_q, W_k = some(6, width, seed=1, grad=False) * 0.6 * scale, some(5, width, seed=2, grad=False) * 0.6 * scale
    v, b = some(width, seed=3, grad=False) * width**-0.5, some(width, seed=4, grad=False) * scale
    return tensors, scores.Additive(*(each.to(dtype).requires_grad_() for each in (W_q, W_k, v, b)))


def exact(tensors: list[Tensor], score: scores.Additive) -> tuple[list[Tensor], scores.Additive]:
    """The same numbers in float64."""
    own = (score.W_q, score.W_k, score.v, score.b)
    return [each.detach().double().requires_grad_() for each in tensors], scores.Additive(
        *(each.detach().double().requires_grad_() for each in own)
    )


def gradients(output: Tensor, tensors: list[Tensor], score: scores.Additive) -> list[Tensor]:
    tilt = some(*output.shape, seed=77, grad=False).to(output)
    inputs = [*tensors, score.W_q, score.W_k, score.v, score.b]
    return list(torch.autograd.grad((output * tilt).sum(), inputs, materialize_grads=True))


def error(got: Tensor, truth: Tensor) -> float:
    return ((got.double() - truth.double()).norm() / truth.double().norm().clamp(min=1e-6)).item()


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize(("queries", "keys", "width"), [(20, 30, 70), (1, 30, 64), (3, 2, 5)])
def test_it_is_the_formula_to_the_last_digits_of_float32(
    form: str, mask: masks.Mask | None, queries: int, keys: int, width: int
) -> None:
    if mask is not None and queries != 20:
        mask = masks.lengths([keys, keys // 2])
    tensors, score = call(2, queries=queries, keys=keys, width=width)
    true_tensors, true_score = exact(tensors, score)
    output, truth = fused(*tensors, score=score, mask=mask), by_reference(*true_tensors, score=true_score, mask=mask)
    assert error(output, truth) < 2e-6
    found = (gradients(output, tensors, score), gradients(truth, true_tensors, true_score))
    for one, other in zip(*found, strict=True):
        assert error(one, other) < 1e-5


@pytest.mark.parametrize("scale", [2.0, 4.0, 8.0, 30.0, 1e4])
@pytest.mark.parametrize("queries", [1, 6])
def test_large_numbers_are_no_trouble(form: str, scale: float, queries: int) -> None:
    q, k, grad = (some(2, n, d, seed=n + d) for n, d in ((queries, 40), (7, 40), (queries, 7)))
    q, k, v = (q * scale).float(), (k * scale).float(), some(40, seed=5).float()
    found = [each.detach().requires_grad_() for each in (q, k, v)]
    exactly = [each.detach().double().requires_grad_() for each in (q, k, v)]
    truth = cpu_op._plainly(*exactly)
    output = cpu_op.additive_scores(*found)
    assert error(output, truth) < 1e-6
    true = torch.autograd.grad(truth, exactly, grad)
    for one, other in zip(torch.autograd.grad(output, found, grad.float()), true, strict=True):
        assert error(one, other) < 1e-5


@pytest.mark.parametrize("size", [1e-30, 1e20])
def test_the_size_of_v_is_no_trouble(size: float) -> None:
    if native.built().code is None:
        pytest.skip(native.built().how)
    q, k, v = (some(*shape, seed=7, dtype=torch.float32) for shape in ((1, 4, 40), (1, 6, 40), (40,)))
    output = cpu_op.additive_scores(q * 2, k * 2, v * size)
    assert error(output / size, cpu_op._plainly(q.double() * 2, k.double() * 2, v.double())) < 1e-6


@pytest.mark.parametrize("name", ["padding on both sides", "a table"])
def test_nothing_in_padding_leaks(form: str, name: str) -> None:
    tensors, score = call(2)
    kept = MASKS[name].dense((2, 20, 30)).expand(2, 20, 30)
    clean = fused(*tensors, score=score, mask=MASKS[name])
    truth = gradients(clean, tensors, score)
    with torch.no_grad():
        tensors[0][~kept.any(-1)] = torch.nan
        tensors[1][~kept.any(-2)] = torch.inf
        tensors[2][~kept.any(-2)] = torch.nan
    output = fused(*tensors, score=score, mask=MASKS[name])
    torch.testing.assert_close(output, clean)
    for one, other in zip(gradients(output, tensors, score), truth, strict=True):
        torch.testing.assert_close(one, other)


def test_a_row_with_nothing_to_attend_to_is_zero(form: str) -> None:
    tensors, score = call(2)
    output = fused(*tensors, score=score, mask=MASKS["padding on both sides"])
    assert not output[1].any()
    assert not output[0, 11:].any()
    assert output[0, :11].any()


def test_what_is_no_number_stays_so(form: str) -> None:
    q, k, v = torch.zeros(1, 3, 40), torch.ones(1, 5, 40), torch.ones(40)
    q[0, 1, 7], k[0, 2, 39], q[0, 0, 3] = torch.nan, torch.nan, torch.inf
    torch.testing.assert_close(cpu_op.additive_scores(q, k, v), cpu_op._plainly(q, k, v), equal_nan=True)


@settings(deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    leading=st.sampled_from([(), (1,), (2,), (2, 4)]), queries=st.integers(1, 9), keys=st.integers(1, 9),
    width=st.integers(1, 40), mask=st.one_of(st.none(), combined), scale=st.sampled_from([1.0, 6.0]),
)  # fmt: skip
def test_every_shape_is_served(
    form: str, leading: tuple[int, ...], queries: int, keys: int, width: int, mask: masks.Mask | None, scale: float
) -> None:
    if not leading or (mask is not None and leading[0] != 2):
        mask = None
    tensors, score = call(*leading, queries=queries, keys=keys, width=width, scale=scale)
    true_tensors, true_score = exact(tensors, score)
    output, truth = fused(*tensors, score=score, mask=mask), by_reference(*true_tensors, score=true_score, mask=mask)
    torch.testing.assert_close(output.double(), truth, rtol=1e-5, atol=1e-5)
    found = (gradients(output, tensors, score), gradients(truth, true_tensors, true_score))
    for one, other in zip(*found, strict=True):
        assert (one - other).norm() <= 2e-5 * other.norm() + 1e-5


def heads() -> list[Tensor]:
    return [some(2, 4, 5, 6, dtype=torch.float32), *(some(2, 2, 7, 6, seed=s, dtype=torch.float32) for s in (1, 2))]


torch.manual_seed(1)
ADDITIVE, CONCAT, COVERAGE = scores.Additive.of(6, 6, 8), scores.Concat.of(6, 6, 8), scores.Coverage.of(6, 6, 8)
SO_FAR = torch.rand(2, 4, 7)


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("mask", [None, masks.lengths([4, 7]), masks.causal()], ids=repr)
@pytest.mark.parametrize(
    "score", [ADDITIVE, CONCAT, COVERAGE, COVERAGE.given(SO_FAR), ADDITIVE.projected, CONCAT.projected,
              COVERAGE.given(SO_FAR, projected=True)], ids=repr,
)  # fmt: skip
def test_every_score_that_is_a_sum_under_a_tanh_is_served(
    form: str, score: scores.Score, mask: masks.Mask | None, kv_heads: int
) -> None:
    query, key, value = heads()
    key, value = (
        each[:, :1].expand(-1, kv_heads, -1, -1) * torch.arange(1, kv_heads + 1).view(-1, 1, 1) for each in (key, value)
    )
    if score in (ADDITIVE.projected, CONCAT.projected) or getattr(score, "keys_projected", False):
        key = key @ torch.ones(6, 8)
    if isinstance(score, scores.Covered) and kv_heads == 1:
        score = replace(score, so_far=SO_FAR[:, :1])
    given = {"score": score, "mask": mask, "details": True}
    (output, details), (truth, shown) = (
        attend(query, key, value, implementation=each, **given) for each in ("fused", "reference")
    )
    torch.testing.assert_close(output, truth)
    torch.testing.assert_close(details.weights, shown.weights)
    torch.testing.assert_close(details.coverage, shown.coverage)


@pytest.mark.parametrize(
    "settings",
    [{"normalise": "entmax15"}, {"normalise": "sample"}, {"dropout": 0.4}, {"bias": some(5, 7).float()},
     {"normalise": "sparsemax", "mask": masks.lengths([3, 0])}], ids=repr,
)  # fmt: skip
def test_what_follows_the_scores_is_as_ever(form: str, settings: dict[str, Any]) -> None:
    query, key, value = (each[:, :2] for each in heads())
    found = [
        attend(
            query,
            key,
            value,
            score=ADDITIVE,
            implementation=each,
            generator=torch.Generator().manual_seed(3),
            **settings,
        )
        for each in ("fused", "reference")
    ]
    torch.testing.assert_close(*found)


def test_weights_alone_are_served(form: str) -> None:
    query, key, _ = heads()
    found = [weigh(query, key, score=ADDITIVE, implementation=each) for each in ("fused", "reference")]
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_is_no_worse_than_the_reference(form: str, dtype: torch.dtype, autocast: bool) -> None:
    tensors, score = call(2, dtype=torch.float32 if autocast else dtype)
    true_tensors, true_score = exact(tensors, score)
    truth = by_reference(*true_tensors, score=true_score)
    with torch.autocast("cpu", dtype, enabled=autocast):
        ours, plain = fused(*tensors, score=score), by_reference(*tensors, score=score)
    assert ours.dtype == plain.dtype
    assert error(ours, truth) < 1.2 * error(plain, truth)
    true = gradients(truth, true_tensors, true_score)
    for mine, reference, one in zip(
        gradients(ours, tensors, score), gradients(plain, tensors, score), true, strict=True
    ):
        assert error(mine, one) < 2 * error(reference, one) + 1e-3


def test_the_bits_are_the_same_again_and_on_any_number_of_threads() -> None:
    tensors, score = call(4, queries=40, keys=50, width=90)
    found = []
    threads = torch.get_num_threads()
    for count in (1, 1, 3):
        torch.set_num_threads(count)
        output = fused(*tensors, score=score, mask=masks.causal())
        found.append(
            [output, *gradients(output, tensors, scores.Additive(score.W_q, score.W_k, score.v, score.b))[5:6]]
        )
    torch.set_num_threads(threads)
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            assert torch.equal(one, same)


def test_it_compiles_whole(form: str) -> None:
    torch.compiler.reset()
    tensors, score = call(2)
    output = torch.compile(fused, backend="aot_eager", fullgraph=True)(*tensors, score=score, mask=masks.causal())
    plain = fused(*tensors, score=score, mask=masks.causal())
    torch.testing.assert_close(output, plain)
    for one, other in zip(gradients(output, tensors, score), gradients(plain, tensors, score), strict=True):
        torch.testing.assert_close(one, other)


def test_the_operation_keeps_the_rules_of_pytorch(form: str) -> None:
    q, k, v = (some(*shape, dtype=torch.float32, grad=False) for shape in ((2, 3, 9), (2, 4, 9), (9,)))
    checks = ("test_schema", "test_faketensor", "test_autograd_registration", "test_aot_dispatch_static")
    keep = torch.rand(2, 3, 4) > 0.5
    leaves = [each.clone().requires_grad_() for each in (q, k, v)]
    torch.library.opcheck(torch.ops.regard.additive_scores.default, (*leaves, keep), test_utils=checks)
    given = (q, k, v, torch.ones(2, 3, 4))
    torch.library.opcheck(torch.ops.regard.additive_scores_backward.default, given, test_utils=checks[:2])


@pytest.mark.parametrize("wanted", [(0, 1, 2), (1,)])
def test_gradients_of_gradients_are_those_of_the_formula(form: str, wanted: tuple[int, ...]) -> None:
    found = []
    for run in (cpu_op.additive_scores, cpu_op._plainly):
        inputs = [some(*shape, dtype=torch.float32, grad=False) for shape in ((1, 3, 5), (1, 4, 5), (5,))]
        leaves = [inputs[which].requires_grad_() for which in wanted]
        first = torch.autograd.grad(run(*inputs).square().sum(), leaves, create_graph=True)
        found.append(torch.autograd.grad(sum(each.square().sum() for each in first), leaves))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)


class Largest(torch.utils._python_dispatch.TorchDispatchMode):
    """The most numbers that any one tensor has."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        made = out if isinstance(out, tuple | list) else (out,)
        self.numbers = max(
            [self.numbers, *(each.untyped_storage().nbytes() // 4 for each in made if isinstance(each, Tensor))]
        )
        return out


@pytest.mark.parametrize("form", FORMS)
def test_nothing_of_the_size_of_all_pairs_times_the_width_is_made(form: str) -> None:
    T = S = 200
    D, code = 64, native.built().code
    if form == "compiled" and code is None:
        pytest.skip(native.built().how)
    q, k, v, grad = (some(*shape, dtype=torch.float32, grad=False) for shape in ((1, T, D), (1, S, D), (D,), (1, T, S)))
    with Largest() as largest:
        if form == "compiled":
            native.backward(code, q, k, v, native.forward(code, q, k, v, None))
        else:
            blocks.backward(q, k, v, blocks.forward(q, k, v) + grad)
    assert 0 < largest.numbers <= max(2 * (T + S) * (D + 64), blocks.FORWARD)
    assert largest.numbers < T * S * D / 2
