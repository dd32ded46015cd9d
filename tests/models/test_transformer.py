"""The Transformer: PyTorch's answer from its own weights, one step at a time, and what the contract promises."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from regard.attention import core
from regard.models import layers, transformer
from regard.models.build import build
from regard.models.input_settings import CharacterSettings, RowSettings, WordSettings
from regard.models.inputs import begin_with, words_of
from regard.models.layers import Block, FeedForward
from regard.models.sizes import Sizes
from regard.models.transformer import Stack, Transformer, TransformerEncoder
from regard.models.transformer_settings import TransformerSettings
from regard.support.errors import Misuse
from tests.models.kinds import SEQUENCES, stepped, target

SMALL = TransformerSettings(width=16, heads=4, feed_forward=24, encoder_layers=2, decoder_layers=2, dropout=0.0)
SIZES = Sizes(source=11, target=11)


def copy_attention(theirs: nn.MultiheadAttention, ours: nn.Module) -> None:
    for mine, matrix, bias in zip(
        (ours.query, ours.key, ours.value), theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True
    ):
        mine.weight.copy_(matrix)
        mine.bias.copy_(bias)
    ours.out.load_state_dict(theirs.out_proj.state_dict())


@torch.no_grad()
def copy_block(theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer, ours: Block) -> None:
    """PyTorch's layer into our block."""
    pairs = [(ours.attention_norm, theirs.norm1), (ours.feed_forward_norm, theirs.norm2)]
    copy_attention(theirs.self_attn, ours.attention)
    if isinstance(theirs, nn.TransformerDecoderLayer):
        copy_attention(theirs.multihead_attn, ours.cross)
        pairs = [(ours.attention_norm, theirs.norm1), (ours.cross_norm, theirs.norm2)]
        pairs.append((ours.feed_forward_norm, theirs.norm3))
    pairs += [(ours.feed_forward.inner, theirs.linear1), (ours.feed_forward.outer, theirs.linear2)]
    for mine, other in pairs:
        mine.load_state_dict(other.state_dict())


def copy_stack(theirs: nn.TransformerEncoder | nn.TransformerDecoder, ours: Stack) -> None:
    for layer, block in zip(theirs.layers, ours.layers, strict=True):
        copy_block(layer, block)
    if theirs.norm is not None:
        ours.norm.load_state_dict(theirs.norm.state_dict())


def stirred(module: nn.Module) -> nn.Module:
    """With numbers in every parameter, so that a bias or a norm left out shows."""
    with torch.no_grad():
        for each in module.parameters():
            each.add_(torch.randn_like(each) * 0.1)
    return module


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("place", ["pre", "post"])
def test_it_is_pytorchs_transformer_with_its_weights(place: str, activation: str) -> None:
    torch.manual_seed(0)
    theirs = stirred(
        nn.Transformer(16, 4, 2, 2, 24, 0.0, activation, batch_first=True, norm_first=place == "pre")
    ).eval()
    settings = SMALL.changed(norm_place=place, activation=activation, final_norm=True)
    ours = Transformer(settings, SIZES).eval()
    copy_stack(theirs.encoder, ours.encoder.stack)
    copy_stack(theirs.decoder, ours.decoder)
    source, target, lengths = torch.randint(0, 11, (3, 7)), torch.randint(0, 11, (3, 5)), torch.tensor([7, 4, 2])
    padding = torch.arange(7) >= lengths.unsqueeze(1)
    expected = theirs(
        embedded(ours, source), embedded(ours, target), tgt_mask=theirs.generate_square_subsequent_mask(5),
        src_key_padding_mask=padding, memory_key_padding_mask=padding, tgt_is_causal=True,
    )  # fmt: skip
    torch.testing.assert_close(ours.states(source, target, lengths), expected, atol=1e-5, rtol=0)


def embedded(model: Transformer, tokens: torch.Tensor) -> torch.Tensor:
    return model.decoder.positions.add(model.words(tokens).states)


