"""Target vocabulary maps between texts: learned from pairs with a model's tokenizers, and checked before use."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.decoding.vocabulary_map import VocabularyMap
from regard.models.reading import read_model_json
from regard.support.errors import Misuse
from regard.text.tokenizer import Tokenizer

LETTERS = 512
"""More single letters than this are words of their own, as in Chinese."""


def tokenizers_of(folder: str | Path) -> dict[str, Tokenizer]:
    """Those of a model folder that translates; its network is not read."""
    held = read_model_json(Path(folder))
    if sorted(held.get("tokenizers", {})) != ["source", "target"]:
        raise Misuse(f"{folder}: vocabulary maps are for text to text; this model was built to {held['task']}")
    return {side: Tokenizer.load(Path(folder) / name) for side, name in held["tokenizers"].items()}


def learned(
    tokenizers: Mapping[str, Tokenizer],
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    each: int = 30,
    common: int = 100,
) -> VocabularyMap:
    """The likeliest target tokens of each source token. Single letters and bytes are always there, where they are not
    half the vocabulary, so that whatever a map does not hold can still be spelled."""
    source, target = tokenizers["source"], tokenizers["target"]
    letters = [number for number, piece in enumerate(target.pieces) if len(piece.strip("▁")) <= 1]
    letters = letters if len(letters) <= LETTERS else []
    return VocabularyMap.learn(
        source.encode_batch(sources), target.encode_batch(targets), source_vocabulary=source.vocabulary,
        target_vocabulary=target.vocabulary, each=each, common=common, always=letters, made_for=_signs(tokenizers),
    )  # fmt: skip


def read_map(path: str | Path, tokenizers: Mapping[str, Tokenizer]) -> VocabularyMap:
    """A map that `learned` made, if it is one of these tokenizers."""
    try:
        found = VocabularyMap.load(path)
    except ValueError as error:
        raise Misuse(str(error)) from None
    if found.made_for and found.made_for != _signs(tokenizers):
        raise Misuse(f"{path}: was learned for other tokenizers than this model's (regard vocabulary-map makes one)")
    source, target = tokenizers["source"].vocabulary, tokenizers["target"].vocabulary
    rows, largest = len(found.likely), max(int(each.max(initial=0)) for each in (found.likely, found.always))
    if rows != source or largest >= target:
        raise Misuse(
            f"{path}: is from {rows:,} source tokens to {largest + 1:,} or more; this model has {source:,} and "
            f"{target:,}"
        )
    return found


def _signs(tokenizers: Mapping[str, Tokenizer]) -> str:
    return f"{tokenizers['source'].hash} {tokenizers['target'].hash}"
