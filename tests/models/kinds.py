"""Every kind of network, small, with data for it: what the tests of the contract run over."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.models.baseline_settings import FixedSettings, WindowSettings
from regard.models.build import build
from regard.models.contract import Model
from regard.models.head_settings import HeadSettings
from regard.models.input_settings import CharacterSettings, ImageSettings, RowSettings, WordSettings
from regard.models.network_settings import Settled
from regard.models.rnn_settings import AttentionSettings, RecurrentEncoderSettings, RecurrentSettings
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings

WORDS = 11
PLACES = 6
LENGTHS = torch.tensor([6, 3, 1])
SIZES = Sizes(source=WORDS, target=WORDS, tags=5, labels=4)
ROWS = Sizes(target=WORDS, tags=5, labels=4, input_width=3)
IMAGES = Sizes(target=WORDS, labels=4, image=(1, 8, 0))
SPELLED = Sizes(source=WORDS, target=WORDS, tags=5, characters=9)


@dataclass(frozen=True)
class Kind:
    """A network and the data it is for."""

    network: Settled
    sizes: Sizes = SIZES
    task: str = "translate"

    def model(self, seed: int = 0) -> Any:
        """With weights large enough that every part of it shows, in evaluation mode."""
        torch.manual_seed(seed)
        model = build(self.network, self.sizes, self.task)
        with torch.no_grad():
            for each in model.parameters():
                each.add_(torch.randn_like(each) * 0.2)
        return model.eval()

    def source(self, seed: int = 1) -> Tensor:
        """Three sources as long as the longest."""
        draw = torch.Generator().manual_seed(seed)
        if self.sizes.image is not None:
            return torch.rand(3, 1, 8, 4 * PLACES, generator=draw)
        if self.sizes.input_width is not None:
            return torch.randn(3, PLACES, 3, generator=draw)
        if self.sizes.characters is not None:
            spelled = torch.randint(1, 9, (3, PLACES, 4), generator=draw)
            return torch.cat([torch.randint(4, WORDS, (3, PLACES, 1), generator=draw), spelled], -1)
        return torch.randint(4, WORDS, (3, PLACES), generator=draw)

    @property
    def lengths(self) -> Tensor:
        return 4 * LENGTHS if self.sizes.image is not None else LENGTHS

    def cut(self, source: Tensor, row: int) -> Tensor:
        """One source without padding."""
        length = int(self.lengths[row])
        return source[row : row + 1, ..., :length] if source.ndim == 4 else source[row : row + 1, :length]

    def spoilt(self, source: Tensor, seed: int = 2) -> Tensor:
        """The same with something else in the padding: other words, and what is no number."""
        draw = torch.Generator().manual_seed(seed)
        axis = -1 if source.ndim == 4 else 1
        shape = [1] * source.ndim
        shape[0], shape[axis] = 3, source.shape[axis]
        real = (torch.arange(source.shape[axis]) < self.lengths.unsqueeze(1)).view(shape)
        if source.is_floating_point():
            return torch.where(real, source, torch.nan)
        return torch.where(real, source, torch.randint(0, 9, source.shape, generator=draw))


def target(steps: int = 5, rows: int = 3, seed: int = 3) -> Tensor:
    """What is fed to a decoder: the start token, then words."""
    words = torch.randint(4, WORDS, (rows, steps), generator=torch.Generator().manual_seed(seed))
    return torch.cat([torch.full((rows, 1), 2), words[:, 1:]], 1)


def rnn(**changed: Any) -> RecurrentSettings:
    return RecurrentSettings(**{"width": 6, "embedding": 5, "input": WordSettings(width=7)} | changed)  # type: ignore[arg-type]


def transformer(**changed: Any) -> TransformerSettings:
    small = {"width": 8, "heads": 2, "feed_forward": 12, "encoder_layers": 2, "decoder_layers": 2}
    return TransformerSettings(**small | changed)  # type: ignore[arg-type]


def bahdanau(**changed: Any) -> RecurrentSettings:
    return rnn(attention=AttentionSettings(kind="bahdanau", **changed))


def luong(**changed: Any) -> RecurrentSettings:
    return rnn(attention=AttentionSettings(kind="luong", **changed))


LOOKING: dict[str, Kind] = {
    "bahdanau": Kind(bahdanau()),
    "bahdanau, plain cell, deeper alignment": Kind(
        rnn(cell="rnn", layers=2, attention=AttentionSettings(depth=2, width=4))
    ),
    "bahdanau, gru, scaled dot": Kind(
        rnn(cell="gru", join="sum", bridge="copy", attention=AttentionSettings(score="scaled_dot"))
    ),
    "bahdanau, coverage": Kind(bahdanau(coverage=True)),
    "bahdanau, bare input, tied": Kind(rnn(encoder_layers=0, tie_output=True)),
    "bahdanau, local-m": Kind(bahdanau(reach="local_m", window=1)),
    "bahdanau, local-p, coverage": Kind(bahdanau(reach="local_p", window=2, coverage=True)),
    "bahdanau, straight through": Kind(bahdanau(hard="straight_through")),
    "bahdanau, reinforce": Kind(bahdanau(hard="reinforce")),
    "luong": Kind(luong()),
    "luong, dot": Kind(rnn(join="sum", attention=AttentionSettings(kind="luong", score="dot"))),
    "luong, concat, one-hot": Kind(
        rnn(input=WordSettings(embedding="one_hot"), one_hot_target=True, attention=AttentionSettings(
            kind="luong", score="concat", input_feeding=False,
        ))
    ),
    "luong, location": Kind(luong(score="location", places=30)),
    "luong, low rank": Kind(luong(score="low_rank")),
    "luong, gumbel": Kind(luong(hard="gumbel", temperature=0.7)),
    "luong, cosine, reversed, shared": Kind(
        rnn(bidirectional=False, reversed=True, share_embeddings=True, embedding=7,
            attention=AttentionSettings(kind="luong", score="cosine"))
    ),
    "luong, local-p": Kind(luong(reach="local_p", window=2)),
    "luong, local-m": Kind(luong(reach="local_m", window=1)),
    "luong, no feeding": Kind(luong(input_feeding=False)),
    "luong, no feeding, local-m": Kind(luong(input_feeding=False, reach="local_m", window=1)),
    "luong, no feeding, local-p": Kind(luong(input_feeding=False, reach="local_p", window=1)),
    "luong, no feeding, coverage": Kind(luong(input_feeding=False, coverage=True)),
    "luong, no feeding, reinforce": Kind(luong(input_feeding=False, hard="reinforce")),
    "luong, sparsemax": Kind(luong(normalise="sparsemax")),
    "luong, entmax15": Kind(luong(normalise="entmax15")),
    "luong, relu": Kind(luong(normalise="relu")),
    "luong, top1": Kind(luong(normalise="top1")),
    "luong, noise in training": Kind(luong(normalise="gumbel")),
    "rows, bahdanau": Kind(rnn(input=RowSettings(width=4)), ROWS),
    "rows, bahdanau, bare input": Kind(rnn(encoder_layers=0, input=RowSettings(width=4)), ROWS),
    "rows, transformer": Kind(transformer(), ROWS),
    "captions, bahdanau": Kind(
        rnn(encoder_layers=0, input=ImageSettings(width=8), attention=AttentionSettings(coverage=True)),
        IMAGES, "caption",
    ),
    "captions, luong, hard, patches": Kind(
        rnn(input=ImageSettings(width=8, cut="patches", patch=(4, 4)), attention=AttentionSettings(
            kind="luong", hard="reinforce",
        )), IMAGES, "caption",
    ),
    "captions, transformer": Kind(transformer(input=ImageSettings(width=8, halvings=1)), IMAGES, "caption"),
    "characters, bahdanau": Kind(
        rnn(input=WordSettings(width=7, characters=CharacterSettings(width=3, output=4))), SPELLED
    ),
    "reconstruct": Kind(rnn(), SIZES, "reconstruct"),
    "transformer": Kind(transformer()),
    "transformer, post": Kind(
        transformer(
            norm_place="post", share_embeddings=False, tie_output=False, output_bias=True,
            positions="sinusoidal_split",
        )
    ),
    "transformer, no norm, nearest": Kind(transformer(norm="none", output="nearest", feed_forward=0, heads=1)),
    "transformer, rotary, grouped, window": Kind(
        transformer(
            positions="rotary", heads=4, kv_heads=2, window=2, norm="rms", gated=True, activation="silu", bias=False,
        )
    ),
    "transformer, alibi, entmax15": Kind(transformer(positions="alibi", normalise="entmax15", activation="gelu")),
    "transformer, learned": Kind(transformer(positions="learned", longest=20, head_width=6)),
    "transformer, noise in training": Kind(transformer(normalise="gumbel")),
    "transformer, additive, no positions": Kind(transformer(score="additive", positions="none")),
    "transformer, no encoder layers": Kind(transformer(encoder_layers=0)),
}  # fmt: skip
"""Sequence models whose decoder attends."""

BLIND: dict[str, Kind] = {
    "plain, rnn": Kind(rnn(cell="rnn", attention=None, bidirectional=False)),
    "plain, gru, two layers": Kind(rnn(cell="gru", layers=2, encoder_layers=1, attention=None)),
    "plain, lstm, reversed": Kind(rnn(attention=None, bidirectional=False, reversed=True, layers=2, bridge="copy")),
    "plain, readout, tied": Kind(rnn(attention=None, tie_output=True)),
    "fixed": Kind(FixedSettings(
        encoder=RecurrentEncoderSettings(width=5, input=WordSettings(width=7)), source_places=9, target_places=8,
    )),
    "fixed, bare input": Kind(FixedSettings(
        encoder=RecurrentEncoderSettings(layers=0, input=WordSettings(width=7)), source_places=9, target_places=8,
    )),
}  # fmt: skip
"""Sequence models that know the source by one vector a place or altogether."""

LANGUAGE: dict[str, Kind] = {
    "language model, lstm": Kind(rnn(), SIZES, "language_model"),
    "language model, gru, two layers": Kind(rnn(cell="gru", layers=2, tie_output=True), SIZES, "language_model"),
    "language model, transformer": Kind(transformer(), SIZES, "language_model"),
    "language model, rotary, window": Kind(
        transformer(positions="rotary_interleaved", window=2), SIZES, "language_model"
    ),
}

SEQUENCES = LOOKING | BLIND | LANGUAGE

TAGGERS: dict[str, Kind] = {
    "tagger, lstm": Kind(rnn(), SIZES, "tag"),
    "tagger, transformer": Kind(transformer(window=2), SIZES, "tag"),
    "tagger, window": Kind(WindowSettings(window=1, width=6, input=WordSettings(width=5)), SIZES, "tag"),
    "tagger, whole sentence": Kind(WindowSettings(window=None, longest=8, width=6), SIZES, "tag"),
    "tagger, characters": Kind(
        rnn(input=WordSettings(width=5, characters=CharacterSettings(width=3, output=4))), SPELLED, "tag"
    ),
    "tagger, rows": Kind(WindowSettings(width=6), ROWS, "tag"),
}  # fmt: skip

LABELLERS: dict[str, Kind] = {
    f"labeller, {pooling}": Kind(rnn(head=HeadSettings(pooling=pooling)), SIZES, "classify")
    for pooling in ("mean", "max", "attention")
} | {
    "labeller, first": Kind(transformer(head=HeadSettings(pooling="first")), SIZES, "classify"),
    "labeller, last": Kind(rnn(bidirectional=False, head=HeadSettings(pooling="last")), SIZES, "classify"),
    "labeller, transformer": Kind(transformer(head=HeadSettings(hidden=7)), SIZES, "classify"),
    "labeller, rows": Kind(RecurrentSettings(width=6), ROWS, "classify"),
    "labeller, images": Kind(transformer(), IMAGES, "classify"),
    "labeller, window": Kind(WindowSettings(width=6), SIZES, "classify"),
}


def stepped(model: Model, source: Tensor, fed: Tensor, lengths: Tensor | None) -> tuple[Tensor, list[Tensor | None]]:
    """Logits [B, T, V] one step after the other, and where each looked."""
    memory = model.encode(source, lengths)
    state, logits, weights = model.start(memory), [], []
    for place in range(fed.shape[1]):
        one, state, seen = model.step(fed[:, place], state, memory, want_weights=True)
        logits.append(one)
        weights.append(seen)
    return torch.stack(logits, 1), weights
