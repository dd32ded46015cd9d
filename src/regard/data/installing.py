"""The last step of a preparation: what is whole takes its place, and nothing that is not ours is touched."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from regard.data.settings import DataSettings
from regard.data.shards import MANIFEST
from regard.support.atomic import sync_folder
from regard.support.errors import Misuse

LOCK = ".lock"


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
    for name in (*settings.splits, "dev", "test"):
        there = folder / name
        if there.exists() and not _ours(there):
            raise Misuse(
                f"{there}: prepared data would go there, and it is something else; name another folder in data.folder"
            )


def _ours(folder: Path) -> bool:
    """Whether a folder is empty, or one that a preparation wrote."""
    if not folder.is_dir():
        return False
    held = {each.name for each in folder.iterdir()}
    if MANIFEST not in held:
        return not held
    try:
        return "shards" in json.loads((folder / MANIFEST).read_bytes())
    except ValueError:
        return all(each == "texts.jsonl" or each == MANIFEST or each.endswith(".safetensors") for each in held)


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
