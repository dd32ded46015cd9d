"""The parts of a search: the best of many, sampling, loops, ensembles, vocabulary maps, settings."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.decoding import Ensemble, Rules, SearchSettings, VocabularyMap, search
from regard.decoding.candidates import log_sum, top
from regard.decoding.greedy import drawn
from regard.decoding.loops import looping
from regard.support.errors import Misuse
from regard.text.specials import END, START
from tests.decoding.models import Hashed

SOURCES = torch.tensor([[3, 1, 4], [1, 5, 9]])


@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 4), size=st.integers(1, 5000), k=st.integers(1, 12), seed=st.integers(0, 99))
def test_the_top_of_many_is_that_of_pytorch(rows: int, size: int, k: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(rows, size, generator=generator)
    numbers[torch.rand(rows, size, generator=generator) < 0.3] = -torch.inf
    values, places = top(numbers, min(k, size))
    assert torch.equal(values, torch.topk(numbers, min(k, size), -1).values)
    assert torch.equal(numbers.gather(-1, places), values)
    assert all(len(set(row)) == len(row) for row in places.tolist())


@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_forbidden_keeps_its_share_of_the_probability(beam: int) -> None:
    model, source = Hashed(), torch.tensor([[3, 1, 4]])
    [[found, *_]] = search(model, source, None, SearchSettings(beam=beam), rules=Rules(forbidden=[[4]]))
    fed = torch.tensor([[model.start_token, *found.tokens]])
    own = model(source, fed).log_softmax(-1)[0]
    assert found.token_scores == pytest.approx(
        [float(own[place, token]) for place, token in enumerate([*found.tokens, END])], abs=1e-5
    )


@pytest.mark.parametrize("rows", [3, 1000])
def test_a_sum_of_exponentials_is_that_of_pytorch_however_it_is_cut(rows: int) -> None:
    logits = 50 * torch.randn(rows, 3000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(log_sum(logits), logits.logsumexp(-1, keepdim=True))


def shares(chosen: torch.Tensor, size: int) -> list[float]:
    return (torch.bincount(chosen, minlength=size) / len(chosen)).tolist()


def test_tokens_are_drawn_as_often_as_their_probability_says() -> None:
    logits = torch.tensor([0.1, 1.2, -0.5, 0.7])
    dice = (torch.arange(20000) + 0.5) / 20000
    many = logits.expand(20000, -1)
    plain = shares(drawn(many, dice, SearchSettings(sample=True)), 4)
    assert plain == pytest.approx(logits.softmax(-1).tolist(), abs=1e-3)
    sharp = shares(drawn(many, dice, SearchSettings(sample=True, temperature=0.5)), 4)
    assert sharp == pytest.approx((logits / 0.5).softmax(-1).tolist(), abs=1e-3)
    few = shares(drawn(many, dice, SearchSettings(sample=True, top_k=2)), 4)
    assert few == pytest.approx([0, *logits[[1]].exp().div(logits[[1, 3]].exp().sum()).tolist(), 0, few[3]], abs=1e-3)
    # 0.455 + 0.276 reach 0.6 with the second: only those two.
    nucleus = shares(drawn(many, dice, SearchSettings(sample=True, top_p=0.6)), 4)
    assert nucleus == pytest.approx(few, abs=1e-3)
    assert set(drawn(many, dice, SearchSettings(sample=True, top_p=0.01)).tolist()) == {1}


def test_a_die_of_almost_one_draws_something_that_may_be_drawn() -> None:
    logits = torch.full((1, 50), -torch.inf)
    logits[0, 7] = 0.0
    assert drawn(logits, torch.tensor([1 - 1e-9]), SearchSettings(sample=True)).tolist() == [7]


def test_the_same_seed_draws_the_same_and_another_something_else() -> None:
    def texts(seed: int) -> list[list[list[int]]]:
        found = search(Hashed(), SOURCES, None, SearchSettings(sample=True, nbest=4, seed=seed))
        return [[each.tokens for each in sentence] for sentence in found]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)
    assert len({tuple(said) for said in texts(1)[0]}) > 1


def test_samples_come_best_first_with_the_scores_of_the_model() -> None:
    model = Hashed()
    hot = SearchSettings(sample=True, nbest=5, temperature=2.0, top_k=3)
    for source, found in zip(SOURCES, search(model, SOURCES, None, hot), strict=True):
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
        for each in found:
            said = [*each.tokens, END] if each.ending == "end" else each.tokens
            logits = model(source.unsqueeze(0), torch.tensor([[START, *said[:-1]]]))[0].log_softmax(-1)
            assert each.token_scores == pytest.approx(
                [float(logits[t, token]) for t, token in enumerate(said)], abs=1e-5
            )


@pytest.mark.parametrize(
    ("tokens", "stuck"),
    [
        ([7] * 24, True), ([7] * 23, False), ([1, 2] * 12, True), ([1, 2] * 11 + [1], False), ([1, 2, 3] * 8, True),
        ([9, 9, 9] + [1, 2, 3, 4, 5, 6, 7, 8] * 5, True), ([1, 2, 3, 4, 5, 6, 7, 8] * 4, False),
        (list(range(60)), False), ([7] * 30 + [1], False), ([], False),
    ],
)  # fmt: skip
def test_a_loop_is_told_from_what_gets_on(tokens: list[int], stuck: bool) -> None:
    assert looping(torch.tensor([tokens], dtype=torch.long)).tolist() == [stuck]


def test_an_ensemble_says_the_mean_of_the_probabilities() -> None:
    one, other = Hashed(seed=1), Hashed(seed=2)
    both = Ensemble([one, other])
    target = torch.tensor([[START, 4, 5]])
    expected = (one(SOURCES[:1], target).softmax(-1) + other(SOURCES[:1], target).softmax(-1)) / 2
    torch.testing.assert_close(both(SOURCES[:1], target).exp(), expected, check_dtype=False, rtol=1e-5, atol=1e-6)
    found = search(both, SOURCES, None, SearchSettings(beam=3), want_weights=True)[0][0]
    said = [*found.tokens, END]
    logits = both(SOURCES[:1], torch.tensor([[START, *found.tokens]]))[0]
    assert found.token_scores == pytest.approx([float(logits[t, token]) for t, token in enumerate(said)], abs=1e-4)
    assert found.weights is not None
    assert found.weights.shape == (len(said), 1, 1, 3)


def test_an_ensemble_of_one_model_twice_is_that_model() -> None:
    model, settings_ = Hashed(), SearchSettings(beam=3, nbest=2)
    twice = search(Ensemble([model, model]), SOURCES, None, settings_)
    once = search(model, SOURCES, None, settings_)
    assert [[each.tokens for each in found] for found in twice] == [[each.tokens for each in found] for found in once]


def test_models_of_different_vocabularies_make_no_ensemble() -> None:
    with pytest.raises(ValueError, match=r"expected models with one vocabulary; got sizes \[7, 8\]"):
        Ensemble([Hashed(7), Hashed(8)])


def corpus(size: int = 400) -> tuple[list[list[int]], list[list[int]]]:
    """A language in which each source token s becomes s + 50, among noise that goes with nothing."""
    numbers = np.random.default_rng(0)
    sources = [numbers.integers(4, 40, 6).tolist() for _ in range(size)]
    targets = [[token + 50 for token in source] + numbers.integers(90, 110, 2).tolist() for source in sources]
    return sources, targets


def test_a_vocabulary_map_holds_what_each_source_token_becomes(tmp_path: Path) -> None:
    sources, targets = corpus()
    made = VocabularyMap.learn(sources, targets, source_vocabulary=40, target_vocabulary=110, each=3, common=2)
    assert [made.likely[token, 0] for token in range(4, 40)] == [token + 50 for token in range(4, 40)]
    made.save(tmp_path / "map.npz")
    held = VocabularyMap.load(tmp_path / "map.npz")
    columns = held.columns(torch.tensor([[5, 6, 0], [7, 8, 9]]), torch.tensor([2, 3])).tolist()
    assert columns == sorted(set(columns))
    assert {55, 56, 57, 58, 59, END} <= set(columns)
    assert len(columns) <= 5 * 3 + 4
    assert set(held.columns(torch.tensor([[5, 9]]), torch.tensor([1])).tolist()) < set(columns)


def test_a_search_through_a_vocabulary_map_says_only_what_is_in_it() -> None:
    made = VocabularyMap(np.zeros((10, 1), np.int64) + 4, np.array([END, 5]))
    rules = Rules(columns=made.columns(SOURCES))
    found = search(Hashed(), SOURCES, None, SearchSettings(beam=3), rules=rules)
    assert {token for each in found for token in each[0].tokens} <= {4, 5}


def test_a_damaged_vocabulary_map_is_named(tmp_path: Path) -> None:
    (tmp_path / "map.npz").write_bytes(b"no map at all")
    with pytest.raises(ValueError, match=r"map\.npz: no vocabulary map, or a damaged one"):
        VocabularyMap.load(tmp_path / "map.npz")
    with pytest.raises(ValueError, match="expected as many targets as sources; got 1 for 2"):
        VocabularyMap.learn([[4], [5]], [[4]], source_vocabulary=9, target_vocabulary=9)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"beam": 2, "nbest": 3}, "nbest 3 is more than the beam of 2 can give; raise the beam"),
        ({"beam": 5, "groups": 2}, "groups 2 must divide the beam of 5"),
        ({"sample": True, "beam": 4, "groups": 2}, "groups belong to beam search, not to sampling"),
        ({"stop": "enoug"}, "unknown choice 'enoug'; did you mean 'enough'"),
        ({"temperature": 0}, "expected greater than 0, came 0"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_in_words(values: dict[str, object], says: str) -> None:
    with pytest.raises(Misuse, match=says):
        SearchSettings(**values)  # type: ignore[arg-type]


def test_sampling_many_needs_no_beam() -> None:
    assert SearchSettings(sample=True, beam=1, nbest=9).nbest == 9


def test_a_source_of_no_tokens_has_room_for_a_result() -> None:
    assert SearchSettings(limit_factor=2, limit_plus=0).limit(0) == 1
    assert SearchSettings(limit_factor=1.5, limit_plus=2).limit(3) == 6
    assert not math.isnan(search(Hashed(), SOURCES[:, :0], None, SearchSettings(beam=2))[0][0].score)
