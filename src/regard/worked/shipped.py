"""The problems that come with the package."""

from pathlib import Path
from textwrap import wrap

import regard
from regard.support.errors import Misuse
from regard.support.nearest import nearest
from regard.worked.lines import Mapping, Text, read_lines

ENDINGS = (".yaml", ".yml")
LONGEST = 80
"""Letters of a name that are repeated in a message."""


def folder() -> Path:
    """Inside the installed package; in a checkout at the root, where readers find them."""
    package = Path(regard.__file__).parent
    installed = package / "problems"
    return installed if installed.is_dir() else package.parents[1] / "problems"


def shipped() -> dict[str, Path]:
    """Name → file, in the order of the names."""
    return {path.stem: path for path in sorted(folder().glob("*.yaml"))}


def is_there(path: Path) -> bool:
    """Whether there is such a file or folder; a name that none can have is none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def located(path_or_name: str | Path) -> Path:
    """The file of a path as given, or of a shipped problem's name."""
    path = Path(path_or_name)
    if is_there(path) or path.suffix in ENDINGS or len(path.parts) != 1:
        return path
    known = shipped()
    if path.name in known:
        return known[path.name]
    guess = nearest(path.name, known)
    hint = f"did you mean {guess}? " if guess else ""
    said = str(path_or_name) if len(str(path_or_name)) <= LONGEST else f"{str(path_or_name)[:LONGEST]}…"
    raise Misuse(f"{said}: no such file, and no shipped problem of this name; {hint}`regard problems` lists them")


def lines(width: int | None = None) -> list[str]:
    """Each shipped problem with its name and what it is about, in lines no wider than `width`."""
    about = {name: _about(path) for name, path in shipped().items()}
    room = max(map(len, about), default=0) + 2
    told = [f"{name:{room}}{said}" for name, said in about.items()]
    if width is None:
        return told
    return [line for each in told for line in wrap(each, width, subsequent_indent=" " * room)]


def _about(path: Path) -> str:
    """What a problem is about, or its title: read without working it."""
    tree = read_lines(path.read_text(encoding="utf-8"), str(path))
    found = [tree.items.get(key) for key in ("about", "title")] if isinstance(tree, Mapping) else []
    return next((" ".join(each.text.split()) for each in found if isinstance(each, Text)), "")
