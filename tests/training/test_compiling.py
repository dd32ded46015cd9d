"""Which way of computing a run takes, and what it says of it."""

from typing import Any

import pytest
import torch

from regard.config import settings_from
from regard.models.build import build
from regard.models.contract import Model
from regard.models.fused.network import Fused
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.support.errors import Misuse
from regard.training.compiling import compiles, fuse, fuses
from regard.training.feeding import Fed, shifted
from regard.training.objective import Objective
from regard.training.settings import ReinforceSettings, TeachingSettings, TrainingSettings

GPU, CPU = torch.device("cuda"), torch.device("cpu")


def model(**changes: Any) -> Model:
    small = {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 16, "dropout": 0.0}
    return build(TransformerSettings(**(small | changes)), Sizes(source=20, target=20), "translate").train()


def settings(**given: Any) -> TrainingSettings:
    return settings_from(given, TrainingSettings)


@pytest.fixture(autouse=True)
def _has_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.models.fused.network.find_spec", lambda name: name)


@pytest.mark.parametrize(
    ("given", "device", "bfloat16", "yes", "why"),
    [
        ({}, GPU, True, True, "one pass"),
        ({}, CPU, True, False, "GPU only"),
        ({}, GPU, False, False, "in bfloat16"),
        ({"fused": "no"}, GPU, True, False, "asked for"),
        ({"fused": "yes"}, GPU, True, True, "asked for"),
        ({"compile": "yes"}, GPU, True, False, "torch.compile was asked for"),
        ({"fused": "yes", "compile": "yes"}, GPU, True, True, "asked for"),
        ({"teaching": {"own": 0.5}}, GPU, True, False, "its own words"),
    ],
)
def test_transformers_on_a_gpu_are_fused_unless_something_speaks_against_it(
    given: dict[str, Any], device: torch.device, bfloat16: bool, yes: bool, why: str
) -> None:
    chosen = fuses(settings(**given), device, model(), bfloat16=bfloat16)
    assert chosen.yes is yes
    assert why in chosen.why


def test_what_is_fused_is_not_compiled_and_both_cannot_be() -> None:
    assert not compiles(settings(), GPU, model(), 100_000, fused=True).yes
    assert "fused parts" in compiles(settings(), GPU, model(), 100_000, fused=True).why
    with pytest.raises(Misuse, match=r"yes to it or to training\.fused"):
        compiles(settings(compile="yes", fused="yes"), GPU, model(), 100_000, fused=True)


def test_asked_for_where_it_cannot_be_it_says_why() -> None:
    with pytest.raises(Misuse, match=r"training\.fused: its kernels run on a GPU only"):
        fuses(settings(fused="yes"), CPU, model(), bfloat16=True)
    with pytest.raises(Misuse, match=r"training\.fused: it is made for networks where .* without a gate"):
        fuses(settings(fused="yes"), GPU, model(gated=True), bfloat16=True)


def test_an_objective_that_is_fused_gives_the_same_loss_and_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    triton = pytest.importorskip("triton", reason="Triton is not installed (it is made for Linux)")
    if not triton.knobs.runtime.interpret:
        pytest.skip("Triton was imported before its interpreter was on")
    found = []
    tokens = torch.randint(4, 20, (3, 5), generator=torch.Generator().manual_seed(0))
    for fused in (False, True):
        torch.manual_seed(0)
        network = model()
        objective = Objective(network, 0.1, ReinforceSettings(), TeachingSettings())
        if fused:
            fuse(objective)
            assert isinstance(objective.fused, Fused)
            objective.fused.kind = torch.float32
        loss = objective(Fed(tokens, tokens, torch.tensor([5, 2, 4]), shifted(tokens, 2)))
        loss.backward()
        found.append((loss.item(), [each.grad for each in network.parameters()]))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    for mine, truth in zip(found[1][1], found[0][1], strict=True):
        torch.testing.assert_close(mine, truth, rtol=1e-4, atol=1e-5)
