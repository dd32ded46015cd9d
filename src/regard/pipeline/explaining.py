"""How one output came about: what else was likely at each step, where it looked, and the arithmetic behind it.

told = explain(model, "A black cat.", to="es")
told.steps[0].candidates            [("Un", 0.81), ("El", 0.12), …]
told.derivation(0).html()           every number of the first step, opened
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.decoding.many import Source, beside
from regard.decoding.settings import SearchSettings
from regard.models.contract import SequenceModel
from regard.pipeline.hypotheses import result_of
from regard.pipeline.letters import of_text
from regard.pipeline.model import Pipeline
from regard.pipeline.results import Result
from regard.pipeline.sources import target_language
from regard.support.errors import Misuse
from regard.tracing import label

if TYPE_CHECKING:
    from regard.tracing import Derivation

CANDIDATES = 5


@dataclass(frozen=True)
class Chosen:
    """One step of an output."""

    token: str
    probability: float
    rank: int
    """Among all tokens, the likeliest being 1."""
    candidates: tuple[tuple[str, float], ...]
    """The likeliest tokens at this step, given those before it, with their probabilities."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """An output, step by step."""

    result: Result
    steps: tuple[Chosen, ...]
    model: Pipeline
    source: list[int]
    """The tokens of the source."""
    said: list[int]
    """The tokens fed: the start, then the output's."""

    def derivation(self, step: int = 0, *, largest: int | None = None) -> "Derivation":
        """How the probabilities at a step (from 0) were computed: from the source through the encoder, and from what
        the decoder had seen so far."""
        if not 0 <= step < len(self.steps):
            raise Misuse(f"step: expected 1 to {len(self.steps)}, as many as the output has; got {step + 1}")
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

    def _until(self, step: int) -> tuple[Tensor, Tensor, Any]:
        """The source, and what the decoder has seen before a step."""
        network = self.model.sequence_model()
        source, lengths = beside([of_text(network, self.model.tokenizer("source"), self.result.source, self.source)])
        device = next(each.device for each in network.parameters())
        source, lengths = source.to(device), lengths.to(device)
        memory = network.encode(source, lengths)
        state = network.start(memory)
        for token in self.said[:step]:
            _, state, _ = network.step(_token(token, source), state, memory)
        return source, lengths, state


def explain(
    model: Pipeline,
    text: str,
    *,
    to: str | None = None,
    settings: SearchSettings | None = None,
    candidates: int = CANDIDATES,
) -> Explanation:
    """Translate one text and go through the output again, a step at a time."""
    network, tokenizer = model.sequence_model(), model.tokenizer("target")
    source_tokenizer = model.tokenizer("source")
    language = target_language(to, source_tokenizer.languages, model.about)
    plain = text.strip()
    tokens = source_tokenizer.encode(plain, language=language)
    if not plain or len(tokens) > model.longest:
        raise Misuse(f"text: expected one of 1 to {model.longest} tokens; got {len(tokens) if plain else 0}")
    from regard.decoding.many import search_many

    given = of_text(network, source_tokenizer, plain, tokens)
    [found] = search_many(network, [given], settings, want_weights=_looks(network, given))
    best = found[0]
    said = [*best.tokens, network.end_token][: len(best.token_scores)]
    steps = _steps(network, given, said, tokenizer.shown, candidates)
    result = result_of(plain, tokens, found, source_tokenizer, tokenizer)
    return Explanation(result, tuple(steps), model, tokens, [network.start_token, *best.tokens])


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


def lines(told: Explanation) -> str:
    """The steps as lines: what was said, how likely it was, and what else was."""
    rows = [
        (str(number), each.token or "·", f"{each.probability:.1%}", str(each.rank), _others(each))
        for number, each in enumerate(told.steps, 1)
    ]
    head = ("step", "token", "p", "rank", "likeliest")
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(4)]
    return "\n".join(
        f"{row[0]:>{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}  {row[4]}"
        for row in (head, *rows)
    )


def _others(step: Chosen) -> str:
    return "  ".join(f"{name!r} {share:.1%}" for name, share in step.candidates)
