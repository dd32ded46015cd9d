"""Layers of cells: the written-out way against PyTorch's own, over layers, directions and lengths, and compiled."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.models.cells import CELLS
from regard.models.rnn import layers as module
from regard.models.rnn.layers import Layers, Ran, States

INPUTS, WIDTH = 3, 4
OWN: dict[str, type[nn.RNN | nn.GRU | nn.LSTM]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
LENGTHS = torch.tensor([5, 2, 0, 4])
every_cell = pytest.mark.parametrize("cell", CELLS)
both_ways = pytest.mark.parametrize("bidirectional", [False, True], ids=["one way", "both ways"])


def made(cell: str, **settings: Any) -> Layers:
    torch.manual_seed(3)
    layers = Layers(cell, INPUTS, WIDTH, 2, **settings).eval()
    for parameter in layers.parameters():
        nn.init.normal_(parameter, std=0.7)
    return layers


def some(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def flat(ran: Ran) -> list[Tensor]:
    return [ran.outputs, *(part for state in ran.last for part in state)]


def written(layers: Layers, x: Tensor, states: States | None = None, lengths: Tensor | None = None) -> Ran:
    return layers._written_out(x, layers.zeros(len(x), x) if states is None else states, lengths, 1)


@every_cell
@both_ways
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["whole", "padded"])
def test_the_written_out_way_is_pytorchs_own(cell: str, bidirectional: bool, lengths: Tensor | None) -> None:
    layers = made(cell, bidirectional=bidirectional)
    x = some(4, 5, INPUTS, seed=1).requires_grad_()
    given = tuple(
        tuple(some(4, WIDTH, seed=9 * n + part) for part in range(layers.cell.parts))
        for n in range(2 * layers.directions)
    )
    got, expected = written(layers, x, given, lengths), layers._own(x, given, lengths)
    for mine, truth in zip(flat(got), flat(expected), strict=True):
        torch.testing.assert_close(mine, truth, atol=1e-6, rtol=0)
    for mine, truth in zip(gradients(got, x, layers), gradients(expected, x, layers), strict=True):
        torch.testing.assert_close(mine, truth, atol=1e-5, rtol=1e-5)


def gradients(ran: Ran, x: Tensor, layers: Layers) -> tuple[Tensor, ...]:
    loss = sum((each * some(*each.shape, seed=5)).sum() for each in flat(ran))
    return torch.autograd.grad(loss, [x, *layers.parameters()])


@every_cell
@both_ways
def test_weights_of_pytorchs_own_go_in_as_they_are(cell: str, bidirectional: bool) -> None:
    torch.manual_seed(4)
    own = OWN[cell](INPUTS, WIDTH, 2, batch_first=True, bidirectional=bidirectional)
    layers = made(cell, bidirectional=bidirectional)
    layers.load_state_dict(own.state_dict())
    x = some(2, 6, INPUTS)
    for run in (layers, lambda x: written(layers, x)):
        torch.testing.assert_close(run(x).outputs, own(x)[0], atol=1e-6, rtol=0)


@every_cell
@pytest.mark.parametrize("way", ["own", "written out"])
def test_padding_and_neighbours_change_nothing(cell: str, way: str) -> None:
    layers = made(cell, bidirectional=True)
    x = some(4, 5, INPUTS, seed=2)
    x[1, 2:] = torch.nan
    run = layers if way == "own" else lambda x, lengths: written(layers, x, None, lengths)
    together = run(x, lengths=LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        if length == 0:
            assert all(not each[row].any() for each in flat(together)[1:])
            continue
        alone = layers(x[row : row + 1, :length])
        torch.testing.assert_close(together.outputs[row, :length], alone.outputs[0])
        for mine, truth in zip(flat(together)[1:], flat(alone)[1:], strict=True):
            torch.testing.assert_close(mine[row], truth[0])
        assert not together.outputs[row, length:].any()
    assert all(each.isfinite().all() for each in torch.autograd.grad(together.outputs.sum(), layers.parameters()))


@every_cell
def test_step_by_step_is_all_at_once_with_inputs_fed_beside_those_known_before(cell: str) -> None:
    layers = made(cell)
    x = some(2, 5, INPUTS)
    states, outputs = layers.zeros(2, x), []
    known = layers.project(x[..., :2])
    for place in range(5):
        states = layers.advance(known[:, place], states, x[:, place, 2:])
        outputs.append(states[-1][0])
    torch.testing.assert_close(torch.stack(outputs, 1), layers(x).outputs)


@every_cell
@both_ways
def test_a_run_over_padded_rows_compiles_whole(cell: str, bidirectional: bool) -> None:
    torch._dynamo.reset()
    layers = made(cell, bidirectional=bidirectional)
    x, lengths = some(3, 2, INPUTS), torch.tensor([2, 0, 1])
    compiled = torch.compile(lambda x, n: layers(x, lengths=n).outputs, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, lengths), layers(x, lengths=lengths).outputs)


def test_dropout_falls_between_layers_and_in_training_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = made("gru", dropout=0.5)
    x = some(3, 4, INPUTS)
    assert torch.equal(layers(x).outputs, layers(x).outputs)
    layers.train()
    assert not torch.equal(layers(x).outputs, layers(x).outputs)
    monkeypatch.setattr(module, "must_be_written_out", lambda x: True)
    assert not torch.equal(layers(x).outputs, layers(x).outputs)
    known = layers.project(x[:, 0])
    top = [layers.advance(known, layers.zeros(3, x))[-1][0] for _ in range(2)]
    assert not torch.equal(*top)


def test_an_lstm_begins_by_remembering() -> None:
    layers = Layers("lstm", INPUTS, WIDTH)
    i, f, g, o = layers.bias_ih_l0.chunk(4)
    assert f.tolist() == [1.0] * WIDTH
    assert not any(gate.any() for gate in (i, g, o, layers.bias_hh_l0))
