"""Outputs over an encoder: words pooled from their tokens, sequences pooled into one vector, weights to look at."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.models.contract import Encoded, Encoder
from regard.models.head_settings import HeadSettings
from regard.models.outputs import EncoderLabeller, EncoderTagger, Worded
from regard.models.sizes import Sizes

STATES = torch.arange(24.0).view(2, 6, 2)
WORDS = torch.tensor([[1, 3, 2], [2, 1, 0]])  # six tokens; three tokens and padding
LENGTHS = torch.tensor([6, 3])


class Given(Encoder):
    """Vectors as they are given."""

    width = 2

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        return Encoded(source, lengths)


def tagger(pooling: Any) -> EncoderTagger:
    torch.manual_seed(0)
    return EncoderTagger(HeadSettings(words=pooling), Sizes(tags=3), Given()).eval()


def labeller(**settings: Any) -> EncoderLabeller:
    torch.manual_seed(0)
    return EncoderLabeller(HeadSettings(**settings), Sizes(labels=3), Given()).eval()


@pytest.mark.parametrize(
    ("pooling", "places"),
    [("first", [[[0], [1], [4]], [[0], [2]]]), ("last", [[[0], [3], [5]], [[1], [2]]]),
     ("mean", [[[0], [1, 2, 3], [4, 5]], [[0, 1], [2]]])],
)  # fmt: skip
def test_a_word_is_pooled_from_its_own_tokens(pooling: str, places: list[list[list[int]]]) -> None:
    pooled = tagger(pooling).pooled(Worded(STATES, LENGTHS, WORDS))
    assert pooled.shape == (2, 3, 2)
    for row, words in enumerate(places):
        for word, tokens in enumerate(words):
            torch.testing.assert_close(pooled[row, word], STATES[row, tokens].mean(0))
    assert not pooled[1, 2].any()  # there is no third word


@pytest.mark.parametrize("pooling", ["first", "last", "mean"])
@torch.no_grad()
def test_a_tag_for_each_word_whatever_the_padding_holds(pooling: str) -> None:
    model, spoilt = tagger(pooling), STATES.clone()
    spoilt[1, 3:] = 99.0
    logits = model.predict(model.encode(STATES, LENGTHS, WORDS))
    assert logits.shape == (2, 3, 3)
    torch.testing.assert_close(model.predict(model.encode(spoilt, LENGTHS, WORDS))[1, :2], logits[1, :2])
    alone = model.predict(model.encode(STATES[1:, :3], None, WORDS[1:, :2]))
    torch.testing.assert_close(alone[0], logits[1, :2])


def test_without_words_each_token_is_one() -> None:
    model = tagger("first")
    assert torch.equal(model.pooled(model.encode(STATES)), STATES)


def test_a_memory_of_words_is_reordered() -> None:
    chosen = Worded(STATES, LENGTHS, WORDS).select(torch.tensor([1, 1]))
    assert torch.equal(chosen.words, WORDS[[1, 1]])
    assert torch.equal(chosen.lengths, LENGTHS[[1, 1]])


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [("mean", lambda real: real.mean(0)), ("max", lambda real: real.amax(0)), ("first", lambda real: real[0]),
     ("last", lambda real: real[-1])],
)  # fmt: skip
def test_a_sequence_is_pooled_from_its_real_places(pooling: str, expected: Any) -> None:
    pooled, weights = labeller(pooling=pooling).pooled(Encoded(STATES, LENGTHS))
    assert weights is None
    for row, length in enumerate(LENGTHS.tolist()):
        torch.testing.assert_close(pooled[row], expected(STATES[row, :length]))
    whole, _ = labeller(pooling=pooling).pooled(Encoded(STATES))
    torch.testing.assert_close(whole[1], expected(STATES[1]))


@torch.no_grad()
def test_attention_pools_by_one_learned_query_and_its_weights_can_be_looked_at() -> None:
    model = labeller(pooling="attention")
    model.attention.query.fill_(0.3)
    logits, weights = model.looked(model.encode(STATES, LENGTHS))
    assert weights is not None
    assert not weights[1, 3:].any()
    score = model.attention.score
    for row, length in enumerate(LENGTHS.tolist()):
        real = STATES[row, :length]
        alpha = torch.softmax(torch.tanh(model.attention.query + real @ score.W_k) @ score.v, 0)
        torch.testing.assert_close(weights[row, :length], alpha)
        torch.testing.assert_close(logits[row], model.head.answer(alpha @ real))
    assert torch.equal(model.predict(model.encode(STATES, LENGTHS)), logits)


@pytest.mark.parametrize("pooling", ["mean", "max", "first", "last", "attention"])
@torch.no_grad()
def test_a_sequence_of_nothing_is_pooled_to_0_whatever_the_padding_holds(pooling: str) -> None:
    model = labeller(pooling=pooling)
    pooled, _ = model.pooled(model.encode(STATES, torch.tensor([6, 0])))
    assert pooled[0].any()
    assert not pooled[1].any()
    for lengths in (None, torch.tensor([0, 0])):  # a source that has not even a place
        pooled, _ = model.pooled(model.encode(STATES[:, :0], lengths))
        assert pooled.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("pooling", ["first", "last", "mean"])
@torch.no_grad()
def test_words_of_no_tokens_have_tags_and_words_of_more_than_there_are_are_refused(pooling: str) -> None:
    model = tagger(pooling)
    nothing = model.pooled(model.encode(STATES[:, :0], None, torch.zeros_like(WORDS)))
    assert nothing.tolist() == [[[0, 0]] * 3] * 2
    with pytest.raises(ValueError, match=r"words: expected 0 to 6 tokens in a sentence, .*; got \[7, 3\]"):
        model.encode(STATES, LENGTHS, WORDS + torch.tensor([[1, 0, 0], [0, 0, 0]]))
    with pytest.raises(ValueError, match=r"words: expected 0 tokens or more of each word; got -1"):
        model.encode(STATES, LENGTHS, WORDS - torch.tensor([[2, 0, 0], [0, 0, 0]]))
    with pytest.raises(ValueError, match=r"words: expected \[2 sentences, words\]; got \[2\]"):
        model.encode(STATES, LENGTHS, LENGTHS)


def test_a_hidden_layer_stands_under_the_logits_where_asked() -> None:
    head = labeller(hidden=7).head
    assert (head.hidden.out_features, head.answer.in_features) == (7, 7)
    x = torch.tensor([[1.0, -2.0]])
    torch.testing.assert_close(head(x), head.answer(torch.tanh(head.hidden(x))))


def test_what_is_missing_among_the_sizes_is_told() -> None:
    with pytest.raises(ValueError, match=r"sizes\.tags: missing, and a tagger needs it: Different tags"):
        EncoderTagger(HeadSettings(), Sizes(), Given())
    with pytest.raises(ValueError, match=r"sizes\.labels: missing, and a classifier needs it"):
        EncoderLabeller(HeadSettings(), Sizes(), Given())
