"""Text ↔ numbers of tokens. One tokenizer.json holds all of it, and other tools load it.

    tokenizer = Tokenizer.train(texts, TokenizerSettings(vocabulary=8000), languages=["es", "fr"])
    tokenizer.encode("A cat.", language="es")       [<2es>, …, </s>]
    tokenizer.decode(numbers)                       the text, without special tokens

Text never becomes a special token or a tag: `</s>` typed by a person is four characters. (Other tools that load the
file take such text for the token, as is their habit, unless told otherwise: `encode_special_tokens`.)
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import tokenizers
from tokenizers import processors

from regard.support.atomic import write_text
from regard.support.errors import Misuse
from regard.support.nearest import unknown
from regard.text import checks, extending, kinds, languages
from regard.text.settings import LOSES, Kind, TokenizerSettings
from regard.text.specials import END, PAD, SPECIALS, START, UNKNOWN

AT_ONCE: Final = 1 << 19
"""Characters given to the library in one call: all that it says of their tokens (spans, masks, …) takes much memory."""


class Token(NamedTuple):
    """One token of a text and the characters it stands for: text[start:end]."""

    piece: str
    """As it reads in the vocabulary, spaces as spaces."""
    number: int
    start: int
    end: int
    """White space at the edges left out; start is end where a token is only that."""


class Tokenizer:
    """Encodes and decodes. Never changes: what adds tokens gives a new one."""

    def __init__(self, text: str) -> None:
        """From the text of a tokenizer.json, which is kept as it is (to the last digit of a unigram's scores)."""
        self.json = text
        self.inner = _inner(text)
        """The tokenizer of the tokenizers library."""

    @classmethod
    def train(
        cls, texts: Iterable[str], settings: TokenizerSettings | None = None, languages: Iterable[str] = ()
    ) -> Self:
        """Learn a vocabulary from texts, read once, in a stream; `languages` get a tag each."""
        settings = settings or TokenizerSettings()
        tags = _tags(settings, languages)
        inner = kinds.blank(settings)
        inner.train_from_iterator(checks.some(texts), kinds.trainer(settings, tags))
        inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", END)])
        return cls(inner.to_str(pretty=True) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a tokenizer.json."""
        try:
            return cls(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise Misuse(f"{path}: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write one tokenizer.json, atomically."""
        write_text(path, self.json)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all that decides how text becomes numbers, in hexadecimal; layout of the file does not count."""
        plain = json.dumps(json.loads(self.json), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(plain.encode()).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.json,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        spoken = f", languages {' '.join(self.languages)}" if self.languages else ""
        return f"<Tokenizer {self.kind}, {self.vocabulary} tokens{spoken}>"

    def extended(self, words: Iterable[str] = (), languages: Iterable[str] = ()) -> Self:
        """With more words as one token each, and tags of more languages, behind the numbers there are."""
        return type(self)(extending.extended(self.json, words, languages))

    def merged(self, other: "Tokenizer") -> Self:
        """With the tokens of another of the same kind, trained on other text, behind the numbers there are."""
        if other.kind != self.kind:
            raise ValueError(f"other: expected a tokenizer of the kind {self.kind}; got {other.kind}")
        held = {*SPECIALS, *languages.tags(other.languages)}
        pieces = [piece for piece in other.pieces if piece not in held]
        return type(self)(extending.with_units(extending.extended(self.json, (), other.languages), pieces))

    # What it holds

    @cached_property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return int(self.inner.get_vocab_size(with_added_tokens=True))

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """Every token as the file writes it, in the order of the numbers."""
        held = self.inner.get_vocab(with_added_tokens=True)
        return tuple(sorted(held, key=held.__getitem__))

    @cached_property
    def special(self) -> dict[str, int]:
        """The special tokens and their numbers."""
        return {"<pad>": PAD, "<unk>": UNKNOWN, "<s>": START, "</s>": END}

    @cached_property
    def tags(self) -> dict[str, int]:
        """Languages and the number of the tag of each: {"es": 4}."""
        added = self.inner.get_added_tokens_decoder()
        found = {languages.language(token.content): number for number, token in sorted(added.items())}
        return {language: number for language, number in found.items() if language is not None}

    @property
    def languages(self) -> tuple[str, ...]:
        """Those with a tag."""
        return tuple(self.tags)

    @cached_property
    def kind(self) -> Kind:
        """byte_bpe, bpe, unigram, words or characters."""
        return kinds.kind_of(json.loads(self.json))

    @cached_property
    def loses(self) -> str:
        """What decoding does not give back, in words; empty where it gives back every text."""
        lost = [LOSES[self.kind]]
        steps = kinds.steps_of(json.loads(self.json)["normalizer"])
        lost += [f"text is brought to the normal form {form}" for form in ("NFC", "NFKC") if form in steps]
        lost += ["capital letters become small"] if "Lowercase" in steps else []
        return "; ".join(filter(None, lost))

    # Text to numbers

    def encode(self, text: str, *, language: str | None = None, end: bool = True) -> list[int]:
        """Numbers of the tokens: the tag of the language asked for in front, where there is one, `</s>` behind."""
        return self.encode_batch([text], language=language, end=end)[0]

    def encode_batch(self, texts: Sequence[str], *, language: str | None = None, end: bool = True) -> list[list[int]]:
        """Many texts, on all cores the library may use."""
        front = [] if language is None else [self.tag(language)]
        back = [END] if end else []
        return [[*front, *encoding.ids, *back] for encoding in self._encodings(texts)]

    def tokens(self, text: str) -> list[Token]:
        """The tokens of a text without special ones, each with the characters it stands for."""
        try:
            found = self.inner.encode(text, add_special_tokens=False)
        except TypeError:
            raise checks.no_text([text]) from None
        shown = self.shown(found.ids)
        spans = zip(found.ids, shown, _with_marks(text, found.offsets), strict=True)
        return [Token(piece, number, *_trimmed(text, piece, *span)) for number, piece, span in spans]

    def encode_words(self, words: Sequence[str], *, end: bool = True) -> tuple[list[int], list[int]]:
        """Words that are given as such: numbers of the tokens, and for each the word it is a part of (`</s>`: -1).

        Every word has a token at least: one of which the kind keeps nothing becomes <unk>.
        """
        numbers: list[int] = []
        owners: list[int] = []
        for place, ids in enumerate(self.encode_batch(words, end=False)):
            numbers += ids or [UNKNOWN]
            owners += [place] * max(len(ids), 1)
        return ([*numbers, END], [*owners, -1]) if end else (numbers, owners)

    def tag(self, language: str) -> int:
        """The number of a language's tag."""
        if language not in self.tags:
            raise ValueError(unknown("language", language, self.tags))
        return self.tags[language]

    def _encodings(self, texts: Sequence[str]) -> Iterator[tokenizers.Encoding]:
        try:
            for some in _portions(texts):
                yield from self.inner.encode_batch_fast(some, add_special_tokens=False)
        except TypeError:
            raise checks.no_text(texts) from None

    # Numbers to text

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of tokens; padding, start, end and tags are left out, and <unk> stays to be seen."""
        return self.decode_batch([numbers])[0]

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """Many at once."""
        silent = self._silent
        spoken = [[number for number in map(int, numbers) if number not in silent] for numbers in batch]
        for numbers in spoken:
            self._check(numbers)
        return list(self.inner.decode_batch(spoken, skip_special_tokens=False))

    def shown(self, numbers: Iterable[int]) -> list[str]:
        """Each token alone, to be looked at: spaces as spaces, special tokens by name, pieces of letters as \\x.."""
        return [self._shown[self._checked(int(number))] for number in numbers]

    def unknown_share(self, numbers: Sequence[int]) -> float:
        """How much of what stands for text is unknown; tags, the end and a space alone stand for none."""
        spoken = [number for number in numbers if number not in self._blank]
        return spoken.count(UNKNOWN) / len(spoken) if spoken else 0.0

    @cached_property
    def _blank(self) -> frozenset[int]:
        return self._silent | {number for number, shown in enumerate(self._shown) if not shown.strip()}

    @cached_property
    def _silent(self) -> frozenset[int]:
        return frozenset({PAD, START, END, *self.tags.values()})

    @cached_property
    def _shown(self) -> list[str]:
        if self.kind == "byte_bpe":
            control = {*self.special.values(), *self.tags.values()}
            return [piece if number in control else kinds.readable(piece) for number, piece in enumerate(self.pieces)]
        spaced = self.kind in ("bpe", "unigram")
        return [piece.replace(kinds.SPACE, " ") if spaced else piece for piece in self.pieces]

    def _checked(self, number: int) -> int:
        self._check([number])
        return number

    def _check(self, numbers: list[int]) -> None:
        if numbers and (min(numbers) < 0 or max(numbers) >= self.vocabulary):
            wrong = next(number for number in numbers if not 0 <= number < self.vocabulary)
            raise ValueError(f"token: expected a number from 0 to {self.vocabulary - 1}; got {wrong}")


def _inner(text: str) -> tokenizers.Tokenizer:
    try:
        inner = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"not a tokenizer.json: {error}") from None
    _check_specials(inner)
    inner.encode_special_tokens = True  # text that reads like a special token is only text
    inner.no_padding()
    inner.no_truncation()
    return inner


def _portions(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts some at a time, so that each time has so many characters, or is one text."""
    start, held = 0, 0
    for place, text in enumerate(texts):
        if held and held + len(text) > AT_ONCE:
            yield texts[start:place]
            start, held = place, 0
        held += len(text)
    if start < len(texts):
        yield texts[start:]


def _tags(settings: TokenizerSettings, given: Iterable[str]) -> list[str]:
    tags = languages.tags(given)
    least = kinds.least(settings, tags)
    if settings.vocabulary < least:
        raise Misuse(
            f"vocabulary: {settings.kind} needs at least {least} tokens ({len(SPECIALS)} special, {len(tags)} tags of "
            f"languages{', 256 bytes' if settings.kind == 'byte_bpe' else ''}); got {settings.vocabulary}"
        )
    return tags


def _check_specials(inner: tokenizers.Tokenizer) -> None:
    added = inner.get_added_tokens_decoder()
    for number, text in enumerate(SPECIALS):
        if number not in added or added[number].content != text or not added[number].special:
            held = inner.id_to_token(number)
            raise ValueError(f"token {number} must be the special token {text}; it is {held or 'missing'}")


def _with_marks(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """A character and the marks behind it that a normal form makes one of stand for the token together."""
    found: list[tuple[int, int]] = []
    behind = before = len(text)  # where the next characters of other tokens begin
    for start, end in reversed(spans):
        behind, before = (before, start) if end <= before else (behind, min(before, start))
        if start < end <= behind:
            while end < behind and _joins(text[end]):
                end += 1
        found.append((start, end))
    return found[::-1]


def _joins(character: str) -> bool:
    """Whether it may become one with the character in front of it: marks, and the parts of Korean syllables."""
    return unicodedata.category(character).startswith("M") or "\u1160" <= character <= "\u11ff"


def _trimmed(text: str, piece: str, start: int, end: int) -> tuple[int, int]:
    """Without white space at the edges; the space put in front of a text stands for none of its characters."""
    if not piece.strip():
        return (start, start) if not text[start:end].isspace() else (start, end)
    inside = text[start:end]
    if not inside.strip():
        return start, end
    return start + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())
