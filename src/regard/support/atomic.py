"""Writing files so that a kill at any instant leaves the old one or the new one, never a piece of either."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def writing(path: str | Path, mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """Open a file beside `path` for writing; when the block ends well, it takes the place of `path`.

    The bytes are on the disk before the name changes (fsync, rename, fsync of the folder), and an
    exception inside the block leaves what stood at `path` as it was.
    """
    target = Path(path)
    try:
        handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:  # names the file as it was given, not the one beside it
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(handle, mode, **options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _as_new_files_are(beside)
        os.replace(beside, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise
    sync_folder(target.parent)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file atomically, as UTF-8 with the line ends as they stand."""
    with writing(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def sync_folder(folder: str | Path) -> None:
    """Bring a rename in `folder` to the disk, where the system can (Windows cannot open a folder)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _as_new_files_are(path: str) -> None:
    """mkstemp makes files that only their owner may read; give this one the rights any new file has."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)
