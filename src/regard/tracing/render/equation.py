"""An expression as a line of text or of LaTeX. The numbers are the recorded ones; nothing is worked out from them.

Levels tell where parentheses are needed: 1 a sum, 2 a product, 3 a power, 4 anything that stands alone, 5 the
words in place of terms that are left out.
"""

from collections.abc import Iterable
from typing import NamedTuple

from regard.tracing.cell import Cell, Expression
from regard.tracing.forms import with_number
from regard.tracing.render.exact import exactly
from regard.tracing.render.numbers import checked_digits, shown

SUM, PRODUCT, POWER, ALONE, LEFT_OUT = 1, 2, 3, 4, 5


class Part(NamedTuple):
    """A piece of a formula, and how tightly it holds together."""

    text: str
    level: int


class Notation:
    """How formulas are written as plain text. Its methods are what another notation writes otherwise."""

    dot = "·"
    about = "≈"
    unequal = "≠"
    omitted = "… ({count} more)"

    def number(self, text: str) -> Part:
        if text.startswith("-"):
            return Part(text, SUM)
        return Part(text, PRODUCT if "e" in text and text[0].isdigit() else ALONE)

    def name(self, name: str, index: tuple[int, ...]) -> Part:
        return Part(f"{name}[{', '.join(map(str, index))}]" if index else name, ALONE)

    def quotient(self, a: Part, b: Part) -> Part:
        return Part(f"{self.held(a, PRODUCT)} / {self.held(b, POWER)}", PRODUCT)

    def power(self, a: Part, b: Part) -> Part:
        return Part(f"{self.held(a, ALONE)}^{self.held(b, ALONE)}", POWER)

    def call(self, name: str, arguments: Iterable[Part]) -> Part:
        return Part(f"{name}({', '.join(each.text for each in arguments)})", ALONE)

    def root(self, a: Part) -> Part:
        return Part(f"√{a.text}" if a.level >= ALONE and "[" not in a.text else f"√({a.text})", ALONE)

    def chosen(self, condition: Part, yes: Part, no: Part) -> Part:
        return Part(f"{yes.text} if {condition.text} else {no.text}", 0)

    def words(self, text: str) -> str:
        return text

    def compared(self, a: Part, name: str, b: Part) -> Part:
        return Part(f"{self.held(a, SUM)} {name} {self.held(b, SUM)}", 0)

    def held(self, part: Part, level: int) -> str:
        """A part, in parentheses where it would fall apart among what holds it."""
        return part.text if part.level >= level else f"({part.text})"

    def sum(self, parts: list[Part]) -> Part:
        if len(parts) == 1:
            return parts[0]
        text = self.held(parts[0], SUM)
        for part in parts[1:]:
            minus = part.level >= SUM and part.text.startswith("-") and " " not in part.text
            text += f" - {part.text[1:]}" if minus else f" + {self.held(part, SUM)}"
        return Part(text, SUM)

    def product(self, parts: list[Part]) -> Part:
        return parts[0] if len(parts) == 1 else Part(self.dot.join(self.held(each, POWER) for each in parts), PRODUCT)

    def difference(self, a: Part, b: Part) -> Part:
        return Part(f"{self.held(a, SUM)} - {self.held(b, PRODUCT)}", SUM)

    def negative(self, a: Part) -> Part:
        return Part(f"-{self.held(a, POWER)}", SUM)


PLAIN = Notation()


