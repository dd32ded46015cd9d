"""Additive attention without the tensor of T × S × d that its formula speaks of: Triton kernels for a GPU.

v · tanh(q W_q + k W_k + b) → mask → softmax → mix, forward and backward. `obstacle` and `run` are read by the table
of `fast.choice`; `series` tells how a score of sums becomes a product of matrices.
"""

from functools import lru_cache
from importlib.util import find_spec
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention import normalise
from regard.attention.call import Call, cleared
from regard.attention.masks import Causal, Lengths, Mask, Window
from regard.attention.scores import Additive, Concat, Score
from regard.attention.scores.hidden import ProjectedAdditive, ProjectedConcat

FREE = 1 << 30
"""No bound on that side."""
KINDS = (torch.float32, torch.bfloat16, torch.float16)


class Hidden(NamedTuple):
    """What stands under the tanh, and v: q [..., T, w], k [..., S, w]."""

    q: Tensor
    k: Tensor
    v: Tensor


class Bounds(NamedTuple):
    """A mask as the kernels take it."""

    queries: Tensor
    """[N]: the real ones."""
    keys: Tensor
    keep: Tensor | None
    """[N or 1, T or 1, S or 1]."""
    left: int
    right: int
    shift: int


def obstacle(call: Call) -> str | None:
    """What stands in the way, in words; None where nothing does."""
    if call.query.device.type != "cuda":
        return "its kernels run on a GPU only"
    if find_spec("triton") is None:
        return "triton is not installed"
    return unlike(call)


def unlike(call: Call) -> str | None:
    """What of the call itself is not what the kernels compute."""
    if call.given_value is None:
        return "it does not hand out weights"
    if type(call.score) not in (Additive, ProjectedAdditive, Concat, ProjectedConcat):
        return f"the score {call.score.name!r} is no sum under a tanh"
    if _depth(call.score) > 1:
        return "the alignment network has more than one hidden layer"
    if call.normalise != normalise.softmax:
        return f"it normalises by softmax, not by {call.normalise.name}"
    if call.bias is not None:
        return "it adds no bias to scores"
    if call.dropout > 0:
        return "it has no dropout"
    if 0 in call.shape or 0 in call.given_value.shape:
        return "there is nothing to compute"
    if call.query.dtype not in KINDS or call.given_value.dtype != call.query.dtype:
        return f"it takes float32, bfloat16 and float16; got {call.query.dtype} and {call.given_value.dtype}"
    if _leading(call) != call.shape[:-2]:
        return "the value has leading axes that query and key do not have"
    return None


def run(call: Call) -> Tensor:
    from regard.attention.fast.additive.op import attended

    leading, queries = call.shape[:-2], call.shape[-2]
    query, key, value = call.query, call.key, call.value
    bounds, query, key, value = _bounded(call, query, key, value)
    hidden = under(call.score, query, key)
    q, k, flat = (
        each.expand(*leading, *each.shape[-2:]).reshape(-1, *each.shape[-2:]) for each in (hidden.q, hidden.k, value)
    )
    return attended(q, k, hidden.v, flat, *bounds).reshape(*leading, queries, flat.shape[-1])


def under(score: Score, query: Tensor, key: Tensor) -> Hidden:
    """q and k so that the score is v · tanh(q + k)."""
    if isinstance(score, (ProjectedAdditive, ProjectedConcat)):
        return _under(score.of, query, key)
    assert isinstance(score, (Additive, Concat))
    return _under(score, query, score.project(key))


def _under(score: Additive | Concat, query: Tensor, projected: Tensor) -> Hidden:
    if isinstance(score, Concat):
        return Hidden(query @ score.W[: query.shape[-1]], projected, score.v)
    q = query if score.W_q is None else query @ score.W_q
    return Hidden(q if score.b is None else q + score.b, projected, score.v)


