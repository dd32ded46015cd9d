"""The kernels of short rows, run on a CPU by Triton's interpreter, against the formula in float64."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.attention import attend, masks, scores
from regard.attention.checks import checked
from regard.attention.fast import short
from regard.attention.normalise import softmax
from tests.attention.paths import by_reference, some

triton = pytest.importorskip("triton", reason="Triton is not installed (it is made for Linux)")
pytestmark = pytest.mark.skipif(
    not triton.knobs.runtime.interpret, reason="Triton was imported before its interpreter was on"
)

BATCH, HEADS, QUERIES, KEYS = 3, 4, 21, 37
MASKS = {
    "causal": masks.causal(),
    "from the start": masks.causal("start"),
    "lengths": masks.lengths([5, 37, 0]),
    "padding on both sides": masks.lengths([30, 0, 37], queries=[11, 20, 0]),
    "both": masks.causal() & masks.lengths([30, 17, 1]),
    "both, with queries": masks.lengths([37, 30, 20], queries=[21, 3, 9]) & masks.causal(),
    "a window": masks.window(3, 2),
    "a table": masks.tensor(some(BATCH, 1, QUERIES, KEYS, seed=4, grad=False) > 0.3),
    "a table with few": masks.tensor(some(BATCH, 1, QUERIES, KEYS, seed=4, grad=False) > 1.9),
    "a table of heads": masks.tensor(some(HEADS, QUERIES, KEYS, seed=6, grad=False) > 0),
    "a table for all": masks.tensor(some(QUERIES, KEYS, seed=5, grad=False) > 0),
}
# Of sums of products that were rounded to half precision, and of the weights, which are too.
TOLERANCE = {torch.bfloat16: 1.5e-2, torch.float16: 2e-3}


def made(groups: int = 1, dtype: torch.dtype = torch.bfloat16, width: int = 24, outer: int = 20) -> list[Tensor]:
    sizes = ((HEADS, QUERIES, width), (HEADS // groups, KEYS, width), (HEADS // groups, KEYS, outer))
    return [some(BATCH, *size, seed=size[1] + size[2], grad=False).to(dtype).requires_grad_() for size in sizes]


def fused(query: Tensor, key: Tensor, value: Tensor, mask: Any, score: Any = None) -> Tensor:
    """By the kernels, on whatever device."""
    call = checked(query, key, value, score or scores.ScaledDot(), None, mask, softmax, 0.0, None)
    assert short.unlike(call) is None
    return short.run(call)


def gradients(output: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    tilt = some(*output.shape, seed=77, grad=False).to(output)
    return list(torch.autograd.grad((output * tilt).sum(), inputs, materialize_grads=True))


def error(got: Tensor, truth: Tensor) -> float:
    return ((got.double() - truth.double()).norm() / truth.double().norm().clamp(min=1e-30)).item()


@pytest.mark.parametrize(("mask", "groups", "dtype"), [
    *((mask, 2, torch.bfloat16) for mask in MASKS.values()),
    (MASKS["both"], 1, torch.bfloat16), (MASKS["both"], 2, torch.float16),
], ids=[*MASKS, "heads of their own", "float16"])  # fmt: skip
def test_output_and_gradients_are_those_of_the_formula(mask: masks.Mask, groups: int, dtype: torch.dtype) -> None:
    inputs = made(groups, dtype)
    wide = [each.detach().double().requires_grad_() for each in inputs]
    got, truth = fused(*inputs, mask), by_reference(*wide, mask=mask)
    assert got.dtype == dtype
    assert error(got, truth) < TOLERANCE[dtype]
    assert torch.equal(got == 0, truth == 0)  # rows that see nothing
    for mine, true in zip(gradients(got, inputs), gradients(truth, wide), strict=True):
        assert error(mine, true) < TOLERANCE[dtype]


@pytest.mark.parametrize("mask", [MASKS[each] for each in (
    "from the start", "lengths", "padding on both sides", "both", "both, with queries", "a table with few",
)], ids=str)  # fmt: skip
def test_what_nobody_sees_leaks_nowhere(mask: masks.Mask) -> None:
    clean = made(2)
    cells = mask.dense((BATCH, HEADS, QUERIES, KEYS)).expand(BATCH, HEADS, QUERIES, KEYS)
    unseen, blind = ~cells.any(2).any(1), ~cells.any(3).any(1)
    assert unseen.any() or blind.any()
    dirty = [each.detach().clone() for each in clean]
    for tensor, places in zip(dirty, (blind, unseen, unseen), strict=True):
        tensor.masked_fill_(places[:, None, :, None], torch.nan)
    dirty = [each.requires_grad_() for each in dirty]
    one, other = fused(*clean, mask), fused(*dirty, mask)
    assert torch.equal(one, other)
    for mine, true in zip(gradients(other, dirty), gradients(one, clean), strict=True):
        assert torch.equal(mine, true)


@pytest.mark.parametrize(("queries", "keys"), [(1, 2), (128, 128), (16, 65), (1, 200)])
def test_other_sizes(queries: int, keys: int) -> None:
    q, k, value = (
        some(2, 2, n, 64, seed=n, grad=False).bfloat16().requires_grad_(keys <= short.SHORT)
        for n in (queries, keys, keys)
    )
    mask = masks.causal() & masks.lengths([keys, keys // 2 + 1])
    wide = [each.detach().double().requires_grad_() for each in (q, k, value)]
    got, truth = fused(q, k, value, mask), by_reference(*wide, mask=mask)
    assert error(got, truth) < 1.5e-2
    if keys <= short.SHORT:
        for mine, true in zip(gradients(got, [q, k, value]), gradients(truth, wide), strict=True):
            assert error(mine, true) < 1.5e-2


def test_heads_side_by_side_are_read_where_they_stand() -> None:
    joined = some(2, 9, 3 * 4 * 16, seed=1, grad=False).bfloat16().requires_grad_()
    lengths = torch.tensor([9, 4], dtype=torch.int32)

    def split(x: Tensor) -> list[Tensor]:
        return list(x.unflatten(-1, (3, 4, 16)).unbind(2))

    got = short.short_attention(*split(joined), lengths, causal=True)
    wide = joined.detach().double().requires_grad_()
    q, k, value = (each.transpose(1, 2) for each in split(wide))
    truth = attend(q, k, value, mask=masks.causal() & masks.lengths(lengths), implementation="reference")
    assert error(got, truth.transpose(1, 2)) < 1.5e-2
    (mine,), (true,) = gradients(got, [joined]), gradients(truth.transpose(1, 2), [wide])
    assert error(mine, true) < 1.5e-2
    with torch.no_grad():  # straight from the kernel, without the operation that autograd knows
        assert torch.equal(short.short_attention(*split(joined), lengths, causal=True), got)


def test_the_operation_is_sound() -> None:
    from regard.attention.fast.short.op import short_attention

    q, k, value = (some(2, 5, 2, 16, seed=n, grad=False).requires_grad_() for n in (1, 2, 3))
    counts = torch.tensor([5, 3], dtype=torch.int32)
    torch.library.opcheck(
        short_attention, (q, k, value, None, counts, None, 0, 0.25),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )  # fmt: skip


@pytest.mark.parametrize(("changed", "said"), [
    ({"mask": None}, "without a mask"), ({"score": scores.Cosine()}, "before they are cleared"),
    ({"dropout": 0.1}, "dropout"), ({"keys": 130}, "more than 128"), ({"dtype": torch.float32}, "bfloat16"),
    ({"width": 160}, "wider"), ({"width": 96, "keys": 70}, "heads up to 64 wide"),
])  # fmt: skip
def test_what_it_does_not_serve_is_said(changed: dict[str, Any], said: str) -> None:
    keys, width, dtype = changed.get("keys", 5), changed.get("width", 8), changed.get("dtype", torch.bfloat16)
    query, key = (torch.randn(2, 2, n, width, dtype=dtype, requires_grad=True) for n in (5, keys))
    call = checked(
        query, key, key, changed.get("score", scores.ScaledDot()), None, changed.get("mask", masks.lengths([2, 3])),
        softmax, changed.get("dropout", 0.0), None,
    )  # fmt: skip
    assert said in (short.unlike(call) or "")


def test_a_gpu_that_holds_too_little_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    device = torch.device("cuda")
    for room, fits in ((0, (False, False)), (100 << 10, (True, False)), (227 << 10, (True, True))):
        monkeypatch.setattr(short.gpu, "_room", lambda _, room=room: room)
        found = tuple(short.too_much(places, 64, device, trains=True) is None for places in (64, 128))
        assert found == fits
        assert (short.too_much(512, 64, device, trains=False) is None) is fits[0]
