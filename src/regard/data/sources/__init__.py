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
with the package.
"""

from typing import Annotated

from pydantic import BeforeValidator, Discriminator, Tag

from regard.data.sources.base import Languages, Roles, Sort, Spot
from regard.data.sources.images import Digits, Images
from regard.data.sources.sequences import Conllu, Labelled, Series, Tagged
from regard.data.sources.telling import KINDS, kind_of, spelled_out
from regard.data.sources.texts import Dataset, Jsonl, Parallel, Parquet, Records, Text, Tmx, Tsv

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
    Discriminator(kind_of),
    BeforeValidator(spelled_out),
]
"""One source, of any kind."""

__all__ = [
    "KINDS", "Conllu", "Dataset", "Digits", "Images", "Jsonl", "Labelled", "Languages", "Parallel", "Parquet",
    "Records", "Roles", "Series", "Sort", "Source", "Spot", "Tagged", "Text", "Tmx", "Tsv",
]  # fmt: skip
