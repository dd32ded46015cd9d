"""The file that lists what was left out: never written over something else, and recognised by its first line."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from regard.support.errors import Misuse

HEAD: Final = b"# left out by regard prepare: file, line, reason, text\n"
"""The first line of every such file."""


def skipped_path(name: str | None, inputs: Iterable[Path], folder: Path) -> Path | None:
    """Where the list goes, None where none is wanted; Misuse where anything but an earlier list stands there.

    `inputs` are the files and folders that are read, `folder` is where the prepared data go.
    """
    if name is None:
        return None
    path = Path(name).expanduser()
    if path.is_dir():
        raise Misuse(f"data.skipped: {name}: expected a file to write to, and this is a folder")
    if not path.parent.is_dir():
        raise Misuse(f"data.skipped: {name}: there is no folder {path.parent}")
    for each in inputs:
        _apart(name, path, each)
    _not_among_the_prepared(name, path, folder)
    if (path.exists() or path.is_symlink()) and not _is_list(path):
        raise Misuse(
            f"data.skipped: {name}: it exists and is no list of lines that were left out; it is not written over. "
            "Name another file, or remove it"
        )
    return path


def _apart(name: str, path: Path, given: Path) -> None:
    if path.resolve() == given.resolve() or (path.exists() and path.samefile(given)):
        raise Misuse(f"data.skipped: {name}: the data are read from it; name another file")
    if given.is_dir() and path.resolve().is_relative_to(given.resolve()):
        raise Misuse(f"data.skipped: {name}: it lies in {given}, from which the data are read; name another file")


def _not_among_the_prepared(name: str, path: Path, folder: Path) -> None:
    place, ours = path.resolve(), folder.resolve()
    if place.is_relative_to(ours) and (place.parent != ours or place.suffix == ".json" or place.name == ".lock"):
        raise Misuse(f"data.skipped: {name}: prepared data go there; name another file")


def _is_list(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(HEAD)) == HEAD
