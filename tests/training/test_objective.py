"""Losses, against their formulas."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import regard
from regard.data.collating import NOTHING
from regard.models.contract import Choices, Encoded, SequenceModel, Taught
from regard.training.feeding import Fed
from regard.training.objective import Objective, of_choices, own_share, returns, smoothed
from regard.training.settings import ReinforceSettings, TeachingSettings
from tests.tracing.arithmetic import every_equation_is_true


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_cross_entropy_is_smoothed_and_summed_over_what_is_wanted(smoothing: float) -> None:
    logits = torch.randn(2, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    wanted = torch.tensor([[1, 4, NOTHING], [0, NOTHING, NOTHING]])
    probabilities = (logits.exp() / logits.exp().sum(-1, keepdim=True)).log()
    expected = 0.0
    for row, place in [(0, 0), (0, 1), (1, 0)]:
        said = probabilities[row, place]
        expected -= (1 - smoothing) * float(said[wanted[row, place]]) + smoothing * float(said.mean())
    assert float(smoothed(logits, wanted, smoothing)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("smoothing", "names"), [(0.0, ["log_p", "loss"]), (0.1, ["log_p", "L_every", "L_right", "loss"])]
)
def test_under_a_trace_the_terms_have_names_and_the_loss_is_the_same(smoothing: float, names: list[str]) -> None:
    logits = torch.randn(2, 7, 11, generator=torch.Generator().manual_seed(1))
    wanted = torch.randint(0, 11, (2, 7), generator=torch.Generator().manual_seed(2))
    wanted[1, 4:] = NOTHING
    expected = smoothed(logits, wanted, smoothing)
    with regard.trace() as tape:
        got = smoothed(logits, wanted, smoothing)
    assert torch.equal(got, expected)
    derivation = tape.derivation(got)
    assert {step.label for step in derivation.steps if step.label} == set(names)
    right = derivation["loss" if smoothing == 0 else "L_right"]
    terms = {parent.index for parent in derivation.why(right.name).parents if parent.step == "log_p"}
    assert terms == {(row, int(word)) for row, word in enumerate(wanted.flatten()) if word != NOTHING}
    assert every_equation_is_true(derivation, 1e-5) > 100


def test_what_hard_attention_learns_from_has_names() -> None:
    logits, wanted = torch.randn(1, 3, 5), torch.tensor([[2, 0, NOTHING]])
    choices = Choices(torch.randn(1, 3), torch.rand(1, 3), torch.randn(1, 3))
    with regard.trace() as tape:
        loss = of_choices(logits, wanted, choices, ReinforceSettings())
    derivation = tape.derivation(loss)
    assert [step.name for step in derivation.steps if step.label] == ["r", "L_t", "L_choices"]
    assert every_equation_is_true(derivation, 1e-5) > 10


def test_returns_reckon_in_what_comes_later() -> None:
    reward = torch.tensor([[1.0, 2.0, 4.0]])
    assert returns(reward, 0.5).tolist() == [[1 + 1 + 1, 2 + 2, 4]]
    assert returns(reward, 0.0).tolist() == [[1, 2, 4]]


def test_the_gradient_of_choices_is_that_of_the_expected_reward() -> None:
    """Two places to look at, each of which makes another word likely: the mean over all draws is the exact gradient."""
    scores = torch.tensor([0.3, -0.2], requires_grad=True)
    words = torch.tensor([[2.0, 0.0, -1.0], [0.5, 1.5, 0.0]])
    wanted = torch.tensor([[1]])
    probability = torch.softmax(scores, 0)
    expected = (probability * torch.log_softmax(words, -1)[:, 1]).sum()
    (exact,) = torch.autograd.grad(-expected, scores)
    settings = ReinforceSettings(entropy=0.0, baseline=0.0)
    total = torch.zeros(2)
    for place in (0, 1):
        log_prob = torch.log_softmax(scores, 0)[place].view(1, 1)
        choices = Choices(log_prob, torch.zeros(1, 1), torch.full((1, 1), -0.7))
        (drawn,) = torch.autograd.grad(of_choices(words[place].view(1, 1, 3), wanted, choices, settings), scores)
        total += probability[place].detach() * drawn
    torch.testing.assert_close(total, exact)


def test_the_baseline_learns_the_reward_and_padding_counts_nothing() -> None:
    logits = torch.zeros(1, 2, 4)
    baseline = torch.zeros(1, 2, requires_grad=True)
    choices = Choices(torch.zeros(1, 2, requires_grad=True), torch.zeros(1, 2), baseline)
    settings = ReinforceSettings(discount=0.0, baseline=1.0)
    of_choices(logits, torch.tensor([[2, NOTHING]]), choices, settings).backward()
    reward = -torch.log(torch.tensor(4.0))
    torch.testing.assert_close(baseline.grad, torch.tensor([[-2 * reward.item(), 0.0]]))
    torch.testing.assert_close(choices.log_prob.grad, torch.tensor([[-reward.item(), 0.0]]))


def test_scheduled_sampling_grows_in_a_line() -> None:
    teaching = TeachingSettings(own=0.4, start=10, full=20)
    assert [own_share(teaching, step) for step in (1, 10, 20, 30, 99)] == pytest.approx([0, 0, 0.2, 0.4, 0.4])


class Hears(SequenceModel):
    """Notes how it is taught."""

    vocabulary = 5

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(5))
        self.heard: list[float | None] = []

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        raise AssertionError

    start = step = encode  # type: ignore[assignment]
    forward = encode  # type: ignore[assignment]

    def teach(self, source: Tensor, target: Tensor, *rest: object, own: float | Tensor | None = None) -> Taught:  # type: ignore[override]
        self.heard.append(None if own is None else float(own))
        return Taught(self.bias.expand(*target.shape, 5))


@pytest.mark.parametrize(("own", "heard"), [(0.0, [None, None]), (0.5, [0.25, 0.5])])
def test_a_decoder_is_fed_its_own_words_as_often_as_is_due(own: float, heard: list[float | None]) -> None:
    model = Hears()
    objective = Objective(model, 0.0, ReinforceSettings(), TeachingSettings(own=own, full=2))
    tokens = torch.tensor([[2, 3]])
    for step in (1, 2):
        objective.before_update(step)
        objective(Fed(tokens, tokens, torch.tensor([2]), tokens))
    assert model.heard == heard


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_loss_a_few_rows_at_a_time_is_that_of_pytorch_with_its_gradient(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    logits = (4 * torch.randn(5, 20, 33, generator=generator)).to(dtype)
    wanted = torch.randint(0, 33, (5, 20), generator=generator)
    wanted[::2, ::3] = NOTHING
    mine, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss = smoothed(mine, wanted, 0.2)
    wide = theirs.flatten(0, 1).to(torch.promote_types(dtype, torch.float32))
    expected = cross_entropy(wide, wanted.flatten(), ignore_index=NOTHING, label_smoothing=0.2, reduction="sum")
    (3 * loss).backward()
    (3 * expected).backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(mine.grad, theirs.grad)
    assert loss.grad_fn is not None
    assert "Piecewise" in loss.grad_fn.name()
