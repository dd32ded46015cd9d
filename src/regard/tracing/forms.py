"""The forms that arithmetic takes, and the rule of a step: one formula in them for all its cells.

A rule speaks of *operands*: tensors read through an index map whose axes are those of the step, then the inner
axes over which sums and the like run. `C = A B` of shapes [2, 3] and [3, 4] is

    inner [3]    operand 0: A, strides (3, 0 | 1)    operand 1: B, strides (0, 1 | 4)
    sum over the inner axes of (operand 0 × operand 1)

so the cells that made C[i, j] follow from i and j, and nothing is stored for each cell.
"""

import math
from dataclasses import dataclass

from regard.tracing.index import IndexMap

# What a form is, and what it is of. Every reader of a derivation knows these and no more.
FORMS = {
    "cell": "the number of an operand at this place",
    "number": "a number that stands in the code",
    "sum": "a + b + …",
    "product": "a · b · …",
    "difference": "a - b",
    "quotient": "a / b",
    "power": "a ^ b",
    "negative": "-a",
    "function": "name(a): one of FUNCTIONS",
    "over": "what `name` says (one of OVER) of a at all inner places at which there is a cell",
    "softmax": "e^a / Σ e^b, b over the inner places",
    "log_softmax": "a - log Σ e^b, b over the inner places",
    "choose": "b where a is true (not 0), else c",
    "compare": "1 or 0: a name b, the name one of < <= > >= == != and or xor",
    "round": "a, rounded to the dtype `name`",
    "given": "an input or a parameter: a number that came from outside",
    "made": "a number made from nothing: `name` says how",
    "drawn": "a number drawn by chance: `name` says how",
    "opaque": "no rule is known for the operation `name`; nothing is claimed about its cells",
}

FUNCTIONS = (
    "exp", "log", "sqrt", "tanh", "sigmoid", "relu", "gelu", "gelu_tanh", "silu", "erf", "abs", "sin", "cos",
    "reciprocal", "rsqrt", "square", "floor", "ceil", "round", "trunc", "sign", "log1p", "expm1", "softplus",
    "log2", "log10", "exp2", "tan", "atan", "not", "isinf", "isnan", "maximum", "minimum", "remainder", "floor_divide",
    "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "atan2",
)  # fmt: skip

OVER = ("sum", "mean", "product", "max", "min", "argmax", "argmin", "variance", "any", "all", "logsumexp", "norm")


@dataclass(frozen=True)
class Form:
    """A formula: a form, what it is of, and the name or number some forms need."""

    form: str
    of: tuple["Form", ...] = ()
    operand: int = -1
    """Of a cell: which operand of the rule."""
    number: float | int | bool | None = None
    name: str = ""


@dataclass(frozen=True)
class Operand:
    """A step (its position in the derivation) as read through an index map."""

    step: int
    map: IndexMap
    """Over the axes of the step it is an operand of, then the inner axes."""


@dataclass(frozen=True)
class Rule:
    """How each cell of a step is made."""

    body: Form
    operands: tuple[Operand, ...] = ()
    inner: tuple[int, ...] = ()
    """Sizes of the inner axes."""


def cell(operand: int) -> Form:
    return Form("cell", operand=operand)


def number(value: float | int | bool) -> Form:
    return Form("number", number=value)


def plus(*terms: Form) -> Form:
    return terms[0] if len(terms) == 1 else Form("sum", terms)


def times(*factors: Form) -> Form:
    return factors[0] if len(factors) == 1 else Form("product", factors)


def minus(a: Form, b: Form) -> Form:
    return Form("difference", (a, b))


def divided(a: Form, b: Form) -> Form:
    return Form("quotient", (a, b))


def power(a: Form, b: Form) -> Form:
    return Form("power", (a, b))


def negative(a: Form) -> Form:
    return Form("negative", (a,))


def function(name: str, *of: Form) -> Form:
    assert name in FUNCTIONS, name
    return Form("function", of, name=name)


def over(name: str, a: Form, number: float | None = None) -> Form:
    """Over the inner axes; of a variance the number is what is taken off the count, of a norm its order."""
    assert name in OVER, name
    return Form("over", (a,), name=name, number=number)


def total(a: Form) -> Form:
    return over("sum", a)


def choose(condition: Form, yes: Form, no: Form) -> Form:
    return Form("choose", (condition, yes, no))


def compare(name: str, a: Form, b: Form) -> Form:
    return Form("compare", (a, b), name=name)


def rounded(a: Form, dtype: str) -> Form:
    return Form("round", (a,), name=dtype)


def scaled(a: Form, by: float | int) -> Form:
    """by · a, and a alone where by is 1."""
    return a if by == 1 else times(number(by), a)


def with_number(name: str, number: float | int | bool, usual: float) -> str:
    """The name of a form with its number beneath, where that is not as usual: var₁ divides by the count less one."""
    text = "" if number == usual else "∞" if number == math.inf else f"{float(number):g}"
    return name + text.translate(str.maketrans("0123456789-", "₀₁₂₃₄₅₆₇₈₉₋"))
