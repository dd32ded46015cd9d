"""The tokenizers of a preparation: those that are named, or new ones learned from a bounded sample of the data."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.deciding import TRAIN, Fates, Read, chosen_evenly, count
from regard.data.pieces import read_piece
from regard.data.places import place
from regard.data.sampling import shares_of
from regard.data.settings import DataSettings
from regard.data.sources import Sort
from regard.support.errors import Misuse
from regard.support.progress import Progress
from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer


def text_sides(sorts: Mapping[str, Sort]) -> list[str]:
    """The columns that are tokens."""
    return [name for name, sort in sorts.items() if sort in ("text", "words")]


def given(settings: DataSettings, sorts: Mapping[str, Sort], tags: Sequence[str]) -> dict[str, Tokenizer] | None:
    """The tokenizers that the settings name; None where they are to be trained, and nothing where there is no text."""
    sides = text_sides(sorts)
    named = settings.tokenizer
    if not sides:
        return {}
    if isinstance(named, TokenizerSettings):
        return None
    files = {side: named if isinstance(named, str) else getattr(named, side) for side in sides}
    loaded = {file: Tokenizer.load(place(file)) for file in dict.fromkeys(files.values())}
    found = {side: loaded[file] for side, file in files.items()}
    if tags and (missing := sorted(set(tags) - set(found["source"].languages))):
        raise Misuse(
            f"data.tokenizer: {files['source']} has no tag for {' and '.join(missing)}, which the targets need "
            f"(it has {', '.join(found['source'].languages) or 'none'})"
        )
    return found


def learned(
    settings: DataSettings, sorts: Mapping[str, Sort], tags: Sequence[str], reads: Sequence[Read], fates: Fates,
    *, quiet: bool = True,
) -> dict[str, Tokenizer]:  # fmt: skip
    """Tokenizers trained on the sample: one for both sides, or one for each."""
    wanted = settings.tokenizer
    assert isinstance(wanted, TokenizerSettings)
    sides = text_sides(sorts)
    apart = [sides] if wanted.joint or len(sides) == 1 else [[side] for side in sides]
    found: dict[str, Tokenizer] = {}
    total = sum(quotas(settings, reads, fates)) * len(apart)
    with Progress("learning the tokenizer", "examples", total, quiet=quiet) as progress:
        for group in apart:
            spoken = tags if "source" in group else []
            texts = sample(settings, sorts, group, reads, fates, told=progress.add)
            found |= dict.fromkeys(group, Tokenizer.train(texts, wanted, languages=spoken))
    return found


def sample(
    settings: DataSettings, sorts: Mapping[str, Sort], sides: Iterable[str], reads: Sequence[Read], fates: Fates,
    *, told: Callable[[int], None] = lambda count: None,
) -> Iterator[str]:  # fmt: skip
    """The texts of the examples that are drawn, in the order of the data; words are texts of their own."""
    start = 0
    for read, wanted in zip(reads, quotas(settings, reads, fates), strict=True):
        own = fates[start : start + read.record.kept]
        often, more = divmod(wanted, max(count(own, TRAIN), 1))
        chosen = chain.from_iterable(each.tolist() for each in chosen_evenly(own, TRAIN, more, settings.seed))
        for number, places in enumerate(_by_piece(chosen, read.record.pieces)):
            first = sum(read.record.pieces[:number])
            trained = np.flatnonzero(own[first : first + read.record.pieces[number]] == TRAIN).tolist() if often else []
            if places := sorted([*places, *trained * often]):
                yield from _texts(read.folder, number, sorts, places, sides)
                told(len(places))
        start += read.record.kept


def quotas(settings: DataSettings, reads: Sequence[Read], fates: Fates) -> list[int]:
    """How many examples each source gives to the sample; more than it has: some of them are taken several times."""
    ends = np.cumsum([0, *(each.record.kept for each in reads)])
    own = [count(fates[a:b], TRAIN) for a, b in pairwise(ends.tolist())]
    kinds = list(dict.fromkeys(each.kind for each in reads))
    counts = {kind: sum(n for n, each in zip(own, reads, strict=True) if each.kind == kind) for kind in kinds}
    shares = shares_of(np.array([*counts.values()]), settings.sample_temperature)
    part = min(settings.sample / max(sum(own), 1), 1.0)
    grown = {kind: part * share / max(counts[kind], 1) for kind, share in zip(kinds, shares.tolist(), strict=True)}
    return [round(n * grown[each.kind]) for n, each in zip(own, reads, strict=True)]


def _by_piece(rows: Iterator[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Rising numbers of examples as places in the pieces that they are in."""
    row, start = next(rows, None), 0
    for size in sizes:
        places = []
        while row is not None and row < start + size:
            places.append(row - start)
            row = next(rows, None)
        start += size
        yield places


def _texts(
    folder: Path, number: int, sorts: Mapping[str, Sort], places: list[int], sides: Iterable[str]
) -> Iterator[str]:
    piece = read_piece(folder, number, sorts).of(places)
    for name in sides:
        fields: list[Any] = piece.columns[name]
        yield from fields if sorts[name] == "text" else chain.from_iterable(fields)


def save(tokenizers: Mapping[str, Tokenizer], folder: Path) -> dict[str, str]:
    """Write each once, and say which file is whose: tokenizer.json, or source.json and target.json."""
    one = len(set(tokenizers.values())) == 1
    files = {side: "tokenizer.json" if one else f"{side}.json" for side in tokenizers}
    for side, file in files.items():
        tokenizers[side].save(folder / file)
    return files
