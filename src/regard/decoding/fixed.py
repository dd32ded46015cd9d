"""Beam search in tensors that never change their shape: on a GPU a step is one replayed CUDA graph.

The same search as `beam`, in another form. All sentences stay to the end, settled ones only change nothing any more;
nothing asks the device for a number but every eighth step, whether all are settled. Tokens are not moved about: each
step writes down which hypothesis each came from, and results are read backwards along that at the end.

Shape letters: B sentences, K hypotheses each, R = B K rows, V vocabulary, T steps.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from regard.decoding.beam import BEHIND
from regard.decoding.candidates import CHUNK
from regard.decoding.repeating import FEWEST_TIMES, FEWEST_TOKENS, LONGEST_PERIOD
from regard.decoding.results import ENDINGS, NO_PROBABILITIES, Ending, Hypothesis
from regard.decoding.rules import Rules
from regard.decoding.settings import SearchSettings
from regard.models.contract import FixedStep, Memory, SequenceModel
from regard.support.errors import Failure
from regard.text.specials import PAD, START, UNKNOWN

STRETCH = 8
"""Steps of a graph: keys are read as far as the end of the stretch, and then it is asked whether all are settled."""
KEPT = 12
"""Shapes that are kept ready for a model."""


def obstacle(settings: SearchSettings, rules: Rules, want_weights: bool) -> str | None:
    """What this form of search cannot do, in words; None where it can."""
    asked = {
        "sampling": settings.sample, "diverse groups": settings.groups > 1, "attention": want_weights,
        "a coverage penalty": settings.coverage_penalty > 0, "no_repeat": settings.no_repeat > 0,
        "forbidden words": bool(rules.forbidden), "a prefix": rules.prefix is not None,
        "a vocabulary map": rules.columns is not None,
    }  # fmt: skip
    return next((name for name, wanted in asked.items() if wanted), None)


@dataclass(frozen=True)
class Shape:
    """The room of one search."""

    sentences: int
    each: int
    places: int
    steps: int

    @classmethod
    def around(cls, sentences: int, each: int, places: int, steps: int) -> "Shape":
        """Rounded up, so that few shapes serve all batches."""
        return cls(
            1 << max(0, sentences - 1).bit_length(),
            each,
            -(-places // 16) * 16,
            -(-steps // (2 * STRETCH)) * 2 * STRETCH,
        )


_READY: "WeakKeyDictionary[SequenceModel, OrderedDict[Any, FixedBeam]]" = WeakKeyDictionary()


def ready(model: SequenceModel, shape: Shape, settings: SearchSettings) -> "FixedBeam | None":
    """A search of this shape, made when it is asked for first and kept; None where the model has no fixed steps."""
    kept = _READY.setdefault(model, OrderedDict())
    where, written = _weights(model)
    key = shape, settings, (where, _kind(model))
    if key not in kept:
        steps = model.fixed(shape.sentences, shape.each, shape.places, shape.steps)
        if steps is None:
            return None
        for old in [each for each in kept if each[2][0] != where]:  # the model was moved
            del kept[old]
        kept[key] = FixedBeam(model, steps, shape, settings, written)
        if len(kept) > KEPT:
            kept.popitem(last=False)
    kept.move_to_end(key)
    if kept[key].written != written:  # trained on, in the same place
        kept[key].decoder.refresh()
        kept[key].written = written
    return kept[key]


def _weights(model: SequenceModel) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where the weights are, and how often they were written to."""
    each = list(model.parameters())
    return tuple(one.data_ptr() for one in each), tuple(0 if one.is_inference() else one._version for one in each)


def _kind(model: SequenceModel) -> torch.dtype | None:
    """What products are rounded to here, where that is not what the weights are of."""
    kind = next((each.device.type for each in model.parameters()), "cpu")
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None


