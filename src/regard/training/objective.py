"""What training makes small: cross-entropy, smoothed, summed over all that is to be said.

    L = Σ_t (1 - ε) (-log p(y_t)) + ε mean_v (-log p(v))

The sum is divided by the number of places of the whole update, over all processes and accumulated batches, so that
every word weighs the same however it was batched.

Shape letters: B rows, T places, V vocabulary (or tags, or labels).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.data.collating import NOTHING
from regard.models.contract import Labeller, Model, SequenceModel, Tagger
from regard.training.feeding import Fed


class Objective(nn.Module):
    """A model and its loss as one network, for compilers and for several processes. Holds no parameters of its own."""

    def __init__(self, model: Model, smoothing: float) -> None:
        super().__init__()
        self.model, self.smoothing = model, smoothing
        self.smoothed: Callable[[Tensor, Tensor, float], Tensor] = smoothed

    def forward(self, fed: Fed) -> Tensor:
        """The summed loss of a batch, a float32 scalar."""
        return self.smoothed(logits_of(self.model, fed), fed.wanted, self.smoothing)


def logits_of(model: Model, fed: Fed) -> Tensor:
    """[B, T, V], [B, W, V] or [B, V]."""
    if isinstance(model, SequenceModel):
        assert fed.target is not None
        logits: Tensor = model(fed.source, fed.target, fed.lengths)
        return logits
    if isinstance(model, Tagger):
        return model.predict(model.encode(fed.source, fed.lengths, fed.words))
    assert isinstance(model, Labeller)
    return model.predict(model.encode(fed.source, fed.lengths))


def smoothed(logits: Tensor, wanted: Tensor, smoothing: float) -> Tensor:
    """L of logits [..., V] and wanted [...], in float32."""
    return cross_entropy(
        logits.flatten(0, -2).float(),
        wanted.flatten(),
        ignore_index=NOTHING,
        label_smoothing=smoothing,
        reduction="sum",
    )


@torch.no_grad()
def told(model: Model, fed: Fed) -> tuple[Tensor, Tensor]:
    """Of a batch that is evaluated: the plain cross-entropy, summed, and the logits."""
    logits = logits_of(model, fed).float()
    return smoothed(logits, fed.wanted, 0.0), logits
