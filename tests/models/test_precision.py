"""Products in bfloat16, weights and sums in float32: every kind trains so, and says nearly the same."""

import pytest
import torch
from torch import Tensor

from regard.models.contract import SequenceModel
from tests.models.kinds import LABELLERS, SEQUENCES, TAGGERS, stepped, target

EVERY = SEQUENCES | TAGGERS | LABELLERS
CHOOSES = ("straight", "gumbel", "reinforce", "noise", "sampled", "top1", "hard", "local-p")
"""What looks at one place, or at a window about one, may look at another for a hair's breadth."""


def logits_of(name: str, model: torch.nn.Module) -> Tensor:
    kind = EVERY[name]
    if isinstance(model, SequenceModel):
        return model(kind.source(), target(), kind.lengths)  # type: ignore[no-any-return]
    return model.predict(model.encode(kind.source(), kind.lengths))  # type: ignore[operator,no-any-return]


@pytest.mark.parametrize("name", EVERY)
def test_every_kind_trains_with_products_in_bfloat16(name: str) -> None:
    model = EVERY[name].model()
    exact = logits_of(name, model).detach()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = logits_of(name, model)
    if not any(each in name for each in CHOOSES):
        within = 0.1 + 0.03 * float(exact.abs().max())  # bfloat16 has 8 bits, and sums of large numbers may be small
        torch.testing.assert_close(rounded.float().detach(), exact, atol=within, rtol=0.05)
    rounded.float().square().mean().backward()
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())


@pytest.mark.parametrize("name", SEQUENCES)
@torch.inference_mode()
def test_every_decoder_steps_in_bfloat16_throughout(name: str) -> None:
    kind = SEQUENCES[name]
    model, source = kind.model().bfloat16(), kind.source()
    source = source.bfloat16() if source.is_floating_point() else source
    logits, _ = stepped(model, source, target(), kind.lengths)
    assert logits.dtype == torch.bfloat16
    assert logits.isfinite().all()
