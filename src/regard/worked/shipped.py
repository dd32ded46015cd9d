"""The problems that come with the package."""

from pathlib import Path
from textwrap import wrap

import regard
from regard.support.errors import Misuse
from regard.support.nearest import nearest

ENDINGS = (".yaml", ".yml")


def folder() -> Path:
    """Inside the installed package; in a checkout at the root, where readers find them."""
    package = Path(regard.__file__).parent
    installed = package / "problems"
    return installed if installed.is_dir() else package.parents[1] / "problems"


def shipped() -> dict[str, Path]:
    """Name → file, in the order of the names."""
    return {path.stem: path for path in sorted(folder().glob("*.yaml"))}


def located(path_or_name: str | Path) -> Path:
    """The file of a path as given, or of a shipped problem's name."""
    path = Path(path_or_name)
    if path.exists() or path.suffix in ENDINGS or len(path.parts) != 1:
        return path
    known = shipped()
    if path.name in known:
        return known[path.name]
    guess = nearest(path.name, known)
    hint = f"did you mean {guess}? " if guess else ""
    raise Misuse(
        f"{path_or_name}: no such file, and no shipped problem of this name; {hint}`regard problems` lists them"
    )


def lines(width: int | None = None) -> list[str]:
    """Each shipped problem with its name and what it is about, in lines no wider than `width`."""
    from regard.worked.reading import read_problem

    found = {name: read_problem(path) for name, path in shipped().items()}
    room = max(map(len, found), default=0) + 2
    told = [f"{name:{room}}{problem.about or problem.title}" for name, problem in found.items()]
    return (
        told if width is None else [line for each in told for line in wrap(each, width, subsequent_indent=" " * room)]
    )
