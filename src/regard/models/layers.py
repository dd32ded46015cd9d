"""What Transformers are made of: normalisation, feed-forward networks, blocks, the way from vectors to logits.

    pre:  x + f(norm(x))          post: norm(x + f(x))          f: attention, cross-attention, feed-forward

Shape letters: B batch, T places, S places of the memory, d width, f width of the hidden layer, V vocabulary.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention import Attended, Cache, Mask, MultiHead
from regard.attention.positions import Positions
from regard.models.dropping import add_dropped, drop
from regard.models.transformer_settings import TransformerSettings
from regard.models.written import Together
from regard.tracing.labels import active, label, renamed

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
}


def norm(settings: TransformerSettings) -> nn.Module:
    if settings.norm == "none":
        return nn.Identity()
    if settings.norm == "rms":
        return nn.RMSNorm(settings.width, eps=settings.norm_epsilon)
    return nn.LayerNorm(settings.width, eps=settings.norm_epsilon)


class FeedForward(nn.Module):
    """y = act(x W_inner) W_outer, or gated: y = (act(x W_gate) · (x W_inner)) W_outer (Shazeer 2020)."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        width, hidden = settings.width, settings.feed_forward
        self.inner = nn.Linear(width, hidden, settings.bias)
        self.gate = nn.Linear(width, hidden, settings.bias) if settings.gated else None
        self.outer = nn.Linear(hidden, width, settings.bias)
        self.activation = ACTIVATIONS[settings.activation]
        self.dropout = settings.activation_dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.inner(x)
        hidden = self.activation(hidden) if self.gate is None else self.activation(self.gate(x)) * hidden
        if self.training and self.dropout > 0:
            hidden = drop(hidden, self.dropout)
        y: Tensor = self.outer(hidden)
        return y


class Source(NamedTuple):
    """The memory as one block reads it: keys and values projected, and which of its places are real."""

    projected: Cache
    mask: Mask | None


class Through(NamedTuple):
    """What comes out of a block."""

    x: Tensor
    cache: Cache
    """Keys and values of its self-attention."""
    weights: Tensor | None
    """[B, H, T, S] of its cross-attention, where they were asked for and it has one."""


class Block(nn.Module):
    """Self-attention, cross-attention (in a decoder that has a memory), a feed-forward network; each adds to x."""

    def __init__(self, settings: TransformerSettings, positions: Positions, *, crosses: bool) -> None:
        super().__init__()
        self.attention = heads(settings, positions)
        self.attention_norm = norm(settings)
        self.cross = heads(settings) if crosses else None
        self.cross_norm = norm(settings) if crosses else None
        self.feed_forward = FeedForward(settings) if settings.feed_forward else None
        self.feed_forward_norm = norm(settings) if settings.feed_forward else None
        self.pre, self.dropout = settings.norm_place == "pre", settings.dropout

    def forward(
        self,
        x: Tensor,
        mask: Mask | None,
        cache: Cache | None = None,
        source: Source | None = None,
        *,
        together: Together | None = None,
        want_weights: bool = False,
    ) -> Through:
        attended = self._own(self.before(x, self.attention_norm), mask, cache, together)
        x, cache, weights = self.after(x, attended.output, self.attention_norm), attended.cache, None
        if self.cross is not None:
            assert source is not None
            looked = self._looked(self.before(x, self.cross_norm), source, want_weights)
            x, weights = self.after(x, looked.output, self.cross_norm), looked.weights
        if self.feed_forward is not None:
            added = self.feed_forward(self.before(x, self.feed_forward_norm))
            x = self.after(x, added, self.feed_forward_norm)
        return Through(x, cache, weights)

    def _own(self, x: Tensor, mask: Mask | None, cache: Cache | None, together: Together | None) -> Attended:
        """Self-attention: of each row to what it wrote, or of the rows of a beam to what they share."""
        if together is None:
            attended: Attended = self.attention(x, mask=mask, cache=cache)
            return attended
        return self.attention.attend_together(
            x, cache, groups=together.groups, start=together.start, times=together.times, mask=together.mask
        )

    def _looked(self, x: Tensor, source: Source, want_weights: bool) -> Attended:
        """Cross-attention. The rows of one sentence stand in x one after the other, and share its one memory."""
        assert self.cross is not None
        sentences = source.projected.key.shape[0]
        together = x.reshape(sentences, -1, x.shape[-1])
        with crossing():
            attended = self.cross.attend_to(together, source.projected, mask=source.mask, want_weights=want_weights)
        return attended._replace(output=attended.output.reshape(x.shape))

    def before(self, x: Tensor, norm: nn.Module | None) -> Tensor:
        assert norm is not None
        return norm(x) if self.pre else x

    def after(self, x: Tensor, added: Tensor, norm: nn.Module | None) -> Tensor:
        assert norm is not None
        x = label(add_dropped(x, added, self.dropout if self.training else 0.0), "X", "X + f(X)")
        return x if self.pre else norm(x)


def crossing() -> AbstractContextManager[None]:
    """While a derivation is recorded, cross-attention has names of its own: cross.Q, cross.K, …"""
    return renamed(**{each: f"cross.{each}" for each in "QKVEMAO"}) if active() else nullcontext()


def heads(settings: TransformerSettings, positions: Positions | None = None) -> MultiHead:
    return MultiHead(
        settings.width, settings.heads, kv_heads=settings.kv_heads, head_width=settings.head_width, bias=settings.bias,
        out=settings.out_projection, score=settings.score, normalise=settings.normalise, positions=positions,
        dropout=settings.attention_dropout,
    )  # fmt: skip


class Output(nn.Module):
    """h → logits [..., V]: h Wᵀ + b, or by nearness to each word's vector |h|² - |h - W_v|² (+ b)."""

    def __init__(
        self,
        width: int,
        vocabulary: int,
        *,
        tied: nn.Embedding | None = None,
        bias: bool = False,
        nearest: bool = False,
    ) -> None:
        super().__init__()
        if tied is None:
            tied = nn.Embedding(vocabulary, width)
            nn.init.normal_(tied.weight, std=width**-0.5)  # so that a first guess is not a sure one
        self.vectors = tied
        self.bias = nn.Parameter(torch.zeros(vocabulary)) if bias else None
        self.nearest = nearest

    def forward(self, h: Tensor, columns: Tensor | None = None) -> Tensor:
        """`columns`: the logits of these words alone, in this order."""
        weight: Tensor = self.vectors.weight
        bias: Tensor | None = self.bias
        if columns is not None:
            weight, bias = weight[columns], None if bias is None else bias[columns]
        if not self.nearest:
            return label(functional.linear(h, weight, bias), "logits", "H Wᵀ" if bias is None else "H Wᵀ + b")
        # -|h - w|² = 2 h·w - |w|² - |h|², where |h|² says nothing of a word and would only cost the others' digits.
        short = -weight.square().sum(-1) if bias is None else bias - weight.square().sum(-1)
        return label(functional.linear(2 * h, weight, short), "logits", "|H|² - |H - W_v|²")
