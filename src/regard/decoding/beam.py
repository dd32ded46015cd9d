"""Beam search, all sentences and all hypotheses of a step at once.

Each step ranks the continuations of a sentence's hypotheses together. Of the best 2 K, those among the first K that
end are finished; the first K that do not end go on, so the beam never narrows.

B sentences, K hypotheses each, R = B K rows, L the longest result.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from regard.decoding.candidates import log_sum, top
from regard.decoding.lines import Finished, Lines
from regard.decoding.loops import looping
from regard.decoding.results import ENDINGS, NO_ATTENTION, NO_PROBABILITIES, Ending, Hypothesis
from regard.decoding.rules import Places, Rules
from regard.decoding.settings import SearchSettings
from regard.models.contract import Memory, SequenceModel
from regard.support.errors import Failure, Misuse

# What did not end by itself ranks behind whatever did, and a loop behind what was cut.
BEHIND: dict[Ending, float] = {"end": 0.0, "limit": 1e6, "loop": 2e6, "nothing": 0.0}


class BeamSearch:
    """One search over a batch; `results` fills as sentences are finished."""

    def __init__(
        self,
        model: SequenceModel,
        memory: Memory,
        limits: Tensor,
        settings: SearchSettings,
        rules: Rules,
        want_weights: bool,
    ) -> None:
        self.model, self.memory, self.settings, self.rules = model, memory, settings, rules
        self.want_weights = want_weights or settings.coverage_penalty > 0
        self.show_weights = want_weights
        self.limits = limits
        self.sentence = torch.arange(len(limits), device=limits.device)
        """[B]: the number of each sentence that still runs."""
        self.places = Places.over(rules.columns, model.vocabulary, limits.device, model.end_token)
        self.seen: list[Tensor] = []
        self.results: list[list[Hypothesis]] = [[] for _ in range(len(limits))]

    def run(self) -> list[list[Hypothesis]]:
        beam = self.settings.beam
        state = self.model.start(self.memory)
        tokens = torch.full_like(self.sentence, self.model.start_token)
        for done in range(int(self.limits.max())):
            step = self.model.step(
                tokens, state, self.memory, columns=self.places.columns, want_weights=self.want_weights
            )
            logits, state = step.logits.float(), step.state
            parents = torch.arange(len(self.sentence), device=tokens.device).repeat_interleave(beam)
            if done == 0:
                self._begin(logits)
                logits, state = logits[parents], state.select(parents)
            self._keep_weights(step.weights, parents if done == 0 else None)
            parent = self._advance(logits, done)
            going = self._leave(done + 1)
            if not len(self.sentence):
                break
            index = (torch.arange(len(parent), device=parent.device).unsqueeze(1) * beam + parent)[going].flatten()
            state = state.select(index) if _moved(index, len(logits)) else state
            tokens = self.lines.tokens[:, :, done].flatten()
        return self.results

    def _begin(self, logits: Tensor) -> None:
        """One hypothesis in each group: the others would be its copies."""
        sentences, beam, groups = len(self.sentence), self.settings.beam, self.settings.groups
        longest = int(self.limits.max())
        self.lines = Lines.none(sentences, beam, longest, logits)
        self.lines.score[:, :: beam // groups] = 0.0
        empty = Lines.none(sentences, beam, longest, logits)
        nothing = torch.zeros_like(empty.score, dtype=torch.long)
        self.finished = Finished(replace(empty, score=empty.score.double()), nothing, nothing, nothing[:, 0])

    def _keep_weights(self, weights: Tensor | None, rows: Tensor | None) -> None:
        """The weights of this step, to be found again by the trail."""
        if not self.want_weights:
            return
        if weights is None:
            raise Misuse(NO_ATTENTION)
        self.seen.append(weights if rows is None else weights[rows])

    def _advance(self, logits: Tensor, done: int) -> Tensor:
        """One token more for each hypothesis; the parent [B, K] of each."""
        so_far = self.lines.tokens[:, :, :done].flatten(0, 1)
        sentence = self.sentence.repeat_interleave(self.settings.beam)
        whole = log_sum(logits)
        allowed = self.rules.allow(logits, so_far, sentence, self.settings, self.places)
        parts: list[Lines] = []
        parents, each = [], self.settings.beam // self.settings.groups
        for group in range(self.settings.groups):
            lines, parent = self._advance_group(allowed, whole, done, group * each, each, parts)
            parts.append(lines)
            parents.append(parent)
        self.lines = parts[0]
        for part in parts[1:]:
            self.lines = self.lines.beside(part)
        return torch.cat(parents, 1)

    def _advance_group(
        self, allowed: Tensor, whole: Tensor, done: int, first: int, beam: int, earlier: list[Lines]
    ) -> tuple[Lines, Tensor]:
        sentences = len(self.sentence)
        allowed, whole = self._rows_of(allowed, first, beam), self._rows_of(whole, first, beam)
        wanted = min(2 * beam, allowed.shape[-1])
        values, places = top(self._diverse(allowed, done, beam, earlier), wanted)
        # Ranked by what is left after the cost of likeness, scored by the model's own probability.
        own = allowed.gather(-1, places) - whole if earlier else values - whole
        values = values - whole
        lines = self.lines.take(self._columns(first, beam))
        total = (lines.score.view(-1, 1) + values).view(sentences, beam * wanted)
        _, order = top(total, min(2 * beam, beam * wanted))
        parent = order // wanted
        token = self.places.tokens(places.view(sentences, -1).gather(1, order))
        gained = own.view(sentences, -1).gather(1, order)
        grown = lines.take(parent)
        grown = self._grown(grown, grown.score + gained, token, gained, parent + first, done)
        ends = token == self.places.end
        self._finish(grown, ends, done, beam)
        going = torch.argsort(ends.int(), dim=-1, stable=True)[:, :beam]
        live = grown.take(going)
        score = live.score.masked_fill(ends.gather(1, going), -torch.inf)
        return self._without_loops(replace(live, score=score), done), parent.gather(1, going) + first

    def _rows_of(self, numbers: Tensor, first: int, beam: int) -> Tensor:
        """The rows of one group."""
        if beam == self.settings.beam:
            return numbers
        return numbers.view(len(self.sentence), self.settings.beam, -1)[:, first : first + beam].flatten(0, 1)

    def _columns(self, first: int, beam: int) -> Tensor:
        own = torch.arange(first, first + beam, device=self.sentence.device)
        return own.expand(len(self.sentence), -1)

    def _diverse(self, allowed: Tensor, done: int, beam: int, earlier: list[Lines]) -> Tensor:
        """What earlier groups of the sentence chose at this step costs (Vijayakumar and others 2016)."""
        if not earlier:
            return allowed
        chosen = torch.cat([lines.tokens[:, :, done] for lines in earlier], 1)
        live = torch.cat([lines.score.isfinite() for lines in earlier], 1)
        cost = allowed.new_zeros(len(self.sentence), allowed.shape[-1])
        place = self.places.of(chosen).clamp(min=0)
        cost.scatter_add_(1, place, live.to(cost.dtype) * self.settings.diversity)
        return allowed - cost.repeat_interleave(beam, 0)

    def _grown(self, lines: Lines, score: Tensor, token: Tensor, gained: Tensor, parent: Tensor, done: int) -> Lines:
        lines.tokens[:, :, done] = token
        lines.token_scores[:, :, done] = gained
        lines.trail[:, :, done] = (
            torch.arange(len(parent), device=parent.device).unsqueeze(1) * self.settings.beam + parent
        )
        return replace(lines, score=score)

    def _finish(self, grown: Lines, ends: Tensor, done: int, beam: int) -> None:
        """Those among the first K that end."""
        among = ends[:, :beam]
        if among.device.type == "cpu" and not among.any():
            return
        first = grown.take(self._columns(0, min(beam, ends.shape[1])))
        self._add(first, among, done + 1, "end")

    def _add(self, lines: Lines, which: Tensor, length: int, ending: Ending) -> None:
        """Some of the hypotheses are finished, and ranked."""
        score = lines.score.double() / length**self.settings.length_penalty
        if self.settings.coverage_penalty > 0:
            score = score + self.settings.coverage_penalty * self._coverage(lines, length)
        score = torch.where(which & ~lines.score.isneginf(), score - BEHIND[ending], -torch.inf)
        self.finished = self.finished.add(replace(lines, score=score), length, ending)

    def _coverage(self, lines: Lines, length: int) -> Tensor:
        """Σ_j log min(Σ_t A_tj, 1) over the real places of the source: [B, n]."""
        shares = [self.seen[t].mean((1, 2))[lines.trail[:, :, t]] for t in range(length)]
        covered = torch.stack(shares).sum(0).clamp(min=1e-10, max=1.0).log().double()
        if self.memory.lengths is None:
            return covered.sum(-1)
        real = torch.arange(covered.shape[-1], device=covered.device) < self.memory.lengths.view(-1, 1, 1)
        return (covered * real).sum(-1)

    def _without_loops(self, live: Lines, done: int) -> Lines:
        """Hypotheses that only repeat themselves are finished, behind all that ended well."""
        if not self.settings.stop_loops:
            return live
        stuck = looping(live.tokens[:, :, : done + 1].flatten(0, 1)).view_as(live.score)
        if not stuck.any():
            return live
        self._add(live, stuck, done + 1, "loop")
        return replace(live, score=live.score.masked_fill(stuck, -torch.inf))

    def _leave(self, length: int) -> Tensor:
        """Sentences that are done leave the batch; which [B] go on."""
        at_limit = self.limits[self.sentence] <= length
        if at_limit.any():
            self._add(self.lines, at_limit.unsqueeze(1), length, "limit")
        going = ~(at_limit | self._is_done(length))
        if not going.all():
            for row in (~going).nonzero().flatten().tolist():
                self.results[int(self.sentence[row])] = self._hypotheses(row)
            self.sentence = self.sentence[going]
            self.lines, self.finished = self.lines.of(going), self.finished.of(going)
            self.memory = self.memory.select(going.nonzero().flatten())
        return going

    def _is_done(self, length: int) -> Tensor:
        """Which sentences [B] have enough, or nothing left to hope for.

        A sum of log-probabilities only falls, so the most a hypothesis that runs can come to is what it has now over
        the penalty of the kindest length still open to it.
        """
        penalty = self.settings.length_penalty
        kindest = self.limits[self.sentence].double() if penalty > 0 else torch.tensor(length + 1.0)
        hope = self.lines.score.amax(-1).double() / kindest**penalty
        settled = self.finished.lines.score[:, self.settings.nbest - 1] >= hope
        if self.settings.stop == "certain":
            return settled
        return settled | (self.finished.count >= self.settings.beam)

    def _hypotheses(self, row: int) -> list[Hypothesis]:
        found = [
            self._hypothesis(row, place)
            for place in range(self.settings.nbest)
            if not bool(self.finished.lines.score[row, place].isneginf())
        ]
        return found or [Hypothesis([], -math.inf, -math.inf, [], "nothing")]

    def _hypothesis(self, row: int, place: int) -> Hypothesis:
        lines, length = self.finished.lines, int(self.finished.length[row, place])
        ending = ENDINGS[int(self.finished.ending[row, place])]
        score = float(lines.score[row, place]) + BEHIND[ending]
        if math.isnan(score):
            raise Failure(NO_PROBABILITIES)
        tokens = lines.tokens[row, place, : length - (ending == "end")].tolist()
        scores = lines.token_scores[row, place, :length].tolist()
        trail = lines.trail[row, place, :length].tolist()
        seen = [self.seen[t][at] for t, at in enumerate(trail)] if self.show_weights else None
        return Hypothesis(tokens, score, sum(scores), scores, ending, None if seen is None else torch.stack(seen))


def _moved(index: Tensor, rows: int) -> bool:
    """Whether the rows are not simply those there are; on a GPU looking would wait."""
    if len(index) != rows:
        return True
    return index.device.type != "cpu" or not torch.equal(index, torch.arange(rows))
