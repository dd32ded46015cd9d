"""Asking the engine, and mending what it does otherwise than `decoding`: sequences out of sequences of tokens.

- A result may be so long as its own source allows, whatever stands beside it: the engine knows one limit for all that
  it searches together. What came out longer, or was cut there, is sought again alone.
- What only repeats itself (`decoding.repeating`) is cut where a search of ours would have stopped it.
- What did not end by itself ranks behind whatever did, and a loop behind what was cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from regard.decoding.repeating import loop_end
from regard.decoding.settings import SearchSettings
from regard.text.specials import END, SPECIALS

Pieces = Sequence[str]
RANKS = {"end": 0, "limit": 1, "loop": 2}


@dataclass(frozen=True)
class Found:
    """One hypothesis."""

    pieces: list[str]
    """Its end among them, where it has one."""
    log_prob: float
    ending: Literal["end", "limit", "loop"]
    token_scores: tuple[float, ...] = ()

    def score(self, settings: SearchSettings) -> float:
        return self.log_prob / float(max(len(self.pieces), 1) ** settings.length_penalty)

    @property
    def spoken(self) -> list[str]:
        return self.pieces[:-1] if self.ending == "end" else self.pieces


@dataclass(frozen=True)
class Asked:
    """What of a search is the same for all sources, in the engine's own terms."""

    settings: SearchSettings
    forbidden: list[list[str]]
    begin: list[str]
    places: int
    """The most tokens of a result that the network tells apart."""

    def limit(self, source: Pieces) -> int:
        return min(self.settings.limit(len(source)), self.places)


def search(engine: Any, sources: Sequence[Pieces], asked: Asked) -> list[list[Found]]:
    """For each source its `nbest` results, best first."""
    limits = [asked.limit(source) for source in sources]
    answers = _answers(engine, sources, max(limits), asked.settings.nbest, asked)
    for place, (source, limit) in enumerate(zip(sources, limits, strict=True)):
        if any(len(each.pieces) > limit or each.ending != "end" for each in answers[place]):
            [answers[place]] = _answers(engine, [source], limit, asked.settings.beam, asked)
    return [_ranked(engine, source, found, asked.settings) for source, found in zip(sources, answers, strict=True)]


def _answers(engine: Any, sources: Sequence[Pieces], limit: int, count: int, asked: Asked) -> list[list[Found]]:
    settings = asked.settings
    answers = engine.translate_batch(
        [list(source) for source in sources], beam_size=settings.beam, num_hypotheses=count, max_input_length=0,
        length_penalty=settings.length_penalty, no_repeat_ngram_size=settings.no_repeat, return_scores=True,
        disable_unk=not settings.unknown, max_decoding_length=limit, return_end_token=True,
        suppress_sequences=asked.forbidden or None,
        target_prefix=[asked.begin] * len(sources) if asked.begin else None,
    )  # fmt: skip
    return [
        [
            Found(pieces, score * max(len(pieces), 1) ** settings.length_penalty, _ending(pieces))
            for pieces, score in zip(each.hypotheses, each.scores, strict=True)
        ]
        for each in answers
    ]


def _ending(pieces: Pieces) -> Literal["end", "limit"]:
    return "end" if pieces[-1:] == [SPECIALS[END]] else "limit"


def _ranked(engine: Any, source: Pieces, found: Sequence[Found], settings: SearchSettings) -> list[Found]:
    """With loops cut, in the order in which ours would come."""
    if settings.stop_loops:
        found = [_without_loop(engine, source, each) for each in found]
    if any(each.ending != "end" for each in found):
        found = sorted(found, key=lambda each: (RANKS[each.ending], -each.score(settings)))
    return list(found[: settings.nbest])


def _without_loop(engine: Any, source: Pieces, found: Found) -> Found:
    end = loop_end(found.spoken)
    if end is None:
        return found
    pieces = found.pieces[:end]
    [scores] = token_scores(engine, [(source, replace(found, pieces=pieces, ending="loop"))])
    return Found(pieces, sum(scores), "loop", scores)


def token_scores(engine: Any, found: Sequence[tuple[Pieces, Found]]) -> list[tuple[float, ...]]:
    """Of each token of hypotheses to sources: a second look."""
    told = engine.score_batch([list(source) for source, _ in found], [each.spoken for _, each in found])
    return [
        tuple(scores.log_probs if each.ending == "end" else scores.log_probs[:-1])
        for scores, (_, each) in zip(told, found, strict=True)
    ]
