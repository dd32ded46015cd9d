"""What only a GPU can show: recorded updates are those that were not, and a run is made of them."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.models.build import build
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.training import optimizers
from regard.training.compiling import fuse
from regard.training.feeding import Fed, shifted
from regard.training.graphs import Graphs
from regard.training.objective import Objective
from regard.training.running import train
from regard.training.settings import OptimizerSettings, ReinforceSettings, TeachingSettings
from regard.training.updating import Update
from tests.training.conftest import config

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def made(*, fused: bool = False, bfloat16: bool = False, dropout: float = 0.0, **changes: Any) -> Update:
    torch.manual_seed(0)
    plain = {"width": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 64}
    settings = TransformerSettings(dropout=dropout, **(plain | changes))
    model = build(settings, Sizes(source=50, target=50), "translate").cuda().train()
    objective = Objective(model, 0.1, ReinforceSettings(), TeachingSettings()).cuda()
    if fused:
        fuse(objective)
    own = optimizers.make(OptimizerSettings(rate=1e-3), model)
    return Update(objective, own, clip=0.5, bfloat16=bfloat16, device=torch.device("cuda"))


def fed(rows: int, places: int, seed: int) -> Fed:
    tokens = torch.randint(4, 50, (rows, places), generator=torch.Generator().manual_seed(seed)).cuda()
    lengths = torch.full((rows,), places).cuda()
    lengths[0] = 2
    return Fed(tokens, tokens, lengths, shifted(tokens, 2))


def test_recorded_updates_are_those_that_were_not() -> None:
    plain, said = made(), []
    recorded = Graphs(made(), said.append)
    for step in range(12):
        batch = fed(4 + 2 * (step % 2), 6 + 3 * (step % 2), step)
        share = 1.0 if step < 8 else 0.1
        optimizers.set_rate(plain.optimizers, share)
        optimizers.set_rate(recorded.update.optimizers, share)
        expected, got = plain([batch], 24), recorded([batch], 24)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    assert said == []
    assert len(recorded.recorded) == 2
    for mine, theirs in zip(recorded.update.parameters, plain.parameters, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


def test_a_recorded_update_that_is_not_finite_leaves_the_weights() -> None:
    recorded = Graphs(made(), print)
    for step in range(4):
        recorded([fed(4, 6, step)], 24)
    spoiled = recorded.update.parameters[0]
    with torch.no_grad():
        spoiled.view(-1)[:] = torch.inf
    before = [each.detach().clone() for each in recorded.update.parameters]
    assert torch.isnan(recorded([fed(4, 6, 9)], 24))
    assert all(torch.equal(each, old) for each, old in zip(recorded.update.parameters, before, strict=True))


@pytest.mark.parametrize("places", [9, 140], ids=["short rows", "long rows"])
@pytest.mark.parametrize(
    "changes",
    [
        {"width": 512, "heads": 8, "feed_forward": 2048},
        {"norm": "rms", "activation": "gelu", "positions": "learned", "bias": False},
        {"width": 48, "heads": 3, "activation": "silu", "share_embeddings": False, "tie_output": False},
    ],
    ids=["as the benchmark", "rms, gelu, learned", "silu, tables apart"],
)
def test_fused_gradients_are_no_farther_from_float32_than_those_of_autocast(
    changes: dict[str, Any], places: int
) -> None:
    batch = fed(4, places, 1)
    found = []
    for update in (made(**changes), made(bfloat16=True, **changes), made(fused=True, bfloat16=True, **changes)):
        with update.autocast():
            (update.objective(batch) / 100).backward()
        found.append({name: each.grad for name, each in update.objective.named_parameters()})
    truth, plain, fused = found
    for name, gradient in truth.items():
        if name.endswith("key.bias"):  # which changes no weight of attention: its gradient is rounding alone
            continue
        off = [((each[name] - gradient).norm() / gradient.norm()).item() for each in (plain, fused)]
        assert off[1] < max(2 * off[0], 0.02), name


def test_a_fused_update_is_recorded_and_draws_its_dropout_anew() -> None:
    said: list[str] = []
    recorded = Graphs(made(fused=True, bfloat16=True, dropout=0.3), said.append)
    for optimizer in recorded.update.optimizers:
        for group in optimizer.param_groups:
            group["highest"] = 0.0
    losses = []
    for _ in range(8):
        optimizers.set_rate(recorded.update.optimizers, 1.0)
        losses.append(recorded([fed(4, 9, 1)], 36).item())
    assert said == []
    assert len(recorded.recorded) == 1
    assert len(set(losses)) == 8


def test_fused_and_recorded_a_network_learns() -> None:
    recorded = Graphs(made(fused=True, bfloat16=True, dropout=0.1), print)
    losses = []
    for _ in range(60):
        optimizers.set_rate(recorded.update.optimizers, 1.0)
        losses.append(recorded([fed(8, 9, 1)], 72).item())
    assert losses[-1] < losses[0] - 0.5


def test_a_run_on_a_gpu_is_recorded_and_goes_on_where_it_was(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = config(pairs, tmp_path, device="cuda", training={"epochs": 4, "precision": "auto"})
    result = train(values)
    told = capsys.readouterr().err
    assert "CUDA graphs: yes" in told
    assert "fused: yes" in told
    assert "torch.compile: no" in told
    assert "cannot be recorded" not in told
    longer = config(pairs, tmp_path, device="cuda", training={"epochs": 6, "precision": "auto"})
    assert train(longer, quiet=True, anyway=True).steps > result.steps
