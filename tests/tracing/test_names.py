"""Names of steps: unique, by label, by path, by the names that the code gives its inputs."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard.tracing import label
from tests.tracing.arithmetic import every_equation_is_true


def test_a_name_that_stands_several_times_is_asked_for_in_full() -> None:
    block = nn.Sequential(Labelled(), Labelled())
    with regard.trace() as tape:
        y = block(torch.randn(2, 2))
    derivation = tape.derivation(y)
    with pytest.raises(ValueError, match=r"'A' stands 2 times in this derivation; ask for one of: 0.A, 1.A"):
        derivation["A"]
    assert derivation["0.A"].label == "A"


def test_a_module_that_runs_twice_counts_its_names() -> None:
    shared = Labelled()
    block = nn.Sequential(shared, shared)
    with regard.trace() as tape:
        y = block(torch.randn(2, 2))
    assert {"0.A#1", "0.A#2"} <= {step.name for step in tape.derivation(y).steps}


class Labelled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return label(F.softmax(x, -1), "A", "softmax(x)") @ x


def test_a_step_that_is_not_there_names_the_nearest() -> None:
    with regard.trace() as tape:
        y = label(torch.randn(2) * 2, "weights")
    with pytest.raises(ValueError, match=r"unknown step 'wieghts'; did you mean 'weights'\?"):
        tape.derivation(y)["wieghts"]


def test_an_index_out_of_range_is_one_sentence() -> None:
    with regard.trace() as tape:
        y = label(torch.randn(2, 3) * 2, "E")
    derivation = tape.derivation(y)
    with pytest.raises(ValueError, match=r"'E' has the shape \[2, 3\]: index 3 on axis 1 is out of range \(0 to 2\)"):
        derivation.why("E", 0, 3)
    with pytest.raises(ValueError, match=r"expected 2 indices, got 1"):
        derivation.why("E", 0)
    assert derivation.why("E", -1, -1).index == (1, 2)


def test_inputs_and_parameters_have_the_names_of_the_code() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2)
            self.register_buffer("scale", torch.tensor([2.0, 3]))

        def forward(self, query: Tensor, pair: tuple[Tensor, Tensor]) -> Tensor:
            return self.inner(query + pair[0] * pair[1]) * self.scale

    model, x = Model(), torch.randn(1, 3)
    with regard.trace() as tape:
        y = model(x, (torch.randn(3), torch.randn(3)))
    names = {step.name: step.role for step in tape.derivation(y).givens}
    assert names == {"query": "given", "pair[0]": "random", "pair[1]": "random", "inner.weight": "parameter",
                     "inner.bias": "parameter", "scale": "constant"}  # fmt: skip


def test_the_root_says_where_paths_begin() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Tanh(), nn.Linear(2, 2)))
    x = torch.randn(1, 2)
    with regard.trace(model) as tape:
        y = model[1](x)
    assert tape.derivation(y).steps[-1].name == "1.1"
    with regard.trace() as tape:
        y = model[1](x)
    assert tape.derivation(y).steps[-1].name == "1"


def test_a_root_that_is_no_module_is_refused() -> None:
    with pytest.raises(ValueError, match=r"root: expected the module at which paths begin; got list"), regard.trace([]):  # type: ignore[arg-type]
        pass


def test_two_models_in_one_trace_keep_apart() -> None:
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    with regard.trace() as tape:
        y = other(torch.tanh(one(torch.randn(1, 2))))
    assert {step.name for step in tape.derivation(y).givens} >= {"weight", "Linear.weight"}


def test_what_is_read_through_a_named_view_comes_from_it_and_the_whole_does_not() -> None:
    x = torch.randn(3, 4)
    with regard.trace() as tape:
        gates = torch.tanh(x)
        i = label(gates[:, :2], "i")
        part, whole = i.T * 2, gates * 3
    assert tape.derivation(part).steps[-1].inputs == ("i",)
    assert [step.operation for step in tape.derivation(whole).steps] == ["aten.mul"]


@pytest.mark.parametrize("average", [True, False])
def test_the_weights_of_an_attention_have_their_name_whichever_output_is_asked_for(average: bool) -> None:
    torch.manual_seed(0)
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(1, 3, 8)
    with regard.trace() as tape:
        output, weights = layer(x, x, x, average_attn_weights=average)
    expected = tape.derivation(output)["A"].value
    assert torch.equal(tape.derivation(weights)["A"].value.reshape(expected.shape), expected)
    assert "E" in tape.derivation(weights)


def test_a_parameter_made_as_a_view_of_another_has_its_numbers() -> None:
    with regard.trace() as tape:
        layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2).double())
        y = layer(torch.randn(1, 3, dtype=torch.float64))
    derivation = tape.derivation(y)
    directions = derivation["parametrizations.weight.original1"]
    assert torch.equal(directions.value, layer.parametrizations.weight.original1)
    assert directions.role == "parameter"
    assert every_equation_is_true(derivation) > 8


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("x", "A"), "label: expected a tensor to name; got str"),
        ((torch.ones(2), 3), "label: expected a name of letters on one line; got 3"),
        ((torch.ones(2), ""), "label: expected a name of letters on one line; got ''"),
        ((torch.ones(2), "a\nb"), r"label: expected a name of letters on one line; got 'a\\nb'"),
        ((torch.ones(2), "A", 5), "label: expected a formula as text; got 5"),
    ],
)
def test_a_label_that_names_nothing_is_one_sentence(given: tuple[Any, ...], said: str) -> None:
    with regard.trace(), pytest.raises(ValueError, match=said):
        label(*given)
