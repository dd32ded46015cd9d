"""A target vocabulary map: the few target tokens that the tokens of a source are likely to become.

A decoder then computes a few hundred logits instead of all; what is left out cannot be said, and its share of the
probability goes to what is left in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.support.atomic import writing
from regard.text.specials import END, PAD, UNKNOWN

Ints = NDArray[np.int64]
CHUNK = 1 << 13


@dataclass(frozen=True, eq=False)
class VocabularyMap:
    """For each source token its likeliest target tokens; some target tokens are always there."""

    likely: Ints
    """[source vocabulary, n]; PAD where there are fewer."""
    always: Ints
    made_for: str = ""
    """Which tokenizers its numbers are of, in whatever words who made it finds them again by; empty where unsaid."""

    def columns(self, source: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The target tokens for a batch of sources [B, S] (or [B, S, 1 + letters]), rising: what
        `Rules(columns=...)` takes."""
        if source.is_floating_point():
            raise ValueError("vocabulary map: is for sources of tokens; got numbers or images")
        rows = (source if source.ndim == 2 else source[..., 0]).cpu().numpy()
        if lengths is not None:
            rows = rows[np.arange(rows.shape[1]) < lengths.cpu().numpy()[:, None]]
        tokens = np.unique(np.concatenate([self.always, self.likely[np.unique(rows)].ravel()]))
        return torch.from_numpy(tokens[tokens != PAD])

    @classmethod
    def learn(
        cls,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        *,
        source_vocabulary: int,
        target_vocabulary: int,
        each: int = 30,
        common: int = 100,
        always: Sequence[int] = (),
        made_for: str = "",
    ) -> "VocabularyMap":
        """From sentence pairs, as tokens: for each source token the `each` target tokens t that go with it most,

            n(s, t)² / (n(s) n(t)),

        where n counts the sentence pairs that hold them; the `common` most frequent target tokens are always there, and
        those of `always`.
        """
        if len(sources) != len(targets):
            raise ValueError(f"expected as many targets as sources; got {len(targets)} for {len(sources)}")
        of_source, of_target = np.zeros(source_vocabulary, np.int64), np.zeros(target_vocabulary, np.int64)
        keys: Ints = np.zeros(0, np.int64)
        counts: Ints = np.zeros(0, np.int64)
        for start in range(0, len(sources), CHUNK):
            left = [np.unique(each_) for each_ in sources[start : start + CHUNK]]
            right = [np.unique(each_) for each_ in targets[start : start + CHUNK]]
            np.add.at(of_source, np.concatenate(left).astype(np.int64), 1)
            np.add.at(of_target, np.concatenate(right).astype(np.int64), 1)
            pairs = [s.astype(np.int64)[:, None] * target_vocabulary + t for s, t in zip(left, right, strict=True)]
            keys, counts = _added(keys, counts, np.concatenate([pair.ravel() for pair in pairs]))
        s, t = np.divmod(keys, target_vocabulary)
        goes_with = counts.astype(np.float64) ** 2 / (of_source[s] * of_target[t])
        frequent = np.argsort(-of_target, kind="stable")[:common]
        likely = _likeliest(s, t, goes_with, source_vocabulary, each)
        return cls(likely, np.union1d(frequent, [END, UNKNOWN, *always]), made_for)

    def save(self, path: str | Path) -> None:
        with writing(path) as file:
            np.savez_compressed(
                file, likely=self.likely.astype(np.int32), always=self.always.astype(np.int32),
                made_for=np.array(self.made_for),
            )  # fmt: skip

    @classmethod
    def load(cls, path: str | Path) -> "VocabularyMap":
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as held:
                made_for = str(held["made_for"]) if "made_for" in held else ""
                return cls(held["likely"].astype(np.int64), held["always"].astype(np.int64), made_for)
        except (KeyError, ValueError, OSError, EOFError, BadZipFile) as error:
            if isinstance(error, (FileNotFoundError, IsADirectoryError, PermissionError)):
                raise
            raise ValueError(f"{path}: no vocabulary map, or a damaged one") from None


def _added(keys: Ints, counts: Ints, further: Ints) -> tuple[Ints, Ints]:
    """Counts of keys, with further keys counted in."""
    new, times = np.unique(further, return_counts=True)
    joined, index = np.unique(np.concatenate([keys, new]), return_inverse=True)
    total = np.bincount(index, np.concatenate([counts, times]), minlength=len(joined)).astype(np.int64)
    return joined, total


def _likeliest(s: Ints, t: Ints, goes_with: NDArray[np.float64], rows: int, each: int) -> Ints:
    """[rows, each]: of each s the t with the most."""
    order = np.lexsort((-goes_with, s))
    s, t = s[order], t[order]
    rank = np.arange(len(s)) - np.searchsorted(s, s)
    kept = rank < each
    likely = np.full((rows, each), PAD, np.int64)
    likely[s[kept], rank[kept]] = t[kept]
    return likely
