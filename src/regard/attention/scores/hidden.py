"""Scores with a hidden layer, and the one from the query alone: additive, concat, location.

Rows are vectors, as in the notes (q = x W), so matrices multiply from the right.
Shape letters: T queries, S keys, d width of a query or key, w width of the hidden layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.attention.scores.base import Score, alike, fits, hold, made, made_vector, matrix, vector


class Additive(nn.Module, Score):
    """e_ij = v · tanh(q_i W_q + k_j W_k + b) (Bahdanau, Cho and Bengio 2015): W_q [d_q, w], W_k [d_k, w], v [w].

    In the paper's letters W_q is W (or W_a), W_k is U, each transposed. `W_k=None` takes keys that were
    multiplied already: a decoder does that once a sentence, not once a step (`project`). The alignment network
    may be deeper: `hidden` holds further layers, (W [w, w'], b [w']), each followed by a tanh.
    """

    name = "additive"
    formula = "v · tanh(Q W_q + K W_k + b)"
    W_q: Tensor | None
    W_k: Tensor | None
    v: Tensor
    b: Tensor | None

    def __init__(
        self,
        W_q: Tensor | None,
        W_k: Tensor | None,
        v: Tensor,
        b: Tensor | None = None,
        hidden: Sequence[tuple[Tensor, Tensor | None]] = (),
    ) -> None:
        super().__init__()
        hold(self, W_q=None if W_q is None else matrix("additive", "W_q", W_q))
        hold(self, W_k=None if W_k is None else matrix("additive", "W_k", W_k))
        hold(self, v=vector("additive", "v", v), b=None if b is None else vector("additive", "b", b))
        self.depth = 1 + len(hidden)
        for layer, (W, bias) in enumerate(hidden, start=2):
            bias = None if bias is None else vector("additive", f"b_{layer}", bias)
            hold(self, **{f"W_{layer}": matrix("additive", f"W_{layer}", W), f"b_{layer}": bias})
        self._check_chain()
        alike("additive", "v", v=v, W_q=W_q, W_k=W_k, b=b)
        for layer, (W, bias) in enumerate(hidden, start=2):
            alike("additive", "v", v=v, **{f"W_{layer}": W, f"b_{layer}": bias})

    def _check_chain(self) -> None:
        """Each layer must lead to the next, and the last to v."""
        next_name, next_layer = "v", self.v
        for layer in range(self.depth, 0, -1):
            for name in (f"W_{layer}", f"b_{layer}") if layer > 1 else ("W_q", "W_k", "b"):
                own = getattr(self, name)
                if own is not None and own.shape[-1] != next_layer.shape[0]:
                    raise ValueError(
                        f"additive: {name} {list(own.shape)} does not lead to {next_name} {list(next_layer.shape)}"
                    )
            next_name, next_layer = f"W_{layer}", getattr(self, f"W_{layer}", self.v)

    @classmethod
    def of(cls, d_q: int, d_k: int, width: int, depth: int = 1, bias: bool = True) -> "Additive":
        """Its own parameters, made the way nn.Linear makes them."""
        first = made_vector(d_q + d_k, width) if bias else None
        deeper = [(made(width, width), made_vector(width, width) if bias else None) for _ in range(depth - 1)]
        return cls(made(d_q, width), made(d_k, width), made_vector(width, width), first, deeper)

    @property
    def width(self) -> int:
        """Of the first hidden layer, w."""
        return self._second()[1].shape[0]

    def project(self, key: Tensor) -> Tensor:
        """k W_k, for `projected`."""
        return key if self.W_k is None else key @ self.W_k

    @property
    def projected(self) -> "ProjectedAdditive":
        """This score for keys that `project` has multiplied already; the parameters are shared."""
        return ProjectedAdditive(self)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return self.mix(query, self.project(key))

    def mix(self, query: Tensor, projected: Tensor, feature: Tensor | None = None) -> Tensor:
        """The score from a query and keys already projected; `feature` [..., T or 1, S, w] adds to the sum."""
        left = query if self.W_q is None else query @ self.W_q
        left = left if self.b is None else left + self.b
        total = left.unsqueeze(-2) + projected.unsqueeze(-3)
        hidden = torch.tanh(total if feature is None else total + feature)
        for layer in range(2, self.depth + 1):
            bias = getattr(self, f"b_{layer}")
            hidden = hidden @ getattr(self, f"W_{layer}")
            hidden = torch.tanh(hidden if bias is None else hidden + bias)
        return hidden @ self.v

    def check(self, query: Tensor, key: Tensor) -> None:
        fits("additive", "query", query, *self._taking("W_q"))
        fits("additive", "key", key, *self._taking("W_k"))

    def check_projected(self, query: Tensor, key: Tensor) -> None:
        """The same, for keys that were multiplied by W_k before."""
        fits("additive", "query", query, *self._taking("W_q"))
        if key.shape[-1] != self.width:
            raise ValueError(f"additive: projected keys must have width {self.width}; got {key.shape[-1]}")

    def _taking(self, name: str) -> tuple[str, Tensor]:
        """The matrix that takes the query or key: without one they arrive in the width of the next."""
        own = getattr(self, name)
        return self._second() if own is None else (name, own)

    def _second(self) -> tuple[str, Tensor]:
        name = "v" if self.depth == 1 else "W_2"
        return name, getattr(self, name)


@dataclass(frozen=True)
class ProjectedAdditive(Score):
    """An additive score for keys that were multiplied by W_k before."""

    name = "additive"
    formula = Additive.formula
    of: Additive

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return self.of.mix(query, key)

    def check(self, query: Tensor, key: Tensor) -> None:
        self.of.check_projected(query, key)


class Concat(nn.Module, Score):
    """e_ij = v · tanh([q_i; k_j] W) (Luong, Pham and Manning 2015): W [d_q + d_k, w], v [w]."""

    name = "concat"
    formula = "v · tanh([Q; K] W)"
    W: Tensor
    v: Tensor

    def __init__(self, W: Tensor, v: Tensor) -> None:
        super().__init__()
        hold(self, W=matrix("concat", "W", W), v=vector("concat", "v", v))
        if W.shape[1] != v.shape[0]:
            raise ValueError(f"concat: W {list(W.shape)} does not lead to v {list(v.shape)}")
        alike("concat", "W", W=W, v=v)

    @classmethod
    def of(cls, d_q: int, d_k: int, width: int) -> "Concat":
        return cls(made(d_q + d_k, width), made_vector(width, width))

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return self.mix(query, key @ self.W[query.shape[-1] :])

    def mix(self, query: Tensor, projected: Tensor) -> Tensor:
        """The score from a query and keys already multiplied by their rows of W."""
        # [q; k] W = q W_above + k W_below: the pairs are never joined.
        pairs = (query @ self.W[: query.shape[-1]]).unsqueeze(-2) + projected.unsqueeze(-3)
        return torch.tanh(pairs) @ self.v

    def project(self, key: Tensor) -> Tensor:
        """k W_below, for `projected`."""
        return key @ self.W[-key.shape[-1] :]

    @property
    def projected(self) -> "ProjectedConcat":
        return ProjectedConcat(self)

    def check(self, query: Tensor, key: Tensor) -> None:
        joined = query.shape[-1] + key.shape[-1]
        if joined != self.W.shape[0]:
            raise ValueError(
                f"concat: query and key joined have width {query.shape[-1]} + {key.shape[-1]} = {joined}, "
                f"W takes {self.W.shape[0]}"
            )
        fits("concat", "query", query, "W", self.W[: query.shape[-1]])


@dataclass(frozen=True)
class ProjectedConcat(Score):
    """A concat score for keys that were multiplied by their rows of W before."""

    name = "concat"
    formula = Concat.formula
    of: Concat

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return self.of.mix(query, key)

    def check(self, query: Tensor, key: Tensor) -> None:
        fits("concat", "query", query, "W", self.of.W[: query.shape[-1]])
        if key.shape[-1] != self.of.v.shape[0]:
            raise ValueError(f"concat: projected keys must have width {self.of.v.shape[0]}; got {key.shape[-1]}")


class Location(nn.Module, Score):
    """e_i = q_i W, from the query alone (Luong's location): W [d_q, places], cut to the keys there are."""

    name = "location"
    formula = "Q W"
    W: Tensor

    def __init__(self, W: Tensor) -> None:
        super().__init__()
        hold(self, W=matrix("location", "W", W))

    @classmethod
    def of(cls, d_q: int, places: int) -> "Location":
        return cls(made(d_q, places))

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        scores = query @ self.W[:, : key.shape[-2]]
        # The keys have no say in the numbers, but in the shape: one set for each sequence of theirs.
        leading = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])  # type: ignore[no-untyped-call]
        return scores.expand(*leading, *scores.shape[-2:])

    def check(self, query: Tensor, key: Tensor) -> None:
        fits("location", "query", query, "W", self.W)
        if key.shape[-2] > self.W.shape[1]:
            raise ValueError(
                f"location: {key.shape[-2]} keys, but W {list(self.W.shape)} knows {self.W.shape[1]} places "
                "(a network's setting attention.places says how many)"
            )
