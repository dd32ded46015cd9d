"""The search in fixed shapes finds what the plain one finds; on a GPU its steps are graphs, here they run plainly."""

import gc
from typing import Any
from weakref import ref

import pytest
import torch

from regard.decoding import Hypothesis, Rules, SearchSettings, search
from regard.decoding import fixed as fixed_beam
from regard.decoding.fixed import Shape, obstacle, ready
from regard.support.errors import Failure
from tests.decoding.models import Hashed
from tests.decoding.test_sharing import VOCABULARY, model_of

CHANGES = [
    {}, {"positions": "rotary"}, {"positions": "rotary_interleaved", "kv_heads": 2}, {"positions": "none"},
    {"positions": "learned", "longest": 40}, {"norm_place": "post", "output_bias": True}, {"feed_forward": 0},
    {"normalise": "sparsemax", "bias": False},
]  # fmt: skip


def in_fixed_shapes(model: Any, source: Any, lengths: Any, settings: SearchSettings) -> list[list[Hypothesis]]:
    limits = torch.tensor([settings.limit(int(length)) for length in lengths])
    beam = ready(model, Shape.around(len(source), settings.beam, source.shape[1], int(limits.max())), settings)
    assert beam is not None
    with torch.inference_mode():
        return beam.run(model.encode(source, lengths), limits)


def facts(found: list[list[Hypothesis]]) -> list[list[tuple[list[int], str]]]:
    return [[(each.tokens, each.ending) for each in results] for results in found]


