"""Normalisers: against PyTorch, the entmax package, counted draws and finite differences."""

import re

import entmax
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import attend, masks, normalise, weigh
from regard.attention.normalise import Gaussian, Normaliser, gumbel_noise
from tests.attention.paths import some

ALL = {
    **normalise.NAMED,
    "relu, divided": normalise.relu(divide=True),
    "gumbel, hard": normalise.gumbel(hard=True),
    "gaussian": Gaussian(torch.tensor([1.0, 0.0, 3.0], dtype=torch.float64), 1.0),
}
every_normaliser = pytest.mark.parametrize("normaliser", ALL.values(), ids=ALL)
TRUTHS = {
    "softmax": lambda z: torch.softmax(z, -1),
    "sparsemax": lambda z: entmax.sparsemax(z, dim=-1),
    "entmax15": lambda z: entmax.entmax15(z, dim=-1),
    "relu": torch.relu,
    "relu, divided": lambda z: torch.relu(z) / torch.relu(z).sum(-1, keepdim=True).clamp(min=1e-300),
    "top1": lambda z: torch.nn.functional.one_hot(z.argmax(-1), z.shape[-1]).to(z),
}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


rows = st.lists(st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=4, max_size=4), min_size=1, max_size=3)


@pytest.mark.parametrize("name", TRUTHS)
@settings(deadline=None, derandomize=True, max_examples=60)
@given(rows)
def test_a_normaliser_gives_the_weights_and_gradients_of_its_truth(name: str, numbers: list[list[float]]) -> None:
    mine = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
    other = mine.detach().clone().requires_grad_()
    got, truth = ALL[name].weights(mine), TRUTHS[name](other)
    torch.testing.assert_close(got, truth, atol=1e-7, rtol=1e-6)
    if name == "top1":
        truth = torch.softmax(other, -1)  # its gradient goes straight through to the softmax's
    tilt = some(*mine.shape, seed=5, grad=False)
    ties = (truth.detach() == 0) & (other.detach() == 0)  # where relu has two gradients to choose from
    pair = (torch.autograd.grad((each * tilt).sum(), z)[0] for each, z in ((got, mine), (truth, other)))
    torch.testing.assert_close(*(each.masked_fill(ties, 0) for each in pair), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax15", "relu", "relu, divided"])
def test_gradients_are_those_of_finite_differences_blocked_cells_and_all(name: str) -> None:
    scores = torch.tensor([[0.3, -0.4, 1.1, 0.9], [2.0, 0.1, 0.2, 0.15]], dtype=torch.float64, requires_grad=True)
    keep = torch.tensor([[True, True, False, True], [False, True, True, True]])
    torch.autograd.gradcheck(lambda z: ALL[name].weights(z.masked_fill(~keep, -torch.inf)), scores)


@every_normaliser
def test_blocked_cells_get_exactly_0_and_finite_gradients(normaliser: Normaliser) -> None:
    scores = some(2, 3, 6)
    keep = masks.tensor(some(2, 3, 6, seed=2, grad=False) > 0) & ~masks.tensor(torch.tensor([[[1], [0], [0]]]).bool())
    query, bias = torch.zeros(2, 3, 1, dtype=torch.float64), scores
    key = torch.zeros(2, 6, 1, dtype=torch.float64)
    weights = weigh(query, key, bias=bias, mask=keep, normalise=normaliser, generator=seeded())
    assert (weights[~keep.dense((2, 3, 6)).expand(2, 3, 6)] == 0).all()
    assert (weights[:, 0] == 0).all()  # a row with nothing to attend to
    if weights.requires_grad:
        assert torch.autograd.grad((weights * some(2, 3, 6, seed=3)).sum(), scores)[0].isfinite().all()


@every_normaliser
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_weights_come_in_the_kind_of_the_query(normaliser: Normaliser, dtype: torch.dtype) -> None:
    weights = weigh(some(3, 4, dtype=dtype), some(5, 4, seed=1, dtype=dtype), normalise=normaliser, generator=seeded())
    assert weights.dtype == dtype
    assert weights.isfinite().all()


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax15"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sums_over_many_keys_are_taken_in_float32_whatever_the_query_is(name: str, dtype: torch.dtype) -> None:
    key = torch.linspace(0, -0.01, 500).to(dtype).unsqueeze(-1)
    weights = weigh(torch.ones(1, 1, dtype=dtype), key, score="dot", normalise=name)
    truth = TRUTHS[name](key.double().mT)
    torch.testing.assert_close(weights.double(), truth, rtol=0.01, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e4, 1e30])
