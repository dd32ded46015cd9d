"""Attention of heads that stand side by side in the rows that products give and take: nothing is laid out anew.

Shape letters: B sentences, T queries, S keys, H heads, d width of a head, L layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.attention import attend, masks
from regard.attention.fast.short import gpu
from regard.attention.fast.short.gpu import FREE, Rows, too_much
from regard.models.fused.linear import Joined, linear
from regard.models.fused.sums import Slot, Sums


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
    device: torch.device

    @property
    def short(self) -> bool:
        """Whether the kernels of short rows serve."""
        return too_much(max(self.queries, self.keys), self.width, self.device, trains=True) is None

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
    def forward(ctx: Any, joined: Tensor, heads: Heads, slot: Slot | None) -> Tensor:
        rows = heads.rows(*_apart(joined, heads))
        out, lse = gpu.forward(rows, joined.device.type == "cpu")
        ctx.heads, ctx.slot = heads, slot
        ctx.save_for_backward(joined, lse)
        return out.view(len(joined), -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        joined, lse = ctx.saved_tensors
        rows = ctx.heads.rows(*_apart(joined, ctx.heads))
        gradient = torch.empty_like(joined)
        sums, into = _sums(ctx.slot, rows.q, ctx.heads), _apart(gradient, ctx.heads)
        gpu.backward(rows, lse, grads[0].view_as(rows.q), joined.device.type == "cpu", into, sums)
        return gradient, None, None


def own(x: Tensor, layers: Joined, heads: Heads, sums: Sums) -> Tensor:
    """Self-attention of x [B T, D] by its queries, keys and values: [B T, H d]."""
    joined = linear(x, layers, sums, sums_bias=not heads.short)
    if not heads.short:
        return heads.attended(*_apart(joined, heads))
    out: Tensor = Own.apply(joined, heads, _slot(layers.biases, sums))  # type: ignore[no-untyped-call]
    return out


def _slot(biases: Sequence[Tensor], sums: Sums) -> Slot | None:
    return sums.over_sentences.slot(biases) if biases else None


def _sums(slot: Slot | None, like: Tensor, heads: Heads) -> gpu.Gradients | None:
    """Where the gradients of the biases of queries, keys and values are added up, for each sentence."""
    if slot is None:
        return None
    parts, size = slot.parts(like), heads.heads * heads.width
    return parts, parts[:, size:], parts[:, 2 * size :]


def _apart(joined: Tensor, heads: Heads) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = joined.view(heads.sentences, heads.queries, 3, heads.heads, heads.width).unbind(2)
    return q, k, v


class Memory:
    """Keys and values of all layers of a decoder [B S, L 2 H d], and room for their gradients, which the layers fill
    one after the other: the first layer, whose turn is the last, hands it on."""

    def __init__(self, states: Tensor, layers: Joined, heads: Heads, sums: Sums) -> None:
        self.joined = linear(states, layers, sums, sums_bias=not heads.short)
        self.layers, self.biases = len(layers.weights) // 2, layers.biases
        self.gradient: Tensor | None = None

    def of(self, joined: Tensor, layer: int, heads: Heads) -> tuple[Tensor, Tensor]:
        parts = joined.view(heads.sentences, heads.keys, self.layers, 2, heads.heads, heads.width)
        return parts[:, :, layer, 0], parts[:, :, layer, 1]


class Looked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, joined: Tensor, memory: Memory, layer: int, heads: Heads, slot: Slot | None
    ) -> Tensor:
        rows = heads.rows(_split(q, heads), *memory.of(joined, layer, heads))
        out, lse = gpu.forward(rows, q.device.type == "cpu")
        ctx.memory, ctx.layer, ctx.heads, ctx.slot = memory, layer, heads, slot
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
        sums = _sums(ctx.slot, q, heads)
        gpu.backward(rows, lse, grads[0].view_as(rows.q), q.device.type == "cpu", into, sums)
        whole = memory.gradient if layer == 0 else None
        memory.gradient = None if layer == 0 else memory.gradient
        return dq, whole, None, None, None, None


def looked(x: Tensor, query: Joined, memory: Memory, layer: int, heads: Heads, sums: Sums) -> Tensor:
    """Cross-attention of x [B T, D] by its queries: [B T, H d]."""
    q = linear(x, query, sums, sums_bias=not heads.short)
    if not heads.short:
        return heads.attended(_split(q, heads), *memory.of(memory.joined, layer, heads))
    slot = _slot((*query.biases, *memory.biases[2 * layer : 2 * layer + 2]), sums)
    out: Tensor = Looked.apply(q, memory.joined, memory, layer, heads, slot)  # type: ignore[no-untyped-call]
    return out


def _split(q: Tensor, heads: Heads) -> Tensor:
    return q.view(heads.sentences, heads.queries, heads.heads, heads.width)
