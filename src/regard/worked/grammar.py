"""From Python's tree of a formula to ours, refusing all that has no place in one."""

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.support.nearest import nearest
from regard.worked.calls import Call, Rule
from regard.worked.errors import FormulaError, Span
from regard.worked.functions import FUNCTIONS, RULES
from regard.worked.guessing import unknown
from regard.worked.limits import DEEPEST
from regard.worked.nodes import Binary, Index, Name, Negative, Node, Number, Places, Slice, Transpose, Word
from regard.worked.table import Function

SIGNS: dict[type[ast.operator], str] = {
    ast.MatMult: "@", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**",
}  # fmt: skip
ALLOWED = "names, numbers, @ + - * / **, .T, [indices], brackets and functions"


@dataclass(frozen=True)
class Vocabulary:
    """Words that stand for places: lists of words by their name, and the names of a table's rows."""

    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Grammar:
    """The pieces of one formula, each let through or refused with its place in the text."""

    def __init__(
        self, source: str, known: Collection[str] | None, vocabulary: Vocabulary, layers: Mapping[str, Function]
    ) -> None:
        self.source, self.known, self.vocabulary, self.layers = source, known, vocabulary, layers
        self.encoded = source.encode()

    def node(self, tree: ast.expr, depth: int = 0) -> Node:
        if depth > DEEPEST:
            raise self.wrong(tree, f"nested too deeply; {DEEPEST} levels are allowed")
        at = self.span(tree)
        match tree:
            case ast.Name(id=name):
                return self.name(tree, name)
            case ast.Constant():
                return self.number(tree)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
                return Binary(SIGNS[type(op)], self.node(left, depth + 1), self.node(right, depth + 1), at=at)
            case ast.UnaryOp(op=ast.USub(), operand=of):
                return Negative(self.node(of, depth + 1), at=at)
            case ast.UnaryOp(op=ast.UAdd(), operand=of):
                return self.node(of, depth + 1)
            case ast.Attribute(value=of, attr="T"):
                return Transpose(self.node(of, depth + 1), at=at)
            case ast.Subscript(value=of, slice=keys):
                return Index(self.node(of, depth + 1), self.keys(keys), at=at)
            case ast.Call():
                return self.call(tree, depth)
            case _:
                raise self.wrong(tree, _unfit(tree))

    def name(self, tree: ast.expr, name: str) -> Node:
        if self.known is not None and name not in self.known:
            raise self.wrong(tree, self.unknown_name(name))
        return Name(name, at=self.span(tree))

    def unknown_name(self, name: str) -> str:
        known = self.known or ()
        if name in FUNCTIONS:
            return f"{name} is a function and wants brackets: {FUNCTIONS[name].usage}"
        if name in self.vocabulary.words:
            return f"{name} is a list of words, which only one_hot and embed can read"
        if (plain := name.removesuffix("T")) in known:
            return f"nothing is called {name!r}; the transpose of {plain} is {plain}.T"
        guess = nearest(name, known)
        listed = ", ".join(sorted(known)[:20])
        return f"nothing is called {name!r} so far{_perhaps(guess)} (known here: {listed})"

    def number(self, tree: ast.Constant) -> Number:
        if type(tree.value) not in (int, float):
            raise self.wrong(tree, f"{ast.unparse(tree)} is no number; a formula holds {ALLOWED}")
        span = self.span(tree)
        text = self.source[span.start : span.stop]
        value = float(tree.value) if len(text) < 300 else float("inf")  # type: ignore[arg-type]
        if value == float("inf"):
            raise self.wrong(tree, "this number is too large to count with")
        return Number(value, text, at=span)

    def keys(self, tree: ast.expr) -> tuple[int | Slice, ...]:
        each = tree.elts if isinstance(tree, ast.Tuple) else [tree]
        if not 1 <= len(each) <= 3:
            raise self.wrong(tree, "an index has one, two or three places: M[0], M[0, 1], M[:, 0:2]")
        return tuple(self.key(part) for part in each)

    def key(self, tree: ast.expr) -> int | Slice:
        if not isinstance(tree, ast.Slice):
            return self.place(tree)
        start, stop, step = (None if part is None else self.place(part) for part in (tree.lower, tree.upper, tree.step))
        if step is not None and step < 1:
            raise self.wrong(tree, "the step of a slice is 1 or more")
        return Slice(start, stop, step)

    def place(self, tree: ast.expr) -> int:
        negative = isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub)
        inner = tree.operand if isinstance(tree, ast.UnaryOp) and negative else tree
        if isinstance(inner, ast.Constant) and type(inner.value) is int and inner.value < 10**6:
            return -inner.value if negative else inner.value
        raise self.wrong(tree, "an index is a whole number, counted from 0, or a slice such as 0:2")

    def call(self, tree: ast.Call, depth: int) -> Node:
        if not isinstance(tree.func, ast.Name):
            raise self.wrong(tree.func, "only a function by its name can be called")
        function = self.layers.get(tree.func.id) or FUNCTIONS.get(tree.func.id)
        if function is None:
            raise self.wrong(tree.func, self.unknown_function(tree.func.id))
        options = {each.arg: each.value for each in tree.keywords if each.arg is not None}
        if len(options) < len(tree.keywords) or any(isinstance(each, ast.Starred) for each in tree.args):
            raise self.wrong(tree, "a star has no meaning before an argument, and no option may stand twice")
        try:
            given = function.bound(tree.args, options)
        except ValueError as error:
            raise self.wrong(tree, str(error)) from None
        return self.bound(tree, function, given, options, depth)

    def bound(
        self, tree: ast.Call, function: Function, given: dict[str, Any], options: dict[str, ast.expr], depth: int
    ) -> Node:
        """The call with each argument read as its parameter wants it."""
        nodes: dict[int, Node] = {}
        words = self.words_of(function.name, given)
        for parameter in function.parameters:
            parts = given.get(parameter.name, ())
            for part in parts if isinstance(parts, tuple) else (parts,):
                placed = self.placed(part, words) if parameter.name == "word" else None
                if placed is None and words is not None and function.name == "one_hot" and parameter.name == "n":
                    placed = Number(float(len(words)), ast.unparse(part), at=self.span(part))
                nodes[id(part)] = placed or self.argument(part, parameter.kind, depth)
        arguments = tuple(nodes[id(part)] for part in tree.args)
        named = tuple((key, nodes[id(part)]) for key, part in options.items())
        return Call(function.name, arguments, named, at=self.span(tree))

    def argument(self, tree: ast.expr, kind: str, depth: int) -> Node:
        if kind == "word" and isinstance(tree, ast.Name):
            return Word(tree.id, at=self.span(tree))
        if kind == "rule" and isinstance(tree, ast.Name) and tree.id in (*RULES, "none"):
            return Rule(tree.id, at=self.span(tree))
        if kind == "rule" and isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in RULES:
            counts = tuple(self.node(part, depth + 1) for part in tree.args)
            return Rule(tree.func.id, counts, at=self.span(tree))
        if kind == "rule" and isinstance(tree, ast.Name) and tree.id not in (self.known or (tree.id,)):
            raise self.wrong(tree, self.unknown_rule(tree.id))
        return self.node(tree, depth + 1)

    def words_of(self, function: str, given: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The words among which `one_hot(word, these)` or `embed(table, word)` finds its own."""
        side = given.get({"one_hot": "n", "embed": "table"}.get(function, ""))
        if not isinstance(side, ast.Name):
            return None
        words = self.vocabulary.words.get(side.id) if function == "one_hot" else None
        return words or self.vocabulary.rows.get(side.id)

    def placed(self, tree: ast.expr, among: tuple[str, ...] | None) -> Node | None:
        """A word, or a list of words by its name, as places among others; None for what is no word."""
        if not isinstance(tree, ast.Name):
            return None
        listed = self.vocabulary.words.get(tree.id)
        if listed is None and among is not None and tree.id in among:
            return Places((among.index(tree.id),), tree.id, alone=True, at=self.span(tree))
        if listed is None:
            return None
        if among is None:
            raise self.wrong(
                tree, f"the words of {tree.id} have no places here, where neither a list of words nor named rows stand"
            )
        for word in listed:
            if word not in among:
                raise self.wrong(tree, f"of {tree.id}: {unknown('word', word, among)}")
        return Places(tuple(among.index(word) for word in listed), tree.id, at=self.span(tree))

    def unknown_rule(self, name: str) -> str:
        """Of a mask: a matrix that is not there, or one of the rules misspelt."""
        guess = nearest(name, RULES)
        return f"there is no rule {name!r}; did you mean {RULES[guess]!r}?" if guess else self.unknown_name(name)

    def unknown_function(self, name: str) -> str:
        if name in RULES:
            return f"{name} is a rule for mask(…): mask(E, {RULES[name]})"
        if self.known is not None and name in self.known:
            return f"{name} is a value and no function; a product is written * or @"
        known = [*FUNCTIONS, *self.layers, *RULES]
        guess = nearest(name, known)
        listed = "" if guess else f" (there are: {', '.join(sorted(known))})"
        return f"there is no function {name!r}{_perhaps(guess)}{listed}"

    def span(self, tree: ast.expr) -> Span:
        """Python counts bytes; people and editors count characters."""
        start, stop = tree.col_offset, tree.end_col_offset or tree.col_offset
        return Span(len(self.encoded[:start].decode()), len(self.encoded[:stop].decode()))

    def wrong(self, tree: ast.expr, said: str) -> FormulaError:
        return FormulaError(said, self.span(tree))


def _perhaps(guess: str | None) -> str:
    return f"; did you mean {guess!r}?" if guess else ""


def _unfit(tree: ast.expr) -> str:
    """What has no place in a formula, in words."""
    match tree:
        case ast.List() | ast.Tuple() | ast.Set():
            return "a list has no place in a formula; joining is concat(a, b) or stack(a, b), numbers go under `given`"
        case ast.Attribute():
            return f".{tree.attr} has no meaning here; after a dot stands only T, the transpose"
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod()):
            return "// and % have no place in a formula; a quotient is written /"
        case ast.Compare() | ast.BoolOp() | ast.IfExp():
            return "comparisons and conditions have no place in a formula"
        case _:
            return f"this has no place in a formula, which holds {ALLOWED}"