class Writer:
    """Writes an expression: how many digits, how many terms of a long sum, in which notation."""

    def __init__(self, digits: int = 4, terms: int | None = 8, notation: Notation = PLAIN) -> None:
        if terms is not None and terms < 1:
            raise ValueError(f"terms: expected 1 or more, or None for all; got {terms!r}")
        self.digits, self.terms, self.to = checked_digits(digits), terms, notation

    def write(self, a: Expression) -> Part:
        form = a.form
        if form in ("cell", "number"):
            return self._leaf(a)
        method = getattr(self, f"_{form}", None)
        return self.to.call(a.name or form, ()) if method is None else method(a)

    def _leaf(self, a: Expression) -> Part:
        if a.value is None:
            assert a.step is not None
            return self.to.name(a.step.name, a.index)
        return self.to.number(shown(a.value, self.digits, a.step.dtype if a.step is not None else "float64").text)

    def _of(self, a: Expression) -> list[Part]:
        return [self.write(each) for each in a.of]

    def _sum(self, a: Expression) -> Part:
        return self.to.sum(self._of(a))

    def _product(self, a: Expression) -> Part:
        return self.to.product(self._of(a))

    def _difference(self, a: Expression) -> Part:
        return self.to.difference(*self._of(a))

    def _quotient(self, a: Expression) -> Part:
        return self.to.quotient(*self._of(a))

    def _power(self, a: Expression) -> Part:
        return self.to.power(*self._of(a))

    def _negative(self, a: Expression) -> Part:
        return self.to.negative(*self._of(a))

    def _choose(self, a: Expression) -> Part:
        return self.to.chosen(*self._of(a))

    def _compare(self, a: Expression) -> Part:
        one, other = self._of(a)
        return self.to.compared(one, a.name, other)

    def _round(self, a: Expression) -> Part:
        return self.to.call(a.name, self._of(a))

    def _exp(self, a: Part) -> Part:
        return self.to.power(Part("e", ALONE), a)

    def _function(self, a: Expression) -> Part:
        parts, one = self._of(a), Part("1", ALONE)
        if a.name in ("maximum", "minimum"):
            return self.to.call(a.name[:3], parts)
        x, to = parts[0], self.to
        spelled = {
            "exp": lambda: self._exp(x),
            "sigmoid": lambda: to.quotient(one, to.sum([one, self._exp(to.negative(x))])),
            "silu": lambda: to.quotient(x, to.sum([one, self._exp(to.negative(x))])),
            "relu": lambda: to.call("max", [Part("0", ALONE), x]),
            "sqrt": lambda: to.root(x),
            "rsqrt": lambda: to.quotient(one, to.root(x)),
            "reciprocal": lambda: to.quotient(one, x),
            "square": lambda: to.power(x, Part("2", ALONE)),
            "gelu": lambda: to.product([x, to.call("Φ", [x])]),
        }
        return spelled[a.name]() if a.name in spelled else to.call(a.name, parts)

    def _terms(self, a: Expression) -> list[Part]:
        """The first terms; what is left out is said in place of the last."""
        terms, most = a.terms, self.terms
        if most is None or len(terms) <= most + 1:
            return [self.write(term) for term in terms]
        left = Part(self.to.omitted.format(count=len(terms) - most), LEFT_OUT)
        return [*(self.write(terms[k]) for k in range(most)), left]

    def _over(self, a: Expression) -> Part:
        parts, count = self._terms(a), len(a.terms)
        if a.name in ("sum", "mean", "product"):
            if count == 0:
                return self.to.number({"sum": "0", "product": "1"}.get(a.name, "NaN"))
            joined = self.to.product(parts) if a.name == "product" else self.to.sum(parts)
            return self.to.quotient(joined, Part(str(count), ALONE)) if a.name == "mean" and count > 1 else joined
        return self.to.call(_of_rows(a), parts)

    def _softmax(self, a: Expression) -> Part:
        return self.to.quotient(self._exp(self.write(a.of[0])), self._exponentials(a))

    def _log_softmax(self, a: Expression) -> Part:
        return self.to.difference(self.write(a.of[0]), self.to.call("log", [self._exponentials(a)]))

    def _exponentials(self, a: Expression) -> Part:
        return self.to.sum([each if each.level == LEFT_OUT else self._exp(each) for each in self._terms(a)])


def _of_rows(a: Expression) -> str:
    """var divides by the count, var₁ by the count less one; norm is that of order 2, norm₁ of order 1."""
    usual = {"variance": 0, "norm": 2}.get(a.name)
    if usual is None or not isinstance(a.number, int | float):
        return a.name
    return with_number("var" if a.name == "variance" else a.name, a.number, usual)


OVERWRITTEN = (
    ": one of these numbers was written over past PyTorch (by numpy or in another thread, perhaps), or left the range "
    "of its dtype on the way"
)


def plain(expression: Expression, digits: int = 4, terms: int | None = 8) -> str:
    """An expression as a line of text."""
    return Writer(digits, terms).write(expression).text


def line(cell: Cell, digits: int = 4, terms: int | None = 8, notation: Notation = PLAIN) -> str:
    """A cell and what it is: `=` where all that is written is exact and so is the arithmetic, else `≈`.

    Where its number was left out its name stands in its place. An equation that would be false is told to be.
    """
    writer, a, to = Writer(digits, terms, notation), cell.expression, notation
    value = None if not cell.step.has_values else shown(cell.value, digits, cell.step.dtype)
    left = (to.name(cell.step.name, cell.index) if value is None else to.number(value.text)).text
    if a.form == "given":
        return f"{left}{to.words(' is given' if cell.step.role != 'parameter' else ' is a parameter')}"
    if a.form == "made":
        return f"{left}{to.words(f' is made so ({a.name})')}"
    if a.form == "drawn":
        return f"{left}{to.words(f' was drawn by chance ({a.name})')}"
    if a.form == "opaque":
        return f"{left}{to.words(f' was made by {a.name}, for which no rule is known')}"
    if a.form == "number" and a.name == "fill":
        return f"{left}{to.words(' is filled in')}"
    if not cell.holds:
        right = writer.write(a) if a.step is None else to.name(a.step.name, a.index)
        return f"{left} {to.unequal} {right.text}{to.words(OVERWRITTEN)}"
    if a.step is not None:  # a name stands for its whole number
        true = value is None or value.exact is not None
        return f"{left} {'=' if true else to.about} {to.name(a.step.name, a.index).text}"
    true = value is not None and value.exact is not None and exactly(a, digits) == value.exact
    return f"{left} {'=' if true else to.about} {writer.write(a).text}"
