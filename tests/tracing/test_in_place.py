"""What is written over stays as it was; what is left out is said to be."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import regard
from regard.tracing import label
from tests.tracing.arithmetic import every_equation_is_true


def test_what_is_written_over_stays_as_it_was() -> None:
    x = torch.tensor([1.0, 2, 3])
    with regard.trace() as tape:
        a = label(x * 2, "a")
        b = label(a + 1, "b")
        a.mul_(10)
        c = a + b
    derivation = tape.derivation(c)
    assert derivation["a"].value.tolist() == [2, 4, 6]
    assert derivation["b"].value.tolist() == [3, 5, 7]
    assert derivation["input"].value.tolist() == [1, 2, 3]
    assert derivation.why("output", 1).text == "45 = 4·10 + 5"


def test_an_input_that_is_written_over_stays_as_it_was() -> None:
    x = torch.tensor([1.0, 2, 3])
    with regard.trace() as tape:
        y = x * 2
        x.zero_()
        z = x + y
    derivation = tape.derivation(z)
    assert derivation["input"].value.tolist() == [1, 2, 3]
    assert derivation.why("output", 2).text == "6 = 0 + 3·2"
    assert tape.derivation(x).target.value.tolist() == [0, 0, 0]


def test_parts_of_a_buffer_are_followed_to_where_they_were_written() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    with regard.trace() as tape:
        buffer = torch.full((3, 3), -1.0)
        buffer[0] = x[0] * 2
        buffer[1:, :2] = x[:, 1:] + 10
        early = buffer.clone()
        buffer[2, 1] = 7
        buffer.T[2, 2] = 8
        late = buffer * 1
    expected = [[0, 2, 4], [11, 12, -1], [14, 15, -1]]
    assert tape.derivation(early).target.value.tolist() == expected
    derivation = tape.derivation(late)
    expected[2] = [14, 7, 8]
    assert derivation.target.value.tolist() == expected
    every_equation_is_true(derivation)
    assert [parent.index for parent in tape.derivation(early).why("output", 1, 1).parents] == [(0, 1)]


def test_columns_that_do_not_touch_do_not_concern_each_other() -> None:
    x = torch.randn(3, 8)
    with regard.trace() as tape:
        gates = x * 1.0
        i, f = gates.chunk(2, 1)
        i.sigmoid_()
        f.tanh_()
        y = i * f
    derivation = tape.derivation(y)
    assert [step.operation for step in derivation.steps] == ["aten.mul", "aten.mul"]
    every_equation_is_true(derivation, 1e-5)


def test_overlapping_windows_of_one_storage_are_told_apart() -> None:
    x = torch.arange(8.0)
    with regard.trace() as tape:
        windows = x.unfold(0, 4, 2)
        y = windows.sum(1)
        x[3] = 100
        z = windows.sum(1)
    assert tape.derivation(y).why("output", 1).text == "14 = 2 + 3 + 4 + 5"
    assert tape.derivation(z).why("output", 1).text == "111 = 2 + 100 + 4 + 5"


def test_after_the_trace_a_change_is_noticed() -> None:
    weight = nn.Parameter(torch.ones(3))
    with regard.trace() as tape:
        y = weight * 2
    derivation = tape.derivation(y)
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(ValueError, match=r"the values of 'parameter' were overwritten in place after"):
        derivation["parameter"].value  # noqa: B018


def test_an_optimiser_inside_the_trace_leaves_the_old_weights_in_the_derivation() -> None:
    layer, x = nn.Linear(2, 1), torch.randn(4, 2)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
    with regard.trace() as tape:
        loss = label(layer(x).square().mean(), "loss")
        loss.backward()
        before = layer.weight.detach().clone()
        optimiser.step()
    assert not torch.equal(layer.weight, before)
    assert torch.equal(tape.derivation(loss)["weight"].value, before)


def test_too_many_numbers_are_an_error_that_says_what_to_do() -> None:
    layer, x = nn.Sequential(nn.Linear(10, 200, bias=False)), torch.randn(10, 10)
    with (
        pytest.raises(ValueError, match=r"more than max_elements=1,000 numbers, at aten.mm in 0: trace less, raise"),
        regard.trace(max_elements=1_000),
    ):
        layer(x)


def test_memory_grows_with_what_is_computed_and_not_with_views_or_weights() -> None:
    layer, x = nn.Linear(100, 10), torch.randn(5, 100)
    with torch.no_grad(), regard.trace() as tape:
        y = layer(x)
        for _ in range(50):
            y = y.T.reshape(10, 5).T
    assert tape.elements == 50
    assert tape.derivation(y).why("output", 0, 0).value == float(y[0, 0])


def test_big_tensors_can_be_left_out_step_by_step() -> None:
    x, w = torch.randn(4, 5), torch.randn(5, 30)
    with regard.trace(max_elements=10, largest=20) as tape:
        big = label(x @ w, "big", "x w")
        small = big.sum()
    derivation = tape.derivation(small)
    assert not derivation["big"].has_values
    cell = derivation.why("big", 1, 2)
    assert [parent.value for parent in cell.parents] == [
        float(value) for pair in zip(x[1], w[:, 2], strict=True) for value in pair
    ]
    assert cell.text.startswith("big[1, 2] ≈ ")
    assert cell.text.count("·") == 5
    with pytest.raises(ValueError, match=r"the values of 'big' \[4, 30\] were left out"):
        cell.value  # noqa: B018
    assert len(derivation.why("output").parents) == 120


def test_storage_that_is_left_out_is_not_mistaken_for_what_comes_after_it() -> None:
    with regard.trace(largest=5) as tape:
        for k in range(20):
            big = torch.full((100,), float(k)) * 2
            small = big[:3] + 1
    derivation = tape.derivation(small)
    assert derivation.why("output", 0).value == 39
    assert [record.operation for record in tape.records] == ["aten.full", "aten.mul", "view", "aten.add"] * 20


@pytest.mark.parametrize("name", ["max_elements", "largest"])
def test_a_bound_is_a_whole_number(name: str) -> None:
    with (
        pytest.raises(ValueError, match=rf"{name}: expected a whole number of 0 or more; got -1"),
        regard.trace(**{name: -1}),
    ):
        pass


@pytest.mark.parametrize(
    "turn",
    [
        lambda a: a.t_(),
        lambda a: a.transpose_(0, 1),
        lambda a: a.unsqueeze_(0),
        lambda a: a.unsqueeze_(1).squeeze_(1),
        lambda a: a.swapaxes_(0, 1),
        lambda a: a.detach_(),
    ],
)
def test_a_view_in_place_is_a_view(turn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.randn(2, 3, dtype=torch.float64)
    with regard.trace() as tape:
        a = label(x * 2, "a")
        turn(a)
        y = a * 3 + 1
    derivation = tape.derivation(y)
    assert not [step for step in derivation.fine if step.role == "opaque"]
    assert torch.equal(derivation["a"].value, x * 2)
    assert torch.equal(derivation.target.value, y)
    every_equation_is_true(derivation)


@pytest.mark.parametrize(("kind", "name"), [(nn.LSTM, "C_2"), (nn.GRU, "n_2"), (nn.RNN, "h_2")])
def test_a_recurrent_module_with_the_batch_first_comes_apart_with_its_names(kind: type[nn.RNNBase], name: str) -> None:
    module = kind(3, 4, batch_first=True).double()
    with regard.trace() as tape:
        states, _ = module(torch.randn(2, 3, 3, dtype=torch.float64))
    derivation = tape.derivation(states)
    assert not [step for step in derivation.fine if step.role == "opaque"]
    assert name in derivation
    every_equation_is_true(derivation)
