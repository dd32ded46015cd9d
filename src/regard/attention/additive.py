"""Additive attention as one function, for models that are not ours."""

from torch import Tensor

from regard.attention.core import Implementation, attend
from regard.attention.masks import Mask
from regard.attention.scores import Additive


def additive_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    v: Tensor,
    *,
    W_q: Tensor | None = None,
    W_k: Tensor | None = None,
    b: Tensor | None = None,
    mask: Mask | Tensor | None = None,
    implementation: Implementation = "auto",
) -> Tensor:
    """softmax(v · tanh(query W_q + key W_k + b)) value (Bahdanau, Cho and Bengio 2015), differentiable in all of them.

    query [..., T, d_q], key [..., S, d_k], value [..., S, e], W_q [d_q, w], W_k [d_k, w], v [w], b [w]; without a
    matrix a query or key comes in multiplied already. `mask` is one of `regard.attention.masks` or booleans that
    broadcast to [..., T, S], True = may attend. Returns [..., T, e].
    """
    return attend(query, key, value, score=Additive(W_q, W_k, v, b), mask=mask, implementation=implementation)
