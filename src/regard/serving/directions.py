"""Which languages a model translates from and into, and the way from one to another."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.serving.errors import unsupported

NAMES = {
    "ar": "Arabic", "bn": "Bengali", "bg": "Bulgarian", "ca": "Catalan", "zh": "Chinese", "hr": "Croatian",
    "cs": "Czech", "da": "Danish", "nl": "Dutch", "en": "English", "eo": "Esperanto", "et": "Estonian",
    "fi": "Finnish", "fr": "French", "de": "German", "el": "Greek", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian",
    "id": "Indonesian", "ga": "Irish", "it": "Italian", "ja": "Japanese", "ko": "Korean", "lv": "Latvian",
    "lt": "Lithuanian", "fa": "Persian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sr": "Serbian", "sk": "Slovak", "sl": "Slovenian", "es": "Spanish", "sv": "Swedish", "th": "Thai",
    "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese",
}  # fmt: skip


class Directions:
    """Pairs of languages; from one to another in one step, or in two through a third."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = tuple(dict.fromkeys(pairs))
        self.sources = tuple(dict.fromkeys(source for source, _ in self.pairs))

    @classmethod
    def of(cls, about: Mapping[str, Any], tags: Sequence[str]) -> "Directions":
        """From what a model folder says of itself; a model that says nothing goes from `source` to `target`."""
        if isinstance(told := about.get("pairs"), list) and told:
            codes = {*tags, *(code for code in NAMES)}
            found = [pair for each in told if (pair := _pair(each, codes)) is not None]
            if found:
                return cls(found)
        source = str(about.get("source") or "source")
        if tags:
            return cls([(source, tag) for tag in tags])
        return cls([(source, str(about.get("target") or "target"))])

    def targets(self, source: str) -> list[str]:
        """Those that can be reached, in one step or two."""
        near = [target for first, target in self.pairs if first == source]
        far = [target for middle in near for first, target in self.pairs if first == middle and target != source]
        return list(dict.fromkeys([*near, *far]))

    def way(self, source: str, target: str) -> list[str]:
        """The targets to go through, the last being the one asked for; empty where nothing is to be done."""
        if source not in self.sources:
            raise unsupported(source)
        if source == target:
            return []
        if (source, target) in self.pairs:
            return [target]
        for middle in (second for first, second in self.pairs if first == source):
            if (middle, target) in self.pairs:
                return [middle, target]
        raise unsupported(target)

    def listed(self) -> list[dict[str, Any]]:
        """As `GET /languages` answers: all languages there are; one that is only translated into has no targets."""
        codes = dict.fromkeys([*self.sources, *(target for _, target in self.pairs)])
        return [{"code": code, "name": name(code), "targets": self.targets(code)} for code in codes]


def name(code: str) -> str:
    base = code.partition("-")[0]
    return NAMES.get(code) or (f"{NAMES[base]} ({code})" if base in NAMES else code)


def _pair(told: Any, codes: set[str]) -> tuple[str, str] | None:
    """`en-es`, or a list of the two."""
    if isinstance(told, list | tuple) and len(told) == 2:
        return str(told[0]), str(told[1])
    parts = str(told).split("-")
    cuts = [("-".join(parts[:n]), "-".join(parts[n:])) for n in range(1, len(parts))]
    return next((cut for cut in cuts if cut[0] in codes and cut[1] in codes), cuts[0] if cuts else None)
