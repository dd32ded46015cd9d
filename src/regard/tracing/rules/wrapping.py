"""Whole numbers that grow past their dtype: what is printed says so, or claims nothing."""

from typing import Any

import torch
from torch import Tensor

from regard.tracing.forms import Form, Rule, function, minus, number, plus
from regard.tracing.rules.call import Call, Source, run

WIDE = {torch.uint8: 8, torch.int8: 8, torch.int16: 16, torch.int32: 32}
COPIES = ("aten._to_copy", "aten.copy")
"""Their form names the dtype already."""


def unwrapped(call: Call, rule: Rule, operation: str, recorded: Tensor | None) -> Rule | None:
    """The rule with the modulus where some cell was wrapped: 44 ≈ remainder(200 + 100, 256); None where that cannot be
    said, of 64 bits.
    """
    if call.dtype.is_floating_point or call.dtype.is_complex or call.dtype == torch.bool or recorded is None:
        return rule
    if operation in COPIES or not any(_is_whole(each) for each in call.arguments.values()):
        return rule
    wide = _again(call, torch.int64 if call.dtype in WIDE else torch.float64)
    if wide is None or wide.shape != recorded.shape:
        return rule
    if call.dtype in WIDE:
        wrapped = not torch.equal(wide, recorded.cpu().to(wide.dtype))
        return Rule(_modulo(rule.body, call.dtype), rule.operands, rule.inner) if wrapped else rule
    return None if bool((wide.abs() >= 2.0**63).any()) else rule


def _modulo(body: Form, dtype: torch.dtype) -> Form:
    """Of signed numbers the half of them lie under 0."""
    count = 2 ** WIDE[dtype]
    if not dtype.is_signed:
        return function("remainder", body, number(count))
    return minus(function("remainder", plus(body, number(count // 2)), number(count)), number(count // 2))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Source) and not value.dtype.is_floating_point and value.dtype != torch.bool


def _again(call: Call, dtype: torch.dtype) -> Tensor | None:
    """What comes out where there is room; None where the operation does not do that."""
    arguments = {name: _wide(value, dtype) for name, value in call.arguments.items()}
    try:
        result = run(call.function, arguments)
    except (RuntimeError, TypeError, ValueError):
        return None
    return result if isinstance(result, Tensor) else None


def _wide(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, Source):
        return value.read().to(dtype) if _is_whole(value) else value.read()
    if isinstance(value, list | tuple):
        return [_wide(each, dtype) for each in value]
    return dtype if isinstance(value, torch.dtype) else value
