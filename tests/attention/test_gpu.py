"""On a GPU: the compiled flex path, scaled_dot_product_attention's kernels, and the table that picks among them."""

import copy

import pytest
import torch
from torch import Tensor

from regard.attention import attend, explain_choice, masks, positions, scores
from regard.attention.checks import checked
from regard.attention.fast import flex, short
from regard.attention.normalise import softmax

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
    # What PyTorch's own compiler says of itself as it is imported.
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning"),
]

TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 3e-2, torch.float16: 1e-2}


def made(
    heads: int = 4, kv_heads: int = 4, queries: int = 200, keys: int = 200, dtype: torch.dtype = torch.float32
) -> list[Tensor]:
    torch.manual_seed(0)
    sizes = ((heads, queries), (kv_heads, keys), (kv_heads, keys))
    return [torch.randn(3, *size, 64, device="cuda", dtype=dtype, requires_grad=True) for size in sizes]


def close(got: Tensor, truth: Tensor, inputs: list[Tensor]) -> None:
    tolerance = TOLERANCE[got.dtype]
    torch.testing.assert_close(got, truth, atol=tolerance, rtol=tolerance)
    tilt = torch.randn_like(got)
    for one, other in zip(*(torch.autograd.grad((each * tilt).sum(), inputs) for each in (got, truth)), strict=True):
        assert one.isfinite().all()
        torch.testing.assert_close(one, other, atol=4 * tolerance, rtol=4 * tolerance)


def errors(got: Tensor, inputs: list[Tensor], truth: Tensor, wide: list[Tensor]) -> list[float]:
    """How far output and gradients are from those in float64, as shares of these."""
    tilt = torch.randn(truth.shape, generator=torch.Generator("cuda").manual_seed(1), device="cuda")
    mine = torch.autograd.grad((got.float() * tilt).sum(), inputs)
    true = torch.autograd.grad((truth * tilt.double()).sum(), wide, retain_graph=True)
    pairs = zip((got, *mine), (truth, *true), strict=True)
    return [((one.double() - other).norm() / other.norm().clamp(min=1e-9)).item() for one, other in pairs]


