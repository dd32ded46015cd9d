"""Programs drawn by chance, of views, writes in place and plain operations: what is read of them is what was there."""

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import regard
from tests.tracing.arithmetic import every_equation_is_true

Draw = random.Random


def view(x: Tensor, draw: Draw) -> Tensor:
    kind = draw.randrange(5)
    axis = draw.randrange(x.dim())
    if kind == 0:
        return x.transpose(axis, draw.randrange(x.dim()))
    if kind == 1:
        start = draw.randrange(x.shape[axis])
        return x.narrow(axis, start, draw.randrange(1, x.shape[axis] - start + 1))
    if kind == 2 and x.dim() > 1:
        return x.select(axis, draw.randrange(x.shape[axis]))
    if kind == 3:
        return x.unsqueeze(axis)
    return x.reshape(-1)


def write(x: Tensor, others: list[Tensor], draw: Draw) -> None:
    other = draw.choice(others)
    like = other if other.shape == x.shape else torch.full(x.shape, draw.random(), dtype=x.dtype)
    choices: list[Callable[[], object]] = [
        lambda: x.add_(like),
        lambda: x.mul_(0.5),
        lambda: x.copy_(like.clone()),
        lambda: x.zero_(),
        lambda: x.tanh_(),
        lambda: torch.add(like.clone(), 1, out=x) if x.is_contiguous() else x.sub_(1),
        lambda: x.index_fill_(0, torch.tensor([0]), 2.5),
    ]
    draw.choice(choices)()


def compute(x: Tensor, others: list[Tensor], draw: Draw) -> Tensor:
    other = draw.choice(others)
    choices: list[Callable[[], Tensor]] = [
        lambda: x * 2,
        lambda: torch.tanh(x),
        lambda: x + (other if other.shape == x.shape else 1),
        lambda: torch.cat([x, x], 0),
        lambda: x.clone(),
        lambda: x.softmax(-1),
        lambda: x @ x.transpose(-1, -2) if x.dim() > 1 else x.sum(0, keepdim=True),
        lambda: x.flip(0),
        lambda: x[torch.arange(x.shape[0] - 1, -1, -1)],
    ]
    return draw.choice(choices)()


@pytest.mark.parametrize("seed", range(30))
def test_a_random_program_is_read_as_it_ran(seed: int) -> None:
    draw = Draw(seed)
    torch.manual_seed(seed)
    tensors = [torch.randn(3, 4, dtype=torch.float64), torch.randn(2, 3, 2, dtype=torch.float64)]
    moments: list[tuple[Tensor, Tensor]] = []
    with torch.no_grad(), regard.trace() as tape:
        for _ in range(14):
            x = draw.choice(tensors)
            kind = draw.random()
            if kind < 0.35:
                tensors.append(view(x, draw))
            elif kind < 0.65:
                write(x, tensors, draw)
            elif x.numel() < 200:
                tensors.append(compute(x, tensors, draw))
            if draw.random() < 0.2:  # what is read now stays what it is now
                moments.append((x * 1, x.clone()))
    for now, then in moments:
        derivation = tape.derivation(now)
        assert torch.equal(derivation.target.value, then)
        every_equation_is_true(derivation, 1e-9, most=4)
    for tensor in tensors[-4:]:
        derivation = tape.derivation(tensor)
        assert torch.equal(derivation.target.value, tensor)
        every_equation_is_true(derivation, 1e-9, most=6)
        assert not [step for step in derivation.fine if step.role == "opaque"]
