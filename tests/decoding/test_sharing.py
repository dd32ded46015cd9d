"""Hypotheses that share the caches of their sentence say what they would say alone."""

from typing import Any

import pytest
import torch

from regard.decoding import SearchSettings, search
from regard.decoding.many import batches, search_many
from regard.models.build import build
from regard.models.sizes import Sizes
from regard.models.transformer import Transformer
from regard.models.transformer_settings import TransformerSettings
from regard.models.written import Written

VOCABULARY = 23
CHANGES = [
    {}, {"positions": "rotary"}, {"positions": "alibi"}, {"positions": "learned", "longest": 40}, {"window": 3},
    {"kv_heads": 1, "norm_place": "post"}, {"normalise": "sparsemax"}, {"window": 2, "positions": "alibi"},
]  # fmt: skip


def model_of(**changed: Any) -> Transformer:
    torch.manual_seed(0)
    settings = TransformerSettings(width=16, heads=4, feed_forward=24, encoder_layers=1, decoder_layers=2)
    model = build(settings.changed(**changed), Sizes(source=VOCABULARY, target=VOCABULARY), "translate").eval()
    assert isinstance(model, Transformer)
    return model


@pytest.mark.parametrize("changed", CHANGES, ids=str)
@torch.inference_mode()
def test_rows_that_share_give_what_all_steps_at_once_give(changed: dict[str, Any]) -> None:
    model, dice = model_of(**changed), torch.Generator().manual_seed(1)
    source, lengths = torch.randint(4, VOCABULARY, (3, 6)), torch.tensor([6, 4, 2])
    memory = model.encode(source, lengths)
    state = model.start(memory)
    said = torch.full((3, 1), model.start_token)
    sentences, each = torch.arange(3), 1
    for step in range(12):
        logits, state, _ = model.step(said[:, -1], state, memory)
        whole = model(source[sentences].repeat_interleave(each, 0), said, lengths[sentences].repeat_interleave(each))
        torch.testing.assert_close(logits, whole[:, -1], rtol=1e-4, atol=1e-5)
        rows = torch.arange(len(said)).view(len(sentences), each)
        if step == 7:  # one is finished
            rows, sentences, memory = rows[[0, 2]], sentences[[0, 2]], memory.select(torch.tensor([0, 2]))
        parents = rows.gather(1, torch.randint(0, each, (len(rows), 4), generator=dice)).flatten()
        each = 4
        state, said = state.select(parents), said[parents]
        said = torch.cat([said, torch.randint(4, VOCABULARY, (len(said), 1), generator=dice)], 1)


@torch.inference_mode()
def test_rows_of_different_sentences_may_change_places() -> None:
    model = model_of(positions="rotary")
    source = torch.randint(4, VOCABULARY, (2, 5))
    memory = model.encode(source)
    order = torch.tensor([3, 0, 2, 1])
    said = torch.randint(4, VOCABULARY, (4, 3))
    state = model.start(memory)
    for place in range(3):
        _, state, _ = model.step(said[:, place], state, memory)
    both = memory.select(torch.tensor([1, 0, 1, 0]))  # rows 0 and 1 were of the first sentence, 2 and 3 of the second
    logits, _, _ = model.step(said[:, 0], state.select(order), both)
    whole = model(source[[1, 0, 1, 0]], torch.cat([said[order], said[:, :1]], 1))
    torch.testing.assert_close(logits, whole[:, -1], rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_no_cache_is_copied_while_all_sentences_go_on() -> None:
    model = model_of()
    memory = model.encode(torch.randint(4, VOCABULARY, (2, 5)))
    state: Any = model.start(memory)
    for _ in range(4):
        _, state, _ = model.step(torch.full((6,), 5), state, memory)
        state = state.select(torch.tensor([1, 1, 0, 5, 3, 3]))
    before = state.caches[0].key_BHSd
    _, state, _ = model.step(torch.full((6,), 5), state, memory)
    assert isinstance(state, Written)
    assert state.caches[0].key_BHSd.data_ptr() == before.data_ptr() or state.caches[0].length > before.shape[2]
    assert len(state.caches[0].key_BHSd) == 2


@pytest.mark.parametrize("changed", CHANGES[:5], ids=str)
@pytest.mark.parametrize("groups", [1, 2])
def test_a_beam_over_a_transformer_scores_as_the_model_does(changed: dict[str, Any], groups: int) -> None:
    model, source = model_of(**changed), torch.randint(4, VOCABULARY, (4, 6))
    lengths = torch.tensor([6, 5, 2, 3])
    found = search(model, source, lengths, SearchSettings(beam=4, nbest=4, groups=groups, limit_plus=8, limit_factor=0))
    with torch.inference_mode():
        for row, results in enumerate(found):
            for each in results:
                fed = torch.tensor([[model.start_token, *each.tokens]])
                own = model(source[row : row + 1], fed, lengths[row : row + 1]).log_softmax(-1)[0]
                said = [*each.tokens, model.end_token][: len(each.token_scores)]
                expected = [float(own[place, token]) for place, token in enumerate(said)]
                assert each.token_scores == pytest.approx(expected, abs=1e-4)


def test_many_sources_come_back_in_order_with_weights_of_their_own_places() -> None:
    model = model_of()
    dice = torch.Generator().manual_seed(0)
    lengths = [3, 9, 1, 5, 5, 2, 8]
    sources = [torch.randint(4, VOCABULARY, (n,), generator=dice).tolist() for n in lengths]
    told: list[int] = []
    many = search_many(model, sources, SearchSettings(beam=3), want_weights=True, rows=3, done=told.append)
    assert (sum(told), max(told)) == (7, 3)
    for source, [found] in zip(sources, many, strict=True):
        [[alone]] = search(model, torch.tensor([source]), None, SearchSettings(beam=3), want_weights=True)
        assert found.tokens == alone.tokens
        assert found.weights is not None
        assert alone.weights is not None
        torch.testing.assert_close(found.weights, alone.weights, rtol=1e-3, atol=1e-5)


def test_sampling_many_draws_the_same_whatever_the_batches() -> None:
    model = model_of()
    sources = [[4, 5, 6], [7], [8, 9, 10, 11], [5, 5]]
    drawn = SearchSettings(sample=True, nbest=2, seed=3)
    one, other = (search_many(model, sources, drawn, rows=rows) for rows in (1, 4))
    assert [[each.tokens for each in found] for found in one] == [[each.tokens for each in found] for found in other]


def test_batches_hold_like_lengths_and_no_more_places_than_they_may() -> None:
    cut = list(batches([[1] * n for n in (2, 9, 4, 9, 1)], rows=3, places=18))
    assert cut == [[1, 3], [2, 0, 4]]
    assert list(batches([], 3)) == []
    assert list(batches([[1] * 50], 3, places=18)) == [[0]]


def test_prefixes_are_one_a_source() -> None:
    with pytest.raises(ValueError, match=r"prefixes: expected one for each of 2 sources; got 1"):
        search_many(model_of(), [[4], [5]], prefixes=[[6]])
    found = search_many(model_of(), [[4], [5, 6, 7]], prefixes=[[6, 8], []])
    assert found[0][0].tokens[:2] == [6, 8]
