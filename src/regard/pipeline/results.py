"""What a model gives for a text: plain values and numpy, no torch, so that any engine can give them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.text.words import Span, Word, tokens_of_words, words

Ending = Literal["end", "limit", "loop", "nothing"]
Numbers = NDArray[np.float32]

REMARKS: dict[Ending, str] = {
    "end": "",
    "limit": "cut at the longest length a result may have",
    "loop": "only repeated itself, and was stopped",
    "nothing": "there was nothing it was allowed to say",
}


@dataclass(frozen=True)
class Piece:
    """A token and the characters of its text that it stands for: text[start:end]."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Attention:
    """Where the tokens of an output looked in the source."""

    weights: Numbers
    """[T, L, H, S]: for each output token, layer and head a share of each source token; before the output's end too."""
    output: str
    source: str
    output_pieces: tuple[Piece, ...]
    """T of them; the end of the output is the last, where the model came to one."""
    source_pieces: tuple[Piece, ...]
    """S of them."""

    @property
    def layers(self) -> int:
        return int(self.weights.shape[1])

    @property
    def heads(self) -> int:
        return int(self.weights.shape[2])

    def of(self, layer: int | None = None, head: int | None = None) -> Numbers:
        """[T, S]: of one layer (from 1, -1 the last) and head, or the mean over those that are not named."""
        chosen = self.weights
        for axis, which, there, what in ((1, layer, self.layers, "layer"), (2, head, self.heads, "head")):
            if which is not None:
                if which == 0 or abs(which) > there:
                    raise ValueError(f"{what}: expected 1 to {there}; got {which}")
                chosen = chosen.take([which - 1 if which > 0 else which], axis)
        mean: Numbers = chosen.mean((1, 2))
        return mean

    def of_words(
        self, layer: int | None = None, head: int | None = None
    ) -> tuple[Numbers, tuple[str, ...], tuple[str, ...]]:
        """([W, V], output words, source words): a word of the source gets what its tokens got together, a word of the
        output looked where its tokens did on average. The end stands for itself."""
        return by_words(self.of(layer, head), self.output, self.source, self.output_pieces, self.source_pieces)

    def every_head(self, layer: int | None = None) -> tuple[Numbers, list[str], tuple[str, ...], tuple[str, ...]]:
        """([maps, W, V], names, output words, source words): a map for each head, of one layer or of all."""
        chosen = range(1, self.layers + 1) if layer is None else [layer if layer > 0 else self.layers + 1 + layer]
        heads = [(each, head) for each in chosen for head in range(1, self.heads + 1)]
        maps = [self.of_words(*each) for each in heads]
        names = [f"layer {each}, head {head}" for each, head in heads]
        return np.stack([weights for weights, _, _ in maps]), names, maps[0][1], maps[0][2]


def by_words(
    weights: Numbers, output: str, source: str, rows: Sequence[Piece], columns: Sequence[Piece]
) -> tuple[Numbers, tuple[str, ...], tuple[str, ...]]:
    """Weights between tokens [T, S] as weights between words."""
    row_words, row_groups = grouped(output, rows)
    column_words, column_groups = grouped(source, columns)
    return merged(weights, row_groups, column_groups), row_words, column_words


def merged(weights: Numbers, rows: Sequence[list[int]], columns: Sequence[list[int]]) -> Numbers:
    """Weights [T, S] of groups of places: what is looked at is added up, what looks is averaged."""
    summed = np.stack([weights[:, group].sum(1) for group in columns], 1)
    return np.stack([summed[group].mean(0) for group in rows]).astype(np.float32)


def grouped(text: str, pieces: Sequence[Piece]) -> tuple[tuple[str, ...], list[list[int]]]:
    """The words of a text and the tokens of each, each token once; a token of no word (an end, a tag) stays alone."""
    groups, found = numbered(text, pieces), words(text)
    names = (_said(pieces, places) if word is None else found[word].text for word, places in groups)
    return tuple(names), [places for _, places in groups]


def _said(pieces: Sequence[Piece], places: Sequence[int]) -> str:
    """What a group of no word reads: the white space beside it aside."""
    return next(pieces[place].text for place in places if pieces[place].text.strip())


def numbered(text: str, pieces: Sequence[Piece]) -> list[tuple[int | None, list[int]]]:
    """The same groups, each with the number of its word in the text; None where it is no word."""
    owner: dict[int, int] = {}
    for number, places in enumerate(tokens_of_words(_in_order(pieces), words(text))):
        for place in places:
            owner.setdefault(place, number)
    groups: list[tuple[int | None, list[int]]] = []
    first: list[int] = []
    last: int | None = None
    for place, piece in enumerate(pieces):
        word = owner.get(place)
        if word is None and not piece.text.strip():  # white space alone goes with what stands before it
            (groups[-1][1] if groups else first).append(place)  # and at the beginning with what stands behind it
        elif word is not None and word == last:
            groups[-1][1].append(place)
        else:
            groups.append((word, [*first, place]))
            first, last = [], word
    return groups


