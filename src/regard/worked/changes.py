"""What a person may have worked out instead of a formula: the formula with one usual slip in it.

Each rule looks at one piece of a formula's tree and says what may have stood there: the piece as the slip has it, and
what a teacher would say of it. The first words are the slip's name and stay as they are.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from regard.worked.calls import Call
from regard.worked.nodes import Binary, Name, Node, Number, Transpose, Values, Watch
from regard.worked.notation import spelled


class Change(NamedTuple):
    """A piece of a formula as a slip has it, and the slip in words."""

    to: Node
    said: str


class Setting(NamedTuple):
    """What a rule may look up: the formulas of the steps, for each name what it is made from, and its true value."""

    formulas: Mapping[str, Node]
    given: Collection[str]
    values: Values

    def behind(self, node: Node) -> Node:
        """The formula of a step where its name stands."""
        return self.formulas.get(node.name, node) if isinstance(node, Name) else node

    def made_from(self, node: Node) -> set[str]:
        """All names a piece is worked from, through the steps."""
        found: set[str] = set()
        waiting = list(node.names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.formulas[name].names if name in self.formulas else ()
        return found


Rule = Callable[[Node, Setting], Iterator[Change]]


def changed(root: Node, rule: Rule, setting: Setting) -> Iterator[Change]:
    """The formula with one piece of it as a slip has it, for each piece where the rule finds something."""
    yield from rule(root, setting)
    for place, part in enumerate(root.parts):
        for change in changed(part, rule, setting):
            parts = (*root.parts[:place], change.to, *root.parts[place + 1 :])
            yield Change(root.with_parts(*parts), change.said)


def no_scaling(node: Node, setting: Setting) -> Iterator[Change]:
    if (scaled := _scaled(node, setting)) is not None:
        yield Change(scaled[0], f"no scaling: {spelled(scaled[0])} was not divided by the root of {spelled(scaled[1])}")


def by_d(node: Node, setting: Setting) -> Iterator[Change]:
    if (scaled := _scaled(node, setting)) is not None:
        to, d = Binary("/", *scaled), spelled(scaled[1])
        yield Change(to, f"divided by d instead of its root: {spelled(to)} was worked, and √{d} divides")


def _scaled(node: Node, setting: Setting) -> tuple[Node, Node] | None:
    """x and d of `scale(x, d)`, `x / sqrt(d)` and `x / d ** 0.5`, and where x = Q Kᵀ has d columns in Q, of a number
    that is the root of d: `x / 2`, `x * 0.5`."""
    if isinstance(node, Call) and node.function == "scale":
        return node.parts[0], node.parts[1]
    if isinstance(node, Binary) and node.sign == "/":
        right = node.right
        if isinstance(right, Call) and right.function == "sqrt":
            return node.left, right.parts[0]
        if isinstance(right, Binary) and right.sign == "**" and right.right == Number(0.5):
            return node.left, right.left
        if isinstance(right, Number):
            return _by_number(node.left, right.value, setting)
    if isinstance(node, Binary) and node.sign == "*":
        for part, number in (node.parts, node.parts[::-1]):
            if isinstance(number, Number) and number.value:
                return _by_number(part, 1 / number.value, setting)
    return None


def _by_number(x: Node, root: float, setting: Setting) -> tuple[Node, Node] | None:
    """x and d where x is a product over d places, and `root` that of d as one would write it: 1.73 for d = 3."""
    product = setting.behind(x)
    if not (isinstance(product, Binary) and product.sign == "@"):
        return None
    try:
        shape = product.left.compute(setting.values).shape
    except (ValueError, KeyError):  # a name of a later step
        return None
    fits = len(shape) > 0 and shape[-1] > 1 and math.isclose(root * root, shape[-1], rel_tol=0.01)
    return (x, Number(float(shape[-1]))) if fits else None


def other_axis(node: Node, setting: Setting) -> Iterator[Change]:
    if isinstance(node, Call) and node.function in ("softmax", "sparsemax"):
        given = node.argument("axis")
        columns = given == Number(0.0)
        to = node.with_option("axis", Number(1.0 if columns else 0.0))
        sums, should = ("row", "column") if columns else ("column", "row")
        yield Change(to, f"softmax along the other axis: each {sums} sums to one, where each {should} should")


def mask_after(node: Node, setting: Setting) -> Iterator[Change]:
    if (masked := _masked_weights(node)) is not None:
        said = "mask after softmax: weights were blocked after they had been made, so their rows no longer sum to one"
        plain = node.with_parts(masked.parts[0], *node.parts[1:])
        yield Change(Blanked(plain, masked, 0.0), said)
        yield Change(Blanked(plain, masked, -math.inf), said)


def no_mask(node: Node, setting: Setting) -> Iterator[Change]:
    if isinstance(node, Call) and node.function == "mask":
        yield Change(node.parts[0], "no mask: places that may not be seen were let through")


def _masked_weights(node: Node) -> Call | None:
    """The mask in `softmax(mask(…))`."""
    if isinstance(node, Call) and node.function in ("softmax", "sparsemax"):
        inner = node.parts[0]
        return inner if isinstance(inner, Call) and inner.function == "mask" else None
    return None


def transposed(node: Node, setting: Setting) -> Iterator[Change]:
    if isinstance(node, Binary) and node.sign == "@":
        for side in (1, 0):
            part = node.parts[side]
            turned = part.of if isinstance(part, Transpose) else Transpose(part)
            to = node.with_parts(*(turned if place == side else each for place, each in enumerate(node.parts)))
            yield Change(to, f"transposed weight: {spelled(to)} was worked, where {spelled(node)} stands")


def swapped(node: Node, setting: Setting) -> Iterator[Change]:
    """K Qᵀ for Q Kᵀ, and the one weight for the other."""
    if isinstance(node, Binary) and node.sign == "@" and isinstance(node.right, Transpose):
        to = node.with_parts(node.right.of, Transpose(node.left))
        yield Change(to, f"Q and K swapped: {spelled(to)} was worked, where {spelled(node)} stands")
    if isinstance(node, Name) and (other := _counterpart(node.name, {*setting.formulas, *setting.given})):
        yield Change(Name(other), f"Q and K swapped: {other} was taken, where {node} stands")


def _counterpart(name: str, known: Collection[str]) -> str | None:
    """W_K for W_Q, K for Q, and the other way round."""
    turned = name.translate(str.maketrans("QKqk", "KQkq"))
    return turned if turned != name and turned in known else None


def residual(node: Node, setting: Setting) -> Iterator[Change]:
    """x + f(x) without x: what is added is made from what it is added to."""
    if isinstance(node, Binary) and node.sign == "+":
        for kept, gone in ((node.right, node.left), (node.left, node.right)):
            if isinstance(gone, Name) and gone.name in setting.made_from(kept):
                yield Change(kept, f"residual forgotten: {spelled(gone)} was not added to {spelled(kept)}")


def exponent_of_sum(node: Node, setting: Setting) -> Iterator[Change]:
    if isinstance(node, Call) and node.function == "softmax":
        said = "exponent of the sum: e^x was divided by e^(the sum of all x), where the sum of all e^x divides"
        yield Change(OverPower(node), said)


def degrees(node: Node, setting: Setting) -> Iterator[Change]:
    if isinstance(node, Call) and node.function == "positional":
        yield Change(Turned(node, "degrees"), "sines in degrees: the angles of a positional encoding are radians")


def cosine_exponent(node: Node, setting: Setting) -> Iterator[Change]:
    said = "the exponent 2i+1 in a cosine: a sine and its cosine share the exponent 2i/d"
    if isinstance(node, Call) and node.function == "positional":
        yield Change(Turned(node, "exponent"), said)
    if isinstance(node, Binary) and node.sign == "*" and Number(2.0) in node.parts:
        yield Change(Binary("+", node, Number(1.0)), said)


def base_ten(node: Node, setting: Setting) -> Iterator[Change]:
    said = "logarithm of base ten: the natural one stands here, 2.3026 times as large"
    if isinstance(node, Call) and node.function == "log":
        yield Change(Call("log10", node.arguments, node.options), said)
    if isinstance(node, Call) and node.function == "cross_entropy" and node.argument("base") is None:
        yield Change(node.with_option("base", Number(10.0)), said)


RULES: tuple[Rule, ...] = (
    no_scaling, by_d, other_axis, mask_after, no_mask, swapped, transposed, residual, exponent_of_sum, degrees,
    cosine_exponent, base_ten,
)  # fmt: skip


@dataclass(frozen=True)
class _Kept(Node):
    """A call whose value a slip has changed; it reads and prints as the call does."""

    call: Call

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.call,)

    def with_parts(self, *parts: Node) -> Self:
        return type(self)(*parts)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return str(self.call)


@dataclass(frozen=True)
class Blanked(Node):
    """Weights of unmasked scores, with `fill` where a mask blocks."""

    weights: Node
    masked: Node
    fill: float

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        weights, masked = self.weights.compute(values, watch), self.masked.compute(values, watch)
        if weights.shape != masked.shape:
            raise ValueError("weights and mask are of two shapes")
        return torch.where(torch.isneginf(masked), self.fill, weights)

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.weights, self.masked)

    def with_parts(self, *parts: Node) -> Self:
        return type(self)(parts[0], parts[1], self.fill)

    def __str__(self) -> str:
        return str(self.weights)


@dataclass(frozen=True)
class OverPower(_Kept):
    """e^x / e^Σx in place of e^x / Σ e^x."""

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        x = self.call.parts[0].compute(values, watch)
        if x.ndim == 0:
            raise ValueError("one number has no sum")
        axis = self.call.argument("axis")
        along = -1 if axis is None else int(axis.compute(values, watch))
        seen = x.masked_fill(x == -math.inf, 0.0)  # what is blocked adds nothing, and has no weight
        return (x - seen.sum(along, keepdim=True)).exp()


@dataclass(frozen=True)
class Turned(_Kept):
    """A positional encoding with its angles in degrees, or with (2i+1)/d as the cosines' exponent."""

    how: str = "degrees"

    def made(self, values: Values, watch: Watch | None) -> Tensor:
        count, width = (int(part.compute(values, watch)) for part in self.call.parts[:2])
        column = torch.arange(width, dtype=torch.float64)
        odd = column.remainder(2)
        exponent = column if self.how == "exponent" else column - odd
        angles = torch.arange(count, dtype=torch.float64).unsqueeze(-1) / 10000.0 ** (exponent / width)
        angles = torch.deg2rad(angles) if self.how == "degrees" else angles
        return torch.where(odd == 1, angles.cos(), angles.sin())

    def with_parts(self, *parts: Node) -> Self:
        return type(self)(parts[0], self.how)  # type: ignore[arg-type]
