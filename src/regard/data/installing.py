"""The last step of a preparation: what is whole takes its place, and nothing that is not ours is touched."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

from regard.data.settings import DataSettings
from regard.data.shards import MANIFEST
from regard.support.atomic import sync_folder
from regard.support.errors import Misuse

LOCK = ".lock"
OURS: Final = re.compile(r"manifest\.json|texts\.jsonl|[0-9]{5,}\.safetensors")
"""The files of a split."""


def install(work: Path, folder: Path) -> None:
    """Move what was made into place, the manifest last; done again after a kill, it goes on where it was."""
    made = sorted(each for each in (work / "out").iterdir() if each.name != MANIFEST)
    old = work / "old"
    old.mkdir(exist_ok=True)
    for name in dict.fromkeys([*_stood(folder), *(each.name for each in made)]):
        if (folder / name).exists():
            os.replace(folder / name, _free(old, name))
    (folder / MANIFEST).unlink(missing_ok=True)
    for each in made:
        os.replace(each, folder / each.name)
    sync_folder(folder)
    os.replace(work / "out" / MANIFEST, folder / MANIFEST)
    sync_folder(folder)
    shutil.rmtree(work)


def _stood(folder: Path) -> list[str]:
    """The names of all that an earlier preparation made."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return [*manifest["splits"], *(each["file"] for each in manifest["tokenizers"].values())]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _free(folder: Path, name: str) -> Path:
    """A name that nothing in the folder has."""
    return next(path for number in count() if not (path := folder / f"{number}-{name}").exists())


def free_for(folder: Path, settings: DataSettings) -> None:
    """Misuse where a folder that will be replaced holds something else than prepared data."""
    stood = _stood(folder)
    for name in dict.fromkeys([*settings.splits, "dev", "test", *stood]):
        there = folder / name
        if there.is_dir():
            if (other := _other(there, known=name in stood)) is not None:
                raise Misuse(
                    f"{there}: prepared data would go there, and it is something else: it holds {other.name}; "
                    "move that away, or name another folder in data.folder"
                )
        elif there.exists() and name not in stood:
            raise Misuse(
                f"{there}: prepared data would go there, and it is something else; name another folder in data.folder"
            )


def _other(folder: Path, *, known: bool) -> Path | None:
    """The first thing in a folder that no preparation wrote; `known`: a preparation did write the folder."""
    held = sorted(folder.iterdir())
    for each in held:
        if not (each.is_file() and OURS.fullmatch(each.name)):
            return each
    return None if known or not held or _says_shards(folder / MANIFEST) else held[0]


def _says_shards(manifest: Path) -> bool:
    """Whether this is the manifest of a split, or was one before it was damaged."""
    try:
        return "shards" in json.loads(manifest.read_bytes())
    except FileNotFoundError:
        return False
    except ValueError:
        return True


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One preparation at a time in a folder; a second waits, and then finds it done."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with (folder / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
