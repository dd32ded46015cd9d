"""From scores to weights: softmax and what may stand in its place.

A normaliser reads scores [..., T, S] in float32 or float64 in which blocked cells are -inf and every row has at
least one finite cell, and gives weights of the same shape, exactly 0 where blocked. Each name here is one with
its default settings, and can be called for others: `normalise.gumbel(temperature=0.5)`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from regard.attention.shapes import broadcasts
from regard.support.nearest import unknown


class Drawn(NamedTuple):
    """Weights, and for a choice drawn by chance its log-probability and the entropy it was drawn with [..., T]."""

    weights: Tensor
    log_prob: Tensor | None = None
    entropy: Tensor | None = None


@dataclass(frozen=True)
class Normaliser(ABC):
    """One way from scores to weights."""

    name: ClassVar[str]

    @property
    def chooses(self) -> bool:
        """Whether it draws one key, and tells the choice's log-probability and entropy."""
        return False

    @abstractmethod
    def draw(self, scores: Tensor, generator: torch.Generator | None = None) -> Drawn:
        """Weights for scores [..., T, S], along the last axis."""

    def weights(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Weights alone."""
        return self.draw(scores, generator).weights

    def __call__(self, **settings: Any) -> Self:
        """The same normaliser with other settings."""
        known = [field.name for field in fields(self)]
        for setting in settings:
            if setting not in known:
                raise ValueError(unknown(f"setting of {self.name}", setting, known))
        return replace(self, **settings)


@dataclass(frozen=True)
class Softmax(Normaliser):
    """w_j = e^{z_j} / Σ_k e^{z_k}."""

    name: ClassVar[str] = "softmax"

    def draw(self, scores: Tensor, generator: torch.Generator | None = None) -> Drawn:
        return Drawn(torch.softmax(scores, -1))


@dataclass(frozen=True)
class Sparsemax(Normaliser):
    """w = max(z - τ, 0) with τ such that Σ w = 1: the projection onto the simplex (Martins and Astudillo 2016)."""

    name: ClassVar[str] = "sparsemax"

    def draw(self, scores: Tensor, generator: torch.Generator | None = None) -> Drawn:
        # With the largest at 0, τ >= -1: a cell at or under -1 has no weight. Lifting the far ones (and -inf) to
        # -1 therefore changes nothing but that all numbers are finite.
        z = (scores - scores.amax(-1, keepdim=True)).clamp(min=-1.0)
        support = self._support(z.detach())
        count = support.sum(-1, keepdim=True)
        tau = ((z * support).sum(-1, keepdim=True) - 1) / count
        return Drawn(torch.where(support, z - tau, 0.0))

    @staticmethod
    def _support(z: Tensor) -> Tensor:
        """The cells whose weight is above 0: with z sorted downwards, those k with 1 + k z_(k) > Σ_{i<=k} z_(i)."""
        ordered = z.sort(-1, descending=True).values
        k = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
        sums = ordered.cumsum(-1)
        size = (1 + k * ordered > sums).sum(-1, keepdim=True)
        return z > (sums.gather(-1, size - 1) - 1) / size


@dataclass(frozen=True)
class Entmax15(Normaliser):
    """w = max(z/2 - τ, 0)² with τ such that Σ w = 1: entmax with α = 1.5 (Peters, Niculae and Martins 2019)."""

    name: ClassVar[str] = "entmax15"

    def draw(self, scores: Tensor, generator: torch.Generator | None = None) -> Drawn:
        # As in sparsemax, τ >= -1 when the largest z/2 is 0.
        z = ((scores - scores.amax(-1, keepdim=True)) / 2).clamp(min=-1.0)
        support = self._support(z.detach())
        # Σ (z - τ)² = 1 over a support of k cells with mean m and sum of squares about it q: k (m - τ)² + q = 1.
        count = support.sum(-1, keepdim=True)
        mean = (z * support).sum(-1, keepdim=True) / count
        spread = ((z - mean).square() * support).sum(-1, keepdim=True)
        tau = mean - ((1 - spread) / count).sqrt()
        return Drawn(torch.where(support, z - tau, 0.0).square())

    @staticmethod
    def _support(z: Tensor) -> Tensor:
        ordered = z.sort(-1, descending=True).values
        k = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
        mean = ordered.cumsum(-1) / k
        spread = ordered.square().cumsum(-1) - k * mean.square()
        tau = mean - ((1 - spread) / k).clamp(min=0).sqrt()
        size = (tau <= ordered).sum(-1, keepdim=True)
        # τ >= -1, but rounded it may lie a hair under it, and what was lifted to -1 must stay at exactly 0.
        return z > tau.gather(-1, size - 1).clamp(min=-1.0)


@dataclass(frozen=True)
class Relu(Normaliser):
    """w = max(z, 0), plain or divided by its sum. A row with no score above 0 has weights 0 either way."""

    name: ClassVar[str] = "relu"

    divide: bool = False
    """Divide each row by its sum."""

    def draw(self, scores: Tensor, generator: torch.Generator | None = None) -> Drawn:
        weights = torch.relu(scores)
        if not self.divide:
            return Drawn(weights)
        total = weights.sum(-1, keepdim=True)
        return Drawn(weights / torch.where(total > 0, total, 1))


@dataclass(frozen=True)
class Top1(Normaliser):
    """1 for the largest score, 0 for the others; of equal ones the first wins.

    Straight-through: the gradient is that of the softmax (Bengio, Léonard and Courville 2013).
    """

    name: ClassVar[str] = "top1"

    def draw(self, scores: Tensor, generator: torch.Generator | None = None) -> Drawn:
        return Drawn(_straight_through(torch.softmax(scores, -1), scores))


@dataclass(frozen=True)
class Gumbel(Normaliser):
    """Softmax of (z + g) / temperature with Gumbel noise g: nearly a draw from the softmax, with a gradient."""

    name: ClassVar[str] = "gumbel"

    temperature: float = 1.0
    """Towards 0 the weights approach one hard choice."""

    hard: bool = False
    """One hard choice forward, the soft one's gradient backward."""

    def __post_init__(self) -> None:
        if not isinstance(self.temperature, (int, float)) or not self.temperature > 0:
            raise ValueError(f"gumbel: temperature must be above 0; got {self.temperature!r}")

    def draw(self, scores: Tensor, generator: torch.Generator | None = None) -> Drawn:
        noisy = (scores + gumbel_noise(scores, generator)) / self.temperature
        soft = torch.softmax(noisy, -1)
        return Drawn(_straight_through(soft, noisy) if self.hard else soft)


@dataclass(frozen=True)
class Sample(Normaliser):
    """One key drawn from the softmax of the scores: a one-hot row without gradient, and the choice's log-probability.

    Learned by REINFORCE: the log-probability (and the entropy) carry the gradient to the scores.
    """

    name: ClassVar[str] = "sample"

    @property
    def chooses(self) -> bool:
        return True

    def draw(self, scores: Tensor, generator: torch.Generator | None = None) -> Drawn:
        chosen = (scores.detach() + gumbel_noise(scores, generator)).argmax(-1, keepdim=True)
        log_probs = torch.log_softmax(scores, -1)
        # p log p is 0 where p is, and so is its gradient: the -inf of blocked cells must not meet that 0.
        finite = torch.where(torch.isneginf(scores), 0.0, log_probs)
        entropy = -(log_probs.exp() * finite).sum(-1)
        return Drawn(_one_hot(chosen, scores), log_probs.gather(-1, chosen).squeeze(-1), entropy)


@dataclass(frozen=True, eq=False)
class Gaussian(Normaliser):
    """Weights of another normaliser, times e^{-(j - p)² / 2σ²} about a centre p for each query (Luong's local-p).

    As in the paper the rows are not brought back to a sum of 1. The centre learns through the bell.
    """

    name: ClassVar[str] = "gaussian"

    centre: Tensor
    """p [..., T], in places of the keys."""
    sigma: float
    of: Normaliser = Softmax()

    @property
    def chooses(self) -> bool:
        return self.of.chooses

    def draw(self, scores: Tensor, generator: torch.Generator | None = None) -> Drawn:
        if not broadcasts((*self.centre.shape, 1), scores.shape):
            raise ValueError(
                f"gaussian: one centre for each query [..., T], {list(self.centre.shape)} does not fit "
                f"the scores' shape {list(scores.shape)}"
            )
        places = torch.arange(scores.shape[-1], device=scores.device, dtype=scores.dtype)
        away = places - self.centre.to(scores.dtype).unsqueeze(-1)
        drawn = self.of.draw(scores, generator)
        return drawn._replace(weights=drawn.weights * torch.exp(-away.square() / (2 * self.sigma**2)))


softmax = Softmax()
sparsemax = Sparsemax()
entmax15 = Entmax15()
relu = Relu()
top1 = Top1()
gumbel = Gumbel()
sample = Sample()

NAMED: dict[str, Normaliser] = {each.name: each for each in (softmax, sparsemax, entmax15, relu, top1, gumbel, sample)}


def named(normalise: Any) -> Normaliser:
    """A normaliser as given, or the one of that name."""
    if isinstance(normalise, Normaliser):
        return normalise
    if not isinstance(normalise, str):
        came = f"the class {normalise.__name__}" if isinstance(normalise, type) else type(normalise).__name__
        raise ValueError(f"normalise: expected a normaliser, as normalise.relu, or its name; got {came}")
    if normalise not in NAMED:
        raise ValueError(unknown("normaliser", normalise, NAMED))
    return NAMED[normalise]


def gumbel_noise(like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """-log(-log u), always finite: u is kept off 0 and 1."""
    u = torch.rand(like.shape, dtype=like.dtype, device=like.device, generator=generator)
    limits = torch.finfo(like.dtype)
    return -torch.log(-torch.log(u.clamp(limits.tiny, 1 - limits.eps)))


def _one_hot(chosen: Tensor, like: Tensor) -> Tensor:
    return torch.zeros_like(like, requires_grad=False).scatter(-1, chosen, 1.0)


def _straight_through(soft: Tensor, scores: Tensor) -> Tensor:
    """One-hot at the first of the largest scores, with the gradient of `soft`."""
    hard = _one_hot(scores.detach().argmax(-1, keepdim=True), scores)
    return hard + (soft - soft.detach())