def batch(count: int = 5, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    dice = torch.Generator().manual_seed(seed)
    return torch.randint(4, VOCABULARY, (count, 7), generator=dice), torch.tensor([7, 5, 2, 1, 6][:count])


@pytest.mark.parametrize("changed", CHANGES, ids=str)
@pytest.mark.parametrize("asked", [
    {"beam": 4, "nbest": 3}, {"beam": 1}, {"beam": 3, "stop": "certain", "length_penalty": 0.0},
    {"beam": 2, "fewest": 6, "unknown": False, "length_penalty": -0.5},
], ids=str)  # fmt: skip
def test_fixed_shapes_change_nothing(changed: dict[str, Any], asked: dict[str, Any]) -> None:
    model, (source, lengths) = model_of(**changed), batch()
    settings = SearchSettings(limit_factor=1.5, limit_plus=9, **asked)
    plain, other = search(model, source, lengths, settings), in_fixed_shapes(model, source, lengths, settings)
    assert facts(other) == facts(plain)
    for one, two in zip(plain, other, strict=True):
        assert [each.score for each in two] == pytest.approx([each.score for each in one], abs=1e-4)
        for mine, theirs in zip(one, two, strict=True):
            assert theirs.token_scores == pytest.approx(mine.token_scores, abs=1e-4)


def test_loops_are_stopped_there_too() -> None:
    model, (source, lengths) = model_of(), batch(2)
    with torch.no_grad():
        model.words.vectors.weight[9] = 30 * model.words.vectors.weight[9]  # its logit is far above all others
    settings = SearchSettings(beam=2, nbest=2, limit_plus=60, length_penalty=0.0)
    plain, other = search(model, source, lengths, settings), in_fixed_shapes(model, source, lengths, settings)
    assert facts(other) == facts(plain)
    assert "loop" in {each.ending for results in other for each in results}


def test_room_is_used_again_by_smaller_batches() -> None:
    model, settings = model_of(), SearchSettings(beam=3, limit_plus=8)
    sizes = []
    for count in (5, 4, 5, 3):
        source, lengths = batch(count, seed=count)
        lengths = lengths.clone()
        lengths[0] = 7
        assert facts(in_fixed_shapes(model, source, lengths, settings)) == facts(
            search(model, source, lengths, settings)
        )
        sizes.append(len(fixed_beam._READY[model]))
    assert sizes == [1, 2, 2, 2]


@pytest.mark.parametrize("changed", [{}, {"positions": "learned", "longest": 40}], ids=str)
def test_weights_that_were_written_to_since_are_read_anew(changed: dict[str, Any]) -> None:
    model, (source, lengths) = model_of(**changed), batch()
    settings = SearchSettings(beam=3, limit_plus=8)
    before = in_fixed_shapes(model, source, lengths, settings)
    with torch.no_grad():
        for each in model.parameters():
            each.mul_(1.3)
    after = in_fixed_shapes(model, source, lengths, settings)
    plain = search(model, source, lengths, settings)
    assert facts(after) == facts(plain) != facts(before)
    assert after[0][0].score == pytest.approx(plain[0][0].score, abs=1e-4)
    assert len(fixed_beam._READY[model]) == 1  # in the same room
    with torch.autocast("cpu", torch.bfloat16):  # caches of another kind
        in_fixed_shapes(model, source, lengths, settings)
    assert len(fixed_beam._READY[model]) == 2


def test_heads_are_mixed_by_the_kernels_for_short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    triton = pytest.importorskip("triton", reason="Triton is not installed (it is made for Linux)")
    if not triton.knobs.runtime.interpret:
        pytest.skip("Triton was imported before its interpreter was on")
    model, (source, lengths) = model_of(kv_heads=2), batch(1)
    settings = SearchSettings(beam=2, limit_factor=0, limit_plus=3)
    plain = in_fixed_shapes(model, source, lengths, settings)
    monkeypatch.setattr("regard.models.fixed._short", lambda *_: True)
    fixed_beam._READY.clear()
    other = in_fixed_shapes(model, source, lengths, settings)
    assert facts(other) == facts(plain)
    for one, two in zip(plain, other, strict=True):
        assert two[0].score == pytest.approx(one[0].score, abs=1e-4)


def test_it_goes_no_further_than_until_all_are_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (source, lengths) = model_of(output_bias=True), batch()
    with torch.no_grad():
        model.output.bias[model.end_token] = 20.0
    steps: list[int] = []
    plain = fixed_beam.FixedBeam._step
    monkeypatch.setattr(fixed_beam.FixedBeam, "_step", lambda self, upto: (steps.append(upto), plain(self, upto)))
    in_fixed_shapes(model, source, lengths, SearchSettings(beam=2, limit_plus=80))
    assert steps == [8] * 8


@pytest.mark.parametrize(
    ("asked", "rules", "said"),
    [
        ({"sample": True}, Rules(), "sampling"),
        ({"no_repeat": 3}, Rules(), "no_repeat"),
        ({"beam": 4, "groups": 2}, Rules(), "diverse groups"),
        ({}, Rules(forbidden=[[5]]), "forbidden words"),
        ({}, Rules(prefix=torch.tensor([[4]])), "a prefix"),
        ({}, Rules(columns=torch.tensor([4])), "a vocabulary map"),
        ({}, Rules(), None),
    ],
)
def test_what_it_cannot_do_is_said(asked: dict[str, Any], rules: Rules, said: str | None) -> None:
    assert obstacle(SearchSettings(**asked), rules, False) == said
    assert obstacle(SearchSettings(), Rules(), True) == "attention"


def test_models_without_fixed_steps_are_searched_the_plain_way() -> None:
    shape = Shape.around(2, 3, 5, 20)
    assert (shape.sentences, shape.places, shape.steps) == (2, 16, 32)
    assert ready(Hashed(), shape, SearchSettings(beam=3)) is None
    for changed in ({"positions": "alibi"}, {"window": 2}):
        assert ready(model_of(**changed), shape, SearchSettings(beam=3)) is None


def test_what_is_kept_ready_does_not_keep_the_model() -> None:
    model, (source, lengths) = model_of(), batch()
    in_fixed_shapes(model, source, lengths, SearchSettings(beam=2, limit_plus=3))
    gone = ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_numbers_that_are_none_are_an_error_there_too() -> None:
    model, (source, lengths) = model_of(), batch()
    with torch.no_grad():
        model.words.vectors.weight.fill_(torch.nan)
    with pytest.raises(Failure, match=r"gives no probabilities: there is a NaN"):
        in_fixed_shapes(model, source, lengths, SearchSettings(beam=2, limit_plus=5))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="graphs are CUDA's")
def test_replayed_graphs_find_what_the_plain_search_finds() -> None:
    model, (source, lengths) = model_of(), batch()
    settings = SearchSettings(beam=4, nbest=2, limit_plus=20)
    plain = facts(search(model, source, lengths, settings))
    on_gpu = model.cuda()
    for _ in range(3):  # as it is, captured, replayed
        assert facts(search(on_gpu, source.cuda(), lengths.cuda(), settings)) == plain
