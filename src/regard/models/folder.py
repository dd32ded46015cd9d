"""A model folder: what a model is, its weights, its tokenizers, and a card for people. Nothing in it executes.

    model.json             format, version, task, network, sizes, names of tags or labels, tokenizer files, about
    weights.safetensors    every tensor once
    tokenizer.json         or source.json and target.json, where source and target have one each
    README.md              the card

Each file is written atomically, model.json last. The header of the weights says which model.json they belong to, so
that a pair which does not is refused.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from regard.config import settings_from
from regard.models.build import build
from regard.models.card import card
from regard.models.contract import Model
from regard.models.network_settings import TASKS, network_settings
from regard.models.reading import FORMAT, MODEL, VERSION, read_model_json
from regard.models.sizes import Sizes
from regard.models.unfilled import Unfilled
from regard.models.weights import NUMBERS, Numbers, check_weights, read_weights, write_weights
from regard.support.atomic import write_text
from regard.support.errors import Misuse
from regard.support.nearest import unknown
from regard.text.tokenizer import Tokenizer
from regard.version import __version__

WEIGHTS, CARD = "weights.safetensors", "README.md"


@dataclass
class Loaded:
    """What a model folder holds."""

    model: Model
    """In evaluation mode."""
    task: str
    tokenizers: dict[str, Tokenizer] = field(default_factory=dict)
    """For source and target, as far as they are text."""
    names: tuple[str, ...] = ()
    """Of tags or labels, by their numbers."""
    about: dict[str, Any] = field(default_factory=dict)
    """What it was trained on, how good it is: whatever was saved with it."""


def save_folder(
    folder: str | Path,
    model: Model,
    *,
    task: str,
    tokenizers: Mapping[str, Tokenizer] | None = None,
    names: Sequence[str] = (),
    about: Mapping[str, Any] | None = None,
    numbers: Numbers = "float32",
) -> None:
    """Write a model folder; one that stands there is replaced, and other files in it are left alone.

    numbers: what the weights are written in; int8 (see `models.eight_bits`) is a quarter as large. `about` is plain
    JSON. The card knows: name, source and target (languages), trained_on, scores, licence, seed.
    """
    _check_sides(tokenizers or {})
    if numbers not in NUMBERS:
        raise Misuse(unknown("numbers", str(numbers), NUMBERS))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = _write_tokenizers(folder, tokenizers or {})
    network = model.settings.model_dump(mode="json")
    sizes = model.sizes.model_dump(mode="json", exclude_none=True)
    what = {"task": task, "network": network, "sizes": sizes}
    write_weights(folder / WEIGHTS, model, {"format": "pt", "model": fingerprint(what)}, numbers)
    held: dict[str, Any] = {
        "format": FORMAT, "format_version": VERSION, "regard": __version__, **what, "names": list(names),
        "tokenizers": files, "about": dict(about or {}),
    }  # fmt: skip
    languages = tokenizers["source"].languages if tokenizers and "source" in tokenizers else ()
    told = card(model, task, held["about"], names=names, languages=languages, folder=folder.resolve().name)
    write_text(folder / CARD, told)
    write_text(folder / MODEL, json.dumps(held, indent=2, ensure_ascii=False) + "\n")


def rewritten(
    folder: str | Path, out: str | Path, numbers: Numbers = "int8", about: Mapping[str, Any] | None = None
) -> None:
    """A model folder once more, its weights in other numbers; `about` in the place of its own, if it is given."""
    if Path(out).resolve() == Path(folder).resolve():
        raise Misuse(f"{out}: is the model's own folder; name another one")
    held = load_folder(folder)
    save_folder(
        out, held.model, task=held.task, tokenizers=held.tokenizers, names=held.names, numbers=numbers,
        about=held.about if about is None else about,
    )  # fmt: skip


def load_folder(folder: str | Path, device: str = "cpu", *, keep: bool = False) -> Loaded:
    """Read a model folder. Raises Misuse with one sentence about what is missing or wrong.

    keep: weights that are stored in 8 bits stay so in memory (`models.kept`), and can neither be trained nor saved.
    """
    folder = Path(folder)
    held = read_model_json(folder)
    task = held["task"]
    if task not in TASKS:
        raise Misuse(f"{folder / MODEL}: {unknown('task', str(task), TASKS)}")
    model = _built(folder, held)
    header = read_weights(folder / WEIGHTS, model, keep=keep)
    if header.get("model", own := fingerprint({key: held[key] for key in ("task", "network", "sizes")})) != own:
        raise Misuse(f"{folder / WEIGHTS}: belongs to another model than {MODEL} beside it; copy the folder whole")
    files = held.get("tokenizers", {})
    read = {name: _tokenizer(folder, name) for name in dict.fromkeys(files.values())}
    tokenizers = {side: read[name] for side, name in files.items()}
    return Loaded(model.to(device).eval(), task, tokenizers, tuple(held.get("names", ())), held.get("about", {}))


def fingerprint(what: Mapping[str, Any]) -> str:
    """SHA-256 of JSON, however it is laid out."""
    plain = json.dumps(what, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def _built(folder: Path, held: Mapping[str, Any]) -> Model:
    name = str(folder / MODEL)
    sizes = settings_from(held["sizes"], Sizes, name=f"{name}: sizes")
    network = network_settings(held["network"], name=f"{name}: network")
    try:
        try:
            with Unfilled():  # takes no memory, for nothing is written there yet
                model = build(network, sizes, held["task"])
        except RuntimeError:  # settings that are damaged may ask for any amount, even so
            with torch.device("meta"), Unfilled():
                model = build(network, sizes, held["task"])
            check_weights(folder / WEIGHTS, model)
            raise
        check_weights(folder / WEIGHTS, model)
        return model
    except Misuse:
        raise
    except ValueError as error:
        raise Misuse(f"{name}: {error}") from None
    except (RuntimeError, OverflowError, MemoryError) as error:
        said = str(error).partition("\n")[0]
        raise Misuse(f"{name}: a network of these settings cannot be built, they may be damaged: {said}") from None


def _check_sides(tokenizers: Mapping[str, Tokenizer]) -> None:
    for side in tokenizers:
        if side not in ("source", "target"):
            raise ValueError(f"tokenizers: expected source and target; got {side!r}")


def _write_tokenizers(folder: Path, tokenizers: Mapping[str, Tokenizer]) -> dict[str, str]:
    """The file of each side: one for both where they are the same, or where there is one side only."""
    if len(set(tokenizers.values())) <= 1:
        files = dict.fromkeys(tokenizers, "tokenizer.json")
    else:
        files = {side: f"{side}.json" for side in tokenizers}
    for side, name in files.items():
        tokenizers[side].save(folder / name)
    return files


def _tokenizer(folder: Path, name: str) -> Tokenizer:
    if Path(name).name != name:
        raise Misuse(f"{folder / MODEL}: tokenizers: expected names of files in the folder; got {name!r}")
    if not (folder / name).is_file():
        raise Misuse(f"{folder / name}: missing, and {MODEL} beside it names it")
    return Tokenizer.load(folder / name)
