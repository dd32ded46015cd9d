"""The one table that picks a path: which, why, and what stands in the way of the others."""

import re

import pytest
import torch

from regard.attention import attend, explain_choice, masks, normalise, scores, weigh
from regard.attention.scores import named
from regard.tracing import labels
from tests.attention.paths import qkv, some

Q, K, V = (each.detach() for each in qkv(2, 4, 3, 8))

SERVED = {
    "plain": {},
    "dot": {"score": "dot"},
    "cosine": {"score": "cosine"},
    "general": {"score": scores.General(some(8, 8))},
    "causal": {"mask": masks.causal()},
    "lengths": {"mask": masks.lengths([1, 2]) & masks.window(1, 1)},
    "cells": {"mask": torch.ones(3, 3, dtype=torch.bool)},
    "bias": {"bias": torch.zeros(3, 3)},
    "dropout": {"dropout": 0.1},
    "softmax, made again": {"normalise": normalise.softmax()},
}
REFUSED = {
    "additive": (
        {"score": scores.Additive.of(8, 8, 4).double()},
        "sdpa: the score 'additive' is no product of vectors",
    ),
    "sparsemax": ({"normalise": "sparsemax"}, "sdpa: it normalises by softmax, not by sparsemax"),
    "sample": ({"normalise": "sample"}, "sdpa: it normalises by softmax, not by sample"),
    "generator": ({"dropout": 0.1, "generator": torch.Generator()}, "sdpa: its dropout takes no generator"),
    "nothing": ({"key": K[:, :, :0], "value": V[:, :, :0]}, "sdpa: there is nothing to compute"),
    "wide value": ({"value": V[:, None]}, "sdpa: the value has leading axes that query and key do not have"),
    "wide batch": (
        {"query": Q[:1], "key": K[:1, :2], "value": V[:, :2]},
        "sdpa: the value has leading axes that query and key do not have",
    ),
}


@pytest.mark.parametrize("settings", SERVED.values(), ids=SERVED)
def test_products_of_vectors_under_a_softmax_take_the_fast_path(settings: dict[str, object]) -> None:
    choice = explain_choice(Q, K, V, **settings)
    name = named(settings.get("score", "scaled_dot")).name
    assert choice.path == "sdpa"
    assert str(choice).splitlines() == [
        "sdpa: gives the same answer for this call, faster (second derivatives need implementation='reference')",
        "not short: its kernels run on a GPU only",
        "not flex: it runs on a GPU only",
        "not additive: its kernels run on a GPU only",
        f"not additive_cpu: the score {name!r} is no sum under a tanh",
    ]  # fmt: skip


@pytest.mark.parametrize(("settings", "says"), REFUSED.values(), ids=REFUSED)
def test_everything_else_takes_the_reference_and_an_explicit_wish_says_why_not(
    settings: dict[str, object], says: str
) -> None:
    settings = {"query": Q, "key": K, "value": V, **settings}
    choice = explain_choice(**settings)
    assert choice.path == "reference"
    assert choice.why == "no fused path can serve this call"
    assert f"not {says}" in str(choice)
    attend(**settings)
    message = (
        "implementation='fused': no fused path can serve this call (short: its kernels run on a GPU only; "
        f"flex: it runs on a GPU only; {says}; additive: "
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        attend(**settings, implementation="fused")


def test_no_fused_path_hands_out_weights() -> None:
    assert explain_choice(Q, K).obstacles["sdpa"] == "it does not hand out weights"
    with pytest.raises(ValueError, match="sdpa: it does not hand out weights"):
        weigh(Q, K, implementation="fused")


def test_the_reference_is_taken_where_it_is_asked_for() -> None:
    assert str(explain_choice(Q, K, V, implementation="reference")).startswith("reference: asked for")


def test_while_a_derivation_is_recorded_auto_takes_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    class Names:
        def __init__(self) -> None:
            self.seen: list[str] = []

        def name(self, tensor: torch.Tensor, name: str, formula: str) -> None:
            self.seen.append(f"{name} = {formula}")

    tape = Names()
    monkeypatch.setattr(labels, "recorders", [tape])
    assert explain_choice(Q, K, V).why == "a derivation is being recorded, and only this path shows every step"
    attend(Q, K, V, mask=masks.causal(), bias=torch.zeros(3, 3))
    assert tape.seen == ["E = Q Kᵀ / √d + bias", "M = mask(E, causal())", "A = softmax(M)", "O = A V"]
    assert explain_choice(Q, K, V, implementation="fused").path == "sdpa"


@pytest.mark.parametrize("mask", [None, masks.causal(), masks.lengths([2, 3])], ids=repr)
def test_a_recorded_call_gives_the_answer_of_an_unrecorded_one(
    monkeypatch: pytest.MonkeyPatch, mask: masks.Mask | None
) -> None:
    plain = attend(Q, K, V, mask=mask, implementation="reference")
    monkeypatch.setattr(labels, "recorders", [type("Tape", (), {"name": lambda *_: None})()])
    assert torch.equal(attend(Q, K, V, mask=mask), plain)
