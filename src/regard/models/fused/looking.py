"""Attention of heads that stand side by side in the rows that products give and take: nothing is laid out anew.

Shape letters: B sentences, T queries, S keys, H heads, d width of a head, L layers.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.attention import attend, masks
from regard.attention.fast.short import gpu
from regard.attention.fast.short.gpu import FREE, SHORT, WIDEST, Rows


@dataclass(frozen=True)
class Heads:
    """What is looked at how: B sentences, T queries, S keys; lengths [B] int32 of the keys, None is all of them."""

    sentences: int
    queries: int
    keys: int
    heads: int
    width: int
    lengths: Tensor | None
    causal: bool

    @property
    def short(self) -> bool:
        """Whether the kernels of short rows serve."""
        return max(self.queries, self.keys) <= SHORT and self.width <= WIDEST

    def rows(self, q: Tensor, k: Tensor, v: Tensor) -> Rows:
        shift = self.keys - self.queries if self.causal else FREE
        return Rows(q, k, v, None, self.lengths, None, shift, self.width**-0.5)

    def attended(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """[B T, H d], by `attend`, whatever the lengths."""
        mask = masks.causal() if self.causal else None if self.lengths is None else masks.lengths(self.lengths)
        mixed = attend(*(each.transpose(1, 2) for each in (q, k, v)), mask=mask)
        assert isinstance(mixed, Tensor)
        return mixed.transpose(1, 2).reshape(self.sentences * self.queries, -1)


class Own(torch.autograd.Function):
    """Of rows [B T, 3 H d] that hold queries, keys and values."""

    @staticmethod
    def forward(ctx: Any, joined: Tensor, heads: Heads) -> Tensor:
        rows = heads.rows(*_apart(joined, heads))
        out, lse = gpu.forward(rows, joined.device.type == "cpu")
        ctx.heads = heads
        ctx.save_for_backward(joined, lse)
        return out.view(len(joined), -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        joined, lse = ctx.saved_tensors
        rows = ctx.heads.rows(*_apart(joined, ctx.heads))
        gradient = torch.empty_like(joined)
        gpu.backward(rows, lse, grads[0].view_as(rows.q), joined.device.type == "cpu", _apart(gradient, ctx.heads))
        return gradient, None


def own(joined: Tensor, heads: Heads) -> Tensor:
    """Self-attention [B T, 3 H d] → [B T, H d]."""
    if not heads.short:
        return heads.attended(*_apart(joined, heads))
    out: Tensor = Own.apply(joined, heads)  # type: ignore[no-untyped-call]
    return out


def _apart(joined: Tensor, heads: Heads) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = joined.view(heads.sentences, heads.queries, 3, heads.heads, heads.width).unbind(2)
    return q, k, v


class Memory:
    """Keys and values of all layers of a decoder [B S, L 2 H d], and room for their gradients, which the layers fill
    one after the other: the first layer, whose turn is the last, hands it on."""

    def __init__(self, joined: Tensor, layers: int) -> None:
        self.joined, self.layers = joined, layers
        self.gradient: Tensor | None = None

    def of(self, joined: Tensor, layer: int, heads: Heads) -> tuple[Tensor, Tensor]:
        parts = joined.view(heads.sentences, heads.keys, self.layers, 2, heads.heads, heads.width)
        return parts[:, :, layer, 0], parts[:, :, layer, 1]


class Looked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, joined: Tensor, memory: Memory, layer: int, heads: Heads) -> Tensor:
        rows = heads.rows(_split(q, heads), *memory.of(joined, layer, heads))
        out, lse = gpu.forward(rows, q.device.type == "cpu")
        ctx.memory, ctx.layer, ctx.heads = memory, layer, heads
        ctx.save_for_backward(q, joined, lse)
        return out.view_as(q)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, joined, lse = ctx.saved_tensors
        memory, layer, heads = ctx.memory, ctx.layer, ctx.heads
        rows = heads.rows(_split(q, heads), *memory.of(joined, layer, heads))
        if memory.gradient is None:
            memory.gradient = torch.empty_like(joined)
        dq, (of_key, of_value) = torch.empty_like(q), memory.of(memory.gradient, layer, heads)
        into = _split(dq, heads), of_key, of_value
        gpu.backward(rows, lse, grads[0].view_as(rows.q), q.device.type == "cpu", into)
        whole = memory.gradient if layer == 0 else None
        memory.gradient = None if layer == 0 else memory.gradient
        return dq, whole, None, None, None


def looked(q: Tensor, memory: Memory, layer: int, heads: Heads) -> Tensor:
    """Cross-attention of queries [B T, H d] → [B T, H d]."""
    if not heads.short:
        return heads.attended(_split(q, heads), *memory.of(memory.joined, layer, heads))
    out: Tensor = Looked.apply(q, memory.joined, memory, layer, heads)  # type: ignore[no-untyped-call]
    return out


def _split(q: Tensor, heads: Heads) -> Tensor:
    return q.view(heads.sentences, heads.queries, heads.heads, heads.width)
