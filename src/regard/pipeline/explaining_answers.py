"""How tags and a label came about: what else was likely, which words counted, and the arithmetic behind it.

told = explain_answer(model, "The dogs bark.")
told.steps[1].candidates            [("NOUN", 0.93), ("PROPN", 0.04), …]
told.derivation(1).html()           every number of the second word's tag, opened
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.decoding.many import beside
from regard.models.contract import Labeller, Tagger
from regard.models.images import Image
from regard.pipeline import letters
from regard.pipeline.answering import counts_of, source_of, words_in
from regard.pipeline.explaining import CANDIDATES, EMPTY, Chosen, Explanation, Look, check_step, explain, shown, table
from regard.pipeline.looking import as_table, encoder_of, weights_of
from regard.pipeline.model import Pipeline
from regard.pipeline.results import Attention, Labelled, Tagged, grouped, merged
from regard.support.errors import Misuse
from regard.tracing import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from regard.decoding.settings import SearchSettings
    from regard.tracing import Derivation


class Given(NamedTuple):
    """What a model takes, and what a person sees of it."""

    source: Tensor
    lengths: Tensor
    counts: Tensor | None
    """For a tagger [1, W]: how many tokens each word has."""
    names: tuple[str, ...]
    """Words, or the numbers of steps or columns."""
    groups: list[list[int]]
    """The places of each."""


@dataclass(frozen=True, eq=False)
class AnswerExplanation:
    """Tags, word by word; or a label, which is one step."""

    result: Tagged | Labelled
    steps: tuple[Chosen, ...]
    model: Pipeline
    given: Given

    def derivation(self, step: int = 0, *, largest: int | None = None) -> "Derivation":
        """How the probabilities at a step (from 0; of a label there is one) were computed, from the source on."""
        of = "the text has words" if isinstance(self.result, Tagged) else "a label has steps"
        check_step(step, len(self.steps), of)
        from regard.tracing import trace

        with torch.no_grad(), trace(self.model.model, largest=largest) as tape:
            logits = _logits(self.model, self.given)
            logits = logits[:, step] if isinstance(self.result, Tagged) else logits
            probabilities = label(logits.softmax(-1), "p", "softmax(logits)")
        return tape.derivation(probabilities).with_axes({"p": (None, list(self.model.names))})

    def lines(self, width: int | None = None) -> str:
        """The words with their tags, or the label, and what else was likely; as much of that as fits a width."""
        if isinstance(self.result, Labelled):
            rows = [(name, shown(share)) for name, share in self.steps[0].candidates]
            return f"{self.result.source}\n{self.result.label}\n\n{table(('label', 'p'), rows)}"
        words = [
            (str(number), word, each.token, shown(each.probability), each.others)
            for number, (word, each) in enumerate(zip(self.result.words, self.steps, strict=True), 1)
        ]
        return f"{self.result.source}\n\n{table(('step', 'word', 'tag', 'p', 'likeliest'), words, width)}"

    def look(self, layer: int | None = None, head: int | None = None) -> Look | None:
        """What each word counted for the label; else where the words looked inside the encoder; None where there is no
        attention."""
        names, groups = self.given.names, self.given.groups
        if isinstance(self.result, Labelled) and self.result.weights is not None:
            if layer is not None or head is not None:
                raise Misuse("each word is weighed once here: there is neither a layer nor a head to choose")
            return merged(self.result.weights[None], [[0]], groups), (self.result.label,), names
        if (encoder := encoder_of(self.model)) is None:
            return None
        with torch.inference_mode(), weights_of(encoder) as weights:
            _logits(self.model, self.given)
        table_ = Attention(as_table(weights), "", "", (), ()).of(layer, head)
        return merged(table_, groups, groups), names, names

    def picture(self, layer: int | None = None, head: int | None = None) -> "Figure":
        from regard.evaluation.pictures.heat import alignment

        if (look := self.look(layer, head)) is None:
            raise Misuse("there is no attention to draw: this model has none")
        return alignment(*look, title=self.result.source)

    def title(self, step: int) -> str:
        word = f"{self.result.words[step]} in " if isinstance(self.result, Tagged) else ""
        return f"{self.steps[step].token}: {word}{self.result.source}"


def explain_answer(model: Pipeline, given: Any, *, candidates: int = CANDIDATES) -> AnswerExplanation:
    """Ask for the tags of a text's words or for the label of a source, and what came into question besides.

    given: as `Pipeline.predict` takes one input.
    """
    [result] = model.predict([given])
    assert isinstance(result, Tagged | Labelled)
    if not (result.words if isinstance(result, Tagged) else result.label):
        raise Misuse(EMPTY)
    asked = _words(model, given) if isinstance(result, Tagged) else _source(model, given, result)
    with torch.inference_mode():
        probabilities = _logits(model, asked).float().softmax(-1)[0]
    rows = probabilities if isinstance(result, Tagged) else probabilities[None]
    return AnswerExplanation(result, tuple(_chosen(row, model.names, candidates) for row in rows), model, asked)


def explain_any(
    model: Pipeline,
    given: Any,
    *,
    to: str | None = None,
    settings: "SearchSettings | None" = None,
    candidates: int = CANDIDATES,
) -> Explanation | AnswerExplanation:
    """Whatever the model says to one input."""
    if isinstance(model.model, Tagger | Labeller):
        return explain_answer(model, given, candidates=candidates)
    return explain(model, given, to=to, settings=settings, candidates=candidates)


def _chosen(row: Tensor, names: Sequence[str], candidates: int) -> Chosen:
    best = row.topk(min(candidates, len(row)))
    likeliest = [
        (names[number], share) for number, share in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    return Chosen(likeliest[0][0], likeliest[0][1], 1, tuple(likeliest))


def _logits(model: Pipeline, given: Given) -> Tensor:
    network: Any = model.model
    device = next(each.device for each in network.parameters())
    source = given.source.to(device)
    if given.counts is None:
        logits: Tensor = network.predict(network.encode(source, given.lengths))
    else:
        logits = network.predict(network.encode(source, given.lengths, given.counts.to(device)))
    return logits


def _words(model: Pipeline, given: Any) -> Given:
    tokenizer, words = model.tokenizer("source"), words_in(given)
    tokens, owners = tokenizer.encode_words(words)
    counts = counts_of(owners)
    source, lengths = beside([letters.of_words(model.model, tokenizer, words, tokens, counts)])
    groups = [[place for place, owner in enumerate(owners) if owner == word] for word in (*range(len(words)), -1)]
    return Given(source, lengths, torch.tensor([counts]), (*words, "</s>"), groups)


def _source(model: Pipeline, given: Any, result: Labelled) -> Given:
    found, text = source_of(model, given)
    source, lengths = beside([found])
    if result.pieces:
        names, groups = grouped(text, result.pieces)
        return Given(source, lengths, None, names, groups)
    cut = next((each for each in model.model.modules() if isinstance(each, Image)), None)
    high, wide = (1, len(found)) if cut is None else cut.grid(*np.shape(found)[1:])
    groups = [list(range(high * column, high * (column + 1))) for column in range(wide)]
    return Given(source, lengths, None, tuple(str(number) for number in range(1, wide + 1)), groups)
