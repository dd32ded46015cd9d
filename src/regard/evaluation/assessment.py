"""Everything that is found out about a model on some data, in one value: what tables, pictures and reports show."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from regard.evaluation import scores as scoring
from regard.evaluation.by_length import Bucket, by_length
from regard.evaluation.diagnostics import Diagnostics, diagnose
from regard.evaluation.evaluating import are_spans
from regard.evaluation.measures import Options, chosen, counted, flat
from regard.evaluation.reading import Examples
from regard.evaluation.scores import F1, Score, Text
from regard.evaluation.significance import Compared, compare_counts, compare_texts

TEXTS: tuple[Text, ...] = ("bleu", "chrf", "ter")
"""What sacreBLEU can compare."""


@dataclass(frozen=True)
class Assessment:
    """One model on one set of examples."""

    model: str
    examples: Examples
    outputs: tuple[Any, ...]
    """A text, a label, or a tuple of tags for each example."""
    scores: tuple[Score, ...]
    """The first is the one that lengths and comparisons go by."""
    lengths: tuple[Bucket, ...]
    diagnostics: Diagnostics | None = None
    """For texts."""
    by_label: dict[Hashable, F1] = field(default_factory=dict)
    """For tags and labels."""
    confusion: Counter[tuple[Hashable, Hashable]] = field(default_factory=Counter)
    measures: tuple[str, ...] = ()
    """The names of the first scores, as they are asked for; further scores have none."""
    by_span: dict[Hashable, F1] = field(default_factory=dict)
    """For BIO tags, each kind of span."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What the outputs came about with, and how fast."""
    options: Options = field(default_factory=Options)


def assess(
    model: str,
    examples: Examples,
    outputs: Sequence[Any],
    *,
    measures: Sequence[str] = (),
    options: Options | None = None,
    further: Sequence[Score] = (),
    unknown: Sequence[float] = (),
    ended: Sequence[bool] = (),
    settings: dict[str, Any] | None = None,
) -> Assessment:
    """Score the outputs of a model. further: scores that were reckoned elsewhere, such as its perplexity."""
    options = options or Options()
    if len(outputs) != len(examples):
        raise ValueError(f"expected an output for each of {len(examples)} examples; got {len(outputs)}")
    asked = chosen(examples.kind, measures, examples.references)
    main = next(iter(asked.values()))

    def some(places: list[int]) -> Score:
        return main([outputs[n] for n in places], [examples.references[n] for n in places], options)

    scores = [measure(outputs, examples.references, options) for measure in asked.values()] if len(examples) else []
    found = Assessment(
        model, examples, tuple(outputs), (*scores, *further), by_length(_lengths(examples), some),
        measures=tuple(asked) if scores else (), settings=dict(settings or {}), options=options,
    )  # fmt: skip
    return _with_details(found, unknown, ended)


def _with_details(found: Assessment, unknown: Sequence[float], ended: Sequence[bool]) -> Assessment:
    examples = found.examples
    if examples.kind == "text":
        sources = [
            source if isinstance(source, str) else f"example {number}"
            for number, source in enumerate(examples.sources, 1)
        ]
        return replace(
            found, diagnostics=diagnose(sources, found.outputs, examples.references, unknown=unknown, ended=ended)
        )
    said, true = flat(found.outputs, examples.references)
    found = replace(found, by_label=scoring.f1_by_label(said, true), confusion=scoring.confusion(said, true))
    if examples.kind != "tags" or not are_spans(true):
        return found
    return replace(found, by_span=scoring.f1_by_span(found.outputs, [several[0] for several in examples.references]))


def _lengths(examples: Examples) -> list[int]:
    """Of each source; an image has no words, and goes by those of its (first) reference."""
    pairs = zip(examples.sources, examples.references, strict=True)
    return [words_of(several[0] if _is_image(source) else source) for source, several in pairs]


def _is_image(source: Any) -> bool:
    return isinstance(source, np.ndarray) and (source.ndim == 3 or source.dtype == np.uint8)


def words_of(source: Any) -> int:
    """The length of a source in words; rows by their number."""
    return len(source.split() if isinstance(source, str) else source)


def compared(found: Sequence[Assessment]) -> dict[str, list[Compared]]:
    """Each measure of several models on the same data, the first being the one the others are compared with."""
    tests: dict[str, list[Compared]] = {}
    for name, score in zip(found[0].measures, found[0].scores, strict=False):
        tests[score.name] = _texts(found, name) if name in TEXTS else _counts(found, name, score)
    return tests


def _texts(found: Sequence[Assessment], name: Text) -> list[Compared]:
    references, options = found[0].examples.references, found[0].options
    return compare_texts(
        name, [each.outputs for each in found], references, lowercase=options.lowercase, tokenize=options.tokenize
    )


def _counts(found: Sequence[Assessment], name: str, score: Score) -> list[Compared]:
    each = counted(name, [one.outputs for one in found], found[0].examples.references)
    return compare_counts(score.name, each.counts, each.figure, higher_is_better=score.higher_is_better)
