"""attend and weigh: score → bias → mask → normalise → mix. Keys are weighed nowhere else.

    E = score(Q, K) + bias          M = E where the mask holds, -inf elsewhere
    A = normalise(M)                O = dropout(A) V

This file is the specification; `fast` holds quicker ways to the same numbers and the table that picks among
them. Shapes: query [..., T, d], key [..., S, d], value [..., S, e]. From four axes up, axis -3 is heads, and
fewer key heads than query heads are shared by groups; the axes before broadcast.
"""

from dataclasses import dataclass
from typing import Literal, overload

import torch
from torch import Tensor
from torch.nn.functional import dropout as drop

from regard.attention import checks, scores
from regard.attention import normalise as normalisers
from regard.attention.call import Call, cleared
from regard.attention.fast import choice, sdpa
from regard.attention.masks import Mask
from regard.attention.normalise import Drawn, Normaliser
from regard.attention.scores import Score
from regard.attention.settled import Kept
from regard.tracing.labels import active, label

Implementation = Literal["auto", "reference", "fused"]


@dataclass(frozen=True)
class Details:
    """What there is to see of one `attend`, beside its output."""

    weights: Tensor
    """[..., T, S], one set a head, before dropout."""
    log_prob: Tensor | None = None
    """[..., T] of the choices, where the normaliser draws them."""
    coverage: Tensor | None = None
    """[..., S], earlier weights and these, where the score reads coverage."""
    entropy: Tensor | None = None
    """[..., T] of the distribution drawn from, where the normaliser draws."""


@overload
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score | str = ...,
    bias: Tensor | None = ...,
    mask: Mask | Tensor | None = ...,
    normalise: Normaliser | str = ...,
    dropout: float = ...,
    generator: torch.Generator | None = ...,
    implementation: Implementation = ...,
    details: Literal[False] = ...,
) -> Tensor: ...


@overload
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score | str = ...,
    bias: Tensor | None = ...,
    mask: Mask | Tensor | None = ...,
    normalise: Normaliser | str = ...,
    dropout: float = ...,
    generator: torch.Generator | None = ...,
    implementation: Implementation = ...,
    details: Literal[True],
) -> tuple[Tensor, Details]: ...


@overload
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score | str = ...,
    bias: Tensor | None = ...,
    mask: Mask | Tensor | None = ...,
    normalise: Normaliser | str = ...,
    dropout: float = ...,
    generator: torch.Generator | None = ...,
    implementation: Implementation = ...,
    details: bool,
) -> Tensor | tuple[Tensor, Details]: ...


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score | str = scores.PLAIN["scaled_dot"],
    bias: Tensor | None = None,
    mask: Mask | Tensor | None = None,
    normalise: Normaliser | str = normalisers.softmax,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    implementation: Implementation = "auto",
    details: bool = False,
) -> Tensor | tuple[Tensor, Details]:
    """O [..., T, e]: for each query the values, mixed by how much its query has to do with their keys.

    mask: True = may attend; a query with nothing to attend to gets 0. Keys that no query may attend to are
    zeroed first, so nothing in them, NaN included, can leak. bias is added to the scores. dropout falls on the
    weights (times 1 / (1 - p)); pass 0 when not training. With `details=True` also the `Details`, whose weights
    are those before dropout; asking for them never changes the output.
    """
    if value is None:  # to weigh without one there is weigh
        raise ValueError("value: expected a tensor; got NoneType")
    plainly = implementation == "auto" and normalise is normalisers.softmax and not details and bias is None
    if plainly and generator is None and type(dropout) is float and dropout == 0.0:
        quick = sdpa.at_once(query, key, value, score, mask)
        if quick is not None:
            return quick
    call = checks.checked(query, key, value, score, bias, mask, normalise, dropout, generator)
    path = choice.pick(call, implementation)
    if path is not None and path.run is not None:
        output = path.run(call)
        return (output, _details(call, _weights(call, call.kept()))) if details else output
    kept = call.kept()
    drawn = _weights(call, kept, path)
    output = label(_mixed(drawn.weights, call, kept), "O", "A V")
    return (output, _details(call, drawn)) if details else output


def weigh(
    query: Tensor,
    key: Tensor,
    *,
    score: Score | str = scores.PLAIN["scaled_dot"],
    bias: Tensor | None = None,
    mask: Mask | Tensor | None = None,
    normalise: Normaliser | str = normalisers.softmax,
    generator: torch.Generator | None = None,
    implementation: Implementation = "auto",
) -> Tensor:
    """A [..., T, S]: the weights alone. No fused kernel hands them out: only their scores may be had faster."""
    call = checks.checked(query, key, None, score, bias, mask, normalise, 0.0, generator)
    path = choice.pick(call, implementation)  # an explicit wish that cannot be met is an error here as well
    return _weights(call, call.kept(), path).weights


def _weights(call: Call, kept: Kept | None, path: choice.Path | None = None) -> Drawn:
    """The normalised weights in the dtype of the query."""
    query, key = call.query, call.key
    if kept is not None:
        query, key = cleared(query, kept.queries), cleared(key, kept.keys)
    quick = None if path is None else path.scored
    score = call.score(query, key) if quick is None else quick(call.score, query, key, kept)
    # Sums of exponentials lose too much in half precision.
    score = score.float() if score.dtype in (torch.float16, torch.bfloat16) else score
    if call.bias is None:
        label(score, "E", call.score.formula)
    else:
        score = label(score + call.bias, "E", f"{call.score.formula} + bias")
    if kept is not None:
        score = label(torch.where(kept.cells, score, -torch.inf), "M", f"mask(E, {call.mask!r})" if active() else "")
    drawn = _normalised(score, call, kept)
    weights = drawn.weights.to(call.query.dtype)
    return drawn._replace(weights=label(weights, "A", f"{call.normalise.name}({'E' if kept is None else 'M'})"))


def _normalised(score: Tensor, call: Call, kept: Kept | None) -> Drawn:
    """Weights of scores in which some rows may have nothing to attend to: those get 0, and finite gradients."""
    if score.shape[-1] == 0:
        nothing = score.sum(-1)  # no key, no choice: a sum of nothing, 0
        return Drawn(score, nothing, nothing) if call.normalise.chooses else Drawn(score)
    if call.bias is None and (kept is None or kept.queries is None):
        return call.normalise.draw(score, call.generator)
    empty = torch.isneginf(score).all(-1, keepdim=True)
    if active() and not empty.any():
        return call.normalise.draw(score, call.generator)
    # Mended before the exponent: a NaN put right afterwards still has a NaN gradient.
    drawn = call.normalise.draw(torch.where(empty, 0.0, score), call.generator)
    row = empty.squeeze(-1)
    return Drawn(
        torch.where(empty, 0.0, drawn.weights),
        None if drawn.log_prob is None else torch.where(row, 0.0, drawn.log_prob),
        None if drawn.entropy is None else torch.where(row, 0.0, drawn.entropy),
    )


def _mixed(weights: Tensor, call: Call, kept: Kept | None) -> Tensor:
    value = call.value if kept is None else cleared(call.value, kept.keys)
    if call.dropout > 0:
        weights = _dropped(weights, call.dropout, call.generator)
    return weights.to(value.dtype) @ value


def _dropped(weights: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    if generator is None:
        return drop(weights, share)
    stays = torch.rand(weights.shape, device=weights.device, generator=generator) >= share
    return weights * stays / (1 - share) if share < 1 else weights * 0.0


def _details(call: Call, drawn: Drawn) -> Details:
    return Details(drawn.weights, drawn.log_prob, call.score.next_coverage(drawn.weights), drawn.entropy)
