"""What can be set about how a source comes in: as words, as rows of numbers, as images. Reads no torch."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from regard.config import Settings


class CharacterSettings(Settings):
    """A small encoder that reads each word letter by letter, so that a word never seen still says something."""

    width: int = Field(default=32, ge=1)
    """Of a character's vector."""
    output: int = Field(default=64, ge=1)
    """Of what it tells about a word, which stands beside the word's own vector."""
    window: int = Field(default=3, ge=1)
    """How many letters it reads at a time."""
    longest: int = Field(default=24, ge=1)
    """Of a longer word only so many letters (bytes of UTF-8) are read."""


class WordSettings(Settings):
    """Words, or pieces of words, by their numbers in a vocabulary."""

    kind: Literal["words"] = "words"
    """Of source."""
    embedding: Literal["trained", "one_hot"] = "trained"
    """A trained vector for each word, or a 1 at the word's own place and 0 elsewhere, as the notes begin."""
    width: int = Field(default=256, ge=1)
    """Of a word's vector; one-hot vectors are as wide as the vocabulary."""
    vectors: str | None = None
    """A file of pretrained vectors (GloVe or word2vec) to begin with, of this width."""
    freeze: bool = False
    """Keep the vectors as they are given."""
    characters: CharacterSettings | None = None
    """Read words by their characters as well."""
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the words that training takes for unknown, so that the unknown one is trained too."""

    @model_validator(mode="after")
    def _one_hot_has_nothing_to_train(self) -> Self:
        if self.embedding == "one_hot" and (self.vectors is not None or self.freeze):
            raise ValueError("embedding: one_hot has no vectors to begin with or to freeze; take 'trained'")
        return self


class RowSettings(Settings):
    """Rows of numbers, such as a time series: each goes through a linear layer."""

    kind: Literal["rows"] = "rows"
    """Of source."""
    width: int = Field(default=64, ge=1)
    """Of the vector made of each row."""


class ImageSettings(Settings):
    """Images, cut into cells that a decoder attends over."""

    kind: Literal["image"] = "image"
    """Of source."""
    cut: Literal["convolution", "patches"] = "convolution"
    """Cells by convolutions, each of which halves height and width, or patches through a linear layer."""
    width: int = Field(default=64, ge=1)
    """Of a cell's vector."""
    halvings: int = Field(default=2, ge=1, le=6)
    """Convolutions; the first has width / 2^(halvings - 1) channels, the last width."""
    patch: tuple[int, int] = (7, 7)
    """Height and width of a patch."""
    positions: bool = True
    """Tell each cell its row and column."""

    @model_validator(mode="after")
    def _cells_are_not_empty(self) -> Self:
        if min(self.patch) < 1:
            raise ValueError(f"patch: expected a height and a width of 1 or more; got {list(self.patch)}")
        return self


def _kind(given: Any) -> str:
    kind = given.get("kind", "words") if isinstance(given, Mapping) else getattr(given, "kind", "words")
    return str(kind)


InputSettings = Annotated[
    Annotated[WordSettings, Tag("words")]
    | Annotated[RowSettings, Tag("rows")]
    | Annotated[ImageSettings, Tag("image")],
    Discriminator(_kind),
]
"""One of them, told apart by `kind`; words where none is said."""
