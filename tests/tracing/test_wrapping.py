"""Whole numbers that grow past their dtype make no false equations."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import regard
from tests.tracing.arithmetic import every_equation_is_true


@pytest.mark.parametrize(
    ("dtype", "numbers", "compute"),
    [
        (torch.uint8, [200, 3], lambda a: a + 100),
        (torch.uint8, [20, 30], lambda a: a * a),
        (torch.uint8, [20, 30], lambda a: 10 - a),
        (torch.int8, [100, -100], lambda a: a + a),
        (torch.int8, [-128, 5], lambda a: -a),
        (torch.int16, [300, 2], lambda a: a * a),
        (torch.int32, [2**30, 7], lambda a: a * 4 + 1),
        (torch.int32, [70000, 7], lambda a: a**2),
        (torch.uint8, [200, 100], lambda a: a.sum(dtype=torch.uint8)),
    ],
)
def test_what_is_wrapped_is_said(dtype: torch.dtype, numbers: list[int], compute: Callable[[Tensor], Tensor]) -> None:
    given = torch.tensor(numbers, dtype=dtype)
    with regard.trace() as tape:
        y = compute(given)
    derivation = tape.derivation(y)
    assert torch.equal(derivation.target.value, y)
    assert every_equation_is_true(derivation) > 0
    assert any("remainder(" in derivation.why("output", *([k] * y.dim())).text for k in range(y.numel()))


def test_the_text_has_the_modulus_where_something_wrapped_and_not_elsewhere() -> None:
    given = torch.tensor([200, 3], dtype=torch.uint8)
    with regard.trace() as tape:
        wrapped, small = given + 100, given + 1
    assert tape.derivation(wrapped).why("output", 0).text == "44 ≈ remainder(200 + 100, 256)"
    assert tape.derivation(small).why("output", 0).text == "201 = 200 + 1"


def test_of_64_bits_nothing_is_claimed() -> None:
    given = torch.tensor([2**62, 1])
    with regard.trace() as tape:
        y, fits = given * 4, given + 1
    assert "no rule is known" in tape.derivation(y).why("output", 0).text
    assert tape.derivation(fits).why("output", 1).text == "2 = 1 + 1"
