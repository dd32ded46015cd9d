"""Scores: each formula written out cell by cell, its gradients, its parameters, its errors."""

import copy
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from regard.attention import attend, masks, scores, weigh
from regard.attention.scores import Score
from tests.attention.paths import by_reference, by_sdpa, some

D_Q, D_K, WIDTH = 3, 4, 5


def double(score: Score) -> Score:
    return score.double() if isinstance(score, nn.Module) else score


torch.manual_seed(0)
ADDITIVE, DEEP = scores.Additive.of(D_Q, D_K, WIDTH).double(), scores.Additive.of(D_Q, D_K, WIDTH, depth=3).double()
BARE = scores.Additive(None, None, some(D_Q, seed=9))
CONCAT, LOCATION = scores.Concat.of(D_Q, D_K, WIDTH).double(), scores.Location.of(D_Q, 7).double()
GENERAL, LOW_RANK = scores.General.of(D_Q, D_K).double(), scores.LowRank.of(D_Q, D_K, 2).double()
COVERAGE = scores.Coverage.of(D_Q, D_K, WIDTH).double()
SO_FAR = torch.tensor([0.2, 0.0, 1.5, 0.3, 0.9, 0.1], dtype=torch.float64)


def deep(q: Tensor, k: Tensor) -> Tensor:
    hidden = torch.tanh(q @ DEEP.W_q + k @ DEEP.W_k + DEEP.b)
    for W, b in ((DEEP.W_2, DEEP.b_2), (DEEP.W_3, DEEP.b_3)):
        hidden = torch.tanh(hidden @ W + b)
    return DEEP.v @ hidden


# A score, the widths it takes, and its formula for one query and one key (and the key's place).
FORMULAS: dict[str, tuple[Score, int, int, Callable[[Tensor, Tensor, int], Tensor]]] = {
    "dot": (scores.Dot(), 4, 4, lambda q, k, j: q @ k),
    "scaled_dot": (scores.ScaledDot(), 4, 4, lambda q, k, j: q @ k / 2),
    "scaled by 3": (scores.ScaledDot(3.0), 4, 4, lambda q, k, j: 3 * (q @ k)),
    "cosine": (scores.Cosine(0.5), 4, 4, lambda q, k, j: torch.cosine_similarity(q, k, dim=0) / 0.5),
    "general": (GENERAL, D_Q, D_K, lambda q, k, j: q @ GENERAL.W @ k),
    "low_rank": (LOW_RANK, D_Q, D_K, lambda q, k, j: q @ (LOW_RANK.U @ LOW_RANK.V.T) @ k),
    "additive": (
        ADDITIVE,
        D_Q,
        D_K,
        lambda q, k, j: ADDITIVE.v @ torch.tanh(q @ ADDITIVE.W_q + k @ ADDITIVE.W_k + ADDITIVE.b),
    ),
    "additive, deep": (DEEP, D_Q, D_K, lambda q, k, j: deep(q, k)),
    "additive, bare": (BARE, D_Q, D_Q, lambda q, k, j: BARE.v @ torch.tanh(q + k)),
    "concat": (CONCAT, D_Q, D_K, lambda q, k, j: CONCAT.v @ torch.tanh(torch.cat([q, k]) @ CONCAT.W)),
    "location": (LOCATION, D_Q, D_K, lambda q, k, j: q @ LOCATION.W[:, j]),
    "coverage": (
        COVERAGE.given(SO_FAR),
        D_Q,
        D_K,
        lambda q, k, j: (
            COVERAGE.additive.v
            @ torch.tanh(
                q @ COVERAGE.additive.W_q + k @ COVERAGE.additive.W_k + SO_FAR[j] * COVERAGE.w_c + COVERAGE.additive.b
            )
        ),
    ),
}
every_score = pytest.mark.parametrize(("score", "d_q", "d_k", "formula"), FORMULAS.values(), ids=FORMULAS)


@every_score
@pytest.mark.parametrize("leading", [(), (2,), (2, 3)], ids=str)
def test_each_score_is_its_formula_for_every_pair(score: Score, d_q: int, d_k: int, formula, leading) -> None:  # type: ignore[no-untyped-def]
    query, key = some(*leading, 2, d_q), some(*leading, 6, d_k, seed=1)
    got = score(query, key)
    assert got.shape == (*leading, 2, 6)
    rows = zip(query.reshape(-1, 2, d_q), key.reshape(-1, 6, d_k), strict=True)
    truth = torch.stack([torch.stack([formula(q, k, j) for q in qs for j, k in enumerate(ks)]) for qs, ks in rows])
    torch.testing.assert_close(got, truth.view(got.shape))


