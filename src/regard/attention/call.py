"""One call of `attend`, checked and brought into one form: what every path reads."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from regard.attention.masks import Mask
from regard.attention.normalise import Normaliser
from regard.attention.scores import Score
from regard.tracing.labels import active


@dataclass(eq=False)
class Call:
    """The arguments of one call. Key and value heads are shared out to the query's heads where they are read."""

    query: Tensor
    given_key: Tensor
    given_value: Tensor | None
    score: Score
    bias: Tensor | None
    mask: Mask | None
    normalise: Normaliser
    dropout: float
    generator: torch.Generator | None
    shape: torch.Size
    """Of the scores: [..., T, S]."""
    groups: int
    """How many query heads share a key head."""

    @property
    def widened_by_value(self) -> bool:
        """Whether the value's leading axes are more than the scores'."""
        assert self.given_value is not None
        own = self.given_value.shape[:-2]
        return any(size not in (1, there) for size, there in zip(own[::-1], self.shape[-3::-1], strict=False)) and (
            self.groups == 1
        )

    @property
    def key(self) -> Tensor:
        return self._shared(self.given_key)

    @property
    def value(self) -> Tensor | None:
        return None if self.given_value is None else self._shared(self.given_value)

    @cached_property
    def keep(self) -> Tensor | None:
        """The mask as booleans that broadcast to the scores, True = may attend."""
        return None if self.mask is None else self.mask.dense(self.shape, self.query.device)

    def without(self, rows: Tensor, seen: Tensor) -> Tensor:
        """Rows [..., n, d] with those not seen [..., n] set to 0, whatever stood in them."""
        if active() and seen.all():
            return rows  # nothing to clear: a derivation need not show it
        return (
            rows.masked_fill(~seen.unsqueeze(-1), 0.0)
            if _covers(rows, seen)
            else torch.where(seen.unsqueeze(-1), rows, 0.0)
        )

    def _shared(self, heads: Tensor) -> Tensor:
        """Query head h reads key head floor(h / groups)."""
        return heads if self.groups == 1 else heads.repeat_interleave(self.groups, -3)


def _covers(rows: Tensor, seen: Tensor) -> bool:
    """Whether `rows` has every axis of `seen`, so that masking does not widen it."""
    shape = rows.shape[:-1]
    return seen.ndim <= len(shape) and all(
        size in (1, own) for size, own in zip(reversed(seen.shape), reversed(shape), strict=False)
    )
