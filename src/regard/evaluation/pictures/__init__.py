"""Pictures by matplotlib: figures that are made without a screen, and saved as PNG or SVG.

from regard.evaluation.pictures import saved
from regard.evaluation.pictures.heat import alignment

saved(alignment(weights, ["un", "chat"], ["a", "cat"]), "cat.png")
"""

import io
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.support.atomic import writing
from regard.support.errors import Misuse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("png", "svg", "pdf")
COLOURS = ("#1f4e8c", "#c8553d", "#3a7d44", "#7a4b94", "#b8860b", "#2a9d8f", "#6c757d")
"""Of lines and points; told apart by their markers as well."""
MARKERS = "osD^vPX"


def figure(width: float, height: float) -> "Figure":
    """An empty figure of so many inches; no window system is asked for."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def saved(picture: "Figure", path: str | Path) -> Path:
    """Write it atomically, in the format that the name's ending says."""
    path = Path(path)
    kind = kind_of(path)
    with writing(path) as file:
        file.write(drawn(picture, kind))
    return path


def kind_of(path: Path) -> str:
    """The format that a name asks for."""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in KINDS:
        raise Misuse(f"{path}: pictures are written as {', '.join(KINDS)}; the name must end so")
    return kind


def drawn(picture: "Figure", kind: str = "png", dpi: int = 160) -> bytes:
    """The picture in that format, as it stands in a file."""
    from matplotlib import rc_context

    # In an SVG letters stay letters: they can be searched, and are shaped by whoever shows it.
    with warnings.catch_warnings(), rc_context({"svg.fonttype": "none", "svg.hashsalt": "regard"}):
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # told already, in words and on the picture
        file = io.BytesIO()
        picture.savefig(file, format=kind, dpi=dpi, metadata=_metadata(kind))
    return file.getvalue()


def told(picture: "Figure", note: str) -> "Figure":
    """The picture, with what a person should know about it under it."""
    if note:
        wide = max(30, int(picture.get_figwidth() * 17))
        picture.supxlabel("\n".join(textwrap.wrap(note, wide)), fontsize=7, color="#a03020")
    return picture


def _metadata(kind: str) -> dict[str, Any]:
    """No time of day: the same picture is the same file."""
    return {"Date": None} if kind == "svg" else {"CreationDate": None} if kind == "pdf" else {}