@every_score
def test_gradients_of_each_score_are_those_of_finite_differences(score: Score, d_q: int, d_k: int, formula) -> None:  # type: ignore[no-untyped-def]
    query, key, value = some(2, d_q), some(6, d_k, seed=1), some(6, 2, seed=2)
    owner = getattr(score, "of", score)
    parameters = list(owner.parameters()) if isinstance(owner, nn.Module) else []
    mask = masks.lengths(5)
    torch.autograd.gradcheck(
        lambda *given: by_reference(*given[:3], score=score, mask=mask),
        (query, key, value, *parameters),
        fast_mode=True,
    )


@pytest.mark.parametrize("name", [name for name, (score, *_) in FORMULAS.items() if isinstance(score, scores.DotScore)])
def test_products_of_vectors_are_served_by_the_fast_path_as_by_the_reference(name: str) -> None:
    score, d_q, d_k, _ = FORMULAS[name]
    inputs = some(2, 3, 4, d_q), some(2, 3, 6, d_k, seed=1), some(2, 3, 6, 5, seed=2)
    got, truth = (path(*inputs, score=score, mask=masks.causal()) for path in (by_sdpa, by_reference))
    torch.testing.assert_close(got, truth)
    for one, other in zip(*(torch.autograd.grad(each.square().sum(), inputs) for each in (got, truth)), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", [*scores.PLAIN, *scores.PARAMETRIC])
def test_a_score_made_by_name_trains_every_number_it_has(name: str) -> None:
    score = scores.make(name, 4, 4, width=5, depth=2, places=6)
    owner = score if isinstance(score, nn.Module) else nn.Module()
    assert not list(owner.buffers())
    output = attend(some(3, 4).float(), some(6, 4).float(), some(6, 2).float(), score=score)
    if isinstance(score, scores.Coverage):
        output = output + attend(
            some(3, 4).float(), some(6, 4).float(), some(6, 2).float(), score=score.given(torch.ones(6))
        )
    output.square().sum().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in owner.parameters())
    assert (name in scores.PARAMETRIC) == bool(list(owner.parameters()))
    if isinstance(score, nn.Module):
        assert set(copy.deepcopy(score).state_dict()) == {each for each, _ in score.named_parameters()}


def test_a_score_with_parameters_is_a_module_whose_hooks_fire() -> None:
    score, seen = scores.General.of(2, 2), []
    score.register_forward_hook(lambda *_: seen.append(1))
    weigh(torch.ones(1, 2), torch.ones(1, 2), score=score)
    assert seen == [1]


def test_matrices_that_are_given_follow_the_module_but_are_trained_only_as_parameters() -> None:
    given = scores.General(torch.eye(2))
    assert not list(given.parameters())
    assert given.double().W.dtype == torch.float64
    assert [name for name, _ in scores.General(nn.Parameter(torch.eye(2))).named_parameters()] == ["W"]


@every_score
def test_keys_may_be_projected_once_for_many_queries(score: Score, d_q: int, d_k: int, formula) -> None:  # type: ignore[no-untyped-def]
    query, key = some(2, 3, d_q), some(2, 6, d_k, seed=1)
    got = weigh(query, score.project(key), score=score.projected)
    torch.testing.assert_close(got, weigh(query, key, score=score))
    assert score.projected.formula == score.formula


def test_coverage_may_be_given_for_keys_that_were_projected() -> None:
    query, key = some(2, 3, D_Q), some(2, 6, D_K, seed=1)
    covered = COVERAGE.given(SO_FAR, projected=True)
    expected = weigh(query, key, score=COVERAGE.given(SO_FAR))
    torch.testing.assert_close(weigh(query, COVERAGE.additive.project(key), score=covered), expected)


def test_coverage_is_passed_in_and_returned_and_not_kept() -> None:
    query, key, value = some(2, 1, D_Q), some(2, 6, D_K, seed=1), some(2, 6, 2, seed=2)
    first = attend(query, key, value, score=COVERAGE.given(None), details=True)[1]
    torch.testing.assert_close(first.coverage, first.weights.sum(-2))
    second = attend(query, key, value, score=COVERAGE.given(first.coverage), details=True)[1]
    torch.testing.assert_close(second.coverage, first.weights.sum(-2) + second.weights.sum(-2))
    assert not torch.equal(first.weights, second.weights)
    again = attend(query, key, value, score=COVERAGE, details=True)[1]
    assert torch.equal(again.weights, first.weights)
    assert attend(query[..., :2], key[..., :2], value, details=True)[1].coverage is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("path", [by_reference, by_sdpa], ids=["reference", "sdpa"])
