"""Gradients of whole models against finite differences, in float64, along a direction that moves every parameter.

What is drawn by chance is drawn alike each time. A straight-through choice has the slope of the softmax under it and
not of its own value: it is held against that softmax, moved to where the choice was.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, get_args

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.attention import MultiHead, Normaliser, normalise
from regard.attention.normalise import Drawn, Gumbel
from regard.models.contract import SequenceModel
from regard.models.rnn.decoder import Recurrent
from regard.models.rnn_settings import AttentionSettings, Cell, Score
from regard.models.transformer_settings import Score as HeadScore
from tests.models.kinds import LABELLERS, SEQUENCES, TAGGERS, Kind, rnn, target, transformer

NORMALISERS = ("softmax", "sparsemax", "entmax15", "relu", "top1", "gumbel")
HARD = ("straight_through", "gumbel", "reinforce")


def asking(cell: str = "gru", **attention: Any) -> Kind:
    """A recurrent decoder whose state is as wide as what it looks at, so that any score fits."""
    return Kind(rnn(cell=cell, join="sum", attention=AttentionSettings(**{"places": 8} | attention)))


EVERY = SEQUENCES | TAGGERS | LABELLERS | {
    **{f"cell {cell}, {kind}": asking(cell, kind=kind) for cell in get_args(Cell) for kind in ("bahdanau", "luong")},
    **{f"score {score}": asking(score=score) for score in get_args(Score)},
    **{f"score {score} of heads": Kind(transformer(score=score)) for score in get_args(HeadScore)},
    **{f"normaliser {each}": asking(normalise=each) for each in NORMALISERS},
    **{f"normaliser {each} of heads": Kind(transformer(normalise=each)) for each in NORMALISERS},
    **{f"hard {each}, {kind}": asking(hard=each, kind=kind) for each in HARD for kind in ("bahdanau", "luong")},
}  # fmt: skip
STEP = 1e-6


@pytest.mark.parametrize("name", EVERY)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    kind = EVERY[name]
    model = kind.model().double().train(by_chance(kind))
    loss = said(kind, model)
    parameters = list(model.parameters())
    own = torch.autograd.grad(loss(), parameters, allow_unused=True)
    ways = [torch.randn(each.shape, generator=torch.Generator().manual_seed(4)).double() for each in parameters]
    slope = sum((one * way).sum() for one, way in zip(own, ways, strict=True) if one is not None)
    moved, moves = [], softened(model)
    with torch.no_grad():
        loss()  # notes where the choices are
        moves.noted = len(moves.each)
        for sign in (1, -2):  # there, and to the other side
            for each, way in zip(parameters, ways, strict=True):
                each.add_(way, alpha=sign * STEP)
            moved.append(loss())
    torch.testing.assert_close(slope, (moved[0] - moved[1]) / (2 * STEP), atol=1e-6, rtol=1e-5)


def by_chance(kind: Kind) -> bool:
    """Whether training draws what is settled afterwards."""
    attention = getattr(kind.network, "attention", None)
    hard = "none" if attention is None else attention.hard
    normaliser = getattr(kind.network if attention is None else attention, "normalise", "softmax")
    return hard in ("gumbel", "reinforce") or normaliser == "gumbel"


def said(kind: Kind, model: torch.nn.Module) -> Callable[[], Tensor]:
    """The loss of a small batch, to be asked again and again; whatever is drawn for it is drawn alike."""
    source = kind.source()
    source = source.double() if source.is_floating_point() else source
    answers = torch.randint(0, 4, (15,), generator=torch.Generator().manual_seed(5))

    def loss() -> Tensor:
        torch.manual_seed(6)
        if not isinstance(model, SequenceModel):
            logits = model.predict(model.encode(source, kind.lengths)).flatten(0, -2)
            return cross_entropy(logits, answers.repeat(2)[: len(logits)])
        logits, choices = model.teach(source, target(), kind.lengths)
        loss = cross_entropy(logits.flatten(0, 1), answers)
        # The baseline is left out: it is cut off from the state that it reads, so its slope is another on purpose.
        return loss if choices is None else loss + 0.3 * choices.log_prob.mean() - 0.2 * choices.entropy.mean()

    return loss


@dataclass
class Moves:
    """By how much straight-through choices lie beside the softmax under them, in the order in which they are made."""

    each: list[Tensor] = field(default_factory=list)
    noted: int = 0
    at: int = 0

    def next(self, hard: Callable[[], Tensor], soft: Tensor) -> Tensor:
        if not self.noted:
            self.each.append(hard() - soft)
            return self.each[-1]
        self.at += 1
        return self.each[(self.at - 1) % self.noted]


@dataclass(frozen=True, eq=False)
class Softened(Normaliser):
    """The softmax under a straight-through choice, moved to where the choice was when it was first asked."""

    name: ClassVar[str] = "softened"
    of: Normaliser
    moves: Moves

    def draw(self, scores: Tensor, generator: torch.Generator | None = None) -> Drawn:
        before = torch.get_rng_state()
        under = replace(self.of, hard=False) if isinstance(self.of, Gumbel) else normalise.softmax
        soft, after = under.weights(scores), torch.get_rng_state()

        def hard() -> Tensor:
            torch.set_rng_state(before)
            return self.of.weights(scores)

        moved = soft + self.moves.next(hard, soft)
        torch.set_rng_state(after)
        return Drawn(moved)


def softened(model: torch.nn.Module) -> Moves:
    """Softens all straight-through choices of a model; how they are then moved."""
    moves = Moves()

    def soft(own: Normaliser) -> Normaliser:
        straight = own == normalise.top1 or (isinstance(own, Gumbel) and own.hard)
        return Softened(own, moves) if straight else own

    for part in model.modules():
        if isinstance(part, MultiHead):
            part.normalise = soft(part.normalise)
        if isinstance(part, Recurrent) and part.attention is not None:
            looking = part.attention
            looking.in_training, looking.afterwards = soft(looking.in_training), soft(looking.afterwards)
    return moves
