"""Words that are not said, however they could be spelled.

A search forbids sequences of tokens, and the same word may be made of others: behind a bracket, of smaller pieces. What
was found is read, and where a word is in it after all it is sought again without that spelling.
"""

import re
from collections.abc import Callable, Sequence

from regard.decoding.results import Hypothesis
from regard.pipeline.hypotheses import spans
from regard.support.errors import Misuse
from regard.text.tokenizer import Tokenizer

ROUNDS = 8
"""So often is sought again; each time the likeliest spelling that is left is gone."""
Found = list[list[Hypothesis]]
Spelling = tuple[int, ...]
Search = Callable[[Sequence[int], Sequence[Sequence[int]]], Found]
"""The places of the sources to be searched and the sequences forbidden → what is found for each."""


def without(words: Sequence[str], count: int, target: Tokenizer, search: Search, *, begun: int = 0) -> Found:
    """What a search finds for so many sources without the words; the first `begun` tokens were asked for, and stand."""
    spellings = [tuple(target.encode(word, end=False)) for word in words]
    for word in words:
        if not word.strip():
            raise Misuse(f"forbidden: expected words; got {word!r}")
    places = list(range(count))
    found = search(places, spellings)
    for _ in range(ROUNDS if words else 0):
        seen = {place: _spelled(found[place], words, target, begun) for place in places}
        places = [place for place, more in seen.items() if more]
        if not places:
            break
        spellings = [*dict.fromkeys([*spellings, *(each for place in places for each in seen[place])])]
        found = list(found)
        for place, again in zip(places, search(places, spellings), strict=True):
            found[place] = again
    return found


def _spelled(found: Sequence[Hypothesis], words: Sequence[str], target: Tokenizer, begun: int) -> list[Spelling]:
    """The tokens that say one of the words, wherever they do behind the beginning."""
    return [
        tuple(each.tokens[place] for place in places)
        for each in found
        for word in words
        for places in _of_word(each.tokens, word.strip(), target)
        if places[-1] >= begun
    ]


def _of_word(tokens: Sequence[int], word: str, target: Tokenizer) -> list[list[int]]:
    """The places of the tokens of each time that a word is said."""
    text = target.decode(tokens)
    places = [match.span() for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text)]
    if not places:
        return []
    each = spans(target, tokens, text)
    return [
        [place for place, (begin, end) in enumerate(each) if begin < last and end > first] for first, last in places
    ]