@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax15", "relu, divided", "top1"])
def test_rows_sum_to_1_for_scores_small_and_large(name: str, scale: float) -> None:
    scores = (torch.rand(4, 9, generator=seeded()) + 0.1) * scale
    torch.testing.assert_close(ALL[name].weights(scores).sum(-1), torch.ones(4))


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax15"])
@pytest.mark.parametrize("blocked", [1, 2, 5, 30])
def test_a_row_with_one_key_gives_it_1_and_the_blocked_ones_exactly_0(name: str, blocked: int) -> None:
    for number in (0.0, 0.3, -7.25, 123.4):
        weights = normalise.NAMED[name].weights(torch.tensor([number, *[-torch.inf] * blocked]))
        assert weights.tolist() == [1.0, *[0.0] * blocked]


def test_relu_gives_nothing_where_no_score_is_above_0() -> None:
    scores = (-some(3, 4).abs()).detach().requires_grad_()
    for divide in (False, True):
        weights = normalise.relu(divide=divide).weights(scores)
        assert (weights == 0).all()
        assert (torch.autograd.grad(weights.sum(), scores)[0] == 0).all()


def test_top1_gives_the_first_of_equal_scores() -> None:
    scores = torch.tensor([[1.0, 3.0, 3.0, 3.0], [2.0, 2.0, 2.0, 2.0]])
    assert normalise.top1.weights(scores).tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize("normaliser", [normalise.gumbel, normalise.gumbel(hard=True), normalise.sample], ids=repr)
