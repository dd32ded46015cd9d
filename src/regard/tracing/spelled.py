"""How single operations are written in formulas: sums, products, choices. A part says how tightly it holds together."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from regard.tracing.forms import with_number
from regard.tracing.record import Called, Ref

if TYPE_CHECKING:
    from regard.tracing.formulas import Formulas

SUM, PRODUCT, POWER, ALONE = 1, 2, 3, 4
Part = tuple[str, int]
Writer = Callable[["Formulas", Any, Any], Part]
"""Takes the arguments of a call, by place and by name."""


def is_tensor(value: Any) -> bool:
    return isinstance(value, Ref) or (isinstance(value, list | tuple) and any(isinstance(each, Ref) for each in value))


def held(part: Part, level: int) -> str:
    return part[0] if part[1] >= level else f"({part[0]})"


def _sum(f: "Formulas", args: Any, kwargs: Any) -> Part:
    a, b, alpha = f.value(args[0]), f.value(args[1]), kwargs.get("alpha", 1)
    return f"{held(a, SUM)}{added(b, alpha)}", SUM


def difference(f: "Formulas", args: Any, kwargs: Any) -> Part:
    a, b = f.value(args[0]), f.value(args[1])
    alpha = args[2] if len(args) > 2 else kwargs.get("alpha", 1)
    return f"{held(a, SUM)}{added(b, -alpha)}", SUM


def _turned_difference(f: "Formulas", args: Any, kwargs: Any) -> Part:
    return difference(f, (args[1], args[0], *args[2:]), kwargs)


def added(part: Part, by: float) -> str:
    """` + by · part`, or ` - …`."""
    if by == 1:
        return f" + {held(part, SUM)}"
    return f" {'-' if by < 0 else '+'} {scaled(part, abs(by))}"


def scaled(part: Part, by: float) -> str:
    return held(part, PRODUCT) if by == 1 else f"{by:.4g} · {held(part, PRODUCT)}"


def _quotient(f: "Formulas", args: Any, kwargs: Any) -> Part:
    """Also the rounded one."""
    a, b = f.value(args[0]), f.value(args[1])
    text, how = f"{held(a, PRODUCT)} / {held(b, POWER)}", kwargs.get("rounding_mode")
    if how is None:
        return text, PRODUCT
    return (f"⌊{text}⌋" if how == "floor" else f"trunc({text})"), ALONE


def _floored(f: "Formulas", args: Any, kwargs: Any) -> Part:
    return _quotient(f, args, {"rounding_mode": "floor"})


def _remainder(f: "Formulas", args: Any, kwargs: Any) -> Part:
    """It has the sign of the divisor; fmod's has that of what is divided."""
    a, b = f.value(args[0]), f.value(args[1])
    return f"{held(a, POWER)} mod {held(b, POWER)}", PRODUCT


def _between(f: "Formulas", args: Any, kwargs: Any) -> Part:
    low, high = (kwargs.get(name, args[k] if len(args) > k else None) for k, name in ((1, "min"), (2, "max")))
    return _bounded(f, args[0], low, high)


def _hard_tanh(f: "Formulas", args: Any, kwargs: Any) -> Part:
    low = args[1] if len(args) > 1 else -1
    high = args[2] if len(args) > 2 else 1
    return _bounded(f, args[0], low, high)


def _bounded(f: "Formulas", own: Any, low: Any, high: Any) -> Part:
    text, level = f.value(own)
    if low is not None:
        text, level = f"max({text}, {f.value(low)[0]})", ALONE
    return (text, level) if high is None else (f"min({text}, {f.value(high)[0]})", ALONE)


def _at_most(f: "Formulas", args: Any, kwargs: Any) -> Part:
    return _bounded(f, args[0], None, args[1])


def _at_least(f: "Formulas", args: Any, kwargs: Any) -> Part:
    return _bounded(f, args[0], args[1], None)


def variance(name: str, called: Called) -> str:
    """With what is taken off the count beneath: var₁ divides by the count less one, var by the count."""
    given = [each for each in called.args[1:] if isinstance(each, bool)]  # unbiased, of an older form
    correction = called.kwargs.get("correction", given[0] if given else called.kwargs.get("unbiased", 1))
    return with_number(name, 1 if correction is None else correction, 0)


def _norm(f: "Formulas", args: Any, kwargs: Any) -> Part:
    """Of the order beneath; of the usual second order without it."""
    order = args[1] if len(args) > 1 and args[1] is not None else kwargs.get("ord", 2)
    return f"{with_number('norm', order, 2)}({f.value(args[0])[0]})", ALONE


def _plus_product(f: "Formulas", args: Any, kwargs: Any, sign: str = "·") -> Part:
    a, b, c = (f.value(each) for each in args[:3])
    value = args[3] if len(args) > 3 else kwargs.get("value", 1)
    return f"{held(a, SUM)}{added((f'{held(b, PRODUCT)} {sign} {held(c, POWER)}', PRODUCT), value)}", SUM


def _plus_quotient(f: "Formulas", args: Any, kwargs: Any) -> Part:
    return _plus_product(f, args, kwargs, "/")


