"""Where a file named in a configuration is: a path, or `regard:name` for a sample that comes with the package."""

from importlib.resources import files
from pathlib import Path

from regard.support.errors import Misuse
from regard.support.nearest import nearest, unknown

SHIPPED = "regard:"


def place(name: str) -> Path:
    """The path of a file that must exist; Misuse names the nearest that does."""
    if name.startswith(SHIPPED):
        return _sample(name.removeprefix(SHIPPED))
    path = Path(name).expanduser()
    if path.exists():
        return path
    raise Misuse(f"{name}: there is no such file{_near(path)}")


def samples() -> list[str]:
    """The names of the samples that come with the package."""
    found = Path(str(files("regard.data"))) / "samples"
    return sorted(each.name for each in found.iterdir() if each.name not in ("LICENSE.txt", "__init__.py"))


def _sample(name: str) -> Path:
    if name not in samples():
        raise Misuse(unknown("sample", name, samples()))
    return Path(str(files("regard.data"))) / "samples" / name


def _near(path: Path) -> str:
    parent = path.parent
    if not parent.is_dir():
        return f" (nor the folder {parent})"
    guess = nearest(path.name, [each.name for each in parent.iterdir()])
    return f"; did you mean {parent / guess}?" if guess else ""
