"""Additive scores on a CPU as a PyTorch operation, so that autograd and torch.compile know it.

`additive_scores(q, k, v, keep)` gives v · tanh(q + k) [N, T, S] for q [N, T, D], k [N, S, D] and v [D] in float32, by
the compiled form where there is one, else by blocks. Where `keep` (booleans that broadcast to [N, T, S]) is False, the
score is some finite number.
"""

from typing import Any

import torch
from torch import Tensor

from regard.attention.fast.additive import blocks, native

FEW = 256
"""Pairs of a sequence, from which on blocks pay."""

library: Any = torch.library.Library("regard", "FRAGMENT")  # type: ignore[no-untyped-call]
library.define("additive_scores(Tensor q, Tensor k, Tensor v, Tensor? keep) -> Tensor")
library.define("additive_scores_alone(Tensor q, Tensor k, Tensor v, Tensor? keep) -> Tensor")
library.define("additive_scores_backward(Tensor q, Tensor k, Tensor v, Tensor grad) -> (Tensor, Tensor, Tensor)")


def additive_scores(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None = None) -> Tensor:
    found: Tensor
    if torch.compiler.is_compiling():
        found = torch.ops.regard.additive_scores(q, k, v, keep)
    elif torch.is_grad_enabled():
        found = _Scores.apply(q, k, v, keep)  # type: ignore[no-untyped-call]
    else:
        found = _alone(q, k, v, keep)
    return found


class _Scores(torch.autograd.Function):
    """What is registered for compiled code below; called by itself it takes 50 microseconds less."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Tensor:
        found: Tensor = _alone(q, k, v, keep)
        _keep(ctx, (q, k, v, keep), found)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _gradients(ctx, grad)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    q, k, v = ctx.saved_tensors
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # a gradient of gradients was asked for
        wanted = [each for each, needed in zip((q, k, v), ctx.needs_input_grad, strict=False) if needed]
        found = iter(torch.autograd.grad(_plainly(q, k, v), wanted, grad, create_graph=True))
        return *(next(found) if needed else None for needed in ctx.needs_input_grad[:3]), None
    return *torch.ops.regard.additive_scores_backward(q, k, v, grad), None


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


for name, run, fake in (
    ("additive_scores", _forward, _fake_forward), ("additive_scores_alone", _forward, _fake_forward),
    ("additive_scores_backward", _backward, _fake_backward),
):  # fmt: skip
    library.impl(name, run, "CPU")
    torch.library.register_fake(f"regard::{name}", fake, lib=library)
torch.library.register_autograd("regard::additive_scores", _gradients, setup_context=_keep, lib=library)
_alone = torch.ops.regard.additive_scores_alone.default
