"""A whole layer in one line becomes the steps a person would write: `O: self_attention(X, W_Q, W_K, W_V)` is

    Q: X @ W_Q    K: X @ W_K    V: X @ W_V    E: Q @ K.T    A: softmax(E)    O: A @ V

`layers` says which steps those are, in formulas over the layer's own parameters. Here they get their names in the
problem: the plain ones where all of a layer's are free, else all with the name of its line behind (Q_O, K_O, …).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.worked.calls import Call, Rule
from regard.worked.errors import FormulaError, Span
from regard.worked.formula import parse_formula
from regard.worked.nodes import Binary, Index, Name, Node, Number, Transpose, Word
from regard.worked.solution import Budget
from regard.worked.table import Function, choice, whole


@dataclass(frozen=True)
class Layer:
    """A whole layer: how it is called, and which steps it becomes."""

    function: Function
    write: "Callable[[Parts], str]"
    """Adds the steps to the parts, and gives the formula of the last."""


class Parts:
    """What a layer is given, under the names of its parameters, and the steps made of it so far."""

    def __init__(self, layer: Layer, call: Call, values: Mapping[str, Tensor]) -> None:
        self.function, self.call = layer.function, call
        self.given = layer.function.bound(call.arguments, dict(call.options))
        self.nodes: dict[str, Node] = {}
        """What stands for a name: an argument as it is, or an earlier part."""
        self.parts: dict[str, Node] = {}
        """The steps made so far, by their plain names; these names stand in them, and those of `nodes`."""
        self._values: dict[str, Tensor] = {}
        for name, node in self.given.items():
            self._take(name, node, values)

    def _take(self, name: str, node: Node, values: Mapping[str, Tensor]) -> None:
        kind = self.function.parameter(name).kind
        if kind == "rule":
            self.nodes["rule"] = node
        if kind != "value":
            return
        if (value := _tried(node, values)) is not None:
            self._values[name] = value
        if _is_plain(node):
            self.nodes[name] = node
        else:  # worked once, and not wherever it is used
            self.parts[name] = node

    def __contains__(self, name: str) -> bool:
        """Whether an argument that may be left out was given."""
        return name in self.given

    def word(self, name: str) -> str:
        """The choice for a parameter; its first one where nothing is said."""
        parameter, node = self.function.parameter(name), self.given.get(name)
        if node is None:
            return parameter.words[0]
        try:
            return choice(name, node.text if isinstance(node, Word) else str(node), parameter.words)
        except ValueError as error:
            raise FormulaError(str(error), node.at) from None

    def count(self, name: str, otherwise: int, most: int) -> int:
        """A whole number from 1 to `most`."""
        node = self.given.get(name)
        if node is None:
            return otherwise
        try:
            number = whole(name, node.compute({})) if not node.names else 0
        except ValueError as error:
            raise self.wrong(str(error), name) from None
        if not 1 <= number <= most:
            raise self.wrong(f"{name} is a whole number from 1 to {most}, as it stands; it is {node}", name)
        return number

    def rule(self, otherwise: str = "none") -> bool:
        """Whether there is a mask; `rule` then stands for it in formulas."""
        node = self.nodes.setdefault("rule", Rule(otherwise))
        return node != Rule("none")

    def step(self, name: str, formula: str) -> str:
        """One more step, `formula` over parameters and earlier steps; its name."""
        node = parse_formula(formula).root
        self.parts[name] = node
        if (value := _tried(node.rewritten(_unmasked), self._values)) is not None:
            self._values[name] = value
        return name

    def width(self, name: str) -> int:
        """The last axis of an argument or a step; 1 where it cannot be worked, which the solution will tell."""
        value = self._values.get(name)
        return value.shape[-1] if value is not None and value.ndim else 1

    def knows(self, name: str) -> bool:
        return name in self._values

    def rank(self, name: str) -> int:
        """How many axes there are; those of a matrix where that cannot be known yet."""
        return self._values[name].ndim if name in self._values else 2

    def rows(self, name: str) -> int:
        value = self._values.get(name)
        return value.shape[-2] if value is not None and value.ndim > 1 else 1

    def wrong(self, said: str, parameter: str = "") -> FormulaError:
        node = self.given.get(parameter)
        return FormulaError(f"{self.function.name}: {said}", self.call.at if node is None else node.at)


class Expander:
    """Goes through one line and puts in place of each layer the formula of its last step; `steps` are the others."""

    def __init__(
        self, name: str, layers: Mapping[str, Layer], taken: Collection[str], values: Mapping[str, Tensor]
    ) -> None:
        self.name, self.layers = name, layers
        self.taken, self.values = set(taken), dict(values)
        self.steps: list[tuple[str, Node]] = []

    def __call__(self, node: Node) -> Node:
        if not isinstance(node, Call) or node.function not in self.layers:
            return node
        layer = self.layers[node.function]
        parts = Parts(layer, node, self.values)
        last = parse_formula(layer.write(parts)).root
        names = self.named(parts)
        for each, step in parts.parts.items():
            self.add(str(names[each]), step if each in parts.given else _placed(step, names, node.at))
        return _placed(last, names, node.at)

    def add(self, name: str, step: Node) -> None:
        self.steps.append((name, step))
        self.taken.add(name)
        if (value := _tried(step, self.values)) is not None:
            self.values[name] = value

    def named(self, parts: Parts) -> dict[str, Node]:
        """What stands for each name in a layer's formulas, the steps under names that are free."""
        ending, number = "", 1
        while any(f"{each}{ending}" in self.taken for each in parts.parts):
            ending, number = f"_{self.name}" + (f"_{number}" if number > 1 else ""), number + 1
        stand = {each: parts.given.get(each, parts.call).at for each in parts.parts}
        return parts.nodes | {each: Name(f"{each}{ending}", at=at) for each, at in stand.items()}


