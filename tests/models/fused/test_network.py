"""The fused network, run on a CPU by Triton's interpreter, against the network as it is written."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.models.build import build
from regard.models.fused import loss as fused_loss
from regard.models.fused.linear import product
from regard.models.fused.network import Fused, obstacle, unlike
from regard.models.rnn_settings import RecurrentSettings
from regard.models.sizes import Sizes
from regard.models.transformer import Transformer
from regard.models.transformer_settings import TransformerSettings
from regard.training.objective import smoothed

triton = pytest.importorskip("triton", reason="Triton is not installed (it is made for Linux)")
pytestmark = pytest.mark.skipif(
    not triton.knobs.runtime.interpret, reason="Triton was imported before its interpreter was on"
)
SIZES = Sizes(source=30, target=30)  # which no 8 divides
KINDS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "rms, gelu, learned, no bias": {"norm": "rms", "activation": "gelu", "positions": "learned", "bias": False},
    "silu, no positions, tables apart": {
        "activation": "silu", "positions": "none", "share_embeddings": False, "tie_output": False, "heads": 3,
        "head_width": 5,
    },
}  # fmt: skip


def made(task: str = "translate", **changes: Any) -> Transformer:
    torch.manual_seed(0)
    plain = {"width": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 24, "dropout": 0.0}
    model = build(TransformerSettings(**(plain | changes)), SIZES, task)
    assert isinstance(model, Transformer)
    for each in model.parameters():
        if each.ndim == 1:  # none is as it began, 0 or 1 throughout
            nn.init.normal_(each, 0.5, 0.3)
    return model.train()


def batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    source, target = (torch.randint(4, 30, (3, places), generator=generator) for places in (6, 5))
    wanted = target.roll(-1, 1)
    wanted[1, 3:] = -100
    wanted[2] = -100
    return source, target, torch.tensor([6, 2, 0]), wanted


def learned(model: Transformer, run: Any, loss: Any) -> tuple[Tensor, dict[str, Tensor]]:
    source, target, lengths, wanted = batch()
    model.zero_grad()
    logits = run(source, target, lengths)
    loss(logits, wanted, 0.1).backward()
    return logits.detach(), {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


@pytest.mark.parametrize("name", KINDS)
def test_logits_and_gradients_are_those_of_the_network(name: str) -> None:
    model = made(**KINDS[name])
    assert unlike(model) is None
    logits, truth = learned(model, model, smoothed)
    fused, found = learned(model, Fused(model, torch.float32), fused_loss.smoothed)
    torch.testing.assert_close(fused, logits, rtol=1e-4, atol=1e-5)
    assert found.keys() == truth.keys()
    for each, gradient in truth.items():
        torch.testing.assert_close(
            found[each], gradient, rtol=1e-4, atol=1e-5, msg=lambda said, at=each: f"{at}: {said}"
        )


def test_a_language_model_is_fused_as_well() -> None:
    model = made("language_model", encoder_layers=0)
    logits, truth = learned(model, model, smoothed)
    fused, found = learned(model, Fused(model, torch.float32), fused_loss.smoothed)
    torch.testing.assert_close(fused, logits, rtol=1e-4, atol=1e-5)
    for each, gradient in truth.items():
        torch.testing.assert_close(found[each], gradient, rtol=1e-4, atol=1e-5)


def test_in_half_precision_gradients_are_near_those_of_autocast() -> None:
    model = made()
    _, truth = learned(model, model, smoothed)

    def autocast(*given: Tensor) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return model(*given)

    _, plain = learned(model, autocast, smoothed)
    _, found = learned(model, Fused(model), fused_loss.smoothed)
    for each, gradient in truth.items():
        if each.endswith("key.bias"):  # which changes no weight of attention: its gradient is rounding alone
            continue
        off = [((got[each] - gradient).norm() / gradient.norm()).item() for got in (plain, found)]
        assert off[1] < max(4 * off[0], 0.05), each


def test_rows_beyond_the_short_kernels_go_another_way_to_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.attention.fast.short.gpu.SHORT", 4)
    test_logits_and_gradients_are_those_of_the_network("as it comes")


def test_dropout_draws_anew_each_time_and_means_the_same() -> None:
    model = made(dropout=0.2, activation_dropout=0.2, encoder_layers=1, decoder_layers=1)
    source, target, lengths, _ = batch()
    fused = Fused(model, torch.float32)
    torch.manual_seed(1)
    first, second = fused(source, target, lengths), fused(source, target, lengths)
    torch.manual_seed(1)
    assert not torch.equal(first, second)
    assert torch.equal(first, fused(source, target, lengths))


def test_its_gradients_are_finite_differences_of_its_own_loss_where_it_drops() -> None:
    model = made(dropout=0.2, activation_dropout=0.2, encoder_layers=1, decoder_layers=1)
    source, target, lengths, wanted = batch()
    fused = Fused(model, torch.float32)

    def loss() -> Tensor:
        torch.manual_seed(4)
        return fused_loss.smoothed(fused(source, target, lengths), wanted, 0.1)

    loss().backward()
    for each in (model.words.vectors.weight, model.decoder.layers[0].attention.out.weight, model.decoder.norm.weight):
        assert each.grad is not None
        way = each.grad / each.grad.norm()
        with torch.no_grad():
            each.add_(way, alpha=1e-2)
            above = loss()
            each.sub_(way, alpha=2e-2)
            below = loss()
            each.add_(way, alpha=1e-2)
        assert ((above - below) / 2e-2).item() == pytest.approx(each.grad.norm().item(), rel=2e-2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"norm_place": "post"}, "norms come first"),
        ({"norm": "none"}, "blocks are normalised"),
        ({"score": "additive"}, "scaled dot and softmax"),
        ({"normalise": "sparsemax"}, "scaled dot and softmax"),
        ({"heads": 4, "kv_heads": 2}, "its own keys"),
        ({"attention_dropout": 0.1}, "not dropped"),
        ({"window": 3}, "sees all places"),
        ({"gated": True}, "without a gate"),
        ({"positions": "alibi"}, "added to words"),
        ({"output_bias": True}, "plain products"),
        ({"encoder_layers": 0}, "there is an encoder"),
    ],
)
def test_networks_it_does_not_know_are_left_alone(changes: dict[str, Any], said: str) -> None:
    assert said in (unlike(made(**changes)) or "")


def test_what_stands_in_the_way_is_told() -> None:
    assert "GPU" in (obstacle(made(), torch.device("cpu")) or "")
    recurrent = build(RecurrentSettings(), SIZES, "translate")
    assert "Transformers" in (unlike(recurrent) or "")
    model = made()
    model.words.vectors.weight.requires_grad_(False)
    assert "all weights" in (unlike(model) or "")


def test_gradients_of_matrices_become_those_of_parameters_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product writes them, and nothing copies them."""
    rooms: list[tuple[int, int]] = []

    def noted(a: Tensor, b: Tensor) -> Tensor:
        found = product(a, b)
        rooms.append((found.data_ptr(), found.data_ptr() + found.nbytes))
        return found

    for where in ("linear", "hidden"):
        monkeypatch.setattr(f"regard.models.fused.{where}.product", noted)
    model = made(encoder_layers=1, decoder_layers=1)
    _, found = learned(model, Fused(model, torch.float32), fused_loss.smoothed)
    matrices = {name: each for name, each in found.items() if each.ndim == 2 and "vectors" not in name}
    assert len(matrices) == 16
    for name, each in matrices.items():
        assert any(start <= each.data_ptr() < end for start, end in rooms), name
