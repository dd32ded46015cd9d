"""Multi-head attention: project, split, attend, merge. Nothing is kept between calls.

    head_h = attend(X W_q^h, Y W_k^h, Y W_v^h)          output = [head_1 … head_H] W_o

Shape suffixes: B batch, H heads, T queries, S keys, d width.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.attention import normalise as normalisers
from regard.attention import scores
from regard.attention.checks import check_bias, check_dropout
from regard.attention.core import Implementation, attend
from regard.attention.masks import Mask
from regard.attention.normalise import Normaliser
from regard.attention.positions import Positions
from regard.attention.scores import Score
from regard.attention.shapes import dtype_of
from regard.tracing.labels import active, label


@dataclass(frozen=True)
class Cache:
    """Keys and values projected so far. Passing one in consumes it: its room may be written to in place."""

    key_BHSd: Tensor
    value_BHSd: Tensor
    length: int
    """How many places are filled; the room behind them is spare."""

    @property
    def key(self) -> Tensor:
        return self.key_BHSd[..., : self.length, :]

    @property
    def value(self) -> Tensor:
        return self.value_BHSd[..., : self.length, :]

    def select(self, index: Tensor) -> "Cache":
        """The sequences of the batch in another order, some perhaps twice or not at all (beams)."""
        return Cache(self._chosen(self.key_BHSd, index), self._chosen(self.value_BHSd, index), self.length)

    def _chosen(self, held: Tensor, index: Tensor) -> Tensor:
        """The filled places alone are read; there is room behind them as before, so that the next step fits in."""
        filled = held[..., : self.length, :]
        if self.length == held.shape[-2] or (torch.is_grad_enabled() and held.requires_grad):
            return filled.index_select(0, index)
        chosen = held.new_empty(len(index), *held.shape[1:])
        torch.index_select(filled, 0, index, out=chosen[..., : self.length, :])
        return chosen

    def extended(self, key: Tensor, value: Tensor) -> "Cache":
        """With further places; the room doubles when it is full, so n steps copy O(n) places in all."""
        end = self.length + key.shape[-2]
        if torch.is_grad_enabled() and any(each.requires_grad for each in (key, value, self.key_BHSd, self.value_BHSd)):
            # Writing in place would break the graph of earlier steps.
            return Cache(torch.cat([self.key, key], -2), torch.cat([self.value, value], -2), end)
        keys, values = self._room(self.key_BHSd, end), self._room(self.value_BHSd, end)
        keys[..., self.length : end, :] = key
        values[..., self.length : end, :] = value
        return Cache(keys, values, end)

    def _room(self, held: Tensor, end: int) -> Tensor:
        if end <= held.shape[-2]:
            return held
        shape = list(held.shape)
        shape[-2] = max(end, 2 * held.shape[-2], 8)
        wider = held.new_empty(shape)
        wider[..., : self.length, :] = held[..., : self.length, :]
        return wider


class Attended(NamedTuple):
    """The output, what to pass as `cache` next time, and the weights [B, H, T, S] where they were asked for."""

    output: Tensor
    cache: Cache
    weights: Tensor | None


class MultiHead(nn.Module):
    """Attention by several heads, each with projections of its own, to itself or to a memory.

    `kv_heads` below `heads` shares each key head among heads / kv_heads query heads. `key_width` is the memory's
    width where it is not the query's. `out=False` leaves W_o out: the joined heads are the output. Any score and
    any normaliser of this package may stand in.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        head_width: int | None = None,
        key_width: int | None = None,
        bias: bool = True,
        out: bool = True,
        out_bias: bool | None = None,
        score: Score | str = scores.PLAIN["scaled_dot"],
        normalise: Normaliser | str = normalisers.softmax,
        positions: Positions | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_dropout(dropout)
        self.heads, self.kv_heads = heads, heads if kv_heads is None else kv_heads
        self.head_width = _head_width(width, heads, self.kv_heads, head_width)
        memory = width if key_width is None else key_width
        self.query = nn.Linear(width, heads * self.head_width, bias)
        self.key = nn.Linear(memory, self.kv_heads * self.head_width, bias)
        self.value = nn.Linear(memory, self.kv_heads * self.head_width, bias)
        joined, out_bias = heads * self.head_width, bias if out_bias is None else out_bias
        if not out and joined != width:
            raise ValueError(f"out: without it the joined heads must have the width {width}; got {joined}")
        self.out = nn.Linear(joined, width, out_bias) if out else nn.Identity()
        if not isinstance(score, str | Score):
            raise ValueError(f"score: expected a score or the name of one; got {score!r}")
        if positions is not None and not isinstance(positions, Positions):
            raise ValueError(
                f"positions: expected some of regard.attention.positions (make one by name); got {positions!r}"
            )
        self.score = scores.make(score, self.head_width, self.head_width) if isinstance(score, str) else score
        if isinstance(self.score, scores.Coverage):
            raise ValueError(
                "score: MultiHead has nowhere to pass coverage in and out; call attend with scores.Coverage"
            )
        self.normalise = normalisers.named(normalise)
        self.positions = Positions() if positions is None else positions
        self.dropout = dropout

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
        cache: Cache | None = None,
        want_weights: bool = False,
        generator: torch.Generator | None = None,
        implementation: Implementation = "auto",
    ) -> Attended:
        """x [B, T, width], attending to itself (and to what the cache holds), or to a memory [B, S, key_width].

        A memory that is attended to many times is better projected once: `attend_to(x, project(memory))`.
        """
        if memory is not None:
            if cache is not None:
                raise ValueError("cache: holds earlier keys of x itself; a projected memory goes to attend_to")
            return self.attend_to(
                x, self.project(memory), mask=mask, bias=bias, want_weights=want_weights,
                generator=generator, implementation=implementation,
            )  # fmt: skip
        _rows("x", x, self.query)
        start = 0 if cache is None else cache.length
        query, new = self._own(x, start)
        if cache is not None and cache.key_BHSd.shape[:-2] != new.key_BHSd.shape[:-2]:
            raise ValueError(
                f"cache: holds keys of {list(cache.key_BHSd.shape[:-2])} sequences and heads, "
                f"x has {list(new.key_BHSd.shape[:-2])}"
            )
        cache = new if cache is None else cache.extended(new.key, new.value)
        return self._attended(query, cache, start, mask, bias, want_weights, generator, implementation)

    def project(self, memory: Tensor, start: int = 0) -> Cache:
        """Keys and values of a memory [B, S, key_width]: once a sentence, however many queries come."""
        _rows("memory", memory, self.key)
        key = label(self._split(self.key(memory), self.kv_heads), "K", "X W_K")
        value = label(self._split(self.value(memory), self.kv_heads), "V", "X W_V")
        return Cache(self.positions.rotate(key, start), value, memory.shape[-2])

    def attend_to(
        self,
        x: Tensor,
        cache: Cache,
        *,
        start: int = 0,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
        want_weights: bool = False,
        generator: torch.Generator | None = None,
        implementation: Implementation = "auto",
    ) -> Attended:
        """Attend from x to keys and values projected before; `start` is the place of x's first row."""
        _rows("x", x, self.query)
        query = label(self._split(self.query(x), self.heads), "Q", "X W_Q")
        return self._attended(query, cache, start, mask, bias, want_weights, generator, implementation)

    def attend_together(
        self, x: Tensor, cache: Cache | None, *, groups: int, start: int, times: Tensor, mask: Mask
    ) -> Attended:
        """One place more of each of R rows [R, 1, width] that share the caches of their groups [G, H, P, d].

        `start` is the place of all rows, `times` [P] those of the keys, which rise; the mask [G, 1, R / G, P] says
        which of a group's keys are a row's own.
        """
        _rows("x", x, self.query)
        query, new = self._own(x, start)
        query = self._beside(self.positions.rotate(query, start), groups)
        key, value = self._beside(new.key, groups), self._beside(new.value, groups)
        cache = Cache(key, value, key.shape[-2]) if cache is None else cache.extended(key, value)
        bias = self.positions.bias(1, start + 1)
        mixed = attend(
            query, cache.key, cache.value, score=self.score, mask=mask, normalise=self.normalise,
            bias=None if bias is None else bias[..., times],
        )  # fmt: skip
        return Attended(self.out(self._merged(mixed).reshape(len(x), 1, -1)), cache, None)

    def _beside(self, heads: Tensor, groups: int) -> Tensor:
        """[R, H, 1, d] → [G, H, R / G, d]."""
        return heads.reshape(groups, -1, *heads.shape[1::2]).transpose(1, 2)

    def _own(self, x: Tensor, start: int) -> tuple[Tensor, Cache]:
        """Queries, keys and values of x itself: by one product where that is worth laying the matrices side by side."""
        if active() or not self._joinable(x):
            return label(self._split(self.query(x), self.heads), "Q", "X W_Q"), self.project(x, start)
        parts = (self.query, self.key, self.value)
        matrix = torch.cat(tuple(each.weight for each in parts))
        bias = None if self.query.bias is None else torch.cat(tuple(each.bias for each in parts))
        joined = self._split(linear(x, matrix, bias), self.heads + 2 * self.kv_heads)
        query, key, value = joined.split_with_sizes((self.heads, self.kv_heads, self.kv_heads), -3)
        return query, Cache(self.positions.rotate(key, start), value, x.shape[-2])

    def _joinable(self, x: Tensor) -> bool:
        """Whether x has more rows than the matrices, and these are plain (nobody put others in their place)."""
        plain = all(type(each) is nn.Linear for each in (self.query, self.key, self.value))
        return plain and self.key.in_features == x.shape[-1] and x.shape[:-1].numel() >= x.shape[-1]

    def _attended(
        self,
        query: Tensor,
        cache: Cache,
        start: int,
        mask: Mask | Tensor | None,
        bias: Tensor | None,
        want_weights: bool,
        generator: torch.Generator | None,
        implementation: Implementation,
    ) -> Attended:
        query = self.positions.rotate(query, start)
        own = self.positions.bias(query.shape[-2], cache.length)
        if bias is not None:
            check_bias(bias, query, torch.Size((*query.shape[:-1], cache.length)))
        bias = own if bias is None else bias if own is None else bias + own
        attended = attend(
            query, cache.key, cache.value, score=self.score, mask=mask, normalise=self.normalise,
            bias=bias, dropout=self.dropout if self.training else 0.0,
            generator=generator, implementation=implementation, details=want_weights,
        )  # fmt: skip
        mixed, weights = (attended[0], attended[1].weights) if isinstance(attended, tuple) else (attended, None)
        return Attended(self.out(self._merged(mixed)), cache, weights)

    def _split(self, x: Tensor, heads: int) -> Tensor:
        return x.reshape(*x.shape[:-1], heads, self.head_width).transpose(-3, -2)

    def _merged(self, x: Tensor) -> Tensor:
        return x.transpose(-3, -2).flatten(-2)