def test_the_cosine_stands_zeros_and_large_numbers_in_half_precision(path, dtype: torch.dtype) -> None:  # type: ignore[no-untyped-def]
    query = torch.full((1, 1, 2, 64), 200.0, dtype=dtype)
    query[..., 1, :] = 0
    key = torch.full((1, 1, 3, 64), 300.0, dtype=dtype)
    inputs = [each.requires_grad_() for each in (query, key, torch.ones(1, 1, 3, 2, dtype=dtype))]
    output = path(*inputs, score=scores.Cosine(), mask=masks.lengths([2]))
    assert torch.equal(output, torch.ones_like(output))
    assert all(each.isfinite().all() for each in torch.autograd.grad(output.sum(), inputs[1:]))


M, V = torch.zeros(4, 5), torch.zeros(5)
SAYS = {
    "unknown": (lambda: scores.named("additve"), "unknown score 'additve'; did you mean 'additive'?"),
    "needs matrices": (
        lambda: scores.named("additive"),
        "score 'additive' has parameters: pass scores.Additive(...) with its matrices, or scores.Additive.of(...)",
    ),
    "a class": (
        lambda: weigh(M, M, score=scores.Dot),
        "score: expected a score, as scores.Dot(), or its name; got the class Dot",
    ),
    "no score": (lambda: weigh(M, M, score=3), "score: expected a score, as scores.Dot(), or its name; got int"),
    "widths": (lambda: weigh(M, M[:, :3], score="dot"), "dot: query and key must have one width; got 5 and 3"),
    "W and query": (lambda: weigh(M, M, score=scores.General(M)), "general: the query has width 5, W [4, 5] takes 4"),
    "W and key": (
        lambda: weigh(M[:, :4], M[:, :4], score=scores.General(M)),
        "general: the key has width 4, W [4, 5] takes 5",
    ),
    "ranks": (lambda: scores.LowRank(M, M.T), "low_rank: U and V must have one rank; got [4, 5] and [5, 4]"),
    "no matrix": (lambda: scores.General(V), "general: W must be a matrix; got [5]"),
    "whole numbers": (lambda: scores.General(M.int()), "general: W must hold floating-point numbers; got int32"),
    "no vector": (lambda: scores.Additive(M, M, M), "additive: v must be a vector; got [4, 5]"),
    "v": (lambda: scores.Additive(M, M, V[:3]), "additive: W_q [4, 5] does not lead to v [3]"),
    "b": (lambda: scores.Additive(M, M, V, V[:1]), "additive: b [1] does not lead to v [5]"),
    "hidden": (
        lambda: scores.Additive(M, M, V, hidden=[(M, None)]),
        "additive: W_q [4, 5] does not lead to W_2 [4, 5]",
    ),
    "projected": (
        lambda: weigh(M[:, :4], M[:, :4], score=scores.Additive(M, M, V).projected),
        "additive: projected keys must have width 5; got 4",
    ),
    "projected concat": (
        lambda: weigh(M[:, :2], M[:, :4], score=scores.Concat(M, V).projected),
        "concat: projected keys must have width 5; got 4",
    ),
    "projected low rank": (
        lambda: weigh(M[:, :4], M[:, :4], score=scores.LowRank(M, M).projected),
        "low_rank: projected keys must have width 5; got 4",
    ),
    "concat": (
        lambda: weigh(M, M, score=scores.Concat(M, V)),
        "concat: query and key joined have width 5 + 5 = 10, W takes 4",
    ),
    "concat v": (lambda: scores.Concat(M, V[:2]), "concat: W [4, 5] does not lead to v [2]"),
    "places": (
        lambda: weigh(M[:, :4], torch.zeros(6, 4), score=scores.Location(M)),
        "location: 6 keys, but W [4, 5] knows 5 places",
    ),
    "location": (
        lambda: scores.make("location", 4, 4),
        "score 'location' needs places=, the most keys it can tell apart",
    ),
    "covered": (
        lambda: weigh(M[:, :4], M[:, :4], score=scores.Coverage(scores.Additive(M, M, V), V).given(V)),
        "coverage: 5 places covered so far, but 4 keys",
    ),
    "w_c": (
        lambda: scores.Coverage(scores.Additive(M, M, V), V[:2]),
        "coverage: w_c [2] does not fit a hidden layer of width 5",
    ),
    "temperature": (lambda: scores.Cosine(0.0), "cosine: temperature must be above 0; got 0.0"),
    "kinds": (
        lambda: weigh(M[:, :4].double(), M.double(), score=scores.General(M)),
        "general: W is float32, the query float64",
    ),
    "devices": (
        lambda: weigh(M[:, :4], M, score=scores.General(M.to("meta"))),
        "general: W is on meta, the query on cpu",
    ),
}


@pytest.mark.parametrize(("bad", "says"), SAYS.values(), ids=SAYS)
def test_a_wrong_score_is_refused_in_words(bad, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=re.escape(says)):
        bad()
