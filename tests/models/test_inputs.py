"""How a source comes in: words, one-hot, with their letters, rows of numbers, images cut into cells."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d, linear

from regard.models.characters import BYTES, Characters, as_bytes
from regard.models.input_settings import CharacterSettings, ImageSettings, RowSettings, WordSettings
from regard.models.inputs import Forgetting, OneHot, Rows, begin_with, make_input, words_of
from regard.models.sizes import Sizes
from regard.models.words import Words

SIZES = Sizes(source=9, characters=BYTES, input_width=3, image=(2, 8, 0))


def made(settings: Any) -> Any:
    torch.manual_seed(0)
    return make_input(settings, SIZES).eval()


def test_words_have_vectors_and_may_begin_with_given_ones_and_keep_them() -> None:
    words = made(WordSettings(width=4, freeze=True))
    vectors = torch.randn(9, 4)
    begin_with(words_of(words), vectors)
    assert torch.equal(words(torch.tensor([[3, 8]])).states, vectors[[3, 8]].unsqueeze(0))
    assert not words.vectors.weight.requires_grad
    with pytest.raises(ValueError, match=r"vectors: expected \[9, 4\], one row for each word; got \[9, 5\]"):
        begin_with(words_of(words), torch.zeros(9, 5))


def test_a_one_hot_word_has_a_1_at_its_own_place_in_the_kind_of_the_network() -> None:
    words = made(WordSettings(embedding="one_hot"))
    assert isinstance(words, OneHot)
    assert words(torch.tensor([[2, 0]])).states.tolist() == [[[0, 0, 1, *[0] * 6], [1, *[0] * 8]]]
    assert words.double()(torch.tensor([[2]])).states.dtype == torch.float64
    assert words_of(words) is None
    assert not list(words.parameters())


def test_rows_of_numbers_go_through_a_linear_layer() -> None:
    rows = made(RowSettings(width=5))
    assert isinstance(rows, Rows)
    x = torch.randn(2, 4, 3)
    assert torch.equal(rows(x).states, linear(x, rows.linear.weight, rows.linear.bias))
    for wrong, came in ((torch.zeros(2, 4, 2), r"float32 \[2, 4, 2\]"), (torch.zeros(2, 4).long(), r"int64 \[2, 4\]")):
        with pytest.raises(ValueError, match=rf"expected rows of numbers \[batch, places, 3\]; got {came}"):
            rows(wrong)


def test_letters_stand_beside_the_word() -> None:
    spelled = made(WordSettings(width=4, characters=CharacterSettings(width=3, output=6)))
    letters = as_bytes([["cat", "at"], ["dog"]])
    assert letters.shape == (2, 2, 3)
    assert letters[1].tolist() == [[byte + 1 for byte in b"dog"], [0, 0, 0]]
    source = torch.cat([torch.tensor([[[5], [6]], [[7], [0]]]), letters], -1)
    states = spelled(source).states
    assert states.shape == (2, 2, spelled.width)
    assert torch.equal(states[..., :4], spelled.words(source[..., 0]).states)
    assert not states[1, 1, 4:].any()  # no letters, nothing said
    with pytest.raises(ValueError, match=r"reads words with their characters, .*; got \[2, 2\]"):
        spelled(source[..., 0])


@torch.no_grad()
def test_a_word_is_read_alike_however_far_the_table_of_letters_goes_on() -> None:
    torch.manual_seed(0)
    characters = Characters(CharacterSettings(width=3, output=6), BYTES)
    for each in (characters.vectors.weight, characters.windows.bias):
        each.abs_()
    characters.windows.weight.abs_().neg_()  # so that padding, where it were read, would say more than any letter
    alone = characters(as_bytes([["cat"]]))
    beside = characters(as_bytes([["cat", "considerably"]]))
    torch.testing.assert_close(beside[:, :1], alone)
    # max_j tanh(W [x_j; …] + b), a window that slides over each end
    x = torch.nn.functional.pad(characters.vectors(as_bytes([["cat"]]))[0, 0], (0, 0, 2, 2))
    found = [characters.windows.weight.permute(0, 2, 1).flatten(1) @ x[j : j + 3].flatten() for j in range(5)]
    expected = torch.tanh(torch.stack(found) + characters.windows.bias).amax(0)
    torch.testing.assert_close(alone[0, 0], expected)


def test_a_word_never_seen_is_told_apart_by_its_letters() -> None:
    spelled = made(WordSettings(width=4, characters=CharacterSettings()))
    unknown = torch.ones(1, 2, 1, dtype=torch.long)
    one, other = spelled(torch.cat([unknown, as_bytes([["walked", "running"]])], -1)).states[0]
    assert not torch.allclose(one, other)


def test_training_takes_some_words_for_unknown_and_never_a_special_one() -> None:
    forgetting = made(WordSettings(width=4, word_dropout=0.5)).train()
    assert isinstance(forgetting, Forgetting)
    source = torch.randint(0, 9, (50, 40))
    gone = forgetting._forgotten(source)
    assert set(gone[gone != source].tolist()) == {1}
    assert torch.equal(gone[source < 4], source[source < 4])
    assert 0.4 < float((gone != source)[source >= 4].float().mean()) < 0.6
    assert torch.equal(forgetting.eval()(source).states, forgetting.words(source).states)


@torch.no_grad()
def test_patches_are_rectangles_of_pixels_column_by_column() -> None:
    patches = made(ImageSettings(cut="patches", patch=(4, 3), width=6, positions=False))
    image = torch.rand(1, 2, 8, 7)
    states = patches(image).states
    assert patches.grid(8, 7) == (2, 3)
    cells = conv2d(torch.nn.functional.pad(image, (0, 2)), patches.linear.weight, patches.linear.bias, stride=(4, 3))
    assert states.shape == (1, 6, 6)
    for column in range(3):
        for row in range(2):
            torch.testing.assert_close(states[0, 2 * column + row], cells[0, :, row, column])


@pytest.mark.parametrize("cut", ["convolution", "patches"])
@torch.no_grad()
def test_cells_know_their_row_and_column_where_asked(cut: Any) -> None:
    blank = torch.zeros(1, 2, 8, 8)
    settings = ImageSettings(cut=cut, patch=(4, 4), width=8)
    told, plain = made(settings)(blank).states[0], made(settings.changed(positions=False))(blank).states[0]
    places = (told - plain).round(decimals=4)
    assert len(places.unique(dim=0)) == 4
    # Cells stand column by column: the first half of the numbers tells the column, the second the row.
    assert torch.equal(places[0, :4], places[1, :4])
    assert torch.equal(places[0, 4:], places[2, 4:])


def test_what_is_no_image_is_refused() -> None:
    image = made(ImageSettings())
    with pytest.raises(ValueError, match=r"expected images \[batch, 2, height, width\] of numbers; got int64 \[1, 2\]"):
        image(torch.zeros(1, 2).long())
    with pytest.raises(ValueError, match="weights: an image of 8 × 8 has 4 cells; got 5"):
        image.picture(torch.ones(5), 8, 8)


def test_a_picture_lays_weights_over_the_pixels_of_their_cells() -> None:
    image = made(ImageSettings(cut="patches", patch=(4, 3), width=6))
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.0, 0.5])
    picture = image.picture(weights, 8, 7)
    assert picture.shape == (8, 7)
    assert [
        picture[0, 0],
        picture[4, 0],
        picture[3, 3],
        picture[7, 5],
        picture[0, 6],
        picture[7, 6],
    ] == weights.tolist()


def test_what_an_input_needs_of_the_data_is_told() -> None:
    for settings, missing in (
        (WordSettings(), "sizes.source: missing, and an input of words needs it"),
        (RowSettings(), "sizes.input_width: missing, and an input of rows of numbers needs it"),
        (ImageSettings(), "sizes.image: missing, and an input of images needs it"),
    ):
        with pytest.raises(ValueError, match=missing):
            make_input(settings, Sizes())  # type: ignore[arg-type]


@torch.no_grad()
def test_scaled_words_are_as_large_as_positions() -> None:
    torch.manual_seed(0)
    words: Tensor = Words(500, 64, scaled=True)(torch.arange(500)).states
    assert 0.9 < float(words.std()) < 1.1