def _rows(name: str, given: Tensor, layer: nn.Linear) -> None:
    """Vectors that a projection can take."""
    if given.ndim < 3 or given.shape[-1] != layer.in_features:
        raise ValueError(f"{name}: expected [batch, length, {layer.in_features}]; got {list(given.shape)}")
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, Tensor):
        return
    if given.device != weight.device:
        raise ValueError(f"{name}: is on {given.device}, the layer on {weight.device}")
    plain = type(layer) is nn.Linear  # another one put in its place may turn numbers into its own kind
    if plain and given.dtype != weight.dtype and not torch.is_autocast_enabled(given.device.type):
        raise ValueError(f"{name}: is {dtype_of(given)}, the layer {dtype_of(weight)}")


def _head_width(width: int, heads: int, kv_heads: int, given: int | None) -> int:
    for name, number in (("width", width), ("heads", heads), ("kv_heads", kv_heads), ("head_width", given)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise ValueError(f"{name}: expected a whole number; got {number!r}")
    if width < 1 or (given is not None and given < 1):
        raise ValueError(f"width: expected 1 or more; got {width}" + ("" if given is None else f", head_width {given}"))
    if heads < 1 or kv_heads < 1:
        raise ValueError(f"heads: expected one or more; got {heads} heads and {kv_heads} key heads")
    if heads % kv_heads:
        raise ValueError(f"kv_heads: must divide heads; got {kv_heads} for {heads}")
    if given is None and width % heads:
        raise ValueError(f"heads: must divide the width; got {heads} heads for width {width} (or set head_width)")
    return width // heads if given is None else given
