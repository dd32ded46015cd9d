"""Sources of images: those that stand somewhere, and strips of digits that are made."""

from typing import Literal

from pydantic import Field, model_validator

from regard.data.sources.base import AnySource, Sort
from regard.support.nearest import unknown


class Images(AnySource):
    """Images with a caption or a label each."""

    MAIN = "images"

    images: str
    """An idx file, or a folder of PNG files."""

    captions: str | None = None
    """For an idx file one caption a line; for a folder `name TAB caption` lines."""

    labels: str | None = None
    """Labels instead: for an idx file one of labels (idx), for a folder `name TAB label` lines."""

    height: int | None = Field(default=None, ge=1)
    """Bring all images to this height, the width in proportion; without it all must have one height."""

    channels: Literal[1, 3] = 1
    """1 for grey, 3 for colours."""

    def files(self) -> list[str]:
        return [self.images, str(self.captions or self.labels)]

    def sorts(self) -> dict[str, Sort]:
        return {"source": "image", "target": "text"} if self.captions else {"source": "image", "label": "label"}

    @model_validator(mode="after")
    def _captions_or_labels(self) -> "Images":
        if (self.captions is None) == (self.labels is None):
            raise ValueError("expected captions or labels, one of the two")
        return self


class Digits(AnySource):
    """Strips of single digits (such as MNIST's) side by side, captioned with their digits as words."""

    MAIN = "digits"

    digits: str
    """The idx file of images of single digits."""

    labels: str
    """The idx file of what they are, 0 to 9."""

    language: str = "en"
    """Of the words."""

    count: int = Field(default=60_000, ge=1)
    """How many strips are made."""

    shortest: int = Field(default=1, ge=1)
    """The fewest digits of a strip."""

    longest: int = Field(default=6, ge=1)
    """The most."""

    gap: int = Field(default=8, ge=0)
    """The most empty columns before, between and behind digits; how many is drawn each time."""

    seed: int = Field(default=0, ge=0)
    """Of the strips."""

    def files(self) -> list[str]:
        return [self.digits, self.labels]

    def sorts(self) -> dict[str, Sort]:
        return {"source": "image", "target": "text"}

    @model_validator(mode="after")
    def _can_be(self) -> "Digits":
        from regard.data.readers.strips import WORDS

        if self.shortest > self.longest:
            raise ValueError(f"shortest {self.shortest} is more than longest {self.longest}")
        if self.language not in WORDS:
            raise ValueError(unknown("language", self.language, WORDS))
        return self
