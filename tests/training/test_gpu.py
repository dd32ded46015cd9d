"""What only a GPU can show: recorded updates are those that were not, and a run is made of them."""

from pathlib import Path

import pytest
import torch

from regard.models.build import build
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.training import optimizers
from regard.training.feeding import Fed, shifted
from regard.training.graphs import Graphs
from regard.training.objective import Objective
from regard.training.running import train
from regard.training.settings import OptimizerSettings, ReinforceSettings, TeachingSettings
from regard.training.updating import Update
from tests.training.conftest import config

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def made() -> Update:
    torch.manual_seed(0)
    settings = TransformerSettings(width=32, heads=2, encoder_layers=1, decoder_layers=1, feed_forward=64, dropout=0.0)
    model = build(settings, Sizes(source=50, target=50), "translate").cuda().train()
    objective = Objective(model, 0.1, ReinforceSettings(), TeachingSettings()).cuda()
    own = optimizers.make(OptimizerSettings(rate=1e-3), model)
    return Update(objective, own, clip=0.5, bfloat16=False, device=torch.device("cuda"))


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


def test_a_run_on_a_gpu_is_recorded_and_goes_on_where_it_was(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = config(pairs, tmp_path, device="cuda", training={"epochs": 4, "precision": "auto"})
    result = train(values)
    told = capsys.readouterr().err
    assert "CUDA graphs: yes" in told
    assert "cannot be recorded" not in told
    longer = config(pairs, tmp_path, device="cuda", training={"epochs": 6, "precision": "auto"})
    assert train(longer, quiet=True, anyway=True).steps > result.steps
