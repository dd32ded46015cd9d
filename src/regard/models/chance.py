"""Normalisers with chance in them: drawn in training, settled afterwards, so that a model answers one way only."""

from regard.attention import Normaliser, normalise


def in_training_and_after(name: str, temperature: float = 1.0) -> tuple[Normaliser, Normaliser]:
    """The normaliser of that name, and what stands for it when training is over: gumbel is then the softmax that its
    noise was added to."""
    if name == "gumbel":
        return normalise.gumbel(temperature=temperature), normalise.softmax
    own = normalise.named(name)
    return own, own
