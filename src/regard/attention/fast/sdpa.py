"""scaled_dot_product_attention, where it gives the answer of `core`.

It leaks NaN from masked places, gives NaN or means for rows with nothing to attend to (by back end and version)
and aligns its causal mask at the start. So masked keys are zeroed first (or seen to be harmless), empty rows may see
everything and are cleared afterwards, and its own causal mask is used only where both alignments agree.
"""

from contextlib import nullcontext

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from regard.attention import checks, normalise
from regard.attention.call import Call, cleared, shared
from regard.attention.fast.once import differentiable_once
from regard.attention.masks import Causal, Mask
from regard.attention.scores import AsDot, DotScore, ScaledDot
from regard.attention.settled import Kept, can_be_looked_at
from regard.tracing.labels import active

# From how many keys on half precision pays in training on a CPU, measured at width 64 on one with AVX-512 and AMX.
WIDE_KEYS = 512

HALF = (torch.bfloat16, torch.float16)

# Of numbers up to here neither products, nor sums over a width, nor gradients overflow in float32.
HARMLESS = 2.0**30


def obstacle(call: Call) -> str | None:
    """What stands in the way, in words; None where nothing does."""
    if call.given_value is None:
        return "it does not hand out weights"
    if not isinstance(call.score, DotScore):
        return f"the score {call.score.name!r} is no product of vectors"
    if call.normalise is not normalise.softmax and call.normalise != normalise.softmax:
        return f"it normalises by softmax, not by {call.normalise.name}"
    if call.dropout > 0 and call.generator is not None:
        return "its dropout takes no generator"
    if 0 in call.shape:
        return "there is nothing to compute"
    if _widened(call):
        return "the value has leading axes that query and key do not have"
    return None


def at_once(query: Tensor, key: Tensor, value: Tensor, score: object, mask: Mask | Tensor | None) -> Tensor | None:
    """The call that is made most, answered before it is put into words: [batch, heads, length, width] each, alike, a
    scaled product, softmax, and no mask but the plain causal one. None: look closer.

    Nothing is decided otherwise than by `obstacle` and `run`: it spares two thirds of the microseconds around a kernel.
    """
    causal = mask is not None
    if type(score) is not ScaledDot or (causal and type(mask) is not Causal) or active():
        return None
    shape = checks.alike(query, key, value)
    if shape is None or len(shape) != 4 or 0 in shape or query.shape[3] != key.shape[3] or not value.shape[3]:
        return None
    if (causal and shape[2] != shape[3]) or (query.dtype in HALF and query.device.type == "cpu"):
        return None
    output = scaled_dot_product_attention(query, key, value, is_causal=causal, scale=score.scale)
    return differentiable_once(output, "ScaledDotProduct") if output.requires_grad else output


def run(call: Call) -> Tensor:
    assert isinstance(call.score, DotScore)
    causal = _is_causal(call)
    if (call.mask is None or causal) and call.bias is None:
        dot = call.score.as_dot(call.query, call.key)
        return _attended(call, *dot, call.value, causal=causal)
    kept = call.kept()
    dot, value = _without_leaks(call, kept)
    joined, alive = _joined(call, kept)
    output = _attended(call, *dot, value, mask=joined)
    return output if alive is None else torch.where(alive, output, 0.0)


def _without_leaks(call: Call, kept: Kept | None) -> tuple[AsDot, Tensor]:
    """Query, key and value of which nothing reaches where it may not: padding is zeroed, or seen to be harmless.

    To zero is to write all of them anew. Where they can be looked at a look is far cheaper: the weights there are
    exactly 0, and so is what a finite number adds by them, forward and backward.
    """
    assert isinstance(call.score, DotScore)
    query, key, value = call.query, call.key, call.value
    dot = call.score.as_dot(query, key)
    if kept is None or (kept.queries is None and kept.keys is None) or _harmless(call, dot, value):
        return dot, value
    query, key, value = cleared(query, kept.queries), cleared(key, kept.keys), cleared(value, kept.keys)
    return call.score.as_dot(query, key), value


def _harmless(call: Call, dot: AsDot, value: Tensor) -> bool:
    """Whether all numbers can be looked at, are finite, and too small for a product or sum of them to overflow."""
    exact = value.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled("cpu")
    if not exact or not can_be_looked_at(value) or active():  # a look would stand among the steps of a derivation
        return False
    try:
        bounds = [torch.aminmax(each.detach()) for each in (dot.query, dot.key, value)]
        largest = [max(-float(low), float(high)) for low, high in bounds]
    except RuntimeError:  # they have no numbers of their own, as under vmap
        return False
    return all(each <= HARMLESS for each in largest) and abs(dot.scale) <= HARMLESS  # and no NaN


