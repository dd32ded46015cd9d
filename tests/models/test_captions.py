"""Captions of strips of digits, read out with soft and with hard attention: it looks at the digit that it reads.

The digits are drawn here, dot by dot, each at a place of its own within its cell, under noise.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.models.build import build
from regard.models.input_settings import ImageSettings
from regard.models.rnn_settings import AttentionSettings, RecurrentSettings
from regard.models.sizes import Sizes
from regard.text.specials import END, START
from tests.models.kinds import stepped

DOTS = """
    111101101101111 010110010010111 111001111100111 111001011001111 101101111001001
    111100111001111 111100111101111 111001001010010 111101111101111 111101111001111
"""  # each 5 rows of 3
HEIGHT, CELL, DIGITS = 12, 8, 3
WIDTH = CELL * DIGITS
GLYPHS = torch.tensor([[float(dot) for dot in digit] for digit in DOTS.split()]).view(10, 5, 3)
GLYPHS = GLYPHS.repeat_interleave(2, 1).repeat_interleave(2, 2)  # 10 × 6 pixels


def strips(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Images [n, 1, 12, 24], their digits [n, 3], and the column where each digit begins [n, 3]."""
    digits, begins = torch.randint(0, 10, (count, DIGITS)), torch.randint(0, 3, (count, DIGITS))
    begins = begins + CELL * torch.arange(DIGITS)
    images = torch.randn(count, 1, HEIGHT, WIDTH) * 0.2
    for image, row, columns in zip(images, digits.tolist(), begins.tolist(), strict=True):
        for digit, column in zip(row, columns, strict=True):
            image[0, 1:11, column : column + 6] += GLYPHS[digit]
    return images.clamp(0, 1), digits, begins


CUTS = {
    "convolution": ImageSettings(width=32, halvings=2),
    "patches": ImageSettings(width=32, cut="patches", patch=(HEIGHT, CELL)),
}


def read_out(attention: AttentionSettings, cut: str) -> Any:
    """A captioner trained on strips until it reads nearly all of them."""
    torch.manual_seed(0)
    settings = RecurrentSettings(
        cell="gru", width=32, embedding=16, encoder_layers=0, dropout=0.0, attention=attention,
        input=CUTS[cut],
    )  # fmt: skip
    model = build(settings, Sizes(target=14, image=(1, HEIGHT, 0)), "caption").train()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    images, digits, _ = strips(1500)
    good = 0
    for _ in range(800):
        some = torch.randint(0, len(images), (32,))
        fed, wanted = caption(digits[some])
        logits, choices = model.teach(images[some], fed)
        said = -cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view_as(wanted)
        loss = -said.mean()
        if choices is not None:
            better = said.detach() - choices.baseline
            loss = loss + better.square().mean() - (better.detach() * choices.log_prob + 0.01 * choices.entropy).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        good = good + 1 if float((logits.argmax(-1) == wanted).float().mean()) > 0.98 else 0
        if good == 5:
            break
    return model.eval()


def caption(digits: Tensor) -> tuple[Tensor, Tensor]:
    """What is fed and what is to be said: the digits are the tokens from 4 on."""
    rows = len(digits)
    fed = torch.cat([torch.full((rows, 1), START), digits + 4], 1)
    return fed, torch.cat([digits + 4, torch.full((rows, 1), END)], 1)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("hard", ["none", "straight_through", "gumbel", "reinforce"])
@torch.no_grad()
def test_the_picture_of_where_it_looked_shows_the_digit_being_read(hard: Any, cut: str) -> None:
    with torch.enable_grad():
        model = read_out(AttentionSettings(hard=hard, kind="luong" if cut == "patches" else "bahdanau"), cut)
    images, digits, begins = strips(200)
    fed, wanted = caption(digits)
    logits, weights = stepped(model, images, fed, None)
    assert float((logits.argmax(-1) == wanted).float().mean()) > 0.95
    column, here, mass = torch.arange(WIDTH), 0.0, 0.0
    for place in range(DIGITS):
        seen = weights[place]
        assert seen is not None
        picture = model.encoder.input.picture(seen[:, 0, 0], HEIGHT, WIDTH)
        assert picture.shape == (200, HEIGHT, WIDTH)
        begin = begins[:, place : place + 1]
        own = (column >= begin - 2) & (column < begin + 8)  # its six columns, and those of the cells they reach into
        light = picture.sum(1)
        here += float(own.gather(1, light.argmax(-1, keepdim=True)).float().mean()) / DIGITS
        mass += float(((light * own).sum(-1) / light.sum(-1)).mean()) / DIGITS
        if hard != "none":
            assert torch.equal(seen.amax(-1), torch.ones_like(seen.amax(-1)))
    assert here > 0.97
    assert mass > 0.85
