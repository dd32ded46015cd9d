"""A derivation as JSON and back. docs/derivation.schema.json says what stands where.

Every value is stored once: a moved tensor (a view, a join) has none of its own where its sources have theirs.
"""

import base64
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.tracing.checking import all_untrue
from regard.tracing.derivation import Derivation
from regard.tracing.forms import FORMS, Form, Operand, Rule
from regard.tracing.index import Flat, IndexMap, Move, Piece
from regard.tracing.step import Held, Step

VERSION = 1
PLAIN_UP_TO = 2_000
"""Numbers in all up to which they are written to be read by people."""

LARGEST_WHOLE = 2**53 - 1
"""The largest whole number that readers of JSON do not round."""

Json = dict[str, Any]
WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def written(derivation: Derivation, largest: int | None, packed: bool | None) -> str:
    if packed is None:
        packed = sum(step.size for step in derivation.fine if step.held is not None) > PLAIN_UP_TO
    has: dict[int, bool] = {}
    steps = [_step(step, largest, packed, has) for step in derivation.fine]
    for position, (folded, fine) in all_untrue(derivation).items():
        steps[position]["untrue"] = {"steps": _runs(folded), "primitives": _runs(fine)}
    record = {"regard": "derivation", "version": VERSION, "target": derivation.target.position, "steps": steps}
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def read(text: str) -> Derivation:
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"a derivation: expected JSON; got none at line {error.lineno}: {error.msg}") from None
    if not isinstance(record, dict) or record.get("regard") != "derivation":
        raise ValueError('a derivation: expected JSON that begins with {"regard": "derivation"; got something else')
    if record.get("version") != VERSION:
        raise ValueError(f"a derivation: this version of regard reads format {VERSION}; got {record.get('version')!r}")
    try:
        return Derivation([_read_step(n, step) for n, step in enumerate(record["steps"])], record["target"])
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ValueError(f"a derivation: the JSON is not as docs/derivation.schema.json says ({error!r})") from None


