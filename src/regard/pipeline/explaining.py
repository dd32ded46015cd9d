"""How one output came about: what else was likely at each step, where it looked, and the arithmetic behind it.

told = explain(model, "A black cat.", to="es")
told.steps[0].candidates            [("Un", 0.81), ("El", 0.12), …]
told.derivation(0).html()           every number of the first step, opened

Here for models that give sequences: translations, captions, texts that go on; `explaining_answers` for tags and labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.decoding.many import Source, beside, search_many
from regard.decoding.settings import SearchSettings
from regard.evaluation.pictures.terminal import width_of
from regard.models.contract import SequenceModel
from regard.pipeline.answering import image
from regard.pipeline.hypotheses import result_of
from regard.pipeline.letters import of_text
from regard.pipeline.looking import along_columns, on_pixels
from regard.pipeline.model import Pipeline
from regard.pipeline.results import Numbers, Result
from regard.pipeline.sources import cut, target_language
from regard.support.errors import Misuse
from regard.tracing import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from regard.tracing import Derivation

Look = tuple[Numbers, tuple[str, ...], tuple[str, ...]]
"""Weights, the words that look (rows), the words or places looked at (columns)."""

CANDIDATES = 5
EMPTY = "there is nothing to explain: the text is empty"


@dataclass(frozen=True)
class Chosen:
    """One step of an output."""

    token: str
    probability: float
    rank: int
    """Among all tokens, the likeliest being 1."""
    candidates: tuple[tuple[str, float], ...]
    """The likeliest tokens at this step, given those before it, with their probabilities."""

    @property
    def others(self) -> str:
        return "  ".join(f"{name!r} {shown(share)}" for name, share in self.candidates)


def shown(share: float) -> str:
    """A probability: 12.3%, or less than 0.1%."""
    return f"{share:.1%}" if share >= 0.0005 or share == 0 else "<0.1%"


@dataclass(frozen=True, eq=False)
class Explanation:
    """An output, step by step."""

    result: Result
    steps: tuple[Chosen, ...]
    model: Pipeline
    source: Source
    """As the model takes it: tokens (with their letters, where it reads them), or an image."""
    said: list[int]
    """The tokens fed: the start, then the output's."""

    def derivation(self, step: int = 0, *, largest: int | None = None) -> "Derivation":
        """How the probabilities at a step (from 0) were computed: from the source through the encoder, and from what
        the decoder had seen so far."""
        check_step(step, len(self.steps), "the output has")
        from regard.tracing import trace

        network = self.model.sequence_model()
        with torch.no_grad():
            source, lengths, state = self._until(step)
            with trace(network, largest=largest) as tape:
                memory = network.encode(source, lengths)
                logits, _, _ = network.step(_token(self.said[step], source), state, memory, want_weights=True)
                probabilities = label(logits.softmax(-1), "p", "softmax(logits)")
        names = self.model.tokenizer("target").shown(range(network.vocabulary))
        return tape.derivation(probabilities).with_axes({"p": (None, names), "logits": (None, names)})

    def lines(self, width: int | None = None) -> str:
        """What came of it, and its steps: what was said, how likely it was, and what else was, as far as that fits a
        width."""
        result = self.result
        worth = f"log-probability {result.log_prob:.3f}, score {result.score:.3f}"
        remarks = "".join(f"\n{remark}" for remark in result.remarks)
        return f"{result.source}\n{result.text}\n\n{worth}{remarks}\n\n{lines(self, width)}"

    def look(self, layer: int | None = None, head: int | None = None) -> Look | None:
        """Where each word looked: in the source's words, or along the columns of an image; None without attention."""
        if self.result.attention is None:
            return None
        if self.model.task == "caption":
            return along_columns(self.model, self.result, self._pixels().shape[1:], layer, head)
        return self.result.attention.of_words(layer, head)

    def picture(self, layer: int | None = None, head: int | None = None) -> "Figure":
        """The same, drawn."""
        from regard.evaluation.pictures.heat import alignment
        from regard.evaluation.pictures.images import looked

        if self.model.task == "caption" and self.result.attention is not None:
            pixels = self._pixels()
            maps, said = on_pixels(self.model, self.result, *pixels.shape[1:], layer=layer, head=head)
            return looked(pixels.transpose(1, 2, 0).squeeze(), maps, said, title=self.result.text)
        if (look := self.look(layer, head)) is None:
            raise Misuse("there is no attention to draw: this model has none over a source")
        return alignment(*look, title=self.result.text)

    def title(self, step: int) -> str:
        return f"Step {step + 1} of {self.result.source} → {self.result.text}"

    def _pixels(self) -> Numbers:
        return np.asarray(self.source, np.float32)

    def _until(self, step: int) -> tuple[Tensor, Tensor, Any]:
        """The source, and what the decoder has seen before a step."""
        network = self.model.sequence_model()
        source, lengths = beside([self.source])
        device = next(each.device for each in network.parameters())
        source, lengths = source.to(device), lengths.to(device)
        memory = network.encode(source, lengths)
        state = network.start(memory)
        for token in self.said[:step]:
            _, state, _ = network.step(_token(token, source), state, memory)
        return source, lengths, state


