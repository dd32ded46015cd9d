"""model.json of a model folder, read and checked without torch."""

import json
from pathlib import Path
from typing import Any

from regard.support.errors import Misuse
from regard.version import __version__

FORMAT, VERSION = "regard-model", 1
MODEL = "model.json"
DEEPEST = 50
"""So many times may mappings and lists lie in one another."""
KINDS: dict[str, tuple[type, str]] = {
    "task": (str, "the name of a task"),
    "network": (dict, "a mapping of settings to values"),
    "sizes": (dict, "a mapping of sizes to numbers"),
    "tokenizers": (dict, "a mapping of source and target to names of files"),
    "names": (list, "a list of names"),
    "about": (dict, "a mapping"),
}
"""What the parts are, as far as they are there."""


def read_model_json(folder: str | Path) -> dict[str, Any]:
    """model.json, its format checked."""
    path = Path(folder) / MODEL
    if not Path(folder).exists():
        raise Misuse(f"{folder}: no such folder")
    if not path.is_file():
        raise Misuse(f"{folder}: no model is here: {MODEL} is missing")
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Misuse(f"{path}: cut off or damaged: {error}") from None
    except RecursionError:
        raise Misuse(f"{path}: damaged: nested too deeply") from None
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise Misuse(f"{path}: not a model of regard; expected format {FORMAT!r}")
    version = held.get("format_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise Misuse(f"{path}: format_version: expected a whole number from 1 to {VERSION}; got {shown(version)}")
    if version > VERSION:
        by = f" (by regard {held['regard']})" if "regard" in held else ""
        raise Misuse(
            f"{path}: written in format {version}{by}; this regard, {__version__}, "
            f"reads up to {VERSION}: install a newer one"
        )
    if missing := [key for key in ("task", "network", "sizes") if key not in held]:
        raise Misuse(f"{path}: {' and '.join(missing)} missing")
    _check_kinds(path, held)
    return held


def _check_kinds(path: Path, held: dict[str, Any]) -> None:
    """That each part is of the kind it is read as."""
    if too_deep(held):
        raise Misuse(f"{path}: damaged: nested too deeply")
    for key, (kind, said) in KINDS.items():
        if key in held and not isinstance(held[key], kind):
            raise Misuse(f"{path}: {key}: expected {said}; got {shown(held[key])}")
    for key, each in (held.get("tokenizers") or {}).items():
        if not isinstance(each, str):
            raise Misuse(f"{path}: tokenizers.{key}: expected the name of a file; got {shown(each)}")
    if strange := [each for each in held.get("names", ()) if not isinstance(each, str)]:
        raise Misuse(f"{path}: names: expected the names of tags or labels; got {shown(strange[0])}")


def too_deep(held: Any) -> bool:
    """Whether mappings and lists lie in one another more than DEEPEST times."""
    level = [held]
    for _ in range(DEEPEST):
        level = [
            each
            for one in level if isinstance(one, (dict, list))
            for each in (one.values() if isinstance(one, dict) else one)
        ]  # fmt: skip
    return any(isinstance(each, (dict, list)) for each in level)


def shown(value: Any) -> str:
    """A value as it stands in the file, cut where it is long."""
    said = json.dumps(value, ensure_ascii=False)
    return said if len(said) <= 60 else said[:57] + "..."
