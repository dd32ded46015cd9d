"""How much a query has to do with a key: e_ij, one number for each pair.

Rows are vectors, as in the notes (q = x W), so matrices given here multiply from the right. A score that is a
product of vectors says so through `as_dot`, and is computed by one product of matrices whatever it is called;
the others say it cell by cell.

Shape suffixes: T queries, S keys, d width of a query or key, w width of the hidden layer.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from regard.support.nearest import unknown


class AsDot(NamedTuple):
    """A score as scale · (query · key)."""

    query: Tensor
    key: Tensor
    scale: float


class Score(ABC):
    """e [..., T, S] from a query [..., T, d_q] and a key [..., S, d_k]. One with parameters is a Module as well."""

    name: ClassVar[str]
    formula: ClassVar[str]
    """How the score reads in a derivation."""

    @abstractmethod
    def forward(self, query: Tensor, key: Tensor) -> Tensor: ...

    def __call__(self, query: Tensor, key: Tensor) -> Tensor:
        return self.forward(query, key)

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise a ValueError where these widths cannot be scored."""
        return

    def next_coverage(self, weights: Tensor) -> Tensor | None:
        """The coverage after these weights, for a score that reads it."""
        return None


class DotScore(Score):
    """Any score that is a product of vectors: query and key are brought into one space, scaled, multiplied."""

    @abstractmethod
    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        """The query and key whose scaled product is the score."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        query, key, scale = self.as_dot(query, key)
        # The scale goes onto the query before the product: afterwards it is too late in half precision.
        return (query if scale == 1 else query * scale) @ key.transpose(-2, -1)

    def check(self, query: Tensor, key: Tensor) -> None:
        if query.shape[-1] != key.shape[-1]:
            raise ValueError(
                f"{self.name}: query and key must have one width; got {query.shape[-1]} and {key.shape[-1]}"
            )


@dataclass(frozen=True)
class Dot(DotScore):
    """e = q · k."""

    name = "dot"
    formula = "Q Kᵀ"

    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        return AsDot(query, key, 1.0)


@dataclass(frozen=True)
class ScaledDot(DotScore):
    """e = q · k / √d, or times a scale of one's choosing (Vaswani and others 2017)."""

    name = "scaled_dot"
    formula = "Q Kᵀ / √d"

    scale: float | None = None

    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        return AsDot(query, key, 1 / math.sqrt(max(query.shape[-1], 1)) if self.scale is None else self.scale)


@dataclass(frozen=True)
class Cosine(DotScore):
    """e = q · k / (|q| |k| temperature)."""

    name = "cosine"
    formula = "cos(Q, K) / temperature"

    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"cosine: temperature must be above 0; got {self.temperature!r}")

    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        unit = nn.functional.normalize
        return AsDot(unit(query, dim=-1), unit(key, dim=-1), 1 / self.temperature)


class General(nn.Module, DotScore):
    """e = q W kᵀ (Luong's general; the notes' multiplicative attention): W [d_q, d_k]."""

    name = "general"
    formula = "Q W Kᵀ"
    W: Tensor

    def __init__(self, W: Tensor) -> None:
        super().__init__()
        _hold(self, W=_matrix("general", "W", W))

    @classmethod
    def of(cls, d_q: int, d_k: int) -> "General":
        return cls(_made(d_q, d_k))

    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        return AsDot(query @ self.W, key, 1.0)

    def check(self, query: Tensor, key: Tensor) -> None:
        _fits("general", "query", query, "W", self.W)
        _fits("general", "key", key, "W", self.W, 1)


