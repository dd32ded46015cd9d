"""What scaled_dot_product_attention is spared: padding that can do no harm is not written anew, and any other is."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from regard.attention import attend, explain_choice, masks, scores
from regard.attention.core import Implementation
from regard.attention.fast import sdpa
from tests.attention.paths import by_reference, by_sdpa, qkv, some

REAL = [5, 2]
WIDTH = 8
MASKS = {
    "keys": masks.lengths(REAL),
    "keys and queries": masks.lengths(REAL, queries=[3, 5]),
    "a sequence of nothing": masks.lengths([5, 0]),
    "causal as well": masks.lengths(REAL) & masks.causal(),
}


class Writes(TorchDispatchMode):
    """How often something of the width of key and value was written anew by `where`."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.count += "where" in str(func) and result.shape[-1] == WIDTH
        return result


def padded(junk: float, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Query, key and value whose padding holds this number."""
    tensors = [each.detach() for each in qkv(2, 4, 5, WIDTH, dtype=dtype)]
    for each in tensors[1:]:
        each[1, :, REAL[1] :] = junk
    return [each.requires_grad_() for each in tensors]


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("junk", [0.0, 1e6, 3e9, 1e25, 3e38, torch.inf, -torch.inf, torch.nan])
def test_whatever_stands_in_padding_changes_neither_output_nor_gradients(junk: float, mask: masks.Mask) -> None:
    clean, dirty = padded(0.0), padded(junk)
    outputs = by_reference(*clean, mask=mask), by_sdpa(*dirty, mask=mask)
    torch.testing.assert_close(outputs[1], outputs[0])
    tilt = some(*outputs[0].shape, seed=9, grad=False).float()
    truth, got = (
        torch.autograd.grad((output * tilt).sum(), inputs)
        for output, inputs in zip(outputs, (clean, dirty), strict=True)
    )
    for one, other in zip(got, truth, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("settings", "writes"),
    [
        ({"junk": 7.0}, 0),
        ({"junk": 1e30}, 2),
        ({"junk": torch.nan}, 2),
        ({"junk": 7.0, "dtype": torch.bfloat16}, 2),
        ({"junk": 7.0, "score": scores.ScaledDot(1e12)}, 2),
    ],
    ids=str,
)
def test_key_and_value_are_written_anew_only_where_padding_could_do_harm(settings: dict[str, Any], writes: int) -> None:
    tensors = padded(settings["junk"], settings.get("dtype", torch.float32))
    with torch.no_grad(), Writes() as seen:
        attend(*tensors, mask=masks.lengths(REAL), score=settings.get("score", "scaled_dot"), implementation="fused")
    assert seen.count == writes


def test_what_half_precision_would_make_endless_is_cleared_under_autocast() -> None:
    with torch.autocast("cpu", torch.float16):
        clean, dirty = (by_sdpa(*padded(junk), mask=masks.lengths(REAL)) for junk in (0.0, 1e7))
    torch.testing.assert_close(dirty, clean)


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_numbers_that_cannot_be_looked_at_are_cleared_without_a_look() -> None:
    """Under vmap a tensor has no numbers of its own."""
    clean, dirty = padded(0.0), padded(torch.nan)
    mask = masks.lengths(REAL)
    shifted = torch.vmap(lambda shift: by_sdpa(dirty[0] + shift, *dirty[1:], mask=mask))(torch.arange(2.0))
    truth = torch.stack([by_sdpa(clean[0] + shift, *clean[1:], mask=mask) for shift in (0.0, 1.0)])
    torch.testing.assert_close(shifted, truth)


SECOND = r"second derivatives need implementation='reference'"


def steepness(tensors: list[Tensor], **settings: Any) -> Tensor:
    """A number that the gradients of attend's output make: its own gradients are second derivatives."""
    loss = attend(*tensors, **settings).square().sum()
    return torch.stack([each.square().sum() for each in torch.autograd.grad(loss, tensors, create_graph=True)]).sum()


@pytest.mark.parametrize("mask", [None, masks.causal(), masks.lengths(REAL)], ids=repr)
def test_second_derivatives_are_refused_in_a_sentence_and_had_from_the_reference(mask: masks.Mask | None) -> None:
    tensors = qkv(2, 4, 5, WIDTH)
    assert SECOND in str(explain_choice(*tensors, mask=mask))
    steep = steepness(tensors, mask=mask)
    with pytest.raises(NotImplementedError, match=SECOND):
        steep.backward()
    torch.testing.assert_close(steep, steepness(tensors, mask=mask, implementation="reference"))
    small = qkv(1, 1, 3, 2)
    assert torch.autograd.gradgradcheck(lambda *given: attend(*given, implementation="reference"), small)


def test_where_pytorch_has_second_derivatives_they_are_left_alone() -> None:
    tensors = qkv(2, 4, 5, WIDTH)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        gradients = [
            torch.autograd.grad(steepness(tensors, implementation=each), tensors) for each in ("fused", "reference")
        ]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_first_derivatives_by_function_transforms_are_those_of_the_reference() -> None:
    query, key, value = (each.detach() for each in qkv(2, 4, 5, WIDTH))

    def loss(given: Tensor, implementation: Implementation) -> Tensor:
        return attend(given, key, value, implementation=implementation).square().sum()

    torch.testing.assert_close(torch.func.grad(loss)(query, "fused"), torch.func.grad(loss)(query, "reference"))


@pytest.mark.parametrize("mask", [None, masks.causal(), masks.causal("start")], ids=repr)
def test_the_call_made_most_is_answered_at_once_as_it_would_be_otherwise(
    mask: masks.Mask | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, key, value = (torch.randn(2, 3, 5, width, requires_grad=True) for width in (8, 8, 6))
    quick = attend(query, key, value, mask=mask)
    with monkeypatch.context() as patch:
        patch.setattr(sdpa, "at_once", lambda *_: None)
        patched = attend(query, key, value, mask=mask)
    assert torch.equal(quick, patched)
    assert sdpa.at_once(query, key, value, scores.ScaledDot(), mask) is not None


@pytest.mark.parametrize("changed", [
    {"key": torch.randn(2, 1, 5, 8)}, {"query": torch.randn(2, 3, 5, 8, dtype=torch.float64)}, {"score": scores.Dot()},
    {"query": torch.randn(2, 3, 4, 8), "mask": masks.causal()}, {"mask": masks.lengths([5, 2])},
    {"query": torch.randn(2, 3, 5, 7)}, {"key": torch.randn(2, 3, 0, 8), "value": torch.randn(2, 3, 0, 8)},
], ids=[
    "one head of keys", "another kind", "another score", "not square", "lengths", "another width", "no keys",
])  # fmt: skip
def test_any_other_is_looked_at_more_closely(changed: dict[str, Any]) -> None:
    given = {name: torch.randn(2, 3, 5, 8) for name in ("query", "key", "value")}
    assert sdpa.at_once(**({**given, "score": scores.ScaledDot(), "mask": None} | changed)) is None


@pytest.mark.parametrize(("wrong", "said"), [
    ({"dropout": None}, "dropout: expected a share"), ({"generator": 0}, "generator: expected a torch.Generator"),
])  # fmt: skip
def test_what_is_wrong_is_said_though_it_looks_like_nothing(wrong: dict[str, Any], said: str) -> None:
    query = torch.randn(1, 2, 3, 4)
    with pytest.raises(ValueError, match=said):
        attend(query, query, query, **wrong)
