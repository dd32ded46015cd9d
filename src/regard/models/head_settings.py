"""What can be set about the output over an encoder: one tag a word, or one label a sequence. Reads no torch."""

from typing import Literal

from pydantic import Field

from regard.config import Settings


class HeadSettings(Settings):
    """From the vectors of an encoder to the logits of tags or labels."""

    words: Literal["first", "last", "mean"] = "first"
    """What stands for a word of several tokens: its first vector, its last, or the mean of all."""
    pooling: Literal["mean", "max", "first", "last", "attention"] = "mean"
    """What stands for a sequence, for a label: the mean or the largest of each number, the first or the last vector,
    or a mixture by attention, whose weights can be looked at."""
    hidden: int | None = Field(default=None, ge=1)
    """Width of a hidden layer under the logits; unset, there is none."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """On what the logits are made of."""
