"""A formula as a tree: small frozen nodes that know their place in the text, compute, and write themselves out.

Trees can be taken apart and put together otherwise (`walk`, `rewritten`), which is how the marker tries what a
person may have worked out instead. Two nodes are equal when they say the same, wherever they stand.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from regard.worked import arithmetic
from regard.worked.errors import NOWHERE, FormulaError, Span

SUM, PRODUCT, SIGN, POWER, ATOM = range(5)

Values = Mapping[str, Tensor]


@dataclass(frozen=True)
class Node(ABC):
    """One name, number, sign or call, with all that stands under it."""

    at: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    binds: ClassVar[int] = ATOM
    """How strongly it holds its parts together, for brackets."""

    def compute(self, values: Values, watch: "Watch | None" = None) -> Tensor:
        """Its value, in float64 and differentiable; `watch` is shown every part's value as it is made."""
        try:
            value = self.made(values, watch)
        except FormulaError:
            raise
        except ValueError as error:
            raise FormulaError(str(error), self.at) from None
        if watch is not None:
            watch(self, value)
        return value

    @abstractmethod
    def made(self, values: Values, watch: "Watch | None") -> Tensor: ...

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    def parts(self) -> "tuple[Node, ...]":
        return ()

    def with_parts(self, *parts: "Node") -> Self:
        """The same node over other parts, as many as it has."""
        return self

    def walk(self) -> "Iterator[Node]":
        """This node and all under it, from left to right, the parts before the whole."""
        for part in self.parts:
            yield from part.walk()
        yield self

    def rewritten(self, rule: "Callable[[Node], Node]") -> "Node":
        """The tree with `rule` applied to every node, the parts before the whole."""
        return rule(self.with_parts(*(part.rewritten(rule) for part in self.parts)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names it reads, each once, in the order they stand."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.names))

    @cached_property
    def size(self) -> int:
        """Names, numbers, signs and calls in it."""
        return 1 + sum(part.size for part in self.parts)

    def _bracketed(self, part: "Node", at_least: int) -> str:
        return str(part) if part.binds >= at_least else f"({part})"


Watch = Callable[[Node, Tensor], None]


@dataclass(frozen=True)
class Name(Node):
    """A given, or the result of an earlier step."""

    name: str

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        return values[self.name]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Number(Node):
    value: float
    text: str = field(default="", compare=False)

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        return torch.tensor(self.value, dtype=torch.float64)

    def __str__(self) -> str:
        return self.text or f"{self.value:.15g}"


@dataclass(frozen=True)
class Places(Node):
    """Words, as their places in a vocabulary counted from 0: one, or a row of them."""

    places: tuple[int, ...]
    text: str
    alone: bool = False

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        return torch.tensor(self.places[0] if self.alone else self.places, dtype=torch.float64)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Word(Node):
    """A word that chooses: `causal`, `root`, `none`."""

    text: str

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        raise FormulaError(f"{self.text!r} chooses how a function works, and is no number", self.at)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Binary(Node):
    """left sign right, the sign one of @ + - * / **."""

    sign: str
    left: Node
    right: Node

    @property
    def binds(self) -> int:  # type: ignore[override]
        return SUM if self.sign in "+-" else POWER if self.sign == "**" else PRODUCT

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        left, right = self._side(self.left, values, watch), self._side(self.right, values, watch)
        try:
            return arithmetic.binary(self.sign, left, right)
        except arithmetic.Misfit as misfit:
            raise FormulaError(misfit.told(self.sign, str(self.left), str(self.right)), self.at) from None

    @staticmethod
    def _side(part: Node, values: Values, watch: Watch | None) -> Tensor | float:
        """A number as it stands is left a number, so that a derivation reads `E / 3`, not `E / a tensor`."""
        return part.value if isinstance(part, Number) else part.compute(values, watch)

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_parts(self, *parts: Node) -> Self:
        return replace(self, left=parts[0], right=parts[1])

    def __str__(self) -> str:
        left, right = (self.binds, self.binds + 1) if self.sign != "**" else (ATOM, SIGN)
        return f"{self._bracketed(self.left, left)} {self.sign} {self._bracketed(self.right, right)}"


@dataclass(frozen=True)
class Negative(Node):
    of: Node
    binds = SIGN

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        return -self.of.compute(values, watch)

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.of,)

    def with_parts(self, *parts: Node) -> Self:
        return replace(self, of=parts[0])

    def __str__(self) -> str:
        return f"-{self._bracketed(self.of, SIGN)}"


@dataclass(frozen=True)
class Transpose(Node):
    """M.T; a row of numbers is its own transpose."""

    of: Node

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        value = self.of.compute(values, watch)
        return value if value.ndim < 2 else value.transpose(-2, -1)

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.of,)

    def with_parts(self, *parts: Node) -> Self:
        return replace(self, of=parts[0])

    def __str__(self) -> str:
        return f"{self._bracketed(self.of, ATOM)}.T"


class Slice(NamedTuple):
    """start:stop:step, counted from 0, without the stop."""

    start: int | None
    stop: int | None
    step: int | None

    def __str__(self) -> str:
        start, stop, step = ("" if each is None else str(each) for each in self)
        return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


@dataclass(frozen=True)
class Index(Node):
    """M[i], M[i, j], M[:, 0:2]: places counted from 0, negative ones from the end."""

    of: Node
    keys: tuple[int | Slice, ...]

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        value = self.of.compute(values, watch)
        arithmetic.check_index(str(self.of), value, self.keys)
        return value[tuple(slice(*key) if isinstance(key, Slice) else key for key in self.keys)]

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.of,)

    def with_parts(self, *parts: Node) -> Self:
        return replace(self, of=parts[0])

    def __str__(self) -> str:
        return f"{self._bracketed(self.of, ATOM)}[{', '.join(map(str, self.keys))}]"
