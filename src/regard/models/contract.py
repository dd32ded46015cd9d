"""What search, training and evaluation see of a model, and all that they see.

    memory = model.encode(source, lengths)           once a sentence
    state = model.start(memory)
    logits, state, weights = model.step(tokens, state, memory)          one time step
    logits = model(source, target, lengths)          all time steps at once, for training

A model keeps nothing between calls: memory and state are passed in and returned, and a state that was passed in is
consumed (its caches may grow in place).

Shape letters: B sentences, S source places, T target places, R rows of hypotheses, V vocabulary, L layers, H heads.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from torch import Tensor, nn

from regard.text.specials import END, START

if TYPE_CHECKING:
    from pathlib import Path

    from regard.config import Settings
    from regard.models.sizes import Sizes


class Memory(Protocol):
    """What the source became: B sentences, read at every step and never changed."""

    @property
    def lengths(self) -> Tensor | None:
        """[B] places of each sentence that are real; None where all are."""

    def select(self, index: Tensor) -> Self:
        """The sentences in another order, some perhaps left out (they are finished) or twice."""


class State(Protocol):
    """What the decoder has seen so far: R rows of hypotheses."""

    def select(self, index: Tensor) -> Self:
        """The rows in another order, some perhaps twice or not at all."""


class Step(NamedTuple):
    """One time step."""

    logits: Tensor
    """[R, V], or [R, len(columns)]. Whoever asked for them may write to them."""
    state: State
    weights: Tensor | None
    """[R, L, H, S]: where each layer and head looked, if it was asked for and there is any."""


class Choices(NamedTuple):
    """Places chosen by chance (hard attention), as REINFORCE learns from them; [B, T] each."""

    log_prob: Tensor
    """Of the place that was chosen: a reward times this has the gradient that makes good choices likelier."""
    entropy: Tensor
    """Of what it was drawn from."""
    baseline: Tensor
    """The reward expected from here: its squared error trains the baseline, and nothing else."""


class Taught(NamedTuple):
    """What training sees of all time steps at once."""

    logits: Tensor
    """[B, T, V]."""
    choices: Choices | None = None
    """Where the model drew any."""


class Encoded(NamedTuple):
    """A source as vectors, one for each place: what inputs and encoders give, and the plainest memory."""

    states: Tensor
    """[B, S, d]. Those behind a sentence's length are padding, and hold finite numbers."""
    lengths: Tensor | None = None
    """[B] places of each sentence that are real; None where all are."""

    def select(self, index: Tensor) -> "Encoded":
        return Encoded(self.states[index], None if self.lengths is None else self.lengths[index])


class Encoder(nn.Module, ABC):
    """Source → vectors: embeddings of words, rows of numbers or images, and the networks that read those.

    An encoder may stand on another one, its input: `source` is then what that one takes.
    """

    width: int
    """Of the vectors it gives."""

    @abstractmethod
    def forward(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        """source [B, S], [B, S, d] or [B, channels, height, width] → states [B, S', width] and their lengths."""


class Model(nn.Module):
    """What every model is: a network that knows the settings and sizes it was built from."""

    settings: "Settings"
    sizes: "Sizes"
    task: str
    """What it was built for: translate, tag, …"""

    def save(self, folder: "str | Path", **rest: Any) -> None:
        """Write a model folder, which `regard.load` reads; the rest is as for `models.folder.save_folder`."""
        from regard.models.folder import save_folder

        save_folder(folder, self, task=self.task, **rest)


class FixedStep(Protocol):
    """Steps in tensors of one shape, for a device that replays them: see `models.fixed`."""

    steps: int

    def refresh(self) -> None:
        """Take in what was made of weights that have been written to since."""

    def fill(self, memory: Any) -> None:
        """Take in the sources of a batch."""

    def step(self, tokens: Tensor, at: Tensor, came: Tensor, upto: int) -> Tensor:
        """Logits [R, V] of the step `at` [1], below `upto`; came [B, K, T]: the places of each hypothesis's tokens."""


class SequenceModel(Model, ABC):
    """A sequence out: encoder-decoders, captioners, and language models (whose memory holds nothing)."""

    vocabulary: int
    """Of the target."""
    start_token: int = START
    """Fed before the first token is known."""
    end_token: int = END
    """Says that the sequence is over."""
    longest: int | None = None
    """The most target places the model can tell apart; None is no limit."""

    @abstractmethod
    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Memory:
        """source: numbers of tokens [B, S], rows of numbers [B, S, d], or images [B, channels, height, width].

        lengths [B]: how many places of each are real; None: all.
        """

    def fixed(self, sentences: int, each: int, places: int, steps: int) -> "FixedStep | None":
        """Room for so many sentences, hypotheses each, source places and steps; None where there is no such way."""
        return None

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first token, one row for each sentence of the memory."""

    @abstractmethod
    def step(
        self,
        tokens: Tensor,
        state: State,
        memory: Memory,
        *,
        columns: Tensor | None = None,
        want_weights: bool = False,
    ) -> Step:
        """Feed one token [R] to each row; the logits are for the token after it.

        R is a multiple of B: row r belongs to sentence r // (R / B), so that the hypotheses of a beam share one
        memory. `columns` asks for some of the vocabulary only.
        """

    @abstractmethod
    def forward(
        self,
        source: Tensor,
        target: Tensor,
        lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        """Logits [B, T, V] for all steps at once: target [B, T] holds the tokens fed (the start token first),
        logits[:, t] are for the token after target[:, t]. Padding behind target_lengths changes nothing before it.
        """

    def teach(
        self,
        source: Tensor,
        target: Tensor,
        lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
        *,
        own: float | Tensor | None = None,
    ) -> Taught:
        """`forward` for training: the logits, and the choices that hard attention drew.

        own: the probability with which each token after the first is not that of the target but the likeliest of the
        step before (scheduled sampling: Bengio and others 2015); None: never. A number on the device changes from
        step to step without compiling anew. Only recurrent decoders take it.
        """
        if own is not None:
            raise ValueError(f"own: {type(self).__name__} reads the target all at once and is not fed its own words")
        return Taught(self(source, target, lengths, target_lengths))


class Tagger(Model, ABC):
    """One tag for each word."""

    @abstractmethod
    def encode(self, source: Tensor, lengths: Tensor | None = None, words: Tensor | None = None) -> Memory:
        """words [B, W]: how many tokens each word has, one word after the other, 0 where there is none; None: each
        token is a word.
        """

    @abstractmethod
    def predict(self, memory: Memory) -> Tensor:
        """Logits [B, W, tags] for the W words of each sentence."""


class Labeller(Model, ABC):
    """One label for each sequence."""

    @abstractmethod
    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Memory: ...

    @abstractmethod
    def predict(self, memory: Memory) -> Tensor:
        """Logits [B, labels]."""
