"""MultiHead: PyTorch's answer from its own weights, grouped heads, caches that are passed in and returned."""

import re

import pytest
import torch
from torch import nn

from regard.attention import Cache, MultiHead, attend, masks, normalise, positions, scores
from tests.attention.paths import some

torch.manual_seed(0)


def copied(theirs: nn.MultiheadAttention) -> MultiHead:
    """Ours with the weights of PyTorch's."""
    memory = theirs.kdim
    ours = MultiHead(
        theirs.embed_dim, theirs.num_heads, key_width=memory, bias=theirs.in_proj_bias is not None
    ).double()
    separate = theirs.in_proj_weight is None
    matrices = (
        (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
        if separate
        else theirs.in_proj_weight.chunk(3)
    )
    with torch.no_grad():
        for mine, matrix in zip((ours.query, ours.key, ours.value), matrices, strict=True):
            mine.weight.copy_(matrix)
        ours.out.weight.copy_(theirs.out_proj.weight)
        if theirs.in_proj_bias is not None:
            torch.nn.init.normal_(theirs.in_proj_bias)
            torch.nn.init.normal_(theirs.out_proj.bias)
            ours.out.bias.copy_(theirs.out_proj.bias)
            for mine, bias in zip((ours.query, ours.key, ours.value), theirs.in_proj_bias.chunk(3), strict=True):
                mine.bias.copy_(bias)
    return ours


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("use", ["self", "causal", "padded", "cross"])
def test_it_is_multi_head_attention_of_pytorch_with_its_weights(use: str, bias: bool) -> None:
    width = {"kdim": 6, "vdim": 6} if use == "cross" else {}
    theirs = nn.MultiheadAttention(8, 2, bias=bias, batch_first=True, dtype=torch.float64, **width)
    ours, x = copied(theirs), some(2, 4, 8)
    memory = some(2, 5, 6, seed=1) if use == "cross" else None
    keys = x if memory is None else memory
    causal = ~torch.ones(4, 4, dtype=torch.bool).tril() if use == "causal" else None  # theirs is the other way round
    padding = torch.arange(4) >= torch.tensor([[4], [2]]) if use == "padded" else None
    expected, weights = theirs(
        x, keys, keys, attn_mask=causal, key_padding_mask=padding, average_attn_weights=False, need_weights=True
    )
    mask = {"causal": masks.causal(), "padded": masks.lengths([4, 2])}.get(use)
    got = ours(x, memory, mask=mask, want_weights=True)
    torch.testing.assert_close(got.output, expected)
    torch.testing.assert_close(got.weights, weights)
    mine, truth = (torch.autograd.grad(each.square().sum(), [x, keys]) for each in (got.output, expected))
    torch.testing.assert_close(mine, truth)


VARIANTS = {
    "plain": {},
    "grouped": {"kv_heads": 2},
    "one key head": {"kv_heads": 1},
    "rotary": {"positions": positions.Rotary(2)},
    "interleaved": {"positions": positions.Rotary(2, "interleaved")},
    "alibi": {"positions": positions.Alibi(4)},
    "additive": {"score": "additive"},
    "entmax": {"normalise": "entmax15"},
}


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("grad", [False, True], ids=["inferring", "training"])
@pytest.mark.parametrize("steps", [[1] * 11, [3, 1, 7], [11]], ids=str)
def test_with_a_cache_the_steps_equal_the_whole(settings: dict[str, object], grad: bool, steps: list[int]) -> None:
    module = MultiHead(8, 4, **settings).double()
    x = some(2, 11, 8, grad=grad)
    with torch.set_grad_enabled(grad):
        whole = module(x, mask=masks.causal(), want_weights=True)
        cache, outputs = None, []
        for part in x.split(steps, 1):
            attended = module(part, mask=masks.causal(), cache=cache, want_weights=True)
            cache, _ = attended.cache, outputs.append(attended.output)
    torch.testing.assert_close(torch.cat(outputs, 1), whole.output)
    torch.testing.assert_close(attended.weights[..., -1, :], whole.weights[..., -1, :])
    torch.testing.assert_close(cache.key, whole.cache.key)
    if grad:
        mine, truth = (
            torch.autograd.grad(each.square().sum(), [x, *module.parameters()], materialize_grads=True)
            for each in (torch.cat(outputs, 1), whole.output)
        )
        torch.testing.assert_close(mine, truth)


def test_only_a_trained_value_needs_a_cache_that_is_not_written_to() -> None:
    module = MultiHead(4, 2)
    module.query.requires_grad_(False)
    module.key.requires_grad_(False)
    x, cache, total = torch.randn(1, 9, 4), None, torch.zeros(())
    for part in x.split(1, 1):
        attended = module(part, cache=cache)
        cache, total = attended.cache, total + attended.output.sum()
    total.backward()
    assert module.value.weight.grad is not None


def test_a_cache_keeps_beams_in_the_order_asked_for() -> None:
    module, x = MultiHead(8, 2).double(), some(3, 5, 8, grad=False)
    with torch.no_grad():
        cache = module(x[:, :4], mask=masks.causal()).cache
        order = torch.tensor([2, 2, 0])
        got = module(x[order, 4:], mask=masks.causal(), cache=cache.select(order)).output
        torch.testing.assert_close(got, module(x[order], mask=masks.causal()).output[:, 4:])


def test_n_steps_copy_the_cache_only_when_its_room_is_full() -> None:
    rooms, cache = set(), Cache(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2), 1)
    for _ in range(500):
        cache = cache.extended(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2))
        rooms.add(cache.key_BHSd.data_ptr())
    assert cache.length == 501
    assert len(rooms) <= 9


