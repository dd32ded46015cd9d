"""What training makes small: cross-entropy, smoothed, summed over all that is to be said.

    L = Σ_t (1 - ε) (-log p(y_t)) + ε mean_v (-log p(v))

The sum is divided by the number of places of the whole update, over all processes and accumulated batches, so that
every word weighs the same however it was batched.

Shape letters: B rows, T places, V vocabulary (or tags, or labels).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, nll_loss

from regard.data.collating import NOTHING
from regard.models.contract import Choices, Labeller, Model, SequenceModel, Tagger
from regard.tracing.labels import active, label
from regard.training.feeding import Fed
from regard.training.settings import ReinforceSettings, TeachingSettings

ROWS = 32
"""Of logits at a time on a CPU: of 8,000 words they are 1 MB."""


class Objective(nn.Module):
    """A model and its loss as one network, for compilers and for several processes. Holds no parameters of its own."""

    own: Tensor | None

    def __init__(
        self, model: Model, smoothing: float, reinforce: ReinforceSettings, teaching: TeachingSettings
    ) -> None:
        super().__init__()
        self.model, self.smoothing, self.reinforce, self.teaching = model, smoothing, reinforce, teaching
        self.smoothed: Callable[[Tensor, Tensor, float], Tensor] = smoothed
        self.fused: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
        """Gives the model's logits by other means, in place of it."""
        self.register_buffer("own", torch.zeros(()) if teaching.own > 0 else None, persistent=False)

    def forward(self, fed: Fed) -> Tensor:
        """The summed loss of a batch, a float32 scalar."""
        if not isinstance(self.model, SequenceModel):
            return self.smoothed(logits_of(self.model, fed), fed.wanted, self.smoothing)
        assert fed.target is not None
        if self.fused is not None:
            return self.smoothed(self.fused(fed.source, fed.target, fed.lengths), fed.wanted, self.smoothing)
        logits, choices = self.model.teach(fed.source, fed.target, fed.lengths, own=self.own)
        loss = self.smoothed(logits, fed.wanted, self.smoothing)
        if choices is None:
            return loss
        return label(loss + of_choices(logits, fed.wanted, choices, self.reinforce), "L", "loss + L_choices")

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
    logits, wanted = logits.flatten(0, -2), wanted.flatten()
    if logits.device.type == "cpu" and logits.requires_grad and not torch.compiler.is_compiling() and not active():
        loss: Tensor = Piecewise.apply(logits, wanted, smoothing)  # type: ignore[no-untyped-call]
        return loss
    wide = logits if logits.dtype == torch.float64 else logits.float()
    if active():
        return told(wide, wanted, smoothing)
    return cross_entropy(wide, wanted, ignore_index=NOTHING, label_smoothing=smoothing, reduction="sum")


def told(logits: Tensor, wanted: Tensor, smoothing: float) -> Tensor:
    """The same, bit for bit as `cross_entropy` does it, with names for a trace: log_p, and the parts of the loss."""
    log_p = label(logits.log_softmax(-1), "log_p", "log softmax(logits)")
    right = nll_loss(log_p, wanted, ignore_index=NOTHING, reduction="sum")
    if smoothing == 0:
        return label(right, "loss", "Σ_t -log p(y_t)")
    right = label(right, "L_right", "Σ_t -log p(y_t)")
    every = (-log_p.sum(-1)).masked_fill(wanted == NOTHING, 0.0).sum()
    every = label(every, "L_every", "Σ_t Σ_v -log p(v)")
    total = every * (smoothing / logits.shape[-1]) + right * (1 - smoothing)
    return label(total, "loss", "(1 - ε) L_right + ε L_every / V")


class Piecewise(torch.autograd.Function):
    """The same a few rows at a time, with the gradient reckoned on the way: a CPU reads the logits from its cache.

    ∂L/∂z_v = p_v - ε / V - (1 - ε) [v = y]
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor, smoothing: float) -> Tensor:
        gradient = torch.empty_like(logits)
        kind = torch.float64 if logits.dtype == torch.float64 else torch.float32
        total, size = torch.zeros((), dtype=kind), logits.shape[-1]
        for start in range(0, len(logits), ROWS):
            rows = slice(start, start + ROWS)
            z, y = logits[rows].to(kind, copy=True), wanted[rows].unsqueeze(-1)
            real, y = (y != NOTHING).to(kind), y.clamp(min=0)
            z -= z.amax(-1, keepdim=True)
            right, mean = z.gather(-1, y), z.mean(-1, keepdim=True)
            sums = z.exp_().sum(-1, keepdim=True)
            total += (real * (sums.log() - (1 - smoothing) * right - smoothing * mean)).sum()
            z.mul_(real / sums).sub_(real * (smoothing / size))
            gradient[rows] = z.scatter_add_(-1, y, real * (smoothing - 1))
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * grads[0].to(gradient.dtype), None, None


def of_choices(logits: Tensor, wanted: Tensor, choices: Choices, settings: ReinforceSettings) -> Tensor:
    """What hard attention learns from (REINFORCE: Williams 1992, Xu and others 2015), summed:

        r_t = log p(y_t) + γ r_{t+1}                                      the reward, of this word and those after it
        L = Σ_t -w (r_t - b_t) log p(choice_t) + β (r_t - b_t)² - η H_t

    The reward and, in the first term, the baseline b are taken as numbers.
    """
    real = wanted != NOTHING
    said = torch.log_softmax(logits.detach().float(), -1).gather(-1, wanted.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    reward = label(returns(torch.where(real, said, 0.0), settings.discount), "r", "log p(y_t) + γ r_{t+1}")
    gained = reward - choices.baseline.detach()
    loss = (
        settings.baseline * (reward - choices.baseline).square()
        - settings.weight * gained * choices.log_prob
        - settings.entropy * choices.entropy
    )
    terms = label(torch.where(real, loss, 0.0), "L_t", "β (r_t - b_t)² - w (r_t - b_t) log p(choice_t) - η H_t")
    return label(terms.sum(), "L_choices", "Σ_t L_t")


def returns(reward: Tensor, discount: float) -> Tensor:
    """[B, T]: r_t + γ r_{t+1} + γ² r_{t+2} + …"""
    places = torch.arange(reward.shape[1], device=reward.device)
    ahead = places - places.unsqueeze(1)
    share = torch.where(ahead >= 0, discount ** ahead.clamp(min=0).float(), 0.0)
    return reward @ share.T


@torch.no_grad()
def plain_loss(model: Model, fed: Fed) -> Tensor:
    """Of a batch that is evaluated: the cross-entropy without smoothing, summed."""
    return smoothed(logits_of(model, fed), fed.wanted, 0.0)
