"""What a search may not say: forbidden words, repeats, an end too early, anything but the prefix asked for.

A rule only takes tokens away: it sets their logits to -inf. Probabilities stay the model's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.decoding.settings import SearchSettings
from regard.text.specials import PAD, START, UNKNOWN


@dataclass(frozen=True, eq=False)
class Rules:
    """For one call of `search`; a row r of hypotheses belongs to sentence `sentence[r]`."""

    forbidden: Sequence[Sequence[int]] = field(default_factory=tuple)
    """Token sequences that must not appear."""
    prefix: Tensor | None = None
    """[B, P]: tokens each sentence's result begins with, PAD behind the shorter ones."""
    columns: Tensor | None = None
    """[C]: the only tokens that may be chosen, rising; the model then computes no others."""

    def checked(self, sentences: int, vocabulary: int, end: int) -> "Rules":
        """Raise a ValueError where they do not fit; give the rules with the columns every search needs."""
        if self.prefix is not None and (self.prefix.ndim != 2 or self.prefix.shape[0] != sentences):
            raise ValueError(f"prefix: expected [{sentences}, tokens]; got {list(self.prefix.shape)}")
        for words in self.forbidden:
            if not words or not all(0 <= token < vocabulary for token in words):
                raise ValueError(f"forbidden: expected tokens from 0 to {vocabulary - 1}; got {list(words)}")
        if self.columns is None:
            return self
        own = [torch.tensor([end])] if self.prefix is None else [torch.tensor([end]), self.prefix[self.prefix != PAD]]
        columns = torch.unique(torch.cat([self.columns.cpu(), *(each.cpu() for each in own)]))
        if columns[0] < 0 or columns[-1] >= vocabulary:
            raise ValueError(f"columns: expected tokens from 0 to {vocabulary - 1}; got {columns.tolist()[:8]}")
        return Rules(self.forbidden, self.prefix, columns)

    def allow(
        self, logits: Tensor, so_far: Tensor, sentence: Tensor, settings: SearchSettings, places: "Places"
    ) -> Tensor:
        """The logits [R, V] after the tokens `so_far` [R, t], with what is not allowed set to -inf in place."""
        done = so_far.shape[1]
        forced = None
        if self.prefix is not None and done < self.prefix.shape[1]:
            token = self.prefix[:, done].to(sentence.device)[sentence]
            at = places.of(token).clamp(min=0).unsqueeze(-1)
            forced = token != PAD, at, logits.gather(-1, at)
        never = {PAD, START} - {places.end} | {words[0] for words in self.forbidden if len(words) == 1}
        never |= ({places.end} if done < settings.fewest else set()) | (set() if settings.unknown else {UNKNOWN})
        logits.index_fill_(-1, places.of_all(sorted(never)), -torch.inf)
        for words in self.forbidden:
            if 1 < len(words) <= done + 1:
                _forbid_last(logits, so_far, words, places)
        if 0 < settings.no_repeat <= done:
            _forbid_repeats(logits, so_far, settings.no_repeat, places)
        return logits if forced is None else _force(logits, *forced)


@dataclass(frozen=True, eq=False)
class Places:
    """Where a token's logit stands: at its own number, or among the columns."""

    columns: Tensor | None
    inverse: Tensor | None
    device: torch.device
    end: int
    """The token that ends a sequence."""

    @classmethod
    def over(cls, columns: Tensor | None, vocabulary: int, device: torch.device, end: int) -> "Places":
        if columns is None:
            return cls(None, None, device, end)
        columns = columns.to(device)
        inverse = torch.full((vocabulary,), -1, device=device)
        inverse[columns] = torch.arange(len(columns), device=device)
        return cls(columns, inverse, device, end)

    def of(self, tokens: Tensor) -> Tensor:
        """The places of tokens; -1 for one that is not among the columns."""
        return tokens if self.inverse is None else self.inverse[tokens]

    def of_all(self, tokens: Sequence[int]) -> Tensor:
        """The places of those of the tokens that have one."""
        places = self.of(torch.tensor(tokens, dtype=torch.long, device=self.device))
        return places[places >= 0]

    def tokens(self, places: Tensor) -> Tensor:
        return places if self.columns is None else self.columns[places]


def _forbid_repeats(logits: Tensor, so_far: Tensor, size: int, places: Places) -> None:
    """No `size` tokens twice: forbid what followed each earlier occurrence of the last size - 1 tokens."""
    windows = so_far.unfold(-1, size, 1)  # [R, t - size + 1, size]
    last = so_far[:, so_far.shape[1] - size + 1 :].unsqueeze(1)
    again = (windows[..., :-1] == last).all(-1)
    row, window = again.nonzero(as_tuple=True)
    place = places.of(windows[row, window, -1])
    known = place >= 0
    logits[row[known], place[known]] = -torch.inf


def _forbid_last(logits: Tensor, so_far: Tensor, words: Sequence[int], places: Places) -> None:
    """Forbid the last of the words where the others were just said."""
    *begun, last = words
    rows = (so_far[:, -len(begun) :] == torch.tensor(begun, device=so_far.device)).all(-1)
    place = places.of_all([last])
    logits[:, place] = torch.where(rows.unsqueeze(-1), -torch.inf, logits[:, place])


def _force(logits: Tensor, rows: Tensor, at: Tensor, own: Tensor) -> Tensor:
    """Only the place `at` [R, 1], with the logit it had, in some of the rows: a prefix is an explicit wish, and stands
    even where it is forbidden."""
    only = torch.full_like(logits, -torch.inf).scatter(-1, at, own)
    return torch.where(rows.unsqueeze(-1), only, logits)
