"""Gradients of whole models against finite differences, in float64, along a direction that moves every parameter."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.models.contract import SequenceModel
from tests.models.kinds import LABELLERS, SEQUENCES, TAGGERS, Kind, target

STRAIGHT = ("straight", "gumbel", "reinforce", "noise", "sampled", "top1", "hard")
"""What has a gradient that is not the slope of its value, or draws by chance."""
SMOOTH = {
    name: each for name, each in (SEQUENCES | TAGGERS | LABELLERS).items() if not any(s in name for s in STRAIGHT)
}
STEP = 1e-6


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    kind = SMOOTH[name]
    model = kind.model().double()
    loss = said(kind, model)
    own = torch.autograd.grad(loss(), list(model.parameters()))
    ways = [torch.randn(each.shape, generator=torch.Generator().manual_seed(4)).double() for each in own]
    moved = []
    with torch.no_grad():
        for sign in (1, -2):  # there, and to the other side
            for each, way in zip(model.parameters(), ways, strict=True):
                each.add_(way, alpha=sign * STEP)
            moved.append(loss())
    slope = sum((one * way).sum() for one, way in zip(own, ways, strict=True))
    torch.testing.assert_close(slope, (moved[0] - moved[1]) / (2 * STEP), atol=1e-6, rtol=1e-5)


def said(kind: Kind, model: torch.nn.Module):  # type: ignore[no-untyped-def]
    """The loss of a small batch, to be asked again and again."""
    source = kind.source()
    source = source.double() if source.is_floating_point() else source
    answers = torch.randint(0, 4, (15,), generator=torch.Generator().manual_seed(5))

    def loss() -> Tensor:
        if isinstance(model, SequenceModel):
            return cross_entropy(model(source, target(), kind.lengths).flatten(0, 1), answers)
        logits = model.predict(model.encode(source, kind.lengths)).flatten(0, -2)
        return cross_entropy(logits, answers.repeat(2)[: len(logits)])

    return loss
