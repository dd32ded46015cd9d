"""A derivation to a file: what is written follows from the ending of its name."""

from collections.abc import Callable
from pathlib import Path

from regard.support.atomic import write_text
from regard.tracing.derivation import Derivation

WRITERS: dict[str, Callable[[Derivation], str]] = {
    ".json": lambda derivation: derivation.to_json(),
    ".html": lambda derivation: derivation.html(),
    ".md": lambda derivation: derivation.markdown(),
    ".tex": lambda derivation: derivation.latex(),
    ".txt": lambda derivation: derivation.text(width=100, color=False),
}


def save(derivation: Derivation, path: str | Path) -> None:
    """Write it whole or not at all; one sentence where it cannot be written."""
    writer = WRITERS.get(Path(path).suffix.lower())
    if writer is None:
        raise ValueError(f"{path}: a derivation is written as one of {', '.join(WRITERS)}; name the file so")
    try:
        write_text(path, writer(derivation))
    except OSError as error:
        raise ValueError(f"{path}: cannot be written: {error.strerror or error}") from None
