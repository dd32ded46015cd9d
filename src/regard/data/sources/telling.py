"""Which kind of source a value is: told by the key that names its file, or by the ending of a file's name alone."""

from collections.abc import Iterable, Mapping
from typing import Any

from regard.data.sources.base import AnySource
from regard.data.sources.images import Digits, Images
from regard.data.sources.sequences import Conllu, Labelled, Series, Tagged
from regard.data.sources.texts import Dataset, Jsonl, Parallel, Parquet, Text, Tmx, Tsv
from regard.support.nearest import nearest

KINDS: dict[str, type[AnySource]] = {
    each.MAIN: each
    for each in (
        Parallel, Tsv, Jsonl, Parquet, Dataset, Tmx, Text, Conllu, Tagged, Labelled, Series, Images, Digits,
    )
}  # fmt: skip
"""Every kind of source by the key that names its file."""

ENDINGS = {"tsv": "tsv", "jsonl": "jsonl", "parquet": "parquet", "conllu": "conllu", "txt": "text"}
COMPRESSED = (".gz", ".zst", ".xz", ".bz2")


def kind_of(value: Any) -> str | None:
    """The tag in the union of all sources: which class a value is for."""
    if isinstance(value, AnySource):
        return f"a {type(value).__name__}"
    return next((f"a {KINDS[key].__name__}" for key in _by_key(value)), None)


def _by_key(value: Any) -> list[str]:
    """The key that says which kind it is; `source` is parallel text only where no other key says otherwise."""
    found = [key for key in KINDS if key in value]
    return [key for key in found if key != "source"] or found


def spelled_out(value: Any) -> Any:
    """`pairs.tsv.gz` → `{tsv: pairs.tsv.gz}`, and an error that helps where nothing says what a source is."""
    if isinstance(value, AnySource):
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
