"""What kind of operation a primitive is, read from its schema once, and what came out of a call of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.tracing.record import Called, Ref
from regard.tracing.rules import RULES
from regard.tracing.step import Role

CONSTANTS = frozenset({
    "aten.zeros", "aten.ones", "aten.full", "aten.empty", "aten.arange", "aten.eye", "aten.linspace", "aten.logspace",
    "aten.zeros_like", "aten.ones_like", "aten.full_like", "aten.empty_like", "aten.new_zeros", "aten.new_ones",
    "aten.new_full", "aten.new_empty", "aten.scalar_tensor", "aten.fill", "aten.zero", "aten.empty_strided",
    "aten.new_empty_strided", "aten.empty_permuted", "aten.tril_indices", "aten.triu_indices", "aten.hann_window",
    "aten.resize",
})  # fmt: skip
"""Made from nothing but numbers in the code."""

RANDOM = frozenset({
    "aten.rand", "aten.randn", "aten.randint", "aten.randperm", "aten.rand_like", "aten.randn_like",
    "aten.randint_like", "aten.normal", "aten.uniform", "aten.bernoulli", "aten.multinomial", "aten.exponential",
    "aten.random", "aten.geometric", "aten.cauchy", "aten.log_normal", "aten.poisson", "aten.normal_functional",
})  # fmt: skip
"""Drawn by chance."""


UNSAID = {"aten.native_batch_norm": ((3, "running_mean"), (4, "running_var"))}
"""What is written to without the schema saying so, when it trains."""


IN_PLACE_VIEWS = frozenset({
    "t_", "transpose_", "unsqueeze_", "squeeze_", "swapaxes_", "swapdims_", "as_strided_", "detach_",
})  # fmt: skip
"""By their schema they write; but only how the tensor reads its numbers changes, and no number."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What is known of an operation before it runs."""

    name: str
    """As `aten.add`; that of one that writes in place, or to `out=`, is the plain one's."""
    views: bool
    """Whether what comes out is a view of what goes in."""
    writes: tuple[tuple[int, str], ...]
    """Arguments it writes to: place and name."""
    results: tuple[str, ...]
    """Those of them that only take the result (`out=`)."""
    composite: bool
    """Whether it is written in terms of others (and seen whole only in inference mode)."""


def operation(function: Any) -> Operation:
    """Of an OpOverload, or of a higher-order operator, of which nothing is known."""
    if not isinstance(function, torch._ops.OpOverload):
        return Operation(f"{getattr(function, 'namespace', 'higher_order')}.{function}", False, (), (), False)
    schema = function._schema
    writes = tuple(
        (place, argument.name)
        for place, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )
    base = function._overloadpacket.__name__
    plain = base.removesuffix("_") if writes and not base.startswith("_foreach") and not base.endswith("__") else base
    views = not writes and any(each.alias_info is not None for each in schema.returns)
    if base in IN_PLACE_VIEWS:
        plain, views, writes = base.removesuffix("_"), True, ()
    full = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    # Those of `prim` are none of the dispatcher's.
    known = torch._C._dispatch_has_kernel(full)
    composite = known and torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd")
    name = f"{function.namespace}.{plain}"
    results = tuple(each.name for each in schema.arguments if each.is_out)
    return Operation(name, views, UNSAID.get(name, writes), results, composite)


def role_of(op: Operation, called: Called, place: int) -> tuple[Role, str, tuple[int, ...]]:
    """What an output is, by which operation, from what."""
    entry, sources = RULES.get(op.name), tuple(dict.fromkeys(called.reads))
    if op.name in RANDOM or (op.name == "aten.native_dropout" and place == 1):
        return "random", op.name, ()
    if op.name in CONSTANTS and not (op.name == "aten.fill" and isinstance(called.args[1], Ref)):
        return "constant", op.name, ()
    if entry is None:
        return ("opaque", op.name, sources) if sources else ("constant", op.name, ())
    return "move" if entry.sort == "move" else "computed", op.name, sources


def written_by(op: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors that it writes to."""
    if op.name in UNSAID and not args[5]:
        return []
    values: Iterable[Any] = (args[place] if place < len(args) else kwargs.get(name) for place, name in op.writes)
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += [each for each in value if isinstance(each, Tensor)]
    return found


def outputs_in(result: Any) -> list[Tensor | None]:
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, list | tuple):
        return [each if isinstance(each, Tensor) else None for each in result]
    return []
