"""From texts to what a search takes: which language was asked for, how long a text may be, where a long one is cut."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from regard.support.errors import Misuse
from regard.support.nearest import unknown
from regard.text.clauses import clauses
from regard.text.sentences import Sentence, sentences

Cut = Literal["long", "always", "never"]
"""When a text is cut at the ends of its sentences: where it is too long or has several lines, always, or never."""
CUTS: tuple[Cut, ...] = get_args(Cut)
LONGEST = 512
"""The most tokens of a source where neither the model nor its folder says otherwise."""


@dataclass(frozen=True)
class Part:
    """What is searched at once: a text, or one sentence of it."""

    text: str
    tokens: list[int]


@dataclass(frozen=True)
class Cutting:
    """A text, in the parts that are translated one by one."""

    text: str
    parts: tuple[Part, ...]
    sentences: tuple[Sentence, ...] = ()
    """Where it was cut; a sentence without words has no part."""
    problem: str = ""
    notes: tuple[str, ...] = ()
    """What a person should know of how it was cut."""


def target_language(asked: str | None, tags: Sequence[str], about: Mapping[str, Any]) -> str | None:
    """The language whose tag goes in front of a source; None where the model has but one target."""
    only = about.get("target")
    if not tags:
        if asked is not None and isinstance(only, str) and asked != only:
            raise Misuse(f"language: this model translates into {only} and nothing else; asked for {asked!r}")
        return None
    if asked is None:
        if len(tags) == 1:
            return tags[0]
        raise Misuse(f"language: say into which one, with to= (--to); this model knows {', '.join(sorted(tags))}")
    if asked not in tags:
        raise Misuse(unknown("language", asked, tags))
    return asked


def cut(text: str, longest: int, how: Cut, encode: Callable[[list[str]], list[list[int]]]) -> Cutting:
    """A text as what can be searched, or with a sentence about why it cannot be."""
    plain = text.strip()
    if not plain:
        return Cutting(text, ())
    [tokens] = encode([plain]) if len(plain) <= CHARACTERS * longest else [None]
    whole = tokens is not None and len(tokens) <= longest
    if tokens is not None and whole and (how == "never" or (how == "long" and len(plain.splitlines()) <= 1)):
        return Cutting(text, (Part(plain, tokens),))
    if how == "never":
        came = f"{len(tokens):,} tokens" if tokens is not None else f"{len(plain):,} characters"
        return Cutting(text, (), problem=f"too long: {came}, and at most {longest:,} tokens are taken at once")
    found = sentences(text)
    if longer := next((each.text for each in found if len(each.text) > ENDLESS), None):
        said = (
            f"a sentence of {len(longer):,} characters ({_begins(longer)!r}), and at most {longest:,} tokens are taken"
        )
        return Cutting(text, (), problem=f"{said} at once")
    found, notes = _cut_further(found, longest, encode)
    spoken = [each.text for each in found if each.text]
    parts = [Part(each, tokens) for each, tokens in zip(spoken, encode(spoken), strict=True)]
    return Cutting(text, tuple(parts), tuple(found), notes=tuple(notes))


def _cut_further(
    found: Sequence[Sentence], longest: int, encode: Callable[[list[str]], list[list[int]]]
) -> tuple[list[Sentence], list[str]]:
    """A sentence that is too long, in parts that are not; each is told."""

    def fits(text: str) -> bool:
        return len(text) <= CHARACTERS * longest and len(encode([text])[0]) <= longest

    cut, notes = list[Sentence](), list[str]()
    for each in found:
        parts = list(clauses(each, fits))
        if len(parts) > 1:
            notes.append(
                f"a sentence of more than {longest:,} tokens ({_begins(each.text)!r}) was cut into {len(parts)}"
            )
        cut += parts
    return cut, notes


CHARACTERS = 64
"""No token stands for more characters than this on average: a longer text is too long before it is encoded."""


ENDLESS = 50_000
"""A sentence of more characters is none, and is not cut into parts."""


def _begins(sentence: str) -> str:
    return sentence[:30] + ("…" if len(sentence) > 30 else "")