class LowRank(nn.Module, DotScore):
    """e = (q U) · (k V): `general` with W = U Vᵀ of rank r: U [d_q, r], V [d_k, r]."""

    name = "low_rank"
    formula = "(Q U)(K V)ᵀ"
    U: Tensor
    V: Tensor

    def __init__(self, U: Tensor, V: Tensor) -> None:
        super().__init__()
        _hold(self, U=_matrix("low_rank", "U", U), V=_matrix("low_rank", "V", V))
        if U.shape[1] != V.shape[1]:
            raise ValueError(f"low_rank: U and V must have one rank; got {list(U.shape)} and {list(V.shape)}")

    @classmethod
    def of(cls, d_q: int, d_k: int, rank: int) -> "LowRank":
        return cls(_made(d_q, rank), _made(d_k, rank))

    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        return AsDot(query @ self.U, key @ self.V, 1.0)

    def check(self, query: Tensor, key: Tensor) -> None:
        _fits("low_rank", "query", query, "U", self.U)
        _fits("low_rank", "key", key, "V", self.V)


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
        W_q = None if W_q is None else _matrix(self.name, "W_q", W_q)
        W_k = None if W_k is None else _matrix(self.name, "W_k", W_k)
        _hold(self, W_q=W_q, W_k=W_k, v=_vector(self.name, "v", v), b=b)
        self.depth = 1 + len(hidden)
        for layer, (W, bias) in enumerate(hidden, start=2):
            _hold(self, **{f"W_{layer}": _matrix(self.name, f"hidden W_{layer}", W), f"b_{layer}": bias})
        last = hidden[-1][0].shape[1] if hidden else None
        for name, matrix in (("W_q", W_q), ("W_k", W_k)):
            if matrix is not None and last is None and matrix.shape[1] != v.shape[0]:
                raise ValueError(f"additive: {name} {list(matrix.shape)} does not lead to v {list(v.shape)}")
        if last is not None and last != v.shape[0]:
            raise ValueError(f"additive: the last hidden layer has width {last}, v {v.shape[0]}")

    @classmethod
    def of(cls, d_q: int, d_k: int, width: int, depth: int = 1, bias: bool = True) -> "Additive":
        """Its own parameters, made the way nn.Linear makes them."""
        first = _bias(d_q + d_k, width) if bias else None
        deeper = [(_made(width, width), _bias(width, width) if bias else None) for _ in range(depth - 1)]
        return cls(_made(d_q, width), _made(d_k, width), _made(width, 1).squeeze(-1), first, deeper)

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
        _fits("additive", "query", query, *self._first("W_q"))
        _fits("additive", "key", key, *self._first("W_k"))

    def check_projected(self, query: Tensor, key: Tensor) -> None:
        _fits("additive", "query", query, *self._first("W_q"))
        width = self._first("W_k")[1].shape[-1]
        if key.shape[-1] != width:
            raise ValueError(f"additive: projected keys must have width {width}; got {key.shape[-1]}")

    def _first(self, name: str) -> tuple[str, Tensor]:
        """The matrix that takes the query or key: without one they arrive in the width of the next."""
        matrix = getattr(self, name)
        if matrix is None:
            name = "W_2" if self.depth > 1 else "v"
            matrix = getattr(self, name)
        return name, matrix


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
        _hold(self, W=_matrix("concat", "W", W), v=_vector("concat", "v", v))
        if W.shape[1] != v.shape[0]:
            raise ValueError(f"concat: W {list(W.shape)} does not lead to v {list(v.shape)}")

    @classmethod
    def of(cls, d_q: int, d_k: int, width: int) -> "Concat":
        return cls(_made(d_q + d_k, width), _made(width, 1).squeeze(-1))

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        # [q; k] W = q W_above + k W_below: the pairs are never joined.
        d_q = query.shape[-1]
        pairs = (query @ self.W[:d_q]).unsqueeze(-2) + (key @ self.W[d_q:]).unsqueeze(-3)
        return torch.tanh(pairs) @ self.v

    def check(self, query: Tensor, key: Tensor) -> None:
        joined = query.shape[-1] + key.shape[-1]
        if joined != self.W.shape[0]:
            raise ValueError(
                f"concat: query and key joined have width {query.shape[-1]} + {key.shape[-1]} = {joined}, "
                f"W takes {self.W.shape[0]}"
            )


class Location(nn.Module, Score):
    """e_i = q_i W, from the query alone (Luong's location): W [d_q, places], cut to the keys there are."""

    name = "location"
    formula = "Q W"
    W: Tensor

    def __init__(self, W: Tensor) -> None:
        super().__init__()
        _hold(self, W=_matrix("location", "W", W))

    @classmethod
    def of(cls, d_q: int, places: int) -> "Location":
        return cls(_made(d_q, places))

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ self.W[:, : key.shape[-2]]

    def check(self, query: Tensor, key: Tensor) -> None:
        _fits("location", "query", query, "W", self.W)
        if key.shape[-2] > self.W.shape[1]:
            raise ValueError(
                f"location: {key.shape[-2]} keys, but W {list(self.W.shape)} knows {self.W.shape[1]} places"
            )


class Coverage(nn.Module, Score):
    """Additive with a feature of the weights so far: e_ij = v · tanh(q_i W_q + k_j W_k + C_j w_c + b).

    C [..., S] sums the weights of earlier steps (See, Liu and Manning 2017); w_c [w]. The coverage is given with
    `given(coverage)` and comes back, this call's weights added, in `Details.coverage`; nothing is kept. All the
    queries of one call read the same coverage.
    """

    name = "coverage"
    formula = "v · tanh(Q W_q + K W_k + C w_c + b)"
    w_c: Tensor

    def __init__(self, additive: Additive, w_c: Tensor) -> None:
        super().__init__()
        self.additive = additive
        _hold(self, w_c=_vector("coverage", "w_c", w_c))

    @classmethod
    def of(cls, d_q: int, d_k: int, width: int, depth: int = 1) -> "Coverage":
        return cls(Additive.of(d_q, d_k, width, depth), _made(1, width).squeeze(0))

    def given(self, so_far: Tensor | None, projected: bool = False) -> "Covered":
        """This score after the given weights; `projected` says that keys were multiplied by W_k before."""
        return Covered(self, so_far, projected)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return self.additive(query, key)  # type: ignore[no-any-return]

    def next_coverage(self, weights: Tensor) -> Tensor:
        return weights.sum(-2)

    def check(self, query: Tensor, key: Tensor) -> None:
        self.additive.check(query, key)


