"""A trace of any model says the notes' names, and shows the numbers that the model computed."""

import pytest
import torch

from regard.attention import MultiHead
from regard.tracing import trace
from regard.tracing.derivation import Derivation
from regard.tracing.tape import Tape
from tests.models.kinds import LABELLERS, SEQUENCES, TAGGERS, stepped, target

EVERY = SEQUENCES | TAGGERS | LABELLERS
NAMES = {
    "bahdanau": "h→_1 h←_6 H s_0 e_1 α_1 c_1 s_1 e_3 α_3 c_3 s_3 s_3.C t logits",
    "bahdanau, gru, scaled dot": "e_1 α_1 c_1 s_1 s_1.r s_1.z s_1.n",
    "bahdanau, plain cell, deeper alignment": "e_1 α_1 c_1 s_1 s_1.a s_1^1",
    "bahdanau, coverage": "e_2 α_2 c_2",
    "luong": "h→_1 s_1 e_1 α_1 c_1 s~_1 s_3 e_3 α_3 c_3 s~_3 logits",
    "luong, local-p": "p s_2 e_2 m_2 α_2 c_2 s~_2",
    "luong, no feeding": "s_1 s_3 e α c s~ logits",
    "plain, rnn": "h_1 h_6 s_1 s_1.a s_3 logits",
    "fixed": "H c logits",
    "transformer": "Q K V E M A O X cross.Q cross.K cross.V cross.E cross.A cross.O logits",
    "transformer, post": "Q K V E M A O X logits",
    "transformer, no norm, nearest": "Q K V E M A O X cross.Q cross.K cross.V cross.E cross.A cross.O logits",
    "language model, lstm": "s_1 s_3 logits",
    "captions, bahdanau": "cells e_1 α_1 c_1",
    "tagger, window": "H logits",
    "labeller, attention": "h→_1 E A O logits",
}


def traced(name: str) -> Derivation:
    kind = EVERY[name]
    model, source = kind.model(), kind.source()[:1]
    with torch.no_grad(), trace(model) as tape:
        assert isinstance(tape, Tape)
        out = model(source, target(3)[:1]) if name in SEQUENCES else model.predict(model.encode(source))
    return tape.derivation(out)


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_says_the_names_of_the_notes(name: str) -> None:
    steps = traced(name).steps
    said = {step.name.split("#")[0] for step in steps}
    # Names that stand in several layers carry the layer in front: decoder.layers.0.attention.Q.
    said |= {each.rpartition(".")[2] for each in said if each.startswith(("encoder.", "decoder.", "attention."))}
    said |= {f"cross.{each.rpartition('.')[2]}" for each in said if ".cross." in each}
    assert set(NAMES[name].split()) - said == set()


@pytest.mark.parametrize("name", EVERY)
def test_tracing_a_model_changes_nothing(name: str) -> None:
    kind = EVERY[name]
    model, source = kind.model(), kind.source()[:1]
    with torch.no_grad():
        plain = model(source, target(3)[:1]) if name in SEQUENCES else model.predict(model.encode(source))
    shown = traced(name).target.value
    within = 1e-5 + 1e-6 * float(plain.abs().max())  # without a norm numbers may be large
    torch.testing.assert_close(torch.as_tensor(shown), plain, atol=within, rtol=0)


@torch.no_grad()
def test_the_weights_in_a_trace_are_those_that_a_step_gives() -> None:
    kind = SEQUENCES["luong"]
    derivation, model = traced("luong"), kind.model()
    _, weights = stepped(model, kind.source()[:1], target(3)[:1], None)
    for place, each in enumerate(weights, start=1):
        assert each is not None
        value = torch.as_tensor(derivation[f"α_{place}"].value)
        torch.testing.assert_close(value.flatten(), each.flatten(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("plain", [True, False], ids=["scaled, with W_O", "the notes' own"])
@pytest.mark.parametrize("memory", [None, 5], ids=["self", "cross"])
@pytest.mark.parametrize("heads", [1, 2])
@torch.no_grad()
def test_attention_has_the_notes_names_with_any_number_of_heads(heads: int, memory: int | None, plain: bool) -> None:
    """With one head the split into heads moves no number: the label's name is the one that counts even so."""
    attention = MultiHead(4, heads, bias=plain, out=plain, score="scaled_dot" if plain else "dot")
    with trace(attention) as tape:
        assert isinstance(tape, Tape)
        given = None if memory is None else torch.randn(1, memory, 4)
        out = attention(torch.randn(1, 3, 4), given).output
    assert sorted(step.name for step in tape.derivation(out).steps) == ["A", "E", "K", "O", "Q", "V", "out"]
