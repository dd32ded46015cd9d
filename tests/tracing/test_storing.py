"""A derivation written as JSON reads back to an equal one, and its JSON is what the schema says."""

import json
import math
from pathlib import Path

import jsonschema_rs
import numpy as np
import pytest
import torch
from torch import Tensor

from regard.tracing.derivation import Derivation
from regard.tracing.forms import Operand, Rule, cell, divided, function, number, over, plus, times, total
from regard.tracing.index import IndexMap, Move, Piece, compressed, row_strides, whole
from regard.tracing.step import Held, Role, Step
from tests.tracing.render.samples import Builder

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "derivation.schema.json").read_text(encoding="utf-8"))


def step(position: int, name: str, value: Tensor, role: Role, **more: object) -> Step:
    dtype = str(value.dtype).removeprefix("torch.")
    return Step(position, name, tuple(value.shape), dtype, role, role, shown=True, held=Held(value), **more)  # type: ignore[arg-type]


def small() -> Derivation:
    """Scores of one row, -inf among them, its transpose hidden, and its softmax."""
    scores = torch.tensor([[0.6, 0.82, -math.inf, 1.04]])
    row = Operand(0, IndexMap((4, 0, 1)))
    soft = Rule(
        divided(function("exp", cell(0)), total(function("exp", cell(1)))), (Operand(0, IndexMap((4, 1, 0))), row), (4,)
    )
    turned = Step(
        1, "E.t", (4, 1), "float32", "move", "aten.t", making=whole(0, (4, 1), IndexMap((1, 4))), sources=(0,)
    )
    doubled = Rule(plus(times(number(2), cell(0)), number(math.inf)), (Operand(1, IndexMap((1, 1))),))
    return Derivation(
        [
            step(0, "E", scores, "given", aliases=("scores",), axes=(("the",), ("a", "b", "c", "d"))),
            turned,
            step(2, "A", torch.softmax(scores, -1), "computed", making=soft, sources=(0,), inputs=("E",), label="A"),
            step(3, "D", torch.full((4, 1), math.inf), "computed", making=doubled, sources=(1,), inputs=("E",)),
        ],
        3,
    )  # fmt: skip


@pytest.mark.parametrize("packed", [True, False])
def test_what_is_written_reads_back_to_an_equal_derivation(packed: bool) -> None:
    derivation = small()
    text = derivation.to_json(packed=packed)
    jsonschema_rs.validate(SCHEMA, json.loads(text))
    back = Derivation.from_json(text)
    assert back == derivation
    assert back["A"].axes == derivation["A"].axes
    assert torch.equal(back["A"].value, derivation["A"].value)
    assert back.to_json(packed=packed) == text


def test_another_value_name_or_rule_makes_another_derivation() -> None:
    text = small().to_json(packed=False)
    for old, new in [
        ('"A"', '"W"'),
        ("0.82", "0.83"),
        ('"form":"exp"', '"form":"exp"'),
        ('"name":"exp"', '"name":"log"'),
    ]:
        changed = Derivation.from_json(text.replace(old, new))
        assert (changed == small()) is (old == new)


def test_values_stand_once_and_a_moved_tensor_has_none_of_its_own() -> None:
    record = json.loads(small().to_json(packed=False))
    assert record["steps"][0]["values"] == [0.6, 0.82, "-inf", 1.04]
    assert record["steps"][1]["values"] is None
    assert Derivation.from_json(json.dumps(record))["E.t"].value.tolist() == small()["E"].value.T.tolist()