def test_an_encoder_alone_is_pytorchs() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 24, 0.0, batch_first=True)
    theirs = stirred(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).eval()
    ours = TransformerEncoder(SMALL.changed(norm_place="post", parts="encoder"), Sizes(source=11)).eval()
    copy_stack(theirs, ours.stack)
    source, lengths = torch.randint(0, 11, (3, 7)), torch.tensor([7, 4, 2])
    real = torch.arange(7) < lengths.unsqueeze(1)
    expected = theirs(ours.stack.positions.add(ours.input(source).states), src_key_padding_mask=~real)
    torch.testing.assert_close(ours(source, lengths).states[real], expected[real], atol=1e-5, rtol=0)


def trained_a_step(model: Transformer) -> None:
    source, target = torch.randint(4, 11, (2, 6)), torch.randint(4, 11, (2, 5))
    optimiser = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], 0.5)
    nn.functional.cross_entropy(model(source, target).flatten(0, 1), target.flatten()).backward()
    optimiser.step()


def test_pretrained_vectors_of_another_width_than_the_models_train() -> None:
    torch.manual_seed(0)
    model = build(SMALL.changed(input=WordSettings(width=6)), SIZES, "translate")
    begin_with(words_of(model.encoder), torch.ones(11, 6))
    before = [each.detach().clone() for each in (model.words.vectors.weight, model.encoder.widen.weight)]
    trained_a_step(model)
    for was, now in zip(before, (model.words.vectors.weight, model.encoder.widen.weight), strict=True):
        assert now.shape[-2:] in ((11, 16), (16, 6))
        assert not torch.equal(was, now)
    assert not torch.equal(words_of(model.encoder).vectors.weight, torch.ones(11, 6))


@torch.no_grad()
def test_words_that_are_set_are_scaled_as_those_that_are_not() -> None:
    source = torch.randint(4, 11, (2, 6))
    for scales, factor in ((True, 4.0), (False, 1.0)):
        for given in (None, WordSettings(width=16)):
            model = Transformer(SMALL.changed(input=given, scale_embedding=scales), SIZES)
            torch.testing.assert_close(model.encoder.input(source).states, factor * model.words.vectors(source))


def test_words_dropped_in_training_leave_the_table_shared() -> None:
    model = Transformer(SMALL.changed(input=WordSettings(width=16, word_dropout=0.1)), SIZES)
    assert model.words is words_of(model.encoder)


def test_frozen_vectors_of_the_source_freeze_nothing_of_the_target() -> None:
    torch.manual_seed(0)
    model = build(SMALL.changed(input=WordSettings(width=16, freeze=True)), SIZES, "translate")
    source, target = (each.vectors.weight for each in (words_of(model.encoder), model.words))
    before = source.detach().clone(), target.detach().clone()
    trained_a_step(model)
    assert torch.equal(source, before[0])
    assert not torch.equal(target, before[1])
    assert model.output.vectors.weight is target


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (WordSettings(width=6), r"input\.width and width must be the same; got 6 and 16; leave it unset"),
        (WordSettings(width=16, freeze=True), r"frozen \(input\.freeze\), and the target's would be so too"),
        (WordSettings(embedding="one_hot"), "the source's words are one-hot"),
        (WordSettings(width=16, characters=CharacterSettings()), "made of their characters as well"),
        (RowSettings(width=16), "the source is not words"),
    ],
)
def test_a_table_that_cannot_be_shared_is_not_and_whoever_asks_for_it_is_told(given: object, said: str) -> None:
    with pytest.raises(Misuse, match=f"share_embeddings: .*{said}"):
        SMALL.changed(input=given, share_embeddings=True)
    sizes = Sizes(source=11, target=11, characters=9, input_width=3)
    model = Transformer(SMALL.changed(input=given), sizes)
    assert model.words is not words_of(model.encoder)
    assert model.words.width == 16


def test_a_normaliser_that_would_learn_nothing_is_refused_with_the_way_out() -> None:
    with pytest.raises(Misuse, match=r"normalise: sample draws .* learn nothing; take softmax, gumbel or top1"):
        TransformerSettings(normalise="sample")


