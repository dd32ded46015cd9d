"""Readers: every kind of source as a stream of examples, and of lines that cannot be used."""

from collections.abc import Iterator
from contextlib import contextmanager

from regard.data.readers import images, parallel, records, series, strips, tables, tagged, tmx
from regard.data.readers.examples import Bad, Example, Read
from regard.data.readers.files import Files
from regard.data.sources import (
    Conllu,
    Dataset,
    Digits,
    Images,
    Jsonl,
    Labelled,
    Parallel,
    Parquet,
    Series,
    Source,
    Tagged,
    Text,
    Tmx,
    Tsv,
)

__all__ = ["Bad", "Example", "Files", "Read", "read", "reading"]


def read(source: Source, files: Files) -> Read:
    """The examples of a source in the order of its lines, and the lines that are no example."""
    match source:
        case Parallel():
            return parallel.read(files)
        case Tsv() | Labelled() | Text():
            return tables.read(source, files)
        case Jsonl():
            return records.read_jsonl(source, files)
        case Parquet():
            return records.read_parquet(source, files)
        case Dataset():
            return records.read_dataset(source, files)
        case Tmx():
            return tmx.read(source, files)
        case Conllu():
            return tagged.read_conllu(source, files)
        case Tagged():
            return tagged.read_tagged(source, files)
        case Series():
            return series.read(source, files)
        case Images():
            return images.read(source, files)
        case Digits():
            return strips.read(source, files)


@contextmanager
def reading(source: Source) -> Iterator[tuple[Read, Files]]:
    """Open a source: its examples, and the files, which tell how far they are read."""
    with Files(source.files()) as files:
        yield read(source, files), files
