"""Where examples come from: one settings class for each kind of source, told apart by the key that names the file.

    {source: a.en, target: a.de}                  two files, line by line
    {tsv: pairs.tsv}                              columns between tabs
    {jsonl: pairs.jsonl}  {parquet: p.parquet}  {dataset: name}       records with named fields
    {tmx: memory.tmx, languages: {source: en, target: de}}            translators' memories
    {text: corpus.txt}                            lines alone
    {conllu: a.conllu}  {tagged: a.tsv}           words and their tags
    {labelled: a.tsv}                             label TAB text
    {series: a.tsv}                               rows of numbers
    {images: folder, captions: captions.tsv}      images
    {digits: images, labels: labels}              strips of several digits, made of single ones

A file's name alone stands for `{tsv: name}` and so on where its ending says which. `regard:name` is a file that comes
with the package. Every source gives columns, each of one of the sorts text, words, numbers, image, label, tags.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from regard.config import Settings
from regard.support.nearest import nearest, unknown

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


class _Source(Settings):
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


class _Pairs(_Source):
    """What sources of two texts have."""

    languages: Languages | None = None
    """The languages of the two sides."""

    both_ways: bool = False
    """Also the other way round: each pair gives an example from source to target and one back."""

    def sorts(self) -> dict[str, Sort]:
        return {"source": "text", "target": "text"}

    @model_validator(mode="after")
    def _both_ways_needs_languages(self) -> "_Pairs":
        if self.both_ways and self.languages is None:
            raise ValueError("both_ways needs languages, so that the tag of the target's can go in front")
        if self.both_ways and set(self.sorts()) != {"source", "target"}:
            raise ValueError("both_ways is for sources of a source and a target")
        return self


class Parallel(_Pairs):
    """Two files, line by line."""

    MAIN = "source"

    source: str
    """The file of the source side."""

    target: str
    """The file of the target side: line n translates line n of the source."""

    def files(self) -> list[str]:
        return [self.source, self.target]


class Tsv(_Pairs):
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


class Records(_Pairs):
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


class Tmx(_Pairs):
    """A translation memory."""

    MAIN = "tmx"

    tmx: str
    """The file."""

    languages: Languages
    """Which languages to take; `en` takes en-US and en-GB too."""


class Text(_Source):
    """Lines of text alone, which become targets without a source: for language models."""

    MAIN = "text"

    text: str
    """The file."""

    def sorts(self) -> dict[str, Sort]:
        return {"target": "text"}


class Conllu(_Source):
    """Sentences in CoNLL-U."""

    MAIN = "conllu"

    conllu: str
    """The file."""

    tags: Literal["upos", "xpos", "feats", "deprel", "lemma"] = "upos"
    """Which column is the tag."""

    def sorts(self) -> dict[str, Sort]:
        return {"source": "words", "tags": "tags"}


class Tagged(_Source):
    """A word and its tag a line with a tab between, an empty line after each sentence."""

    MAIN = "tagged"

    tagged: str
    """The file."""

    word: int = Field(default=1, ge=1)
    """Which column is the word."""

    tag: int = Field(default=2, ge=1)
    """Which column is the tag."""

    spans: Literal["none", "bio", "iob1"] = "none"
    """bio: tags are checked to be B-x, I-x and O in an order that makes sense; iob1 is rewritten as bio."""

    def sorts(self) -> dict[str, Sort]:
        return {"source": "words", "tags": "tags"}


class Labelled(_Source):
    """Label TAB text."""

    MAIN = "labelled"

    labelled: str
    """The file."""

    def sorts(self) -> dict[str, Sort]:
        return {"source": "text", "label": "label"}


class Series(_Source):
    """Rows of numbers: the target, a tab, the steps. Spaces or tabs between steps, commas inside one."""

    MAIN = "series"

    series: str
    """The file."""

    target: Literal["label", "text", "numbers"] = "label"
    """What stands before the first tab: a label, a text, or the steps of another series."""

    def sorts(self) -> dict[str, Sort]:
        if self.target == "label":
            return {"source": "numbers", "label": "label"}
        return {"source": "numbers", "target": self.target}


class Images(_Source):
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


class Digits(_Source):
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

    seed: int = 0
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


KINDS: dict[str, type[_Source]] = {
    each.MAIN: each
    for each in (
        Parallel, Tsv, Jsonl, Parquet, Dataset, Tmx, Text, Conllu, Tagged, Labelled, Series, Images,
        Digits,
    )
}  # fmt: skip
"""Every kind of source by the key that names its file."""

ENDINGS = {"tsv": "tsv", "jsonl": "jsonl", "parquet": "parquet", "conllu": "conllu", "txt": "text"}
COMPRESSED = (".gz", ".zst", ".xz", ".bz2")


def _kind(value: Any) -> str | None:
    """The tag of the union below: which class a value is for."""
    if isinstance(value, _Source):
        return f"a {type(value).__name__}"
    return next((f"a {KINDS[key].__name__}" for key in _by_key(value)), None)


def _by_key(value: Any) -> list[str]:
    """The key that says which kind it is; `source` is parallel text only where no other key says otherwise."""
    found = [key for key in KINDS if key in value]
    return [key for key in found if key != "source"] or found


def _spelled_out(value: Any) -> Any:
    """`pairs.tsv.gz` → `{tsv: pairs.tsv.gz}`, and an error that helps where nothing says what a source is."""
    if isinstance(value, _Source):
        return value
    if isinstance(value, str):
        return {_ending(value): value}
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a source such as {{source: a.en, target: a.de}}, came {value!r}")
    found = _by_key(value)
    if len(found) > 1:
        raise ValueError(f"expected one kind of source, came {' and '.join(found)}")
    if not found:
        raise ValueError(_no_kind(value))
    return value


def _no_kind(value: Iterable[Any]) -> str:
    known = f"(kinds: source and target, {', '.join(key for key in KINDS if key != 'source')})"
    if "target" in value:
        return f"a target without a source {known}"
    for key in map(str, value):
        if guess := nearest(key, KINDS):
            return f"no kind of source has the key {key!r}; did you mean {guess!r}? {known}"
    return f"expected a key that says what kind of source it is {known}"


def _ending(name: str) -> str:
    plain = name
    for each in COMPRESSED:
        plain = plain.removesuffix(each)
    ending = plain.rpartition(".")[2]
    if ending == "tmx":
        raise ValueError(f"write {{tmx: {name}, languages: {{source: en, target: de}}}}: a memory holds several")
    if ending not in ENDINGS:
        raise ValueError(
            f"{name!r} does not say what kind of source it is; write {{tsv: {name}}}, or {{source: …, target: …}} "
            f"for two files"
        )
    return ENDINGS[ending]


Source = Annotated[
    Annotated[Parallel, Tag("a Parallel")]
    | Annotated[Tsv, Tag("a Tsv")]
    | Annotated[Jsonl, Tag("a Jsonl")]
    | Annotated[Parquet, Tag("a Parquet")]
    | Annotated[Dataset, Tag("a Dataset")]
    | Annotated[Tmx, Tag("a Tmx")]
    | Annotated[Text, Tag("a Text")]
    | Annotated[Conllu, Tag("a Conllu")]
    | Annotated[Tagged, Tag("a Tagged")]
    | Annotated[Labelled, Tag("a Labelled")]
    | Annotated[Series, Tag("a Series")]
    | Annotated[Images, Tag("a Images")]
    | Annotated[Digits, Tag("a Digits")],
    Discriminator(_kind),
    BeforeValidator(_spelled_out),
]
"""One source, of any kind."""
