"""What pydantic found wrong, said to a person: key path, what was expected, what came, the nearest key."""

import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from regard.support.nearest import nearest, unknown

Path = tuple[str | int, ...]

EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text (in quotes, if it looks like something else)",
    "path_type": "a path",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of keys to values",
}


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing wrong: where (the keys that lead there) and what."""

    path: Path
    said: str

    def __str__(self) -> str:
        return f"{dotted(self.path)}: {self.said}" if self.path else self.said


def dotted(path: Path) -> str:
    return ".".join(map(str, path))


def mistakes(error: ValidationError, kind: type[BaseModel], values: Any) -> list[Mistake]:
    """Every mistake once, in the order of the keys; the branches of a union are told as one."""
    found: dict[Path, list[str]] = {}
    for each in error.errors(include_url=False):
        path = _key_path(each["loc"], values, missing=each["type"] == "missing")
        found.setdefault(path, []).append(_said(dict(each), kind, path))
    return [Mistake(path, _together(said)) for path, said in found.items() if not _told_deeper(path, said, found)]


def _key_path(location: Path, values: Any, *, missing: bool) -> Path:
    """pydantic's location without the names of union branches: only keys that stand in the values."""
    path: list[str | int] = []
    for number, part in enumerate(location):
        last = number == len(location) - 1
        if isinstance(values, Mapping) and (part in values or (missing and last)):
            path.append(part)
            values = values.get(part)
        elif isinstance(values, (list, tuple)) and isinstance(part, int) and part < len(values):
            path.append(part)
            values = values[part]
        elif isinstance(values, BaseModel) and part in type(values).model_fields:
            path.append(part)
            values = getattr(values, str(part))
    return tuple(path)


def _told_deeper(path: Path, said: list[str], found: dict[Path, list[str]]) -> bool:
    """`train: {sorce: a}` is neither text nor a right mapping; only the second is worth saying."""
    deeper = any(len(other) > len(path) and other[: len(path)] == path for other in found)
    return deeper and all(each.startswith("expected") for each in said)


def _together(said: list[str]) -> str:
    """`expected text, came 5` and `expected a list, came 5` → `expected text or a list, came 5`."""
    different = list(dict.fromkeys(said))
    split = [each.removeprefix("expected ").rpartition(", came ") for each in different]
    if len(different) > 1 and all(each.startswith("expected ") for each in different):
        return f"expected {' or '.join(wanted for wanted, _, _ in split)}, came {split[0][2]}"
    return "; ".join(different)


def _said(error: dict[str, Any], kind: type[BaseModel], path: Path) -> str:
    sort, came = error["type"], in_words(error["input"])
    if sort == "missing":
        return _missing(kind, path)
    if sort == "extra_forbidden":
        return _unknown_key(kind, path)
    if sort == "value_error":
        return str(error["ctx"]["error"])
    if sort in ("literal_error", "enum", "union_tag_invalid"):
        return _not_a_choice(kind, path, error, came)
    expected = EXPECTED.get(sort) or error["msg"].removeprefix("Input should be ")
    return f"expected {expected}, came {came}"


def _missing(kind: type[BaseModel], path: Path) -> str:
    models = list(_models(_at(kind, path[:-1])))
    notes = [model.model_fields[str(path[-1])].description for model in models if path[-1] in model.model_fields]
    note = f": {notes[0]}" if notes and notes[0] else ""
    return f"missing, and there is no default{note}"


def _unknown_key(kind: type[BaseModel], path: Path) -> str:
    key, known = (
        str(path[-1]),
        [name for model in _models(_at(kind, path[:-1])) for name in model.model_fields],
    )
    if nearest(key, known) is None:
        elsewhere = [each for each in _all_paths(kind) if each[-1] == key]
        if elsewhere:
            return f"unknown key {key!r} here; did you mean {dotted(elsewhere[0])}?"
    return unknown("key", key, set(known))


def _not_a_choice(kind: type[BaseModel], path: Path, error: dict[str, Any], came: str) -> str:
    if error["type"] == "union_tag_invalid":
        tag = str(error["ctx"]["discriminator"]).strip("'_()")  # a key, or a function that reads it
        return unknown(tag, str(error["ctx"]["tag"]), error["ctx"]["expected_tags"].strip("'").split("', '"))
    choices = [str(each) for kind_ in _at(kind, path) if get_origin(kind_) is Literal for each in get_args(kind_)]
    if not choices or not isinstance(error["input"], str):
        return f"expected {error['ctx']['expected']}, came {came}"
    return unknown("choice", error["input"], choices)


def in_words(value: object) -> str:
    """A value as it would stand in the file, cut short where it is long."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"a mapping with the keys {', '.join(map(str, list(value)[:6]))}" if value else "an empty mapping"
    return reprlib.repr(value)


def _at(kind: Any, path: Path) -> list[Any]:
    """The types a value at `path` may have, all branches of unions taken."""
    here = list(_branches(kind))
    for part in path:
        here = [branch for each in here for inner in _inside(each, part) for branch in _branches(inner)]
    return here


def _branches(kind: Any) -> Iterator[Any]:
    if get_origin(kind) is Annotated:
        yield from _branches(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from _branches(each)
    else:
        yield kind


def _inside(kind: Any, part: str | int) -> Iterator[Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if part in kind.model_fields:
            yield kind.model_fields[str(part)].annotation
    elif get_args(kind) and get_origin(kind) is not Literal:
        yield from (each for each in get_args(kind)[-2:] if each is not Ellipsis)


def _models(kinds: list[Any]) -> Iterator[type[BaseModel]]:
    return (each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel))


def _all_paths(kind: type[BaseModel], above: Path = (), depth: int = 6) -> Iterator[Path]:
    for name, field in kind.model_fields.items():
        yield (*above, name)
        if depth:
            for model in _models(list(_branches(field.annotation))):
                yield from _all_paths(model, (*above, name), depth - 1)
