"""The fused parts, run on a CPU by Triton's interpreter, against PyTorch's own operations."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from regard.models.fused.adding import Normed, add_norm
from regard.models.fused.drawing import Chance, Drawn
from regard.models.fused.hidden import hidden
from regard.models.fused.linear import Joined, copied, linear
from regard.models.fused.logits import logits
from regard.models.fused.loss import smoothed
from regard.models.fused.sums import Sums
from regard.models.fused.words import Reading, words

triton = pytest.importorskip("triton", reason="Triton is not installed (it is made for Linux)")
pytestmark = pytest.mark.skipif(
    not triton.knobs.runtime.interpret, reason="Triton was imported before its interpreter was on"
)
ACTS = {"relu": functional.relu, "gelu": functional.gelu, "silu": functional.silu}
SHARE = 0.25


def some(*shape: int, seed: int = 0, kind: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(kind).requires_grad_()


def drawn(share: float = 0.0, place: int = 1, seed: int = 5) -> Drawn:
    return Drawn(torch.tensor([seed]), place, share)


def sums(*vectors: Tensor | None, rows: int = 100, width: int = 64) -> Sums:
    return Sums([each for each in vectors if each is not None], rows, width, 1)


def gradients(outputs: tuple[Tensor, ...], inputs: list[Tensor]) -> tuple[Tensor, ...]:
    """Of a sum that weighs each number differently."""
    tilted = [(each * some(*each.shape, seed=9).detach()).sum() for each in outputs]
    return torch.autograd.grad(torch.stack(tilted).sum(), inputs)


@pytest.mark.parametrize("layer", [True, False], ids=["layer norm", "rms norm"])
@pytest.mark.parametrize("adds", [True, False], ids=["adds", "norm alone"])
@pytest.mark.parametrize(("rows", "width"), [(5, 24), (40, 512), (3, 2050)])
def test_the_sum_and_its_norm_are_pytorchs(layer: bool, adds: bool, rows: int, width: int) -> None:
    x, a, b, weight, shift = some(rows, width), some(rows, width, seed=1), *(some(width, seed=i) for i in (2, 3, 4))
    out, y = add_norm(
        x, a if adds else None, b if adds else None, Normed(weight, shift if layer else None, 1e-5), drawn(),
        torch.float32, sums(weight, shift, b, rows=rows, width=width),
    )  # fmt: skip
    sum_ = x + (a + b) if adds else x.clone()
    like = (
        functional.layer_norm(sum_, (width,), weight, shift)
        if layer
        else functional.rms_norm(sum_, (width,), weight, 1e-5)
    )
    torch.testing.assert_close((out, y), (sum_, like), rtol=1e-5, atol=1e-5)
    inputs = [x, weight, *([shift] if layer else []), *([a, b] if adds else [])]
    torch.testing.assert_close(
        gradients((out, y), inputs), gradients((sum_, like), inputs), rtol=1e-4, atol=1e-4 * rows**0.5
    )


def test_programs_that_walk_over_many_rows_add_them_all_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.models.fused.sums.WALKERS", 3)
    x, a, b, weight, shift = some(101, 24), some(101, 24, seed=1), *(some(24, seed=i) for i in (2, 3, 4))
    found = add_norm(x, a, b, Normed(weight, shift, 1e-5), drawn(), torch.float32, sums(weight, shift, b, width=1024))
    like = x + (a + b), functional.layer_norm(x + (a + b), (24,), weight, shift)
    inputs = [x, a, b, weight, shift]
    torch.testing.assert_close(gradients(found, inputs), gradients(like, inputs), rtol=1e-4, atol=1e-4)


def test_the_last_norm_has_a_gradient_where_the_sum_has_none() -> None:
    x, weight, shift = some(5, 24), some(24, seed=1), some(24, seed=2)
    y = add_norm(x, None, None, Normed(weight, shift, 1e-5), drawn(), torch.float32, sums(weight))[1]
    like = functional.layer_norm(x, (24,), weight, shift)
    torch.testing.assert_close(gradients((y,), [x]), gradients((like,), [x]), rtol=1e-4, atol=1e-5)


def test_in_half_precision_the_norm_is_rounded_and_the_sum_is_not() -> None:
    x, a, weight = some(9, 24), some(9, 24, seed=1, kind=torch.bfloat16), some(24, seed=2)
    out, y = add_norm(x, a, None, Normed(weight, None, 1e-5), drawn(), torch.bfloat16, sums(weight))
    assert torch.equal(out, x + a.float())
    # One in many is half way between two numbers of 8 bits, and may go either way.
    torch.testing.assert_close(y, functional.rms_norm(out, (24,), weight, 1e-5).bfloat16(), rtol=2**-8, atol=1e-6)
    (of_a,) = torch.autograd.grad(y.float().sum(), [a])
    assert of_a.dtype == torch.bfloat16


def test_the_share_that_is_dropped_is_the_one_asked_for_and_the_rest_makes_up_for_it() -> None:
    weight = torch.ones(256, requires_grad=True)
    x, a, b = torch.zeros(400, 256), torch.ones(400, 256, requires_grad=True), torch.ones(256, requires_grad=True)
    out, _ = add_norm(x, a, b, Normed(weight, None, 1e-5), drawn(SHARE), torch.float32, sums(weight, b))
    kept = out != 0
    assert torch.unique(out).tolist() == pytest.approx([0.0, 2 / (1 - SHARE)])
    deviation = (SHARE * (1 - SHARE) / out.numel()) ** 0.5
    assert kept.float().mean().item() == pytest.approx(1 - SHARE, abs=4 * deviation)
    # No row or column is kept more than chance has it, and neighbours do not know of each other.
    assert (kept.float().mean(0) - (1 - SHARE)).abs().max() < 5 * (SHARE * (1 - SHARE) / 400) ** 0.5
    assert (kept.float().mean(1) - (1 - SHARE)).abs().max() < 5 * (SHARE * (1 - SHARE) / 256) ** 0.5
    both = (kept[:, 1:] & kept[:, :-1]).float().mean().item()
    assert both == pytest.approx((1 - SHARE) ** 2, abs=5 * deviation)
    (of_a, of_b) = torch.autograd.grad(out.sum(), [a, b])
    assert torch.equal(of_a != 0, kept)
    torch.testing.assert_close(of_b, kept.sum(0) / (1 - SHARE))


def test_other_places_and_other_seeds_drop_other_numbers() -> None:
    def kept(place: int, seed: int) -> Tensor:
        one = torch.ones(100, 64)
        weight = torch.ones(64, requires_grad=True)
        return add_norm(
            torch.zeros(100, 64), one, None, Normed(weight, None, 1e-5), drawn(0.5, place, seed), torch.float32,
            sums(weight),
        )[0].ne(0)  # fmt: skip

    masks = [kept(place, seed) for place, seed in ((1, 5), (2, 5), (3, 5), (1, 6), (1, 5 + (1 << 40)), (1, -5))]
    assert torch.equal(masks[0], kept(1, 5))
    for number, mask in enumerate(masks):
        for other in masks[:number]:
            assert (mask == other).float().mean().item() == pytest.approx(0.5, abs=0.03)


def test_a_pass_draws_its_seed_from_torchs_generator_and_each_place_its_own_number() -> None:
    torch.manual_seed(3)
    chance = Chance(torch.device("cpu"))
    assert [chance.at(0.1).place, chance.at(0.1).place] == [1, 2]
    other = Chance(torch.device("cpu"))
    torch.manual_seed(3)
    assert chance.seed != other.seed
    assert torch.equal(Chance(torch.device("cpu")).seed, chance.seed)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("act", ACTS)
def test_the_hidden_layer_is_pytorchs(act: str, bias: bool) -> None:
    x, layer = some(19, 24), torch.nn.Linear(24, 40, bias)
    (joined,), _ = copied([[layer]], [], torch.float32)
    h, like = hidden(x, joined, act, drawn(), sums(layer.bias, torch.ones(1, requires_grad=True))), ACTS[act](layer(x))
    torch.testing.assert_close(h, like, rtol=1e-5, atol=1e-6)
    inputs = [x, *layer.parameters()]
    torch.testing.assert_close(gradients((h,), inputs), gradients((like,), inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("act", ACTS)
def test_the_hidden_layer_drops_the_same_backward(act: str) -> None:
    x, layer = some(60, 24), torch.nn.Linear(24, 40)
    (joined,), _ = copied([[layer]], [], torch.float32)
    h, like = hidden(x, joined, act, drawn(SHARE), sums(layer.bias)), ACTS[act](layer(x))
    kept = (h != 0) | (like == 0)
    assert kept[like != 0].float().mean().item() == pytest.approx(1 - SHARE, abs=0.05)
    like = like * kept / (1 - SHARE)
    torch.testing.assert_close(h, like, rtol=1e-5, atol=1e-6)
    inputs = [x, *layer.parameters()]
    torch.testing.assert_close(gradients((h,), inputs), gradients((like,), inputs), rtol=1e-4, atol=1e-5)


def test_layers_that_read_the_same_rows_are_one_product_whose_gradients_are_theirs() -> None:
    x, layers = some(33, 24), [torch.nn.Linear(24, size) for size in (8, 16, 40)]
    (joined,), (table,) = copied([layers], [some(48, 24, seed=4)], torch.float32)
    assert table.shape == (48, 24)
    y = linear(x, joined, sums(*(each.bias for each in layers)))
    like = torch.cat([each(x) for each in layers], -1)
    torch.testing.assert_close(y, like, rtol=1e-5, atol=1e-6)
    inputs = [x, *(part for each in layers for part in each.parameters())]
    torch.testing.assert_close(gradients((y,), inputs), gradients((like,), inputs), rtol=1e-4, atol=1e-5)


def test_a_bias_is_summed_in_float32_over_many_rows() -> None:
    rows, layer = 5000, torch.nn.Linear(16, 300)
    (joined,), _ = copied([[layer]], [], torch.bfloat16)
    y = linear(some(rows, 16, kind=torch.bfloat16), joined, sums(layer.bias, rows=rows))
    slopes = some(rows, 300, seed=3, kind=torch.bfloat16).detach()
    (of_bias,) = torch.autograd.grad(y, [layer.bias], slopes)
    torch.testing.assert_close(of_bias, slopes.double().sum(0).float(), rtol=1e-5, atol=1e-3)


def test_places_of_one_pass_do_not_stand_in_one_anothers_way() -> None:
    x, layers = some(9, 24), [torch.nn.Linear(24, 24) for _ in range(3)]
    weights = [some(24, seed=i) for i in range(3)]
    together = sums(*weights, *(each.bias for each in layers), rows=9, width=24)
    y, like = x, x
    for layer, weight in zip(layers, weights, strict=True):
        (joined,), _ = copied([[layer]], [], torch.float32)
        normed = add_norm(y, None, None, Normed(weight, None, 1e-5), drawn(), torch.float32, together)[1]
        y, like = linear(normed, joined, together), layer(functional.rms_norm(like, (24,), weight, 1e-5))
    inputs = [x, *weights, *(part for each in layers for part in each.parameters())]
    torch.testing.assert_close(gradients((y,), inputs), gradients((like,), inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("places", [True, False], ids=["places", "no places"])
def test_words_are_embedded_scaled_and_placed(places: bool) -> None:
    tokens = torch.randint(0, 30, (5, 7), generator=torch.Generator().manual_seed(0))
    table, at = some(30, 24), some(7, 24, seed=1) if places else None
    x, like = words(tokens, Reading(table), 3.0, at, drawn()), functional.embedding(tokens, table) * 3.0
    like = (like if at is None else like + at).flatten(0, 1)
    torch.testing.assert_close(x, like)
    inputs = [table, *([at] if at is not None else [])]
    torch.testing.assert_close(gradients((x,), inputs), gradients((like,), inputs), rtol=1e-5, atol=1e-5)


def test_a_table_that_two_read_has_the_gradient_of_both() -> None:
    first, second = (
        torch.randint(0, 30, size, generator=torch.Generator().manual_seed(0)) for size in ((5, 7), (2, 3))
    )
    table = some(30, 24)
    reading = Reading(table)
    found = tuple(words(each, reading, 3.0, None, drawn()) for each in (first, second))
    like = tuple(functional.embedding(each, table).flatten(0, 1) * 3.0 for each in (first, second))
    torch.testing.assert_close(gradients(found, [table]), gradients(like, [table]), rtol=1e-5, atol=1e-5)


def test_words_drop_the_same_backward() -> None:
    tokens, table, at = torch.arange(30).view(5, 6), torch.ones(30, 24).requires_grad_(), torch.ones(6, 24)
    x = words(tokens, Reading(table), 2.0, at, drawn(SHARE))
    assert torch.unique(x).tolist() == pytest.approx([0.0, 3 / (1 - SHARE)])
    (of_table,) = torch.autograd.grad(x.sum(), [table])
    torch.testing.assert_close(of_table, (x != 0).detach() * (2 / (1 - SHARE)))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocabulary", [11, 8200])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_the_loss_is_pytorchs_and_rows_that_want_nothing_have_none(
    smoothing: float, vocabulary: int, kind: torch.dtype
) -> None:
    logits = (some(4, 3, vocabulary) * 4).detach().to(kind).requires_grad_()
    wanted = torch.randint(0, vocabulary, (4, 3), generator=torch.Generator().manual_seed(0))
    wanted[1], wanted[2, 1] = -100, -100
    loss = smoothed(logits, wanted, smoothing)
    wide = logits.detach().double().requires_grad_()
    like = functional.cross_entropy(
        wide.flatten(0, 1), wanted.flatten(), ignore_index=-100, label_smoothing=smoothing, reduction="sum"
    )
    assert loss.item() == pytest.approx(like.item(), rel=1e-6)
    (mine,), (truth,) = torch.autograd.grad(loss * 0.37, [logits]), torch.autograd.grad(like * 0.37, [wide])
    half = kind == torch.bfloat16
    torch.testing.assert_close(mine.double(), truth, rtol=2**-8 if half else 1e-4, atol=1e-6)
    assert (mine[1] == 0).all()


@pytest.mark.parametrize("vocabulary", [24, 27])
def test_logits_of_any_vocabulary_stand_in_rows_that_products_like(vocabulary: int) -> None:
    x, table = some(6, 16), some(vocabulary, 16, seed=1)
    _, (matrix,) = copied([], [table], torch.float32)
    y, like = logits(x, matrix, table), x @ table.T
    assert y.stride(0) % 8 == 0
    torch.testing.assert_close(y, like)
    wanted = torch.randint(0, vocabulary, (6,), generator=torch.Generator().manual_seed(0))
    for loss in (smoothed, lambda z, w, e: functional.cross_entropy(z, w, label_smoothing=e, reduction="sum")):
        truth = functional.cross_entropy(like, wanted, label_smoothing=0.1, reduction="sum")
        torch.testing.assert_close(
            torch.autograd.grad(loss(y.view(2, 3, -1), wanted, 0.1) if loss is smoothed else loss(y, wanted, 0.1),
                                [x, table], retain_graph=True),
            torch.autograd.grad(truth, [x, table], retain_graph=True), rtol=1e-4, atol=1e-5,
        )  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("bad", [torch.inf, torch.nan])
def test_a_loss_that_is_not_finite_says_so(bad: float) -> None:
    logits = some(2, 11).detach()
    logits[1, 4] = bad
    assert not torch.isfinite(smoothed(logits.requires_grad_(), torch.tensor([1, 2]), 0.1))


def test_without_a_table_there_is_still_room_for_the_copies() -> None:
    layer = torch.nn.Linear(3, 5)
    (joined,), tables = copied([[layer]], [], torch.bfloat16)
    assert isinstance(joined, Joined)
    assert tables == []
    assert torch.equal(joined.matrix, layer.weight.detach().bfloat16())
