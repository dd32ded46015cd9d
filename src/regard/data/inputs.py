"""What a preparation starts from: its files by their contents, and the languages of its sources."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from regard.data.encoding import Way
from regard.data.places import place
from regard.data.settings import DataSettings, TokenizerFiles
from regard.data.shards import Told, sha256
from regard.data.sources import Languages, Source
from regard.support.errors import Misuse
from regard.support.progress import Progress

LARGE: Final = 1 << 30
"""Bytes that take so long to read through that it is told how far it is."""


@contextmanager
def checking(what: str, total: int, *, quiet: bool) -> Iterator[Told]:
    """Tell how reading through so many bytes goes, where there are many."""
    done = 0

    def told(count: int) -> None:
        nonlocal done
        before, done = done, done + count
        progress.add(done // 1_000_000 - before // 1_000_000)

    with Progress(what, "MB", total // 1_000_000, quiet=quiet or total < LARGE) as progress:
        yield told


def inputs(settings: DataSettings, *, quiet: bool = True) -> list[dict[str, Any]]:
    """Every file that is read, with its checksum; Misuse where one is missing."""
    paths = paths_of(settings)
    sizes = {name: _size(path) for name, path in paths.items()}
    with checking("checking what there is", sum(sizes.values()), quiet=quiet) as told:
        return [{"name": name, "bytes": sizes[name], "sha256": _checksum(path, told)} for name, path in paths.items()]


def paths_of(settings: DataSettings) -> dict[str, Path]:
    """Where each file that is read is, by its name; Misuse where one is missing."""
    names = dict.fromkeys(name for sources in settings.splits.values() for source in sources for name in source.files())
    named = settings.tokenizer
    if isinstance(named, str):
        names[named] = None
    elif isinstance(named, TokenizerFiles):
        names |= dict.fromkeys([named.source, named.target])
    return {name: place(name) for name in names}


def key_of(settings: DataSettings, files: Sequence[Mapping[str, Any]], version: int) -> str:
    """One hash of all that decides what comes out."""
    told = settings.model_dump(mode="json", exclude={"folder"})
    held = {"format": version, "settings": told, "inputs": [[each["name"], each["sha256"]] for each in files]}
    return hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()


def _files_in(path: Path) -> list[Path]:
    return sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]


def _size(path: Path) -> int:
    return sum(each.stat().st_size for each in _files_in(path))


def _checksum(path: Path, told: Told) -> str:
    if not path.is_dir():
        return sha256(path, told)
    made = hashlib.sha256()
    for each in _files_in(path):
        made.update(f"{each.relative_to(path).as_posix()}\0{sha256(each, told)}\n".encode())
    return made.hexdigest()


@dataclass(frozen=True)
class Spoken:
    """The languages of all sources, and what follows from them."""

    pairs: list[str]
    """Where there are several; else none."""
    tags: list[str]
    """The languages whose tags stand in front of sources, if any do."""

    def ways(self, source: Source) -> list[Way]:
        """The directions in which a source gives examples."""
        languages = languages_of(source)
        found = []
        for turned in (False, True) if getattr(source, "both_ways", False) else (False,):
            first, second = _ordered(languages, turned)
            pair = self.pairs.index(f"{first}-{second}") if self.pairs else 0
            found.append(Way(second if self.tags else None, pair, turned))
        return found

    def kind(self, source: Source) -> str:
        """Sources of one kind have the same languages, whichever way round."""
        languages = languages_of(source)
        return "-".join(sorted([languages.source, languages.target])) if languages else ""


def spoken(settings: DataSettings) -> Spoken:
    """The pairs of languages in the order in which they are named; Misuse where one is needed and not there."""
    sources = [source for each in settings.splits.values() for source in each]
    both = {source.name for source in sources if getattr(source, "both_ways", False)}
    directions = [
        _ordered(languages, turned)
        for source in sources if (languages := languages_of(source))
        for turned in ((False, True) if source.name in both else (False,))
    ]  # fmt: skip
    pairs = list(dict.fromkeys(f"{first}-{second}" for first, second in directions))
    targets = list(dict.fromkeys(second for _, second in directions))
    wanted = len(targets) > 1 if settings.target_tags is None else settings.target_tags
    if (wanted or len(pairs) > 1) and (silent := _without(sources)):
        why = "the tag of the target's goes in front of the source" if wanted else "other sources have them"
        raise Misuse(f"data: {silent.name}: languages are missing, and {why}")
    return Spoken(pairs if len(pairs) > 1 else [], targets if wanted else [])


def languages_of(source: Source) -> Languages | None:
    """The languages of a source of two texts, where they are said."""
    return getattr(source, "languages", None)


def _without(sources: Iterable[Source]) -> Source | None:
    return next((source for source in sources if languages_of(source) is None), None)


def _ordered(languages: Languages | None, turned: bool) -> tuple[str, str]:
    if languages is None:
        return "", ""
    return (languages.target, languages.source) if turned else (languages.source, languages.target)