@dataclass(frozen=True)
class Covered(Score):
    """A coverage score with the weights so far; parameters stay those of `of`."""

    name = "coverage"
    formula = Coverage.formula
    of: Coverage
    so_far: Tensor | None
    keys_projected: bool = False

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        additive = self.of.additive
        keys = key if self.keys_projected else additive.project(key)
        feature = None if self.so_far is None else (self.so_far.unsqueeze(-1) * self.of.w_c).unsqueeze(-3)
        return additive.mix(query, keys, feature)

    def next_coverage(self, weights: Tensor) -> Tensor:
        return weights.sum(-2) if self.so_far is None else self.so_far + weights.sum(-2)

    def check(self, query: Tensor, key: Tensor) -> None:
        additive = self.of.additive
        (additive.check_projected if self.keys_projected else additive.check)(query, key)
        if self.so_far is not None and self.so_far.shape[-1] != key.shape[-2]:
            raise ValueError(f"coverage: {self.so_far.shape[-1]} places covered so far, but {key.shape[-2]} keys")


# What needs no parameters can be asked for by name; the others by name where widths are known (`of`).
PLAIN: dict[str, Score] = {"dot": Dot(), "scaled_dot": ScaledDot(), "cosine": Cosine()}
PARAMETRIC: dict[str, type[General | Additive | Concat | Location | LowRank | Coverage]] = {
    "general": General, "additive": Additive, "concat": Concat, "location": Location, "low_rank": LowRank,
    "coverage": Coverage,
}  # fmt: skip


def named(score: Score | str) -> Score:
    """A score as given, or the one of that name, where it needs no parameters."""
    if isinstance(score, Score):
        return score
    if not isinstance(score, str):
        raise ValueError(f"score: expected a score or its name; got {type(score).__name__}")
    if score in PARAMETRIC:
        kind = PARAMETRIC[score].__name__
        raise ValueError(
            f"score {score!r} has parameters: pass scores.{kind}(...) with its matrices, or scores.{kind}.of(...)"
        )
    if score not in PLAIN:
        raise ValueError(unknown("score", score, [*PLAIN, *PARAMETRIC]))
    return PLAIN[score]


def make(
    name: str, d_q: int, d_k: int, *, width: int | None = None, depth: int = 1, places: int | None = None
) -> Score:
    """A score by name with parameters of its own, for a model that is built from a configuration.

    `width` is the hidden layer of additive, concat and coverage and the rank of low_rank (d_k unless given);
    `places` the most keys that location can tell apart.
    """
    width = d_k if width is None else width
    if name == "location":
        if places is None:
            raise ValueError("score 'location' needs places=, the most keys it can tell apart")
        return Location.of(d_q, places)
    makers: dict[str, Callable[[], Score]] = {
        "general": lambda: General.of(d_q, d_k),
        "low_rank": lambda: LowRank.of(d_q, d_k, width),
        "additive": lambda: Additive.of(d_q, d_k, width, depth),
        "concat": lambda: Concat.of(d_q, d_k, width),
        "coverage": lambda: Coverage.of(d_q, d_k, width, depth),
    }
    return makers[name]() if name in makers else named(name)


def _hold(module: nn.Module, **tensors: Tensor | None) -> None:
    """Parameters are registered as such; plain tensors as buffers, so that they follow the module's device."""
    for name, tensor in tensors.items():
        if tensor is None or isinstance(tensor, nn.Parameter):
            module.register_parameter(name, tensor)
        else:
            module.register_buffer(name, tensor)


def _matrix(score: str, name: str, given: Tensor) -> Tensor:
    if not isinstance(given, Tensor) or given.ndim != 2:
        shape = list(given.shape) if isinstance(given, Tensor) else type(given).__name__
        raise ValueError(f"{score}: {name} must be a matrix; got {shape}")
    return given


def _vector(score: str, name: str, given: Tensor) -> Tensor:
    if not isinstance(given, Tensor) or given.ndim != 1:
        shape = list(given.shape) if isinstance(given, Tensor) else type(given).__name__
        raise ValueError(f"{score}: {name} must be a vector; got {shape}")
    return given


def _fits(score: str, side: str, given: Tensor, name: str, matrix: Tensor, axis: int = 0) -> None:
    if given.shape[-1] != matrix.shape[axis]:
        raise ValueError(
            f"{score}: the {side} has width {given.shape[-1]}, {name} {list(matrix.shape)} takes {matrix.shape[axis]}"
        )


def _made(rows: int, columns: int) -> nn.Parameter:
    bound = 1 / math.sqrt(rows)
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))


def _bias(rows: int, width: int) -> nn.Parameter:
    bound = 1 / math.sqrt(rows)
    return nn.Parameter(torch.empty(width).uniform_(-bound, bound))
