"""Where a recurrent decoder looks: one query a step, asked of the encoder's states.

    e_tj = score(s, h_j)          α_t = normalise(e_t)          c_t = Σ_j α_tj h_j

The weighing is `regard.attention.attend`; here is what a decoder adds: which places may be seen (local attention),
what was seen before (coverage), how one place is chosen (hard attention).

Shape letters: B sentences, n queries of each (rows of a beam, or steps), S places, d width of a query, D of the memory.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.attention import Details, Mask, Normaliser, Score, attend, masks, normalise, scores, settle
from regard.attention.local import local_p
from regard.models.chance import in_training_and_after
from regard.models.contract import Choices
from regard.models.rnn.memory import Remembered
from regard.models.rnn_settings import AttentionSettings
from regard.tracing.labels import active, label, renamed


class Look(NamedTuple):
    """What came of looking."""

    context: Tensor
    """[B, n, D]: c."""
    weights: Tensor | None = None
    """[B, n, S]: α, where it was asked for."""
    coverage: Tensor | None = None
    """[B, n, S]: all weights so far, where the score reads them."""
    choices: Choices | None = None
    """[B, n] each: in training by REINFORCE."""


class Looking(nn.Module):
    """One attention of a recurrent decoder."""

    def __init__(self, settings: AttentionSettings, query: int, memory: int) -> None:
        super().__init__()
        name = "coverage" if settings.coverage else settings.scored
        self.score = scores.make(
            name, query, memory, width=settings.width or query, depth=settings.depth, places=settings.places
        )
        self.covers, self.reach, self.window = settings.coverage, settings.reach, settings.window
        self.dropout = settings.dropout
        self.in_training, self.afterwards = _normalisers(settings)
        self.centre = Centre(query) if settings.reach == "local_p" else None
        self.baseline = Baseline(query) if settings.hard == "reinforce" else None

    @property
    def axes(self) -> int:
        """Of the scores: [B, n, S], or with coverage [B, n, 1, S]."""
        return 4 if self.covers else 3

    def keys(self, states: Tensor) -> Tensor:
        """What of the score concerns the memory alone: once a sentence."""
        keys = self.score.project(states)
        return keys if keys is states else label(keys, "K", "H W_k")

    def forward(
        self,
        query: Tensor,
        memory: Remembered,
        coverage: Tensor | None = None,
        *,
        place: int | None = None,
        want_weights: bool = False,
    ) -> Look:
        """query [B, n, d], all at this place of the target; or with None at places 0, 1, 2, … n - 1."""
        assert memory.states is not None
        assert memory.keys is not None
        keys, values = memory.keys, memory.states
        if self.covers:  # each query has a coverage of its own, and so an axis of its own
            query, keys, values = query.unsqueeze(2), keys.unsqueeze(1), values.unsqueeze(1)
        reach = self._reach(query, memory, place)
        details = want_weights or self.covers or self._rewarded
        with _named(place):
            found = attend(
                query, keys, values, score=self._scored(coverage), mask=reach.mask, normalise=reach.normalise,
                dropout=self.dropout if self.training else 0.0, details=details,
            )  # fmt: skip
        if not isinstance(found, tuple):
            return Look(found)
        context, seen = found
        if not self.covers:
            return Look(context, seen.weights, None, self._choices(query, seen))
        return Look(context.squeeze(2), seen.weights.squeeze(2), seen.coverage, self._choices(query, seen))

    def _choices(self, query: Tensor, seen: Details) -> Choices | None:
        if not self._rewarded:
            return None
        assert self.baseline is not None
        assert seen.log_prob is not None
        assert seen.entropy is not None
        held = (seen.log_prob, seen.entropy, self.baseline(query))
        return Choices(*(each.reshape(query.shape[:2]) for each in held))

    @property
    def _rewarded(self) -> bool:
        return self.training and self.baseline is not None

    def _scored(self, coverage: Tensor | None) -> Score:
        if isinstance(self.score, scores.Coverage):
            return self.score.given(coverage, projected=True)
        return self.score.projected

    def _reach(self, query: Tensor, memory: Remembered, place: int | None) -> "Reach":
        """The places that may be seen, and the normaliser, which local-p puts under a bell."""
        normaliser = self.in_training if self.training else self.afterwards
        if self.reach == "global":
            return Reach(memory.mask, normaliser)
        assert memory.states is not None
        places = memory.states.shape[1]
        if self.centre is not None:
            near, normaliser = local_p(self.centre(query, memory.lengths, places), self.window, normaliser)
        else:
            near = masks.around(own_place(query, memory, place), self.window)
        mask = near if memory.mask is None else near & memory.mask
        return Reach(settle(mask, (*query.shape[:-1], places), query.device, clean=True), normaliser)


def own_place(query: Tensor, memory: Remembered, place: int | None) -> Tensor:
    """p_t = min(t, S - 1), the place about which local-m looks: [B or 1, n or 1].

    Behind the source's end it stays at the last place, where the paper says nothing: a target that is longer than its
    source has something to look at to its end.
    """
    assert memory.states is not None
    if place is None:
        own = torch.arange(query.shape[1], dtype=torch.float, device=query.device).unsqueeze(0)
    else:
        own = torch.full((1, 1), float(place), device=query.device)
    if memory.lengths is None:
        own = own.clamp(max=memory.states.shape[1] - 1)
    else:
        own = torch.minimum(own, memory.lengths.unsqueeze(-1).float() - 1)
    return own if query.ndim == 3 else own.unsqueeze(-1)


class Reach(NamedTuple):
    """What is passed to attend."""

    mask: Mask | None
    normalise: Normaliser


class Centre(nn.Module):
    """p_t = S · σ(v_p · tanh(W_p s_t)): the place about which local-p looks (Luong, Pham and Manning 2015)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, 1, bias=False)

    def forward(self, query: Tensor, lengths: Tensor | None, places: int) -> Tensor:
        share = torch.sigmoid(self.out(torch.tanh(self.hidden(query))).squeeze(-1))
        p = share * (places if lengths is None else lengths.view(-1, *(1,) * (share.ndim - 1)))
        return label(p, "p", "S · σ(v_p · tanh(W_p s))")


class Baseline(nn.Module):
    """The reward that may be expected from here, whatever is chosen: b_t = w · tanh(W s_t + b) + b'.

    It learns from the reward alone: no gradient of it reaches the decoder.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, query: Tensor) -> Tensor:
        expected: Tensor = self.out(torch.tanh(self.hidden(query.detach()))).squeeze(-1)
        return expected


def _normalisers(settings: AttentionSettings) -> tuple[Normaliser, Normaliser]:
    """From scores to weights in training, and afterwards, when nothing is left to chance."""
    hard = {
        "straight_through": normalise.top1,
        "gumbel": normalise.gumbel(temperature=settings.temperature, hard=True),
        "reinforce": normalise.sample,
    }
    if settings.hard != "none":
        return hard[settings.hard], normalise.top1
    return in_training_and_after(settings.normalise, settings.temperature)


def _named(place: int | None) -> AbstractContextManager[None]:
    """The notes' names while a derivation is recorded: e_3, α_3, c_3."""
    if not active():
        return nullcontext()
    at = "" if place is None else f"_{place + 1}"
    return renamed(E=f"e{at}", M=f"m{at}", A=f"α{at}", O=f"c{at}")
