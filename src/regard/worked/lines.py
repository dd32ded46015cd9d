"""YAML as a person wrote it: every scalar as text, with its line and column, within limits of size and depth.

PyYAML's own loaders turn `0.10` into 0.1 and build whatever a tag names. Here its events are read, and nothing is
built of them but text, lists and mappings.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import yaml

from regard.support.errors import Misuse
from regard.worked.limits import MOST_BYTES, MOST_CELLS_IN_ALL
from regard.worked.places import Place, Source, letters, located

DEEPEST = 12


@dataclass(frozen=True)
class Text:
    text: str
    at: Place
    plain: bool
    """Written without quotes."""
    source: Source = field(repr=False)
    start: int
    stop: int
    """Where in the source it begins and ends, counted from 0."""
    within: bool = False
    """Inside of { } or [ ], where a comma ends a text without quotes."""
    kind = "text"

    def place(self, offset: int) -> Place:
        """Where the letter `offset` of the text stands, counted from 0."""
        return self.source.place(self.start + located(self.text, self._raw, self._letters, offset))

    @property
    def _raw(self) -> str:
        return self.source.text[self.start : self.stop]

    @cached_property
    def _letters(self) -> list[int]:
        return letters(self._raw)


class Within(Source):
    """A text of a source that is read itself."""

    def __init__(self, tree: Text) -> None:
        super().__init__(tree.source.name, tree.text)
        self.tree = tree

    def place(self, index: int) -> Place:
        return self.tree.place(index)


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


UNFIT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""What YAML lets nobody write, not even in a comment: control characters, halves of letters. And a mark of the order
of bytes within a text, which nobody sees."""


def read_lines(text: str, name: str) -> Tree:
    """What a YAML text holds; Misuse names the line and column of what is wrong."""
    if len(text) > MOST_BYTES:
        raise Misuse(f"{name}: {len(text)} characters, and a problem has at most {MOST_BYTES}")
    return read_source(Source(name, text.removeprefix("\ufeff")))


def read_source(source: Source) -> Tree:
    """The same of a text that may be a piece of another."""
    if (unfit := UNFIT.search(source.text)) is not None:
        said = f"the character U+{ord(unfit[0]):04X}, which nobody sees, has no place in a problem; take it out"
        raise Misuse(f"{source.name}:{source.place(unfit.start())}: {said}")
    try:
        return _Builder(source).built()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source.name}:{source.place(mark.index)}" if mark else source.name
        tab = mark is not None and source.text[mark.index : mark.index + 1] == "\t"
        said = "a tab where YAML wants spaces" if tab else _problem(error)
        raise Misuse(f"{where}: not YAML: {said}") from None


class _Builder:
    """Events to trees. PyYAML composes by recursion, which a thousand brackets would exhaust."""

    def __init__(self, source: Source) -> None:
        self.source = source
        # Any, because the stubs know no anchors and think that events may stand nowhere.
        self.events: Iterator[Any] = yaml.parse(source.text, Loader=LOADER)
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
            self.refuse(event, f"the tag {tag[:60]} has no meaning here; only plain text, lists and mappings")
        before, anchor = self.values, getattr(event, "anchor", None)
        if anchor is not None:
            self.anchors[anchor] = None
        tree = self.collection(event, depth)
        if anchor is not None:
            self.anchors[anchor] = tree
            self.sizes[id(tree)] = self.values - before + 1
        return tree

    def collection(self, event: Any, depth: int) -> Tree:
        start, stop = event.start_mark.index, event.end_mark.index
        at = self.source.place(start)
        if isinstance(event, yaml.ScalarEvent):
            return Text(event.value, at, not event.style, self.source, start, stop, within=self.flow > 0)
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
            self.refuse(event, f"{key.text[:40]!r} stands here and on line {first}; one of them must go")
        mapping.keys[key.text] = key.at
        mapping.items[key.text] = self.node(next(self.events), depth + 1)

    def alias(self, event: Any) -> Tree:
        tree = self.anchors.get(event.anchor)
        if tree is None:
            problem = "holds itself" if event.anchor in self.anchors else "is nowhere defined"
            self.refuse(
                event, f"the alias *{event.anchor[:40]} {problem} (a product that begins with * needs a left side)"
            )
        self.values += self.sizes.get(id(tree), 1)
        if self.values > MOST_CELLS_IN_ALL:
            self.refuse(event, f"aliases that stand for more than {MOST_CELLS_IN_ALL} values")
        return tree

    def refuse(self, event: Any, said: str) -> NoReturn:
        raise Misuse(f"{self.source.name}:{self.source.place(event.start_mark.index)}: {said}")


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
