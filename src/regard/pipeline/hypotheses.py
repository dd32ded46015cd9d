"""From the hypotheses of a search to results that a person reads."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regard.decoding.results import Hypothesis
from regard.pipeline.results import Attention, Piece, Result
from regard.pipeline.sources import Cutting
from regard.text.sentences import joined
from regard.text.specials import SPECIALS
from regard.text.tokenizer import Tokenizer


def result_of(
    text: str, tokens: Sequence[int], found: Sequence[Hypothesis], source: Tokenizer | None, target: Tokenizer
) -> Result:
    """The best hypothesis as a result, the others under it."""
    results = [_one(text, tokens, each, source, target) for each in found]
    return replace(results[0], others=tuple(results[1:]))


def _one(text: str, tokens: Sequence[int], found: Hypothesis, source: Tokenizer | None, target: Tokenizer) -> Result:
    output = target.decode(found.tokens)
    attention = None
    if found.weights is not None:
        rows = output_pieces(target, found.tokens, output, len(found.token_scores))
        columns = source_pieces(source, tokens, text, found.weights.shape[-1])
        attention = Attention(found.weights.float().cpu().numpy(), output, text, rows, columns)
    return Result(
        text, output, found.score, found.log_prob, tuple(target.shown(found.tokens)), tuple(found.token_scores),
        found.ending, attention, unknown=source.unknown_share(tokens) if source is not None else 0.0,
    )  # fmt: skip


def source_pieces(tokenizer: Tokenizer | None, tokens: Sequence[int], text: str, places: int) -> tuple[Piece, ...]:
    """The tokens of a source with their characters: a tag in front and the end behind stand for none."""
    if tokenizer is None:
        return tuple(Piece(str(place + 1), 0, 0) for place in range(places))
    spoken = tokenizer.tokens(text)
    names = tokenizer.shown(tokens)
    first = next(
        (at for at in range(len(tokens)) if list(tokens[at : at + len(spoken)]) == [t.number for t in spoken]), 0
    )
    found = [Piece(name, 0, 0) if at < first else Piece(name, len(text), len(text)) for at, name in enumerate(names)]
    found[first : first + len(spoken)] = [Piece(each.piece, each.start, each.end) for each in spoken]
    return tuple(found[:places])


def output_pieces(tokenizer: Tokenizer, tokens: Sequence[int], text: str, steps: int) -> tuple[Piece, ...]:
    """The tokens of an output with their characters, and its end where there was a step for it."""
    found = [
        Piece(name, start, end)
        for name, (start, end) in zip(tokenizer.shown(tokens), spans(tokenizer, tokens, text), strict=True)
    ]
    return (*found, *[Piece(SPECIALS[3], len(text), len(text))] * (steps - len(tokens)))


def spans(tokenizer: Tokenizer, tokens: Sequence[int], text: str) -> list[tuple[int, int]]:
    """What each token adds to the text; tokens that make up a character only together share it."""
    spans: list[tuple[int, int]] = []
    at = 0
    for count, said in enumerate(tokenizer.decode_batch(tokens[: n + 1] for n in range(len(tokens))), 1):
        end = len(text) if count == len(tokens) else max(_common(said, text), at)
        if end > at:
            start = next((n for n in range(at, end) if not text[n].isspace()), end)
            spans += [(start, end)] * (count - len(spans))
            at = end
    return spans + [(at, at)] * (len(tokens) - len(spans))


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with together."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def joined_parts(cutting: Cutting, results: Sequence[Result]) -> Result:
    """The sentences of a text put together again, with the white space that stood between them."""
    coming = iter(results)
    texts = [next(coming).text if each.text else "" for each in cutting.sentences]
    scores = [score for each in results for score in each.token_scores]
    log_prob = float(np.sum([each.log_prob for each in results]))
    weighed = [each.score * max(len(each.token_scores), 1) for each in results]
    return Result(
        cutting.text, joined(cutting.sentences, texts).strip(),
        score=sum(weighed) / max(sum(max(len(each.token_scores), 1) for each in results), 1), log_prob=log_prob,
        tokens=tuple(token for each in results for token in each.tokens), token_scores=tuple(scores),
        parts=tuple(results), unknown=float(np.mean([each.unknown for each in results])),
    )  # fmt: skip


def of_text(cutting: Cutting, results: Sequence[Result]) -> Result:
    """What became of a text from what became of its parts."""
    if cutting.problem:
        return Result(cutting.text, "", problem=cutting.problem)
    if not results:
        return Result(cutting.text, "")
    if len(results) == 1:
        return replace(results[0], source=cutting.text, notes=cutting.notes)
    best = joined_parts(cutting, results)
    ranks = range(max(len(each.others) for each in results))
    others = [joined_parts(cutting, [_ranked(each, rank) for each in results]) for rank in ranks]
    return replace(best, others=tuple(others), notes=cutting.notes)


def _ranked(result: Result, rank: int) -> Result:
    """The result of a sentence after so many others; the last there is, where there are fewer."""
    return result.others[min(rank, len(result.others) - 1)] if result.others else result
