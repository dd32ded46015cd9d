"""A vocabulary with more in it, for training on from a model: the numbers there are keep their meaning.

What is added stands in the model's vocabulary, not among the added tokens of the library: those would be looked for
in raw text, cut words in pieces and lose the spaces about them.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import tokenizers

from regard.text import languages

Described = dict[str, Any]
"""What a tokenizer.json says."""


def extended(text: str, words: Iterable[str], spoken: Iterable[str]) -> str:
    """The text of a tokenizer.json with tags of more languages, and words that become one token each."""
    described: Described = json.loads(text)
    model = described["model"]
    for tag in languages.tags(spoken):
        if tag not in _held(model):
            described["added_tokens"].append(
                {"id": len(model["vocab"]), "content": tag, "single_word": False, "lstrip": False, "rstrip": False,
                 "normalized": False, "special": True}
            )  # fmt: skip
            _append(model, tag, 0.0)
    inner = tokenizers.Tokenizer.from_str(text)
    units = [unit for word in words for unit in _units(inner, word)]
    return with_units(json.dumps(described, ensure_ascii=False), units)


def with_units(text: str, units: Iterable[str]) -> str:
    """With more pieces, as the vocabulary writes them, each of which becomes one token."""
    described: Described = json.loads(text)
    model = described["model"]
    new = [unit for unit in dict.fromkeys(units) if unit and unit not in _held(model)]
    if model["type"] == "WordLevel":
        for unit in new:
            _append(model, unit, 0.0)
    elif model["type"] == "Unigram":
        _with_scores(model, new)
    else:
        _with_merges(model, new)
    inner = tokenizers.Tokenizer.from_str(json.dumps(described))
    return str(inner.to_str(pretty=True)) + "\n"


def _units(inner: tokenizers.Tokenizer, word: str) -> list[str]:
    """What a word is before pieces are learned: itself with a space in front, cut at punctuation."""
    normal = word if inner.normalizer is None else inner.normalizer.normalize_str(word)
    return [unit for unit, _ in inner.pre_tokenizer.pre_tokenize_str(normal)]


def _held(model: Described) -> set[str]:
    vocabulary = model["vocab"]
    return set(vocabulary) if isinstance(vocabulary, dict) else {piece for piece, _ in vocabulary}


def _append(model: Described, piece: str, score: float) -> None:
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        vocabulary[piece] = len(vocabulary)
    else:
        vocabulary.append([piece, score])


def _with_merges(model: Described, new: Sequence[str]) -> None:
    """For each new piece the merges that make it of what it is now; coming last, they disturb no others."""
    vocabulary: dict[str, int] = model["vocab"]
    for character in dict.fromkeys("".join(new)):
        vocabulary.setdefault(character, len(vocabulary))
    merges = [tuple(pair) for pair in model["merges"]]
    now = tokenizers.models.BPE(dict(vocabulary), merges)
    known = set(merges)
    for unit in new:
        parts = [token.value for token in now.tokenize(unit)]
        for end in range(2, len(parts) + 1):
            pair = ("".join(parts[: end - 1]), parts[end - 1])
            vocabulary.setdefault("".join(pair), len(vocabulary))
            if pair not in known:
                known.add(pair)
                merges.append(pair)
    model["merges"] = [list(pair) for pair in merges]


def _with_scores(model: Described, new: Sequence[str]) -> None:
    """A new piece scores as the mean of what it is made of now: above their sum, so that it wins over them."""
    vocabulary: list[list[Any]] = model["vocab"]
    worst = min(score for _, score in vocabulary)
    held = _held(model)
    vocabulary += [[each, worst] for each in dict.fromkeys("".join(new)) if each not in held]
    now = tokenizers.models.Unigram([(piece, score) for piece, score in vocabulary], model["unk_id"])
    scores: dict[str, float] = dict(vocabulary)
    for unit in (unit for unit in new if unit not in scores):
        parts = [scores[token.value] for token in now.tokenize(unit)]
        vocabulary.append([unit, sum(parts) / len(parts)])
