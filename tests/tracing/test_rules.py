"""Every printed equation is true: for every rule, over random inputs, the operands make the recorded value."""

import pytest
import torch

import regard
from regard.tracing.rules import RULES
from tests.tracing.arithmetic import every_equation_is_true
from tests.tracing.cases import CASES

SEEN: set[str] = set()


@pytest.mark.parametrize("name", CASES)
def test_the_equations_of_an_operation_are_true(name: str) -> None:
    torch.manual_seed(0)
    with regard.trace() as tape:
        output = CASES[name]()
    derivation = tape.derivation(output)
    SEEN.update(step.operation for step in derivation.fine if step.rule is not None)
    assert not [step for step in derivation.fine if step.role == "opaque"]
    every_equation_is_true(derivation)
    assert torch.equal(derivation.target.value, output)


def test_every_rule_has_a_case() -> None:
    if len(SEEN) < 20:
        pytest.skip("only with the cases above")
    assert set(RULES) - SEEN == set()
