"""What can be set about the lecture's two baselines: a tagger over a window, and places mapped to places. No torch."""

from typing import Literal

from pydantic import Field

from regard.config import Settings
from regard.models.head_settings import HeadSettings
from regard.models.input_settings import InputSettings, WordSettings
from regard.models.rnn_settings import RecurrentEncoderSettings


class WindowSettings(Settings):
    """Tags or a label from a fully connected layer over each word and its neighbours: what there was before attention,
    to compare with."""

    kind: Literal["window"] = "window"
    """Of network."""
    input: InputSettings = WordSettings()
    """How the source comes in."""
    window: int | None = Field(default=2, ge=0)
    """How many neighbours to each side are seen; null: the whole sentence, which takes a matrix for each distance."""
    longest: int = Field(default=64, ge=1)
    """With the whole sentence: the most places it may have for each to see all others."""
    width: int = Field(default=256, ge=1)
    """Of the layer."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """On the input's vectors."""
    head: HeadSettings = HeadSettings()
    """From the vectors to tags or a label."""

    @property
    def reach(self) -> int:
        """How many neighbours to each side."""
        return self.longest - 1 if self.window is None else self.window


class FixedSettings(Settings):
    """A sequence out by one learned matrix from places of the source to places of the target, whatever stands there:
    attention whose weights do not look, to compare with."""

    kind: Literal["fixed"] = "fixed"
    """Of network."""
    encoder: RecurrentEncoderSettings = RecurrentEncoderSettings()
    """What reads the source."""
    source_places: int = Field(default=64, ge=1)
    """N: the most places of a source."""
    target_places: int = Field(default=64, ge=1)
    """N': the most places of a target, its end counted."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Under the logits."""
