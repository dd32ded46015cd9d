"""Outputs over an encoder: a tag for each word, a label for each sequence.

Shape letters: B sentences, S places, W words, d width, V tags or labels.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from regard.attention import attend, masks, scores
from regard.models.checks import check_words
from regard.models.contract import Encoded, Encoder, Labeller, Tagger
from regard.models.head_settings import HeadSettings
from regard.models.padding import only_real, real_places
from regard.models.sizes import Sizes
from regard.tracing.labels import label


class Worded(NamedTuple):
    """The memory of a tagger: vectors of tokens, and of how many tokens each word is made."""

    states: Tensor
    """[B, S, d]."""
    lengths: Tensor | None = None
    """[B] tokens of each sentence."""
    words: Tensor | None = None
    """[B, W] tokens of each word, one word after the other, 0 where there is none; None: each token is a word."""

    def select(self, index: Tensor) -> "Worded":
        lengths, words = (None if each is None else each[index] for each in self[1:])
        return Worded(self.states[index], lengths, words)


class EncoderTagger(Tagger):
    """y_w = V h_w + b for each word w, h_w pooled from the vectors of its tokens."""

    def __init__(self, settings: HeadSettings, sizes: Sizes, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.pooling = encoder, settings.words
        self.head = Head(settings, encoder.width, sizes.need("tags", "a tagger"))

    def encode(self, source: Tensor, lengths: Tensor | None = None, words: Tensor | None = None) -> Worded:
        states, lengths = self.encoder(source, lengths)
        check_words(words, states)
        return Worded(states, lengths, None if words is None else words.to(states.device))

    def predict(self, memory: Worded) -> Tensor:  # type: ignore[override]
        logits: Tensor = self.head(self.pooled(memory))
        return logits

    def pooled(self, memory: Worded) -> Tensor:
        """[B, W, d]: a vector for each word; 0 where there is none."""
        if memory.words is None:
            return memory.states
        ends = memory.words.cumsum(-1)
        if self.pooling != "mean" and memory.states.shape[1]:
            at = ends - (memory.words if self.pooling == "first" else 1)
            at = at.clamp(0, memory.states.shape[1] - 1).unsqueeze(-1)
            chosen = memory.states.gather(1, at.expand(-1, -1, memory.states.shape[-1]))
            return torch.where(memory.words.unsqueeze(-1) > 0, chosen, 0.0)
        place = torch.arange(memory.states.shape[1], device=ends.device)
        within = (place >= (ends - memory.words).unsqueeze(-1)) & (place < ends.unsqueeze(-1))
        share = within / memory.words.clamp(min=1).unsqueeze(-1)
        return share.to(memory.states.dtype) @ memory.states


class Labelled(NamedTuple):
    """What a labeller says, and where it looked."""

    logits: Tensor
    """[B, labels]."""
    weights: Tensor | None
    """[B, S], where the sequence was pooled by attention."""


class EncoderLabeller(Labeller):
    """y = V p + b, p pooled from the vectors of all places."""

    def __init__(self, settings: HeadSettings, sizes: Sizes, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.pooling = encoder, settings.pooling
        self.attention = AttentionPooling(encoder.width) if settings.pooling == "attention" else None
        self.head = Head(settings, encoder.width, sizes.need("labels", "a classifier"))

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        states, lengths = self.encoder(source, lengths)
        return Encoded(states, None if lengths is None else lengths.to(states.device))

    def predict(self, memory: Encoded) -> Tensor:  # type: ignore[override]
        return self.looked(memory).logits

    def looked(self, memory: Encoded) -> Labelled:
        """The logits, and the weights of the places where the pooling has some."""
        pooled, weights = self.pooled(memory)
        return Labelled(self.head(pooled), weights)

    def pooled(self, memory: Encoded) -> tuple[Tensor, Tensor | None]:
        """[B, d], and the weights [B, S] of an attention; a sequence of nothing is pooled to 0."""
        states, lengths = memory
        if self.attention is not None:
            pooled, weights = self.attention(states, lengths)
            return pooled, weights
        if lengths is None:
            lengths = torch.full((len(states),), states.shape[1], device=states.device)
        if self.pooling == "mean" or not states.shape[1]:
            return only_real(states, lengths).sum(1) / lengths.clamp(min=1).unsqueeze(-1), None
        if self.pooling == "max":
            real = real_places(lengths, states.shape[1]).unsqueeze(-1)
            chosen = torch.where(real, states, -torch.inf).amax(1)
        else:
            at = torch.zeros_like(lengths) if self.pooling == "first" else (lengths - 1).clamp(min=0)
            chosen = states[torch.arange(len(states), device=states.device), at]
        return torch.where(lengths.unsqueeze(-1) > 0, chosen, 0.0), None


class AttentionPooling(nn.Module):
    """p = Σ α_j h_j, α = softmax(v · tanh(q + h_j W_k + b)): one learned query asks every place."""

    def __init__(self, width: int) -> None:
        super().__init__()
        # Without a matrix of its own the query is one vector more in the sum, which the bias is already.
        score = scores.Additive.of(width, width, width)
        self.score = scores.Additive(None, score.W_k, score.v, None)
        self.query = nn.Parameter(score.b.detach().clone() if score.b is not None else torch.zeros(width))

    def forward(self, states: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        query = label(self.query, "q").expand(len(states), 1, -1)
        mask = None if lengths is None else masks.lengths(lengths)
        output, details = attend(query, states, states, score=self.score, mask=mask, details=True)
        return output.squeeze(1), details.weights.squeeze(1)


class Head(nn.Module):
    """y = V x + b, or with a hidden layer y = V tanh(W x + c) + b."""

    def __init__(self, settings: HeadSettings, width: int, answers: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, settings.hidden) if settings.hidden else None
        self.answer = nn.Linear(settings.hidden or width, answers)
        self.dropout = settings.dropout

    def forward(self, x: Tensor) -> Tensor:
        x = dropout(x, self.dropout) if self.training and self.dropout > 0 else x
        x = x if self.hidden is None else torch.tanh(self.hidden(x))
        return label(self.answer(x), "logits", "V x + b")
