"""Answers that are no translations: tags, a label, a caption, a text that goes on."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.readers.images import pixels_of, scaled, with_channels
from regard.decoding.many import Source, batches, beside, search_many
from regard.decoding.results import NO_PROBABILITIES
from regard.decoding.settings import SearchSettings
from regard.models.contract import Labeller, Tagger
from regard.models.outputs import EncoderLabeller
from regard.pipeline import letters
from regard.pipeline.hypotheses import result_of, source_pieces
from regard.pipeline.results import Labelled, Result, Tagged
from regard.support.errors import Failure, Misuse
from regard.text.words import words

if TYPE_CHECKING:
    from regard.pipeline.model import Pipeline

ROWS = 128
LONGEST_NAME = 1000
"""Characters of a file's name."""


def tagged(asked: "Pipeline", inputs: Sequence[Any], keep_problems: bool) -> list[Tagged]:
    """A tag for each word; of a text that comes as one, words and punctuation are told apart first."""
    model = cast(Tagger, asked.model)
    split = [words_in(each) for each in inputs]
    shown = [each if isinstance(each, str) else " ".join(each) for each in inputs]
    encoded = [asked.tokenizer("source").encode_words(each) for each in split]
    problems = [too_long(asked, len(tokens)) for tokens, _ in encoded]
    _raise_first(problems, keep_problems)
    results = [Tagged(text, problem=problem) for text, problem in zip(shown, problems, strict=True)]
    todo = [place for place, each in enumerate(split) if each and not problems[place]]
    with torch.inference_mode():
        for batch in batches([encoded[place][0] for place in todo], ROWS):
            places = [todo[each] for each in batch]
            counted = [counts_of(encoded[place][1]) for place in places]
            source, lengths = beside([
                letters.of_words(model, asked.tokenizer("source"), split[place], encoded[place][0], each)
                for place, each in zip(places, counted, strict=True)
            ])  # fmt: skip
            counts, _ = beside(counted)
            device = _device(model)
            logits = model.predict(model.encode(source.to(device), lengths, counts.to(device)))
            best = checked(logits.float().softmax(-1)).max(-1)
            for row, place in enumerate(places):
                count = len(split[place])
                tags = tuple(asked.names[tag] for tag in best.indices[row, :count].tolist())
                results[place] = Tagged(shown[place], split[place], tags, tuple(best.values[row, :count].tolist()))
    return results


def words_in(given: Any) -> tuple[str, ...]:
    """The words of a text, or those that come as such."""
    return tuple(word.text for word in words(given)) if isinstance(given, str) else tuple(given)


def labelled(asked: "Pipeline", inputs: Sequence[Any], keep_problems: bool) -> list[Labelled]:
    """A label for each text, series of rows, or image."""
    model = cast(Labeller, asked.model)
    sources, shown, problems = _sources(asked, inputs)
    _raise_first(problems, keep_problems)
    results = [Labelled(text, problem=problem) for text, problem in zip(shown, problems, strict=True)]
    todo = [place for place, each in enumerate(sources) if len(each) and not problems[place]]
    with torch.inference_mode():
        for batch in batches([sources[place] for place in todo], ROWS):
            places = [todo[each] for each in batch]
            source, lengths = beside([sources[place] for place in places])
            memory = model.encode(source.to(_device(model)), lengths)
            weights = model.looked(memory).weights if isinstance(model, EncoderLabeller) else None  # type: ignore[arg-type]
            probabilities = checked(model.predict(memory).float().softmax(-1)).cpu()
            for row, place in enumerate(places):
                looked = None if weights is None else weights[row, : int(lengths[row])].float().cpu().numpy()
                results[place] = _label(asked, shown[place], sources[place], probabilities[row].tolist(), looked)
    return results


def checked(probabilities: torch.Tensor) -> torch.Tensor:
    """Probabilities that are numbers; a model without any has no answer that could be told from a right one."""
    if probabilities.isnan().any():
        raise Failure(NO_PROBABILITIES)
    return probabilities


def _label(asked: "Pipeline", text: str, source: Source, probabilities: list[float], weights: Any) -> Labelled:
    by_name = dict(sorted(zip(asked.names, probabilities, strict=True), key=lambda each: -each[1]))
    label, score = next(iter(by_name.items()))
    tokens = _tokens(source)
    pieces = source_pieces(asked.tokenizers.get("source"), tokens, text, len(tokens)) if tokens is not None else ()
    return Labelled(text, label, score, by_name, weights, pieces)


def captioned(
    asked: "Pipeline", inputs: Sequence[Any], settings: SearchSettings, attention: bool, keep_problems: bool
) -> list[Result]:
    """A text for each image."""
    sources, shown, problems = _sources(asked, inputs)
    _raise_first(problems, keep_problems)
    good = [place for place, problem in enumerate(problems) if not problem]
    found = search_many(asked.sequence_model(), [sources[place] for place in good], settings, want_weights=attention)
    results = [Result(text, "", problem=problem) for text, problem in zip(shown, problems, strict=True)]
    for place, each in zip(good, found, strict=True):
        results[place] = result_of(shown[place], [], each, None, asked.tokenizer("target"))
    return results


