"""Matrices in 8 bits: near what they were, a quarter as large, and the same whether they are multiplied out or kept."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from regard.models.build import build
from regard.models.contract import Model
from regard.models.eight_bits import quantised, restored
from regard.models.folder import load_folder, rewritten
from regard.models.kept import KeptLinear, KeptOutput, KeptVectors
from regard.models.rnn_settings import RecurrentSettings
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.support.errors import Misuse

SMALL = TransformerSettings(width=32, heads=4, feed_forward=48, encoder_layers=2, decoder_layers=2)
SIZES = Sizes(source=60, target=60)
KINDS: dict[str, Any] = {
    "one table": SMALL,
    "own tables": SMALL.changed(share_embeddings=False, tie_output=False, output_bias=True, positions="learned"),
    "distances": SMALL.changed(output="nearest"),
    "gated": SMALL.changed(gated=True, norm="rms", kv_heads=2, score="additive"),
    "recurrent": RecurrentSettings(),
}  # fmt: skip


def test_it_is_the_engines_own_way_to_eight_bits() -> None:
    specs = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed").specs
    matrix = np.random.default_rng(3).normal(size=(40, 64)).astype(np.float32)
    layer = specs.common_spec.LinearSpec()
    layer.weight = matrix.copy()
    layer.validate()
    layer.optimize("int8")
    ours, scale = quantised(matrix)
    np.testing.assert_array_equal(ours, layer.weight.numpy())
    np.testing.assert_allclose(1 / scale, layer.weight_scale.numpy(), rtol=1e-6)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=5, max_size=5), min_size=1, max_size=6))
def test_every_number_is_within_half_a_step_and_the_largest_is_as_it_was(rows: list[list[float]]) -> None:
    matrix = np.array(rows, np.float32)
    q, scale = quantised(matrix)
    back = restored({"w": q, "w.scale": scale})["w"]
    assert (np.abs(back - matrix) <= 0.5001 * scale[:, None]).all()
    largest = np.abs(matrix).max(1)
    np.testing.assert_allclose(np.abs(back).max(1)[largest > 1e-30], largest[largest > 1e-30], rtol=1e-6)
    again, same = quantised(back)
    np.testing.assert_array_equal(again[scale != 1], q[scale != 1])
    np.testing.assert_allclose(same, scale, rtol=1e-6)


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="8 bits: expected finite numbers"):
        quantised(np.array([[1.0, np.nan]]))


def said(model: Model) -> torch.Tensor:
    dice = torch.Generator().manual_seed(5)
    source, target = torch.randint(4, 60, (3, 6), generator=dice), torch.randint(4, 60, (3, 5), generator=dice)
    with torch.inference_mode():
        logits: torch.Tensor = model(source, target, torch.tensor([6, 4, 2]))
        return logits


@pytest.mark.parametrize("network", KINDS.values(), ids=KINDS)
def test_a_folder_in_eight_bits_says_the_same_kept_or_multiplied_out(network: Any, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = build(network, SIZES, "translate").eval()
    model.save(tmp_path / "whole")
    model.save(tmp_path / "small", numbers="int8")
    whole, kept = load_folder(tmp_path / "small").model, load_folder(tmp_path / "small", keep=True).model
    assert torch.equal(said(whole), said(kept))
    spread = float(said(model).std())
    assert 0 < float((said(whole) - said(model)).abs().max()) < 0.2 * spread
    for name, tensor in whole.state_dict().items():
        if tensor.ndim != 2:
            assert torch.equal(tensor, model.state_dict()[name])


def test_what_is_kept_takes_a_quarter_of_the_memory(tmp_path: Path) -> None:
    model = build(SMALL, SIZES, "translate")
    model.save(tmp_path, numbers="int8")

    def size(each: Model) -> int:
        held = {tensor.data_ptr(): tensor.nbytes for tensor in each.state_dict().values()}
        return sum(held.values())

    kept = load_folder(tmp_path, keep=True).model
    assert size(kept) < 0.35 * size(model)
    assert (tmp_path / "weights.safetensors").stat().st_size < 0.5 * size(model)
    kinds = {type(part) for part in kept.modules()}
    assert {KeptLinear, KeptVectors, KeptOutput} <= kinds
    assert not kinds & {torch.nn.Linear, torch.nn.Embedding}
    assert kept.words.vectors is kept.encoder.input.vectors is kept.output.vectors


def test_of_a_folder_in_float32_nothing_is_kept(tmp_path: Path) -> None:
    model = build(SMALL, SIZES, "translate").eval()
    model.save(tmp_path)
    assert torch.equal(said(load_folder(tmp_path, keep=True).model), said(model))


def test_half_precision_is_half_as_large_and_near(tmp_path: Path) -> None:
    torch.manual_seed(2)
    model = build(SMALL, SIZES, "translate").eval()
    model.save(tmp_path / "whole")
    model.save(tmp_path / "half", numbers="float16")
    whole, half = ((tmp_path / name / "weights.safetensors").stat().st_size for name in ("whole", "half"))
    assert half < 0.6 * whole
    torch.testing.assert_close(said(load_folder(tmp_path / "half").model), said(model), atol=0.02, rtol=0)


def test_other_numbers_are_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="unknown numbers 'int4'"):
        build(SMALL, SIZES, "translate").save(tmp_path, numbers="int4")


def test_scales_that_are_missing_are_told(tmp_path: Path) -> None:
    model = build(SMALL, SIZES, "translate")
    model.save(tmp_path, numbers="int8")
    held = load_file(tmp_path / "weights.safetensors")
    name = next(each for each in held if each.endswith(".scale"))
    one = held.pop(name)
    save_file(held, tmp_path / "weights.safetensors")
    with pytest.raises(Misuse, match=r"tensor .* is in 8 bits, and its scales .* are missing"):
        load_folder(tmp_path)
    save_file({**held, name: one[:-1]}, tmp_path / "weights.safetensors")
    with pytest.raises(Misuse, match=r"expected .* scales, one a row"):
        load_folder(tmp_path)


def test_a_folder_is_written_again_in_other_numbers_with_all_that_it_says(tmp_path: Path) -> None:
    torch.manual_seed(4)
    model = build(SMALL, SIZES, "translate").eval()
    model.save(tmp_path / "whole", about={"seed": 3})
    rewritten(tmp_path / "whole", tmp_path / "small")
    model.save(tmp_path / "at once", about={"seed": 3}, numbers="int8")
    ours, truth = (load_file(tmp_path / name / "weights.safetensors") for name in ("small", "at once"))
    assert list(ours) == list(truth)
    assert all(torch.equal(ours[name], truth[name]) for name in truth)
    assert (tmp_path / "small" / "model.json").read_bytes() == (tmp_path / "at once" / "model.json").read_bytes()
    with pytest.raises(Misuse, match="is the model's own folder"):
        rewritten(tmp_path / "small", tmp_path / "small")


def test_a_card_shows_scores_of_several_directions_as_a_table(tmp_path: Path) -> None:
    scores = {"English → Spanish": {"sentences": 400, "BLEU": 48.25}, "Hindi → English": {"sentences": 90, "BLEU": 9.0}}
    about = {"scores": scores, "remarks": "Short sentences."}
    build(SMALL, SIZES, "translate").save(tmp_path, about=about)
    card = (tmp_path / "README.md").read_text()
    assert (
        "| | sentences | BLEU |\n| --- | ---: | ---: |\n| English → Spanish | 400 | 48.25 |\n"
        "| Hindi → English | 90 | 9.00 |\n"
    ) in card
    assert card.count("Short sentences.") == 1
