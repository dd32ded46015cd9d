"""Formulas: a small grammar, read by Python's own parser and let through piece by piece (`grammar`). Nothing is ever
evaluated as code: what is not in this list is refused.

    names, numbers, @ + - * / **, -x, M.T, M[i, j], M[:, 0:2], brackets, and the functions of `functions.FUNCTIONS`
"""

import ast
import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from torch import Tensor

from regard.worked.errors import FormulaError, Span
from regard.worked.grammar import Grammar, Vocabulary
from regard.worked.limits import DEEPEST, MOST_CHARACTERS
from regard.worked.nodes import Node, Values, Watch
from regard.worked.table import Function


@dataclass(frozen=True)
class Formula:
    """One formula: its text as written and its tree."""

    source: str
    root: Node

    @property
    def names(self) -> tuple[str, ...]:
        """The names it reads, each once, in the order they stand."""
        return self.root.names

    def compute(self, values: Values, watch: Watch | None = None) -> Tensor:
        """Its value from those of its names: float64, differentiable, traceable."""
        try:
            return self.root.compute(values, watch)
        except FormulaError as error:
            raise error.within(self.source) from None

    def __str__(self) -> str:
        return self.source


def parse_formula(
    source: str,
    known: Collection[str] | None = None,
    vocabulary: Vocabulary | None = None,
    layers: Mapping[str, Function] | None = None,
) -> Formula:
    """Read a formula; FormulaError says what is wrong and where.

    `known`, where it is given, are the names it may read. `layers` are further names it may call.
    """
    source = source.strip()
    try:
        return Formula(source, Grammar(source, known, vocabulary or Vocabulary(), layers or {}).node(_tree(source)))
    except FormulaError as error:
        raise error.within(source) from None


def _tree(source: str) -> ast.expr:
    if not source:
        raise FormulaError("there is no formula", Span(0, 0))
    if len(source) > MOST_CHARACTERS:
        raise FormulaError(f"{len(source)} characters, and a formula has at most {MOST_CHARACTERS}", Span(0, 0))
    _check_characters(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of doubtful numbers and comparisons, which are refused anyway
            return ast.parse(re.sub(r"[\r\n]", " ", source), mode="eval").body
    except SyntaxError as error:
        behind = not error.offset or (error.lineno or 1) > 1  # so Python says that more should come
        start = len(source) if behind else min((error.offset or 1) - 1, len(source))
        raise FormulaError(_unread(source, start, error), Span(start, start)) from None
    except (RecursionError, MemoryError):
        raise FormulaError(f"nested too deeply; {DEEPEST} levels are allowed", Span(0, 0)) from None
    except ValueError as error:
        raise FormulaError(f"not a formula: {error}", Span(0, 0)) from None


HINTS = {
    ";": "a semicolon has no meaning here; joining is concat(a, b)",
    "#": "a # begins a comment, which stands outside of the formula",
    "\\": "a backslash has no meaning here",
    "·": "a product is written * (cell by cell) or @ (of matrices)",
    "×": "a product is written * (cell by cell) or @ (of matrices)",
    "÷": "a quotient is written /",
    "−": "this minus is not the one of the keyboard; write -",
    "√": "a root is written sqrt(x)",
    "Σ": "a sum is written sum(x)",
    "^": "a power is written **",
    "'": "a formula holds no text and no primes; a name is made of letters, digits and _",
    '"': "a formula holds no text; a name is made of letters, digits and _",
    "{": "braces have no meaning here; brackets are ( )",
    "}": "braces have no meaning here; brackets are ( )",
    "ᵀ": "a transpose is written .T",
}


def _check_characters(source: str) -> None:
    for place, character in enumerate(source):
        at = Span(place, place + 1)
        if character in HINTS:
            raise FormulaError(HINTS[character], at)
        if not character.isprintable() and character not in "\n\r\t":
            raise FormulaError(f"the character U+{ord(character):04X} has no meaning here", at)


SAID = ("invalid character", "invalid decimal", "too many nested", "leading zeros", "keyword argument repeated")


def _unread(source: str, start: int, error: SyntaxError) -> str:
    """Python's own complaint where it speaks to a person, else a plainer one."""
    opened = source.count("(") - source.count(")")
    if opened:
        plural = "s are" if abs(opened) > 1 else " is"
        return f"{abs(opened)} bracket{plural} " + ("not closed" if opened > 0 else "closed but never opened")
    if re.search(r"(?<![=<>!:(,])=(?!=)", source) and "(" not in source:
        return "a formula has no = sign; the name of the step stands before the colon"
    if start >= len(source):
        return "the formula ends where something should follow"
    said = (error.msg or "").partition(".")[0].partition(" (")[0]
    return f"not a formula: {said if said.startswith(SAID) else 'something is missing or too much here'}"
