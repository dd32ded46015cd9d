"""Formulas of steps that have none from a label: the primitives folded into them, written with the names of steps."""

from collections.abc import Callable, Mapping
from typing import Any

from regard.tracing.geometry import Geometry
from regard.tracing.record import Called, Record, Ref
from regard.tracing.rules.norms import NAMES

SUM, PRODUCT, POWER, ALONE = 1, 2, 3, 4
Part = tuple[str, int]
Write = Callable[[Any], Part]

FUNCTIONS = {
    "exp": "e^", "sigmoid": "σ", "sqrt": "√", "gelu": "GELU", "silu": "SiLU", "relu": "ReLU", "_softmax": "softmax",
    "_safe_softmax": "softmax", "_log_softmax": "log softmax", "native_layer_norm": "LayerNorm", "amax": "max",
    "_fused_rms_norm": "RMSNorm", "native_batch_norm": "BatchNorm", "native_group_norm": "GroupNorm", "amin": "min",
    "linalg_vector_norm": "norm", "prod": "product", "index_put": "put",
}  # fmt: skip
INFIX = {
    "lt": ("<", 0), "le": ("≤", 0), "gt": (">", 0), "ge": ("≥", 0), "eq": ("=", 0), "ne": ("≠", 0),
    "mul": ("·", PRODUCT), "pow": ("^", POWER), "logical_and": ("and", 0),
    "logical_or": ("or", 0), "bitwise_and": ("and", 0), "bitwise_or": ("or", 0),
}  # fmt: skip


class Formulas:
    """Writes the formula of a record with the names of the steps it comes from."""

    def __init__(self, records: Mapping[int, Record], shown: set[int], names: Mapping[int, str]) -> None:
        self._records, self._shown, self._names = records, shown, names

    def of(self, record: Record) -> str:
        if record.labels and record.labels[-1][1]:
            return record.labels[-1][1]
        if record.role == "move" and record.view is not None:
            return self._through(record)[0]
        if record.called is None or record.role in ("constant", "random"):
            return ""
        return self._written(record)[0]

    def _through(self, record: Record) -> Part:
        """A view: what it is of, with a ᵀ where it is turned."""
        assert record.view is not None
        at, layers = record.view
        text, level = self._operand(layers[-1].record)
        if len(layers) > 1:
            return f"[{'; '.join(dict.fromkeys(self._operand(layer.record)[0] for layer in layers))}]", ALONE
        part = cut(at, layers[0].at)
        turn = "ᵀ" if turned(at, layers[0].at) else ""
        return (f"{_held((text, level), ALONE)}{part}{turn}", ALONE) if part or turn else (text, level)

    def _operand(self, number: int) -> Part:
        record = self._records[number]
        if number in self._shown:
            return _short(self._names[number]), ALONE
        if record.role == "constant" and record.held is not None and record.shape.numel() == 1:
            return self._value(record.held.tensor.item())
        return self._through(record) if record.view is not None else self._written(record)

    def _empty(self, value: Any) -> bool:
        return isinstance(value, Ref) and 0 in self._records[value.record].shape

    def _value(self, value: Any) -> Part:
        if isinstance(value, Ref):
            return self._operand(value.record)
        if isinstance(value, list | tuple):
            some = [each for each in value if not self._empty(each)]
            if len(some) == 1:
                return self._value(some[0])
            return f"[{'; '.join(self._value(each)[0] for each in some)}]", ALONE
        if isinstance(value, float):
            return f"{value:.4g}", SUM if value < 0 else ALONE
        return str(value), SUM if isinstance(value, int) and value < 0 else ALONE

    def _written(self, record: Record) -> Part:
        called = record.called
        if called is None:
            return record.operation, ALONE
        name = called.operation.rpartition(".")[2]
        statistic = NAMES.get(called.operation, {}).get(record.output)
        if statistic is not None:
            return statistic[1].format(self._value(called.args[0])[0]), PRODUCT
        if name in ("var", "std", "var_mean", "std_mean"):
            what = "mean" if record.output == 1 else _variance(name.removesuffix("_mean"), called)
            return f"{what}({self._value(called.args[0])[0]})", ALONE
        special = SPECIAL.get(name)
        if special is not None:
            return special(self, called.args, called.kwargs)
        if name in INFIX and len(called.args) > 1:
            sign, level = INFIX[name]
            a, b = (self._value(each) for each in called.args[:2])
            space = "" if name == "pow" else " "
            return f"{_held(a, level)}{space}{sign}{space}{_held(b, level + 1)}", level
        tensors = [self._value(each) for each in called.args if _is_tensor(each)]
        shown_as = FUNCTIONS.get(name, name.strip("_"))
        if shown_as == "e^":
            return f"e^{_held(tensors[0], ALONE)}", POWER
        few = tensors[:1] if name in FUNCTIONS else tensors
        return f"{shown_as}({', '.join(text for text, _ in few)})", ALONE


