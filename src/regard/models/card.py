"""The card of a model, for people: what it is, what it was trained on, how good it is, how to use it."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.models.contract import Model
from regard.version import __version__

DOES = {
    "translate": "Sequences out of sequences", "tag": "A tag for each word", "classify": "A label for each text",
    "caption": "A text for each image", "language_model": "A text that goes on",
    "reconstruct": "The source, said again",
}  # fmt: skip
TOLD = ("name", "source", "target", "trained_on", "scores", "licence", "remarks")
"""What the card tells in places of its own; all else in `about` is listed under Details."""


def card(
    model: Model,
    task: str,
    about: Mapping[str, Any],
    *,
    names: Sequence[str] = (),
    languages: Sequence[str] = (),
    folder: str = "model",
) -> str:
    """Markdown. `languages`: those it may be asked to translate into, where there are several."""
    name = about.get("name", folder)
    parts = [f"# {name}", _what(model, task, about, names), *_trained(about), *_scores(about)]
    parts += [_use(task, folder, languages), *_details(about)]
    return "\n\n".join(parts) + "\n"


def _what(model: Model, task: str, about: Mapping[str, Any], names: Sequence[str]) -> str:
    kind = str(getattr(model.settings, "kind", type(model).__name__))
    count = sum(each.numel() for each in model.parameters())
    languages = f" ({about['source']} → {about['target']})" if {"source", "target"} <= set(about) else ""
    lines = [f"{DOES.get(task, task)}{languages}: a network of the kind {kind} with {count:,} parameters."]
    if names:
        shown = ", ".join(names[:40]) + (f" and {len(names) - 40} more" if len(names) > 40 else "")
        lines.append(f"Its {'tags' if task == 'tag' else 'labels'}: {shown}.")
    return "\n".join([*lines, f"Written by regard {__version__}."])


def _trained(about: Mapping[str, Any]) -> list[str]:
    told = [f"## Trained on\n\n{_written(about['trained_on'])}"] if about.get("trained_on") else []
    told += [str(about["remarks"])] if about.get("remarks") else []
    return told + ([f"Licence: {about['licence']}."] if about.get("licence") else [])


def _scores(about: Mapping[str, Any]) -> list[str]:
    scores = about.get("scores")
    if not scores:
        return []
    rows = list(scores.values()) if isinstance(scores, Mapping) else []
    alike = rows and all(isinstance(each, Mapping) and list(each) == list(rows[0]) for each in rows)
    return [f"## How good it is\n\n{_table(scores) if alike and len(rows) > 1 else _written(scores)}"]


def _table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Rows of the same columns."""
    names = list(next(iter(rows.values())))
    columns = [_column([row[name] for row in rows.values()]) for name in names]
    lines = [f"| | {' | '.join(names)} |", f"| --- |{' ---: |' * len(names)}"]
    lines += [f"| {name} | {' | '.join(row)} |" for name, row in zip(rows, zip(*columns, strict=True), strict=True)]
    return "\n".join(lines)


def _column(values: Sequence[Any]) -> list[str]:
    """Numbers of one column with the same decimals."""
    told = [_written(each) for each in values]
    if not all(isinstance(each, float) for each in values) or any("e" in each or "n" in each for each in told):
        return told
    places = max(len(each.partition(".")[2]) for each in told)
    return [f"{each:.{places}f}" for each in values]


def _use(task: str, folder: str, languages: Sequence[str]) -> str:
    call = "translate" if task in ("translate", "reconstruct") else "predict"
    first, others = languages[:1], languages[1:]
    to = f', to="{first[0]}"' if first else ""
    or_ = f"  # or {', '.join(others)}" if others else ""
    return f'## Use\n\n```python\nimport regard\n\nmodel = regard.load("{folder}")\nmodel.{call}(["…"]{to}){or_}\n```'


def _details(about: Mapping[str, Any]) -> list[str]:
    rest = {key: value for key, value in about.items() if key not in TOLD}
    return [f"## Details\n\n{_written(rest)}"] if rest else []


def _written(value: Any, depth: int = 0) -> str:
    """Plain JSON as text: mappings and lists as items, one under another."""
    before = "  " * depth + "- "
    if isinstance(value, Mapping):
        return "\n".join(f"{before}{key}:{_under(each, depth)}" for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return "\n".join(f"{before}{_written(each)}" for each in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _under(value: Any, depth: int) -> str:
    if isinstance(value, (Mapping, list, tuple)):
        return "\n" + _written(value, depth + 1)
    return f" {_written(value)}"
