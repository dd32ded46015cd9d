"""Calls in a formula: each argument taken as its parameter wants it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from torch import Tensor

from regard.attention.masks import Mask
from regard.worked import functions
from regard.worked.nodes import Node, Values, Watch, Word
from regard.worked.table import Function, Parameter, choice, real, whole


@dataclass(frozen=True)
class Call(Node):
    """function(arguments, option=…), as it was written."""

    function: str
    arguments: tuple[Node, ...]
    options: tuple[tuple[str, Node], ...] = ()

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        plain: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in self._function.parameters:
            part = self._bound.get(parameter.name)
            if parameter.many:
                plain += [_taken(parameter, each, values, watch) for each in part or ()]
            elif part is not None and (parameter.option or len(plain) < self._function.position(parameter.name)):
                named[parameter.name] = _taken(parameter, part, values, watch)
            elif part is not None:
                plain.append(_taken(parameter, part, values, watch))
        result: Tensor = self._function.compute(*plain, **named)
        return result

    @property
    def _function(self) -> Function:
        return functions.FUNCTIONS[self.function]

    @cached_property
    def _bound(self) -> dict[str, Any]:
        return self._function.bound(self.arguments, dict(self.options))

    def argument(self, name: str) -> Node | None:
        """What is given for a parameter, wherever it stands; None where nothing is."""
        found = self._bound.get(name)
        return found if isinstance(found, Node) else None

    def with_option(self, name: str, part: Node) -> "Call":
        """The same call with one parameter set otherwise: `softmax(M)` → `softmax(M, axis=0)`."""
        place = self._function.position(name)
        if place < len(self.arguments):
            return replace(self, arguments=(*self.arguments[:place], part, *self.arguments[place + 1 :]))
        return replace(self, options=(*(each for each in self.options if each[0] != name), (name, part)))

    @property
    def parts(self) -> tuple[Node, ...]:
        return (*self.arguments, *(part for _, part in self.options))

    def with_parts(self, *parts: Node) -> Self:
        split = len(self.arguments)
        options = tuple((name, part) for (name, _), part in zip(self.options, parts[split:], strict=True))
        return replace(self, arguments=parts[:split], options=options)

    def __str__(self) -> str:
        options = [f"{name}={part}" for name, part in self.options]
        return f"{self.function}({', '.join([*map(str, self.arguments), *options])})"


@dataclass(frozen=True)
class Rule(Node):
    """A rule of `mask(…)`: `causal`, `window(2)`, `lengths(3)`."""

    name: str
    counts: tuple[Node, ...] = ()

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        raise ValueError(f"{self.name} is a rule for mask(…), and no number")

    def mask(self, values: Values, watch: Watch | None) -> Mask:
        return functions.rule(self.name, [whole(self.name, each.compute(values, watch)) for each in self.counts])

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.counts

    def with_parts(self, *parts: Node) -> Self:
        return replace(self, counts=parts)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.counts))})" if self.counts else self.name


def _taken(parameter: Parameter, part: Node, values: Values, watch: Watch | None) -> Any:
    """One argument in the form its function wants."""
    if parameter.kind == "word":
        return choice(parameter.name, part.text if isinstance(part, Word) else str(part), parameter.words)
    if isinstance(part, Rule):
        return part.mask(values, watch)
    value = part.compute(values, watch)
    if parameter.kind == "rule":
        return functions.ones_and_zeros(value)
    if parameter.kind == "value":
        return value
    return whole(parameter.name, value) if parameter.kind == "whole" else real(parameter.name, value)
