"""Words and their tags: CoNLL-U, and a word and its tag a line with an empty line after each sentence."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from regard.data.readers import spans
from regard.data.readers.examples import Bad, Example, Read
from regard.data.readers.files import Files
from regard.data.readers.tables import WRONG, numbered
from regard.data.sources import Conllu, Tagged
from regard.support.errors import Misuse

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")

NO_WORD: Final = re.compile(r"\d+[-.]\d+")
"""The number of a range of words written as one (4-5), or of an empty node (4.1)."""

LONGEST: Final = 100_000
"""Lines of a sentence; where there are more, no empty line ends one, and all of them would have to be held."""


class _Row(NamedTuple):
    line: int
    text: str


def read_conllu(source: Conllu, files: Files) -> Read:
    """A sentence is its words, numbered from 1; ranges of words written as one and empty nodes are not words."""
    place = COLUMNS.index(source.tags)
    for block in _blocks(files):
        if isinstance(block, Bad):
            yield block
            continue
        rows = [row for row in block if not row.text.startswith("#")]
        if rows:
            yield _out_of_order(rows) or _sentence(rows, 1, place, width=len(COLUMNS), words_only=True)


def read_tagged(source: Tagged, files: Files) -> Read:
    """A sentence is the lines up to an empty one; every line has as many columns as the first."""
    columns = None
    for block in _blocks(files):
        if isinstance(block, Bad):
            yield block
            continue
        columns = columns or max(block[0].text.count("\t") + 1, source.word, source.tag)
        found = _sentence(block, source.word - 1, source.tag - 1, width=columns, words_only=False)
        yield found if isinstance(found, Bad) or source.spans == "none" else _spans(found, source.spans == "iob1")


def _blocks(files: Files) -> Iterator[list[_Row] | Bad]:
    """The lines between empty ones; a sentence with a line that is not UTF-8 is bad as a whole."""
    rows: list[_Row] = []
    bad: Bad | None = None
    for each in numbered(files):
        if isinstance(each, Bad):
            bad = bad or each
        elif each[1].strip():
            rows.append(_Row(*each))
            if len(rows) > LONGEST:
                raise Misuse(
                    f"{files.names[0]}:{rows[0].line}: a sentence of more than {LONGEST:,} lines; "
                    "is there an empty line after each sentence?"
                )
        else:
            if rows or bad:
                yield bad or rows
            rows, bad = [], None
    if rows or bad:
        yield bad or rows


def _out_of_order(rows: list[_Row]) -> Bad | None:
    """The first line whose number is not that of the next word, as where no empty line stands between sentences."""
    expected = 1
    for row in rows:
        number = row.text.partition("\t")[0]
        if number == str(expected):
            expected += 1
        elif not NO_WORD.fullmatch(number):
            return Bad(
                row.line, "words out of order", f"the word's number is {number!r}, expected {expected}", row.text
            )
    return None


def _sentence(rows: list[_Row], word: int, tag: int, width: int, words_only: bool) -> Example | Bad:
    words, tags, lines = [], [], []
    for row in rows:
        fields = row.text.split("\t")
        if len(fields) != width:
            return Bad(row.line, WRONG, f"{len(fields)} between tabs, expected {width}", row.text)
        if words_only and NO_WORD.fullmatch(fields[0]):
            continue
        words.append(fields[word])
        tags.append(fields[tag])
        lines.append(row.line)
    return Example(rows[0].line, (words, tags), lines)


def _spans(found: Example, first_form: bool) -> Example | Bad:
    words, tags = found.fields
    tags = spans.from_iob1(tags) if first_form else tags
    place = spans.wrong(tags)
    if place is None:
        return found._replace(fields=(words, tags))
    before = tags[place - 1] if place else "the start"
    said = f"the tag {tags[place]} of {words[place]!r} after {before} makes no span"
    return Bad(found.line + place, "tags that make no spans", said, f"{words[place]}\t{tags[place]}")
