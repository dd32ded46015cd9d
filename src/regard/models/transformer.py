"""The Transformer: encoder-decoder, encoder alone (under tags or a label), decoder alone (a language model).

Shape letters: B sentences, S source places, T target places, R rows of hypotheses, d width, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from regard.attention import Cache, Mask, MultiHead, masks, positions, settle
from regard.models.chance import in_training_and_after
from regard.models.checks import check_one_vocabulary, check_source
from regard.models.contract import Encoded, Encoder, SequenceModel, Step
from regard.models.dropping import drop
from regard.models.fixed import Fixed, obstacle
from regard.models.inputs import make_input, words_of
from regard.models.layers import Block, Output, Source, crossing, norm
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.models.words import Words
from regard.models.written import Together, Written
from regard.text.specials import SPECIALS


class Stack(nn.Module):
    """Positions, then blocks one on another: vectors [B, T, d] → vectors [B, T, d]."""

    def __init__(self, settings: TransformerSettings, layers: int, *, crosses: bool) -> None:
        super().__init__()
        self.positions = positions.make(
            settings.positions, width=settings.width, heads=settings.heads, head_width=settings.one_head,
            places=settings.longest,
        )  # fmt: skip
        self.layers: Sequence[Block] = nn.ModuleList(  # type: ignore[assignment] # it is one, but for the name
            Block(settings, self.positions, crosses=crosses) for _ in range(layers)
        )
        self.norm = norm(settings) if settings.ends_with_norm and layers else None
        self.dropout = settings.dropout
        self.normalisers = in_training_and_after(settings.normalise)
        initialise(self)

    def forward(
        self,
        x: Tensor,
        mask: Mask | None,
        caches: tuple[Cache, ...] = (),
        sources: tuple[Source, ...] = (),
        *,
        together: Together | None = None,
        want_weights: bool = False,
    ) -> "Climbed":
        start = together.start if together is not None else caches[0].length if caches else 0
        x = self.positions.add(x, start)
        x = drop(x, self.dropout) if self.training and self.dropout > 0 else x
        grown, weights = [], []
        for number, block in enumerate(self.layers):
            cache, source = caches[number] if caches else None, sources[number] if sources else None
            through = block(x, mask, cache, source, together=together, want_weights=want_weights)
            x = through.x
            grown.append(through.cache)
            weights.append(through.weights)
        x = x if self.norm is None else self.norm(x)
        return Climbed(x, tuple(grown), [each for each in weights if each is not None])

    def train(self, mode: bool = True) -> Self:
        """What is left to chance in training is settled afterwards."""
        super().train(mode)
        for part in self.modules():
            if isinstance(part, MultiHead):
                part.normalise = self.normalisers[0 if mode else 1]
        return self


class Climbed(NamedTuple):
    """What comes out at the top of a stack: vectors, caches and weights a layer."""

    x: Tensor
    caches: tuple[Cache, ...]
    weights: list[Tensor]


class TransformerEncoder(Encoder):
    """Source → vectors that have looked at one another. The input is words unless another one is given."""

    def __init__(self, settings: TransformerSettings, sizes: Sizes, input: Encoder | None = None) -> None:
        super().__init__()
        self.width = settings.width
        self.input = self._own_input(settings, sizes) if input is None else input
        given = self.input.width
        self.widen = nn.Linear(given, settings.width) if given != settings.width else None
        self.stack = Stack(settings, settings.encoder_layers, crosses=False)
        self.window = settings.window

    @staticmethod
    def _own_input(settings: TransformerSettings, sizes: Sizes) -> Encoder:
        if settings.input is not None:
            return make_input(settings.input, sizes, scaled=settings.scale_embedding)
        return Words(sizes.need("source", "an encoder of words"), settings.width, scaled=settings.scale_embedding)

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        check_source(source, lengths)
        x, lengths = self.input(source, lengths)
        x = x if self.widen is None else self.widen(x)
        return Encoded(self.stack(x, self._mask(x, lengths)).x, lengths)

    def _mask(self, x: Tensor, lengths: Tensor | None) -> Mask | None:
        # Where a sentence has no word its padding looks at the first place: what comes of it nobody reads.
        real = read_by_all(lengths if lengths is None else lengths.clamp(min=1), x, alive=True)
        if self.window is None:
            return real
        near = masks.window(self.window, self.window)
        places = x.shape[1]
        return settle(near if real is None else near & real, (len(x), 1, places, places), x.device, clean=True)


@dataclass(frozen=True)
class Looked:
    """The memory of a decoder: each layer's keys and values of the source, projected once."""

    lengths: Tensor | None = None
    sources: tuple[Source, ...] = ()

    @classmethod
    def at(cls, encoded: Encoded, projected: tuple[Cache, ...]) -> "Looked":
        real = read_by_all(encoded.lengths, encoded.states)
        return cls(encoded.lengths, tuple(Source(each, real) for each in projected))

    @property
    def sentences(self) -> int | None:
        """How many; None where there is no source to tell."""
        return len(self.sources[0].projected.key_BHSd) if self.sources else None

    def select(self, index: Tensor) -> "Looked":
        if not self.sources:
            return self
        lengths = None if self.lengths is None else self.lengths.index_select(0, index)
        projected = tuple(each.projected.select(index) for each in self.sources)
        return Looked.at(Encoded(projected[0].key, lengths), projected)


