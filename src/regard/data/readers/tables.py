"""Lines that hold one example each: columns between tabs, label TAB text, text alone."""

from collections.abc import Callable, Iterator
from typing import Final

from regard.data.lines import Undecodable, lines
from regard.data.readers.examples import Bad, Example, Read
from regard.data.readers.files import Files
from regard.data.sources import Labelled, Text, Tsv
from regard.support.errors import Misuse
from regard.support.nearest import unknown

WRONG: Final = "wrong number of columns"


def numbered(files: Files) -> Iterator[tuple[int, str] | Bad]:
    """The lines of the first file with their numbers."""
    for number, line in enumerate(lines(files.open()), 1):
        if isinstance(line, Undecodable):
            yield Bad(number, "not UTF-8", line.said, line.text)
        else:
            yield number, line


def read_tsv(source: Tsv, files: Files) -> Read:
    """Every line has as many columns as the first; a first line of names is no example."""
    found = numbered(files)
    spots = [spot for _, spot in source.columns if spot is not None]
    made = _listed if source.columns.tags is not None else _same
    if isinstance(spots[0], int):
        return _rows(found, [int(spot) - 1 for spot in spots], None, made)
    places, width = _named([str(spot) for spot in spots], next(found, None), files.names[0])
    return _rows(found, places, width, made)


def read_labelled(files: Files) -> Read:
    """Label TAB text → the text and its label."""
    return _rows(numbered(files), [1, 0], 2, _same)


def read_text(files: Files) -> Read:
    """A line, a text."""
    for each in numbered(files):
        yield each if isinstance(each, Bad) else Example(each[0], (each[1],))


def _named(spots: list[str], first: tuple[int, str] | Bad | None, name: str) -> tuple[list[int], int]:
    """Where the columns of these names are, and how many there are, by the first line."""
    if first is None or isinstance(first, Bad):
        raise Misuse(f"{name}:1: expected the names of columns, and there are none")
    names = first[1].split("\t")
    for spot in spots:
        if spot not in names:
            raise Misuse(f"{name}:1: {unknown('column', spot, names)}")
    return [names.index(spot) for spot in spots], len(names)


def _same(fields: list[str]) -> tuple[str, ...]:
    return tuple(fields)


def _listed(fields: list[str]) -> tuple[list[str], ...]:
    """Words and tags of a sentence in one line each, spaces between."""
    return tuple(field.split() for field in fields)


def _rows(
    found: Iterator[tuple[int, str] | Bad],
    places: list[int],
    width: int | None,
    made: Callable[[list[str]], tuple[object, ...]],
) -> Read:
    """The fields at `places` of every line with `width` columns; None: as many as the first line has."""
    like = " as in the first line" if width is None else ""
    for each in found:
        if isinstance(each, Bad):
            yield each
            continue
        number, line = each
        fields = line.split("\t")
        width = width or max(len(fields), max(places) + 1)
        if len(fields) == width:
            yield Example(number, made([fields[place] for place in places]))
        else:
            like = like if number > 1 else ""
            yield Bad(number, WRONG, f"{_columns(len(fields))}, expected {width}{like}", line)


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def read(source: Tsv | Labelled | Text, files: Files) -> Read:
    """Whichever of the three."""
    if isinstance(source, Tsv):
        return read_tsv(source, files)
    return read_labelled(files) if isinstance(source, Labelled) else read_text(files)
