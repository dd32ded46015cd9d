"""Every printed equation is true: for every rule, over random inputs, the operands make the recorded value."""

import json

import jsonschema_rs
import pytest
import torch

import regard
from regard.tracing.derivation import Derivation
from regard.tracing.rules import RULES
from tests.tracing.arithmetic import every_equation_is_true
from tests.tracing.cases import CASES, GRADIENTS, r
from tests.tracing.test_storing import SCHEMA


@pytest.mark.parametrize("name", CASES)
def test_the_equations_of_an_operation_are_true(name: str) -> None:
    torch.manual_seed(0)
    with regard.trace() as tape:
        output = CASES[name]()
    derivation = tape.derivation(output)
    assert not [step for step in derivation.fine if step.role == "opaque"]
    every_equation_is_true(derivation)
    assert torch.equal(derivation.target.value, output)


# In test_fused.py.
OF_A_GPU = {
    "aten._thnn_fused_lstm_cell", "aten._thnn_fused_gru_cell", "aten._fused_rms_norm", "aten._fused_rms_norm_backward",
}  # fmt: skip


def test_every_rule_has_a_case() -> None:
    seen = set()
    for case in CASES.values():
        with regard.trace() as tape:
            case()
        seen.update(record.operation for record in tape.records)
    for function in GRADIENTS.values():
        with regard.trace() as tape:
            function(r(3, 4).requires_grad_()).sum().backward()
        seen.update(record.operation for record in tape.records)
    assert set(RULES) - seen <= OF_A_GPU


@pytest.mark.parametrize("name", ["layer_norm", "conv2d", "cross", "masked", "embedding", "random", "cumsum"])
def test_what_was_traced_reads_back_from_json_to_an_equal_derivation(name: str) -> None:
    torch.manual_seed(0)
    more = {
        "cross": lambda: torch.nn.functional.cross_entropy(r(3, 4), torch.tensor([0, -100, 2])),
        "masked": CASES["softmax with blocked cells"],
        "random": CASES["dropout of a function"],
    }
    with regard.trace() as tape:
        output = (more.get(name) or CASES[name])()
    derivation = tape.derivation(output)
    text = derivation.to_json()
    jsonschema_rs.validate(SCHEMA, json.loads(text))
    back = Derivation.from_json(text)
    assert back == derivation
    index = (0,) * derivation.target.value.dim()
    last = derivation.target.name
    assert back.why(last, *index).text == derivation.why(last, *index).text
    assert back.why(last, *index).parents == derivation.why(last, *index).parents
