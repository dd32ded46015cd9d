"""What can be set about recurrent networks. Reads no torch: configurations are checked before a network is built."""

from typing import Literal, Self

from pydantic import Field, model_validator

from regard.config import Settings
from regard.models.head_settings import HeadSettings
from regard.models.input_settings import InputSettings, WordSettings
from regard.models.normaliser_settings import Normaliser

Cell = Literal["rnn", "gru", "lstm"]
Score = Literal["additive", "general", "dot", "scaled_dot", "cosine", "concat", "low_rank", "location"]
SAME_WIDTH = ("dot", "scaled_dot", "cosine")


class AttentionSettings(Settings):
    """Where a recurrent decoder looks before it says the next word."""

    kind: Literal["bahdanau", "luong"] = "bahdanau"
    """Asked by the state before the cell's step, its context going into the cell (bahdanau), or by the state after it
    (luong)."""
    score: Score | None = None
    """Unset: additive for bahdanau, general for luong."""
    normalise: Normaliser = "softmax"
    """From scores to weights."""
    width: int | None = Field(default=None, ge=1)
    """Of the hidden layer of additive and concat, and the rank of low_rank; unset, as the decoder's state."""
    depth: int = Field(default=1, ge=1)
    """Hidden layers of additive: the alignment network."""
    input_feeding: bool | None = None
    """Luong: the attentional vector goes into the next step's cell; unset, true. Without it training runs all steps at
    once."""
    reach: Literal["global", "local_m", "local_p"] = "global"
    """The whole source, a window beside the decoder's own place, or a window about a predicted place."""
    window: int = Field(default=5, ge=1)
    """How many places to each side local attention sees."""
    places: int = Field(default=256, ge=1)
    """The most source places that the score location can tell apart."""
    coverage: bool = False
    """The additive score also reads how much each place has been attended to so far."""
    hard: Literal["none", "straight_through", "gumbel", "reinforce"] = "none"
    """One place a step, and not a mixture: the largest, with the softmax's gradient; one drawn with Gumbel noise; one
    drawn by chance and learned from its reward. Out of training it is the largest each time."""
    temperature: float = Field(default=1.0, gt=0)
    """Of gumbel's noise."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """On the weights."""

    @property
    def scored(self) -> str:
        """The score, with its default filled in."""
        default = "additive" if self.kind == "bahdanau" or self.coverage else "general"
        return self.score or default

    @property
    def feeds(self) -> bool:
        """Whether what was looked at goes into the cell."""
        return self.kind == "bahdanau" or self.input_feeding is not False

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.kind == "bahdanau" and self.input_feeding is not None:
            raise ValueError("input_feeding: is Luong's; with bahdanau the context always goes into the cell")
        if self.coverage and self.scored != "additive":
            raise ValueError(f"coverage: only the score additive reads it; got {self.scored}")
        if self.depth > 1 and self.scored != "additive":
            raise ValueError(f"depth: only the score additive has hidden layers; got {self.scored}")
        if self.hard != "none" and self.normalise != "softmax":
            raise ValueError(f"normalise: hard attention draws from a softmax; got {self.normalise}")
        if self.hard == "reinforce" and self.dropout > 0:
            raise ValueError("dropout: would fall on a choice whose reward is learned; set it to 0 with reinforce")
        return self


class RecurrentEncoderSettings(Settings):
    """A recurrent network that reads a sequence; alone it stands under tags or a label."""

    kind: Literal["recurrent"] = "recurrent"
    """Of network."""
    input: InputSettings = WordSettings()
    """How the source comes in."""
    cell: Cell = "lstm"
    """The plain one, or one with gates."""
    width: int = Field(default=256, ge=1)
    """Of the state of one direction."""
    layers: int = Field(default=1, ge=0)
    """One on another; 0 leaves the input as it is."""
    bidirectional: bool = True
    """Read from both ends."""
    join: Literal["concat", "sum"] = "concat"
    """What becomes of the two directions' states."""
    reversed: bool = False
    """Read the source backwards, so that its first words are nearest to the target's (Sutskever and others 2014)."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """On the input's vectors and between layers."""

    @property
    def memory_width(self) -> int | None:
        """Of the vectors it gives; None where the data decide."""
        if self.layers:
            return 2 * self.width if self.bidirectional and self.join == "concat" else self.width
        if not isinstance(self.input, WordSettings):
            return self.input.width
        if self.input.embedding == "one_hot":
            return None
        return self.input.width + (self.input.characters.output if self.input.characters else 0)

    @model_validator(mode="after")
    def _one_way_backwards(self) -> Self:
        if self.reversed and self.bidirectional:
            raise ValueError("reversed: a bidirectional encoder reads backwards already; set bidirectional to false")
        return self


