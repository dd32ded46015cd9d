"""The `data:` section of a configuration: what examples are made of, and what is done to them on the way."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from regard.config import Settings
from regard.data.scripts import SCRIPTS
from regard.data.sources import KINDS, Source, Spot
from regard.support.nearest import unknown
from regard.text.settings import TokenizerSettings

Side = Literal["source", "target"]
Several = tuple[Source, ...]


def _one_or_many(value: Any) -> str:
    return "a list" if isinstance(value, (list, tuple)) else "a source"


def _one_or_named(value: Any) -> str:
    single = not isinstance(value, Mapping) or any(key in KINDS for key in value)
    return "a source or list" if single else "a mapping"


Sources = Annotated[
    Annotated[Source, Tag("a source")] | Annotated[Several, Tag("a list")],
    Discriminator(_one_or_many),
]
"""One source, or a list of them."""

Named = Annotated[
    Annotated[Sources, Tag("a source or list")] | Annotated[dict[str, Sources], Tag("a mapping")],
    Discriminator(_one_or_named),
]
"""Sources, or several under names."""


class Cleaning(Settings):
    """What is left out of the training data, each line counted under its reason. Dev and tests are never cleaned
    (only their normal form is that of the training data)."""

    min_characters: int | None = Field(default=None, ge=1)
    """The fewest characters of a side."""

    max_characters: int | None = Field(default=None, ge=1)
    """The most characters of a side."""

    min_words: int | None = Field(default=None, ge=1)
    """The fewest words of a side, between white space."""

    max_words: int | None = Field(default=None, ge=1)
    """The most words of a side."""

    max_ratio: float | None = Field(default=None, gt=1)
    """How many times as many characters one side may have as the other."""

    duplicates: Literal["keep", "pair", "source", "target"] = "keep"
    """Leave out what came before: the same pair, the same source or the same target."""

    copies: Literal["keep", "drop"] = "keep"
    """Pairs whose source is equal to their target."""

    held_out: Literal["keep", "pair", "side"] = "keep"
    """Leave out what stands in a given dev or test as well: the same pair, or whatever has a side in common with it.
    Both are counted in any case."""

    normal_form: Literal["none", "NFC", "NFKC"] = "none"
    """The Unicode normal form that all text is brought to; the number of changed texts is told."""

    scripts: dict[Side, str] = Field(default_factory=dict)
    """The script a side is written in, such as {source: latin, target: devanagari}."""

    script_share: float = Field(default=0.5, gt=0, le=1)
    """The least share of a side's letters that must be of its script."""

    @field_validator("scripts")
    @classmethod
    def _known(cls, scripts: dict[Side, str]) -> dict[Side, str]:
        for each in scripts.values():
            if each not in SCRIPTS:
                raise ValueError(unknown("script", each, SCRIPTS))
        return scripts

    @model_validator(mode="after")
    def _least_below_most(self) -> "Cleaning":
        for unit in ("characters", "words"):
            least, most = getattr(self, f"min_{unit}"), getattr(self, f"max_{unit}")
            if least is not None and most is not None and least > most:
                raise ValueError(f"min_{unit} {least} is more than max_{unit} {most}")
        return self


class TokenizerFiles(Settings):
    """Tokenizers that exist, one for each side."""

    source: str
    """The tokenizer.json of the source."""

    target: str
    """The tokenizer.json of the target."""


def _how(value: Any) -> str:
    if isinstance(value, str):
        return "a file"
    if isinstance(value, TokenizerFiles) or (isinstance(value, Mapping) and {"source", "target"} & set(value)):
        return "two files"
    return "settings"


