"""What each kind of tokenizer is made of, in parts of the tokenizers library.

Text is cut into words before any piece is learned, and `<` always stands apart from what follows it. No token of a
text can therefore read `</s>` or `<2es>`, whatever stood in the training text: these tokens are out of its reach.
"""

from typing import Any, Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from regard.text.settings import LOSES, Kind, TokenizerSettings
from regard.text.specials import SPECIALS
from regard.text.words import WORD

SPACE: Final = "▁"
"""Stands for a space in the pieces of the kinds that work on characters."""

# A word takes the space before it along, and the marks of scripts that write vowels as marks belong to it. An
# apostrophe inside a word stays with its left part: l' homme, don' t.
PIECES: Final = (
    r"{s}?[\p{{L}}\p{{M}}]+(?:['’](?=[\p{{L}}\p{{M}}]))?|{s}?{n}|{s}?<|{s}?[^\s\p{{L}}\p{{M}}\p{{N}}<{x}]+|{w}"
)
# The trainer of unigram takes as pieces what is followed by different things in the words it sees, each seen once:
# cut off from its punctuation, " and" would never be one, and texts would have a quarter more tokens.
CHUNKS: Final = r"{s}?[^\s\p{{N}}<{x}]+|{s}?{n}|{s}?<|{w}"
ALPHABET: Final = 256


def blank(settings: TokenizerSettings) -> Tokenizer:
    """A tokenizer of the kind asked for that has learned nothing yet."""
    made = {"byte_bpe": _bytes, "bpe": _pieces, "unigram": _pieces, "words": _words, "characters": _characters}
    tokenizer: Tokenizer = made[settings.kind](settings)
    steps = [tokenizer.normalizer] if tokenizer.normalizer is not None else []
    if settings.lowercase:
        steps.insert(0, normalizers.Lowercase())
    if settings.normal_form != "none":
        steps.insert(0, {"NFC": normalizers.NFC, "NFKC": normalizers.NFKC}[settings.normal_form]())
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps)
    return tokenizer


def trainer(settings: TokenizerSettings, tags: list[str]) -> trainers.Trainer:
    """What learns the vocabulary: the special tokens first, then the tags, then what the text is made of."""
    control = [AddedToken(each, normalized=False, special=True) for each in (*SPECIALS, *tags)]
    common: dict[str, Any] = {"vocab_size": settings.vocabulary, "special_tokens": control, "show_progress": False}
    if settings.kind == "byte_bpe":
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        return trainers.BpeTrainer(min_frequency=settings.min_count, initial_alphabet=alphabet, **common)
    if settings.kind == "bpe":
        return trainers.BpeTrainer(min_frequency=settings.min_count, limit_alphabet=_room(settings, tags), **common)
    if settings.kind == "unigram":
        return trainers.UnigramTrainer(unk_token="<unk>", **common)
    return trainers.WordLevelTrainer(min_frequency=settings.min_count if settings.kind == "words" else 1, **common)


def least(settings: TokenizerSettings, tags: list[str]) -> int:
    """The smallest vocabulary that makes sense for a kind."""
    return len(SPECIALS) + len(tags) + (ALPHABET if settings.kind == "byte_bpe" else 1)


def _room(settings: TokenizerSettings, tags: list[str]) -> int:
    """Characters bpe may keep: with a script of thousands, at least half of the vocabulary is left to pieces."""
    return max((settings.vocabulary - len(SPECIALS) - len(tags)) // 2, 1)


def _regex(settings: TokenizerSettings, space: str) -> Regex:
    number = r"\p{N}" if settings.split_digits else r"\p{N}+"
    # Of a run of spaces the last goes with the word behind it.
    white = rf"\s+|{SPACE}+(?!\S)|{SPACE}+(?={SPACE})|{SPACE}" if space == SPACE else r"\s+(?!\S)|\s+"
    form = CHUNKS if settings.kind == "unigram" else PIECES
    return Regex(form.format(s=space, n=number, x=space.strip(), w=white))


def _bytes(settings: TokenizerSettings) -> Tokenizer:
    """Every byte is a token, so there is no unknown. The space put in front makes first words like all others."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(_regex(settings, " "), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def _pieces(settings: TokenizerSettings) -> Tokenizer:
    model = models.BPE(unk_token="<unk>") if settings.kind == "bpe" else models.Unigram()
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(_regex(settings, SPACE), "isolated")
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace(SPACE, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)
    ])  # fmt: skip
    return tokenizer


def _words(settings: TokenizerSettings) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    apart = Regex(WORD) if settings.split_punctuation else Regex(r"<|[^<]+")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\s+"), "removed"), pre_tokenizers.Split(apart, "isolated")
    ])  # fmt: skip
    return tokenizer


def _characters(settings: TokenizerSettings) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def readable(piece: str) -> str:
    """A piece of byte_bpe as text: its bytes as UTF-8, those of half a letter as \\x..."""
    return bytes(_BYTES[character] for character in piece).decode(errors="backslashreplace")


def _byte_of_characters() -> dict[str, int]:
    """The library writes a byte as one printable character: itself where it is one, else from U+0100 upwards."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + place): byte for place, byte in enumerate(others)}


_BYTES: Final = _byte_of_characters()


def kind_of(described: dict[str, Any]) -> Kind:
    """From the description the library writes."""
    model, decoder = described["model"]["type"], steps_of(described["decoder"])
    if model == "BPE":
        return "byte_bpe" if "ByteLevel" in decoder else "bpe"
    if model == "Unigram":
        return "unigram"
    if model == "WordLevel":
        return "characters" if "Fuse" in decoder else "words"
    raise ValueError(f"a tokenizer of the sort {model} is none of {', '.join(LOSES)}")


def steps_of(part: Any) -> set[str]:
    """The names of all steps in a normalizer or decoder."""
    if isinstance(part, dict):
        own = {part["type"]} if isinstance(part.get("type"), str) else set()
        return own.union(*(steps_of(each) for each in part.values()))
    return set().union(*map(steps_of, part)) if isinstance(part, list) else set()
