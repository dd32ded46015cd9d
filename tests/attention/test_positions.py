"""Positions: layouts and pairings by their formulas, distances, slopes, places counted on from a start."""

import copy
import math
import pickle
import re

import pytest
import torch

from regard.attention import MultiHead, masks, positions
from regard.attention.positions import Alibi, Learned, Positions, Rotary, Sinusoidal, alibi_slopes, sinusoids
from tests.attention.paths import some


@pytest.mark.parametrize("width", [1, 2, 5, 8])
def test_sinusoids_are_their_formula_in_both_layouts(width: int) -> None:
    turns, split = sinusoids(40, width), sinusoids(40, width, "split")
    sines = (width + 1) // 2
    for place in (0, 1, 7, 39):
        for i in range(sines):
            angle = place / 10000 ** (2 * i / width)
            assert turns[place, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
            assert split[place, i].item() == pytest.approx(math.sin(angle), abs=1e-12)
            if 2 * i + 1 < width:
                assert turns[place, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)
                assert split[place, sines + i].item() == pytest.approx(math.cos(angle), abs=1e-12)


def test_the_cosine_of_place_3_has_the_value_worked_on_paper() -> None:
    assert sinusoids(4, 4)[3, 3].item() == pytest.approx(0.99955, abs=5e-6)


KINDS = {
    "sinusoidal": Sinusoidal(6),
    "split": Sinusoidal(6, "split"),
    "learned": Learned(600, 6).double(),
    "rotary": Rotary(6),
    "interleaved": Rotary(6, "interleaved"),
    "none": Positions(),
    "alibi": Alibi(2),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def acted(kind: Positions, x: torch.Tensor, start: int = 0) -> torch.Tensor:
    return kind.rotate(kind.add(x, start), start)


@every_kind
def test_places_are_counted_on_from_the_start(kind: Positions) -> None:
    x = some(2, 500, 6, grad=False)
    whole = acted(kind, x)
    for start in (0, 3, 299, 499):
        assert torch.equal(acted(kind, x[:, start : start + 4], start), whole[:, start : start + 4])


@every_kind
def test_each_kind_acts_at_the_one_hook_it_names(kind: Positions) -> None:
    x = some(2, 5, 6, grad=False)
    acts = {
        "input": not torch.equal(kind.add(x), x),
        "rotate": not torch.equal(kind.rotate(x), x),
        "bias": kind.bias(5, 5) is not None,
    }
    assert [hook for hook, does in acts.items() if does] == ([] if kind.hook == "none" else [kind.hook])


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_after_rotary_products_depend_on_the_distance_alone(pairing: positions.Pairing) -> None:
    rotary, query, key = Rotary(8, pairing), some(1, 8, grad=False), some(1, 8, seed=1, grad=False)
    for distance in (0, 3, 50):
        products = [rotary.rotate(query, p + distance) @ rotary.rotate(key, p).mT for p in (0, 5, 1000)]
        torch.testing.assert_close(products[0], products[1])
        torch.testing.assert_close(products[0], products[2])
    assert rotary.rotate(query, 9).norm().item() == pytest.approx(query.norm().item())


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_rotary_turns_the_pairs_its_pairing_names(pairing: positions.Pairing) -> None:
    x, turned = some(3, 6, grad=False), Rotary(6, pairing).rotate(some(3, 6, grad=False))
    for place in range(3):
        for i in range(3):
            first, second = (i, i + 3) if pairing == "half" else (2 * i, 2 * i + 1)
            pair = torch.complex(x[place, first], x[place, second])
            angle = torch.tensor(place * 10000 ** (-2 * i / 6), dtype=torch.float64)
            expected = pair * torch.polar(torch.ones_like(angle), angle)
            torch.testing.assert_close(torch.complex(turned[place, first], turned[place, second]), expected)


def test_rotary_half_is_that_of_transformers_library() -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    x = some(1, 2, 5, 8, grad=False)
    angles = torch.arange(5.0, dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(0, 8, 2).double() / 8)
    cosine, sine = (torch.cat([each, each], -1)[None] for each in (angles.cos(), angles.sin()))
    torch.testing.assert_close(Rotary(8).rotate(x), llama.apply_rotary_pos_emb(x, x, cosine, sine)[0])


@pytest.mark.parametrize("kind", [Sinusoidal(64), Rotary(64)], ids=["sinusoidal", "rotary"])
def test_far_places_are_as_exact_as_near_ones(kind: Positions) -> None:
    x = some(1, 64, grad=False)
    for start in (0, 100_000):
        assert (acted(kind, x.float(), start) - acted(kind, x, start)).abs().max() < 1e-6


@every_kind
def test_halving_a_module_and_back_leaves_its_places_exact(kind: Positions) -> None:
    if isinstance(kind, Learned):
        pytest.skip("its vectors are parameters, which are rounded as any are")
    x = some(2, 5, 6, grad=False).float()
    before = acted(kind, x)
    assert torch.equal(acted(copy.deepcopy(kind).half().float(), x), before)


@every_kind
def test_a_kind_is_copied_and_pickled_and_has_no_buffer_to_save(kind: Positions) -> None:
    x = some(2, 5, 6, grad=False)
    again = pickle.loads(pickle.dumps(copy.deepcopy(kind)))
    assert torch.equal(acted(again, x), acted(kind, x))
    assert set(kind.state_dict()) == {name for name, _ in kind.named_parameters()}


@pytest.mark.parametrize("kind", [Sinusoidal(6), Rotary(6)], ids=["sinusoidal", "rotary"])
def test_a_table_made_while_inferring_serves_training_afterwards(kind: Positions) -> None:
    with torch.inference_mode():
        acted(kind, torch.ones(2, 3, 6))
    x = torch.ones(2, 3, 6, requires_grad=True)
    acted(kind, x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("kind", [Sinusoidal(6), Rotary(6), Rotary(6, "interleaved"), Alibi(2)], ids=repr)
def test_positions_compile_whole(kind: Positions) -> None:
    torch._dynamo.reset()
    module = MultiHead(12, 2, positions=kind)
    x = torch.ones(2, 3, 12) if not isinstance(kind, Sinusoidal) else torch.ones(2, 3, 6)
    run = kind.add if isinstance(kind, Sinusoidal) else lambda x: module(x, mask=masks.causal()).output
    torch.testing.assert_close(torch.compile(run, backend="aot_eager", fullgraph=True)(x), run(x))


def test_alibi_lowers_a_score_by_its_heads_slope_for_each_place_between() -> None:
    bias = Alibi(2).bias(2, 4)
    away = torch.tensor([[2, 1, 0, 1], [3, 2, 1, 0]])
    assert torch.equal(bias, torch.stack([away * -(2.0**-4), away * -(2.0**-8)]))


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (1, [2**-8]),
        (8, [2.0**-n for n in range(1, 9)]),
        (12, [2.0**-n for n in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
    ],
)
def test_alibi_has_the_slopes_of_the_paper(heads: int, slopes: list[float]) -> None:
    assert alibi_slopes(heads) == pytest.approx(slopes)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("none", Positions), ("sinusoidal", Sinusoidal), ("sinusoidal_split", Sinusoidal), ("learned", Learned),
        ("rotary", Rotary), ("rotary_interleaved", Rotary), ("alibi", Alibi),
    ],
)  # fmt: skip
def test_positions_are_made_by_name(name: str, kind: type[Positions]) -> None:
    made = positions.make(name, width=8, heads=2, head_width=4, places=16)
    assert type(made) is kind
    assert getattr(made, "layout", None) == {"sinusoidal": "interleaved", "sinusoidal_split": "split"}.get(name)
    assert getattr(made, "pairing", None) == {"rotary": "half", "rotary_interleaved": "interleaved"}.get(name)


SAYS = {
    "name": (
        lambda: positions.make("rotry", width=8, heads=2, head_width=4),
        "unknown positions 'rotry'; did you",
    ),
    "layout": (lambda: Sinusoidal(4, "splits"), "unknown layout 'splits'; did you mean 'split'?"),
    "pairing": (lambda: Rotary(4, "halves"), "unknown pairing 'halves'; did you mean 'half'?"),
    "no width": (lambda: Sinusoidal(0), "sinusoidal: width must be a whole number, 1 or more; got 0"),
    "half a width": (lambda: Rotary(4.0), "rotary: width must be a whole number, 1 or more; got 4.0"),  # type: ignore[arg-type]
    "no places": (lambda: Learned(0, 8), "learned positions: places must be a whole number, 1 or more; got 0"),
    "base": (lambda: Rotary(4, base=0.0), "rotary: base must be above 0 and finite; got 0.0"),
    "odd": (lambda: Rotary(5), "rotary: dimensions are turned in pairs, so the width must be even; got 5"),
    "rotary width": (lambda: Rotary(4).rotate(torch.ones(2, 6)), "rotary: made for width 4; got 6"),
    "sinusoidal width": (lambda: Sinusoidal(4).add(torch.ones(2, 6)), "sinusoidal: made for width 4; got 6"),
    "learned": (lambda: Learned(3, 4).add(torch.ones(2, 4), 2), "learned positions: made for 3 places; got 4"),
    "learned width": (lambda: Learned(3, 4).add(torch.ones(2, 5)), "learned positions: made for width 4; got 5"),
    "alibi": (lambda: Alibi(0), "alibi: expected one head or more; got 0"),
    "start": (lambda: Sinusoidal(4).add(torch.ones(2, 4), -1), "start: expected a place, 0 or more; got -1"),
    "learned start": (lambda: Learned(3, 4).add(torch.ones(2, 4), -1), "start: expected a place, 0 or more; got -1"),
}


@pytest.mark.parametrize(("bad", "says"), SAYS.values(), ids=SAYS)
def test_wrong_positions_are_refused_in_words(bad, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=re.escape(says)):
        bad()