MASKS = [
    None,
    masks.causal(),
    masks.causal("start"),
    masks.lengths([200, 77, 0]),
    masks.causal() & masks.lengths([200, 77, 1], queries=[200, 77, 1]),
    masks.window(16, 3) | masks.block(32),
]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("mask", MASKS, ids=repr)
@pytest.mark.parametrize(("kv_heads", "queries"), [(4, 200), (2, 60)])
def test_the_fast_path_gives_the_values_and_gradients_of_the_reference(
    mask: masks.Mask | None, dtype: torch.dtype, kv_heads: int, queries: int
) -> None:
    inputs = made(kv_heads=kv_heads, queries=queries, dtype=dtype)
    fused, truth = (attend(*inputs, mask=mask, implementation=each) for each in ("fused", "reference"))
    close(fused, truth, inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mask", MASKS[2:], ids=repr)
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_compiled_flex_gives_the_values_and_gradients_of_the_reference(
    mask: masks.Mask, dtype: torch.dtype, kv_heads: int
) -> None:
    inputs = made(kv_heads=kv_heads, dtype=dtype)
    call = checked(*inputs, scores.ScaledDot(), None, mask, softmax, 0.0, None)
    close(flex.run(call), attend(*inputs, mask=mask, implementation="reference"), inputs)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_a_bias_is_served_in_every_kind(dtype: torch.dtype) -> None:
    inputs = made(dtype=dtype)
    bias = positions.Alibi(4).cuda().bias(200, 200)
    bias[:, 3] = -torch.inf
    mask = masks.lengths([200, 77, 0])
    fused, truth = (attend(*inputs, bias=bias, mask=mask, implementation=each) for each in ("fused", "reference"))
    close(fused, truth, inputs)


@pytest.mark.parametrize("path", ["sdpa", "flex"])
@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
def test_nothing_in_padding_leaks(path: str, poison: float) -> None:
    inputs, mask = made(), masks.lengths([200, 77, 0], queries=[200, 77, 0])
    with torch.no_grad():
        for each in inputs:
            each[1, :, 77:], each[2] = poison, poison
    call = checked(*inputs, scores.ScaledDot(), None, mask, softmax, 0.0, None)
    output = flex.run(call) if path == "flex" else attend(*inputs, mask=mask, implementation="fused")
    close(output, attend(*inputs, mask=mask, implementation="reference"), inputs)


def test_new_lengths_and_shapes_reuse_the_compiled_kernel() -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with torch._dynamo.config.patch(error_on_recompile=False):
        for length in range(180, 200):
            inputs = made(queries=length, keys=length)
            mask = masks.causal() & masks.lengths([length, length // 2, 1])
            call = checked(*inputs, scores.ScaledDot(), None, mask, softmax, 0.0, None)
            close(flex.run(call), attend(*inputs, mask=mask, implementation="reference"), inputs)
    frames = torch._dynamo.utils.counters["frames"]
    assert frames["ok"] <= 4, dict(frames)


def test_large_masks_that_are_rules_go_to_flex() -> None:
    inputs = [each.expand(3, 4, 4096, 64) for each in made(queries=1, keys=1)]
    mask = masks.causal() & masks.lengths([4096, 77, 0])
    assert explain_choice(*inputs, mask=mask).path == "flex"
    assert explain_choice(*inputs).path == "sdpa"
    assert "the mask is a table of cells" in str(
        explain_choice(*inputs, mask=mask & mask.dense((3, 1, 4096, 4096), "cuda"))
    )
    assert explain_choice(*(each[:, :, :100] for each in inputs), mask=masks.lengths([1, 2, 3])).path == "sdpa"


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("mask", MASKS, ids=repr)
@pytest.mark.parametrize("queries", [200, 1])
def test_additive_kernels_give_the_values_and_gradients_of_the_reference(
    mask: masks.Mask | None, dtype: torch.dtype, queries: int
) -> None:
    if queries == 1 and isinstance(mask, type(MASKS[4])):
        pytest.skip("its lengths of queries are for 200")
    inputs = made(heads=2, kv_heads=2, queries=queries, dtype=dtype)
    score = scores.Additive.of(64, 64, 96).to("cuda", dtype)
    wide = [each.detach().double().requires_grad_() for each in inputs]
    wider = copy.deepcopy(score).double()
    truth = attend(*wide, score=wider, mask=mask, implementation="reference")
    fused, plain = (
        errors(
            attend(*inputs, score=score, mask=mask, implementation=each), [*inputs, *score.parameters()],
            truth, [*wide, *wider.parameters()],
        )
        for each in ("fused", "reference")
    )  # fmt: skip
    least = 1e-5 if dtype == torch.float32 else 0.0
    assert all(mine <= max(2 * theirs, least) for mine, theirs in zip(fused, plain, strict=True)), (fused, plain)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("mask", MASKS[1:], ids=repr)
@pytest.mark.parametrize(("kv_heads", "queries", "keys"), [(4, 128, 128), (2, 60, 100), (4, 1, 30), (2, 32, 17)])
def test_short_rows_give_the_values_and_gradients_of_the_reference(
    mask: masks.Mask, dtype: torch.dtype, kv_heads: int, queries: int, keys: int
) -> None:
    inputs = made(kv_heads=kv_heads, queries=queries, keys=keys, dtype=dtype)
    call = checked(*inputs, scores.ScaledDot(), None, mask, softmax, 0.0, None)
    if short.obstacle(call) is not None:
        pytest.skip("there is no mask in effect")
    wide = [each.detach().double().requires_grad_() for each in inputs]
    truth = attend(*wide, mask=mask, implementation="reference")
    fused = errors(short.run(call), inputs, truth, wide)
    plain = errors(attend(*inputs, mask=mask, implementation="reference"), inputs, truth, wide)
    assert all(mine <= 2 * theirs for mine, theirs in zip(fused, plain, strict=True)), (fused, plain)


def test_additive_kernels_are_captured_in_a_graph() -> None:
    inputs = [each.detach() for each in made(heads=1, kv_heads=1, queries=1)]
    score = scores.Additive.of(64, 64, 96).cuda()
    with torch.no_grad():
        truth = attend(*inputs, score=score, implementation="fused")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = attend(*inputs, score=score, implementation="fused")
        graph.replay()
    torch.testing.assert_close(output, truth)
