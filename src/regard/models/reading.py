"""model.json of a model folder, read and checked without torch."""

import json
from pathlib import Path
from typing import Any

from regard.support.errors import Misuse
from regard.version import __version__

FORMAT, VERSION = "regard-model", 1
MODEL = "model.json"


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
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise Misuse(f"{path}: not a model of regard; expected format {FORMAT!r}")
    if not isinstance(held.get("format_version"), int) or held["format_version"] > VERSION:
        by = f" (by regard {held['regard']})" if "regard" in held else ""
        raise Misuse(
            f"{path}: written in format {held.get('format_version')}{by}; this regard, {__version__}, "
            f"reads up to {VERSION}: install a newer one"
        )
    if missing := [key for key in ("task", "network", "sizes") if key not in held]:
        raise Misuse(f"{path}: {' and '.join(missing)} missing")
    return held
