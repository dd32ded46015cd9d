"""From scores to weights, as a network may be told to: what of the normalisers trains by itself. Reads no torch."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator


def _learns(given: Any) -> Any:
    if given == "sample":
        raise ValueError(
            "sample draws a place and hands no gradient to the scores, so the attention would learn nothing; take "
            "softmax, gumbel or top1, or in a recurrent network attention.hard: reinforce, which learns from a reward"
        )
    return given


Normaliser = Annotated[Literal["softmax", "sparsemax", "entmax15", "relu", "top1", "gumbel"], BeforeValidator(_learns)]
