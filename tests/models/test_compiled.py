"""What compiles whole, without a break in its graph: training passes and one step of a decoder."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tests.models.kinds import LENGTHS, SEQUENCES, Kind, target

PASSES = [
    "transformer",
    "transformer, rotary, grouped, window",
    "plain, lstm, reversed",
    "luong, no feeding",
    "bahdanau",
]
STEPPED = 10
"""Steps: more than a compiler would make anew one after the other, were each to be made for its own place."""
STEPS = ["bahdanau", "bahdanau, local-p, coverage", "luong", "luong, local-m", "luong, sparsemax", "plain, rnn"]


def whole(run: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(run, backend="aot_eager", fullgraph=True)


@pytest.mark.parametrize("name", PASSES)
def test_a_training_pass_compiles_whole_with_its_gradients(name: str) -> None:
    kind: Kind = SEQUENCES[name]
    model, source, fed = kind.model(), kind.source(), target(3)

    def loss(source: Tensor, fed: Tensor, lengths: Tensor) -> Tensor:
        return cross_entropy(model(source, fed, lengths).flatten(0, 1), fed.flatten())

    expected = gradients(loss(source, fed, LENGTHS), model)
    for mine, truth in zip(gradients(whole(loss)(source, fed, LENGTHS), model), expected, strict=True):
        torch.testing.assert_close(mine, truth, atol=1e-5, rtol=1e-4)


def gradients(loss: Tensor, model: nn.Module) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, list(model.parameters()), allow_unused=False)


@pytest.mark.parametrize("name", STEPS)
@torch.no_grad()
def test_a_step_of_a_decoder_compiles_whole(name: str) -> None:
    kind = SEQUENCES[name]
    model, fed = kind.model(), target(STEPPED)
    memory = model.encode(kind.source(), LENGTHS)
    step, state, own = whole(model.step), model.start(memory), model.start(memory)
    for place in range(STEPPED):
        logits, state, _ = step(fed[:, place], state, memory)
        expected, own, _ = model.step(fed[:, place], own, memory)
        torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)
