"""Works out what an equation says, from the numbers that it prints: the judge of every rule."""

import math
from collections.abc import Callable, Sequence

import torch

from regard.tracing.cell import Expression
from regard.tracing.checking import untrue
from regard.tracing.derivation import Derivation
from regard.tracing.step import Step

UNCLAIMED = ("given", "made", "drawn", "opaque")


def value_of(a: Expression) -> float:
    """In float64; of a form that claims nothing there is none."""
    if a.form in ("cell", "number"):
        assert a.value is not None
        return float(a.value)  # type: ignore[arg-type]
    if a.form == "choose":
        condition, yes, no = a.of
        return value_of(yes if value_of(condition) else no)
    parts = [value_of(each) for each in a.of]
    if a.form in ("over", "softmax", "log_softmax"):
        terms = [value_of(each) for each in a.terms]
        return over(a, terms) if a.form == "over" else soft(a.form, parts[0], terms)
    if a.form == "function":
        return FUNCTIONS[a.name](*parts)
    if a.form == "compare":
        return float(COMPARED[a.name](*parts))
    if a.form == "round":
        return float(torch.tensor(parts[0], dtype=torch.float64).to(getattr(torch, a.name)).item())
    return PLAIN[a.form](parts)


PLAIN: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum,
    "product": math.prod,
    "difference": lambda p: p[0] - p[1],
    "quotient": lambda p: p[0] / p[1] if p[1] else math.copysign(math.inf, p[0]) if p[0] else math.nan,
    "power": lambda p: p[0] ** p[1],
    "negative": lambda p: -p[0],
}

COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "xor": lambda a, b: bool(a) != bool(b),
}


def sigmoid(a: float) -> float:
    return 1 / (1 + math.exp(-a)) if a > -700 else 0.0


FUNCTIONS: dict[str, Callable[..., float]] = {
    "exp": math.exp,
    "log": lambda a: math.log(a) if a else -math.inf,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "sigmoid": sigmoid,
    "relu": lambda a: max(a, 0.0),
    "gelu": lambda a: a * (1 + math.erf(a / math.sqrt(2))) / 2,
    "gelu_tanh": lambda a: a * (1 + math.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))) / 2,
    "silu": lambda a: a * sigmoid(a),
    "erf": math.erf,
    "abs": abs,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "atan": math.atan,
    "reciprocal": lambda a: 1 / a,
    "rsqrt": lambda a: 1 / math.sqrt(a),
    "square": lambda a: a * a,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
    "sign": lambda a: float((a > 0) - (a < 0)),
    "log1p": math.log1p,
    "expm1": math.expm1,
    "softplus": lambda a: math.log1p(math.exp(-abs(a))) + max(a, 0),
    "log2": math.log2,
    "log10": math.log10,
    "exp2": lambda a: 2.0**a,
    **{name: getattr(math, name) for name in ("asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "atan2")},
    "not": lambda a: float(not a),
    "isinf": lambda a: float(math.isinf(a)),
    "isnan": lambda a: float(math.isnan(a)),
    "maximum": max,
    "minimum": min,
    "remainder": lambda a, b: a - b * math.floor(a / b),
    "floor_divide": lambda a, b: math.floor(a / b),
}


def over(a: Expression, terms: list[float]) -> float:
    name, n = a.name, len(terms)
    if name in ("sum", "mean"):
        total = math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)
        return total if name == "sum" else total / n
    if name == "variance":
        mean = math.fsum(terms) / n
        return math.fsum((t - mean) ** 2 for t in terms) / (n - float(a.number or 0))  # type: ignore[arg-type]
    if name == "logsumexp":
        top = max(terms)
        return top + math.log(math.fsum(math.exp(t - top) for t in terms)) if math.isfinite(top) else top
    if name == "norm":
        order = float(a.number)  # type: ignore[arg-type]
        return max(map(abs, terms)) if math.isinf(order) else math.fsum(abs(t) ** order for t in terms) ** (1 / order)
    if name in ("argmax", "argmin"):
        return float(terms.index((max if name == "argmax" else min)(terms)))
    return float({"product": math.prod, "max": max, "min": min, "any": any, "all": all}[name](terms))  # type: ignore[operator]


def soft(form: str, own: float, terms: list[float]) -> float:
    top = max(terms)
    total = math.fsum(math.exp(t - top) for t in terms)
    return math.exp(own - top) / total if form == "softmax" else own - top - math.log(total)


def same(printed: float, recorded: float, tolerance: float) -> bool:
    if math.isnan(recorded) or math.isinf(recorded):
        return str(printed) == str(recorded)
    return abs(printed - recorded) <= tolerance * max(1.0, abs(recorded))


def check(derivation: Derivation, step: Step, flat: int, fine: bool, tolerance: float) -> bool:
    """Whether the equation of a cell is true; False where it claims nothing."""
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), step.shape)) if step.shape else ()
    cell = derivation.why(step.name, *index, fine=fine)
    if cell.expression.form in UNCLAIMED:
        return False
    printed, recorded = value_of(cell.expression), float(cell.value)  # type: ignore[arg-type]
    assert same(printed, recorded, tolerance), f"{cell!r}: worked out {printed}, recorded {recorded}"
    assert fine or cell.holds, f"{cell!r} is true, and held to be false"
    return True


def every_equation_is_true(derivation: Derivation, tolerance: float = 1e-9, most: int | None = None) -> int:
    """Checks every cell of every step, shown ones and primitives; how many equations there were.

    most: of how many cells of a step, evenly spread, where all would be too many.
    """
    count = 0
    for fine, steps in ((False, derivation.steps), (True, derivation.fine)):
        for step in steps:
            assert not fine or untrue(derivation, step, True).size == 0, f"cells of {step!r} are held to be false"
            stride = 1 if most is None else max(step.size // most, 1)
            count += sum(check(derivation, step, flat, fine, tolerance) for flat in range(0, step.size, stride))
    return count