class FixedBeam:
    """Room for a search and the graphs of its steps; used again for one batch after another."""

    def __init__(
        self,
        model: SequenceModel,
        decoder: FixedStep,
        shape: Shape,
        settings: SearchSettings,
        written: tuple[int, ...] = (),
    ) -> None:
        self.decoder, self.shape, self.settings, self.written = decoder, shape, settings, written
        self.device = next(each.device for each in model.parameters())
        self.start, self.end, self.vocabulary = model.start_token, model.end_token, model.vocabulary
        sentences, beam, steps = shape.sentences, shape.each, shape.steps
        never = {PAD, START} - {self.end} | (set() if settings.unknown else {UNKNOWN})
        self.never = torch.tensor(sorted(never), device=self.device)
        self.at = self._numbers(1)
        self.fed = self._numbers(sentences * beam)
        self.came, self.said = self._numbers(sentences, beam, steps), self._numbers(sentences, beam, steps)
        self.score = torch.zeros(sentences, beam, device=self.device)
        self.tokens, self.parents = self._numbers(steps, sentences, beam), self._numbers(steps, sentences, beam)
        self.gains = torch.zeros(steps, sentences, beam, device=self.device)
        self.best = torch.zeros(sentences, beam, dtype=torch.float64, device=self.device)
        """What the finished ones are ranked by, best first."""
        self.length, self.origin = self._numbers(sentences, beam), self._numbers(sentences, beam)
        self.ending, self.last = self._numbers(sentences, beam), torch.zeros(sentences, beam, device=self.device)
        self.count, self.limits = self._numbers(sentences), self._numbers(sentences)
        self.settled = torch.zeros(sentences, dtype=torch.bool, device=self.device)
        self.graphs: dict[int, Any] = {}
        self.used = 0

    def _numbers(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.long, device=self.device)

    def run(self, memory: Memory, limits: Tensor) -> list[list[Hypothesis]]:
        """Each sentence's results, best first; fewer sentences than there is room for leave the rest settled."""
        self.used += 1
        if self.device.type == "cuda" and self.used == 2:
            self._capture(int(limits.max()))
        self._reset(limits)
        self.decoder.fill(memory)
        for step in range(int(limits.max())):
            stretch = self._stretch(step)
            if stretch in self.graphs:
                self.graphs[stretch].replay()
            else:
                self._step(stretch)
            if (step + 1) % STRETCH == 0 and bool(self.settled.all()):
                break
        return self._results(len(limits))

    def _stretch(self, step: int) -> int:
        """Up to which step the keys are read."""
        return min((step // STRETCH + 1) * STRETCH, self.shape.steps)

    def _reset(self, limits: Tensor) -> None:
        for each in (self.at, self.said, self.tokens, self.parents, self.gains, self.length, self.origin, self.ending):
            each.zero_()
        for each in (self.last, self.count, self.limits):
            each.zero_()
        self.fed.fill_(self.start)
        self.came.fill_(self.shape.steps * self.shape.each)
        self.score.fill_(-torch.inf)
        self.score[:, 0] = 0.0
        self.best.fill_(-torch.inf)
        self.settled.fill_(True)
        self.settled[: len(limits)] = False
        self.limits[: len(limits)] = limits

    def _capture(self, steps: int) -> None:
        """Record a graph for each stretch; what that leaves in the tensors a reset puts right."""
        stream: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        pool = None
        with torch.cuda.stream(stream):
            for stretch in range(STRETCH, self._stretch(steps - 1) + 1, STRETCH):
                self.at.zero_()
                self._step(stretch)  # what is set up at a first call is no part of a graph
        torch.cuda.current_stream().wait_stream(stream)
        for stretch in range(STRETCH, self._stretch(steps - 1) + 1, STRETCH):
            self.at.zero_()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                self._step(stretch)
            pool = graph.pool() if pool is None else pool
            self.graphs[stretch] = graph

    def _step(self, upto: int) -> None:
        """One token more for every hypothesis; nothing here depends on a number that the device would have to tell."""
        sentences, beam = self.shape.sentences, self.shape.each
        wanted = min(2 * beam, self.vocabulary)
        own = self.at * beam + torch.arange(beam, device=self.device)
        self.came.index_copy_(2, self.at, own.view(1, beam, 1).expand(sentences, -1, -1))
        logits = self.decoder.step(self.fed, self.at, self.came, upto)
        values, places = self._likeliest(torch.log_softmax(logits, -1, dtype=torch.float32), wanted)
        total = (self.score.view(-1, 1) + values).view(sentences, -1)
        total, order = total.topk(min(2 * beam, beam * wanted), -1)
        parent, token = order // wanted, places.view(sentences, -1).gather(1, order)
        gained = values.view(sentences, -1).gather(1, order)
        ends = token == self.end
        self._finish(total[:, :beam], ends[:, :beam], self.at + 1, parent[:, :beam], gained[:, :beam], "end")
        going = torch.argsort(ends.int(), dim=-1, stable=True)[:, :beam]
        parent, token, gained = parent.gather(1, going), token.gather(1, going), gained.gather(1, going)
        score = total.gather(1, going).masked_fill(ends.gather(1, going), -torch.inf)
        self._write(parent, token, gained)
        score = self._without_loops(score)
        self.score.copy_(score)
        self.fed.copy_(token.view(-1))
        self.at.add_(1)
        self._settle(score)

    def _likeliest(self, values: Tensor, wanted: int) -> tuple[Tensor, Tensor]:
        """The best of what may be said: first the parts of the vocabulary that hold them, then those themselves."""
        values.index_fill_(-1, self.never, -torch.inf)
        if self.settings.fewest:
            early = torch.where(self.at < self.settings.fewest, -torch.inf, 0.0)
            values[:, self.end] += early
        rows, size = values.shape
        chunks = size // CHUNK
        if size % CHUNK or chunks < 4 * wanted:
            found = values.topk(wanted, -1)
            return found.values, found.indices
        parts = values.view(rows, chunks, CHUNK)
        chosen = parts.amax(-1).topk(wanted, -1).indices
        inside = parts.gather(1, chosen.unsqueeze(-1).expand(-1, -1, CHUNK)).view(rows, -1)
        places = (chosen.unsqueeze(-1) * CHUNK + torch.arange(CHUNK, device=self.device)).view(rows, -1)
        best, index = inside.topk(wanted, -1)
        return best, places.gather(-1, index)

    def _write(self, parent: Tensor, token: Tensor, gained: Tensor) -> None:
        """Down what was chosen, and what each hypothesis has said and where that stands."""
        wide = parent.unsqueeze(-1).expand(-1, -1, self.shape.steps)
        self.came.copy_(self.came.gather(1, wide))
        self.said.copy_(self.said.gather(1, wide))
        self.said.index_copy_(2, self.at, token.unsqueeze(-1))
        self.tokens.index_copy_(0, self.at, token.unsqueeze(0))
        self.parents.index_copy_(0, self.at, parent.unsqueeze(0))
        self.gains.index_copy_(0, self.at, gained.unsqueeze(0))

    def _finish(
        self, total: Tensor, which: Tensor, length: Tensor, origin: Tensor, last: Tensor, ending: Ending
    ) -> None:
        """Some hypotheses [B, K] have ended: the best K of all that have are kept, of sentences that still run."""
        ranked = total.double() / length.double() ** self.settings.length_penalty - BEHIND[ending]
        new = which & ~total.isneginf() & ~self.settled.unsqueeze(1)
        ranked = torch.where(new, ranked, -torch.inf)
        joined = torch.cat([self.best, ranked], 1)
        best, order = joined.topk(self.best.shape[1], -1)
        kind = torch.full_like(origin, ENDINGS.index(ending))
        pairs = (self.length, length.expand_as(origin)), (self.origin, origin), (self.ending, kind), (self.last, last)
        for held, further in pairs:
            held.copy_(torch.cat([held, further], 1).gather(1, order))
        self.best.copy_(best)
        if ending != "limit":
            self.count.add_(new.sum(-1))

    def _without_loops(self, score: Tensor) -> Tensor:
        """Hypotheses that only repeat themselves have ended, behind all that ended well (see `loops`)."""
        longest = max(FEWEST_TOKENS, FEWEST_TIMES * LONGEST_PERIOD)
        if not self.settings.stop_loops or self.shape.steps < FEWEST_TOKENS:
            return score
        done = self.at + 1
        at = (done - longest + torch.arange(longest, device=self.device)).clamp(min=0)
        tail = self.said.index_select(2, at)
        stuck = torch.zeros_like(score, dtype=torch.bool)
        for period in range(1, LONGEST_PERIOD + 1):
            stretch = max(FEWEST_TOKENS, FEWEST_TIMES * period)
            same = (tail[..., longest - stretch + period :] == tail[..., longest - stretch : longest - period]).all(-1)
            stuck |= same & (done >= stretch)
        own = torch.arange(self.shape.each, device=self.device).expand_as(self.origin)
        self._finish(score, stuck, done, own, torch.zeros_like(score), "loop")
        return score.masked_fill(stuck, -torch.inf)

    def _settle(self, score: Tensor) -> None:
        """Sentences that are at their limit, or have enough (see `beam`), change no more."""
        at_limit = self.limits <= self.at
        own = torch.arange(self.shape.each, device=self.device).expand_as(self.origin)
        self._finish(score, at_limit.unsqueeze(1), self.at, own, torch.zeros_like(score), "limit")
        penalty = self.settings.length_penalty
        kindest = self.limits.double() if penalty > 0 else (self.at + 1).double()
        enough = self.best[:, self.settings.nbest - 1] >= score.amax(-1).double() / kindest**penalty
        if self.settings.stop == "enough":
            enough = enough | (self.count >= self.shape.each)
        self.settled.logical_or_(at_limit | enough)

    def _results(self, sentences: int) -> list[list[Hypothesis]]:
        nbest = self.settings.nbest
        held = (self.best, self.length, self.origin, self.ending, self.last)
        best, length, origin, ending, last = (each[:sentences, :nbest].cpu().numpy() for each in held)
        if np.isnan(self.score[:sentences].cpu().numpy()).any() or np.isnan(best).any():
            raise Failure(NO_PROBABILITIES)
        ended = ending == ENDINGS.index("end")
        steps = int(max(length.max(initial=0), 1))
        token, parent, gain = (
            each[:steps, :sentences].cpu().numpy() for each in (self.tokens, self.parents, self.gains)
        )
        said, gained = (each.tolist() for each in _backwards(token, parent, gain, length - ended, origin))
        facts = zip(best.tolist(), length.tolist(), ending.tolist(), last.tolist(), strict=True)
        return [
            [
                _hypothesis(*fact)
                for fact in zip(said[row], gained[row], *several, strict=True)
                if fact[2] != -math.inf
            ] or [Hypothesis([], -math.inf, -math.inf, [], "nothing")]
            for row, several in enumerate(facts)
        ]  # fmt: skip


def _hypothesis(
    tokens: list[int], gains: list[float], best: float, length: int, ending: int, last: float
) -> Hypothesis:
    kind = ENDINGS[ending]
    said = length - (kind == "end")
    scores = gains[:said] + ([last] if kind == "end" else [])
    return Hypothesis(tokens[:said], best + BEHIND[kind], sum(scores), scores, kind)


def _backwards(tokens: Any, parents: Any, gains: Any, length: Any, origin: Any) -> tuple[Any, Any]:
    """What hypotheses [B, n] said, read from their last step to their first: [B, n, T] each."""
    steps, sentences = tokens.shape[:2]
    said = np.zeros((*length.shape, steps), np.int64)
    gained = np.zeros((*length.shape, steps), np.float32)
    rows, here = np.arange(sentences)[:, None], origin.copy()
    for step in range(steps - 1, -1, -1):
        inside = length > step
        said[..., step] = np.where(inside, tokens[step][rows, here], 0)
        gained[..., step] = np.where(inside, gains[step][rows, here], 0.0)
        here = np.where(inside, parents[step][rows, here], here)
    return said, gained