def check_step(step: int, count: int, what: str) -> None:
    if not 0 <= step < count:
        raise Misuse(f"step: expected 1 to {count}, as many as {what}; got {step + 1}")


def explain(
    model: Pipeline,
    given: Any,
    *,
    to: str | None = None,
    settings: SearchSettings | None = None,
    candidates: int = CANDIDATES,
) -> Explanation:
    """Ask for one output and go through it again, a step at a time.

    given: a text; for captions an image or the name of its file; for a language model how its text begins.
    """
    network, tokenizer = model.sequence_model(), model.tokenizer("target")
    asked = _asked(model, given, to)
    [found] = search_many(
        network, [asked.source], settings, prefixes=asked.prefixes, want_weights=_looks(network, asked.source)
    )
    best = found[0]
    said = [*best.tokens, network.end_token][: len(best.token_scores)]
    steps = _steps(network, asked.source, said, tokenizer.shown, candidates)
    result = result_of(asked.text, asked.tokens, found, model.tokenizers.get("source"), tokenizer)
    return Explanation(result, tuple(steps), model, asked.source, [network.start_token, *best.tokens])


class _Asked(NamedTuple):
    """One source, and what it stands for."""

    text: str
    tokens: list[int]
    source: Source
    prefixes: list[list[int]] | None = None


def _asked(model: Pipeline, given: Any, to: str | None) -> _Asked:
    sizes = model.model.sizes
    if model.task == "caption" and sizes.image is not None:
        named = isinstance(given, (str, Path))
        return _Asked(str(given) if named else "image", [], image(given, sizes.image))
    if not isinstance(given, str):
        raise Misuse(f"expected text; got {type(given).__name__}")
    if model.task == "language_model":
        begun = model.tokenizer("target").encode(given, end=False)
        if len(begun) > model.longest:
            raise Misuse(f"too long: {len(begun):,} tokens, and at most {model.longest:,} are taken at once")
        return _Asked(given, [], begun or [0], [begun])
    tokenizer = model.tokenizer("source")
    language = target_language(to, tokenizer.languages, model.about)
    cutting = cut(given, model.longest, "never", lambda some: tokenizer.encode_batch(some, language=language))
    if cutting.problem or not cutting.parts:
        raise Misuse(cutting.problem or EMPTY)
    [(plain, tokens)] = [(part.text, part.tokens) for part in cutting.parts]
    return _Asked(plain, tokens, of_text(model.model, tokenizer, plain, tokens))


@torch.inference_mode()
def _steps(network: SequenceModel, given: Source, said: list[int], shown: Any, candidates: int) -> list[Chosen]:
    source, lengths = beside([given])
    device = next(each.device for each in network.parameters())
    memory = network.encode(source.to(device), lengths.to(device))
    state, fed, found = network.start(memory), network.start_token, []
    for token in said:
        logits, state, _ = network.step(_token(fed, source.to(device)), state, memory)
        probabilities = logits[0].float().softmax(-1)
        best = probabilities.topk(min(candidates, len(probabilities)))
        names = shown(best.indices.tolist())
        own = float(probabilities[token])
        rank = 1 + int((probabilities > own).sum())
        likeliest = tuple(zip(names, best.values.tolist(), strict=True))
        found.append(Chosen(shown([token])[0], own, rank, likeliest))
        fed = token
    return found


@torch.inference_mode()
def _looks(network: SequenceModel, given: Source) -> bool:
    """Whether the model has attention to show."""
    source, lengths = beside([given])
    device = next(each.device for each in network.parameters())
    memory = network.encode(source.to(device), lengths.to(device))
    start = _token(network.start_token, source.to(device))
    return network.step(start, network.start(memory), memory, want_weights=True).weights is not None


def _token(token: int, like: Tensor) -> Tensor:
    return torch.tensor([token], device=like.device)


def lines(told: Explanation, width: int | None = None) -> str:
    """The steps as lines: what was said, how likely it was, and what else was."""
    rows = [
        (str(number), each.token or "·", shown(each.probability), str(each.rank), each.others)
        for number, each in enumerate(told.steps, 1)
    ]
    return table(("step", "token", "p", "rank", "likeliest"), rows, width)


NUMBERS = ("step", "p", "rank")
"""Columns whose figures stand under one another; words and tags begin so."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Columns under one another; a terminal's columns are counted, not letters. Of the last one, what fits a width."""
    widths = [max(width_of(row[place]) for row in (head, *rows)) for place in range(len(head))]

    def line(row: Sequence[str]) -> str:
        row = [*row[:-1], _fitting(row[-1], None if width is None else width - sum(widths[:-1]) - 2 * len(head) + 2)]
        cells = [
            f"{' ' * (widths[place] - width_of(text))}{text}" if head[place] in NUMBERS
            else f"{text}{' ' * (widths[place] - width_of(text))}"
            for place, text in enumerate(row)
        ]  # fmt: skip
        return "  ".join(cells).rstrip()

    return "\n".join(map(line, (head, *rows)))


def _fitting(others: str, width: int | None) -> str:
    """As many of the likeliest as there is room for, the first in any case."""
    parts = others.split("  ")
    while width is not None and len(parts) > 1 and width_of("  ".join(parts)) > width:
        parts.pop()
    return "  ".join(parts)