def continued(asked: "Pipeline", inputs: Sequence[Any], settings: SearchSettings, keep_problems: bool) -> list[Result]:
    """Each text, and how the model goes on with it."""
    tokenizer = asked.tokenizer("target")
    prefixes = tokenizer.encode_batch([_as_text(each) for each in inputs], end=False)
    problems = [too_long(asked, len(prefix)) for prefix in prefixes]
    _raise_first(problems, keep_problems)
    good = [place for place, problem in enumerate(problems) if not problem]
    found = search_many(
        asked.sequence_model(), [prefixes[place] or [0] for place in good], settings,
        prefixes=[prefixes[place] for place in good],
    )  # fmt: skip
    results = [Result(text, "", problem=problem) for text, problem in zip(inputs, problems, strict=True)]
    for place, each in zip(good, found, strict=True):
        results[place] = result_of(inputs[place], [], each, None, tokenizer)
    return results


def _sources(asked: "Pipeline", inputs: Sequence[Any]) -> tuple[list[Source], list[str], list[str]]:
    """What the model takes, what is shown of it, and what is wrong with it."""
    sources: list[Source] = []
    shown, problems = [], []
    for number, each in enumerate(inputs, 1):
        try:
            source, text = source_of(asked, each, number)
            problem = "" if np.ndim(source) == 3 else too_long(asked, len(source))
        except Misuse as error:
            if not isinstance(each, str):
                raise
            source, text, problem = [], each, str(error)
        sources.append(source)
        shown.append(text)
        problems.append(problem)
    return sources, shown, problems


def source_of(asked: "Pipeline", given: Any, number: int = 1) -> tuple[Source, str]:
    sizes = asked.model.sizes
    if sizes.image is not None:
        return image(given, sizes.image), given if isinstance(given, str) else f"image {number}"
    if sizes.source is None and sizes.input_width is not None:
        return rows(given, sizes.input_width), given if isinstance(given, str) else f"series {number}"
    text, tokenizer = _as_text(given).strip(), asked.tokenizer("source")
    return (letters.of_text(asked.model, tokenizer, text, tokenizer.encode(text)) if text else []), _as_text(given)


def _as_text(given: Any) -> str:
    if not isinstance(given, str):
        raise Misuse(f"expected text; got {type(given).__name__}")
    return given


def image(given: Any, size: tuple[int, int, int]) -> NDArray[np.float32]:
    """[channels, height, columns] from 0 to 1, as high as the model's images: of a file, or of pixels 0 to 255."""
    channels, height, columns = size
    pixels: Any = given
    if isinstance(given, (str, Path)):
        if len(str(given)) > LONGEST_NAME:
            raise Misuse(f"{str(given)[:60]}… ({len(str(given)):,} characters): no name of an image is so long")
        pixels = pixels_of(Path(given), 3 if channels == 3 else 1)
        if isinstance(pixels, str):
            raise Misuse(f"{given}: {pixels}")
    pixels = np.asarray(pixels)
    if pixels.ndim not in (2, 3) or pixels.dtype != np.uint8:
        raise Misuse(f"image: expected pixels [height, width] from 0 to 255 (uint8); got {pixels.dtype} {pixels.shape}")
    pixels = scaled(with_channels(pixels, channels), height)
    if columns and pixels.shape[1] != columns:
        raise Misuse(f"image: {pixels.shape[1]} pixels wide at a height of {height}; this model takes {columns}")
    shares: NDArray[np.float32] = pixels.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
    return shares


def rows(given: Any, width: int) -> NDArray[np.float32]:
    """[length, width] numbers: of an array, or of a line with spaces between steps and commas inside one."""
    if isinstance(given, str):
        try:
            given = [[float(number) for number in step.split(",")] for step in given.split()]
        except ValueError as error:
            raise Misuse(f"numbers that cannot be read: {error}") from None
    try:
        values = np.asarray(given, np.float32)
    except ValueError:
        raise Misuse(f"rows: expected as many numbers, {width}, in each step") from None
    values = values[:, None] if values.ndim == 1 and width == 1 else values
    if values.size == 0:
        return values.reshape(0, width)
    if values.ndim != 2 or values.shape[1] != width or not np.isfinite(values).all():
        raise Misuse(f"rows: expected finite numbers [length, {width}]; got {list(values.shape)}")
    return values


def counts_of(owners: Sequence[int]) -> list[int]:
    """How many tokens each word has, of the word that each token is a part of; the end is a part of none."""
    counts = [0] * (max(owners, default=-1) + 1)
    for owner in owners:
        if owner >= 0:
            counts[owner] += 1
    return counts


def _tokens(source: Source) -> list[int] | None:
    """Where it is text, the numbers of its tokens."""
    if not isinstance(source, np.ndarray):
        return list(source)
    return [int(token) for token in source[:, 0]] if np.issubdtype(source.dtype, np.integer) else None


def too_long(asked: "Pipeline", tokens: int) -> str:
    if tokens <= asked.longest:
        return ""
    return f"too long: {tokens:,} tokens, and at most {asked.longest:,} are taken at once"


def _raise_first(problems: Sequence[str], keep: bool) -> None:
    for number, problem in enumerate(problems, 1):
        if problem and not keep:
            raise Misuse(f"input {number} of {len(problems)}: {problem}" if len(problems) > 1 else problem)


def _device(model: torch.nn.Module) -> torch.device:
    return next(each.device for each in model.parameters())