def load(path: str | Path) -> Derivation:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}: cannot be read as a derivation: {getattr(error, 'strerror', None) or error}"
        ) from None
    try:
        return read(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def equal(one: Derivation, other: Derivation) -> bool:
    """Whether two derivations say the same: names, rules, and every value bit for bit (NaN equals NaN)."""
    if len(one.fine) != len(other.fine) or one.target.position != other.target.position:
        return False
    return all(_equal_steps(mine, theirs) for mine, theirs in zip(one.fine, other.fine, strict=True))


COMPARED = (
    "name", "label", "formula", "operation", "module", "role", "shown", "inputs", "sources", "aliases", "shape",
    "dtype", "axes", "kind",
)  # fmt: skip


def _equal_steps(mine: Step, theirs: Step) -> bool:
    if any(getattr(mine, each) != getattr(theirs, each) for each in COMPARED) or mine.rule != theirs.rule:
        return False
    a, b = mine.array, theirs.array
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def _step(step: Step, largest: int | None, packed: bool, has: dict[int, bool]) -> Json:
    """What is written of a step; `has` remembers of which steps a reader will have the values."""
    rule = step.rule
    moved = isinstance(rule, Move) and all(has[piece.step] for piece in rule.pieces)
    keeps = moved or (step.has_values and (largest is None or step.size <= largest))
    has[step.position] = keeps
    return {
        "name": step.name,
        "label": step.label,
        "formula": step.formula,
        "operation": step.operation,
        "module": step.module,
        "role": step.role,
        "shown": step.shown,
        "inputs": list(step.inputs),
        "sources": list(step.sources),
        "aliases": list(step.aliases),
        "shape": list(step.shape),
        "dtype": step.dtype,
        "kind": step.kind,
        "axes": [None if axis is None else list(axis) for axis in step.axes],
        "values": _values(step, packed) if keeps and not moved else None,
        "rule": None if rule is None else _move(rule) if isinstance(rule, Move) else _rule(rule),
    }


def _runs(cells: Flat) -> list[list[int]]:
    """Flat indices as runs: the first of each, and how many there are."""
    starts = np.flatnonzero(np.diff(cells, prepend=-2) != 1)
    counts = np.diff(starts, append=cells.size)
    return [[int(cells[at]), int(count)] for at, count in zip(starts, counts, strict=True)]


def _values(step: Step, packed: bool) -> Any:
    array = step.array
    assert array is not None
    if array.dtype.kind == "c":
        array = array.view(np.float32 if array.dtype == np.complex64 else np.float64)
    if packed:
        plain = array.astype(np.uint8) if array.dtype == bool else array.astype(array.dtype.newbyteorder("<"))
        return {"type": plain.dtype.name, "base64": base64.b64encode(plain.tobytes()).decode("ascii")}
    if array.dtype.kind != "f":
        return [json_number(each) for each in array.tolist()]
    # The shortest decimal that is this number in its own precision, not in float64.
    return [json_number(float(str(each)) if array.dtype == np.float32 else float(each)) for each in array]


def json_number(value: Any) -> Any:
    """A number as JSON has it; what JSON has no number for in a word, a whole one that readers round in its digits."""
    if isinstance(value, complex):
        return {"real": json_number(value.real), "imaginary": json_number(value.imag)}
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        return str(value)
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _move(move: Move) -> Json:
    pieces = [
        {"step": each.step, "start": list(each.start), "size": list(each.size), **_map(each.map)}
        for each in move.pieces
    ]
    return {"pieces": pieces, "fill": json_number(move.fill)}


def _rule(rule: Rule) -> Json:
    operands = [{"step": each.step, **_map(each.map)} for each in rule.operands]
    return {"inner": list(rule.inner), "operands": operands, "body": _form(rule.body)}


def _map(index: IndexMap) -> Json:
    record: Json = {"strides": list(index.strides), "offset": index.offset}
    if index.table is not None:
        record |= {"table": index.table.tolist(), "lookup": list(index.lookup)}
    return record


def _form(form: Form) -> Json:
    record: Json = {"form": form.form}
    if form.of:
        record["of"] = [_form(part) for part in form.of]
    if form.operand >= 0:
        record["operand"] = form.operand
    if form.number is not None:
        record["number"] = json_number(form.number)
    if form.name:
        record["name"] = form.name
    return record


def _read_step(position: int, record: Json) -> Step:
    step = Step(
        position,
        record["name"],
        tuple(record["shape"]),
        record["dtype"],
        record["role"],
        record["operation"],
        record["label"],
        record["formula"],
        record["module"],
        record["shown"],
        tuple(record["inputs"]),
        tuple(record["sources"]),
        tuple(record["aliases"]),
        tuple(None if axis is None else tuple(axis) for axis in record["axes"]),
        making=_read_rule(record["rule"]),
        known_kind=record["kind"],
    )
    if record["values"] is not None:
        step.held = Held(_read_values(record["values"], step))
    return step


def _read_values(values: Any, step: Step) -> torch.Tensor:
    dtype = getattr(torch, step.dtype)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"no dtype: {step.dtype!r}")
    if isinstance(values, dict):
        raw = np.frombuffer(base64.b64decode(values["base64"]), np.dtype(values["type"]).newbyteorder("<"))
        plain = torch.from_numpy(raw.astype(raw.dtype.newbyteorder("=")))
    else:
        whole = torch.uint64 if dtype == torch.uint64 else torch.int64
        wide = torch.float64 if dtype.is_floating_point or dtype.is_complex else whole
        plain = torch.tensor([_read_number(each) for each in values], dtype=wide)
    if dtype.is_complex:
        return torch.view_as_complex(plain.reshape(-1, 2)).to(dtype).reshape(step.shape)
    return plain.to(dtype).reshape(step.shape)


def _read_rule(record: Json | None) -> Rule | Move | None:
    if record is None:
        return None
    if "pieces" in record:
        pieces = [
            Piece(each["step"], tuple(each["start"]), tuple(each["size"]), _read_map(each)) for each in record["pieces"]
        ]
        return Move(tuple(pieces), _read_number(record["fill"]))
    operands = tuple(Operand(each["step"], _read_map(each)) for each in record["operands"])
    return Rule(_read_form(record["body"]), operands, tuple(record["inner"]))


def _read_map(record: Json) -> IndexMap:
    table = record.get("table")
    array = None if table is None else np.array(table, np.int64)
    return IndexMap(tuple(record["strides"]), record["offset"], array, tuple(record.get("lookup", ())))


def _read_form(record: Json) -> Form:
    if record["form"] not in FORMS:
        raise ValueError(f"no form: {record['form']!r}")
    return Form(
        record["form"],
        tuple(_read_form(part) for part in record.get("of", ())),
        record.get("operand", -1),
        _read_number(record.get("number")),
        record.get("name", ""),
    )


def _read_number(value: Any) -> Any:
    if isinstance(value, dict):
        return complex(_read_number(value["real"]), _read_number(value["imaginary"]))
    if not isinstance(value, str):
        return value
    return WORDS[value] if value in WORDS else int(value)
