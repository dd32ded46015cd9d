"""Every equation of whole models is true: PyTorch's own layers, regard's models, and another library's."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.models.build import build
from regard.models.rnn_settings import RecurrentSettings
from regard.models.sizes import Sizes
from regard.models.transformer import Transformer
from regard.models.transformer_settings import TransformerSettings
from regard.tracing.derivation import Derivation
from tests.tracing.arithmetic import every_equation_is_true

Run = Callable[[], Tensor]


def derived(run: Run) -> Derivation:
    """Traced without gradients; nothing in it is opaque, and the answer is that of an untraced run."""
    with torch.no_grad():
        expected = run()
        with regard.trace() as tape:
            output = run()
    torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-9)
    derivation = tape.derivation(output)
    assert [step for step in derivation.fine if step.role == "opaque"] == []
    assert torch.equal(derivation.target.value, output)
    return derivation


def lstm(dtype: torch.dtype = torch.float64) -> Run:
    module, x = nn.LSTM(3, 4, 2, bidirectional=True).to(dtype), torch.randn(3, 2, 3, dtype=dtype)
    return lambda: module(x)[0]


def packed(dtype: torch.dtype = torch.float64) -> Run:
    module, x = nn.LSTM(3, 4, batch_first=True, bidirectional=True).to(dtype), torch.randn(3, 4, 3, dtype=dtype)

    def run() -> Tensor:
        rows = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 4, 1]), batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(module(rows)[0], batch_first=True)[0]

    return run


def gru(dtype: torch.dtype = torch.float64) -> Run:
    module, x = nn.GRU(3, 4).to(dtype), torch.randn(3, 2, 3, dtype=dtype)
    return lambda: module(x)[0]


def rnn(dtype: torch.dtype = torch.float64) -> Run:
    module, x = nn.RNN(3, 4, nonlinearity="relu").to(dtype), torch.randn(3, 2, 3, dtype=dtype)
    return lambda: module(x)[1]


def attention(dtype: torch.dtype = torch.float64) -> Run:
    module = nn.MultiheadAttention(8, 2, batch_first=True).to(dtype)
    x, y = torch.randn(2, 3, 8, dtype=dtype), torch.randn(2, 4, 8, dtype=dtype)
    return lambda: module(x, y, y, key_padding_mask=torch.tensor([[False] * 4, [False, False, True, True]]))[0]


def encoder(dtype: torch.dtype = torch.float64) -> Run:
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, activation="gelu").to(dtype).eval()
    x = torch.randn(2, 3, 8, dtype=dtype)
    return lambda: layer(x, src_key_padding_mask=torch.tensor([[False] * 3, [False, False, True]]))


def convolution(dtype: torch.dtype = torch.float64) -> Run:
    stack = nn.Sequential(nn.Conv1d(3, 4, 3, padding=1), nn.GELU(), nn.BatchNorm1d(4), nn.MaxPool1d(2)).to(dtype).eval()
    x = torch.randn(2, 3, 6, dtype=dtype)
    return lambda: stack(x)


SIZES = Sizes(source=9, target=9)
SOURCE, TARGET = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([[2, 4, 5], [2, 6, 7]])
LENGTHS = torch.tensor([3, 2])


def bahdanau(dtype: torch.dtype = torch.float64) -> Run:
    settings = RecurrentSettings(width=3, embedding=3, readout=3, dropout=0.0)
    model = build(settings, SIZES, "translate").to(dtype).eval()
    return lambda: model(SOURCE, TARGET, LENGTHS)


def transformer(dtype: torch.dtype = torch.float64) -> Run:
    settings = TransformerSettings(width=6, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1, dropout=0.0)
    model = Transformer(settings, SIZES).to(dtype).eval()
    return lambda: model(SOURCE, TARGET, LENGTHS)


def marian(dtype: torch.dtype = torch.float64) -> Run:
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=12, d_model=6, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=8, pad_token_id=11,
        decoder_start_token_id=11, eos_token_id=0, activation_function="swish", scale_embedding=True,
    )  # fmt: skip
    model, source = MarianMTModel(config).to(dtype).eval(), torch.tensor([[3, 4, 5, 0], [6, 7, 0, 11]])
    return lambda: (
        model(
            input_ids=source,
            attention_mask=(source != 11).long(),
            decoder_input_ids=torch.tensor([[11, 2, 3], [11, 4, 5]]),
        ).logits
    )


MODELS: dict[str, Callable[..., Run]] = {
    each.__name__: each
    for each in (lstm, packed, gru, rnn, attention, encoder, convolution, bahdanau, transformer, marian)
}


@pytest.mark.parametrize("name", MODELS)
def test_every_cell_s_equation_is_true(name: str) -> None:
    torch.manual_seed(0)
    assert every_equation_is_true(derived(MODELS[name]())) > 100


@pytest.mark.parametrize("name", ["lstm", "bahdanau", "transformer", "marian"])
def test_in_single_precision_they_are_true_within_its_rounding(name: str) -> None:
    torch.manual_seed(0)
    run = MODELS[name](torch.float32)
    with torch.no_grad(), regard.trace() as tape:
        output = run()
    assert output.dtype == torch.float32
    assert every_equation_is_true(tape.derivation(output), 1e-5, most=12) > 100


def test_the_gates_and_states_of_an_lstm_are_steps_by_their_names() -> None:
    torch.manual_seed(0)
    module, x = nn.LSTM(3, 4).double(), torch.randn(3, 2, 3, dtype=torch.float64)
    derivation = derived(lambda: module(x)[0])
    names = [step.name for step in derivation.steps]
    assert [name for name in names if name.endswith("_2")] == ["a_2", "i_2", "f_2", "g_2", "o_2", "C_2", "h_2"]
    assert derivation["C_2"].formula == "f_2 · C_1 + i_2 · g_2"
    assert derivation["h_2"].formula == "o_2 · tanh(C_2)"
    assert derivation["f_2"].formula == "σ(a_2[:, 4:8])"
    assert {parent.step for parent in derivation.why("C_2", 1, 3).parents} == {"f_2", "C_1", "i_2", "g_2"}
    assert derivation.why("C_2", 1, 3).parents[1].index == (1, 3)
    assert names[-1] == "output"
    assert derivation["output"].formula == "[h_1; h_2; h_3]"


def test_states_of_two_directions_and_layers_are_told_apart() -> None:
    torch.manual_seed(0)
    derivation = derived(lstm())
    names = {step.name for step in derivation.steps}
    assert {"h→_1^1", "h←_1^1", "h→_3", "h←_3"} <= names
    # The way back begins at the last place.
    given = derivation["zeros#1"].name
    assert given in derivation["a←_3"].inputs
    assert given not in derivation["a←_1"].inputs


def test_a_gru_is_named_as_the_notes_name_it() -> None:
    torch.manual_seed(0)
    derivation = derived(gru())
    assert {"r_1", "z_1", "n_1", "h_1", "h_3"} <= {step.name for step in derivation.steps}
    assert derivation["h_2"].formula == "(h_1 - n_2) · z_2 + n_2"


def test_regard_s_own_attention_reads_as_the_notes_write_it() -> None:
    torch.manual_seed(0)
    derivation = derived(transformer())
    at = "decoder.layers.0.attention"
    assert [derivation[f"{at}.{name}"].formula for name in "QKVEA"] == [
        "X W_Q",
        "X W_K",
        "X W_V",
        "Q Kᵀ / √d",
        "softmax(M)",
    ]
    assert derivation[f"{at}.Q"].inputs == (f"{at}.query.bias", "decoder.layers.0.attention_norm", f"{at}.query.weight")
    assert derivation[f"{at}.E"].inputs == (f"{at}.Q", f"{at}.K")
    assert derivation[f"{at}.A"].kind == "weights"
    cell = derivation.why(f"{at}.A", 1, 1, 1, 0)
    assert [parent.step for parent in cell.parents] == [f"{at}.M"] * 3
    assert [parent.index[-1] for parent in cell.parents] == [0, 1, 2]
    assert cell.text.startswith(f"{cell.value:.4g}"[:5])
    assert derivation.target.name == "logits"
    # The primitives of it stay reachable.
    assert "aten.addmm" in [step.operation for step in derivation[f"{at}.Q"].fine]


def test_a_bahdanau_decoder_reads_as_the_notes_write_it() -> None:
    torch.manual_seed(0)
    derivation = derived(bahdanau())
    names = [step.name for step in derivation.steps]
    order = ["H", "s_0", "e_1", "α_1", "c_1", "s_1", "e_2", "α_2", "c_2", "s_2", "logits"]
    assert [name for name in names if name in order] == order
    assert {"s_1", "K"} <= set(derivation["attention.tanh#2"].inputs)
    assert set(derivation["c_2"].inputs) == {"α_2", "H"}


def test_weights_of_another_library_s_attention_are_found_by_path() -> None:
    torch.manual_seed(0)
    derivation = derived(marian())
    weights = derivation["model.decoder.layers.0.encoder_attn.A"]
    assert weights.shape == (2, 2, 3, 4)
    assert weights.kind == "weights"
    assert float(weights.value[1, :, :, 3].abs().max()) == 0
    assert derivation["model.decoder.layers.0.encoder_attn.q_proj"].shape == (2, 3, 6)
    with pytest.raises(
        ValueError, match=r"'A' stands 3 times in this derivation; ask for one of: model.encoder.layers"
    ):
        derivation["A"]


def test_attention_without_gradients_to_keep_is_seen_as_with_them() -> None:
    torch.manual_seed(0)
    run = encoder()
    with torch.inference_mode(), regard.trace() as tape:
        inferred = tape.derivation(run())
    plain = derived(run)
    torch.testing.assert_close(inferred["self_attn.A"].value, plain["self_attn.A"].value)
    every_equation_is_true(inferred)


def test_inputs_passed_by_keyword_have_their_names() -> None:
    torch.manual_seed(0)
    derivation = derived(marian())
    assert {"input_ids", "decoder_input_ids"} <= {step.name for step in derivation.givens}


def test_the_parents_of_a_cell_are_the_leaves_of_its_formula() -> None:
    torch.manual_seed(0)
    derivation = derived(transformer())
    for fine, steps in ((False, derivation.steps), (True, derivation.fine)):
        for step in steps:
            cell = derivation.why(step.name, *(0,) * len(step.shape), fine=fine)
            leaves = [(leaf.step.name, leaf.index, leaf.value) for leaf in cell.expression.leaves() if leaf.step]
            assert [tuple(parent) for parent in cell.parents] == list(dict.fromkeys(leaves))
