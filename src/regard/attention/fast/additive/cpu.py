"""Additive scores on a CPU: which calls gain by them, and how their rows reach the operation.

Only the scores are computed in another way: masks, normalisers, dropout and mixing are the reference's own, so that
every call with such a score is served, weights included.
"""

import torch
from torch import Tensor
from torch.autograd import forward_ad

from regard.attention.call import Call
from regard.attention.fast import additive
from regard.attention.fast.additive import Hidden, native
from regard.attention.scores import Additive, Concat, Coverage, Score
from regard.attention.scores.coverage import Covered
from regard.attention.scores.hidden import ProjectedAdditive, ProjectedConcat
from regard.attention.settled import Kept

LITTLE = 1 << 14
"""Terms (pairs times width) below which the formula itself is as quick."""
LITTLE_BLOCKS, FEW = 1 << 18, 256
"""Without a compiler: terms, and pairs of a sequence."""


def obstacle(call: Call) -> str | None:
    """What stands in the way, in words; None where nothing does."""
    if call.query.device.type != "cpu":
        return "it is for a CPU"
    return unlike(call) or _elsewhere()


def unlike(call: Call) -> str | None:
    """What of the call itself is not what it computes."""
    own = hidden_of(call.score)
    if own is None:
        return f"the score {call.score.name!r} is no sum under a tanh"
    if isinstance(own, Additive) and own.depth > 1:
        return "the alignment network has more than one hidden layer"
    if 0 in call.shape:
        return "there is nothing to compute"
    if torch.float64 in (call.query.dtype, call.given_key.dtype, own.v.dtype):
        return "it computes in float32; got float64"
    return None


def _elsewhere() -> str | None:
    """Who asks for more than values and gradients."""
    if torch.compiler.is_compiling():
        return "what is exported should run without this package" if torch.compiler.is_exporting() else None
    if torch.jit.is_tracing():  # type: ignore[attr-defined,no-untyped-call]
        return "what is exported should run without this package"
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return "torch.func and forward gradients know the operations of the reference alone"
    return None


def worth(call: Call) -> str | None:
    """Why the formula itself may be as quick. Compiled code, whose sizes may be symbols, is spared the question."""
    if torch.compiler.is_compiling():
        return None
    own = hidden_of(call.score)
    assert own is not None
    terms = call.shape.numel() * own.v.shape[0]
    if terms < LITTLE:
        return "there is too little to compute"
    few = terms < LITTLE_BLOCKS or call.shape[-1] * call.shape[-2] < FEW
    if few and native.built().code is None:
        return f"there is too little to compute for what is not compiled ({native.built().how})"
    return None


def how() -> str:
    """How the scores would be computed."""
    built = native.built()
    return built.how if built.code is not None else f"by products of matrices, since {built.how}"


def hidden_of(score: Score) -> Additive | Concat | None:
    """The score that holds the parameters, where it is v · tanh of a sum."""
    if isinstance(score, (ProjectedAdditive, ProjectedConcat)):
        return score.of
    if isinstance(score, Covered):
        return score.of.additive
    if isinstance(score, Coverage):
        return score.additive
    return score if isinstance(score, (Additive, Concat)) else None


def scored(score: Score, query: Tensor, key: Tensor, kept: Kept | None) -> Tensor:
    """What score(query, key) gives [..., T, S], in float32; where it is masked, some finite number."""
    from regard.attention.fast.additive.cpu_op import additive_scores

    q, k, v = (each.float() for each in under(score, query, key))
    keep = None if kept is None else kept.cells
    if q.ndim == k.ndim == 3 and len(q) == len(k):
        return additive_scores(q, k, v, keep if keep is None or keep.ndim == 3 else keep.unsqueeze(0))
    leading: torch.Size = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])  # type: ignore[no-untyped-call]
    shape = torch.Size((*leading, q.shape[-2], k.shape[-2]))
    if leading[-1:] > (1,) and k.ndim > 2 and k.shape[-3] == 1:  # heads that share their keys are more queries
        q, k, leading = q.flatten(-3, -2), k.squeeze(-3), leading[:-1]
        keep = None if keep is None else keep.expand(shape).flatten(-3, -2)
    q, k = (each.expand(*leading, *each.shape[-2:]).reshape(-1, *each.shape[-2:]) for each in (q, k))
    return additive_scores(q, k, v, _flat(keep, leading)).view(shape)


def _flat(keep: Tensor | None, leading: torch.Size) -> Tensor | None:
    """Booleans [N or 1, T or 1, S or 1]."""
    if keep is None:
        return None
    if keep.shape[:-2].numel() == 1:
        return keep.reshape(1, *keep.shape[-2:])
    return keep.expand(*leading, *keep.shape[-2:]).reshape(-1, *keep.shape[-2:])


def under(score: Score, query: Tensor, key: Tensor) -> Hidden:
    """q, k and v so that the score is v · tanh(q + k)."""
    if isinstance(score, Coverage):
        score = score.additive
    if not isinstance(score, Covered):
        return additive.under(score, query, key)
    found = additive.under(score.of.additive.projected, query, score.project(key))
    if score.so_far is None:
        return found
    return found._replace(k=found.k + score.so_far.unsqueeze(-1) * score.of.w_c)