def turned(at: Geometry, under: Geometry) -> bool:
    """Whether the last two axes of a view run the other way round than those of what it is a view of, also where it
    is one of many heads.
    """
    if len(at.shape) < 2 or len(under.shape) < 2 or 1 in at.shape[-2:] or 0 in at.strides[-2:]:
        return False
    (down, along), (before, beside) = at.strides[-2:], under.strides[-2:]
    return (down < along and before > beside) or (down > along and before < beside)


def cut(at: Geometry, under: Geometry) -> str:
    """Which part of a tensor a smaller view of it is, as it would be indexed; empty where it is all of it."""
    if at.size >= under.size or not under.row_by_row:
        return ""
    left, taken, axes = at.offset - under.offset, [], list(zip(at.shape, at.strides, strict=True))
    for size, stride in zip(under.shape, under.strides, strict=True):
        start, left = divmod(left, stride) if stride else (0, left)
        length = next((n for n, step in axes if step == stride), 1)
        if length == size:
            taken.append(":")
        else:
            taken.append(str(start) if length == 1 else f"{start}:{start + length}")
    while taken and taken[-1] == ":":
        taken.pop()
    return f"[{', '.join(taken)}]" if taken else ""


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Ref) or (isinstance(value, list | tuple) and any(isinstance(each, Ref) for each in value))


def _short(name: str) -> str:
    """The last two parts of a path say enough in a formula."""
    if name.startswith("∂"):
        above, _, below = name.partition("/∂")
        return f"{above}/∂{_short(below)}"
    parts = name.split(".")
    return ".".join(parts[-2:])


def _held(part: Part, level: int) -> str:
    return part[0] if part[1] >= level else f"({part[0]})"


def _sum(f: Formulas, args: Any, kwargs: Any) -> Part:
    a, b, alpha = f._value(args[0]), f._value(args[1]), kwargs.get("alpha", 1)
    return f"{_held(a, SUM)}{_added(b, alpha)}", SUM


def _difference(f: Formulas, args: Any, kwargs: Any) -> Part:
    a, b = f._value(args[0]), f._value(args[1])
    alpha = args[2] if len(args) > 2 else kwargs.get("alpha", 1)
    return f"{_held(a, SUM)}{_added(b, -alpha)}", SUM


def _turned_difference(f: Formulas, args: Any, kwargs: Any) -> Part:
    return _difference(f, (args[1], args[0], *args[2:]), kwargs)


def _added(part: Part, by: float) -> str:
    """` + by · part`, or ` - …`."""
    if by == 1:
        return f" + {_held(part, SUM)}"
    return f" {'-' if by < 0 else '+'} {_scaled(part, abs(by))}"


def _scaled(part: Part, by: float) -> str:
    return _held(part, PRODUCT) if by == 1 else f"{by:.4g} · {_held(part, PRODUCT)}"


def _quotient(f: Formulas, args: Any, kwargs: Any) -> Part:
    """Also the rounded one."""
    a, b = f._value(args[0]), f._value(args[1])
    text, how = f"{_held(a, PRODUCT)} / {_held(b, POWER)}", kwargs.get("rounding_mode")
    if how is None:
        return text, PRODUCT
    return (f"⌊{text}⌋" if how == "floor" else f"trunc({text})"), ALONE


def _floored(f: Formulas, args: Any, kwargs: Any) -> Part:
    return _quotient(f, args, {"rounding_mode": "floor"})


def _remainder(f: Formulas, args: Any, kwargs: Any) -> Part:
    """It has the sign of the divisor; fmod's has that of what is divided."""
    a, b = f._value(args[0]), f._value(args[1])
    return f"{_held(a, POWER)} mod {_held(b, POWER)}", PRODUCT


def _between(f: Formulas, args: Any, kwargs: Any) -> Part:
    low, high = (kwargs.get(name, args[k] if len(args) > k else None) for k, name in ((1, "min"), (2, "max")))
    return _bounded(f, args[0], low, high)


def _hard_tanh(f: Formulas, args: Any, kwargs: Any) -> Part:
    low = args[1] if len(args) > 1 else -1
    high = args[2] if len(args) > 2 else 1
    return _bounded(f, args[0], low, high)


def _bounded(f: Formulas, own: Any, low: Any, high: Any) -> Part:
    text, level = f._value(own)
    if low is not None:
        text, level = f"max({text}, {f._value(low)[0]})", ALONE
    return (text, level) if high is None else (f"min({text}, {f._value(high)[0]})", ALONE)


def _at_most(f: Formulas, args: Any, kwargs: Any) -> Part:
    return _bounded(f, args[0], None, args[1])


def _at_least(f: Formulas, args: Any, kwargs: Any) -> Part:
    return _bounded(f, args[0], args[1], None)


def _likelihood(f: Formulas, args: Any, kwargs: Any) -> Part:
    reduction = args[3] if len(args) > 3 else kwargs.get("reduction", 1)
    return f"{('', 'mean ', 'sum ')[reduction]}nll({f._value(args[0])[0]}, {f._value(args[1])[0]})", ALONE


