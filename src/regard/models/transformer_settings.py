"""What can be set about a Transformer. Reads no torch: configurations are checked long before a network is built."""

from typing import Literal, Self

from pydantic import Field, model_validator

from regard.config import Settings
from regard.models.head_settings import HeadSettings
from regard.models.input_settings import InputSettings, WordSettings
from regard.models.normaliser_settings import Normaliser

Score = Literal["scaled_dot", "dot", "cosine", "general", "low_rank", "additive", "concat"]
Kind = Literal["none", "sinusoidal", "sinusoidal_split", "learned", "rotary", "rotary_interleaved", "alibi"]


class TransformerSettings(Settings):
    """A Transformer (Vaswani and others 2017) and its descendants. The defaults suit tens of thousands of sentences."""

    kind: Literal["transformer"] = "transformer"
    """Of network."""
    parts: Literal["encoder-decoder", "encoder", "decoder"] | None = None
    """Both for a sequence out of a sequence; an encoder under tags or a label; a decoder as a language model. Unset,
    as the task needs."""
    input: InputSettings | None = None
    """How the source comes in; unset, words with vectors as wide as the model, or what the data are."""
    head: HeadSettings = HeadSettings()
    """From the encoder's vectors to tags or a label."""
    width: int = Field(default=256, ge=1)
    """Numbers in the vector of a place."""
    encoder_layers: int = Field(default=4, ge=0)
    """Of the encoder; with 0 the decoder looks at the bare input."""
    decoder_layers: int = Field(default=4, ge=1)
    """Of the decoder."""
    heads: int = Field(default=8, ge=1)
    """Of each attention."""
    kv_heads: int | None = Field(default=None, ge=1)
    """Heads of keys and values, shared by groups of query heads; unset, as many as heads."""
    head_width: int | None = Field(default=None, ge=1)
    """Of one head; unset, width / heads."""
    score: Score = "scaled_dot"
    """What a query and a key have to do with each other."""
    normalise: Normaliser = "softmax"
    """From scores to weights."""
    window: int | None = Field(default=None, ge=0)
    """Self-attention sees this many places to each side (in a decoder to the left); unset, all of them."""
    out_projection: bool = True
    """Whether the heads' outputs, joined, go through a matrix W_O."""
    feed_forward: int = Field(default=1024, ge=0)
    """Width of the hidden layer of the feed-forward networks; 0 leaves them out."""
    activation: Literal["relu", "gelu", "silu"] = "relu"
    """Of the feed-forward networks (silu is also called swish)."""
    gated: bool = False
    """Whether the hidden layer is multiplied by a second one: act(x W_gate) · (x W_inner)."""
    norm: Literal["layer", "rms", "none"] = "layer"
    """Normalisation of a vector: by mean and variance, by its length, or not at all."""
    norm_place: Literal["pre", "post"] = "pre"
    """Before each sublayer (trains without much care), or after the sum, as in the paper."""
    norm_epsilon: float = Field(default=1e-5, gt=0)
    """Added to the variance."""
    final_norm: bool | None = None
    """Whether encoder and decoder end with one more normalisation; unset, where it is pre."""
    bias: bool = True
    """Whether the linear layers have one."""
    positions: Kind = "sinusoidal"
    """How places are told apart."""
    longest: int = Field(default=1024, ge=1)
    """The most places that learned positions tell apart."""
    scale_embedding: bool = True
    """Whether embeddings are multiplied by √(their width) before positions are added."""
    share_embeddings: bool | None = None
    """Whether source and target have one table of embeddings (their vocabulary must be one); unset, where the source's
    words have trained vectors as wide as the model."""
    output: Literal["linear", "nearest"] = "linear"
    """A product with a vector a word, or minus the squared distance to each word's embedding (without |h|², which all
    words share)."""
    tie_output: bool = True
    """Whether those vectors are the target's embeddings."""
    output_bias: bool = False
    """Whether each word has a number of its own added to its logit."""
    start: Literal["<s>", "</s>", "<pad>", "<unk>"] | int = "<s>"
    """The token a target begins with: a special one, or any by its number."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """On the sum of embedding and position, and on what each sublayer adds, as in the paper."""
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    """On attention weights."""
    activation_dropout: float = Field(default=0.0, ge=0, lt=1)
    """On the hidden layer of the feed-forward networks."""

    @property
    def one_head(self) -> int:
        """The width of one head."""
        return self.head_width or self.width // self.heads

    @property
    def ends_with_norm(self) -> bool:
        return self.norm_place == "pre" if self.final_norm is None else self.final_norm

    @property
    def shares(self) -> bool:
        """Whether there is to be one table, with its default filled in."""
        return self._apart() is None if self.share_embeddings is None else self.share_embeddings

    def _apart(self) -> str | None:
        """Why source and target cannot have one table."""
        if self.input is None:
            return None
        if not isinstance(self.input, WordSettings):
            return "the source is not words"
        if self.input.embedding == "one_hot":
            return "the source's words are one-hot and have no table"
        if self.input.characters is not None:
            return "the source's words are made of their characters as well"
        if self.input.freeze:
            return "the source's vectors are frozen (input.freeze), and the target's would be so too"
        if self.input.width != self.width:
            return f"input.width and width must be the same; got {self.input.width} and {self.width}"
        return None

    @model_validator(mode="after")
    def _one_table_fits_both(self) -> Self:
        if self.share_embeddings and (why := self._apart()) is not None:
            raise ValueError(f"share_embeddings: {why}; leave it unset, or set it to false")
        return self

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.head_width is None and self.width % self.heads:
            raise ValueError(f"heads: must divide width; got {self.heads} for {self.width} (or set head_width)")
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise ValueError(f"kv_heads: must divide heads; got {self.kv_heads} for {self.heads}")
        if self.positions.startswith("rotary") and self.one_head % 2:
            raise ValueError(f"positions: rotary turns pairs, and a head is {self.one_head} wide, which is odd")
        if not self.out_projection and self.heads * self.one_head != self.width:
            raise ValueError(
                f"out_projection: without it the joined heads must be as wide as the model; "
                f"got {self.heads} × {self.one_head} for {self.width}"
            )
        if isinstance(self.start, int) and self.start < 0:
            raise ValueError(f"start: expected the number of a token, 0 or more; got {self.start}")
        if self.output == "nearest" and not self.tie_output:
            raise ValueError("output: 'nearest' compares with the target's embeddings, so tie_output must be true")
        return self
