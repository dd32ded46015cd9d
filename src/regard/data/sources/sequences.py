"""Sources of words with their tags, of texts with a label, and of rows of numbers."""

from typing import Literal

from pydantic import Field

from regard.data.sources.base import AnySource, Sort


class Conllu(AnySource):
    """Sentences in CoNLL-U."""

    MAIN = "conllu"

    conllu: str
    """The file."""

    tags: Literal["upos", "xpos", "feats", "deprel", "lemma"] = "upos"
    """Which column is the tag."""

    def sorts(self) -> dict[str, Sort]:
        return {"source": "words", "tags": "tags"}


class Tagged(AnySource):
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


class Labelled(AnySource):
    """Label TAB text."""

    MAIN = "labelled"

    labelled: str
    """The file."""

    def sorts(self) -> dict[str, Sort]:
        return {"source": "text", "label": "label"}


class Series(AnySource):
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
