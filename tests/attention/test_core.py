"""What attention must get right, on the reference and on every fast path, in values and in gradients."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from regard.attention import attend, masks, normalise, scores, weigh
from tests.attention.paths import PATHS, Path, by_reference, by_sdpa, qkv, some

every_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
by_bias = pytest.mark.parametrize("path", [by_reference, by_sdpa], ids=["reference", "sdpa"])


def gradients(output: Tensor, *inputs: Tensor, weight_seed: int = 99) -> tuple[Tensor, ...]:
    loss = (output * some(*output.shape, seed=weight_seed, grad=False).to(output)).sum()
    return torch.autograd.grad(loss, inputs, materialize_grads=True)


def same(got: Tensor, expected: Tensor, *inputs: Tensor) -> None:
    """Equal values, and equal gradients of every input."""
    torch.testing.assert_close(got, expected)
    for mine, truth in zip(gradients(got, *inputs), gradients(expected, *inputs), strict=True):
        torch.testing.assert_close(mine, truth)


@every_path
def test_true_in_a_mask_means_may_attend(path: Path) -> None:
    query, key, value = qkv(2, 3, 4, 5, keys=6)
    keep = some(2, 1, 4, 6, seed=7, grad=False) > -0.5
    expected = scaled_dot_product_attention(query, key, value, attn_mask=keep)
    got = by_reference(query, key, value, mask=keep) if path is PATHS["flex"] else path(query, key, value, mask=keep)
    same(got, expected, query, key, value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_numeric_mask_is_refused(dtype: torch.dtype) -> None:
    query, key, value = qkv(3, 4)
    with pytest.raises(ValueError, match=r"mask: expected booleans \(True = may attend\); got .*bias="):
        attend(query, key, value, mask=torch.ones(3, 3, dtype=dtype))


@every_path
def test_a_fully_masked_row_attends_to_nothing(path: Path) -> None:
    query, key, value = qkv(2, 2, 4, 5, keys=3)
    mask = masks.lengths([0, 2]) | masks.lengths(0)
    output = path(query, key, value, mask=mask)
    assert torch.equal(output[0], torch.zeros(2, 4, 5))
    assert (output[1] != 0).all()
    for gradient in gradients(output, query, key, value):
        assert torch.equal(gradient[0], torch.zeros_like(gradient[0]))
        assert gradient[1].isfinite().all()
        assert (gradient[1, :, 0] != 0).any()


@every_path
def test_a_query_before_the_first_key_attends_to_nothing(path: Path) -> None:
    query, key, value = qkv(1, 2, 5, 4, keys=3)
    output = path(query, key, value, mask=masks.causal())
    assert torch.equal(output[:, :, :2], torch.zeros(1, 2, 2, 4))
    assert all(gradient.isfinite().all() for gradient in gradients(output, query, key, value))


@by_bias
@pytest.mark.parametrize("mask", [None, masks.lengths([3, 2])], ids=repr)
def test_a_bias_may_empty_a_row_as_a_mask_does(path: Path, mask: masks.Mask | None) -> None:
    query, key, value = qkv(2, 2, 4, 5, keys=3)
    bias = some(2, 1, 4, 3, seed=5, grad=False)
    bias[:, :, 1] = -torch.inf
    bias[1, :, 2, :2] = -torch.inf  # what is left of this row is padding
    bias.requires_grad_()
    output = path(query, key, value, bias=bias, mask=mask)
    assert torch.equal(output[:, :, 1], torch.zeros(2, 2, 5))
    assert torch.equal(output[1, :, 2] == 0, torch.full((2, 5), mask is not None))
    assert all(gradient.isfinite().all() for gradient in gradients(output, query, key, value, bias))


@by_bias
def test_a_bias_with_one_number_for_all_keys_may_empty_a_row(path: Path) -> None:
    query, key, value = qkv(2, 2, 3, 5)
    output = path(query, key, value, bias=torch.tensor([[0.0], [-torch.inf], [1.0]], dtype=torch.float64))
    assert torch.equal(output[:, :, 1], torch.zeros(2, 2, 5))
    torch.testing.assert_close(output[:, :, 0], attend(query, key, value)[:, :, 0])


@every_path
def test_a_blocked_cell_has_weight_0_however_low_the_other_scores_are(path: Path) -> None:
    query = torch.full((1, 1, 3, 1), 1.0, dtype=torch.float32, requires_grad=True)
    key = torch.tensor([-110_000.0, -110_001.0, 5.0]).view(1, 1, 3, 1).requires_grad_()
    value = torch.tensor([1.0, 2.0, 1e6]).view(1, 1, 3, 1).requires_grad_()
    output = path(query, key, value, score=scores.Dot(), mask=masks.lengths([2]))
    first = 1 / (1 + 2.718281828459045**-1)
    torch.testing.assert_close(output, torch.full((1, 1, 3, 1), first + 2 * (1 - first)))
    assert gradients(output, value)[0][0, 0, 2] == 0


@every_path
@pytest.mark.parametrize("poison", [torch.nan, torch.inf, -torch.inf])
def test_nothing_in_padding_leaks_forward_or_backward(path: Path, poison: float) -> None:
    lengths = [2, 3]
    clean = qkv(2, 2, 4, 5, keys=3)
    padded = [each.detach().clone() for each in clean]
    for each in padded[1:]:
        each[0, :, 2:] = poison
    padded[0][1, :, 3:] = poison
    mask = masks.lengths(lengths, queries=[4, 3])
    inputs = [each.requires_grad_() for each in padded]
    output, expected = path(*inputs, mask=mask), by_reference(*clean, mask=mask)
    torch.testing.assert_close(output, expected)
    for got, truth in zip(gradients(output, *inputs), gradients(expected, *clean), strict=True):
        torch.testing.assert_close(got, truth)


@every_path
@pytest.mark.parametrize(("queries", "keys"), [(4, 4), (2, 5), (5, 2), (1, 6)])
@pytest.mark.parametrize("align", ["end", "start"])
def test_causal_stands_the_last_query_beside_the_last_key_or_the_first_beside_the_first(
    path: Path, queries: int, keys: int, align: masks.Align
) -> None:
    query, key, value = qkv(1, 2, queries, 4, keys=keys)
    shift = keys - queries if align == "end" else 0
    keep = torch.ones(queries, keys, dtype=torch.bool).tril(shift)
    output = path(query, key, value, mask=masks.causal(align))
    sees = keep.any(-1)
    expected = scaled_dot_product_attention(query[:, :, sees], key, value, attn_mask=keep[sees])
    torch.testing.assert_close(output[:, :, sees], expected)
    torch.testing.assert_close(output, by_reference(query, key, value, mask=keep))
    same(output, by_reference(query, key, value, mask=keep), query, key, value)


@every_path
def test_causal_and_a_mask_together_both_hold(path: Path) -> None:
    query, key, value = qkv(2, 2, 4, 5)
    both = torch.ones(4, 4, dtype=torch.bool).tril() & (torch.arange(4) < torch.tensor([4, 2]).view(2, 1, 1, 1))
    expected = scaled_dot_product_attention(query, key, value, attn_mask=both)
    same(path(query, key, value, mask=masks.causal() & masks.lengths([4, 2])), expected, query, key, value)


@every_path
def test_scores_in_half_precision_are_scaled_before_they_can_overflow(path: Path) -> None:
    query = torch.full((1, 1, 2, 64), 60.0, dtype=torch.float16, requires_grad=True)
    key = torch.full((1, 1, 3, 64), 60.0, dtype=torch.float16, requires_grad=True)
    value = some(1, 1, 3, 2, dtype=torch.float16)
    output = path(query, key, value, mask=masks.lengths([2]))
    torch.testing.assert_close(output, value[:, :, :2].mean(-2, keepdim=True).expand(1, 1, 2, 2))
    assert all(gradient.isfinite().all() for gradient in gradients(output, query, key, value))


@every_path
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_sums_its_exponentials_in_float32(path: Path, dtype: torch.dtype) -> None:
    # 3,000 equal weights: a float16 sum stops at 2,048, a bfloat16 one at 256.
    query, key = torch.zeros(1, 1, 1, 8, dtype=dtype), torch.zeros(1, 1, 3000, 8, dtype=dtype)
    value = torch.ones(1, 1, 3000, 2, dtype=dtype)
    output = path(query, key, value)
    assert output.dtype == dtype
    torch.testing.assert_close(output, torch.ones(1, 1, 1, 2, dtype=dtype), atol=0.01, rtol=0)


@by_bias
def test_dropout_falls_on_the_weights_times_one_over_what_stays(path: Path) -> None:
    query, key, value = qkv(1, 1, 200, 4, keys=50)
    eye = torch.eye(50, dtype=torch.float64).view(1, 1, 50, 50)
    torch.manual_seed(0)
    dropped = path(query, key, eye, dropout=0.25)
    whole = weigh(query, key)
    stays = dropped != 0
    torch.testing.assert_close(dropped[stays], whole[stays] / 0.75)
    assert 0.22 < 1 - stays.double().mean() < 0.28
    assert torch.equal(path(query, key, value, dropout=1.0), torch.zeros(1, 1, 200, 4))


def test_dropout_by_a_generator_is_the_same_each_time_and_leaves_the_global_one_alone() -> None:
    query, key, value = qkv(2, 2, 3, 4)
    state = torch.get_rng_state()
    eye = torch.eye(3, dtype=torch.float64)
    dropped = attend(query, key, eye, dropout=0.5, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(dropped, torch.where(dropped != 0, weigh(query, key) / 0.5, 0.0))
    first, again, other = (
        attend(query, key, value, dropout=0.5, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


CALLS = {
    "plain": {},
    "mask": {"mask": masks.causal() & masks.lengths([2, 4])},
    "bias": {"bias": some(4, 4, seed=4, grad=False)},
    "dropout": {"dropout": 0.4},
    "generator": {"dropout": 0.4, "generator": 3},
    "gumbel": {"normalise": normalise.gumbel},
    "sample and dropout": {"normalise": normalise.sample, "dropout": 0.3, "generator": 3},
    "additive": {"score": scores.Additive.of(5, 5, 6).double()},
}


@pytest.mark.parametrize("implementation", ["auto", "reference"])
@pytest.mark.parametrize("settings", CALLS.values(), ids=CALLS)
def test_asking_to_see_weights_never_changes_the_answer(settings: dict[str, object], implementation: str) -> None:
    query, key, value = qkv(2, 3, 4, 5)
    answers, states = [], []
    for details in (False, True):
        torch.manual_seed(0)
        seeded = dict(settings, details=details, implementation=implementation)
        if "generator" in seeded:
            seeded["generator"] = torch.Generator().manual_seed(3)
        answers.append(attend(query, key, value, **seeded))
        states.append(torch.get_rng_state())
    output, (seen, details) = answers
    assert torch.equal(output, seen)
    assert torch.equal(*states)  # nor what is drawn after it
    for got, truth in zip(gradients(seen, query, key, value), gradients(output, query, key, value), strict=True):
        assert torch.equal(got, truth)
    assert details.weights.shape == (2, 3, 4, 4)


@by_bias
def test_weights_come_back_one_set_a_head_and_before_dropout(path: Path) -> None:
    query, key, value = qkv(2, 3, 4, 5, keys=6)
    _, details = path(query, key, value, dropout=0.9, details=True)
    assert details.weights.shape == (2, 3, 4, 6)
    torch.testing.assert_close(details.weights, torch.softmax(query @ key.mT / 5**0.5, -1))


@every_path
@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_query_head_h_reads_the_key_head_of_its_group(path: Path, kv_heads: int) -> None:
    query = some(2, 6, 4, 5)
    key, value = some(2, kv_heads, 3, 5, seed=1), some(2, kv_heads, 3, 5, seed=2)
    expected = scaled_dot_product_attention(query, key, value, enable_gqa=True)
    same(path(query, key, value), expected, query, key, value)
    head = 4
    own = attend(query[:, head], key[:, head // (6 // kv_heads)], value[:, head // (6 // kv_heads)])
    torch.testing.assert_close(path(query, key, value)[:, head], own)


@every_path
def test_a_single_value_head_goes_to_all(path: Path) -> None:
    query, key, value = some(2, 4, 3, 5), some(2, 2, 6, 5, seed=1), some(2, 1, 6, 7, seed=2)
    expected = attend(query, key.repeat_interleave(2, 1), value.expand(2, 4, 6, 7))
    same(path(query, key, value), expected, query, key, value)


def test_attend_is_weigh_times_the_values() -> None:
    query, key, value = qkv(2, 3, 4, 5, keys=6)
    for settings in (
        {"mask": masks.causal()},
        {"normalise": normalise.entmax15, "score": "cosine"},
        {"bias": some(3, 4, 6, seed=4), "normalise": normalise.relu(divide=True)},
    ):
        same(attend(query, key, value, **settings), weigh(query, key, **settings) @ value, query, key, value)


def test_attention_without_positions_permutes_with_its_input() -> None:
    x = some(2, 7, 4)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(1))
    whole = attend(x, x, x, score=scores.Dot())
    torch.testing.assert_close(attend(x[:, order], x[:, order], x[:, order], score=scores.Dot()), whole[:, order])


@every_path
def test_attention_is_that_of_multi_head_attention_of_pytorch(path: Path) -> None:
    module = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    x, memory = some(2, 3, 8, grad=False), some(2, 5, 8, seed=1, grad=False)
    padding = torch.arange(5) >= torch.tensor([[5], [3]])
    expected, averaged = module(x, memory, memory, key_padding_mask=padding)
    w_q, w_k, w_v = module.in_proj_weight.chunk(3)
    heads = [(rows @ w.T).unflatten(-1, (2, 4)).transpose(1, 2) for rows, w in ((x, w_q), (memory, w_k), (memory, w_v))]
    mask = masks.lengths([5, 3])
    merged = path(*heads, mask=mask).transpose(1, 2).flatten(-2)
    torch.testing.assert_close(module.out_proj(merged), expected)
    torch.testing.assert_close(weigh(*heads[:2], mask=mask).mean(1), averaged)


@pytest.mark.parametrize("axes", [(), (3,), (2, 3), (2, 1, 3), (2, 2, 1, 3)])
@pytest.mark.parametrize("path", [by_reference, by_sdpa], ids=["reference", "sdpa"])
def test_two_to_six_axes_are_served(path: Path, axes: tuple[int, ...]) -> None:
    query, key, value = qkv(*axes, 4, 5, keys=3)
    expected = torch.softmax(query @ key.mT / 5**0.5, -1) @ value
    same(path(query, key, value), expected, query, key, value)
    causal = torch.ones(4, 3, dtype=torch.bool).tril()
    truth = torch.softmax((query @ key.mT / 5**0.5).masked_fill(~causal, -torch.inf), -1) @ value
    same(path(query, key, value, mask=masks.causal("start")), truth, query, key, value)


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [((2, 1), (1, 3), (2, 3)), ((), (2, 3), (2, 3)), ((2, 3), (), ()), ((), (), (2, 3)), ((2, 3), (2, 1), (1, 1))],
)
def test_leading_axes_broadcast(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> None:
    query, key, value = some(*q, 4, 5), some(*k, 6, 5, seed=1), some(*v, 6, 2, seed=2)
    wide = torch.broadcast_shapes(q, k, v)
    expected = scaled_dot_product_attention(*(each.expand(*wide, *each.shape[-2:]) for each in (query, key, value)))
    same(attend(query, key, value), expected, query, key, value)
    assert weigh(query, key, score=scores.Location.of(5, 9).double()).shape == (*torch.broadcast_shapes(q, k), 4, 6)


@pytest.mark.parametrize("mask", [None, masks.causal(), masks.lengths(2), masks.tensor(torch.tensor(True))], ids=repr)
@pytest.mark.parametrize(
    "shape", [(0, 3, 2, 2), (2, 0, 2, 2), (2, 3, 0, 2), (2, 3, 2, 0), (0, 0, 0, 0)], ids=lambda shape: f"BTSd{shape}"
)
@pytest.mark.parametrize("name", list(normalise.NAMED))
def test_an_axis_of_length_0_gives_an_axis_of_length_0(
    shape: tuple[int, ...], mask: masks.Mask | None, name: str
) -> None:
    batch, queries, keys, width = shape
    query, key, value = some(batch, queries, width), some(batch, keys, width), some(batch, keys, 5)
    output, details = attend(query, key, value, mask=mask, normalise=name, details=True)
    assert output.shape == (batch, queries, 5)
    assert details.weights.shape == (batch, queries, keys)
    if name == "sample":
        assert details.log_prob.shape == details.entropy.shape == (batch, queries)
    if keys == 0:
        assert (output == 0).all()  # nothing to attend to
    assert all(each.isfinite().all() for each in gradients(output, query, key, value))


@by_bias
@pytest.mark.parametrize("cells", [True, [True, False, True], [[True], [False], [True], [True]]], ids=str)
def test_masks_of_fewer_axes_broadcast(path: Path, cells: object) -> None:
    query, key, value = qkv(2, 2, 4, 5, keys=3)
    keep = torch.tensor(cells)
    expected = by_reference(query, key, value, mask=keep.expand(4, 3).contiguous())
    same(path(query, key, value, mask=keep), expected, query, key, value)


@every_path
@pytest.mark.parametrize("score", [scores.Dot(), scores.ScaledDot(0.3), scores.Cosine(0.5)], ids=repr)
def test_each_path_gives_the_gradients_of_finite_differences(path: Path, score: scores.Score) -> None:
    mask = masks.causal() & masks.lengths([3, 2])
    torch.autograd.gradcheck(lambda *three: path(*three, score=score, mask=mask), qkv(2, 1, 3, 2))


def test_gradients_of_gradients_are_those_of_finite_differences() -> None:
    torch.autograd.gradgradcheck(lambda *three: by_reference(*three, mask=masks.causal()), qkv(1, 3, 2))


@by_bias
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_near_float64(path: Path, dtype: torch.dtype) -> None:
    exact = qkv(2, 2, 8, 16)
    rough = [each.detach().to(dtype) for each in exact]
    truth = attend(*(each.double() for each in rough), mask=masks.causal(), bias=some(8, 8, seed=8, grad=False))
    output = path(*rough, mask=masks.causal(), bias=some(8, 8, seed=8, grad=False).float())
    assert output.dtype == dtype
    torch.testing.assert_close(output.double(), truth, atol=0.03, rtol=0.03)


@by_bias
def test_under_autocast_the_kinds_may_differ(path: Path) -> None:
    query, key, value = (each.detach().float() for each in qkv(2, 2, 4, 8))
    with torch.autocast("cpu", torch.bfloat16):
        mixed = path(query, key.bfloat16(), value.bfloat16(), mask=masks.causal())
        plain = path(query, key, value, mask=masks.causal())
    assert mixed.dtype == plain.dtype == torch.bfloat16
    torch.testing.assert_close(plain.float(), attend(query, key, value, mask=masks.causal()), atol=0.03, rtol=0.03)
    torch.testing.assert_close(mixed, plain, atol=0.03, rtol=0.03)


@pytest.mark.parametrize("implementation", ["reference", "fused"])
@pytest.mark.parametrize(
    "mask", [None, masks.causal(), masks.lengths([2, 4]) & masks.window(1, 1), masks.lengths([2, 4], [4, 1])], ids=repr
)
def test_attend_compiles_whole(implementation: str, mask: masks.Mask | None) -> None:
    def call(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return attend(query, key, value, mask=mask, implementation=implementation)

    query, key, value = qkv(2, 2, 4, 5)
    torch._dynamo.reset()
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    same(compiled(query, key, value), call(query, key, value), query, key, value)


def test_a_mask_made_inside_a_compiled_function_compiles_whole() -> None:
    def call(query: Tensor, key: Tensor, value: Tensor, lengths: Tensor) -> Tensor:
        mask = masks.causal() & masks.lengths(lengths)
        return attend(query, key, value, mask=mask, score=scores.Cosine(0.1), normalise=normalise.sparsemax)

    torch._dynamo.reset()
    inputs = [*qkv(2, 2, 4, 5), torch.tensor([2, 4])]
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    same(compiled(*inputs), call(*inputs), *inputs[:3])


# Worked examples of lecture notes, their slips put right.
@every_path
def test_dot_product_attention_over_three_encoder_states_as_on_paper(path: Path) -> None:
    states = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.5], [0.3, 0.4, 0.5, 0.6]], dtype=torch.float64)
    state = torch.tensor([[0.4, 0.5, 0.6, 0.7]], dtype=torch.float64)
    weights = weigh(state, states, score="dot")
    assert weights.numpy().round(4).tolist() == [[0.2632, 0.3280, 0.4087]]
    context = path(state[None, None], states[None, None], states[None, None], score=scores.Dot())
    assert context.numpy().round(4).tolist() == [[[[0.2145, 0.3145, 0.4145, 0.5145]]]]
    W = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.5], [0.3, 0.4, 0.5, 0.6], [0.4, 0.5, 0.6, 0.7]])
    weights = weigh(state, states, score=scores.General(W.double()))
    assert weights.numpy().round(4).tolist() == [[0.2195, 0.3185, 0.4620]]


@every_path
def test_self_attention_over_three_inputs_as_on_paper(path: Path) -> None:
    query = torch.tensor([[1, 0, 2], [2, 2, 2], [2, 1, 3]], dtype=torch.float64)
    key = torch.tensor([[0, 1, 1], [4, 4, 0], [2, 3, 1]], dtype=torch.float64)
    value = torch.tensor([[1, 2, 3], [2, 8, 0], [2, 6, 3]], dtype=torch.float64)
    output = path(query[None, None], key[None, None], value[None, None], score=scores.Dot())[0, 0]
    expected = [[1.9366, 6.6831, 1.5951], [2.0000, 7.9640, 0.0540], [1.9997, 7.7599, 0.3584]]
    assert output.numpy().round(4).tolist() == expected