class Transformer(SequenceModel):
    """A sequence out of a sequence, or (with parts: decoder) a text that goes on."""

    settings: TransformerSettings

    def __init__(self, settings: TransformerSettings, sizes: Sizes, input: Encoder | None = None) -> None:
        super().__init__()
        self.settings, self.sizes = settings, sizes
        self.vocabulary = sizes.need("target", "a sequence out")
        self.longest = settings.longest if settings.positions == "learned" else None
        self.start_token = number_of(settings.start, self.vocabulary)
        crosses = settings.parts != "decoder"
        self.encoder = TransformerEncoder(settings, sizes, input) if crosses else None
        self.words = self._words(settings, sizes)
        self.decoder = Stack(settings, settings.decoder_layers, crosses=crosses)
        self.output = Output(
            settings.width, self.vocabulary, tied=self.words.vectors if settings.tie_output else None,
            bias=settings.output_bias, nearest=settings.output == "nearest",
        )  # fmt: skip

    def _words(self, settings: TransformerSettings, sizes: Sizes) -> Words:
        """The target's embeddings: those of the source, where the two are to share and the source has some."""
        own = words_of(self.encoder.input) if self.encoder is not None and settings.shares else None
        if own is None or own.width != settings.width:
            return Words(self.vocabulary, settings.width, scaled=settings.scale_embedding)
        check_one_vocabulary(sizes.source, self.vocabulary)
        return own

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Looked:
        if self.encoder is None:
            return Looked()
        check_source(source, lengths, sentences=1)
        encoded = self.encoder(source, lengths)
        crossed = [block.cross for block in self.decoder.layers if block.cross is not None]
        with crossing():
            return Looked.at(encoded, tuple(each.project(encoded.states) for each in crossed))

    def fixed(self, sentences: int, each: int, places: int, steps: int) -> Fixed | None:
        return Fixed(self, sentences, each, places, steps) if obstacle(self) is None else None

    def start(self, memory: Looked) -> Written:  # type: ignore[override]
        return Written()

    def step(  # type: ignore[override]
        self,
        tokens: Tensor,
        state: Written,
        memory: Looked,
        *,
        columns: Tensor | None = None,
        want_weights: bool = False,
    ) -> Step:
        return self.feed(tokens.unsqueeze(-1), state, memory, columns=columns, want_weights=want_weights)

    def feed(
        self,
        tokens: Tensor,
        state: Written,
        memory: Looked,
        *,
        columns: Tensor | None = None,
        want_weights: bool = False,
    ) -> Step:
        """`step` with several tokens [R, n] of each row at once (a text to be continued): what the last one gives."""
        state = state.settled(memory.sentences or len(tokens), len(tokens))
        state = state if tokens.shape[1] == 1 else state.apart()
        climbed = self._decoded(tokens, state, memory, want_weights)
        logits = self.output(climbed.x[:, -1], columns)
        looked = [each.transpose(1, 2).reshape(len(tokens), -1, *each.shape[1::2])[:, -1] for each in climbed.weights]
        return Step(logits, state.grown(climbed.caches, tokens.shape[1]), torch.stack(looked, 1) if looked else None)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        logits: Tensor = self.output(self.states(source, target, lengths))
        return logits

    def states(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """[B, T, d]: what `output` makes logits of. No place sees those behind it, so padding there is harmless."""
        return self._decoded(target, Written(), self.encode(source, lengths), False).x

    def _decoded(self, tokens: Tensor, state: Written, memory: Looked, want_weights: bool) -> Climbed:
        x = self.words(tokens).states
        together = None if state.came is None else state.together(tokens.device, self.settings.window)
        climbed: Climbed = self.decoder(
            x, self._mask(tokens.shape[1], bool(state.caches)), state.caches, memory.sources, together=together,
            want_weights=want_weights,
        )  # fmt: skip
        return climbed

    def _mask(self, places: int, goes_on: bool) -> Mask | None:
        if self.settings.window is not None:
            return masks.window(self.settings.window, 0)
        return None if places == 1 and goes_on else masks.causal()


def read_by_all(lengths: Tensor | None, x: Tensor, *, alive: bool = False) -> Mask | None:
    """The mask of real places, made once for all layers; None where there is no padding, as far as a look is free.

    What stands in x [B, S, ...] behind the lengths is finite: the network made it.
    """
    if lengths is None:
        return None
    lengths = lengths.to(x.device)
    places = x.shape[-2]
    if lengths.device.type == "cpu" and not torch.compiler.is_compiling() and bool((lengths >= places).all()):
        return None
    return settle(masks.lengths(lengths), (len(x), 1, 1, places), x.device, clean=True, alive=alive)


def number_of(token: str | int, vocabulary: int) -> int:
    """The number of a special token, or the number itself."""
    number = SPECIALS.index(token) if isinstance(token, str) else token
    if number >= vocabulary:
        raise ValueError(f"start: the vocabulary has {vocabulary} words; got {token!r}, which is number {number}")
    return number


def initialise(part: nn.Module) -> None:
    """Matrices by Glorot and Bengio 2010, biases 0."""
    for module in part.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
