"""Means of weights."""

import torch
from torch import nn

from regard.training.averaging import Averaging
from regard.training.settings import AveragingSettings


def stepped(averaging: Averaging, model: nn.Linear, values: list[float]) -> None:
    for value in values:
        nn.init.constant_(model.weight, value)
        averaging.after_step()


def test_the_exponential_mean_forgets_its_beginning() -> None:
    model = nn.Linear(1, 1, bias=False)
    averaging = Averaging(AveragingSettings(decay=0.5), model)
    stepped(averaging, model, [1.0, 2.0, 4.0, 8.0])
    mean = 1.0
    for n, value in enumerate([1.0, 2.0, 4.0, 8.0]):
        decay = min(0.5, (1 + n) / (10 + n))
        mean = decay * mean + (1 - decay) * value
    with averaging.in_place():
        torch.testing.assert_close(model.weight.item(), mean)
    assert model.weight.item() == 8.0


def test_the_mean_of_the_last_evaluations() -> None:
    model = nn.Linear(1, 1, bias=False)
    averaging = Averaging(AveragingSettings(name="last", count=2), model)
    for value in (1.0, 3.0, 7.0):
        stepped(averaging, model, [value])
        averaging.before_evaluation()
    with averaging.in_place():
        assert model.weight.item() == 5.0


def test_a_mean_is_restored_and_without_one_the_weights_are_their_own() -> None:
    model = nn.Linear(2, 2)
    first = Averaging(AveragingSettings(), model)
    stepped(first, model, [1.0, 5.0])
    second = Averaging(AveragingSettings(), model)
    second.restore(first.state())
    for each in (first, second):
        stepped(each, model, [9.0])
    assert all(torch.equal(a, b) for a, b in zip(first.mean, second.mean, strict=True))
    with Averaging(AveragingSettings(name="none"), model).in_place():
        assert model.weight[0, 0] == 9.0