@pytest.mark.parametrize(
    ("changed", "kind", "within"),
    [
        ({"output": "nearest"}, torch.float32, 1e-5),
        ({"norm_place": "post"}, torch.float32, 1e-5),
        # Nothing holds the numbers: they grow to hundreds, and rounding with them, which is all that differs.
        ({"norm": "none"}, torch.float64, 1e-10),
        ({"norm": "none", "output": "nearest"}, torch.float64, 1e-10),
    ],
)
@torch.inference_mode()
def test_steps_of_a_wide_network_are_all_at_once(changed: dict[str, str], kind: torch.dtype, within: float) -> None:
    torch.manual_seed(0)
    settings = TransformerSettings(width=256, feed_forward=256, encoder_layers=3, decoder_layers=3, **changed)
    model = build(settings, Sizes(source=60, target=60), "translate").to(kind).eval()
    source, fed, lengths = torch.randint(4, 60, (3, 8)), torch.randint(4, 60, (3, 8)), torch.tensor([8, 5, 2])
    torch.testing.assert_close(
        stepped(model, source, fed, lengths)[0], model(source, fed, lengths), atol=within, rtol=0
    )


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("relu", lambda x: x.clamp(min=0)),
        ("gelu", lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5))),
        ("silu", lambda x: x / (1 + torch.exp(-x))),
    ],
)
@torch.no_grad()
def test_the_feed_forward_network_is_its_formula(
    activation: str, function: Callable[[torch.Tensor], torch.Tensor], gated: bool
) -> None:
    torch.manual_seed(0)
    part = stirred(FeedForward(SMALL.changed(activation=activation, gated=gated))).eval()
    x = torch.randn(2, 3, 16)
    inner = x @ part.inner.weight.T + part.inner.bias
    hidden = function(x @ part.gate.weight.T + part.gate.bias) * inner if gated else function(inner)
    torch.testing.assert_close(part(x), hidden @ part.outer.weight.T + part.outer.bias)


def test_dropout_falls_where_the_paper_has_it_and_on_more_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the sum of embedding and position of both sides, and on what each sublayer adds: five sublayers here."""
    fell: list[tuple[str, float]] = []
    own_add, own_drop = layers.add_dropped, layers.drop
    monkeypatch.setattr(layers, "add_dropped", lambda x, f, p: fell.append(("added", p)) or own_add(x, f, p))
    monkeypatch.setattr(layers, "drop", lambda x, p: fell.append(("hidden", p)) or own_drop(x, p))
    monkeypatch.setattr(transformer, "drop", lambda x, p: fell.append(("embedded", p)) or own_drop(x, p))
    monkeypatch.setattr(core, "_dropped", lambda w, p, generator: fell.append(("weights", p)) or w)
    source, target = torch.randint(4, 11, (2, 6)), torch.randint(4, 11, (2, 5))
    one = SMALL.changed(encoder_layers=1, decoder_layers=1, dropout=0.25, score="additive")
    Transformer(one, SIZES).train()(source, target)
    assert sorted(fell) == [("added", 0.25)] * 5 + [("embedded", 0.25)] * 2
    fell.clear()
    more = Transformer(one.changed(attention_dropout=0.5, activation_dropout=0.125), SIZES)
    more.train()(source, target)
    others = [("hidden", 0.125)] * 2 + [("weights", 0.5)] * 3
    assert sorted(fell) == [("added", 0.25)] * 5 + [("embedded", 0.25)] * 2 + others
    fell.clear()
    more.eval()(source, target)
    assert fell == [("added", 0.0)] * 5


@pytest.mark.parametrize("name", [name for name, kind in SEQUENCES.items() if kind.network.kind == "transformer"])
@torch.inference_mode()
def test_a_text_that_comes_in_pieces_goes_on_as_if_it_came_at_once(name: str) -> None:
    kind = SEQUENCES[name]
    model, source, fed = kind.model(), kind.source(), target(7)
    memory = model.encode(source, kind.lengths)
    expected, state = model(source, fed, kind.lengths), model.start(memory)
    for begin, end in ((0, 3), (3, 4), (4, 6), (6, 7)):
        logits, state, _ = model.feed(fed[:, begin:end], state, memory)
        within = 1e-5 + 1e-6 * float(expected.abs().max())
        torch.testing.assert_close(logits, expected[:, end - 1], atol=within, rtol=0)
