"""How surprised a model is by what it should say: exp of its mean loss a token, teacher forced."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.data.collating import collate
from regard.data.shards import ShardSet
from regard.decoding.many import Source, batches, beside
from regard.evaluation.scores import Score
from regard.models.contract import SequenceModel
from regard.text.specials import PAD


def perplexity(model: SequenceModel, examples: ShardSet, rows: NDArray[np.int64] | None = None) -> Score:
    """exp(-Σ log p(y_t | y_<t, x) / n) over all n target tokens, ends of sentences counted.

    Of two models only those with the same target tokens can be compared by it.
    """
    rows = np.arange(len(examples)) if rows is None else rows
    lengths = examples.lengths("target")[rows]
    if "source" in examples.columns:
        lengths = np.maximum(lengths, examples.lengths("source")[rows])
    loss = _Loss(model)
    for places in batches([range(length) for length in lengths.tolist()], 256, 4096):
        batch = collate(examples, rows[places])
        assert batch.target is not None
        loss.add(batch.source, batch.lengths, batch.target)
    return loss.score()


def perplexity_of(model: SequenceModel, sources: Sequence[Source], targets: Sequence[Sequence[int]]) -> Score:
    """The same of tokens, the targets with their ends."""
    loss = _Loss(model)
    sizes = [range(max(len(source), len(target))) for source, target in zip(sources, targets, strict=True)]
    for places in batches(sizes, 256, 4096):
        source, lengths = beside([sources[place] for place in places])
        loss.add(source, lengths, beside([targets[place] for place in places])[0])
    return loss.score()


class _Loss:
    """The sum of -log p over tokens, and how many there were."""

    def __init__(self, model: SequenceModel) -> None:
        self.model, self.sum, self.count = model, 0.0, 0
        self.device = next(each.device for each in model.parameters())

    @torch.inference_mode()
    def add(self, source: Tensor | None, lengths: Tensor | None, target: Tensor) -> None:
        target = target.to(self.device)
        fed = torch.cat([torch.full_like(target[:, :1], self.model.start_token), target[:, :-1]], 1)
        nothing = torch.full((len(target), 1), PAD, device=self.device)  # what a language model takes for a source
        logits = self.model(nothing if source is None else source.to(self.device), fed, lengths)
        loss = cross_entropy(logits.flatten(0, 1).float(), target.flatten(), ignore_index=PAD, reduction="sum")
        self.sum += float(loss)
        self.count += int((target != PAD).sum())

    def score(self) -> Score:
        mean = min(self.sum / max(self.count, 1), 700.0)
        return Score("perplexity", math.exp(mean), higher_is_better=False)
