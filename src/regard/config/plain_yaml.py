"""Plain YAML, read safely: no tags, no duplicate keys, the scalars of YAML 1.2, and the line of every key.

PyYAML follows YAML 1.1, where `no` is false (and Norwegian not a language), 1e-4 is text, 12:30 is 750
and 010 is 8. Here only true and false are booleans, 1e-4 is a number, and times and dates are text.
"""

import re
from collections.abc import Hashable
from itertools import chain
from typing import Any

import yaml

from regard.support.errors import Misuse

MOST_VALUES = 100_000
Lines = dict[tuple[str | int, ...], int]


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


for tag, pattern, first in [
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(0|[1-9][0-9_]*)|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9][0-9_]*(?=[eE]))([eE][-+]?[0-9]+)?"
              r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+0123456789."),
    ("merge", r"<<", "<"),
]:  # fmt: skip
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first))


def parse(text: str, name: str) -> tuple[dict[str, Any], Lines]:
    """The mapping a file holds and the line of each key in it; Misuse names the line of what is no YAML."""
    try:
        values, lines = _load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise Misuse(f"{name}{line}: not a configuration in YAML: {_problem(error)}") from None
    except yaml.YAMLError as error:
        raise Misuse(f"{name}: not a configuration in YAML: {error}") from None
    except RecursionError:
        raise Misuse(f"{name}: nested too deeply for a configuration") from None
    if values is not None and not isinstance(values, dict):
        raise Misuse(f"{name}: expected keys and values (key: value) at the top, came {type(values).__name__}")
    return values or {}, lines


def parse_value(text: str) -> Any:
    """One value as it would stand after `key: ` in a file; nothing at all is null."""
    return _load(text)[0]


def _load(text: str) -> tuple[Any, Lines]:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {}
        _size(node, {}, set())
        lines: Lines = {}
        _walk(node, (), lines, set())
        return loader.construct_document(node), lines
    finally:
        loader.dispose()


def _size(node: yaml.Node, known: dict[int, int], above: set[int]) -> int:
    """How many values a node stands for, its aliases written out; refused where that has no sensible end."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) in above:
        raise yaml.MarkedYAMLError(problem="an alias that holds itself", problem_mark=node.start_mark)
    if id(node) not in known:
        parts = node.value if isinstance(node, yaml.SequenceNode) else chain.from_iterable(node.value)
        known[id(node)] = 1 + sum(_size(each, known, above | {id(node)}) for each in parts)
    if known[id(node)] > MOST_VALUES:
        problem = f"aliases that stand for more than {MOST_VALUES} values"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return known[id(node)]


def _walk(node: yaml.Node, path: tuple[str | int, ...], lines: Lines, seen: set[int]) -> None:
    """Note the line of every key and refuse a key that stands twice; an alias is walked only once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for number, each in enumerate(node.value):
            lines[(*path, number)] = each.start_mark.line + 1
            _walk(each, (*path, number), lines, seen)
    elif isinstance(node, yaml.MappingNode):
        first: dict[Hashable, int] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            line = key.start_mark.line + 1
            if name in first and name != "<<":
                problem = f"the key {name!r} stands here and on line {first[name]}; one of them must go"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            if name is not None:
                first[name] = lines[(*path, name)] = line
                _walk(value, (*path, name), lines, seen)


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "it cannot be read"
    if "'\\t'" in problem:
        return "a tab where YAML wants spaces"
    if "could not determine a constructor for the tag" in problem:
        return f"{problem.replace('could not determine a constructor for', 'no room for')}; only plain values"
    if "mapping values are not allowed here" in problem:
        return "a colon where no key can stand (check the indentation, or put quotes around the text)"
    return "a list or a mapping as a key" if problem == "found unhashable key" else problem