def _variance(name: str, called: Called) -> str:
    """With what is taken off the count beneath: var₁ divides by the count less one, var by the count."""
    given = [each for each in called.args[1:] if isinstance(each, bool)]  # unbiased, of an older form
    correction = called.kwargs.get("correction", given[0] if given else called.kwargs.get("unbiased", 1))
    return with_correction(name, 1 if correction is None else correction)


def with_correction(name: str, correction: float) -> str:
    text = "" if correction == 0 else f"{float(correction):g}"
    return name + text.translate(str.maketrans("0123456789-", "₀₁₂₃₄₅₆₇₈₉₋"))


def _matrices(f: Formulas, args: Any, kwargs: Any) -> Part:
    a, b = f._value(args[0]), f._value(args[1])
    return f"{_held(a, ALONE)} {_held(b, ALONE)}", PRODUCT


def _plus_matrices(f: Formulas, args: Any, kwargs: Any) -> Part:
    bias, a, b = (f._value(each) for each in args[:3])
    beta, alpha = kwargs.get("beta", 1), kwargs.get("alpha", 1)
    product = f"{_held(a, ALONE)} {_held(b, ALONE)}"
    product = product if alpha == 1 else f"{alpha:.4g} · {product}"
    return (product, PRODUCT) if beta == 0 else (f"{product}{_added(bias, beta)}", SUM)


def _linear(f: Formulas, args: Any, kwargs: Any) -> Part:
    parts = [f._value(each) for each in args[:3] if each is not None]
    text = f"{_held(parts[0], ALONE)} {_held(parts[1], ALONE)}ᵀ"
    return (f"{text} + {_held(parts[2], SUM)}", SUM) if len(parts) > 2 else (text, PRODUCT)


def _gathered(f: Formulas, args: Any, kwargs: Any) -> Part:
    """Rows of a table; of `index` some axes are taken whole."""
    table, *index = [each for each in args if _is_tensor(each)]
    return f"{_held(f._value(table), ALONE)}[{', '.join(f._value(each)[0].strip('[]') for each in index)}]", ALONE


def _same(f: Formulas, args: Any, kwargs: Any) -> Part:
    return f._value(args[0])


def _copied(f: Formulas, args: Any, kwargs: Any) -> Part:
    return f._value(args[1])


def _joined(f: Formulas, args: Any, kwargs: Any) -> Part:
    return f._value(args[0])


def _chosen(f: Formulas, args: Any, kwargs: Any) -> Part:
    condition, yes, no = (f._value(each) for each in args[:3])
    return f"{yes[0]} if {condition[0]} else {no[0]}", 0


def _filled(f: Formulas, args: Any, kwargs: Any) -> Part:
    own, mask, value = (f._value(each) for each in args[:3])
    return f"{value[0]} if {mask[0]} else {own[0]}", 0


def _negative(f: Formulas, args: Any, kwargs: Any) -> Part:
    return f"-{_held(f._value(args[0]), PRODUCT)}", SUM


def _pattern(text: str) -> Callable[[Formulas, Any, Any], Part]:
    """A formula with the arguments, by their place, where it has {0}, {1} …"""

    def write(f: Formulas, args: Any, kwargs: Any) -> Part:
        return text.format(*(_held(f._value(each), ALONE) for each in args)), PRODUCT

    return write


SPECIAL: dict[str, Callable[[Formulas, Any, Any], Part]] = {
    "add": _sum, "sub": _difference, "mm": _matrices, "bmm": _matrices, "mv": _matrices, "dot": _matrices,
    "addmm": _plus_matrices, "baddbmm": _plus_matrices, "addmv": _plus_matrices, "linear": _linear,
    "embedding": _gathered, "index": _gathered, "clone": _same, "_to_copy": _same, "copy": _copied, "cat": _joined,
    "tanh_backward": _pattern("{0} · (1 - {1}²)"), "sigmoid_backward": _pattern("{0} · {1} · (1 - {1})"),
    "_softmax_backward_data": _pattern("{1} · ({0} - Σ {0} · {1})"),
    "_log_softmax_backward_data": _pattern("{0} - e^{1} · Σ {0}"),
    "threshold_backward": _pattern("{0} · ({1} > {2})"), "nll_loss_backward": _pattern("-{0} / {6} at {2}"),
    "rsub": _turned_difference, "div": _quotient, "floor_divide": _floored, "remainder": _remainder,
    "clamp": _between, "clamp_min": _at_least, "clamp_max": _at_most, "hardtanh": _hard_tanh, "maximum": _at_least,
    "minimum": _at_most, "nll_loss_forward": _likelihood, "nll_loss2d_forward": _likelihood,
    "stack": _joined, "where": _chosen, "masked_fill": _filled, "neg": _negative,
}  # fmt: skip
