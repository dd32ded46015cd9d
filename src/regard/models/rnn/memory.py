"""What a recurrent decoder reads at every step, and what it hands from one step to the next.

Shape letters: B sentences, S places, R rows of hypotheses, d width of a state, D width of the memory.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention import Mask, masks, settle
from regard.models.rnn.layers import States


@dataclass(frozen=True, eq=False)
class Remembered:
    """The memory: a source that was read once. A language model has none, and holds nothing here."""

    states: Tensor | None = None
    """[B, S, D]: h_1, h_2, …"""
    keys: Tensor | None = None
    """[B, S, w]: what of the score concerns them alone, computed once; None without attention."""
    lengths: Tensor | None = None
    """[B] places that are real; None where all are."""
    first: States | None = None
    """s_0 of each layer."""
    mask: Mask | None = None
    """Of the real places, made once for all steps."""
    axes: int = 3
    """Of the scores it is for: [B, n, S], or [B, n, 1, S]."""
    alive: bool = False
    """Whether it is known that no sentence is empty: then nothing need be looked out for."""

    def select(self, index: Tensor) -> "Remembered":
        if self.states is None:
            return self
        chosen = (None if each is None else each.index_select(0, index) for each in (self.keys, self.lengths))
        keys, lengths = chosen
        first = None if self.first is None else selected(self.first, index)
        return remembered(self.states.index_select(0, index), keys, lengths, first, self.axes, self.alive)


def remembered(
    states: Tensor,
    keys: Tensor | None,
    lengths: Tensor | None,
    first: States | None,
    axes: int = 3,
    alive: bool = False,
) -> Remembered:
    """A memory with its mask; `lengths` are on the device of the states, or None where all places are real."""
    mask = None
    if keys is not None and lengths is not None and not all_real(lengths, states.shape[1]):
        shape = (len(states), *(1,) * (axes - 2), states.shape[1])
        mask = settle(masks.lengths(lengths), shape, states.device, clean=True, alive=alive)
    return Remembered(states, keys, lengths, first, mask, axes, alive)


def all_real(lengths: Tensor | None, places: int) -> bool:
    """Whether each sentence has so many places, as far as a look is free: on a GPU it would wait for all work before
    it."""
    if lengths is None or lengths.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    return bool((lengths >= places).all())


@dataclass(frozen=True, eq=False)
class Stepped:
    """The state: what the decoder has seen so far, a row a hypothesis."""

    states: States | None = None
    """s of each layer [R, d]; None: 0, before the first token of a language model."""
    fed: Tensor | None = None
    """[R, …] the attentional vector s~ of the step before, where it feeds the next; None before the first."""
    coverage: Tensor | None = None
    """[R, S] how much each place has been attended to so far, where the score reads that."""
    place: int = 0
    """How many tokens were fed."""

    def select(self, index: Tensor) -> "Stepped":
        states = None if self.states is None else selected(self.states, index)
        fed, coverage = (None if each is None else each.index_select(0, index) for each in (self.fed, self.coverage))
        return Stepped(states, fed, coverage, self.place)


def selected(states: States, index: Tensor) -> States:
    """The rows of each part of each state in another order."""
    return tuple(tuple(part.index_select(0, index) for part in state) for state in states)
