"""Sources of texts: parallel files, columns, records, translators' memories, lines alone."""

from pydantic import model_validator

from regard.data.sources.base import AnySource, Languages, Roles, Sort, TwoTexts

BY_NAME = Roles(source="source", target="target")


class Parallel(TwoTexts):
    """Two files, line by line."""

    MAIN = "source"

    source: str
    """The file of the source side."""

    target: str
    """The file of the target side: line n translates line n of the source."""

    def files(self) -> list[str]:
        return [self.source, self.target]


class Tsv(TwoTexts):
    """Columns between tabs, without quotes."""

    MAIN = "tsv"

    tsv: str
    """The file."""

    columns: Roles = Roles(source=1, target=2)
    """Which column holds what: its number from 1, or its name in the first line."""

    def sorts(self) -> dict[str, Sort]:
        return self.columns.sorts()

    @model_validator(mode="after")
    def _numbers_or_names(self) -> "Tsv":
        if len({type(spot) for _, spot in self.columns if spot is not None}) > 1:
            raise ValueError("columns: expected numbers or names for all, came both")
        return self


class Records(TwoTexts):
    """What sources with named fields have."""

    columns: Roles = BY_NAME
    """Which field holds what; `translation.en` is the field en inside translation."""

    def sorts(self) -> dict[str, Sort]:
        return self.columns.sorts()

    @model_validator(mode="after")
    def _names(self) -> "Records":
        if any(isinstance(spot, int) for _, spot in self.columns):
            raise ValueError("columns: expected the names of fields, came numbers")
        return self


class Jsonl(Records):
    """One JSON object a line."""

    MAIN = "jsonl"

    jsonl: str
    """The file."""


class Parquet(Records):
    """A Parquet file."""

    MAIN = "parquet"

    parquet: str
    """The file."""


class Dataset(Records):
    """A dataset by the name that the `datasets` package knows it by."""

    MAIN = "dataset"

    dataset: str
    """Its name on the hub, or a folder."""

    config: str | None = None
    """Which of its configurations."""

    split: str = "train"
    """Which of its splits."""

    revision: str | None = None
    """Which version; without one, the newest."""

    def files(self) -> list[str]:
        return []

    @property
    def name(self) -> str:
        return ":".join(filter(None, [self.dataset, self.config, self.split]))


class Tmx(TwoTexts):
    """A translation memory."""

    MAIN = "tmx"

    tmx: str
    """The file."""

    languages: Languages
    """Which languages to take; `en` takes en-US and en-GB too."""


class Text(AnySource):
    """Lines of text alone, which become targets without a source: for language models."""

    MAIN = "text"

    text: str
    """The file."""

    def sorts(self) -> dict[str, Sort]:
        return {"target": "text"}
