"""The Transformer: PyTorch's answer from its own weights, one step at a time, and what the contract promises."""

import pytest
import torch
from torch import nn

from regard.models.layers import Block
from regard.models.sizes import Sizes
from regard.models.transformer import Stack, Transformer, TransformerEncoder
from regard.models.transformer_settings import TransformerSettings

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
