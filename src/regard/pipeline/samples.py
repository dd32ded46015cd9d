"""Some outputs of a model with their attention, for a report."""

from regard.evaluation.reading import Examples
from regard.evaluation.report import Shown
from regard.pipeline.model import Pipeline

SOME = 8
LONGEST = 25
"""Words of a source whose picture is still easy to read."""


def samples(model: Pipeline, examples: Examples, to: str | None = None, count: int = SOME) -> list[Shown]:
    """Evenly from the examples that are no longer than is easy to look at; none where the model says no texts."""
    if model.task not in ("translate", "reconstruct"):
        return []
    fitting = [place for place, each in enumerate(examples.sources) if 1 <= len(each.split()) <= LONGEST]
    chosen = fitting[:: max(1, -(-len(fitting) // count))]
    try:
        results = model.translate([examples.sources[place] for place in chosen], to=to, attention=True)
    except ValueError:  # a model without attention says so; its outputs are shown without
        results = model.translate([examples.sources[place] for place in chosen], to=to)
    found = []
    for place, each in zip(chosen, results, strict=True):
        reference = examples.references[place][0]
        if each.attention is None:
            found.append(Shown(each.source, each.text, reference, each.score))
            continue
        weights, rows, columns = each.attention.of_words()
        if len(rows) > 2 * LONGEST:  # one that found no end: there is nothing to be seen in its picture
            found.append(Shown(each.source, each.text, reference, each.score))
            continue
        found.append(Shown(each.source, each.text, reference, each.score, rows, columns, weights))
    return found