class RecurrentSettings(Settings):
    """A recurrent encoder and decoder, with attention or without; under tags or a label the encoder alone is built.
    The defaults suit tens of thousands of sentences."""

    kind: Literal["recurrent"] = "recurrent"
    """Of network."""
    input: InputSettings = WordSettings()
    """How the source comes in."""
    cell: Cell = "lstm"
    """The plain one, or one with gates."""
    width: int = Field(default=256, ge=1)
    """Of the decoder's state, and of each direction of the encoder's."""
    layers: int = Field(default=1, ge=1)
    """Of the decoder."""
    encoder_layers: int | None = Field(default=None, ge=0)
    """Of the encoder; unset, as many as the decoder's. With 0 the decoder looks at the bare input."""
    bidirectional: bool = True
    """The encoder reads from both ends."""
    join: Literal["concat", "sum"] = "concat"
    """What becomes of the two directions' states."""
    reversed: bool = False
    """The encoder reads backwards, so that the source's first words are nearest to the target's."""
    bridge: Literal["copy", "dense"] | None = None
    """From the encoder's last state to the decoder's first: as it is, or through a layer of its own; unset, as it is
    where both have one shape."""
    attention: AttentionSettings | None = AttentionSettings()
    """Where the decoder looks; null: it knows the source by its first state alone."""
    embedding: int = Field(default=256, ge=1)
    """Width of the target's embeddings."""
    one_hot_target: bool = False
    """The target's words come in as one-hot vectors and not as trained embeddings."""
    readout: int | None = Field(default=None, ge=1)
    """Width of the layer under the logits; unset, the embeddings' with bahdanau or a tied output, else the state's."""
    share_embeddings: bool = False
    """Source and target have one table of embeddings (their vocabulary must be one)."""
    tie_output: bool = False
    """The logits are products with the target's embeddings."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """On embeddings, between layers, and under the logits."""
    head: HeadSettings = HeadSettings()
    """From the encoder's vectors to tags or a label."""

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        encoder = self.encoder  # which is checked as it is made
        memory, score = encoder.memory_width, self.attention.scored if self.attention else None
        if score in SAME_WIDTH and memory not in (None, self.width):
            raise ValueError(
                f"attention.score: {score} needs a memory as wide as the decoder's state; got {memory} and "
                f"{self.width} (take the score 'general', or join: sum, or bidirectional: false)"
            )
        if self.bridge == "copy" and not self.copies:
            raise ValueError(
                "bridge: encoder and decoder have different shapes, so nothing can be copied; take 'dense'"
            )
        if self.share_embeddings and (not isinstance(self.input, WordSettings) or self.input.width != self.embedding):
            raise ValueError("share_embeddings: source and target must both be words, with vectors of one width")
        if self.share_embeddings and isinstance(self.input, WordSettings) and self.input.freeze:
            raise ValueError(
                "share_embeddings: the source's vectors are frozen (input.freeze), and the target's would be so too; "
                "set one of the two to false"
            )
        if self.one_hot_target and (self.share_embeddings or self.tie_output):
            raise ValueError("one_hot_target: there are no embeddings to share or to tie the output to")
        if self.tie_output and self.readout not in (None, self.embedding):
            raise ValueError(f"readout: a tied output needs the width of the embeddings, {self.embedding}; unset it")
        return self

    @property
    def copies(self) -> bool:
        """Whether the encoder's last state has the shape of the decoder's first."""
        encoder = self.encoder
        return encoder.layers == self.layers and (not encoder.bidirectional or encoder.join == "sum")

    @property
    def encoder(self) -> RecurrentEncoderSettings:
        """Those of the encoder alone."""
        return RecurrentEncoderSettings(
            input=self.input, cell=self.cell, width=self.width, bidirectional=self.bidirectional, join=self.join,
            layers=self.layers if self.encoder_layers is None else self.encoder_layers,
            reversed=self.reversed, dropout=self.dropout,
        )  # fmt: skip
