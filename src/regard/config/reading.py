"""A YAML file and `--set` overrides → one settings object, or one message with all that is wrong."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from regard.config import mistakes
from regard.config.plain_yaml import Lines, parse, parse_value
from regard.config.settings import Settings
from regard.support.errors import Misuse

Kind = TypeVar("Kind", bound=Settings)
KeyPath = tuple[str | int, ...]


def read_config(path: str | Path, kind: type[Kind], overrides: Sequence[str] = ()) -> Kind:
    """Read the YAML file at `path` as `kind`; `overrides` such as "data.train.source=a.en" come on top.

    Raises Misuse with every mistake at once: file, line, key path, what was expected and what came.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misuse(f"{path}: not UTF-8 at byte {error.start}; a configuration is UTF-8 text") from None
    values, lines = parse(text, str(path))
    return settings_from(values, kind, overrides, name=str(path), lines=lines)


def settings_from(
    values: Mapping[str, Any],
    kind: type[Kind],
    overrides: Sequence[str] = (),
    *,
    name: str = "configuration",
    lines: Lines | None = None,
) -> Kind:
    """The same from values already read; `name` and `lines` say where they stood."""
    merged: Any = _copied(values)
    places: Lines = dict(lines or {})
    changed: dict[KeyPath, str] = {}
    for override in overrides:
        path = _override(merged, override)
        changed[path] = override
    try:
        return kind.model_validate(merged)
    except ValidationError as error:
        found = mistakes.mistakes(error, kind, merged)
    told = [_placed(each, name, places, changed) for each in found]
    if len(told) > 1:
        told.insert(0, f"{name}: {len(told)} mistakes")
    raise Misuse("\n".join(told))


def _placed(mistake: mistakes.Mistake, name: str, lines: Lines, changed: Mapping[KeyPath, str]) -> str:
    """`train.yaml:4: data.epochs: …`, or `--set data.epochs=x: …` where the command line said it."""
    for length in range(len(mistake.path), 0, -1):
        part = mistake.path[:length]
        if part in changed:
            return f"--set {changed[part]}: {mistake}"
        if part in lines:
            return f"{name}:{lines[part]}: {mistake}"
    return f"{name}: {mistake}"


def _copied(values: Any) -> Any:
    """Mappings and lists copied, so that an override changes neither the caller's values nor an alias."""
    if isinstance(values, Mapping):
        return {key: _copied(value) for key, value in values.items()}
    return [_copied(value) for value in values] if isinstance(values, list) else values


def _override(values: dict[str, Any], override: str) -> KeyPath:
    """Put the value of `a.b=c` where it belongs; lists are entered by number: `layers.0.width=3`."""
    keys, equals, text = override.partition("=")
    parts = keys.strip().split(".")
    if not equals or not all(parts):
        raise Misuse(f"--set {override}: expected path.to.key=value, such as data.train.source=a.en")
    try:
        value = parse_value(text)
    except yaml.YAMLError:
        raise Misuse(f"--set {override}: {text!r} is not a YAML value; put quotes around text") from None
    path: list[str | int] = []
    here: Any = values
    for part in parts[:-1]:
        path.append(_step(here, part, path, override))
        if isinstance(here, dict) and here.get(path[-1]) is None:
            here[path[-1]] = {}
        here = here[path[-1]]
    path.append(_step(here, parts[-1], path, override))
    here[path[-1]] = value
    return tuple(path)


def _step(here: Any, part: str, path: list[str | int], override: str) -> str | int:
    if isinstance(here, dict):
        return part
    where = mistakes.dotted(tuple(path))
    if isinstance(here, list):
        if part.isdecimal() and int(part) < len(here):
            return int(part)
        raise Misuse(f"--set {override}: {where} is a list of {len(here)}, numbered from 0; came {part!r}")
    raise Misuse(f"--set {override}: {where} is {mistakes.in_words(here)}, which has no key {part!r}")
