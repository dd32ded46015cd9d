"""What a model does inside with a text or an image: self-attention by head, words before and after, places of an image.

Nothing is computed anew: the heads are asked for the weights that they use, by hooks that are gone afterwards.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.attention import MultiHead
from regard.decoding.many import beside
from regard.evaluation.pictures.moving import Moved
from regard.models.images import Image
from regard.models.transformer import TransformerEncoder
from regard.pipeline.hypotheses import source_pieces
from regard.pipeline.letters import of_text
from regard.pipeline.model import Pipeline
from regard.pipeline.results import Attention, Numbers, Piece, Result, grouped
from regard.pipeline.sources import target_language
from regard.support.errors import Misuse
from regard.support.nearest import unknown


@dataclass(frozen=True, eq=False)
class Inside:
    """A source as its encoder saw it."""

    attention: Attention
    """Of the source to itself."""
    before: Numbers
    """[S, d]: the vectors that came in."""
    after: Numbers
    """[S, d]: those that came out."""


def inside(model: Pipeline, text: str, to: str | None = None) -> Inside:
    """The self-attention of the encoder, each layer and head, and what it made of the vectors."""
    encoder = encoder_of(model)
    if encoder is None:
        raise Misuse("self-attention: this model has none (its encoder is no Transformer)")
    tokens, pieces = _encoded(model, text, to)
    source, lengths = beside([of_text(model.model, model.tokenizer("source"), text.strip(), tokens)])
    device = next(each.device for each in encoder.parameters())
    with torch.inference_mode(), weights_of(encoder) as weights, _entered(encoder.stack) as came:
        out = encoder(source.to(device), lengths).states
    attention = Attention(as_table(weights), text, text, pieces, pieces)
    return Inside(attention, came[0][0].float().cpu().numpy(), out[0].float().cpu().numpy())


def encoder_of(model: Pipeline) -> TransformerEncoder | None:
    return next((each for each in model.model.modules() if isinstance(each, TransformerEncoder)), None)


def as_table(weights: Sequence[torch.Tensor]) -> Numbers:
    """[T, L, H, S] of the layers' weights, each [1, H, T, S]."""
    table: Numbers = torch.stack([each[0] for each in weights]).float().cpu().permute(2, 0, 1, 3).numpy()
    return table


def _encoded(model: Pipeline, text: str, to: str | None) -> tuple[list[int], tuple[Piece, ...]]:
    tokenizer = model.tokenizer("source")
    plain = text.strip()
    if not plain:
        raise Misuse("there are no words in the text")
    language = target_language(to, tokenizer.languages, model.about) if model.task == "translate" else None
    tokens = tokenizer.encode(plain, language=language)
    return tokens, source_pieces(tokenizer, tokens, plain, len(tokens))


def moved_by(model: Pipeline, texts: Sequence[str], to: str | None = None) -> list[Moved]:
    """The words of each text before and after the encoder: the mean of the vectors of their tokens, at length 1. An
    encoder writes shorter vectors than it reads; at their own lengths nothing but that would be seen."""
    found = []
    for text in texts:
        seen = inside(model, text.strip(), to)
        names, groups = grouped(text.strip(), seen.attention.source_pieces)
        real = [place for place, name in enumerate(names) if not name.startswith("<")]
        before, after = (
            _unit(np.stack([table[groups[place]].mean(0) for place in real])) for table in (seen.before, seen.after)
        )
        found.append(Moved(tuple(names[place] for place in real), before, after))
    return found


def _unit(vectors: Numbers) -> Numbers:
    scaled: Numbers = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
    return scaled


def joined_by(attention: Attention, word: str) -> list[str]:
    """Where a word looks, head by head: `layer 1, head 3: telescope → saw 0.62, with 0.20`."""
    stacked, names, rows, columns = attention.every_head()
    if word not in rows:
        raise Misuse(unknown("word", word, set(rows)))
    row, found = rows.index(word), []
    for name, weights in zip(names, stacked, strict=True):
        best = np.argsort(-weights[row], kind="stable")[:3]
        found.append(f"{name}: {word} → " + ", ".join(f"{columns[at]} {weights[row, at]:.2f}" for at in best))
    return found


