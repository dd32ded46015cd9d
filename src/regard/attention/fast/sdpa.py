"""scaled_dot_product_attention, where it gives the answer of `core`.

It leaks NaN from masked places, gives NaN or means for rows with nothing to attend to (by back end and version)
and aligns its causal mask at the start. So masked keys are zeroed first, empty rows may see everything and are
cleared afterwards, and its own causal mask is used only where both alignments agree.
"""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from regard.attention import normalise
from regard.attention.call import Call
from regard.attention.masks import Causal
from regard.attention.scores import DotScore


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
    if call.shape.numel() == 0:
        return "there is nothing to compute"
    if call.given_value.ndim > len(call.shape) or call.widened_by_value:
        return "the value has leading axes that query and key do not have"
    return None


def run(call: Call) -> Tensor:
    query, key, value = call.query, call.key, call.value
    assert value is not None
    causal = _is_causal(call)
    keep = None if causal or call.mask is None else call.keep
    alive = None
    if keep is not None:
        alive, seen = keep.any(-1, keepdim=True), keep.any(-2)
        query, key, value = (
            call.without(query, alive.squeeze(-1)),
            call.without(key, seen),
            call.without(value, seen),
        )
        keep = keep | ~alive
    assert isinstance(call.score, DotScore)
    dot = call.score.as_dot(query, key)
    four = [_in_four_axes(call, each) for each in (dot.query, dot.key, value)]
    output = scaled_dot_product_attention(
        four[0],
        four[1],
        four[2],
        attn_mask=_joined(call, keep),
        dropout_p=call.dropout,
        is_causal=causal,
        scale=dot.scale,
    ).reshape(*call.shape[:-1], value.shape[-1])
    return output if alive is None else output.masked_fill(~alive, 0.0)


def _is_causal(call: Call) -> bool:
    """Whether its own causal mask, aligned at the start and with no other beside it, is the mask asked for."""
    aligned = isinstance(call.mask, Causal) and (call.mask.align == "start" or call.shape[-2] == call.shape[-1])
    return aligned and call.bias is None


def _joined(call: Call, keep: Tensor | None) -> Tensor | None:
    """Bias and mask as the one argument it has for both, in its four axes."""
    if call.bias is None:
        return None if keep is None else _mask_in_four_axes(call, keep)
    bias = call.bias.to(call.query.dtype)
    return _mask_in_four_axes(call, bias if keep is None else torch.where(keep, bias, -torch.inf))


def _mask_in_four_axes(call: Call, cells: Tensor) -> Tensor:
    rank = len(call.shape)
    if rank == 3:
        cells = cells if cells.ndim < 3 else cells.unsqueeze(-3)
    elif rank > 4:
        cells = cells.expand(call.shape).reshape(-1, *call.shape[-3:])
    return cells.expand(*cells.shape[:-2], *call.shape[-2:])


def _in_four_axes(call: Call, rows: Tensor) -> Tensor:
    """[batch, heads, length, width], which its fast kernels want: leading axes broadcast and joined."""
    leading = call.shape[:-2]
    four = (1, 1) if not leading else (leading[0], 1) if len(leading) == 1 else (leading[:-1].numel(), leading[-1])
    return rows.expand(*leading, *rows.shape[-2:]).reshape(*four, *rows.shape[-2:])
