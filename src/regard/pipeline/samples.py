"""Some outputs of a model with their attention, for a report."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from regard.evaluation.reading import Examples
from regard.evaluation.report import Shown
from regard.pipeline.model import Pipeline
from regard.pipeline.results import Labelled, Result, Tagged, grouped, merged

SOME = 8
LONGEST = 25
"""Words of a source whose picture is still easy to read."""


def samples(model: Pipeline, examples: Examples, to: str | None = None, count: int = SOME) -> list[Shown]:
    """Evenly from the examples that are no longer than is easy to look at, each source once."""
    places = _chosen(examples, count)
    sources = [examples.sources[place] for place in places]
    truths = [examples.references[place][0] for place in places]
    if model.task in ("translate", "reconstruct"):
        results = _asked(model, sources, to)
        return [_text(each, truth) for each, truth in zip(results, truths, strict=True)]
    if model.task == "caption":
        captions: Any = model.predict(sources, attention=True, keep_problems=True)
        named = [replace(each, source=f"example {place + 1}") for each, place in zip(captions, places, strict=True)]
        return [_caption(model, *each) for each in zip(named, sources, truths, strict=True)]
    if examples.kind not in ("tags", "label"):
        return []
    answers: Any = model.predict(sources, keep_problems=True)
    return [
        _tags(each, truth) if isinstance(each, Tagged) else _label(each, truth)
        for each, truth in zip(answers, truths, strict=True)
    ]


def _chosen(examples: Examples, count: int) -> list[int]:
    fitting: list[int] = []
    seen: set[str] = set()
    for place, source in enumerate(examples.sources):
        words = source.split() if isinstance(source, str) else source
        if isinstance(source, str) and source in seen:
            continue
        if getattr(source, "ndim", 1) > 1 or 1 <= len(words) <= LONGEST:
            fitting.append(place)
        seen.update([source] if isinstance(source, str) else ())
    return fitting[:: max(1, -(-len(fitting) // count))]


def _asked(model: Pipeline, sources: Sequence[str], to: str | None) -> list[Result]:
    """With attention, where the model has any."""
    try:
        return model.translate(sources, to=to, attention=True, keep_problems=True)
    except ValueError:  # it says that it has none; its outputs are shown without
        return model.translate(sources, to=to, keep_problems=True)


def _text(each: Result, reference: str) -> Shown:
    if each.attention is None:
        return Shown(each.source, each.text, reference, each.score)
    weights, rows, columns = each.attention.of_words()
    if len(rows) > 2 * LONGEST:  # one that found no end: there is nothing to be seen in its picture
        return Shown(each.source, each.text, reference, each.score)
    return Shown(each.source, each.text, reference, each.score, rows, columns, weights)


def _caption(model: Pipeline, each: Result, source: Any, reference: str) -> Shown:
    from regard.evaluation.pictures import drawn
    from regard.evaluation.pictures.images import looked
    from regard.pipeline.answering import image
    from regard.pipeline.looking import on_pixels

    shown = Shown(each.source, each.text, reference, each.score)
    if each.attention is None or each.problem or model.model.sizes.image is None:
        return shown
    pixels = image(source, model.model.sizes.image)
    maps, said = on_pixels(model, each, *pixels.shape[1:])
    picture = drawn(looked(pixels.transpose(1, 2, 0).squeeze(), maps, said), dpi=100)
    return Shown(each.source, each.text, reference, each.score, picture=picture)


def _label(each: Labelled, truth: str) -> Shown:
    if each.weights is None or not each.pieces:
        return Shown(each.source, each.label, truth, each.score)
    names, groups = grouped(each.source, each.pieces)
    weights = merged(np.asarray(each.weights)[None], [[0]], groups)
    return Shown(each.source, each.label, truth, each.score, (each.label,), names, weights)


def _tags(each: Tagged, truth: Sequence[str]) -> Shown:
    words = tuple(zip(each.words, each.tags, truth, strict=False))
    return Shown(each.source, each.text, " ".join(truth), each.score, tags=words)
