"""The notes' hand-worked model: a Transformer with its weights says its numbers, unrounded."""

import pytest
import torch
from torch import Tensor

from regard.models.build import build
from regard.models.sizes import Sizes
from regard.models.transformer_settings import TransformerSettings
from regard.worked import read_problem, solve
from regard.worked.shipped import located
from tests.models.kinds import stepped

NOTES = TransformerSettings(
    width=2, heads=1, encoder_layers=1, decoder_layers=1, score="dot", out_projection=False, feed_forward=0,
    norm="none", bias=False, positions="learned", longest=2, scale_embedding=False, share_embeddings=False,
    tie_output=False, start="</s>", dropout=0.0,
)  # fmt: skip
EOS, IR, VAMOS, Y = 3, 4, 5, 6
COLUMNS = torch.tensor([IR, VAMOS, Y, EOS])
SOURCE = torch.tensor([[4, 5]])  # Let's, go


@pytest.fixture(scope="module")
def truth() -> dict[str, Tensor]:
    """The problem's own values, worked from its formulas in float64."""
    return dict(solve(read_problem(located("lets-go"))).values)


def model_of(given: dict[str, Tensor], settings: TransformerSettings) -> torch.nn.Module:
    """The notes' weights in a Transformer. Matrices there multiply from the right, so they go in transposed."""
    model = build(settings, Sizes(source=6, target=7), "translate").double().eval()
    encoder, decoder = model.encoder.stack.layers[0], model.decoder.layers[0]
    places = [(encoder.attention, "W_{}"), (decoder.attention, "decoder_{}"), (decoder.cross, "cross_{}")]
    with torch.no_grad():
        for attention, names in places:
            for letter, linear in (("Q", attention.query), ("K", attention.key), ("V", attention.value)):
                linear.weight.copy_(given[names.format(letter)].T)
        model.encoder.stack.positions.vectors.copy_(given["positions"])
        model.decoder.positions.vectors.copy_(given["positions"])
        model.encoder.input.vectors.weight[4:6] = given["words"]
        model.words.vectors.weight[EOS] = given["EOS"][0]
        model.words.vectors.weight[VAMOS] = (given["vamos"] - given["positions"][1])[0]  # the notes give the sum
        if not settings.tie_output:
            model.output.vectors.weight[COLUMNS] = given["dense"].T
    return model


@torch.inference_mode()
def test_it_equals_the_notes_worked_model(truth: dict[str, Tensor]) -> None:
    model = model_of(truth, NOTES)
    memory = model.encode(SOURCE)
    fed = torch.tensor([[EOS, VAMOS]])
    at_once = model(SOURCE, fed)[0][:, COLUMNS]
    one_by_one, weights = stepped(model, SOURCE, fed, None)
    expected = torch.cat([truth["logits"], truth["logits_2"]])
    for got, name in (
        (model.encoder(SOURCE).states[0], "memory"), (memory.sources[0].projected.key[0, 0], "K_cross"),
        (memory.sources[0].projected.value[0, 0], "V_cross"), (weights[0][0, 0, 0], "a_cross"),
        (weights[1][0, 0, 0], "a_vamos_cross"), (model.states(SOURCE, fed)[0, 0], "eos_3"),
        (model.states(SOURCE, fed)[0, 1], "vamos_5"),
    ):  # fmt: skip
        torch.testing.assert_close(got, truth[name].reshape(got.shape), atol=1e-6, rtol=0)
    torch.testing.assert_close(at_once, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(one_by_one[0][:, COLUMNS], expected, atol=1e-6, rtol=0)
    assert model.start_token == EOS
    assert at_once.argmax(-1).tolist() == [int(truth["word"]), int(truth["word_2"])]
    assert COLUMNS[at_once.argmax(-1)].tolist() == [VAMOS, EOS]


@torch.inference_mode()
def test_the_next_word_may_be_the_nearest_embedding(truth: dict[str, Tensor]) -> None:
    model = model_of(truth, NOTES.changed(tie_output=True, output="nearest"))
    h = truth["vamos_5"].reshape(-1)
    logits = model(SOURCE, torch.tensor([[EOS, VAMOS]]))[0, 1]
    distances = torch.stack([(h - vector).square().sum() for vector in model.words.vectors.weight])
    torch.testing.assert_close(h.square().sum() - logits, distances, atol=1e-6, rtol=0)
    torch.testing.assert_close(torch.softmax(logits, -1), torch.softmax(-distances, -1), atol=1e-6, rtol=0)
