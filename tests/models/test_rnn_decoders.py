"""Recurrent decoders against their papers' formulas, written out here with plain products; and what can be set."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.models.cells import gru_cell
from regard.models.contract import SequenceModel
from regard.models.rnn.decoder import Recurrent
from regard.models.rnn.memory import Remembered
from regard.models.rnn_settings import AttentionSettings
from tests.models.kinds import SEQUENCES, Kind, bahdanau, luong, rnn, stepped, target

SOURCE, FED = torch.tensor([[4, 7, 9, 5]]), target(4, rows=1)


def made(settings: Any) -> Recurrent:
    model = Kind(settings).model()
    assert isinstance(model, Recurrent)
    return model


def weights_of(model: Recurrent, source: Tensor = SOURCE, fed: Tensor = FED) -> Tensor:
    """[T, S] of the first sentence."""
    _, weights = stepped(model, source, fed, None)
    return torch.stack([each[0, 0, 0] for each in weights if each is not None])


@torch.no_grad()
def test_bahdanaus_decoder_is_the_papers_formulas() -> None:
    model = made(rnn(cell="gru"))
    memory = model.encode(SOURCE)
    assert memory.states is not None
    assert memory.first is not None
    h, s = memory.states[0], memory.first[0][0][0]
    align, cells, readout, score = model.attention.score, model.cells, model.readout.linear, []
    logits = []
    for token in FED[0]:
        y = model.words.vectors.weight[token]
        e = torch.stack([align.v @ torch.tanh(align.W_q.T @ s + align.W_k.T @ each + align.b) for each in h])
        alpha = e.exp() / e.exp().sum()
        c = sum(weight * each for weight, each in zip(alpha, h, strict=True))
        s = gru_cell(torch.cat([y, c]), s, *cells.all_weights[0])
        t = torch.tanh(readout.weight @ torch.cat([s, c, y]) + readout.bias)
        logits.append(model.output.vectors.weight @ t + model.output.bias)
        score.append(alpha)
    torch.testing.assert_close(torch.stack(logits), model(SOURCE, FED)[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.stack(score), weights_of(model), atol=1e-6, rtol=0)


@pytest.mark.parametrize("feeding", [True, False])
@torch.no_grad()
def test_luongs_decoder_is_the_papers_formulas(feeding: bool) -> None:
    model = made(rnn(cell="gru", attention=AttentionSettings(kind="luong", input_feeding=feeding)))
    memory = model.encode(SOURCE)
    assert memory.states is not None
    assert memory.first is not None
    h, s, attentional = memory.states[0], memory.first[0][0][0], torch.zeros(model.readout.width)
    logits = []
    for token in FED[0]:
        x = model.words.vectors.weight[token]
        s = gru_cell(torch.cat([x, attentional]) if feeding else x, s, *model.cells.all_weights[0])
        alpha = torch.softmax(h @ model.attention.score.W.T @ s, 0)
        attentional = torch.tanh(model.readout.linear.weight @ torch.cat([alpha @ h, s]))
        logits.append(model.output.vectors.weight @ attentional + model.output.bias)
    torch.testing.assert_close(torch.stack(logits), model(SOURCE, FED)[0], atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_plain_decoder_is_the_lectures_and_begins_with_the_encoders_last_state() -> None:
    model = made(rnn(cell="rnn", attention=None, bidirectional=False))
    _, ((h,),) = model.encoder.read(SOURCE)
    U, W, b, b_2 = model.cells.all_weights[0]
    logits, s = [], h[0]
    for token in FED[0]:
        s = torch.tanh(b + b_2 + W @ s + U @ model.words.vectors.weight[token])
        logits.append(model.output.bias + model.output.vectors.weight @ s)  # o = c + V h
    torch.testing.assert_close(torch.stack(logits), model(SOURCE, FED)[0], atol=1e-5, rtol=0)


@torch.no_grad()
def test_an_lstm_hands_on_h_and_c_of_every_layer() -> None:
    model = made(rnn(attention=None, bidirectional=False, layers=2))
    _, last = model.encoder.read(SOURCE)
    first = model.encode(SOURCE).first
    assert first is not None
    assert [len(state) for state in first] == [2, 2]
    for mine, theirs in zip(first, last, strict=True):
        assert all(torch.equal(*pair) for pair in zip(mine, theirs, strict=True))


@pytest.mark.parametrize(("encoder_layers", "beside"), [(2, [0, 1]), (1, [0, 0]), (3, [1, 2])])
@torch.no_grad()
def test_a_dense_bridge_leads_from_the_top_layers_to_the_top_layers(encoder_layers: int, beside: list[int]) -> None:
    model = made(rnn(layers=2, encoder_layers=encoder_layers, bridge="dense"))
    _, last = model.encoder.read(SOURCE)
    first = model.encode(SOURCE).first
    assert first is not None
    for layer, from_layer in enumerate(beside):
        h, c = (torch.cat([last[2 * from_layer][part], last[2 * from_layer + 1][part]], -1) for part in (0, 1))
        for_h, for_c = model.bridge.dense[2 * layer], model.bridge.dense[2 * layer + 1]
        torch.testing.assert_close(first[layer][0], torch.tanh(h @ for_h.weight.T + for_h.bias))
        torch.testing.assert_close(first[layer][1], c @ for_c.weight.T + for_c.bias)


@torch.no_grad()
def test_two_directions_that_are_added_are_handed_on_added() -> None:
    model = made(rnn(join="sum"))
    encoded, ((forwards, c), (backwards, d)) = model.encoder.read(SOURCE)
    first = model.encode(SOURCE).first
    assert first is not None
    torch.testing.assert_close(first[0][0], forwards + backwards)
    torch.testing.assert_close(first[0][1], c + d)
    assert encoded.states.shape[-1] == 6


@torch.no_grad()
def test_a_source_read_backwards_is_the_turned_source_read_forwards() -> None:
    model = made(rnn(attention=None, bidirectional=False, reversed=True))
    plain = made(rnn(attention=None, bidirectional=False))
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(SOURCE, FED), plain(SOURCE.flip(1), FED))
    torch.testing.assert_close(model.encoder(SOURCE).states, plain.encoder(SOURCE.flip(1)).states.flip(1))


@torch.no_grad()
def test_coverage_adds_up_what_was_attended_to_and_is_read() -> None:
    model = made(bahdanau(coverage=True))
    memory = model.encode(SOURCE)
    state = model.start(memory)
    total = torch.zeros(4)
    for place in range(3):
        _, state, weights = model.step(FED[:, place], state, memory, want_weights=True)
        total = total + weights[0, 0, 0]
        torch.testing.assert_close(state.coverage[0], total)
    before = weights_of(model)
    model.attention.score.w_c.zero_()
    after = weights_of(model)
    torch.testing.assert_close(after[0], before[0])
    assert not torch.allclose(after[1], before[1])


@pytest.mark.parametrize("name", [name for name in SEQUENCES if "no feeding" in name or name.startswith("plain")])
def test_what_feeds_nothing_back_runs_its_cells_over_the_whole_target_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = SEQUENCES[name]
    model, fed, runs = kind.model().train(), target(), []
    own = model.cells.forward
    monkeypatch.setattr(model.cells, "forward", lambda x, states: runs.append(x.shape[1]) or own(x, states))
    monkeypatch.setattr(model.cells, "advance", lambda *given: pytest.fail("the cells took a single step"))
    model.teach(kind.source(), fed, kind.lengths).logits.sum().backward()
    assert runs == [fed.shape[1]]


@pytest.mark.parametrize("kind", [bahdanau, luong])
@torch.no_grad()
def test_local_m_sees_a_window_beside_its_own_place(kind: Any) -> None:
    weights = weights_of(made(kind(reach="local_m", window=1)))
    near = (torch.arange(4).unsqueeze(1) - torch.arange(4)).abs() <= 1
    assert torch.equal(weights > 0, near)


@pytest.mark.parametrize("settings", [
    bahdanau(reach="local_m", window=1), bahdanau(reach="local_m", window=1, coverage=True),
    luong(reach="local_m", window=1), luong(reach="local_m", window=1, input_feeding=False),
])  # fmt: skip
@torch.no_grad()
def test_behind_the_end_of_its_source_local_m_sees_the_last_places(settings: Any) -> None:
    model, fed, lengths = made(settings), target(6, rows=3), torch.tensor([4, 2, 1])
    source = SOURCE.expand(3, -1)
    logits, weights = stepped(model, source, fed, lengths)
    seen = torch.stack([each[:, 0, 0] for each in weights if each is not None], 1)
    torch.testing.assert_close(seen.sum(-1), torch.ones(3, 6))
    for row, length in enumerate(lengths.tolist()):
        own = torch.arange(6).clamp(max=length - 1).unsqueeze(1)
        near = ((torch.arange(4) - own).abs() <= 1) & (torch.arange(4) < length)
        assert torch.equal(seen[row] > 0, near)
    torch.testing.assert_close(logits, model(source, fed, lengths), atol=1e-5, rtol=0)


@torch.no_grad()
def test_local_p_sees_a_window_under_a_bell_about_the_place_that_it_foretells() -> None:
    model = made(luong(reach="local_p", window=1))
    memory = model.encode(SOURCE)
    _, state, weights = model.step(FED[:, 0], model.start(memory), memory, want_weights=True)
    s = state.states[-1][0][0]
    centre, W = model.attention.centre, model.attention.score.W
    p = 4 * torch.sigmoid(centre.out.weight[0] @ torch.tanh(centre.hidden.weight @ s))
    places = torch.arange(4)
    near = (places >= p - 1) & (places <= p + 1)
    expected = torch.softmax((memory.states[0] @ W.T @ s).masked_fill(~near, -torch.inf), 0)
    expected = expected * torch.exp(-((places - p) ** 2) / (2 * 0.5**2))
    torch.testing.assert_close(weights[0, 0, 0], expected)


@pytest.mark.parametrize("hard", ["straight_through", "gumbel", "reinforce"])
def test_hard_attention_looks_at_one_place_and_at_the_largest_when_training_is_over(hard: Any) -> None:
    one = AttentionSettings(kind="luong", input_feeding=False)
    soft, model = made(rnn(dropout=0.0, attention=one)), made(rnn(dropout=0.0, attention=one.changed(hard=hard)))
    model.load_state_dict(soft.state_dict(), strict=False)
    with torch.no_grad():
        assert torch.equal(weights_of(model).argmax(-1), weights_of(soft).argmax(-1))
        assert torch.equal(weights_of(model).amax(-1), torch.ones(4))
    model.train()
    drawn = torch.stack([weights_of(model).detach() for _ in range(40)])
    torch.testing.assert_close(drawn.amax(-1), torch.ones(40, 4))
    assert (len(drawn.unique(dim=0)) > 1) == (hard != "straight_through")


def test_reinforce_is_told_the_choices_and_its_baseline_is_trained_apart() -> None:
    model = made(bahdanau(hard="reinforce")).train()
    taught = model.teach(SOURCE, FED)
    assert taught.choices is not None
    log_prob, entropy, baseline = taught.choices
    assert log_prob.shape == entropy.shape == baseline.shape == (1, 4)
    assert bool((log_prob < 0).all())
    assert bool(((entropy > 0) & (entropy < torch.tensor(4.0).log() + 1e-6)).all())
    baseline.sum().backward()
    moved = {name.split(".baseline.")[0] for name, each in model.named_parameters() if each.grad is not None}
    assert moved == {"attention"}
    assert model.eval().teach(SOURCE, FED).choices is None


def greedy(model: SequenceModel, source: Tensor, steps: int) -> Tensor:
    """Logits of a model that is fed the likeliest token each time."""
    memory, token = model.encode(source), torch.full((len(source),), 2)
    state, logits = model.start(memory), []
    for _ in range(steps):
        one, state, _ = model.step(token, state, memory)
        logits.append(one)
        token = one.argmax(-1)
    return torch.stack(logits, 1)


@pytest.mark.parametrize(
    "name", ["bahdanau", "luong", "luong, no feeding", "luong, no feeding, coverage", "plain, rnn"]
)
@torch.no_grad()
def test_a_decoder_is_fed_its_own_words_as_often_as_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = SEQUENCES[name]
    model, source, fed = kind.model(), kind.source(), target(5)
    torch.testing.assert_close(model.teach(source, fed, own=0.0).logits, model(source, fed), atol=1e-5, rtol=0)
    torch.testing.assert_close(model.teach(source, fed, own=1.0).logits, greedy(model, source, 5), atol=1e-5, rtol=0)
    # With a half: the second token is the model's own where the die says so, and the target's elsewhere.
    monkeypatch.setattr(torch, "rand", lambda *shape, **named: torch.tensor([0.1, 0.9, 0.4]))
    own = model.teach(source, fed, own=torch.tensor(0.5)).logits
    said = model(source, fed)[:, 0].argmax(-1)
    mixed = fed.clone()
    mixed[:, 1] = torch.where(torch.tensor([True, False, True]), said, fed[:, 1])
    torch.testing.assert_close(own[:, 1], model(source, mixed)[:, 1], atol=1e-5, rtol=0)


def test_only_a_decoder_that_takes_steps_is_fed_its_own_words() -> None:
    model = SEQUENCES["transformer"].model()
    with pytest.raises(ValueError, match="own: Transformer reads the target all at once"):
        model.teach(SOURCE, FED, own=0.5)
    assert torch.equal(model.teach(SOURCE, FED).logits, model(SOURCE, FED))


def test_tables_that_are_shared_are_one() -> None:
    model = made(rnn(share_embeddings=True, embedding=7, tie_output=True))
    assert model.words.vectors is model.encoder.input.vectors is model.output.vectors
    assert made(rnn()).output.vectors is not made(rnn()).words.vectors


def test_dropout_is_for_training_alone() -> None:
    model = made(rnn(dropout=0.4, attention=AttentionSettings(dropout=0.3)))
    assert torch.equal(model(SOURCE, FED), model(SOURCE, FED))
    model.train()
    assert not torch.equal(model(SOURCE, FED), model(SOURCE, FED))


@pytest.mark.parametrize("name", ["plain, rnn", "bahdanau", "luong", "luong, no feeding", "language model, lstm"])
def test_no_steps_give_no_logits(name: str) -> None:
    kind = SEQUENCES[name]
    logits = kind.model()(kind.source(), target(5)[:, :0], kind.lengths)
    assert logits.shape == (3, 0, 11)


def test_a_memory_of_nothing_stays_nothing() -> None:
    memory = Remembered()
    assert memory.select(torch.tensor([0])) is memory
