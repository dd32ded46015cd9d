"""Pretrained word vectors into a model that is to begin with them."""

import torch

from regard.data.places import place
from regard.models.contract import Model
from regard.models.input_settings import WordSettings
from regard.models.inputs import begin_with, words_of
from regard.support.errors import Misuse
from regard.text.tokenizer import Tokenizer
from regard.text.vectors.mapping import mapped
from regard.text.vectors.vectors import Vectors


def put_vectors(model: Model, tokenizer: Tokenizer | None, seed: int) -> str | None:
    """Let a model begin with the vectors its settings name; how many of its words have one, in a sentence."""
    settings = getattr(model.settings, "input", None)
    if not isinstance(settings, WordSettings) or settings.vectors is None:
        return None
    words = words_of(model)  # type: ignore[arg-type] # it looks through the modules of any network
    if tokenizer is None or words is None:
        raise Misuse("network.input.vectors: the source is no text, so there are no words that could have vectors")
    shown = {each.strip() for each in tokenizer.shown(range(tokenizer.vocabulary))}
    vectors = Vectors.read(place(settings.vectors), {*shown, *(each.lower() for each in shown)})
    if vectors.width != settings.width:
        raise Misuse(
            f"network.input.width: the vectors of {settings.vectors} are {vectors.width} wide; got {settings.width}"
        )
    found = mapped(vectors, tokenizer, seed)
    begin_with(words, torch.from_numpy(found.matrix))
    return f"{settings.vectors}: {found.coverage}"
