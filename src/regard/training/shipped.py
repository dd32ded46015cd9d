"""Configurations that come with the package: `regard train quickstart`."""

from importlib.resources import files
from pathlib import Path

from regard.support.errors import Misuse
from regard.support.nearest import nearest


def folder() -> Path:
    """Beside the package in the repository, inside it in a wheel."""
    inside = Path(str(files("regard"))) / "configs"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "configs"


def names() -> list[str]:
    return sorted(str(path.relative_to(folder()).with_suffix("")) for path in folder().rglob("*.yaml"))


def found(config: str) -> Path:
    """The path of a configuration: a file, or one of those by its name; Misuse names the nearest."""
    path = Path(config)
    if path.is_file():
        return path
    known = names()
    if config in known:
        return folder() / f"{config}.yaml"
    guess = nearest(config, [*known, *(str(each) for each in path.parent.glob("*.yaml"))])
    hint = f"; did you mean {guess}?" if guess else ""
    raise Misuse(f"{config}: there is no such file, nor a configuration of that name{hint} (known: {', '.join(known)})")