def _bounded(call: Call, query: Tensor, key: Tensor, value: Tensor) -> tuple[Bounds, Tensor, Tensor, Tensor]:
    """The mask in the kernels' terms, and the rows with those cleared that nothing looks at or that look at nothing:
    what stands there must not leak, and the kernels leave out by themselves only what lies beyond a length.
    """
    (*leading, T, S), device = call.shape, query.device
    n = prod(leading)
    all_t, all_s = (_all(n, size, device) for size in (T, S))
    mask = call.mask
    if mask is None:
        return Bounds(all_t, all_s, None, FREE, FREE, 0), query, key, value
    if isinstance(mask, Lengths):
        keys = _each(mask.keys, leading, S, device)
        real = torch.full_like(keys, T) if mask.queries is None else _each(mask.queries, leading, T, device)
        real = torch.where(keys > 0, real, 0)
        return Bounds(real, torch.where(real > 0, keys, 0), None, FREE, FREE, 0), query, key, value
    if (sides := _sides(mask)) is not None:
        left, right, shift = *sides, S - T if _at_end(mask) else 0
        t, s = torch.arange(T, device=device) + shift, torch.arange(S, device=device)
        if not (shift >= -right and T + shift - left <= S):  # a query that sees no key
            query = cleared(query, (t + right >= 0) & (t - left < S))
        if not (shift - left <= 0 and T - 1 + shift + right >= S - 1):  # a key that no query sees
            seen = (s >= shift - left) & (s <= T - 1 + shift + right)
            key, value = cleared(key, seen), cleared(value, seen)
        return Bounds(all_t, all_s, None, left, right, shift), query, key, value
    kept = call.kept()
    assert kept is not None
    cells = kept.cells
    if cells.ndim > 3 or cells.shape[:-2] not in ((), (1,), (n,)):
        cells = cells.expand(*leading, *cells.shape[-2:]).reshape(n, *cells.shape[-2:])
    cells = cells if cells.ndim == 3 else cells.unsqueeze(0)
    query, key, value = cleared(query, kept.queries), cleared(key, kept.keys), cleared(value, kept.keys)
    return Bounds(all_t, all_s, cells, FREE, FREE, 0), query, key, value


def _sides(mask: Mask) -> tuple[int, int] | None:
    """How far each query sees to the left and to the right, where that is all the mask says."""
    if isinstance(mask, Causal):
        return FREE, 0
    if isinstance(mask, Window):
        return FREE if mask.left is None else mask.left, FREE if mask.right is None else mask.right
    return None


def _at_end(mask: Mask) -> bool:
    return isinstance(mask, (Causal, Window)) and mask.align == "end"


@lru_cache(maxsize=64)
def _kept(n: int, size: int, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return torch.full((n,), size, dtype=torch.int32, device=device)


def _all(n: int, size: int, device: torch.device) -> Tensor:
    """[N]: all places of each sequence are real. Made once, but where what is made belongs to a graph or a compiler."""
    if torch.compiler.is_compiling() or (device.type == "cuda" and torch.cuda.is_current_stream_capturing()):
        return torch.full((n,), size, dtype=torch.int32, device=device)
    return _kept(n, size, device)


def _each(counts: Tensor, leading: list[int], most: int, device: torch.device) -> Tensor:
    """[N]: one number for each sequence, none larger than there are places."""
    counts = counts.to(device=device, dtype=torch.int32).clamp(0, most)
    spread = counts if counts.ndim == 0 else counts.view(-1, *(1,) * (len(leading) - 1))
    return spread.expand(leading).reshape(-1).contiguous()


def _depth(score: Score) -> int:
    own = score.of if isinstance(score, ProjectedAdditive) else score
    return own.depth if isinstance(own, Additive) else 1


def _leading(call: Call) -> torch.Size:
    value = call.value.shape[:-2]
    return torch.broadcast_shapes(call.shape[:-2], value)  # type: ignore[no-untyped-call, no-any-return]
