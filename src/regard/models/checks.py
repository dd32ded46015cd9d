"""What comes in, looked at before a network reads it: as far as a look is free, and a compiler is not about."""

import torch
from torch import Tensor


def check_source(source: Tensor, lengths: Tensor | None, *, places: int = 0, sentences: int = 0) -> None:
    """That a source has so many places and sentences at least, and that no length goes beyond it.

    Lengths on a GPU are not looked at: that would wait for all work before it.
    """
    if torch.compiler.is_compiling() or source.ndim < 2:
        return
    image = source.ndim == 4
    there = source.shape[-1 if image else 1]
    if there < (1 if image else places):
        raise ValueError(f"source: expected {'a column' if image else 'a place'} or more; got {list(source.shape)}")
    if len(source) < sentences:
        raise ValueError(f"source: expected a sentence or more in a batch; got {list(source.shape)}")
    if lengths is None or lengths.device.type != "cpu" or not lengths.numel():
        return
    if lengths.shape != source.shape[:1]:
        raise ValueError(f"lengths: expected one for each of {len(source)} sentences; got {list(lengths.shape)}")
    if int(lengths.max()) > there or int(lengths.min()) < 0:
        raise ValueError(f"lengths: expected 0 to {there}, the places of the source; got {lengths[:8].tolist()}")


def check_words(words: Tensor | None, states: Tensor) -> None:
    """That no sentence of states [B, S, d] has more tokens in its words [B, W] than places; on the CPU alone, too."""
    if words is None or torch.compiler.is_compiling():
        return
    if words.ndim != 2 or len(words) != len(states):
        raise ValueError(f"words: expected [{len(states)} sentences, words]; got {list(words.shape)}")
    if words.device.type != "cpu" or not words.numel():
        return
    tokens, places = words.sum(-1), states.shape[1]
    if int(words.min()) < 0:
        raise ValueError(f"words: expected 0 tokens or more of each word; got {int(words.min())}")
    if int(tokens.max()) > places:
        raise ValueError(
            f"words: expected 0 to {places} tokens in a sentence, the places of the source; got {tokens[:8].tolist()}"
        )


def check_one_vocabulary(source: int | None, target: int) -> None:
    """That source and target, which are to share a table, have as many words."""
    if source != target:
        raise ValueError(
            f"share_embeddings: source and target must have one vocabulary; got {source} and {target} words "
            "(or set share_embeddings: false)"
        )
