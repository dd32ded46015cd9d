"""Explanations that a page asks about cell by cell: bounded in number, in size and in age."""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.pipeline.results import grouped
from regard.serving.errors import Refused
from regard.serving.settings import ServerSettings
from regard.tracing.render.asked import answered

if TYPE_CHECKING:
    from regard.pipeline.explaining import Explanation
    from regard.tracing import Derivation

LARGEST = 2_000
"""Steps of more numbers than this are sent without them; they are asked for as they are looked at."""
STEPS = 2
"""Of an explanation, so many derivations are kept: each holds everything the model computed."""


@dataclass(eq=False)
class _Kept:
    told: "Explanation"
    born: float
    derivations: "OrderedDict[int, Derivation]" = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Explanations:
    """The latest ones, by an id that cannot be guessed."""

    def __init__(self, settings: ServerSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings, self.clock = settings, clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, told: "Explanation") -> str:
        name = secrets.token_urlsafe(12)
        with self._lock:
            self._forget()
            self._kept[name] = _Kept(told, self.clock())
            while len(self._kept) > self.settings.explanations:
                self._kept.popitem(last=False)
        return name

    def derivation(self, name: str, step: int) -> str:
        """JSON of the derivation of an output's step, large tensors without their numbers."""
        return self._derivation(name, step).to_json(largest=LARGEST)

    def cells(self, name: str, step: int, of: str, cells: list[int]) -> dict[str, Any]:
        """Numbers of one step of a derivation: {"values", "reach"}, as its page asks for them."""
        derivation = self._derivation(name, step)
        try:
            asked = derivation[of]
        except ValueError as error:
            raise Refused(404, str(error)) from None
        try:
            return answered(derivation, asked.position, cells)
        except ValueError as error:
            raise Refused(400, f"Invalid request: {error}") from None

    def _derivation(self, name: str, step: int) -> "Derivation":
        from regard.support.errors import Misuse

        kept = self._found(name)
        with kept.lock:
            if step not in kept.derivations:
                try:
                    kept.derivations[step] = kept.told.derivation(step)
                except Misuse as error:
                    raise Refused(404, str(error)) from None
                while len(kept.derivations) > STEPS:
                    kept.derivations.popitem(last=False)
            return kept.derivations[step]

    def _found(self, name: str) -> _Kept:
        with self._lock:
            self._forget()
            if name not in self._kept:
                raise Refused(404, "this explanation is no longer kept; ask for it again")
            return self._kept[name]

    def _forget(self) -> None:
        old = self.clock() - 60 * self.settings.explanation_minutes
        while self._kept and next(iter(self._kept.values())).born < old:
            self._kept.popitem(last=False)


def _rounded(weights: Any) -> list[list[float]]:
    found: list[list[float]] = np.round(weights.astype(float), 4).tolist()
    return found


def record(told: "Explanation", name: str) -> dict[str, Any]:
    """What `POST /explain` answers."""
    end = told.model.sequence_model().end_token
    numbers = [*told.said[1:], end][: len(told.steps)]
    held: dict[str, Any] = {
        "id": name,
        "translatedText": told.result.text,
        "logProbability": round(told.result.log_prob, 4),
        "steps": [
            {
                "token": step.token, "number": number, "probability": round(step.probability, 6), "rank": step.rank,
                "candidates": [{"token": token, "probability": round(share, 6)} for token, share in step.candidates],
            }
            for step, number in zip(told.steps, numbers, strict=True)
        ],
    }  # fmt: skip
    attention = told.result.attention
    if attention is not None:
        views: list[tuple[int | None, int | None]] = [(None, None)]
        for layer in range(1, attention.layers + 1):
            views += [(layer, None), *((layer, head) for head in range(1, attention.heads + 1))]
        _, rows, columns = attention.of_words()
        groups = grouped(attention.output, attention.output_pieces)[1]
        held["alignment"] = {
            "source": list(columns), "target": list(rows), "layers": attention.layers, "heads": attention.heads,
            "steps": [[place + 1 for place in group] for group in groups],
            "weights": [
                {"layer": layer, "head": head, "rows": _rounded(attention.of_words(layer, head)[0])}
                for layer, head in views
            ],
        }  # fmt: skip
    return held