def _in_order(pieces: Sequence[Piece]) -> Sequence[Span]:
    return pieces


@dataclass(frozen=True, eq=False)
class Result:
    """What became of one text."""

    source: str
    text: str
    """The output; empty where there is a `problem`."""
    score: float = 0.0
    """What it was ranked by: its log-probability after the penalties of length and coverage."""
    log_prob: float = 0.0
    tokens: tuple[str, ...] = ()
    """Of the output, as they read; its end is none of them."""
    token_scores: tuple[float, ...] = ()
    """The log-probability of each token, and of the end where it came to one."""
    ending: Ending = "end"
    attention: Attention | None = None
    """On request, and where the model has some."""
    others: tuple["Result", ...] = ()
    """Further results, best first, where more than one was asked for."""
    parts: tuple["Result", ...] = ()
    """The sentences, where the text was cut into such."""
    unknown: float = 0.0
    """The share of the source's tokens that the model does not know, those that stand for no text left out."""
    problem: str = ""
    """Why there is no output."""
    notes: tuple[str, ...] = ()
    """What was done to the source."""

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know before trusting the output."""
        found = [*self.notes, REMARKS[self.ending]]
        if self.unknown >= 0.5:
            found.append(f"the model does not know {self.unknown:.0%} of the source's tokens")
        found += [f"{each.source[:40]!r}: {remark}" for each in self.parts for remark in each.remarks]
        return tuple(filter(None, found))

    @property
    def all(self) -> tuple["Result", ...]:
        """This one and the others."""
        return (self, *self.others)

    def record(self, *, attention: bool = False) -> dict[str, Any]:
        """As plain values, for JSON."""
        held: dict[str, Any] = {"source": self.source, "text": self.text}
        if self.problem:
            return held | {"problem": self.problem}
        held |= {
            "score": round(self.score, 6), "log_prob": round(self.log_prob, 6), "tokens": list(self.tokens),
            "token_scores": [round(each, 6) for each in self.token_scores],
        }  # fmt: skip
        if self.remarks:
            held["remarks"] = list(self.remarks)
        if attention and self.attention is not None:
            weights, rows, columns = self.attention.of_words()
            held["alignment"] = {
                "output": list(rows), "source": list(columns), "weights": np.round(weights.astype(float), 4).tolist(),
            }  # fmt: skip
        if attention and self.parts:
            held["parts"] = [each.record(attention=True) for each in self.parts]
        if self.others:
            held["others"] = [_without_source(each.record(attention=attention)) for each in self.others]
        return held


def _without_source(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "source"}


@dataclass(frozen=True, eq=False)
class Tagged:
    """A text with a tag for each word."""

    source: str
    words: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    """The probability of each tag."""
    problem: str = ""

    @property
    def text(self) -> str:
        """word/TAG word/TAG …"""
        return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))

    @property
    def score(self) -> float:
        """The mean log-probability of the tags."""
        return float(np.log(np.maximum(self.scores, 1e-30)).mean()) if self.scores else 0.0

    def record(self, *, attention: bool = False) -> dict[str, Any]:
        """As plain values; there is no attention to add."""
        held: dict[str, Any] = {"source": self.source}
        if self.problem:
            return held | {"problem": self.problem}
        scores = [round(each, 6) for each in self.scores]
        return held | {"words": list(self.words), "tags": list(self.tags), "scores": scores}


@dataclass(frozen=True, eq=False)
class Labelled:
    """A text (or series, or image) with a label."""

    source: str
    label: str = ""
    score: float = 0.0
    """Its probability."""
    probabilities: dict[str, float] = field(default_factory=dict)
    """Of all labels, the likeliest first."""
    weights: Numbers | None = None
    """[S]: what each token counted, where the sequence was pooled by attention."""
    pieces: tuple[Piece, ...] = ()
    """S of them, where the source is text."""
    problem: str = ""

    @property
    def text(self) -> str:
        return self.label

    def record(self, *, attention: bool = False) -> dict[str, Any]:
        """As plain values; with attention what each word counted, where that is known."""
        held: dict[str, Any] = {"source": self.source}
        if self.problem:
            return held | {"problem": self.problem}
        held |= {"label": self.label, "score": round(self.score, 6)}
        held |= {"probabilities": {name: round(each, 6) for name, each in self.probabilities.items()}}
        if attention and self.weights is not None and self.pieces:
            names, groups = grouped(self.source, self.pieces)
            counted = merged(self.weights[None], [[0]], groups)[0]
            held["alignment"] = {"source": list(names), "weights": np.round(counted.astype(float), 4).tolist()}
        return held


__all__ = ["Attention", "Ending", "Labelled", "Piece", "Result", "Tagged", "Word", "by_words"]