def layers_in(root: Node, layers: Collection[str]) -> set[Span]:
    """Where in a line whole layers are called."""
    return {node.at for node in root.walk() if isinstance(node, Call) and node.function in layers}


def origins(written: Node, made: Node, calls: Collection[Span]) -> dict[Span, Span]:
    """For each part of a layer's formula, as it was written out, the part of the line that it was made from: an
    argument, or for what the layer does to an argument on the right (X @ W_Q) that one; else the whole layer."""
    if written != made:
        return {}
    pairs = zip(written.walk(), made.walk(), strict=True)
    return {each.at: (own.at if own.at not in calls else _last(own, calls) or own.at) for each, own in pairs}


def _last(node: Node, calls: Collection[Span]) -> Span | None:
    for part in reversed(node.parts[-1:] if isinstance(node, Binary) else node.parts):
        if found := part.at if part.at not in calls else _last(part, calls):
            return found
    return None


def _unmasked(node: Node) -> Node:
    """Where only the shape is asked for a mask changes nothing."""
    return node.arguments[0] if isinstance(node, Call) and node.function == "mask" else node


def _placed(node: Node, names: Mapping[str, Node], at: Span) -> Node:
    """A layer's own formula with its arguments in it; `at` is where the layer stands, as the arguments know already."""
    return node.rewritten(
        lambda each: names[each.name] if isinstance(each, Name) and each.name in names else replace(each, at=at)
    )


def _is_plain(node: Node) -> bool:
    """What may stand wherever it is used: a name or a number, its transpose, a piece of it."""
    while isinstance(node, Transpose | Index):
        node = node.of
    return isinstance(node, Name | Number)


def _tried(node: Node, values: Mapping[str, Tensor]) -> Tensor | None:
    """Its value where that can be worked out; where not, working the problem comes to the same place and says why."""
    if any(each not in values for each in node.names):
        return None
    try:
        with torch.no_grad():
            return node.compute(values, Budget())
    except ValueError:
        return None
