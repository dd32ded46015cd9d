"""Additive scores on a CPU as a PyTorch operation, so that autograd and torch.compile know it.

`additive_scores(q, k, v, keep)` gives v · tanh(q + k) [N, T, S] for q [N, T, D], k [N, S, D] and v [D] in float32, by
the compiled form where there is one, else by blocks. Where `keep` (booleans that broadcast to [N, T, S]) is False, the
score is some finite number.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.attention.fast.additive import blocks, native

FEW = 256
"""Pairs of a sequence, from which on blocks pay."""

library: Any = torch.library.Library("regard", "FRAGMENT")  # type: ignore[no-untyped-call]
library.define("additive_scores(Tensor q, Tensor k, Tensor v, Tensor? keep) -> Tensor")
library.define("additive_scores_backward(Tensor q, Tensor k, Tensor v, Tensor grad) -> (Tensor, Tensor, Tensor)")


def additive_scores(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None = None) -> Tensor:
    run: Callable[..., Tensor] = _Scores.apply if torch.is_grad_enabled() else _op
    return run(q, k, v, keep)


class _Scores(torch.autograd.Function):
    """As torch.library.custom_op it would take 50 microseconds more at each of a decoder's steps."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Tensor:
        ctx.save_for_backward(q, k, v)
        found: Tensor = _op(q, k, v, keep)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v = ctx.saved_tensors
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # a gradient of gradients was asked for
            return *torch.autograd.grad(_plainly(q, k, v), (q, k, v), grad, create_graph=True, allow_unused=True), None
        return *_backward_op(q, k, v, grad), None


def _forward(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Tensor:
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    if (code := native.built().code) is not None:
        cells = None if keep is None else keep.expand(q.shape[0], q.shape[1], k.shape[1])
        return native.forward(code, q, k, v, cells)
    return _plainly(q, k, v) if q.shape[1] * k.shape[1] < FEW else blocks.forward(q, k, v)


def _backward(q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v, grad = q.contiguous(), k.contiguous(), v.contiguous(), grad.contiguous()
    if (code := native.built().code) is not None:
        return native.backward(code, q, k, v, grad)
    if q.shape[1] * k.shape[1] >= FEW:
        return blocks.backward(q, k, v, grad)
    hidden = torch.tanh(q.unsqueeze(2) + k.unsqueeze(1))
    slope = grad.unsqueeze(-1) * (1 - hidden.square())
    return slope.sum(2) * v, slope.sum(1) * v, grad.flatten() @ hidden.flatten(0, 2)


def _plainly(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.tanh(q.unsqueeze(2) + k.unsqueeze(1)) @ v


def _fake_forward(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Tensor:
    return q.new_empty(q.shape[0], q.shape[1], k.shape[1])


def _fake_backward(q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


library.impl("additive_scores", _forward, "CPU")
library.impl("additive_scores_backward", _backward, "CPU")
torch.library.register_fake("regard::additive_scores", _fake_forward, lib=library)
torch.library.register_fake("regard::additive_scores_backward", _fake_backward, lib=library)
_op = torch.ops.regard.additive_scores.default
_backward_op = torch.ops.regard.additive_scores_backward.default
