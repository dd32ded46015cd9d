"""Scores that are products of vectors: dot, scaled dot, cosine, general, low rank. Every fast path serves them."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.attention.scores.base import AsDot, DotScore, fits, hold, made, matrix


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

    def __post_init__(self) -> None:
        if self.scale is not None and not (isinstance(self.scale, (int, float)) and math.isfinite(self.scale)):
            raise ValueError(f"scaled_dot: scale must be a finite number; got {self.scale!r}")

    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        return AsDot(query, key, 1 / math.sqrt(max(query.shape[-1], 1)) if self.scale is None else self.scale)


@dataclass(frozen=True)
class Cosine(DotScore):
    """e = q · k / (|q| |k| temperature). The cosine with a vector of zeros is 0."""

    name = "cosine"
    formula = "cos(Q, K) / temperature"

    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.temperature, (int, float)) or not self.temperature > 0:
            raise ValueError(f"cosine: temperature must be above 0; got {self.temperature!r}")

    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        return AsDot(_unit(query), _unit(key), 1 / self.temperature)


def _unit(rows: Tensor) -> Tensor:
    """Rows of length 1. In half precision a square overflows early, and a guard like 1e-12 is 0."""
    wide = rows.float() if rows.dtype in (torch.float16, torch.bfloat16) else rows
    return nn.functional.normalize(wide, dim=-1).to(rows.dtype)


class General(nn.Module, DotScore):
    """e = q W kᵀ (Luong's general; the notes' multiplicative attention): W [d_q, d_k]."""

    name = "general"
    formula = "Q W Kᵀ"
    forward = DotScore.forward
    W: Tensor

    def __init__(self, W: Tensor) -> None:
        super().__init__()
        hold(self, W=matrix("general", "W", W))

    @classmethod
    def of(cls, d_q: int, d_k: int) -> "General":
        return cls(made(d_q, d_k))

    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        return AsDot(query @ self.W, key, 1.0)

    def check(self, query: Tensor, key: Tensor) -> None:
        fits("general", "query", query, "W", self.W)
        fits("general", "key", key, "W", self.W, 1)


class LowRank(nn.Module, DotScore):
    """e = (q U) · (k V): `general` with W = U Vᵀ of rank r: U [d_q, r], V [d_k, r]."""

    name = "low_rank"
    formula = "(Q U)(K V)ᵀ"
    forward = DotScore.forward
    U: Tensor
    V: Tensor

    def __init__(self, U: Tensor, V: Tensor) -> None:
        super().__init__()
        hold(self, U=matrix("low_rank", "U", U), V=matrix("low_rank", "V", V))
        if U.shape[1] != V.shape[1]:
            raise ValueError(f"low_rank: U and V must have one rank; got {list(U.shape)} and {list(V.shape)}")

    @classmethod
    def of(cls, d_q: int, d_k: int, rank: int) -> "LowRank":
        return cls(made(d_q, rank), made(d_k, rank))

    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        return AsDot(query @ self.U, key @ self.V, 1.0)

    def project(self, key: Tensor) -> Tensor:
        """k V, for `projected`."""
        return key @ self.V

    @property
    def projected(self) -> "ProjectedLowRank":
        return ProjectedLowRank(self)

    def check(self, query: Tensor, key: Tensor) -> None:
        fits("low_rank", "query", query, "U", self.U)
        fits("low_rank", "key", key, "V", self.V)


@dataclass(frozen=True)
class ProjectedLowRank(DotScore):
    """A low rank score for keys that were multiplied by V before."""

    name = "low_rank"
    formula = LowRank.formula
    of: LowRank

    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        return AsDot(query @ self.of.U, key, 1.0)

    def check(self, query: Tensor, key: Tensor) -> None:
        fits("low_rank", "query", query, "U", self.of.U)
        if key.shape[-1] != self.of.U.shape[1]:
            raise ValueError(f"low_rank: projected keys must have width {self.of.U.shape[1]}; got {key.shape[-1]}")
