"""Formulas of steps that have none from a label: the primitives folded into them, written with the names of steps."""

from collections.abc import Mapping
from typing import Any

from regard.tracing.geometry import Geometry
from regard.tracing.record import Called, Record, Ref
from regard.tracing.rules.norms import NAMES
from regard.tracing.spelled import ALONE, ARITHMETIC, POWER, PRODUCT, SUM, Part, held, is_tensor, variance
from regard.tracing.spelled_networks import NETWORKS

FUNCTIONS = {
    "exp": "e^", "sigmoid": "σ", "sqrt": "√", "gelu": "GELU", "silu": "SiLU", "relu": "ReLU", "_softmax": "softmax",
    "_safe_softmax": "softmax", "_log_softmax": "log softmax", "native_layer_norm": "LayerNorm", "amax": "max",
    "_fused_rms_norm": "RMSNorm", "native_batch_norm": "BatchNorm", "native_group_norm": "GroupNorm", "amin": "min",
    "linalg_vector_norm": "norm", "prod": "product", "max_pool2d_with_indices": "max_pool2d",
    "log_sigmoid_forward": "log σ",
}  # fmt: skip
INFIX = {
    "lt": ("<", 0), "le": ("≤", 0), "gt": (">", 0), "ge": ("≥", 0), "eq": ("=", 0), "ne": ("≠", 0),
    "mul": ("·", PRODUCT), "pow": ("^", POWER), "logical_and": ("and", 0),
    "logical_or": ("or", 0), "bitwise_and": ("and", 0), "bitwise_or": ("or", 0),
}  # fmt: skip


NORMS = frozenset({
    "native_layer_norm", "_fused_rms_norm", "native_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training",
})  # fmt: skip
UNSAID = frozenset({
    "keepdim", "dtype", "half_to_float", "input_sizes", "num_weights", "padding_idx", "total_weight_sum",
    "scale_grad_by_freq", "sparse", "accumulate", "unsafe", "output_mask", "training", "train", "benchmark",
    "batch_first", "deterministic", "cudnn_enabled", "allow_tf32", "implicit", "memory_format", "non_blocking",
    "normalized_shape", "sorted", "descending", "stable", "generator", "momentum",
})  # fmt: skip
"""Arguments that say where, in which form or how fast, or that the shapes of the steps tell."""
ALONG = frozenset({
    "_softmax", "_safe_softmax", "_log_softmax", "cumsum", "cumprod", "flip", "roll", "sort", "topk", "glu",
})  # fmt: skip
"""What goes along an axis that the shapes do not tell; it is said unless it is the last."""
USUAL = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "transposed": False, "output_padding": 0}
"""What is not said although an operation asks for it."""


def _arguments(called: Called) -> list[tuple[Any, Any]]:
    """What was passed, with what its schema says of it; operators of higher order have none."""
    if not hasattr(called.function, "_schema"):
        return [(None, each) for each in called.args if is_tensor(each)]
    schema = called.function._schema.arguments
    given = list(zip(schema, called.args, strict=False))
    return given + [(each, called.kwargs[each.name]) for each in schema if each.name in called.kwargs]


def _counts(argument: Any, value: Any) -> bool:
    """Whether a number (or word, or list of numbers) that was passed belongs into the formula."""
    if value is None or argument.name in UNSAID or not isinstance(value, bool | int | float | str | list | tuple):
        return False
    if argument.has_default_value() and argument.default_value == value:
        return False
    if argument.name in USUAL:
        usual = USUAL[argument.name]
        return any(each != usual for each in value) if isinstance(value, list | tuple) else value != usual
    return not isinstance(value, list | tuple) or len(value) > 0


class Formulas:
    """Writes the formula of a record with the names of the steps it comes from."""

    def __init__(self, records: Mapping[int, Record], shown: set[int], names: Mapping[int, str]) -> None:
        self.records, self._shown, self._names = records, shown, names

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
        return (f"{held((text, level), ALONE)}{part}{turn}", ALONE) if part or turn else (text, level)

    def _operand(self, number: int) -> Part:
        record = self.records[number]
        if number in self._shown:
            return short(self._names[number]), ALONE
        if record.role == "constant" and record.held is not None and record.shape.numel() == 1:
            return self.value(record.held.tensor.item())
        return self._through(record) if record.view is not None else self._written(record)

    def _empty(self, value: Any) -> bool:
        return isinstance(value, Ref) and 0 in self.records[value.record].shape

    def value(self, value: Any) -> Part:
        if isinstance(value, Ref):
            return self._operand(value.record)
        if isinstance(value, list | tuple):
            some = [each for each in value if not self._empty(each)]
            if len(some) == 1:
                return self.value(some[0])
            return f"[{'; '.join(self.value(each)[0] for each in some)}]", ALONE
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
            return statistic[1].format(self.value(called.args[0])[0]), PRODUCT
        if name in ("var", "std", "var_mean", "std_mean"):
            what = "mean" if record.output == 1 else variance(name.removesuffix("_mean"), called)
            return f"{what}({self.value(called.args[0])[0]})", ALONE
        special = ARITHMETIC.get(name) or NETWORKS.get(name)
        if special is not None:
            return special(self, called.args, called.kwargs)
        if name in INFIX and len(called.args) > 1:
            sign, level = INFIX[name]
            a, b = (self.value(each) for each in called.args[:2])
            space = "" if name == "pow" else " "
            return f"{held(a, level)}{space}{sign}{space}{held(b, level + 1)}", level
        return self._called(name, called, len(record.shape) - 1)

    def _called(self, name: str, called: Called, last: int) -> Part:
        """name(a, b, 2, alpha=0.5): its tensors, the numbers it needs, and those that are not as usual."""
        shown_as = FUNCTIONS.get(name, name.strip("_"))
        if shown_as == "e^":
            return f"e^{held(self.value(called.args[0]), ALONE)}", POWER
        parts: list[str] = []
        for argument, value in _arguments(called):
            if is_tensor(value):
                if not parts or name not in FUNCTIONS:
                    parts.append(self.value(value)[0])
            elif argument.name in ("dim", "dims"):
                if name in ALONG and value not in (-1, last, [-1], [last]):
                    parts.append(f"{argument.name}={value}")
            elif name not in NORMS and _counts(argument, value):
                text = self.value(value)[0] if not isinstance(value, list | tuple) else str(list(value))
                named = argument.has_default_value() or argument.name in USUAL
                parts.append(f"{argument.name}={text}" if named else text)
        return f"{shown_as}({', '.join(parts)})", ALONE


def turned(at: Geometry, under: Geometry) -> bool:
    """Whether the last two axes of a view run the other way round than those of what it is a view of, also where it
    is one of many heads.
    """
    if len(at.shape) < 2 or len(under.shape) < 2 or 0 in at.strides[-2:]:
        return False
    if 1 in at.shape[-2:]:
        return _lies_down(at, under) or _lies_down(under, at)
    (down, along), (before, beside) = at.strides[-2:], under.strides[-2:]
    return (down < along and before > beside) or (down > along and before < beside)


def _lies_down(row: Geometry, column: Geometry) -> bool:
    """Whether the one row of this is the one column of that, whose other strides say nothing."""
    (height, width), (tall, one) = row.shape[-2:], column.shape[-2:]
    return height == one == 1 < min(width, tall) and row.strides[-1] == column.strides[-2]


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


def short(name: str) -> str:
    """The last two parts of a path say enough in a formula."""
    if name.startswith("∂"):
        above, _, below = name.partition("/∂")
        return f"{above}/∂{short(below)}"
    parts = name.split(".")
    return ".".join(parts[-2:])
