"""One update: against a plain loop of PyTorch, and what it does with numbers that are not finite."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.training import optimizers
from regard.training.feeding import Fed
from regard.training.settings import OptimizerSettings
from regard.training.updating import History, Update

CPU = torch.device("cpu")
NAMES = ["adamw", "adam", "sgd", "muon"]


class Line(nn.Module):
    """The summed squared error of W x + b."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.linear = nn.Linear(4, 4)

    def forward(self, fed: Fed) -> Tensor:
        return (self.linear(fed.source) - fed.wanted).square().sum()


def fed(seed: int, rows: int = 6) -> Fed:
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn(rows, 4, generator=generator), 5 * torch.randn(rows, 4, generator=generator)
    return Fed(y, x, torch.ones(rows))


def made(name: str, clip: float = 1.0, **settings: Any) -> tuple[Line, Update]:
    model = Line()
    own = OptimizerSettings(name=name, rate=0.05, weight_decay=0.1, **settings)  # type: ignore[arg-type]
    return model, Update(model, optimizers.make(own, model), clip=clip, bfloat16=False, device=CPU)


def plain(name: str, model: Line) -> list[torch.optim.Optimizer]:
    """What the settings mean, written out: matrices decay, vectors do not."""
    W, b = model.linear.weight, model.linear.bias
    decayed = [{"params": [W], "weight_decay": 0.1}, {"params": [b], "weight_decay": 0.0}]
    if name == "sgd":
        return [torch.optim.SGD(decayed, lr=0.05, momentum=0.9)]
    if name == "muon":
        matrices = torch.optim.Muon([W], lr=0.05, momentum=0.9, weight_decay=0.1)
        return [matrices, torch.optim.AdamW([b], lr=0.005, betas=(0.9, 0.98), weight_decay=0.0)]
    kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adam
    return [kind(decayed, lr=0.05, betas=(0.9, 0.98), eps=1e-8)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clip", [0.0, 0.5, 1e6])
def test_updates_are_those_of_a_plain_loop(name: str, clip: float) -> None:
    model, update = made(name, clip)
    other = Line()
    steppers = plain(name, other)
    for step in range(5):
        loss = update([fed(step)], places=6)
        for each in steppers:
            each.zero_grad()
        expected = other(fed(step)) / 6
        expected.backward()
        if clip:
            nn.utils.clip_grad_norm_(other.parameters(), clip)
        for each in steppers:
            each.step()
        assert float(loss) == pytest.approx(expected.item(), rel=1e-5)
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_several_batches_make_the_update_of_one() -> None:
    one, at_once = made("adamw")
    other, in_parts = made("adamw")
    for seed in range(3):
        whole = fed(seed, 9)
        parts = [Fed(whole.wanted[rows], whole.source[rows], whole.lengths[rows]) for rows in (slice(2), slice(2, 9))]
        assert float(in_parts(parts, 9)) == pytest.approx(float(at_once([whole], 9)), rel=1e-6)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_update_that_is_not_finite_leaves_everything_as_it_was(name: str, bad: float) -> None:
    (model, update), (other, without) = made(name), made(name)
    spoiled = fed(9)
    spoiled.source[0, 0] = bad
    losses = [float(update([each], 6)) for each in (fed(0), spoiled, fed(1))]
    assert math.isnan(losses[1])
    assert [losses[0], losses[2]] == [float(without([fed(seed)], 6)) for seed in (0, 1)]
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_share_of_the_rate_is_of_that_each_group_began_with() -> None:
    _, update = made("muon")
    for share in (0.5, 0.1, 1.0):
        optimizers.set_rate(update.optimizers, share)
        rates = [group["lr"] for each in update.optimizers for group in each.param_groups]
        assert rates == pytest.approx([0.05 * share, 0.005 * share])


def test_a_history_gives_each_loss_once() -> None:
    history = History(CPU, size=3)
    for loss in (1.0, 2.0):
        history.put(torch.tensor(loss))
    assert history.take().tolist() == [1, 2]
    for loss in (3.0, 4.0, 5.0):
        history.put(torch.tensor(loss))
    assert history.full
    assert history.take().tolist() == [3, 4, 5]
    assert history.take().tolist() == []