def joined_most(attention: Attention, word: str) -> list[str]:
    """The head that joins a word to each of the others most, and each of them to it, the strongest first:
    `telescope → saw: most by layer 1, head 3, 0.62`."""
    stacked, names, rows, _ = attention.every_head()
    at = rows.index(word)
    others = [other for other, name in enumerate(rows) if other != at and not name.startswith("<")]
    pairs = [pair for other in others for pair in ((at, other), (other, at))]
    best = {pair: int(stacked[:, pair[0], pair[1]].argmax()) for pair in pairs}
    weight = {pair: float(stacked[best[pair], pair[0], pair[1]]) for pair in pairs}
    return [
        f"{rows[looks]} → {rows[seen]}: most by {names[best[looks, seen]]}, {weight[looks, seen]:.2f}"
        for looks, seen in sorted(pairs, key=lambda pair: -weight[pair])
    ]


def captioned(model: Pipeline, image: str | Path) -> tuple[Numbers, Numbers, tuple[str, ...]]:
    """An image as the model sees it [height, width] or [height, width, 3], where each word of its caption looked, and
    the words."""
    from regard.pipeline.answering import image as read

    if model.task != "caption" or model.model.sizes.image is None:
        raise Misuse(f"this model was built to {model.task}; a captioner is needed")
    pixels = read(str(image), model.model.sizes.image)
    [result] = model.predict([str(image)], attention=True)
    assert isinstance(result, Result)
    maps, said = on_pixels(model, result, *pixels.shape[1:])
    return pixels.transpose(1, 2, 0).squeeze(), maps, said


def on_pixels(
    model: Pipeline, result: Result, height: int, width: int, *, layer: int | None = None, head: int | None = None
) -> tuple[Numbers, tuple[str, ...]]:
    """Where each word of a caption looked in its image: [words, height, width], of one layer and head, or the mean over
    those that are not named."""
    cut, weights, names = _over_cells(model, result, (height, width), layer, head)
    return cut.picture(torch.from_numpy(weights), height, width).numpy(), names


def along_columns(
    model: Pipeline, result: Result, size: tuple[int, ...], layer: int | None = None, head: int | None = None
) -> tuple[Numbers, tuple[str, ...], tuple[str, ...]]:
    """The same for a terminal: [words, columns of cells], the words, and the numbers of the columns from the left."""
    cut, weights, names = _over_cells(model, result, size, layer, head)
    rows, columns = cut.grid(*size)
    along = weights.reshape(len(names), columns, rows).sum(-1)
    return along, names, tuple(str(number) for number in range(1, columns + 1))


def _over_cells(
    model: Pipeline, result: Result, size: tuple[int, ...], layer: int | None, head: int | None
) -> tuple[Image, Numbers, tuple[str, ...]]:
    """What cuts the image, and for each word the weights of its cells, column by column."""
    cut = next((each for each in model.model.modules() if isinstance(each, Image)), None)
    if cut is None or result.attention is None:
        raise Misuse("there is no attention over an image here; ask with attention=True, of a model of images")
    names, groups = grouped(result.text, result.attention.output_pieces)
    table = result.attention.of(layer, head)
    rows, columns = cut.grid(*size)
    return cut, np.stack([table[group].mean(0) for group in groups])[:, : rows * columns], names


@contextmanager
def weights_of(encoder: TransformerEncoder) -> Iterator[list[torch.Tensor]]:
    """The weights that each of its layers comes to while this is open."""
    heads = [part for part in encoder.stack.modules() if isinstance(part, MultiHead)]
    weights: list[torch.Tensor] = []

    def ask(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return given, {**named, "want_weights": True}

    def keep(module: nn.Module, given: tuple[Any, ...], came: Any) -> None:
        weights.append(came.weights)

    hooks = [each.register_forward_pre_hook(ask, with_kwargs=True) for each in heads]
    hooks += [each.register_forward_hook(keep) for each in heads]
    try:
        yield weights
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def _entered(part: nn.Module) -> Iterator[list[torch.Tensor]]:
    """What goes into a part of a model while it is open."""
    came: list[torch.Tensor] = []
    hook = part.register_forward_pre_hook(lambda module, given: came.append(given[0]))
    try:
        yield came
    finally:
        hook.remove()
