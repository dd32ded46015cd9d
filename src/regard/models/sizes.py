"""How large the world outside a network is: what its settings leave open until the data are known."""

from pydantic import Field

from regard.config import Settings


class Sizes(Settings):
    """Numbers that come from the data, not from taste. A network asks for those it needs, by name."""

    source: int | None = Field(default=None, ge=1)
    """Words of the source's vocabulary."""
    target: int | None = Field(default=None, ge=1)
    """Words of the target's vocabulary."""
    tags: int | None = Field(default=None, ge=1)
    """Different tags, for a model that gives one a word."""
    labels: int | None = Field(default=None, ge=1)
    """Different labels, for a model that gives one a sequence."""
    input_width: int | None = Field(default=None, ge=1)
    """Numbers in a row, where the source is rows of numbers."""
    characters: int | None = Field(default=None, ge=1)
    """Characters that a character encoder tells apart."""
    image: tuple[int, int, int] | None = None
    """Channels, height and width, where the source is images; a width of 0 may be any."""

    def need(self, name: str, what: str) -> int:
        """The size of that name; a ValueError says which model misses it."""
        size = getattr(self, name)
        if not isinstance(size, int):
            said = type(self).model_fields[name].description
            raise ValueError(f"sizes.{name}: missing, and {what} needs it: {said}")
        return size
