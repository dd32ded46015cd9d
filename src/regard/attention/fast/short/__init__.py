"""Attention over rows of up to 128 places by one Triton program a head: lengths, causal and any table without a mask
tensor in memory, forward and backward. For a GPU in half precision, where the general kernels of
scaled_dot_product_attention take several times as long as reading and writing does.

`obstacle` and `run` are read by the table of `fast.choice`; networks that keep heads side by side ([B, T, H, d]) call
`short_attention`, which copies nothing.
"""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from regard.attention.call import Call, cleared
from regard.attention.fast import sdpa
from regard.attention.fast.short.gpu import FREE, SHORT, Rows, too_much
from regard.attention.masks import Causal, Lengths, Mask, holds_cells, parts
from regard.attention.scores import Dot, DotScore, ScaledDot

__all__ = ["FREE", "KINDS", "SHORT", "Rows", "available", "obstacle", "of_rows", "run", "short_attention", "too_much"]

KINDS = (torch.bfloat16, torch.float16)
LONGEST = 1024
"""Keys, where no gradient is wanted."""


def short_attention(
    q: Tensor, k: Tensor, value: Tensor, lengths: Tensor | None = None, *, causal: bool = False,
    scale: float | None = None, queries: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """[B, T, H, e] of q [B, T, H, d], k [B, S, G, d], value [B, S, G, e]: scaled products, softmax, mixed values.

    lengths, queries [B] int32: the real keys and queries, None is all of them; what stands at the others reaches
    nothing. causal: the last query stands beside the last key. Numbers of a head stand side by side (stride 1).
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    shift = k.shape[1] - q.shape[1] if causal else FREE
    return of_rows(Rows(q, k, value, queries, lengths, None, shift, scale))


def of_rows(rows: Rows) -> Tensor:
    """By the operation that autograd and compilers know, or straight from the kernel where neither asks."""
    inputs = (rows.q, rows.k, rows.value)
    if torch.compiler.is_compiling() or (torch.is_grad_enabled() and any(each.requires_grad for each in inputs)):
        from regard.attention.fast.short.op import short_attention as known

        found: Tensor = known(*inputs, rows.queries, rows.keys, rows.keep, rows.shift, rows.scale)[0]
        return found
    from regard.attention.fast.short import gpu

    return gpu.forward(rows, rows.q.device.type == "cpu", want_lse=False)[0]


@cache
def available() -> bool:
    """Whether there is what compiles the kernels."""
    return find_spec("triton") is not None


def obstacle(call: Call) -> str | None:
    """What stands in the way, in words; None where nothing does."""
    if call.query.device.type != "cuda":
        return "its kernels run on a GPU only"
    if (said := unlike(call)) is not None:
        return said
    return None if available() else "triton is not installed"


def unlike(call: Call) -> str | None:
    """What of the call itself is not what the kernels compute, or not where they are quicker."""
    if call.mask is None or (isinstance(call.mask, Causal) and call.shape[-1] == call.shape[-2]):
        return "without a mask, or with a plain causal one, scaled_dot_product_attention is as fast"
    if (said := sdpa.obstacle(call)) is not None:
        return said
    if type(call.score) not in (Dot, ScaledDot):
        return "the score multiplies vectors before they are cleared of what is not to be seen"
    assert call.given_value is not None
    if {call.query.dtype, call.given_key.dtype, call.given_value.dtype} - set(KINDS) or (
        len({call.query.dtype, call.given_key.dtype, call.given_value.dtype}) > 1
    ):
        return "it takes bfloat16 or float16"
    if call.bias is not None:
        return "it adds no bias to scores"
    if call.dropout > 0:
        return "it has no dropout"
    four = (call.query, call.given_key, call.given_value)
    if any(each.ndim != 4 or each.shape[0] != call.shape[0] for each in four) or len(call.shape) != 4:
        return "it takes [batch, heads, length, width]"
    if call.query.shape[1] % call.given_key.shape[1] or call.given_key.shape[1] != call.given_value.shape[1]:
        return "heads of queries must be a multiple of those of keys and values"
    width = max(call.query.shape[-1], call.given_value.shape[-1])
    said = too_much(max(call.shape[-2:]), width, call.query.device, trains=_trains(call))
    if said is not None:
        return said
    return f"there are more than {LONGEST} keys" if call.shape[-1] > LONGEST else None


def _trains(call: Call) -> bool:
    three = (call.query, call.given_key, call.given_value)
    return torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in three)


def run(call: Call) -> Tensor:
    assert call.mask is not None
    assert call.given_value is not None
    assert isinstance(call.score, DotScore)
    (_, _, T, S), device = call.shape, call.query.device
    query, key, value = call.query, call.given_key, call.given_value
    queries = keys = keep = None
    shift = FREE
    if not holds_cells(call.mask) and (rules := _rules(call.mask)) is not None:
        causal, real = rules
        if causal is not None:
            shift = S - T if causal.align == "end" else 0
        if real is not None:
            keys = _counts(real.keys, call.shape[0], device)
            queries = None if real.queries is None else _counts(real.queries, call.shape[0], device)
    else:
        kept = call.kept()
        assert kept is not None
        keep = kept.cells[(None,) * (4 - kept.cells.ndim)]
        query = cleared(query, kept.queries)
        if kept.keys is not None:
            seen = kept.keys[(None,) * (3 - kept.keys.ndim)]
            if call.groups > 1 and seen.shape[1] > 1:  # a key is needed where any head that reads it sees it
                seen = seen.view(len(seen), -1, call.groups, seen.shape[-1]).any(2)
            key, value = cleared(key, seen), cleared(value, seen)
    dot = call.score.as_dot(query, key)
    q, k, v = (_side_by_side(each) for each in (dot.query, dot.key, value))
    return of_rows(Rows(q, k, v, queries, keys, keep, shift, dot.scale)).transpose(1, 2)


def _rules(mask: Mask) -> tuple[Causal | None, Lengths | None] | None:
    """A mask that is causal, or of lengths, or both, taken apart; None for any other."""
    causal = real = None
    for part in parts(mask):
        if isinstance(part, Causal) and causal is None:
            causal = part
        elif isinstance(part, Lengths) and real is None:
            real = part
        else:
            return None
    return causal, real


def _counts(counts: Tensor, batch: int, device: torch.device) -> Tensor:
    return counts.to(device=device, dtype=torch.int32).expand(batch).contiguous()


def _side_by_side(heads: Tensor) -> Tensor:
    """[B, H, n, d] → [B, n, H, d], the numbers of a head side by side."""
    rows = heads.transpose(1, 2)
    return rows if rows.stride(-1) == 1 else rows.contiguous()
