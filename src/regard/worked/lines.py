"""YAML as a person wrote it: every scalar as text, with its line and column, within limits of size and depth.

PyYAML's own loaders turn `0.10` into 0.1 and build whatever a tag names. Here its events are read, and nothing is
built of them but text, lists and mappings.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import yaml

from regard.support.errors import Misuse
from regard.worked.limits import MOST_CELLS_IN_ALL

DEEPEST = 12


class Place(NamedTuple):
    """Line and column, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


START = Place(1, 1)


@dataclass(frozen=True)
class Text:
    text: str
    at: Place
    plain: bool
    """Written without quotes."""
    one_line: bool
    within: bool = False
    """Inside of { } or [ ], where a comma ends a text without quotes."""
    kind = "text"


@dataclass(frozen=True)
class List:
    items: "tuple[Tree, ...]"
    at: Place
    kind = "a list"


@dataclass(frozen=True)
class Mapping:
    at: Place
    items: "dict[str, Tree]" = field(default_factory=dict)
    keys: dict[str, Place] = field(default_factory=dict)
    """Where each key stands."""
    kind = "a mapping of names to values"


Tree = Text | List | Mapping

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_lines(text: str, name: str, origin: Place = START) -> Tree:
    """What a YAML text holds; Misuse names the line and column of what is wrong.

    `origin` is where the text begins, where it is a piece of a file.
    """
    try:
        return _Builder(text, name, origin).built()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{_place(mark, origin)}" if mark else name
        said = "a tab where YAML wants spaces" if mark and _letter(text, mark) == "\t" else _problem(error)
        raise Misuse(f"{where}: not YAML: {said}") from None
    except yaml.YAMLError as error:
        raise Misuse(f"{name}: not YAML: {str(error).partition(chr(10))[0]}") from None


class _Builder:
    """Events to trees. PyYAML composes by recursion, which a thousand brackets would exhaust."""

    def __init__(self, text: str, name: str, origin: Place) -> None:
        self.name, self.origin = name, origin
        # Any, because the stubs know no anchors and think that events may stand nowhere.
        self.events: Iterator[Any] = yaml.parse(text, Loader=LOADER)
        self.anchors: dict[str, Tree | None] = {}
        self.sizes: dict[int, int] = {}
        self.values = 0
        self.flow = 0
        """How many { and [ are open."""

    def built(self) -> Tree:
        tree: Tree = Mapping(Place(1, 1))
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.refuse(event, "a second document begins here; a file holds one problem")
            elif isinstance(event, yaml.NodeEvent):
                tree = self.node(event, 0)
        return tree

    def node(self, event: Any, depth: int) -> Tree:
        self.values += 1
        if self.values > MOST_CELLS_IN_ALL:
            self.refuse(event, f"more than {MOST_CELLS_IN_ALL} values")
        if depth > DEEPEST:
            self.refuse(event, f"nested too deeply; {DEEPEST} levels are allowed")
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        tag = getattr(event, "tag", None)
        if tag is not None and tag not in ("!", "tag:yaml.org,2002:str"):
            self.refuse(event, f"the tag {tag} has no meaning here; only plain text, lists and mappings")
        before, anchor = self.values, getattr(event, "anchor", None)
        if anchor is not None:
            self.anchors[anchor] = None
        tree = self.collection(event, depth)
        if anchor is not None:
            self.anchors[anchor] = tree
            self.sizes[id(tree)] = self.values - before + 1
        return tree

    def collection(self, event: Any, depth: int) -> Tree:
        at = _place(event.start_mark, self.origin)
        if isinstance(event, yaml.ScalarEvent):
            lines = event.end_mark.line - event.start_mark.line  # type: ignore[union-attr]
            return Text(event.value, at, plain=not event.style, one_line=lines == 0, within=self.flow > 0)
        self.flow += bool(event.flow_style)
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(inner := next(self.events), yaml.SequenceEndEvent):
                items.append(self.node(inner, depth + 1))
            self.flow -= bool(event.flow_style)
            return List(tuple(items), at)
        mapping = Mapping(at)
        while not isinstance(inner := next(self.events), yaml.MappingEndEvent):
            self.pair(inner, mapping, depth)
        self.flow -= bool(event.flow_style)
        return mapping

    def pair(self, event: Any, mapping: Mapping, depth: int) -> None:
        key = self.node(event, depth + 1)
        if not isinstance(key, Text):
            self.refuse(event, "a list or a mapping stands where a name should be")
        if key.text in mapping.items:
            first = mapping.keys[key.text].line
            self.refuse(event, f"{key.text!r} stands here and on line {first}; one of them must go")
        mapping.keys[key.text] = key.at
        mapping.items[key.text] = self.node(next(self.events), depth + 1)

    def alias(self, event: Any) -> Tree:
        tree = self.anchors.get(event.anchor)
        if tree is None:
            problem = "holds itself" if event.anchor in self.anchors else "is nowhere defined"
            self.refuse(event, f"the alias *{event.anchor} {problem} (a product that begins with * needs a left side)")
        self.values += self.sizes.get(id(tree), 1)
        if self.values > MOST_CELLS_IN_ALL:
            self.refuse(event, f"aliases that stand for more than {MOST_CELLS_IN_ALL} values")
        return tree

    def refuse(self, event: Any, said: str) -> NoReturn:
        raise Misuse(f"{self.name}:{_place(event.start_mark, self.origin)}: {said}")


def _place(mark: Any, origin: Place) -> Place:
    return Place(mark.line + origin.line, mark.column + (origin.column if mark.line == 0 else 1))


def _letter(text: str, mark: Any) -> str:
    """What stands where PyYAML gave up."""
    lines = text.split("\n")
    return lines[mark.line][mark.column : mark.column + 1] if mark.line < len(lines) else ""


PROBLEMS = {
    "mapping values are not allowed": "a colon where no name can stand (check the indentation, or put quotes around "
    "the text)",
    "cannot start any token": "a character no text can begin with (put quotes around text that begins with @, % or `)",
    "',' or ']'": "a comma or the closing ] is missing before this",
    "',' or '}'": "a comma or the closing } is missing before this",
    "expected node content": "a value is missing here, or a bracket is not closed",
    "expected key": "this stands neither under the line above nor beside it; check the indentation",
    "expected <document start>": "this does not belong to what stands above; check the indentation and the colons",
    "expected ':'": "a name is not followed by a colon",
    "unexpected end of stream": "a quotation mark is not closed",
}
"""What PyYAML says, and what it means to somebody who writes a problem."""


def _problem(error: yaml.MarkedYAMLError) -> str:
    said = error.problem or error.context or "it cannot be read"
    return next((meant for each, meant in PROBLEMS.items() if each in said), said)
