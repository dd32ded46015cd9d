"""The written-out cells against PyTorch's own, and their gradients against finite differences."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from regard.models.cells import CELLS, gru_cell, lstm_cell, rnn_cell

INPUTS, WIDTH, ROWS = 3, 4, 5
OWN: dict[str, type[nn.RNN | nn.GRU | nn.LSTM]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def stepped(kind: str, x: Tensor, state: tuple[Tensor, ...], weights: list[Tensor]) -> tuple[Tensor, ...]:
    """One step of the written-out cell under one signature."""
    if kind == "lstm":
        return lstm_cell(x, (state[0], state[1]), *weights)
    cell: Callable[..., Tensor] = {"rnn": rnn_cell, "gru": gru_cell}[kind]
    return (cell(x, state[0], *weights),)


def some(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_written_out_agrees_with_pytorchs_own_over_many_steps(kind: str) -> None:
    torch.manual_seed(1)
    own = OWN[kind](INPUTS, WIDTH, batch_first=True)
    for parameter in own.parameters():
        nn.init.normal_(parameter)  # large enough for every gate to open and close
    x = some(ROWS, 6, INPUTS, seed=2)
    state = tuple(some(ROWS, WIDTH, seed=3 + part) for part in range(CELLS[kind].parts))
    given = tuple(each.unsqueeze(0) for each in state)
    expected, last = own(x, given if kind == "lstm" else given[0])
    got = []
    for place in range(x.shape[1]):
        state = stepped(kind, x[:, place], state, list(own.all_weights[0]))
        got.append(state[0])
    torch.testing.assert_close(torch.stack(got, 1), expected, atol=1e-6, rtol=0)
    for mine, truth in zip(state, last if kind == "lstm" else (last,), strict=True):
        torch.testing.assert_close(mine, truth[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", CELLS)
def test_biases_may_be_left_out(kind: str) -> None:
    cell = CELLS[kind]
    torch.manual_seed(2)
    own = OWN[kind](INPUTS, WIDTH, bias=False, batch_first=True)
    x, zero = some(ROWS, 1, INPUTS, seed=4), torch.zeros(ROWS, WIDTH)
    got = stepped(kind, x[:, 0], (zero,) * cell.parts, list(own.all_weights[0]))
    torch.testing.assert_close(got[0], own(x)[0][:, 0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", CELLS)
def test_gradients_of_a_cell_are_those_of_finite_differences(kind: str) -> None:
    cell = CELLS[kind]
    shapes = [(2, INPUTS), *((2, WIDTH),) * cell.parts]
    shapes += [(cell.gates * WIDTH, INPUTS), (cell.gates * WIDTH, WIDTH), *((cell.gates * WIDTH,),) * 2]
    given = [some(*shape, seed=n, dtype=torch.float64).requires_grad_() for n, shape in enumerate(shapes)]

    def step(x: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        return stepped(kind, x, others[: cell.parts], list(others[cell.parts :]))

    assert torch.autograd.gradcheck(step, given)


def test_the_plain_cell_is_the_lectures() -> None:
    U, W, b = torch.tensor([[0.5, -1.0]]), torch.tensor([[2.0]]), torch.tensor([0.25])
    h = rnn_cell(torch.tensor([1.0, 3.0]), torch.tensor([0.5]), U, W, b)
    assert h.item() == pytest.approx(torch.tensor(0.25 + 2 * 0.5 + 0.5 - 3).tanh().item())
