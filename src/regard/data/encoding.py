"""From pieces to shards: text into numbers. What the workers of `prepare` do, and all that they need to know for it.

encoder = Encoder(plan)
examples = directed(piece, plan.ways[...])        a piece, there and (for both ways) back
made = encoder.encode(examples)                   columns of a shard, and which examples are too long
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from regard.data.pieces import ARRAYS, Piece
from regard.data.shards import Column, Kind
from regard.data.sources import Sort
from regard.data.writing import Ragged, ragged, smallest
from regard.text.specials import END, UNKNOWN
from regard.text.tokenizer import Tokenizer

BYTES = 257
"""How many characters a spelling is made of: 256 bytes and the padding."""


class Way(NamedTuple):
    """A source as examples in one direction."""

    tag: str | None = None
    """The language whose tag stands in front of the source."""
    pair: int = 0
    """Which of the pairs of languages it is."""
    turned: bool = False
    """From target to source."""


@dataclass(frozen=True)
class Plan:
    """How examples become numbers."""

    sorts: dict[str, Sort]
    tokenizers: dict[str, str]
    """The file of each side's."""
    names: dict[str, list[str]]
    """Of tags, labels and pairs."""
    widths: dict[str, list[int]]
    characters: int | None
    max_tokens: int | None

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        return cls(**values)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Made(NamedTuple):
    """What a shard is made of."""

    columns: dict[str, Ragged]
    kept: list[int]
    """The places of the examples that are not too long."""
    unknown: dict[str, int]
    """Unknown tokens of each side."""


class Encoder:
    """Holds the tokenizers and the numbers of the names."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        files = {file: Tokenizer.load(file) for file in sorted(set(plan.tokenizers.values()))}
        self.tokenizers = {side: files[file] for side, file in plan.tokenizers.items()}
        self._numbers = {
            column: {name: number for number, name in enumerate(names)} for column, names in plan.names.items()
        }

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Every column of a shard, in order."""
        found: dict[str, Column] = {}
        for name, sort in self.plan.sorts.items():
            found |= self._column(name, sort)
        return found | (self._named("pair") if "pair" in self.plan.names else {})

    def _column(self, name: str, sort: Sort) -> dict[str, Column]:
        if sort in ("tags", "label"):
            return self._named(name)
        if sort in ARRAYS:
            width, *channels = self.plan.widths[name]
            kind: Kind = "image" if sort == "image" else "numbers"
            return {name: Column(ARRAYS[sort], kind, width=width, channels=channels[0] if channels else None)}
        size = self.tokenizers[name].vocabulary
        found = {name: Column(smallest(size), "tokens", size)}
        if sort == "words":
            found["words"] = Column("uint16", "counts")
        if name == "source" and self.plan.characters:
            found["characters"] = Column("uint16", "spelling", BYTES, width=self.plan.characters)
        return found

    def _named(self, name: str) -> dict[str, Column]:
        size = len(self.plan.names[name])
        return {name: Column(smallest(size), "names", size)}

    def encode(self, piece: Piece, way: Way, *, limit: bool) -> Made:
        """The examples of a piece in one direction; with `limit`, those with too many tokens are left out."""
        rows: dict[str, list[Any]] = {}
        for name, sort in self.plan.sorts.items():
            rows |= self._rows(name, sort, self._field(piece, name, way), way)
        if "pair" in self.plan.names:
            rows["pair"] = [[way.pair]] * len(piece)
        kept = self._short_enough(rows) if limit else list(range(len(piece)))
        if len(kept) < len(piece):
            rows = {name: [each[place] for place in kept] for name, each in rows.items()}
        columns = {name: ragged(rows[name], each.dtype, each.width) for name, each in self.columns.items()}
        texts = [name for name, each in self.columns.items() if each.kind == "tokens"]
        return Made(columns, kept, {name: int((columns[name].values == UNKNOWN).sum()) for name in texts})

    def _field(self, piece: Piece, name: str, way: Way) -> list[Any]:
        return piece.columns[{"source": "target", "target": "source"}[name] if way.turned else name]

    def _rows(self, name: str, sort: Sort, fields: list[Any], way: Way) -> dict[str, list[Any]]:
        if sort in ARRAYS:
            return {name: fields}
        if sort == "label":
            return {name: [[self._numbers[name][each]] for each in fields]}
        if sort == "tags":
            numbers = self._numbers[name]
            return {name: [[numbers[tag] for tag in each] for each in fields]}
        tag = way.tag if name == "source" else None
        tokenizer = self.tokenizers[name]
        made: dict[str, list[Any]] = (
            _words(tokenizer, fields) if sort == "words" else {name: tokenizer.encode_batch(fields, language=tag)}
        )
        if name == "source" and self.plan.characters:
            counts = made.get("words", [None] * len(fields))
            made["characters"] = [self._spelled(tokenizer, *each, tag) for each in zip(fields, counts, strict=True)]
        return made

    def _spelled(
        self, tokenizer: Tokenizer, field: str | list[str], counts: list[int] | None, tag: str | None
    ) -> NDArray[np.uint16]:
        """[tokens, characters]: the spelling of each token of an example; a word of one token is that token's."""
        said: list[str] = []
        if counts is None:
            said = _texts(tokenizer, str(field))
        else:
            for word, count in zip(field, counts, strict=True):
                said += [word] if count == 1 else _texts(tokenizer, word)
        return spelling([*([""] if tag else []), *said, ""], self.plan.characters or 1)

    def _short_enough(self, rows: Mapping[str, Sequence[Any]]) -> list[int]:
        most = self.plan.max_tokens
        sides = [
            each for name, each in rows.items() if name in ("source", "target") and self.plan.sorts[name] not in ARRAYS
        ]
        if most is None:
            return list(range(len(next(iter(rows.values())))))
        return [place for place, each in enumerate(zip(*sides, strict=True)) if all(len(row) <= most for row in each)]


def _words(tokenizer: Tokenizer, sentences: list[list[str]]) -> dict[str, list[Any]]:
    """Tokens of the words of sentences, and how many each word has; a word of which nothing is kept is <unk>."""
    different = list(dict.fromkeys(chain.from_iterable(sentences)))
    known = dict(zip(different, tokenizer.encode_batch(different, end=False), strict=True))
    source, counts = [], []
    for words in sentences:
        tokens = [known[word] or [UNKNOWN] for word in words]
        source.append([*chain.from_iterable(tokens), END])
        counts.append([len(each) for each in tokens])
    return {"source": source, "words": counts}


def _texts(tokenizer: Tokenizer, text: str) -> list[str]:
    """What the tokens of a text stand for."""
    return [text[token.start : token.end] for token in tokenizer.tokens(text)]


def spelling(texts: Sequence[str], width: int) -> NDArray[np.uint16]:
    """[texts, width]: the bytes of each one's UTF-8, numbered from 1, 0 behind them."""
    table = np.zeros((len(texts), width), np.uint16)
    for row, text in enumerate(texts):
        said = np.frombuffer(text.encode()[:width], np.uint8)
        table[row, : len(said)] = said
        table[row, : len(said)] += 1
    return table


def texts_of(piece: Piece, sorts: Mapping[str, Sort], way: Way, pairs: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The examples as they can be read again: every column that is no array, and the pair of languages."""
    turned = {"source": "target", "target": "source"} if way.turned else {}
    names = [name for name, sort in sorts.items() if sort not in ARRAYS]
    for place in range(len(piece)):
        found = {name: piece.columns[turned.get(name, name)][place] for name in names}
        yield found | ({"pair": pairs[way.pair]} if pairs else {})
