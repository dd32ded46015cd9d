"""How surprised a model is by what it should say: exp of its mean loss a token, teacher forced."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.data.collating import Batch, collate
from regard.data.shards import ShardSet
from regard.decoding.many import batches
from regard.evaluation.scores import Score
from regard.models.contract import SequenceModel
from regard.text.specials import PAD


def perplexity(model: SequenceModel, examples: ShardSet, rows: NDArray[np.int64] | None = None) -> Score:
    """exp(-Σ log p(y_t | y_<t, x) / n) over all n target tokens, ends of sentences counted.

    Of two models only those with the same target tokens can be compared by it.
    """
    rows = np.arange(len(examples)) if rows is None else rows
    loss, count = 0.0, 0
    lengths = examples.lengths("target")[rows]
    if "source" in examples.columns:
        lengths = np.maximum(lengths, examples.lengths("source")[rows])
    with torch.inference_mode():
        for places in batches([range(length) for length in lengths.tolist()], 256, 4096):
            one, tokens = _loss(model, collate(examples, rows[places]))
            loss, count = loss + one, count + tokens
    return Score("perplexity", math.exp(min(loss / max(count, 1), 700.0)), higher_is_better=False)


def _loss(model: SequenceModel, batch: Batch) -> tuple[float, int]:
    """The sum of -log p over the tokens of a batch, and how many there are."""
    assert batch.target is not None
    device = next(model.parameters()).device
    target = batch.target.to(device)
    fed = torch.cat([torch.full_like(target[:, :1], model.start_token), target[:, :-1]], 1)
    source = _nothing(len(target), device) if batch.source is None else batch.source.to(device)
    logits = model(source, fed, batch.lengths, batch.target_lengths)
    loss = cross_entropy(logits.flatten(0, 1).float(), target.flatten(), ignore_index=PAD, reduction="sum")
    return float(loss), int((target != PAD).sum())


def _nothing(rows: int, device: torch.device) -> Tensor:
    """What a language model takes for a source."""
    return torch.full((rows, 1), PAD, device=device)
