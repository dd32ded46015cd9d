"""Beam search against the enumeration of every sequence, and against itself in other company."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.decoding import Hypothesis, Rules, SearchSettings, search
from regard.support.errors import Failure
from regard.text.specials import END, PAD, START, UNKNOWN
from tests.decoding.models import Hashed

A, B, C = 4, 5, 6
SOURCES = torch.tensor([[3, 1, 4], [1, 5, 9], [2, 6, 5]])


def log_prob(model: Hashed, source: Tensor, tokens: tuple[int, ...]) -> list[float]:
    """Of each token, given those before it."""
    fed = torch.tensor([[START, *tokens[:-1]]])
    logits = model(source.unsqueeze(0), fed)[0].log_softmax(-1)
    return [float(logits[place, token]) for place, token in enumerate(tokens)]


def every_sequence(model: Hashed, source: Tensor, limit: int, penalty: float) -> list[tuple[float, tuple[int, ...]]]:
    """All that can be said in so many tokens, best first: what ends before what is cut."""
    words = [token for token in range(model.vocabulary) if token not in (PAD, START, END)]
    ended = [(*said, END) for length in range(limit) for said in itertools.product(words, repeat=length)]
    scored = [(sum(log_prob(model, source, said)) / len(said) ** penalty, said[:-1]) for said in ended]
    return sorted(scored, reverse=True)


@pytest.mark.parametrize("stop", ["enough", "certain"])
@pytest.mark.parametrize("penalty", [0.0, 1.0, -0.5])
def test_a_beam_that_is_wide_enough_finds_the_best_of_all_sequences(penalty: float, stop: str) -> None:
    model = Hashed(vocabulary=6)
    wide = SearchSettings(
        beam=60, nbest=5, length_penalty=penalty, limit_factor=0, limit_plus=4, stop=stop, stop_loops=False
    )
    found = search(model, SOURCES, None, wide)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        best = every_sequence(model, source, limit=4, penalty=penalty)[:5]
        assert [tuple(each.tokens) for each in hypotheses] == [said for _, said in best]
        assert [each.score for each in hypotheses] == pytest.approx([score for score, _ in best], abs=1e-5)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, -1.0])
def test_stopping_when_it_is_certain_changes_nothing(
    seed: int, penalty: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Hashed(seed=seed)
    narrow = SearchSettings(beam=3, nbest=2, length_penalty=penalty, limit_plus=9, limit_factor=0, stop="certain")
    quick = search(model, SOURCES, None, narrow)
    asked = model.steps
    monkeypatch.setattr("regard.decoding.beam.BeamSearch._is_done", lambda self, length: self.sentence < 0)
    slow = search(model, SOURCES, None, narrow)
    assert model.steps - asked == 9
    assert same(quick, slow)


def test_stopping_when_it_is_certain_saves_steps() -> None:
    model = Hashed(end_bonus=4.0)
    search(model, SOURCES, None, SearchSettings(beam=3, length_penalty=0.0, limit_plus=30, stop="certain"))
    assert model.steps < 12


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_of_one_is_greedy_search(penalty: float, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Hashed()
    one = SearchSettings(beam=1, length_penalty=penalty)
    greedy = search(model, SOURCES, None, one)
    with monkeypatch.context() as patched:  # the beam's own way, where greedy search would be taken
        patched.setattr("regard.decoding.searching.OneByOne", lambda *given: _as_beam(*given))
        beam = search(model, SOURCES, None, one)
    assert same(greedy, beam)
    for source, [hypothesis] in zip(SOURCES, greedy, strict=True):
        said: list[int] = []
        while END not in said and len(said) < 26:
            fed = torch.tensor([[START, *said]])
            logits = model(source.unsqueeze(0), fed)[0, -1].index_fill(0, torch.tensor([PAD, START]), -math.inf)
            said.append(int(logits.argmax()))
        assert hypothesis.tokens == [token for token in said if token != END]


def _as_beam(model, memory, limits, numbers, settings_, rules, want_weights):  # type: ignore[no-untyped-def]
    from regard.decoding.beam import BeamSearch

    return BeamSearch(model, memory, limits, settings_, rules, want_weights)


def same(one: list[list[Hypothesis]], other: list[list[Hypothesis]]) -> bool:
    def facts(found: list[list[Hypothesis]]) -> list[list[tuple[list[int], str, float]]]:
        return [[(each.tokens, each.ending, round(each.score, 5)) for each in sentence] for sentence in found]

    return facts(one) == facts(other)


@settings(max_examples=40, deadline=None)
@given(
    sources=st.lists(st.lists(st.integers(3, 9), min_size=1, max_size=6), min_size=1, max_size=5),
    more=st.integers(0, 3),
    order=st.randoms(use_true_random=False),
    beam=st.sampled_from([1, 2, 4]),
    groups=st.sampled_from([1, 2]),
    sample=st.booleans(),
)
def test_batch_order_and_padding_change_nothing(sources, more, order, beam, groups, sample) -> None:  # type: ignore[no-untyped-def]
    model = Hashed()
    beam = max(beam, groups)
    settings_ = SearchSettings(
        beam=beam, nbest=2 if sample or beam > 1 else 1, groups=1 if sample else groups, sample=sample, limit_plus=6
    )
    alone = [
        search(model, torch.tensor([source]), torch.tensor([len(source)]), settings_, numbers=[number])[0]
        for number, source in enumerate(sources)
    ]
    numbers = list(range(len(sources)))
    order.shuffle(numbers)
    widest = max(map(len, sources)) + more
    padded = torch.tensor([sources[number] + [PAD] * (widest - len(sources[number])) for number in numbers])
    lengths = torch.tensor([len(sources[number]) for number in numbers])
    together = search(model, padded, lengths, settings_, numbers=numbers)
    assert same(together, [alone[number] for number in numbers])


def test_finished_sentences_leave_the_batch() -> None:
    model = Hashed(end_bonus=1.0)
    search(model, torch.arange(24).view(8, 3), None, SearchSettings(beam=3, limit_plus=12))
    assert model.rows[0] == 8
    assert model.rows[1] == 24
    assert model.rows[1:] == sorted(model.rows[1:], reverse=True)
    assert model.rows[-1] < 24


def test_scores_are_those_of_the_model_token_by_token() -> None:
    model = Hashed()
    for source, found in zip(SOURCES, search(model, SOURCES, None, SearchSettings(beam=4, nbest=4)), strict=True):
        for each in found:
            said = (*each.tokens, END) if each.ending == "end" else tuple(each.tokens)
            assert each.token_scores == pytest.approx(log_prob(model, source, said), abs=1e-5)
            assert each.log_prob == pytest.approx(sum(each.token_scores), abs=1e-5)
            assert each.score == pytest.approx(each.log_prob / len(said), abs=1e-5)


def test_a_prefix_stands_first_even_where_it_is_unlikely_or_forbidden() -> None:
    model = Hashed()
    prefix = torch.tensor([[A, A, B], [C, PAD, PAD], [PAD, PAD, PAD]])
    found = search(model, SOURCES, None, SearchSettings(beam=3), rules=Rules(forbidden=[[A]], prefix=prefix))
    assert found[0][0].tokens[:3] == [A, A, B]
    assert found[1][0].tokens[0] == C
    assert A not in found[0][0].tokens[3:]
    said = (A, A, B)
    assert found[0][0].token_scores[:3] == pytest.approx(log_prob(model, SOURCES[0], said), abs=1e-5)
    free = search(model, SOURCES[2:], None, SearchSettings(beam=3), rules=Rules(forbidden=[[A]]))
    assert same([found[2]], free)


@pytest.mark.parametrize("beam", [1, 4])
def test_forbidden_words_and_repeats_are_not_said(beam: int) -> None:
    model = Hashed(end_bonus=-3.0)
    plain = search(model, SOURCES, None, SearchSettings(beam=beam, limit_plus=12))
    ruled = search(
        model, SOURCES, None, SearchSettings(beam=beam, limit_plus=12, no_repeat=2, unknown=False),
        rules=Rules(forbidden=[[A, B], [C]]),
    )  # fmt: skip
    said = [each[0].tokens for each in ruled]
    assert any(C in each[0].tokens for each in plain)
    for tokens in said:
        pairs = list(itertools.pairwise(tokens))
        assert C not in tokens
        assert UNKNOWN not in tokens
        assert (A, B) not in pairs
        assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_result_has_at_least_the_fewest_tokens(beam: int) -> None:
    found = search(Hashed(end_bonus=5.0), SOURCES, None, SearchSettings(beam=beam, fewest=4))
    assert all(len(each[0].tokens) >= 4 and each[0].ending == "end" for each in found)


@pytest.mark.parametrize("beam", [1, 3])
def test_columns_are_the_only_tokens_and_the_end_is_always_among_them(beam: int) -> None:
    model = Hashed()
    some = Rules(columns=torch.tensor([A, C]))
    found = search(model, SOURCES, None, SearchSettings(beam=beam), rules=some)
    assert {token for each in found for token in each[0].tokens} <= {A, C}
    assert any(each[0].ending == "end" for each in found)
    every = Rules(columns=torch.arange(model.vocabulary))
    settings_ = SearchSettings(beam=beam)
    assert same(search(model, SOURCES, None, settings_, rules=every), search(model, SOURCES, None, settings_))


@pytest.mark.parametrize("beam", [1, 3])
def test_what_does_not_end_is_cut_at_its_limit_and_says_so(beam: int) -> None:
    never = Hashed(end_bonus=-1e9)
    lengths = torch.tensor([1, 3, 2])
    found = search(never, SOURCES, lengths, SearchSettings(beam=beam, limit_factor=1, limit_plus=2))
    assert [len(each[0].tokens) for each in found] == [3, 5, 4]
    assert {each[0].ending for each in found} == {"limit"}


def test_what_ended_stands_before_what_was_cut() -> None:
    model = Hashed(end_bonus=-2.0)
    found = search(model, SOURCES, None, SearchSettings(beam=6, nbest=6, limit_plus=3, limit_factor=0))
    for each in found:
        endings = [hypothesis.ending for hypothesis in each]
        assert endings == sorted(endings)  # "end" before "limit"
    assert {hypothesis.ending for each in found for hypothesis in each} == {"end", "limit"}


class Stuck(Hashed):
    """Says the same two tokens for ever."""

    def step(self, tokens, state, memory, **wanted):  # type: ignore[no-untyped-def]
        step = super().step(tokens, state, memory, **wanted)
        step.logits[:] = -5.0
        step.logits[torch.arange(len(tokens)), torch.where(tokens == A, B, A)] = 5.0
        return step


@pytest.mark.parametrize("beam", [1, 3])
def test_a_loop_is_stopped_and_flagged(beam: int) -> None:
    model = Stuck()
    [[found], *_] = search(model, SOURCES, None, SearchSettings(beam=beam, limit_plus=400))
    assert model.steps < 80
    assert found.ending in ("loop", "end")
    if beam == 1:
        assert (found.ending, found.tokens[:4]) == ("loop", [A, B, A, B])
    [[let_go], *_] = search(model, SOURCES, None, SearchSettings(beam=1, limit_plus=60, stop_loops=False))
    assert (let_go.ending, len(let_go.tokens)) == ("limit", 66)


@pytest.mark.parametrize("beam", [1, 3])
def test_with_nothing_left_to_say_it_says_nothing(beam: int) -> None:
    every = [[token] for token in range(7)]
    [[found], *_] = search(Hashed(), SOURCES, None, SearchSettings(beam=beam), rules=Rules(forbidden=every))
    assert (found.tokens, found.ending) == ([], "nothing")


@pytest.mark.parametrize("beam", [1, 3])
def test_the_weights_shown_are_those_each_token_was_chosen_with(beam: int) -> None:
    model = Hashed()
    lengths = torch.tensor([3, 2, 3])
    found = search(model, SOURCES, lengths, SearchSettings(beam=beam, nbest=min(2, beam)), want_weights=True)
    for row, sentence in enumerate(found):
        for each in sentence:
            assert each.weights is not None
            assert each.weights.shape == (len(each.token_scores), 1, 1, 3)
            memory = model.encode(SOURCES[row : row + 1], lengths[row : row + 1])
            state = model.start(memory)
            for place, token in enumerate([START, *each.tokens][: len(each.token_scores)]):
                _, state, weights = model.step(torch.tensor([token]), state, memory, want_weights=True)
                assert weights is not None
                torch.testing.assert_close(each.weights[place], weights[0])


def test_coverage_ranks_by_what_was_left_unattended() -> None:
    model = Hashed(vocabulary=6)
    lengths = torch.tensor([3, 2, 3])
    wide = SearchSettings(
        beam=40, nbest=8, coverage_penalty=0.7, limit_factor=0, limit_plus=4, stop="certain", stop_loops=False
    )
    for row, sentence in enumerate(search(model, SOURCES, lengths, wide, want_weights=True)):
        scores = []
        for each in sentence:
            assert each.weights is not None
            looked = each.weights.mean((1, 2)).sum(0)[: int(lengths[row])]
            scores.append(each.log_prob / len(each.token_scores) + 0.7 * float(looked.clamp(max=1).log().sum()))
            assert each.score == pytest.approx(scores[-1], abs=1e-5)
        assert scores == sorted(scores, reverse=True)


def test_diverse_groups_say_different_things() -> None:
    model = Hashed(vocabulary=30, end_bonus=-3.0)
    plain = search(model, SOURCES, None, SearchSettings(beam=6, nbest=6))
    diverse = search(model, SOURCES, None, SearchSettings(beam=6, nbest=6, groups=3, diversity=5.0))

    def firsts(found: list[list[Hypothesis]]) -> int:
        return sum(len({each.tokens[0] for each in sentence}) for sentence in found)

    assert firsts(diverse) > firsts(plain)
    greedy = search(model, SOURCES, None, SearchSettings(beam=1))
    for sentence, [first] in zip(diverse, greedy, strict=True):
        assert len(sentence) == 6
        assert first.tokens  # the first group of one would be greedy search; of two it is a beam of two
    undiverse = search(model, SOURCES, None, SearchSettings(beam=2, nbest=2, groups=2, diversity=0.0))
    assert all(one.tokens == other.tokens for one, other in undiverse)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_whose_weights_are_not_finite_is_named(beam: int) -> None:
    with pytest.raises(Failure, match="there is a NaN among its logits"):
        search(Hashed(sharpness=math.nan), SOURCES, None, SearchSettings(beam=beam))


def test_a_batch_of_none_gives_none() -> None:
    assert search(Hashed(), SOURCES[:0], None, SearchSettings()) == []


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (Rules(prefix=torch.tensor([[A]])), r"prefix: expected \[3, tokens\]; got \[1, 1\]"),
        (Rules(forbidden=[[A, 99]]), r"forbidden: expected tokens from 0 to 6; got \[4, 99\]"),
        (Rules(forbidden=[[]]), r"forbidden: expected tokens from 0 to 6; got \[\]"),
        (Rules(columns=torch.tensor([A, 7])), r"columns: expected tokens from 0 to 6; got \[3, 4, 7\]"),
    ],
)
def test_rules_that_do_not_fit_are_refused_in_words(rules: Rules, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        search(Hashed(), SOURCES, None, SearchSettings(), rules=rules)
