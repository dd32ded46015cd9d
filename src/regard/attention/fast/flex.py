"""FlexAttention on a GPU, for masks that are rules: the blocks a rule leaves out are never computed.

It is taken where the table of booleans would be large; for less, or on a CPU (where it has no backward),
scaled_dot_product_attention is as good. The kernel is compiled at first use for each rule.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from regard.attention.call import Call, cleared
from regard.attention.fast import sdpa
from regard.attention.masks import Causal, Mask, holds_cells
from regard.attention.places import Indices
from regard.attention.scores import DotScore

# From how many cells of the mask on it pays to compile a kernel rather than to write the cells down.
WORTHWHILE = 1 << 22
ROWS_AT_ONCE = 256


def obstacle(call: Call) -> str | None:
    if call.query.device.type != "cuda":
        return "it runs on a GPU only"
    if call.mask is None or (isinstance(call.mask, Causal) and call.shape[-1] == call.shape[-2]):
        return "without a mask, or with a plain causal one, scaled_dot_product_attention is as fast"
    if (said := sdpa.obstacle(call)) is not None:
        return said
    if holds_cells(call.mask):
        return "the mask is a table of cells, not a rule"
    if call.bias is not None:
        return "a bias would have to be compiled into it"
    if call.dropout > 0:
        return "it has no dropout"
    if len(call.shape) != 4:
        return "it takes [batch, heads, length, width]"
    if call.shape[0] * call.shape[-1] * call.shape[-2] < WORTHWHILE:
        return "the mask is small"
    return None


def run(call: Call, attention: Callable[..., Any] | None = None) -> Tensor:
    """`attention` stands in for the compiled kernel where there is no GPU to compile for."""
    from torch.nn.attention.flex_attention import create_block_mask

    assert call.mask is not None
    queries, keys = call.shape[-2:]
    holds = predicate(call.mask.on(call.query.device), keys - queries)
    block_mask = create_block_mask(holds, call.shape[0], None, queries, keys, device=str(call.query.device))
    alive, seen = _alive_and_seen(call)
    assert isinstance(call.score, DotScore)
    dot = call.score.as_dot(cleared(call.query, alive), cleared(call.key, seen))
    value = cleared(call.value, seen)
    four = (each.expand(*call.shape[:2], *each.shape[-2:]) for each in (dot.query, dot.key, value))
    output = (attention or _compiled())(*four, block_mask=block_mask, scale=dot.scale)
    assert isinstance(output, Tensor)
    return torch.where(alive.unsqueeze(-1), output, 0.0)


def predicate(mask: Mask, shift: int) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """The rule in the form flex asks it: booleans from indices of batch, head, query and key."""

    def holds(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return mask.holds(Indices(batch, head, query, key, shift))

    return holds


def _alive_and_seen(call: Call) -> tuple[Tensor, Tensor]:
    """Queries [B, H or 1, T] that see some key and keys [B, H or 1, S] that some query sees, without a [T, S] table."""
    assert call.mask is not None
    queries, keys = call.shape[-2:]
    device = call.query.device
    batch, head = (torch.arange(size, device=device) for size in call.shape[:2])
    key = torch.arange(keys, device=device)
    alive, seen = [], torch.zeros(1, 1, keys, dtype=torch.bool, device=device)
    for start in range(0, queries, ROWS_AT_ONCE):
        query = torch.arange(start, min(start + ROWS_AT_ONCE, queries), device=device)
        at = Indices(batch.view(-1, 1, 1, 1), head.view(1, -1, 1, 1), query.view(-1, 1), key, keys - queries)
        cells = call.mask.holds(at)
        cells = cells.view((1,) * (4 - cells.ndim) + cells.shape)
        cells = cells.expand(-1, -1, len(query), keys)
        alive.append(cells.any(-1))
        seen = seen | cells.any(-2)
    return torch.cat(alive, -1), seen


@cache
def _compiled() -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)
