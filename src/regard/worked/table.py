"""What a formula may call: a function's parameters are read from its Python signature, kinds from the annotations.

Tensor                a value                      *parts: Tensor   any number of values
int, float            a number, on its own         Literal[…]       a word that chooses
Mask                  a rule or a matrix           None as default  may be left out
"""

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from torch import Tensor

from regard.attention.masks import Mask
from regard.support.nearest import nearest, unknown
from regard.worked.limits import spelled


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: Literal["value", "whole", "real", "word", "rule"]
    words: tuple[str, ...]
    """What it may choose from, where it is a word."""
    needed: bool
    many: bool
    option: bool
    """Only by name: `softmax(M, axis=0)`."""


@dataclass(frozen=True)
class Function:
    """One function of the grammar."""

    name: str
    parameters: tuple[Parameter, ...]
    compute: Callable[..., Any]
    says: str
    """What it does, in a line."""

    @classmethod
    def of(cls, compute: Callable[..., Any]) -> "Function":
        hints = get_type_hints(compute)
        signature = inspect.signature(compute)
        parameters = tuple(_parameter(each, hints[each.name]) for each in signature.parameters.values())
        # sum_ and max_ are called sum and max; their underscore keeps Python's own in sight.
        says = (compute.__doc__ or "").strip().partition("\n")[0]
        return cls(compute.__name__.rstrip("_"), parameters, compute, says)

    @property
    def usage(self) -> str:
        """How it is called: `softmax(x, axis=…)`."""
        return f"{self.name}({', '.join(_usage(each) for each in self.parameters)})"

    def parameter(self, name: str) -> Parameter:
        return next(each for each in self.parameters if each.name == name)

    def position(self, name: str) -> int:
        """Where a parameter stands among the arguments; a large number where it goes by name only."""
        places = [each.name for each in self.parameters if not each.option]
        return places.index(name) if name in places else len(places) + 10_000

    def bound(self, arguments: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Which parameter each argument is for; ValueError where one is missing, unknown or too many."""
        placed = [each for each in self.parameters if not each.option]
        given: dict[str, Any] = {}
        if placed and placed[-1].many:
            given[placed[-1].name] = tuple(arguments[len(placed) - 1 :])
            placed, arguments = placed[:-1], arguments[: len(placed) - 1]
        elif len(arguments) > len(placed):
            raise ValueError(f"{self.name} takes {len(placed)} at most, {self.usage}; {len(arguments)} are given")
        given |= {each.name: part for each, part in zip(placed, arguments, strict=False)}
        for name, part in options.items():
            self._check_option(name, given)
            given[name] = part
        missing = [each.name for each in self.parameters if each.needed and not given.get(each.name)]
        if missing:
            raise ValueError(f"{self.name} also needs {' and '.join(missing)}: {self.usage}")
        return given

    def _check_option(self, name: str, given: Mapping[str, Any]) -> None:
        known = [each.name for each in self.parameters if not each.many]
        if name not in known:
            guess = nearest(name, known)
            hint = f"; did you mean {guess!r}?" if guess else ""
            raise ValueError(f"{self.name} has no {name!r}{hint} ({self.usage})")
        if name in given:
            raise ValueError(f"{self.name} is given {name!r} twice")


def _parameter(own: inspect.Parameter, hint: Any) -> Parameter:
    branches = [each for each in _branches(hint) if each is not type(None)]
    words = tuple(str(word) for each in branches if get_origin(each) is Literal for word in get_args(each))
    kind: Any = (
        "rule" if Mask in branches
        else "value" if Tensor in branches
        else "word" if words
        else "whole" if int in branches
        else "real"
    )  # fmt: skip
    many = own.kind is own.VAR_POSITIONAL
    needed = own.default is own.empty
    return Parameter(own.name, kind, words, needed, many, own.kind is own.KEYWORD_ONLY)


def _branches(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _usage(parameter: Parameter) -> str:
    if parameter.many:
        return "…" if parameter.name == "_" else f"{parameter.name}, …"
    if parameter.words:
        return f"{parameter.name}={'|'.join(parameter.words)}"
    return parameter.name if parameter.needed else f"{parameter.name}=…"


def whole(name: str, value: Tensor) -> int:
    """A number that counts or names a place."""
    number = real(name, value)
    if number != int(number) or abs(number) > 1e9:
        raise ValueError(f"{name} must be a whole number; it is {number:g}")
    return int(number)


def real(name: str, value: Tensor) -> float:
    if value.numel() != 1:
        raise ValueError(f"{name} must be one number; it is {spelled(value.shape)}")
    number = float(value.detach())
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(f"{name} must be a number one can count with; it is {number:g}")
    return number


def choice(name: str, word: str, words: Sequence[str]) -> str:
    if word not in words:
        raise ValueError(unknown(name, word, words))
    return word
