"""Cells asked for one by one are the recorded ones, and a bad question is answered in a sentence."""

import json
import math

import pytest

from regard.tracing.render.asked import answered
from tests.tracing.render.samples import attention, shapes


def test_cells_are_answered_in_the_order_asked() -> None:
    derivation = attention()
    m = derivation["M"]
    got = json.loads(json.dumps(answered(derivation, m.position, [3, 1, 8]), allow_nan=False))
    value = m.value.reshape(-1)
    assert got["values"] == [value[3].item(), "-inf", value[8].item()]
    assert got["reach"] == value[value != -math.inf].abs().max().item()


def test_a_step_that_only_moves_numbers_is_answered_as_well() -> None:
    derivation = attention()
    turned = derivation["K.t"]
    assert answered(derivation, turned.position, [1])["values"] == [derivation["K"].value[1, 0].item()]


def test_every_kind_of_number_is_answered() -> None:
    derivation = shapes()
    for step in derivation.fine:
        json.dumps(answered(derivation, step.position, list(range(step.size))), allow_nan=False)


@pytest.mark.parametrize(
    ("step", "cells", "message"),
    [
        (99, [0], r"step: expected a position from 0 to \d+; got 99"),
        (0, [9], r"'X' has 9 cells, counted from 0; got 9"),
        (0, [-1], r"'X' has 9 cells, counted from 0; got -1"),
        (0, [True], r"'X' has 9 cells, counted from 0; got True"),
        (0, [0] * 11, "cells: expected at most 10 at once; got 11"),
    ],
)
def test_a_bad_question_is_answered_in_a_sentence(step: int, cells: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        answered(attention(), step, cells, most=10)
