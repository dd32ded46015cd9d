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
from regard.models.contract import Choices, Labeller, Model, SequenceModel, Tagger
from regard.training.feeding import Fed
from regard.training.settings import ReinforceSettings, TeachingSettings


class Objective(nn.Module):
    """A model and its loss as one network, for compilers and for several processes. Holds no parameters of its own."""

    own: Tensor | None

    def __init__(
        self, model: Model, smoothing: float, reinforce: ReinforceSettings, teaching: TeachingSettings
    ) -> None:
        super().__init__()
        self.model, self.smoothing, self.reinforce, self.teaching = model, smoothing, reinforce, teaching
        self.smoothed: Callable[[Tensor, Tensor, float], Tensor] = smoothed
        self.register_buffer("own", torch.zeros(()) if teaching.own > 0 else None, persistent=False)

    def forward(self, fed: Fed) -> Tensor:
        """The summed loss of a batch, a float32 scalar."""
        if not isinstance(self.model, SequenceModel):
            return self.smoothed(logits_of(self.model, fed), fed.wanted, self.smoothing)
        assert fed.target is not None
        logits, choices = self.model.teach(fed.source, fed.target, fed.lengths, own=self.own)
        loss = self.smoothed(logits, fed.wanted, self.smoothing)
        return loss if choices is None else loss + of_choices(logits, fed.wanted, choices, self.reinforce)

    def before_update(self, step: int) -> None:
        """How often the decoder is fed its own words at this step: from `start` on up in a line to `own`."""
        if self.own is not None:
            self.own.fill_(own_share(self.teaching, step))


def own_share(teaching: TeachingSettings, step: int) -> float:
    return teaching.own * min(1.0, max(0.0, (step - teaching.start) / teaching.full))


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


def of_choices(logits: Tensor, wanted: Tensor, choices: Choices, settings: ReinforceSettings) -> Tensor:
    """What hard attention learns from (REINFORCE: Williams 1992, Xu and others 2015), summed:

        r_t = log p(y_t) + γ r_{t+1}                                      the reward, of this word and those after it
        L = Σ_t -w (r_t - b_t) log p(choice_t) + β (r_t - b_t)² - η H_t

    The reward and, in the first term, the baseline b are taken as numbers.
    """
    real = wanted != NOTHING
    said = torch.log_softmax(logits.detach().float(), -1).gather(-1, wanted.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    reward = returns(torch.where(real, said, 0.0), settings.discount)
    gained = reward - choices.baseline.detach()
    loss = (
        settings.baseline * (reward - choices.baseline).square()
        - settings.weight * gained * choices.log_prob
        - settings.entropy * choices.entropy
    )
    return torch.where(real, loss, 0.0).sum()


def returns(reward: Tensor, discount: float) -> Tensor:
    """[B, T]: r_t + γ r_{t+1} + γ² r_{t+2} + …"""
    places = torch.arange(reward.shape[1], device=reward.device)
    ahead = places - places.unsqueeze(1)
    share = torch.where(ahead >= 0, discount ** ahead.clamp(min=0).float(), 0.0)
    return reward @ share.T


@torch.no_grad()
def told(model: Model, fed: Fed) -> tuple[Tensor, Tensor]:
    """Of a batch that is evaluated: the plain cross-entropy, summed, and the logits."""
    logits = logits_of(model, fed).float()
    return smoothed(logits, fed.wanted, 0.0), logits