def _between_two(f: "Formulas", args: Any, kwargs: Any) -> Part:
    a, weight = f.value(args[0]), f.value(args[2])
    return f"{held(a, SUM)} + {held(weight, POWER)} · ({difference(f, (args[1], args[0]), {})[0]})", SUM


def _padded(f: "Formulas", args: Any, kwargs: Any) -> Part:
    value = args[2] if len(args) > 2 else kwargs.get("value", 0)
    return f"pad({f.value(args[0])[0]}, {f.value(value)[0]})", ALONE


def _matrices(f: "Formulas", args: Any, kwargs: Any) -> Part:
    a, b = f.value(args[0]), f.value(args[1])
    return f"{held(a, ALONE)} {held(b, ALONE)}", PRODUCT


def _plus_matrices(f: "Formulas", args: Any, kwargs: Any) -> Part:
    bias, a, b = (f.value(each) for each in args[:3])
    beta, alpha = kwargs.get("beta", 1), kwargs.get("alpha", 1)
    product = f"{held(a, ALONE)} {held(b, ALONE)}"
    product = product if alpha == 1 else f"{alpha:.4g} · {product}"
    return (product, PRODUCT) if beta == 0 else (f"{product}{added(bias, beta)}", SUM)


def _linear(f: "Formulas", args: Any, kwargs: Any) -> Part:
    parts = [f.value(each) for each in args[:3] if each is not None]
    text = f"{held(parts[0], ALONE)} {held(parts[1], ALONE)}ᵀ"
    return (f"{text} + {held(parts[2], SUM)}", SUM) if len(parts) > 2 else (text, PRODUCT)


def _gathered(f: "Formulas", args: Any, kwargs: Any) -> Part:
    """Rows of a table; of `index` some axes are taken whole."""
    table, *index = [each for each in args if is_tensor(each)]
    return f"{held(f.value(table), ALONE)}[{', '.join(_indices(f, each) for each in index)}]", ALONE


def _indices(f: "Formulas", index: Any) -> str:
    every = index if isinstance(index, list | tuple) else [index]
    return ", ".join(":" if each is None else f.value(each)[0] for each in every)


def _put(f: "Formulas", args: Any, kwargs: Any) -> Part:
    """Values written, or with `accumulate` added, at some places."""
    table, values = f.value(args[0])[0], f.value(args[2])[0]
    added = args[3] if len(args) > 3 else kwargs.get("accumulate", False)
    return f"{'add' if added else 'put'}({table}, {values} at [{_indices(f, args[1])}])", ALONE


def _same(f: "Formulas", args: Any, kwargs: Any) -> Part:
    """A copy; of what it is cut to whole numbers or truth the dtype is said."""
    dtype, of = kwargs.get("dtype"), f.value(args[0])
    cut = dtype is not None and not dtype.is_floating_point and not dtype.is_complex
    if not cut or (dtype != torch.bool and not f.records[args[0].record].dtype.is_floating_point):
        return of
    return f"{str(dtype).removeprefix('torch.')}({of[0]})", ALONE


def _copied(f: "Formulas", args: Any, kwargs: Any) -> Part:
    return f.value(args[1])


def _joined(f: "Formulas", args: Any, kwargs: Any) -> Part:
    return f.value(args[0])


def _chosen(f: "Formulas", args: Any, kwargs: Any) -> Part:
    condition, yes, no = (f.value(each) for each in args[:3])
    return f"{yes[0]} if {condition[0]} else {no[0]}", 0


def _filled(f: "Formulas", args: Any, kwargs: Any) -> Part:
    own, mask, value = (f.value(each) for each in args[:3])
    return f"{value[0]} if {mask[0]} else {own[0]}", 0


def _negative(f: "Formulas", args: Any, kwargs: Any) -> Part:
    return f"-{held(f.value(args[0]), PRODUCT)}", SUM


def pattern(text: str) -> Writer:
    """A formula with the arguments, by their place, where it has {0}, {1} …"""

    def write(f: "Formulas", args: Any, kwargs: Any) -> Part:
        return text.format(*(held(f.value(each), ALONE) for each in args)), PRODUCT

    return write


ARITHMETIC: dict[str, Writer] = {
    "add": _sum, "sub": difference, "mm": _matrices, "bmm": _matrices, "mv": _matrices, "dot": _matrices,
    "addmm": _plus_matrices, "baddbmm": _plus_matrices, "addmv": _plus_matrices, "linear": _linear,
    "embedding": _gathered, "index": _gathered,
    "index_put": _put, "clone": _same, "_to_copy": _same, "copy": _copied, "cat": _joined,
    "addcmul": _plus_product, "addcdiv": _plus_quotient, "lerp": _between_two, "constant_pad_nd": _padded,
    "linalg_vector_norm": _norm, "norm": _norm, "rsub": _turned_difference, "div": _quotient,
    "floor_divide": _floored, "remainder": _remainder, "clamp": _between, "clamp_min": _at_least,
    "clamp_max": _at_most, "hardtanh": _hard_tanh, "maximum": _at_least, "minimum": _at_most, "stack": _joined,
    "where": _chosen, "masked_fill": _filled, "neg": _negative,
}  # fmt: skip
