"""Where the pages of worked problems go, and in which format: as said, or as the ending of the file says."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from regard.support.atomic import write_text
from regard.support.errors import Misuse
from regard.support.nearest import unknown


def chosen(form: str | None, output: Path | None, endings: Mapping[str, str]) -> str:
    """The format that was said, else that of the file's ending, else (without a file, or an ending) the first;
    `endings` has one for each format.
    """
    if form is not None:
        return one_of("format", form, endings)
    by_ending = {ending: name for name, ending in endings.items()}
    if output is None or not output.suffix:
        return next(iter(endings))
    if output.suffix.lower() not in by_ending:
        raise Misuse(f"{output}: its ending is none of {', '.join(sorted(by_ending))}; say the format with --format")
    return by_ending[output.suffix.lower()]


def one_of(what: str, said: str, known: Iterable[str]) -> str:
    if said not in (names := list(known)):
        raise Misuse(unknown(what, said, names))
    return said


def write(text: str, output: Path | None) -> None:
    """To the file, whole or not at all, or to standard output."""
    if output is None:
        print(text.rstrip("\n"))
        return
    try:
        write_text(output, text)
    except OSError as error:
        raise Misuse(f"{output}: cannot be written: {(error.strerror or str(error)).lower()}") from None