def test_nothing_is_kept_between_calls() -> None:
    module, x = MultiHead(8, 2).double(), some(2, 4, 8, grad=False)
    first = module(x).output
    module(some(2, 7, 8, seed=5), some(2, 3, 8, seed=6))
    assert torch.equal(module(x).output, first)


def test_a_memory_may_be_projected_once_for_many_steps() -> None:
    module, x, memory = MultiHead(8, 2, key_width=6, kv_heads=1).double(), some(2, 3, 8), some(2, 5, 6, seed=1)
    mask = masks.lengths([5, 2])
    whole = module(x, memory, mask=mask)
    torch.testing.assert_close(module.attend_to(x, module.project(memory), mask=mask).output, whole.output)


def test_dropout_falls_only_in_training() -> None:
    module, x = MultiHead(8, 2, dropout=0.5).double(), some(2, 6, 8)
    assert not torch.equal(module(x).output, module(x).output)
    module.eval()
    assert torch.equal(module(x).output, module(x).output)


def test_asking_for_weights_leaves_the_output_and_gives_each_heads_own() -> None:
    module, x = MultiHead(8, 4, kv_heads=2, dropout=0.3).double(), some(2, 6, 8)
    torch.manual_seed(1)
    plain = module(x)
    torch.manual_seed(1)
    seen = module(x, want_weights=True)
    assert plain.weights is None
    assert torch.equal(plain.output, seen.output)
    assert seen.weights.shape == (2, 4, 6, 6)
    torch.testing.assert_close(seen.weights.sum(-1), torch.ones(2, 4, 6).double())


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "general", "low_rank", "additive", "concat"])
@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "relu"])
def test_any_score_and_any_normaliser_may_stand_in(name: str, normaliser: str) -> None:
    module = MultiHead(8, 2, score=name, normalise=normaliser)
    output = module(torch.randn(2, 5, 8), mask=masks.lengths([5, 0])).output
    assert output.isfinite().all()
    output.sum().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in module.parameters())
    assert isinstance(module.score, scores.Score)
    assert isinstance(module.normalise, normalise.Normaliser)


def test_biases_of_the_projections_are_as_asked_for() -> None:
    def names(**settings: bool) -> list[str]:
        return [name.split(".")[0] for name, _ in MultiHead(8, 2, **settings).named_parameters() if "bias" in name]

    assert names() == ["query", "key", "value", "out"]
    assert names(bias=False) == []
    assert names(bias=False, out_bias=True) == ["out"]
    assert names(out_bias=False) == ["query", "key", "value"]


