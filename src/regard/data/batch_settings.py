"""What can be set about batches."""

from typing import Literal

from pydantic import Field

from regard.config import Settings

Counted = Literal["longest", "source", "target", "both"]


class BatchSettings(Settings):
    """How examples become batches."""

    tokens: int = Field(default=4096, ge=1)
    """The most places a batch may have, padding counted: examples × the longest of them."""

    count: Counted = "longest"
    """Whose places count: the longer side's, the source's, the target's, or both sides' together."""

    examples: int | None = Field(default=None, ge=1)
    """The most examples of a batch, whatever its tokens."""

    shapes: int | None = Field(default=None, ge=1, le=256)
    """The most different shapes of batches, for models that are compiled for each; null: as many as come. Rows that
    no example fills are then padding."""

    ahead: int = Field(default=2, ge=0)
    """Batches that a thread makes ready while the model works; 0 makes each when it is asked for."""
