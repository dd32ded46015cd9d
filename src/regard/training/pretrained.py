"""Word vectors from a file of GloVe or word2vec in text, for the words that a vocabulary has."""

from pathlib import Path

import torch
from torch import Tensor

from regard.data.lines import read_lines
from regard.data.places import place
from regard.models.contract import Model
from regard.models.input_settings import WordSettings
from regard.models.inputs import begin_with, words_of
from regard.support.errors import Misuse
from regard.text.tokenizer import Tokenizer


def put_vectors(model: Model, tokenizer: Tokenizer | None) -> str | None:
    """Let a model begin with the vectors its settings name; how many of its words have one, in a sentence."""
    settings = getattr(model.settings, "input", None)
    if not isinstance(settings, WordSettings) or settings.vectors is None:
        return None
    words = words_of(model)  # type: ignore[arg-type] # it looks through the modules of any network
    if tokenizer is None or words is None:
        raise Misuse("network.input.vectors: the source is no text, so there are no words that could have vectors")
    own = words.vectors.weight
    rows = _rows(place(settings.vectors), {each: number for number, each in enumerate(tokenizer.pieces)}, own.shape[1])
    scale = torch.stack(list(rows.values())).std() / own.detach().std() if len(rows) > 1 else torch.ones(())
    vectors = own.detach() * scale.to(own.device)  # words without a vector: as long as those with one
    for number, row in rows.items():
        vectors[number] = row.to(vectors.device)
    begin_with(words, vectors)
    return f"{settings.vectors}: vectors for {len(rows):,} of {len(own):,} words"


def _rows(path: Path, numbers: dict[str, int], width: int) -> dict[int, Tensor]:
    """Vectors by the numbers of their words; a word that is not there takes that of its small letters."""
    wanted = {word.lower() for word in numbers} | set(numbers)
    found: dict[str, Tensor] = {}
    for line, text in enumerate(read_lines(path), 1):
        if not isinstance(text, str):
            continue
        word, *given = text.rstrip().split(" ")
        if line == 1 and len(given) == 1:
            continue  # word2vec begins with how many there are and how wide they are
        if word in wanted:
            if len(given) != width:
                raise Misuse(f"{path}:{line}: {len(given)} numbers; network.input.width is {width}")
            found[word] = torch.tensor([float(each) for each in given])
    if not found:
        raise Misuse(f"{path}: has a vector for none of the words of the vocabulary")
    best = {number: found.get(word, found.get(word.lower())) for word, number in numbers.items()}
    return {number: row for number, row in best.items() if row is not None}