def test_it_compiles_whole_with_and_without_a_cache() -> None:
    torch._dynamo.reset()
    module, x = MultiHead(8, 4, kv_heads=2).double(), some(2, 5, 8)

    def steps(x: torch.Tensor) -> torch.Tensor:
        first = module(x[:, :4], mask=masks.causal())
        return module(x[:, 4:], mask=masks.causal(), cache=first.cache).output

    torch.testing.assert_close(torch.compile(steps, backend="aot_eager", fullgraph=True)(x), steps(x))


X = torch.zeros(2, 3, 8)
SAYS = {
    "heads": (lambda: MultiHead(8, 3), "heads: must divide the width; got 3 heads for width 8 (or set head_width)"),
    "key heads": (lambda: MultiHead(8, 4, kv_heads=3), "kv_heads: must divide heads; got 3 for 4"),
    "no heads": (lambda: MultiHead(8, 0), "heads: expected one or more; got 0 heads and 0 key heads"),
    "dropout": (lambda: MultiHead(8, 2, dropout=1.5), "dropout: expected a share between 0 and 1; got 1.5"),
    "width": (lambda: MultiHead(8, 2)(X[..., :7]), "x: expected [batch, length, 8]; got [2, 3, 7]"),
    "axes": (lambda: MultiHead(8, 2)(X[0]), "x: expected [batch, length, 8]; got [3, 8]"),
    "memory": (lambda: MultiHead(8, 2, key_width=6)(X, X), "memory: expected [batch, length, 6]; got [2, 3, 8]"),
    "both": (lambda: MultiHead(8, 2)(X, X, cache=MultiHead(8, 2)(X).cache), "cache: holds earlier keys of x itself"),
    "score": (lambda: MultiHead(8, 2, score="additve"), "unknown score 'additve'; did you mean 'additive'?"),
    "coverage": (lambda: MultiHead(8, 2, score="coverage"), "score: MultiHead has nowhere to pass coverage in and out"),
}


@pytest.mark.parametrize(("bad", "says"), SAYS.values(), ids=SAYS)
def test_wrong_heads_are_refused_in_words(bad, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=re.escape(says)):
        bad()


@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_projecting_query_key_and_value_at_once_is_projecting_each(kv_heads: int, bias: bool) -> None:
    torch.manual_seed(0)
    module = MultiHead(8, 4, kv_heads=kv_heads, bias=bias, positions=positions.Rotary(2)).double()
    x = some(3, 5, 8)
    at_once = module(x, mask=masks.causal())  # 15 rows, more than the 8 of the matrices
    apart = [module(row.unsqueeze(0), mask=masks.causal()) for row in x]
    torch.testing.assert_close(at_once.output, torch.cat([each.output for each in apart]))
    torch.testing.assert_close(at_once.cache.key, torch.cat([each.cache.key for each in apart]))
    torch.testing.assert_close(at_once.cache.value, torch.cat([each.cache.value for each in apart]))


def test_a_layer_put_in_the_place_of_a_projection_is_used() -> None:
    module, x = MultiHead(4, 2).double(), some(3, 5, 4)
    module.value = nn.Sequential(module.value, nn.Tanh())
    assert module(x).cache.value.abs().max() < 1


def test_selecting_reads_what_is_filled_and_leaves_room() -> None:
    cache = Cache(torch.zeros(2, 1, 1, 3), torch.zeros(2, 1, 1, 3), 1)
    with torch.no_grad():
        cache = cache.extended(*torch.randn(2, 2, 1, 1, 3))
        chosen = cache.select(torch.tensor([1, 1, 0]))
        assert chosen.key_BHSd.shape == (3, 1, 8, 3)
        torch.testing.assert_close(chosen.value, cache.value[[1, 1, 0]])
        room = chosen.key_BHSd.data_ptr()
        assert chosen.extended(*torch.randn(2, 3, 1, 1, 3)).key_BHSd.data_ptr() == room


def test_without_an_output_matrix_the_joined_heads_are_the_output() -> None:
    module, x = MultiHead(8, 2, out=False).double(), some(2, 3, 8)
    cache = module(x).cache
    heads = attend(module.query(x).unflatten(-1, (2, 4)).transpose(1, 2), cache.key, cache.value)
    torch.testing.assert_close(module(x).output, heads.transpose(1, 2).flatten(-2))
    with pytest.raises(ValueError, match="out: without it the joined heads must have the width 8; got 6"):
        MultiHead(8, 2, head_width=3, out=False)
