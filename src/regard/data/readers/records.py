"""Records with named fields: JSON lines, Parquet, datasets of the `datasets` package."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from regard.data.readers.examples import Bad, Example, Read
from regard.data.readers.files import Files
from regard.data.readers.tables import numbered
from regard.data.sources import Dataset, Jsonl, Parquet, Records
from regard.support.compressed import BLOCK, Opened
from regard.support.errors import Misuse
from regard.support.nearest import unknown

ROWS = 2048
Made = Callable[[int, Mapping[str, Any]], Example | Bad]


def read_jsonl(source: Jsonl, files: Files) -> Read:
    """One object a line."""
    made = example_of(source)
    for each in numbered(files):
        if isinstance(each, Bad):
            yield each
            continue
        number, line = each
        try:
            record = json.loads(line, object_pairs_hook=_once)
        except ValueError as error:
            yield Bad(number, "not a JSON object", str(error), line)
            continue
        except RecursionError:
            yield Bad(number, "not a JSON object", "nested too deeply", line)
            continue
        if isinstance(record, dict):
            yield made(number, record)
        else:
            yield Bad(number, "not a JSON object", f"expected an object, came {type(record).__name__}", line)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of which no key stands twice; else one of the two values would be lost."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands in it twice")
        found[key] = value
    return found


def read_parquet(source: Parquet, files: Files) -> Read:
    """The rows, in batches of a few thousand; a group of rows, which may be the whole file, is never held whole."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise Misuse(f"{files.names[0]}: to read Parquet: pip install 'regard[data]'") from None
    with _unpacked(files.open()) as there:
        try:
            file = parquet.ParquetFile(there, pre_buffer=False, buffer_size=BLOCK)
            wanted = _tops(source, file.schema_arrow.names, files.names[0])
            made, number = example_of(source), 0
            for batch in file.iter_batches(batch_size=ROWS, columns=wanted):
                for record in batch.to_pylist():
                    number += 1
                    yield made(number, record)
                files.told = number / max(file.metadata.num_rows, 1)
        except ArrowException as error:
            raise Misuse(f"{files.names[0]}: not a Parquet file that can be read: {error}") from None


@contextmanager
def _unpacked(file: Opened) -> Iterator[Path | IO[bytes]]:
    """What can be read from its end, as Parquet is: the file, or a temporary one of what stands in it compressed."""
    if not file.compressed:
        yield file.path
        return
    with TemporaryFile() as plain:
        for block in file.blocks():
            plain.write(block)
        yield plain


def read_dataset(source: Dataset, files: Files) -> Read:
    """The records of a dataset, streamed; classes that it numbers are given by their names."""
    try:
        import datasets
    except ImportError:
        raise Misuse(f"{source.name}: to read it: pip install 'regard[data]'") from None
    try:
        found = datasets.load_dataset(
            source.dataset, source.config, split=source.split, revision=source.revision, streaming=True
        )
    except (ValueError, OSError, ConnectionError) as error:
        raise Misuse(f"{source.name}: the dataset cannot be loaded: {error}") from None
    features = found.features or {}
    if features:
        _tops(source, list(features), source.name)
    classes = {name: each.names for name, each in features.items() if isinstance(each, datasets.ClassLabel)}
    made = example_of(source)
    for number, record in enumerate(found, 1):
        yield made(number, {**record, **{name: _class(names, record[name]) for name, names in classes.items()}})


def _class(names: list[str], number: Any) -> Any:
    return names[number] if isinstance(number, int) and 0 <= number < len(names) else None


def _tops(source: Records, known: list[str], name: str) -> list[str]:
    """The outermost fields that a source reads; Misuse where one of them is not there."""
    wanted = [str(spot) for _, spot in source.columns if spot is not None]
    tops = [spot if spot in known else spot.partition(".")[0] for spot in wanted]
    for top in tops:
        if top not in known:
            raise Misuse(f"{name}: {unknown('field', top, known)}")
    return list(dict.fromkeys(tops))


def example_of(source: Records) -> Made:
    """How a record becomes an example."""
    wanted = [(str(spot), sort) for (_, spot), sort in zip(_given(source), source.sorts().values(), strict=True)]

    def made(number: int, record: Mapping[str, Any]) -> Example | Bad:
        fields = []
        for spot, sort in wanted:
            value = _at(record, spot)
            field = _as(sort, value)
            if field is None:
                said = f"the field {spot!r} is {_told(value)}, expected {_expected(sort)}"
                return Bad(number, "a field that is missing or no text", said, json.dumps(record, default=str))
            fields.append(field)
        return Example(number, tuple(fields))

    return made


def _given(source: Records) -> Iterator[tuple[str, Any]]:
    return ((name, spot) for name, spot in source.columns if spot is not None)


def _at(record: Mapping[str, Any], spot: str) -> Any:
    """`translation.en`: the field of that name, or en inside translation."""
    if spot in record:
        return record[spot]
    value: Any = record
    for part in spot.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _as(sort: str, value: Any) -> Any:
    """A field as its sort wants it; None where it is something else. Labels may be numbers."""
    if sort == "text":
        return value if isinstance(value, str) else None
    if sort == "label":
        return str(value) if isinstance(value, (str, int)) else None
    every_one_text = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return value if every_one_text else None


def _expected(sort: str) -> str:
    return {"text": "text", "label": "text or a whole number"}.get(sort, "a list of texts")


def _told(value: Any) -> str:
    if value is None:
        return "missing"
    return {list: "a list", dict: "an object", bool: "a truth value"}.get(type(value), f"{value!r:.40}")
