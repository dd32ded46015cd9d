"""How models learned: the figures that their training wrote down, as curves over its steps."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.support.errors import Misuse
from regard.support.nearest import unknown
from regard.training.recording import METRICS, read

Curves = dict[str, list[tuple[float, float]]]
KINDS = {"train": "training", "dev": "development"}


def curves(folders: Sequence[str | Path], figure: str = "loss") -> Curves:
    """Of each model the figure in training and on its development set, as far as it was taken there."""
    found: Curves = {}
    names = [Path(folder).resolve().name for folder in folders]
    for number, (folder, name) in enumerate(zip(folders, names, strict=True), 1):
        lines = _lines(Path(folder))
        name = name if names.count(name) == 1 else f"{number}:{name}"
        here = {
            f"{name}, {said}" if len(folders) > 1 else said: points
            for kind, said in KINDS.items()
            if (points := [(each["step"], each[figure]) for each in lines
                           if each["kind"] == kind and isinstance(each.get(figure), (int, float))])
        }  # fmt: skip
        if not here:
            known = {key for each in lines if each["kind"] in KINDS for key in each} - {"kind", "step"}
            raise Misuse(f"{folder}: {unknown('figure', figure, known)}")
        found |= here
    return found


def _lines(folder: Path) -> list[dict[str, Any]]:
    lines = read(folder / "training" / METRICS)
    if not lines:
        raise Misuse(f"{folder}: holds no figures of its training (training/{METRICS})")
    return lines