class DataSettings(Settings):
    """Everything that `regard prepare` reads."""

    train: Sources
    """The training data: a source or a list of them, the only part that must be given."""

    dev: Sources | None = None
    """What is measured on while training; without it some is taken from the training data."""

    test: Named | None = None
    """What is measured on at the end: sources, or several tests under names."""

    folder: str | None = None
    """Where the prepared data go; without it, `data` inside the output."""

    dev_size: int = Field(default=1000, ge=0)
    """About how many training examples become dev where none is given (at most a tenth of them, and of each pair of
    languages; a pair that is read both ways counts once), taken by groups of examples that share a side with one
    another, so that nothing leaks; 0 takes none."""

    test_size: int = Field(default=0, ge=0)
    """The same for a test, where none is given."""

    tokenizer: Annotated[
        Annotated[TokenizerSettings, Tag("settings")]
        | Annotated[str, Tag("a file")]
        | Annotated[TokenizerFiles, Tag("two files")],
        Discriminator(_how),
    ] = TokenizerSettings()
    """How text becomes tokens: settings to train a tokenizer by, the tokenizer.json of one that exists, or
    {source: …, target: …} for two that exist."""

    sample: int = Field(default=400_000, ge=1)
    """The most training examples that a tokenizer learns from, drawn evenly by the seed."""

    sample_temperature: float = Field(default=1.0, ge=1, le=100)
    """With several pairs of languages of n examples each the sample holds them by n^(1 / temperature): above 1 a
    small one gets more tokens of its own."""

    target_tags: bool | None = None
    """Put the tag of the target's language in front of the source; null: where there are several targets."""

    clean: Cleaning = Cleaning()
    """What is left out of the training data."""

    on_bad: Literal["stop", "skip"] = "stop"
    """What to do about lines that cannot be used: stop at the first, or leave them out and count them."""

    skipped: str | None = None
    """A file for the lines that were left out: file, line, reason and text between tabs."""

    characters: int | None = Field(default=None, ge=1, le=1000)
    """The most bytes of a source's token that its spelling is kept of, for models that read words by their characters
    as well; null: no spelling is kept."""

    max_tokens: int | None = Field(default=None, ge=1)
    """The most tokens a side of a training example may have; longer ones are left out and counted."""

    seed: int = Field(default=0, ge=0)
    """Of the dev split and of the sample."""

    @property
    def tests(self) -> dict[str, tuple[Source, ...]]:
        """Every test by its name; one without a name is `test`."""
        if self.test is None:
            return {}
        named = self.test if isinstance(self.test, dict) else {"test": self.test}
        return {name: several(each) for name, each in named.items()}

    @property
    def splits(self) -> dict[str, tuple[Source, ...]]:
        """Every split that is given, by the name of its folder, the training data first."""
        found = {"train": several(self.train)}
        if self.dev is not None:
            found["dev"] = several(self.dev)
        return found | self.tests

    @model_validator(mode="after")
    def _one_test(self) -> "DataSettings":
        if self.test_size and self.test is not None:
            raise ValueError("test_size is for where no test is given, and there is one")
        return self

    @model_validator(mode="after")
    def _names_of_folders(self) -> "DataSettings":
        for name in self.tests:
            if name in ("train", "dev") or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
                raise ValueError(f"test: {name!r} cannot be the name of a test; letters, digits and - _ . can")
        return self

    @model_validator(mode="after")
    def _the_same_columns_everywhere(self) -> "DataSettings":
        expected = several(self.train)[0].sorts() if several(self.train) else {}
        for split, sources in self.splits.items():
            if not sources:
                raise ValueError(f"{split}: expected at least one source, came none")
            for source in sources:
                if source.sorts() != expected:
                    raise ValueError(
                        f"{split}: {source.name} gives {_told(source.sorts())}; "
                        f"the first source of train gives {_told(expected)}"
                    )
        return self


def several(sources: Any) -> tuple[Source, ...]:
    """One source or a list of them, as a list."""
    return tuple(sources) if isinstance(sources, (list, tuple)) else (sources,)


def _told(sorts: Mapping[str, str]) -> str:
    return " and ".join(f"{name} ({sort})" for name, sort in sorts.items())


__all__ = ["Cleaning", "DataSettings", "Sources", "Spot", "TokenizerFiles", "several"]
