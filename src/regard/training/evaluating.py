"""How good the model is now, on the development set: loss, then outputs and their scores, together and by pair of
languages.

Examples with one source in one pair of languages are one, with several references: a sentence has several translations.
References are the texts as they stood.
"""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch_settings import BatchSettings
from regard.data.batches import Batches
from regard.data.collating import Batch
from regard.data.shards import ShardSet
from regard.decoding.settings import SearchSettings
from regard.evaluation import scores as scoring
from regard.evaluation.evaluating import Sample, chosen, evaluate
from regard.evaluation.scores import Score
from regard.models.contract import Model, SequenceModel
from regard.models.transformer import Transformer
from regard.training.config import Config
from regard.training.corpus import Corpus, Held, groups_of
from regard.training.feeding import feed
from regard.training.objective import plain_loss
from regard.training.views import View


@dataclass(frozen=True)
class Found:
    """One evaluation."""

    loss: float
    """Mean cross-entropy a word (tag, label), in nats, without smoothing."""
    scores: dict[str, Score]
    """By the names that `evaluation.best` knows."""
    by_pair: dict[str, dict[str, Score]] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()

    @property
    def figures(self) -> dict[str, float]:
        """All of it as plain numbers."""
        plain = {"loss": self.loss, "perplexity": math.exp(min(self.loss, 700.0))}
        plain |= {name: score.value for name, score in self.scores.items()}
        for pair, scores in self.by_pair.items():
            plain |= {f"{pair}: {name}": score.value for name, score in scores.items()}
        return plain

    def rank(self, decides: str) -> list[float]:
        """The more the better: the score that decides, and for equals the loss."""
        if decides == "loss":
            return [-self.loss]
        score = self.scores[decides]
        return [score.value if score.higher_is_better else -score.value, -self.loss]


class Evaluator:
    """The development set (or a test), and the same part of it each time."""

    def __init__(
        self, config: Config, corpus: Corpus, held: Held, device: torch.device, *, bfloat16: bool, at_most: int | None
    ) -> None:
        self.config, self.tokenizers, self.device, self.bfloat16 = config, corpus.tokenizers, device, bfloat16
        pairs = groups_of(held.examples) if corpus.pairs else np.zeros(len(held.examples), np.int64)
        several = _together(held.examples, pairs)
        kept = [several[place] for place in chosen(len(several), at_most)]
        rows = np.concatenate([np.array(each, np.int64) for each in kept])
        self.examples = View(held.examples, rows)
        self.firsts = View(held.examples, np.array([each[0] for each in kept], np.int64))
        self.pairs, self.names = pairs[self.firsts.index], corpus.pairs
        self.references = [list(dict.fromkeys(_right(held.texts[row]) for row in each)) for each in kept]
        self.halved: SequenceModel | None = None

    def __len__(self) -> int:
        """How many sources there are."""
        return len(self.firsts)

    def __call__(self, model: Model, search: SearchSettings, samples: int | None = None) -> Found:
        """Score the model as it stands; `samples`: how many outputs to show, where not as the settings say."""
        was_training = model.training
        model.eval()
        try:
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bfloat16):
                loss = self.loss(model)
            if self.config.task == "language_model":
                return Found(loss, {})
            shown = self.config.training.samples if samples is None else samples
            searched = self._halved(model)
            halves = self.bfloat16 and searched is model
            with torch.autocast(self.device.type, torch.bfloat16, enabled=halves):
                return self._scored(searched, loss, search, shown)
        finally:
            model.train(was_training)

    def _halved(self, model: Model) -> Model:
        """On a GPU, Transformers are searched with weights in bfloat16, in a copy that stays in its place from one
        evaluation to the next: the graphs of its steps serve them all."""
        if not self.bfloat16 or self.device.type != "cuda" or not isinstance(model, Transformer):
            return model
        if self.halved is None:
            self.halved = copy.deepcopy(model).bfloat16().eval().requires_grad_(False)
        else:
            self.halved.load_state_dict(model.state_dict())
        return self.halved

    def loss(self, model: Model) -> float:
        """Mean cross-entropy over all examples; the sum is fetched from the device once."""
        start = model.start_token if isinstance(model, SequenceModel) else 0
        wide = torch.float32 if self.device.type == "mps" else torch.float64  # which mps has not
        total, places = torch.zeros((), dtype=wide, device=self.device), 0
        for batch in self._batches():
            total += plain_loss(model, feed(batch, start, self.device))
            places += batch.tokens
        return float(total) / max(places, 1)

    def _batches(self) -> Iterator[Batch]:
        settings = self.config.batches
        places = max(
            int(self.examples.lengths(each).max()) for each in ("source", "target") if each in self.examples.columns
        )
        wider = self.config.evaluation.tokens or 2 * settings.tokens
        free = BatchSettings(tokens=max(wider, 2 * places), count=settings.count, ahead=0)
        yield from Batches(self.examples, free, shuffle=False)

    def _scored(self, model: Model, loss: float, search: SearchSettings, samples: int) -> Found:
        found = evaluate(model, self.firsts, self.tokenizers, search=search, samples=samples)
        by_pair = {}
        for number, name in enumerate(self.names):
            if rows := np.flatnonzero(self.pairs == number).tolist():
                by_pair[name] = self._scores([found.outputs[r] for r in rows], [self.references[r] for r in rows])
        shown = zip(chosen(len(self), samples).tolist(), found.samples, strict=True)
        told = tuple(self._against_the_right_one(place, sample) for place, sample in shown)
        return Found(loss, self._scores(found.outputs, self.references), by_pair, told)

    def _against_the_right_one(self, place: int, sample: Sample) -> Sample:
        """An output that is one of several references stands beside that one."""
        return replace(sample, reference=sample.output) if sample.output in self.references[place] else sample

    def _scores(self, outputs: Sequence[Any], references: Sequence[Sequence[Any]]) -> dict[str, Score]:
        own = self.config.evaluation
        if self.config.task == "tag":
            said = [tag for tags in outputs for tag in tags]
            true = [tag for (tags,) in references for tag in tags]
            spans = Score("F1 (spans)", scoring.span_f1(outputs, [tags for (tags,) in references]).f1)
            return {"accuracy": scoring.accuracy(said, true), "f1": scoring.macro_f1(said, true), "span_f1": spans}
        if self.config.task == "classify":
            true = [label for (label,) in references]
            return {"accuracy": scoring.accuracy(outputs, true), "f1": scoring.macro_f1(outputs, true)}
        wrong = scoring.whole_error_rate(outputs, references)
        return {
            "bleu": scoring.text_score("bleu", outputs, references, lowercase=own.lowercase, tokenize=own.tokenize),
            "chrf": scoring.text_score("chrf", outputs, references, lowercase=own.lowercase),
            "exact": Score("exact", 1 - wrong.value),
            "error_rate": scoring.error_rate(
                [each.split() for each in outputs], [[one.split() for one in several] for several in references]
            ),
        }


def _together(examples: ShardSet, pairs: NDArray[np.int64]) -> list[list[int]]:
    """The examples that are one: those of a pair of languages with the same source, in the order of the first."""
    found: dict[tuple[int, bytes], list[int]] = {}
    alone = "source" not in examples.columns or "target" not in examples.columns
    for row in range(len(examples)):
        key = (row, b"") if alone else (int(pairs[row]), examples.tokens("source", row).tobytes())
        found.setdefault(key, []).append(row)
    return list(found.values())


def _right(text: dict[str, Any]) -> Any:
    """What should come out of an example, as it stood."""
    if "tags" in text:
        return tuple(text["tags"])
    return text["label"] if "label" in text else text["target"]