def test_large_values_are_left_out_and_said_to_be() -> None:
    back = Derivation.from_json(small().to_json(largest=3))
    assert not back["A"].has_values
    with pytest.raises(ValueError, match=r"the values of 'A' \[1, 4\] were left out of the derivation"):
        back.why("A", 0, 1).value  # noqa: B018
    with pytest.raises(ValueError, match=r"the values of 'A' \[1, 4\] were left out"):
        back["A"].value  # noqa: B018


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([0.1, 1 / 3, 1e-40, 3e38]),
        torch.tensor([0.1, 1 / 3], dtype=torch.float64),
        torch.tensor([0.1, 1 / 3, -math.inf], dtype=torch.bfloat16),
        torch.tensor([0.1, math.nan], dtype=torch.float16),
        torch.tensor([1, -5, 2**62]),
        torch.tensor([3, 255], dtype=torch.uint8),
        torch.tensor([[True], [False]]),
        torch.tensor([1 + 2j, 0.1j]),
        torch.tensor(0.5),
        torch.zeros(0, 3),
    ],
    ids=lambda value: str(value.dtype).removeprefix("torch."),
)  # fmt: skip
@pytest.mark.parametrize("packed", [True, False])
def test_every_dtype_reads_back_bit_for_bit(value: Tensor, packed: bool) -> None:
    derivation = Derivation([step(0, "x", value, "given")], 0)
    text = derivation.to_json(packed=packed)
    jsonschema_rs.validate(SCHEMA, json.loads(text))
    got = Derivation.from_json(text)["x"].value
    assert got.dtype == value.dtype
    assert torch.equal(got.isnan(), value.isnan())
    assert torch.equal(torch.where(got.isnan(), 0, got), torch.where(value.isnan(), 0, value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"a derivation: expected JSON; got none at line 1"),
        ("[]", r"begins with \{\"regard\": \"derivation\""),
        ('{"regard": "derivation", "version": 99}', r"reads format 1; got 99"),
        ('{"regard": "derivation", "version": 1}', r"is not as docs/derivation.schema.json says \(KeyError"),
    ],
)
def test_a_text_that_is_no_derivation_is_refused_in_a_sentence(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        Derivation.from_json(text)
    (tmp_path / "d.json").write_text(text)
    with pytest.raises(ValueError, match=rf"d\.json: .*{message}"):
        Derivation.load(tmp_path / "d.json")


def test_an_index_is_compressed_to_strides_and_what_is_left_to_look_up() -> None:
    rows = np.array([3, 0, 3])
    embedding = rows[:, None] * 5 + np.arange(5)
    got = compressed(embedding)
    assert got.table is not None
    assert (got.strides, got.table.tolist(), got.lookup) == ((0, 1), [15, 0, 15], (1, 0))
    for index in (embedding, np.arange(24).reshape(2, 3, 4)[:, ::-1], np.array(7), np.array([[0, -1], [2, 3]])):
        assert np.array_equal(compressed(index).everywhere(index.shape), index)


def test_later_pieces_lie_on_top_of_earlier_ones() -> None:
    under = Piece(0, (0, 0), (3, 4), IndexMap(row_strides((3, 4))))
    over_it = Piece(1, (1, 1), (1, 2), IndexMap((2, 1)))
    steps, flat = Move((under, over_it)).sources((3, 4), np.arange(12))
    assert steps.tolist() == [0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert flat.tolist() == [0, 1, 2, 3, 4, 0, 1, 7, 8, 9, 10, 11]


def test_a_form_over_inner_places_passes_over_those_without_a_cell() -> None:
    table = np.array([0, -1, 2])
    rule = Rule(over("sum", cell(0)), (Operand(0, IndexMap((0,), 0, table, (1,))),), (3,))
    derivation = Derivation(
        [
            step(0, "x", torch.tensor([1.0, 2.0, 4.0]), "given"),
            step(1, "y", torch.tensor(5.0), "computed", making=rule),
        ],
        1,
    )
    assert [parent.index for parent in derivation.why("y").parents] == [(0,), (2,)]


def test_whole_numbers_that_readers_would_round_stand_as_their_digits() -> None:
    to = Builder()
    to.add("n", torch.tensor([2**53 - 1, 2**53 + 1, -(2**63)]))
    derivation = to.derivation()
    record = json.loads(derivation.to_json(packed=False))
    jsonschema_rs.validate(SCHEMA, record)
    assert record["steps"][0]["values"] == [2**53 - 1, "9007199254740993", "-9223372036854775808"]
    assert Derivation.from_json(json.dumps(record)) == derivation