def test_what_is_drawn_is_the_generators_alone(normaliser: Normaliser) -> None:
    scores, state = some(2, 5), torch.get_rng_state()
    first, again, other = (normaliser.weights(scores, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other) or normaliser is not normalise.gumbel
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("normaliser", [normalise.gumbel(hard=True), normalise.sample], ids=repr)
def test_choices_are_drawn_as_often_as_the_softmax_says(normaliser: Normaliser) -> None:
    scores = torch.tensor([1.0, -0.5, 0.3, -torch.inf, 2.0]).log_softmax(-1)
    draws = normaliser.weights(scores.expand(40_000, 5), seeded())
    assert torch.equal(draws.sum(-1), torch.ones(40_000))
    torch.testing.assert_close(draws.mean(0), scores.exp(), atol=0.01, rtol=0)
    assert (draws[:, 3] == 0).all()


def test_a_sample_tells_its_log_probability_and_entropy_and_they_carry_gradients() -> None:
    query, key, value = some(2, 3, 4), some(2, 5, 4, seed=1), some(2, 5, 6, seed=2)
    mask = masks.lengths([5, 3])
    output, details = attend(query, key, value, normalise="sample", mask=mask, generator=seeded(), details=True)
    truth = torch.distributions.Categorical(weigh(query, key, mask=mask))
    chosen = details.weights.argmax(-1)
    assert torch.equal(output, value.gather(1, chosen.unsqueeze(-1).expand(2, 3, 6)))
    torch.testing.assert_close(details.log_prob, truth.log_prob(chosen))
    torch.testing.assert_close(details.entropy, truth.entropy())
    for mine, other in ((details.log_prob, truth.log_prob(chosen)), (details.entropy, truth.entropy())):
        got, expected = (torch.autograd.grad(each.sum(), [query, key], retain_graph=True) for each in (mine, other))
        torch.testing.assert_close(got, expected)
    assert not details.weights.requires_grad


def test_reinforce_through_a_sample_climbs_to_the_key_that_is_rewarded() -> None:
    scores, generator = torch.zeros(4, requires_grad=True), seeded()
    for _ in range(200):
        drawn = normalise.sample.draw(scores.expand(16, 4), generator)
        reward = drawn.weights[:, 2]
        loss = -((reward - reward.mean()) * drawn.log_prob).mean()
        scores.data -= torch.autograd.grad(loss, scores)[0]
    assert torch.softmax(scores, -1)[2] > 0.9


def test_gumbel_noise_is_finite_even_for_draws_of_0_and_1(monkeypatch: pytest.MonkeyPatch) -> None:
    for dtype in (torch.float32, torch.float64):
        for extreme in (0.0, 1.0, 1 - 2**-24):
            monkeypatch.setattr(torch, "rand", lambda shape, extreme=extreme, **kind: torch.full(
                shape, extreme, dtype=kind["dtype"]))  # fmt: skip
            assert gumbel_noise(torch.zeros(3, dtype=dtype)).isfinite().all()


def test_gumbel_noise_has_the_mean_and_spread_of_gumbels_distribution() -> None:
    noise = gumbel_noise(torch.zeros(200_000, dtype=torch.float64), seeded())
    assert abs(noise.mean() - 0.5772) < 0.01
    assert abs(noise.var() - torch.pi**2 / 6) < 0.03


def test_gumbel_sharpens_as_its_temperature_falls() -> None:
    scores = some(50, 6, grad=False)
    peaks = [normalise.gumbel(temperature=t).weights(scores, seeded()).amax(-1).mean() for t in (5.0, 1.0, 0.1)]
    assert peaks == sorted(peaks)
    assert peaks[-1] > 0.9


def test_hard_gumbel_is_one_choice_forward_and_the_soft_one_backward() -> None:
    scores, tilt = some(4, 6), some(4, 6, seed=1, grad=False)
    hard, soft = (normalise.gumbel(hard=kind).weights(scores, seeded()) for kind in (True, False))
    assert set(hard.detach().flatten().tolist()) == {0.0, 1.0}
    assert torch.equal(hard.argmax(-1), soft.argmax(-1))
    torch.testing.assert_close(*(torch.autograd.grad((each * tilt).sum(), scores)[0] for each in (hard, soft)))


def test_straight_through_is_exactly_0_or_1_however_the_softmax_rounds() -> None:
    weights = normalise.top1.weights(torch.randn(100, 7, generator=seeded()))
    assert set(weights.flatten().tolist()) == {0.0, 1.0}


SAYS = {
    "unknown": (lambda: normalise.named("sofmax"), "unknown normaliser 'sofmax'; did you mean 'softmax'?"),
    "a class": (
        lambda: normalise.named(normalise.Relu),
        "expected a normaliser, as normalise.relu, or its name; got the class Relu",
    ),
    "no normaliser": (lambda: normalise.named(1), "expected a normaliser, as normalise.relu, or its name; got int"),
    "setting": (
        lambda: normalise.gumbel(temprature=1),
        "unknown setting of gumbel 'temprature'; did you mean 'temperature'?",
    ),
    "no settings": (lambda: normalise.softmax(x=1), "unknown setting of softmax 'x'. (known: none)"),
    "its name": (lambda: normalise.gumbel(name="x"), "unknown setting of gumbel 'name'. (known: hard, temperature)"),
    "temperature": (lambda: normalise.gumbel(temperature=0), "gumbel: temperature must be above 0; got 0"),
    "centres": (
        lambda: Gaussian(torch.zeros(5), 1.0).weights(torch.zeros(2, 3)),
        "gaussian: one centre for each query [..., T], [5] does not fit the scores' shape [2, 3]",
    ),
}


@pytest.mark.parametrize(("bad", "says"), SAYS.values(), ids=SAYS)
def test_a_wrong_normaliser_is_refused_in_words(bad, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=re.escape(says)):
        bad()


def test_a_normaliser_passes_uncalled_called_or_by_name() -> None:
    query, key = some(3, 4), some(5, 4, seed=1)
    one, two, three = (weigh(query, key, normalise=each) for each in (normalise.relu, normalise.relu(), "relu"))
    assert torch.equal(one, two)
    assert torch.equal(one, three)
    assert repr(normalise.gumbel(temperature=0.5)) == "Gumbel(temperature=0.5, hard=False)"
