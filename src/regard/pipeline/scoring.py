"""A model on examples: ask it, and find out everything about its answers."""

import time
from collections.abc import Sequence
from typing import Any

from regard.decoding.settings import SearchSettings
from regard.evaluation.assessment import Assessment, assess, words_of
from regard.evaluation.by_length import by_length
from regard.evaluation.measures import Options, chosen
from regard.evaluation.perplexity import perplexity_of
from regard.evaluation.reading import Examples
from regard.evaluation.scores import Score
from regard.models.contract import SequenceModel
from regard.pipeline.model import Pipeline
from regard.pipeline.results import Labelled, Result, Tagged
from regard.support.errors import Misuse
from regard.support.progress import Progress
from regard.text.specials import PAD

GROUP = 512
KINDS = {
    "translate": "text", "reconstruct": "text", "caption": "text", "tag": "tags", "classify": "label",
    "language_model": "alone",
}  # fmt: skip


def evaluate(
    model: Pipeline,
    examples: Examples,
    *,
    name: str = "model",
    to: str | None = None,
    search: SearchSettings | None = None,
    measures: Sequence[str] = (),
    options: Options | None = None,
    with_perplexity: bool = False,
    quiet: bool = True,
) -> Assessment:
    """Ask the model for all the sources and assess what it says."""
    check(model, examples, measures, with_perplexity)
    if examples.kind == "alone":
        return _told_by_perplexity(model, examples, name)
    search = SearchSettings() if search is None else search
    begun = time.perf_counter()
    answers: list[Any] = []
    with Progress(f"asking {name}", "examples", len(examples), quiet=quiet) as progress:
        for start in range(0, len(examples), GROUP):
            group = examples.sources[start : start + GROUP]
            answers += _asked(model, group, to, search)
            progress.add(len(group))
    seconds = time.perf_counter() - begun
    further = [_perplexity(model, examples, to)] if with_perplexity else []
    settings = {"search": search.model_dump(mode="json"), "seconds": round(seconds, 2), "folder": str(model.folder)}
    if to is not None:
        settings["to"] = to
    texts = [each for each in answers if isinstance(each, Result)]
    return assess(
        name, examples, [_plain(each) for each in answers], measures=measures, options=options, further=further,
        unknown=[each.unknown for each in texts], ended=[each.ending == "end" for each in texts], settings=settings,
    )  # fmt: skip


def check(model: Pipeline, examples: Examples, measures: Sequence[str] = (), with_perplexity: bool = False) -> None:
    """Raise a Misuse where the model cannot be measured so, before it is asked for anything."""
    if KINDS.get(model.task) != examples.kind:
        raise Misuse(f"{examples.name}: holds {examples.kind}, and this model was built to {model.task}")
    if not len(examples):
        raise Misuse(f"{examples.name}: there is nothing in it to measure a model on")
    if examples.kind == "alone":
        return
    chosen(examples.kind, measures, examples.references)
    texts = isinstance(model.model, SequenceModel) and all(isinstance(each, str) for each in examples.sources)
    if with_perplexity and not texts:
        raise Misuse(f"perplexity: is that of texts out of texts; this model was built to {model.task}")


def _told_by_perplexity(model: Pipeline, examples: Examples, name: str) -> Assessment:
    """A language model: how surprised it is by texts, and by those of each length."""
    network = model.sequence_model()
    tokens = model.tokenizer("target").encode_batch([several[0] for several in examples.references])

    def of(places: Sequence[int]) -> Score:
        return perplexity_of(network, [[PAD]] * len(places), [tokens[place] for place in places])

    lengths = by_length([words_of(several[0]) for several in examples.references], of)
    folder = {"folder": str(model.folder)}
    return Assessment(name, examples, (), (of(range(len(examples))),), lengths, settings=folder)


def _asked(model: Pipeline, group: Sequence[Any], to: str | None, search: SearchSettings) -> Sequence[Any]:
    if model.task in ("translate", "reconstruct"):
        return model.translate(group, to=to, settings=search, keep_problems=True)
    return model.predict(group, settings=search, keep_problems=True)


def _plain(answer: Result | Tagged | Labelled) -> Any:
    if answer.problem:
        return () if isinstance(answer, Tagged) else ""
    return tuple(answer.tags) if isinstance(answer, Tagged) else answer.text


def _perplexity(model: Pipeline, examples: Examples, to: str | None) -> Score:
    """Of the first references."""
    from regard.pipeline.sources import target_language

    source, target = model.tokenizer("source"), model.tokenizer("target")
    language = target_language(to, source.languages, model.about)
    return perplexity_of(
        model.sequence_model(), source.encode_batch(list(examples.sources), language=language),
        target.encode_batch([several[0] for several in examples.references]),
    )  # fmt: skip
