"""What sources have in common: columns, each of one of the sorts text, words, numbers, image, label, tags."""

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from regard.config import Settings

Sort = Literal["text", "words", "numbers", "image", "label", "tags"]
Spot = Annotated[int, Field(ge=1)] | str


class Languages(Settings):
    """The languages of the two sides, as codes: en, es, pt-BR."""

    source: str
    """Of the source."""

    target: str
    """Of the target; where there are several targets, its tag goes in front of the source."""


class Roles(Settings):
    """Which column, field or key holds what."""

    source: Spot | None = None
    """The source text (for tags: the list of words)."""

    target: Spot | None = None
    """The target text."""

    label: Spot | None = None
    """The label of the whole."""

    tags: Spot | None = None
    """The list of tags, one for each word of the source."""

    @model_validator(mode="after")
    def _one_of_the_known_forms(self) -> "Roles":
        given = {name for name, spot in self if spot is not None}
        if given not in ({"source", "target"}, {"source", "label"}, {"source", "tags"}, {"target"}):
            raise ValueError(
                "expected source and target, source and label, source and tags, or target alone; "
                f"came {' and '.join(sorted(given)) or 'none'}"
            )
        return self

    def sorts(self) -> dict[str, Sort]:
        """The columns in their order, and what they hold."""
        sorts: dict[str, Sort] = {"source": "words" if self.tags is not None else "text", "target": "text"}
        sorts |= {"label": "label", "tags": "tags"}
        return {name: sorts[name] for name, spot in self if spot is not None}


BY_NAME = Roles(source="source", target="target")


class AnySource(Settings):
    """What every source has."""

    MAIN: ClassVar[str]

    def files(self) -> list[str]:
        """The files (or folders) it reads, as they were named."""
        return [str(getattr(self, self.MAIN))]

    @abstractmethod
    def sorts(self) -> dict[str, Sort]:
        """The columns it gives, and what they hold."""

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return " and ".join(self.files())


class TwoTexts(AnySource):
    """What sources of two texts have."""

    languages: Languages | None = None
    """The languages of the two sides."""

    both_ways: bool = False
    """Also the other way round: each pair gives an example from source to target and one back."""

    def sorts(self) -> dict[str, Sort]:
        return {"source": "text", "target": "text"}

    @model_validator(mode="after")
    def _both_ways_needs_languages(self) -> "TwoTexts":
        if self.both_ways and self.languages is None:
            raise ValueError("both_ways needs languages, so that the tag of the target's can go in front")
        if self.both_ways and set(self.sorts()) != {"source", "target"}:
            raise ValueError("both_ways is for sources of a source and a target")
        return self
