"""What a model is measured on: sources and what was expected of each, from files as they are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from regard.data.lines import Undecodable, read_lines
from regard.data.readers import Bad, reading
from regard.data.sources import Source
from regard.support.errors import Misuse


@dataclass(frozen=True)
class Examples:
    """Sources with their references."""

    name: str
    sources: tuple[Any, ...]
    """Texts, lists of words, rows of numbers, or images."""
    references: tuple[tuple[Any, ...], ...]
    """For each one or more texts; or one label; or one list of tags."""
    kind: str
    """text, label or tags: what the references are; alone: texts without sources."""

    def __len__(self) -> int:
        return len(self.sources)

    def grouped(self) -> "Examples":
        """Each source once, with all the references that it has anywhere."""
        if self.kind != "text" or not all(isinstance(source, str) for source in self.sources):
            raise Misuse(f"{self.name}: only texts can be grouped by their source")
        found: dict[str, list[str]] = {}
        for source, several in zip(self.sources, self.references, strict=True):
            known = found.setdefault(source, [])
            known += [each for each in several if each not in known]
        return replace(self, sources=tuple(found), references=tuple(tuple(each) for each in found.values()))

    def first(self, count: int | None) -> "Examples":
        """Some of them, from the beginning."""
        return replace(self, sources=self.sources[:count], references=self.references[:count])


def read_examples(files: Sequence[str]) -> Examples:
    """One file with sources and references in it (TSV, JSON lines, CoNLL-U, …, told by its ending, or written as a
    configuration writes it: `{labelled: test.txt}`), or a file of sources and one or more files of references."""
    if not files:
        raise Misuse("data: name a file with sources and references, or a file of each")
    return _one(files[0]) if len(files) == 1 else _several(files)


def _one(file: str) -> Examples:
    source = _as_source(file)
    sorts = source.sorts()
    what = next((name for name in ("target", "label", "tags") if name in sorts), None)
    if what is None:
        raise Misuse(f"{file}: expected sources and what should come of them; there is only {', '.join(sorts)}")
    place = list(sorts).index(what)
    sources, references = [], []
    with reading(source) as (examples, files):
        for each in examples:
            if isinstance(each, Bad):
                raise Misuse(f"{files.names[each.file]}:{each.line}: {each.reason}: {each.said}")
            sources.append(each.fields[list(sorts).index("source")] if "source" in sorts else "")
            references.append((each.fields[place],))
    kind = what if what != "target" else "text" if "source" in sorts else "alone"
    return Examples(source.name, tuple(sources), tuple(references), kind)


def _as_source(file: str) -> Any:
    """A file's name, or the YAML of a source."""
    from regard.config.plain_yaml import parse_value

    given: Any = file
    if file.lstrip().startswith("{"):
        given = parse_value(file)
    elif not Path(file).exists():
        raise Misuse(f"{file}: no such file")
    try:
        return TypeAdapter(Source).validate_python(given)
    except ValidationError as error:
        raise Misuse(f"{file}: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None


def _several(files: Sequence[str]) -> Examples:
    columns = [_texts(Path(file)) for file in files]
    for file, column in zip(files[1:], columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise Misuse(f"{files[0]} has {len(columns[0]):,} lines and {file} {len(column):,}; expected as many")
    references = tuple(zip(*columns[1:], strict=True))
    return Examples(" and ".join(files), tuple(columns[0]), references, "text")


def _texts(path: Path) -> list[str]:
    if not path.exists():
        raise Misuse(f"{path}: no such file")
    found = []
    for number, line in enumerate(read_lines(path), 1):
        if isinstance(line, Undecodable):
            raise Misuse(f"{path}:{number}: {line.said}")
        found.append(line)
    return found
