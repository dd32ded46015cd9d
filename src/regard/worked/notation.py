"""A formula as people write it: `X @ W_Q` is X W_Q, `scale(Q @ K.T, 3)` is Q Kᵀ / √3. As text, in LaTeX, in HTML.

Each node becomes its text and how tightly that holds together, so that brackets stand where they must.
"""

import html
from collections.abc import Callable, Sequence
from typing import NamedTuple

from regard.tracing.render import latex_words
from regard.worked.calls import Call, Rule
from regard.worked.nodes import ATOM, POWER, PRODUCT, SIGN, SUM, Binary, Index, Name, Negative, Node, Transpose

BESIDE = (PRODUCT + SIGN) / 2
"""Matrices beside each other hold together more tightly than numbers with a dot between them: a · B C."""


class Said(NamedTuple):
    """A piece of a formula, and how tightly it holds together."""

    text: str
    binds: float


class Text:
    """As plain text, with the few signs that every terminal has."""

    times, dot, minus = " · ", " ", "-"

    def name(self, name: str) -> str:
        return name

    def word(self, text: str) -> str:
        return text

    def transpose(self, of: str) -> str:
        return f"{of}ᵀ"

    def quotient(self, above: Said, below: Said) -> Said:
        return Said(f"{self.held(above, PRODUCT)} / {self.held(below, POWER)}", PRODUCT)

    def power(self, base: Said, exponent: Said) -> Said:
        return Said(f"{self.held(base, ATOM)}^{self.held(exponent, ATOM)}", POWER)

    def root(self, of: Said) -> Said:
        return Said(f"√{self.held(of, ATOM)}", ATOM)

    def brackets(self, text: str) -> str:
        return f"({text})"

    def places(self, of: str, keys: str) -> str:
        return f"{of}[{keys}]"

    def held(self, part: Said, at_least: float) -> str:
        return part.text if part.binds >= at_least else self.brackets(part.text)


class Latex(Text):
    """For math mode."""

    times, dot = r" \cdot ", r"\, "

    def name(self, name: str) -> str:
        return latex_words.name(name)

    def word(self, text: str) -> str:
        return rf"\mathrm{{{latex_words.escaped(text)}}}"

    def transpose(self, of: str) -> str:
        return f"{of}^{{\\top}}"

    def quotient(self, above: Said, below: Said) -> Said:
        return Said(rf"\frac{{{above.text}}}{{{below.text}}}", ATOM)

    def power(self, base: Said, exponent: Said) -> Said:
        return Said(f"{{{self.held(base, ATOM)}}}^{{{exponent.text}}}", POWER)

    def root(self, of: Said) -> Said:
        return Said(rf"\sqrt{{{of.text}}}", ATOM)

    def brackets(self, text: str) -> str:
        return rf"\left({text}\right)"

    def places(self, of: str, keys: str) -> str:
        return f"{of}[{keys}]"


class Html(Text):
    """With <var>, <sub> and <sup>, which every browser has."""

    minus = "−"

    def name(self, name: str) -> str:
        base, _, index = name.partition("_")
        sub = f"<sub>{html.escape(index)}</sub>" if index else ""
        return f"<var>{html.escape(base or name)}</var>{sub}"

    def word(self, text: str) -> str:
        return html.escape(text)

    def transpose(self, of: str) -> str:
        return f"{of}<sup>T</sup>"

    def power(self, base: Said, exponent: Said) -> Said:
        return Said(f"{self.held(base, ATOM)}<sup>{exponent.text}</sup>", POWER)


TEXT, LATEX, HTML = Text(), Latex(), Html()


def spelled(node: Node, to: Text = TEXT) -> str:
    """The formula of a tree, as people write it."""
    return _said(node, to).text


def _said(node: Node, to: Text) -> Said:
    match node:
        case Name(name=name):
            return Said(to.name(name), ATOM)
        case Binary():
            return _binary(node, to)
        case Negative(of=of):
            return Said(f"{to.minus}{to.held(_said(of, to), PRODUCT)}", SIGN)
        case Transpose(of=of):
            return Said(to.transpose(to.held(_said(of, to), ATOM)), ATOM)
        case Index(of=of, keys=keys):
            return Said(to.places(to.held(_said(of, to), ATOM), ", ".join(map(str, keys))), ATOM)
        case Call():
            return _call(node, to)
        case Rule(name=name, counts=counts):
            return Said(_called(to, name, [_said(each, to).text for each in counts]), ATOM)
        case _:
            return Said(to.word(str(node)) if str(node).isidentifier() else str(node), ATOM)


def _binary(node: Binary, to: Text) -> Said:
    left, right = _said(node.left, to), _said(node.right, to)
    if node.sign == "/":
        return to.quotient(left, right)
    if node.sign == "**":
        return to.power(left, right)
    if node.sign in "+-":
        sign = "+" if node.sign == "+" else to.minus
        return Said(f"{to.held(left, SUM)} {sign} {to.held(right, PRODUCT)}", SUM)
    between, level = (to.dot, BESIDE) if node.sign == "@" else (to.times, PRODUCT)
    return Said(f"{_factor(left, level, to)}{between}{_factor(right, level, to)}", level)


def _factor(part: Said, level: float, to: Text) -> str:
    """A minus would be read as a difference: A (-B)."""
    return to.brackets(part.text) if part.binds < level or part.binds == SIGN else part.text


def _call(node: Call, to: Text) -> Said:
    parts = [_said(each, to) for each in node.arguments]
    if node.function in SIGNS and not node.options and len(parts) == SIGNS[node.function][0]:
        return SIGNS[node.function][1](to, parts)
    options = [f"{to.word(name)}={_said(part, to).text}" for name, part in node.options]
    return Said(_called(to, node.function, [*(each.text for each in parts), *options]), ATOM)


def _called(to: Text, name: str, arguments: Sequence[str]) -> str:
    return f"{to.word(name)}{to.brackets(', '.join(arguments))}" if arguments else to.word(name)


SIGNS: dict[str, tuple[int, Callable[[Text, Sequence[Said]], Said]]] = {
    "sqrt": (1, lambda to, parts: to.root(parts[0])),
    "exp": (1, lambda to, parts: to.power(Said("e", ATOM), parts[0])),
    "scale": (2, lambda to, parts: to.quotient(parts[0], to.root(parts[1]))),
}
"""Functions that have a sign of their own: how many parts it takes, and how it is written."""