def _attended(
    call: Call,
    query: Tensor,
    key: Tensor,
    scale: float,
    value: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    leading = call.shape[:-2]
    query, key, value = (_in_four_axes(each, leading) for each in (query, key, value))
    mask = None if mask is None else _mask_in_four_axes(call, mask)
    kind, half = query.dtype, _slow_in_half(call, query, key, value)
    if half:
        query, key, value = query.float(), key.float(), value.float()
        mask = mask.float() if mask is not None and mask.is_floating_point() else mask
    with torch.autocast("cpu", enabled=False) if half else nullcontext():
        output = scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=call.dropout, is_causal=causal, scale=scale
        )
    if output.requires_grad:
        output = differentiable_once(output, "ScaledDotProduct")
    output = output.to(kind) if half else output
    return output if len(leading) == 2 else output.reshape(*call.shape[:-1], value.shape[-1])


def _slow_in_half(call: Call, *rows: Tensor) -> bool:
    """On a CPU the backward pass in half precision takes 20 ms however little there is to do."""
    return (
        rows[0].device.type == "cpu"
        and rows[0].dtype in HALF
        and call.shape[-1] < WIDE_KEYS
        and torch.is_grad_enabled()
        and any(each.requires_grad for each in rows)
    )


def _is_causal(call: Call) -> bool:
    """Whether its own causal mask, aligned at the start, is the whole mask asked for."""
    mask = call.mask
    if not isinstance(mask, Causal):
        return False
    # Aligned at the start, keys behind the last query are seen by none and must be cleared, which it does not do.
    # A plain bool, decided here: under torch.compile with sizes of any kind a comparison is only a symbol.
    if mask.align == "start":
        return True if call.shape[-2] >= call.shape[-1] else False  # noqa: SIM210
    return True if call.shape[-2] == call.shape[-1] else False  # noqa: SIM210


def _widened(call: Call) -> bool:
    """Whether the value's leading axes are more than the scores'."""
    assert call.given_value is not None
    own, leading = call.given_value.shape[:-2], call.shape[:-2]
    if own == leading:
        return False
    if call.groups > 1:
        own = shared(call.given_value, call.groups).shape[:-2]
    return len(own) > len(leading) or any(
        size not in (1, there) for size, there in zip(reversed(own), reversed(leading), strict=False)
    )


def _joined(call: Call, kept: Kept | None) -> tuple[Tensor, Tensor | None]:
    """Bias and mask as the one argument it has for both, and which rows have something to attend to (None: all).

    A row without may see everything here: what it gives is cleared afterwards.
    """
    if call.bias is None:
        assert kept is not None
        if kept.queries is None:
            return kept.cells, None
        alive = kept.queries.unsqueeze(-1)
        return kept.cells | ~alive, alive
    bias = call.bias if kept is None else torch.where(kept.cells, call.bias, -torch.inf)
    bias = bias if bias.ndim > 1 else bias.reshape(1, -1)
    empty = torch.isneginf(bias).all(-1, keepdim=True)
    return _narrowed(torch.where(empty, 0.0, bias), call.query.dtype), ~empty


def _narrowed(bias: Tensor, kind: torch.dtype) -> Tensor:
    """In the query's kind of numbers. What is too large for it would be endless: a softmax minds differences alone, so
    that each row may be counted from its largest, and what is farther below than the kind can say weighs nothing.
    """
    if torch.finfo(bias.dtype).max <= torch.finfo(kind).max:
        return bias.to(kind)
    lower = bias - bias.detach().amax(-1, keepdim=True)
    return torch.where(torch.isneginf(lower), -torch.inf, lower.clamp(min=torch.finfo(kind).min)).to(kind)


def _mask_in_four_axes(call: Call, cells: Tensor) -> Tensor:
    rank = len(call.shape)
    if rank == 3:
        cells = cells if cells.ndim < 3 else cells.unsqueeze(-3)
    elif rank > 4:
        cells = cells.expand(call.shape).reshape(-1, *call.shape[-3:])
    return cells.expand(*cells.shape[:-2], *call.shape[-2:])


def _in_four_axes(rows: Tensor, leading: torch.Size) -> Tensor:
    """[batch, heads, length, width], which its fast kernels want: leading axes broadcast and joined."""
    if len(leading) == 2:
        return rows if rows.shape[:-2] == leading else rows.expand(*leading, *rows.shape[-2:])
    four = (1, 1) if not leading else (leading[0], 1) if len(leading) == 1 else (leading[:-1].numel(), leading[-1])
    return rows.expand(*leading, *rows.shape[-2:]).reshape(*four, *rows.shape[-2:])
