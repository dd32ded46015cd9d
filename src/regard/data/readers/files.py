"""The files of a source while it is read."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from regard.data.places import place
from regard.support.compressed import Opened, opened
from regard.support.errors import Misuse


class Files:
    """Names as they were given, where they are, and how far they have been read; closes them at the end."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.paths: list[Path] = [place(name) for name in names]
        self.told: float | None = None
        """How far a reader says it is, from 0 to 1, where the opened files cannot tell."""
        self._opened: dict[int, Opened] = {}
        self._open = ExitStack()

    def open(self, number: int = 0) -> Opened:
        """Open one of the files."""
        if number not in self._opened:
            if self.paths[number].is_dir():
                raise Misuse(f"{self.names[number]}: expected a file, and this is a folder")
            self._opened[number] = self._open.enter_context(opened(self.paths[number]))
        return self._opened[number]

    def share(self) -> float:
        """How much has been read, from 0 to 1."""
        if self.told is not None:
            return self.told
        shares = [each.share() for each in self._opened.values()]
        return sum(shares) / len(shares) if shares else 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()
