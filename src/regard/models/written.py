"""What a Transformer's decoder has seen so far: keys and values, which the hypotheses of a sentence share.

A beam search reorders its hypotheses at every step. Copying their caches each time would cost more than the attention
itself; so all rows of a sentence write into one cache, and what is reordered is only where the tokens of each
hypothesis stand in it:

    key [G, H, P, d]        places of the tokens of all K rows of each group, step after step
    came [G, K, T]          at which of them each hypothesis was at each of its T steps

Shape letters: R rows, G groups of K rows each (sentences), H heads, P places, T steps.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.attention import Cache, Mask, masks, settle


@dataclass(frozen=True)
class Together:
    """How the rows of a group attend to the one cache that they share, at one step."""

    groups: int
    start: int
    """How many steps there were before."""
    times: Tensor
    """[P]: the step of each place, those that this step adds last."""
    mask: Mask
    """[G, 1, K, P]."""


@dataclass(frozen=True)
class Written:
    """The caches of each layer, and how rows share them."""

    caches: tuple[Cache, ...] = ()
    length: int = 0
    """How many tokens were fed."""
    came: Tensor | None = None
    """None: each row has a cache of its own, and place t is step t."""
    times: Tensor | None = None
    """[P], where rows share."""
    rows: Tensor | None = None
    """[R]: an order that was asked for and not carried out yet: how many sentences there are, a step alone knows."""

    def select(self, index: Tensor) -> "Written":
        return replace(self, rows=index if self.rows is None else self.rows[index])

    def settled(self, sentences: int, rows: int) -> "Written":
        """The order carried out, for so many rows of so many sentences."""
        each = rows // sentences
        if not self.caches:
            device = None if self.rows is None else self.rows.device
            none = torch.zeros(sentences, each, 0, dtype=torch.long, device=device)
            return Written(came=none, times=none[0, 0]) if each > 1 else Written()
        if self.rows is None:
            return self
        group, kept = self._groups(self.rows), self.came
        if each == 1 and kept is None:
            return replace(self, caches=self._of(group), rows=None)
        grid = group.view(sentences, each)
        if each == 1 or not bool((grid == grid[:, :1]).all()):
            return self._apart()
        came = self._came()[self.rows].view(sentences, each, -1)
        times = torch.arange(self.length, device=came.device) if self.times is None else self.times
        return Written(self._of(grid[:, 0]), self.length, came, times)

    def apart(self) -> "Written":
        """With a cache for each row."""
        if self.came is None and self.rows is None:
            return self
        return self._apart() if self.caches else Written()

    def together(self, device: torch.device, window: int | None = None) -> Together:
        """How the rows attend at the next step, `window` steps back where there is one."""
        assert self.came is not None
        assert self.times is not None
        groups, each, _ = self.came.shape
        own = torch.eye(each, dtype=torch.bool, device=device).expand(groups, -1, -1)
        before = torch.zeros(groups, each, len(self.times), dtype=torch.bool, device=device)
        before = before.scatter_(2, self.came.to(device), True)
        cells, times = torch.cat([before, own], 2).unsqueeze(1), self._times_then(each, device)
        if window is not None:
            cells = cells & (times >= self.length - window)
        mask = settle(masks.tensor(cells), cells.shape, device, clean=True, alive=True)
        return Together(groups, self.length, times, mask)

    def grown(self, caches: tuple[Cache, ...], tokens: int = 1) -> "Written":
        """After a step that left these caches."""
        if self.came is None:
            return Written(caches, self.length + tokens)
        groups, each, _ = self.came.shape
        assert self.times is not None
        device = caches[0].key_BHSd.device
        new = torch.arange(len(self.times), len(self.times) + each, device=device).view(1, each, 1)
        came = torch.cat([self.came.to(device), new.expand(groups, -1, -1)], 2)
        return Written(caches, self.length + 1, came, self._times_then(each, device))

    def _times_then(self, each: int, device: torch.device) -> Tensor:
        assert self.times is not None
        times = self.times.to(device)
        return torch.cat([times, times.new_full((each,), self.length)])

    def _groups(self, rows: Tensor) -> Tensor:
        return rows if self.came is None else rows // self.came.shape[1]

    def _came(self) -> Tensor:
        """[rows there were, T]."""
        if self.came is not None:
            return self.came.flatten(0, 1)
        own = len(self.caches[0].key_BHSd)
        device = self.caches[0].key_BHSd.device
        return torch.arange(self.length, device=device).expand(own, -1)

    def _of(self, groups: Tensor) -> tuple[Cache, ...]:
        """The caches of some of the groups; as they are where that is all of them in their order."""
        own = torch.arange(len(self.caches[0].key_BHSd), device=groups.device)
        if torch.equal(groups, own):
            return self.caches
        return tuple(each.select(groups) for each in self.caches)

    def _apart(self) -> "Written":
        """A cache for each row, copied: rows of different sentences were mixed."""
        came = self._came()
        rows = torch.arange(len(came), device=came.device) if self.rows is None else self.rows
        group, at = self._groups(rows), came[rows]
        return Written(tuple(_picked(each, group, at) for each in self.caches), self.length)


def _picked(cache: Cache, group: Tensor, at: Tensor) -> Cache:
    """The places `at` [R, T] of the groups of each row."""
    key, value = (
        held[group].gather(2, at.view(len(at), 1, -1, 1).expand(-1, held.shape[1], -1, held.shape[3]))
        for held in (cache.key, cache.value)
    )
    return Cache(key, value, at.shape[1])
