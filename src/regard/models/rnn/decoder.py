"""Recurrent decoders: without attention, with Bahdanau's, with Luong's.

    plain       s_t = cell(E y_{t-1}, s_{t-1})                      logits from s_t
    Bahdanau    c_t asked by s_{t-1}
                s_t = cell([E y_{t-1}; c_t], s_{t-1})               logits from tanh(W [s_t; c_t; E y_{t-1}] + b)
    Luong       s_t = cell([E y_{t-1}; s~_{t-1}], s_{t-1})          (without input feeding: E y_{t-1} alone)
                c_t asked by s_t, s~_t = tanh(W_c [c_t; s_t])       logits from s~_t

Bahdanau's paper has a maxout where a tanh stands here. Shape letters: B sentences, T steps, R rows of hypotheses,
V vocabulary.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import dropout

from regard.models.checks import check_one_vocabulary, check_source
from regard.models.contract import Choices, Encoder, SequenceModel, Step, Taught
from regard.models.inputs import OneHot, words_of
from regard.models.layers import Output
from regard.models.rnn.bridge import Bridge
from regard.models.rnn.encoder import RecurrentEncoder
from regard.models.rnn.layers import Layers, States
from regard.models.rnn.looking import Look, Looking
from regard.models.rnn.memory import Remembered, Stepped, all_real, remembered
from regard.models.rnn.readout import Readout
from regard.models.rnn_settings import SAME_WIDTH, RecurrentSettings
from regard.models.sizes import Sizes
from regard.models.words import Words
from regard.tracing.labels import active, label


class Turn(NamedTuple):
    """One step, before its logits."""

    state: Stepped
    parts: tuple[Tensor, ...]
    """[R, …] each: what the readout joins."""
    top: Tensor | None
    """[R, …]: the readout, where the next step is fed it."""
    look: Look | None


class Recurrent(SequenceModel):
    """A recurrent encoder and decoder; a decoder alone is a language model."""

    settings: RecurrentSettings

    def __init__(
        self, settings: RecurrentSettings, sizes: Sizes, input: Encoder | None = None, *, alone: bool = False
    ) -> None:
        """alone: a decoder without a source, which looks at nothing."""
        super().__init__()
        self.settings, self.sizes = settings, sizes
        self.vocabulary = sizes.need("target", "a sequence out")
        self.encoder = None if alone else RecurrentEncoder(settings.encoder, sizes, input)
        self.bridge = None if self.encoder is None else Bridge(settings, last_width(settings, self.encoder))
        self.words = self._words(settings, sizes)
        asks = None if self.encoder is None else settings.attention
        memory = 0 if self.encoder is None else self.encoder.width
        if asks is not None and asks.scored in SAME_WIDTH and memory != settings.width:
            raise ValueError(
                f"attention.score: {asks.scored} needs a memory as wide as the decoder's state; got {memory} and "
                f"{settings.width} (take the score 'general', encoder layers, or trained vectors of that width)"
            )
        self.attention = None if asks is None else Looking(asks, settings.width, memory)
        self.before = asks is not None and asks.kind == "bahdanau"
        self.readout = Readout(
            settings, self._joined(memory, asks is not None), luong=asks is not None and not self.before
        )
        self.feeds_top = asks is not None and not self.before and asks.feeds
        fed = memory if self.before else self.readout.width if self.feeds_top else 0
        self.cells = Layers(
            settings.cell, self.words.width + fed, settings.width, settings.layers, dropout=settings.dropout, name="s"
        )
        self.output = Output(
            self.readout.width, self.vocabulary, bias=True,
            tied=self.words.vectors if settings.tie_output and isinstance(self.words, Words) else None,
        )  # fmt: skip
        self.dropout = settings.dropout

    def _words(self, settings: RecurrentSettings, sizes: Sizes) -> Words | OneHot:
        """The target's words: with the table of the source's, where the two are to share it."""
        if settings.one_hot_target:
            return OneHot(self.vocabulary)
        if not settings.share_embeddings or self.encoder is None:
            return Words(self.vocabulary, settings.embedding)
        own = words_of(self.encoder)
        if own is None:
            raise ValueError("share_embeddings: the source has no embeddings to share; its words are one-hot")
        check_one_vocabulary(sizes.source, self.vocabulary)
        return own

    def _joined(self, memory: int, looks: bool) -> int:
        """How wide what the readout joins is."""
        width = self.settings.width + (memory if looks else 0)
        return width + self.words.width if self.before else width

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Remembered:
        if self.encoder is None or self.bridge is None:
            return Remembered()
        check_source(source, lengths, places=1, sentences=0 if self.attention is None else 1)
        encoded, last = self.encoder.read(source, lengths)
        if self.attention is None:
            return remembered(encoded.states, None, encoded.lengths, self.bridge(last))
        keys = self.attention.keys(encoded.states)
        return remembered(
            encoded.states, keys, encoded.lengths, self.bridge(last), self.attention.axes, alive=all_real(lengths, 1)
        )

    def start(self, memory: Remembered) -> Stepped:  # type: ignore[override]
        return Stepped(memory.first)

    def step(  # type: ignore[override]
        self,
        tokens: Tensor,
        state: Stepped,
        memory: Remembered,
        *,
        columns: Tensor | None = None,
        want_weights: bool = False,
    ) -> Step:
        x = self._embedded(tokens)
        turn = self._turn(x, self.cells.project(x), self._begun(state, x), memory, want_weights)
        top = self._top([turn.parts], x) if turn.top is None else turn.top
        weights = None if turn.look is None or turn.look.weights is None else turn.look.weights
        seen = None if weights is None else weights.reshape(len(tokens), 1, 1, -1)
        return Step(self.output(self._dropped(top), columns), turn.state, seen if want_weights else None)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        return self.teach(source, target, lengths, target_lengths).logits

    def teach(
        self,
        source: Tensor,
        target: Tensor,
        lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
        *,
        own: float | Tensor | None = None,
    ) -> Taught:
        if own is not None:
            return self._fed_its_own(target, self.encode(source, lengths), own)
        top, choices = self._all_steps(target, self.encode(source, lengths))
        return Taught(self.output(self._dropped(top)), choices)

    def _all_steps(self, target: Tensor, memory: Remembered) -> tuple[Tensor, Choices | None]:
        """The readout of every step [B, T, …]."""
        x = self._embedded(target)
        if not x.shape[1]:
            return x.new_zeros(*x.shape[:2], self.readout.width), None
        state = self._begun(self.start(memory), x[:, 0])
        if not self.before and not self.feeds_top:
            return self._all_at_once(x, state, memory)
        from_x, turns = self.cells.project(x), []
        for place in range(x.shape[1]):
            turn = self._turn(x[:, place], from_x[:, place], state, memory, False)
            turns.append(turn)
            state = turn.state
        choices = side_by_side([turn.look for turn in turns])
        if self.feeds_top:
            return torch.stack([turn.top for turn in turns if turn.top is not None], 1), choices
        return self._top([turn.parts for turn in turns], x), choices

    def _all_at_once(self, x: Tensor, state: Stepped, memory: Remembered) -> tuple[Tensor, Choices | None]:
        """Nothing feeds back into the cells: they run over the whole target, and all steps ask together."""
        assert state.states is not None
        s, _ = self.cells(x, state.states)
        if self.attention is None:
            return self.readout((s,)), None
        if not self.attention.covers:
            look = self.attention(s, memory)
            return self.readout((look.context, s)), look.choices
        looks, coverage = [], None
        for place in range(x.shape[1]):  # each looks at what those before have left
            looks.append(self.attention(s[:, place : place + 1], memory, coverage, place=place))
            coverage = looks[-1].coverage
        return self.readout((torch.cat([look.context for look in looks], 1), s)), side_by_side(looks)

    def _fed_its_own(self, target: Tensor, memory: Remembered, own: float | Tensor) -> Taught:
        """Scheduled sampling: now and then a token is the likeliest of the step before."""
        state, logits, looks = self.start(memory), [], []
        fed = target[:, 0]
        for place in range(target.shape[1]):
            x = self._embedded(fed)
            turn = self._turn(x, self.cells.project(x), self._begun(state, x), memory, False)
            top = self._top([turn.parts], x) if turn.top is None else turn.top
            logits.append(self.output(self._dropped(top)))
            looks.append(turn.look)
            state = turn.state
            if place + 1 < target.shape[1]:
                mine = torch.rand(fed.shape, device=fed.device) < own
                fed = torch.where(mine, logits[-1].detach().argmax(-1), target[:, place + 1])
        return Taught(torch.stack(logits, 1), side_by_side(looks))

    def _turn(self, x: Tensor, from_x: Tensor, state: Stepped, memory: Remembered, want_weights: bool) -> Turn:
        """One step from an embedded token x [R, e] and its product with the cell's matrix."""
        assert state.states is not None
        place = state.place + 1 if active() else None
        if self.attention is None:
            states = self.cells.advance(from_x, state.states, None, place)
            return Turn(Stepped(states, place=state.place + 1), (top_of(states),), None, None)
        if self.before:
            look = self._look(top_of(state.states), state, memory, want_weights)
            context = rows_of(look.context)
            states = self.cells.advance(from_x, state.states, context, place)
            new = Stepped(states, None, coverage_of(look), state.place + 1)
            return Turn(new, (top_of(states), context, x), None, look)
        states = self.cells.advance(from_x, state.states, state.fed, place)
        look = self._look(top_of(states), state, memory, want_weights)
        parts = (rows_of(look.context), top_of(states))
        top = self.readout(parts, place) if self.feeds_top else None
        return Turn(Stepped(states, top, coverage_of(look), state.place + 1), parts, top, look)

    def _look(self, query: Tensor, state: Stepped, memory: Remembered, want_weights: bool) -> Look:
        """The rows of one sentence stand one after the other, and share its one memory."""
        assert self.attention is not None
        assert memory.states is not None
        sentences = len(memory.states)
        coverage = None if state.coverage is None else state.coverage.reshape(sentences, -1, memory.states.shape[1])
        look: Look = self.attention(
            query.reshape(sentences, -1, query.shape[-1]),
            memory,
            coverage,
            place=state.place,
            want_weights=want_weights,
        )
        return look

    def _begun(self, state: Stepped, x: Tensor) -> Stepped:
        """The state with what is 0 before the first token, for rows x [R, e]."""
        states = self.cells.zeros(len(x), x) if state.states is None else state.states
        fed = x.new_zeros(len(x), self.readout.width) if self.feeds_top and state.fed is None else state.fed
        return Stepped(states, fed, state.coverage, state.place)

    def _embedded(self, tokens: Tensor) -> Tensor:
        return self._dropped(label(self.words(tokens).states, "x", "E y"))

    def _top(self, parts: Sequence[tuple[Tensor, ...]], x: Tensor) -> Tensor:
        """The readout of one step [R, …], or of several [B, T, …] at once."""
        if len(parts) == 1 and x.ndim == 2:
            return self.readout(parts[0])  # type: ignore[no-any-return]
        together = tuple(torch.stack(part, 1) for part in zip(*parts, strict=True))
        return self.readout(together)  # type: ignore[no-any-return]

    def _dropped(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout) if self.training and self.dropout > 0 else x


def top_of(states: States) -> Tensor:
    """[R, d]: what the top layer says."""
    return states[-1][0]


def rows_of(looked: Tensor) -> Tensor:
    """[B, n, …] → [R, …]."""
    return looked.reshape(-1, looked.shape[-1])


def coverage_of(look: Look) -> Tensor | None:
    return None if look.coverage is None else rows_of(look.coverage)


def side_by_side(looks: Sequence[Look | None]) -> Choices | None:
    """The choices of all steps [B, T], where each step made one."""
    found = [look.choices for look in looks if look is not None and look.choices is not None]
    if not found:
        return None
    log_prob, entropy, baseline = (torch.cat(each, 1) for each in zip(*found, strict=True))
    return Choices(log_prob, entropy, baseline)


def last_width(settings: RecurrentSettings, encoder: RecurrentEncoder) -> int:
    """Of the encoder's last state of a layer, its directions side by side."""
    return encoder.width if encoder.layers is None else settings.width * encoder.layers.directions
