"""Every printed equation is true: for every rule, over random inputs, the operands make the recorded value."""

import pytest
import torch

import regard
from regard.tracing.rules import RULES
from tests.tracing.arithmetic import every_equation_is_true
from tests.tracing.cases import CASES, GRADIENTS, r


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
    assert set(RULES) - seen == OF_A_GPU
