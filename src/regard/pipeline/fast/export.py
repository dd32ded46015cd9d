"""A model folder as CTranslate2 loads it. Weights go from file to file; no torch is needed.

What the engine computes differently, or not at all, is refused by name: `obstacles`.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.models.reading import read_model_json
from regard.models.transformer_settings import TransformerSettings
from regard.pipeline.fast import layout
from regard.pipeline.fast.layout import KINDS, Kind, Tensors
from regard.support.atomic import write_text
from regard.support.errors import Misuse
from regard.text.specials import SPECIALS
from regard.text.tokenizer import Tokenizer
from regard.version import __version__

EXPORTED = "exported.json"


def obstacles(task: str, network: Mapping[str, Any]) -> list[str]:
    """What stands in the way of the engine, in words; an empty list where nothing does."""
    if task not in ("translate", "reconstruct"):
        return [f"it translates, and this model was built to {task}"]
    if network.get("kind", "transformer") != "transformer":
        return [f"it runs Transformers, and this network is {network.get('kind')}"]
    settings = TransformerSettings.model_validate(dict(network))
    post_with_norm = settings.norm_place == "post" and settings.ends_with_norm
    heads = settings.kv_heads not in (None, settings.heads)
    other_input = settings.input is not None and network["input"].get("kind") != "words"
    found = {
        f"score: it scales its scores by the root of the width; this model's are {settings.score}": (
            settings.score != "scaled_dot"
        ),
        f"normalise: it weighs by softmax; this model by {settings.normalise}": settings.normalise != "softmax",
        "positions: it knows alibi in a decoder alone, and this model's encoder has it": settings.positions == "alibi",
        "window: it has no attention windows like this model's": settings.window is not None,
        "kv_heads: its heads do not share keys and values in a Transformer of this kind": heads,
        "norm: it normalises, and this model does not": settings.norm == "none",
        "final_norm: behind post-norm layers it has none": post_with_norm,
        "final_norm: behind pre-norm layers it always has one in a decoder": (
            settings.norm_place == "pre" and not settings.ends_with_norm
        ),
        "feed_forward: it has layers with one, and this model has none": not settings.feed_forward,
        "out_projection: it has one, and this model does not": not settings.out_projection,
        "output: its logits are products, and this model's are distances": settings.output == "nearest",
        "encoder_layers: it needs one at the least": not settings.encoder_layers,
        "input: it reads words alone": other_input,
        "head_width: its heads are as wide as width / heads": settings.one_head * settings.heads != settings.width,
    }
    return [said for said, stands in found.items() if stands]


def export_folder(folder: str | Path, out: str | Path, kind: Kind = "float32") -> None:
    """Write the folder that the engine loads. Misuse names everything that stands in the way."""
    out = Path(out)
    files, record, tokenizers = in_memory(folder, kind)
    beside = out.with_name(out.name + ".writing")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for name, content in files.items():
        (beside / name).write_bytes(content)
    for side, tokenizer in tokenizers.items():
        tokenizer.save(beside / f"{side}.json")
    write_text(beside / EXPORTED, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    _put(beside, out)


def in_memory(
    folder: str | Path, kind: Kind | None = None
) -> tuple[dict[str, bytes], dict[str, Any], dict[str, Tokenizer]]:
    """The engine's files by their names, what `exported.json` says, and the tokenizers of a model folder.

    kind: the numbers; None: int8 where the folder's own weights are, float32 otherwise.
    """
    if kind is not None and kind not in KINDS:
        raise Misuse(f"kind of numbers: expected {', '.join(KINDS)}; got {kind!r}")
    folder = Path(folder)
    held = read_model_json(folder)
    if said := obstacles(held["task"], held["network"]):
        raise Misuse(f"{folder}: CTranslate2 cannot run this model:\n  " + "\n  ".join(said))
    settings = TransformerSettings.model_validate(held["network"])
    tokenizers = _tokenizers(folder, held["tokenizers"])
    weights = _read(folder / "weights.safetensors")
    kind = kind or ("int8" if any(each.dtype.name == "int8" for each in weights.values()) else "float32")
    pieces = {side: tokenizer.pieces for side, tokenizer in tokenizers.items()}
    start = settings.start if isinstance(settings.start, str) else pieces["target"][settings.start]
    config = {
        "unk_token": SPECIALS[1], "bos_token": SPECIALS[2], "eos_token": SPECIALS[3], "decoder_start_token": start,
        "add_source_bos": False, "add_source_eos": False, "layer_norm_epsilon": settings.norm_epsilon,
        "multi_query_attention": False,
    }  # fmt: skip
    files = {"config.json": _json(config)} | _vocabularies(pieces)
    try:
        files["model.bin"] = b"".join(layout.written(layout.of(settings, weights, kind)))
    except KeyError as error:
        raise Misuse(
            f"{folder / 'weights.safetensors'}: tensor {error} is missing, which model.json asks for"
        ) from None
    record = {
        "format": "regard-exported", "format_version": 1, "kind": kind, "regard": __version__, "task": held["task"],
        "start": settings.start, "places": settings.longest if settings.positions == "learned" else layout.PLACES,
        "tokenizers": sorted(tokenizers), "about": held.get("about", {}),
    }  # fmt: skip
    return files, record, tokenizers


def _tokenizers(folder: Path, names: Mapping[str, str]) -> dict[str, Tokenizer]:
    """Of each side; one file is read once."""
    if missing := [side for side in ("source", "target") if side not in names]:
        raise Misuse(f"{folder}: no tokenizer of the {missing[0]} is in this model folder")
    loaded = {name: Tokenizer.load(folder / name) for name in set(names.values())}
    return {side: loaded[name] for side, name in names.items()}


def _vocabularies(pieces: Mapping[str, tuple[str, ...]]) -> dict[str, bytes]:
    if pieces["source"] == pieces["target"]:
        return {"shared_vocabulary.json": _json(pieces["source"])}
    return {f"{side}_vocabulary.json": _json(pieces[side]) for side in ("source", "target")}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _put(beside: Path, out: Path) -> None:
    """The folder that was written, in the place of the one that stood there, if one of ours did."""
    if out.exists():
        if any(out.iterdir()) and not (out / EXPORTED).is_file():
            shutil.rmtree(beside)
            raise Misuse(f"{out}: is there already, and holds no exported model; name another folder")
        shutil.rmtree(out)
    beside.rename(out)


def _read(path: Path) -> Tensors:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except FileNotFoundError:
        raise Misuse(f"{path}: no such file, and without its weights a model says nothing") from None
    except (OSError, SafetensorError) as error:
        raise Misuse(f"{path}: cannot be read: {error}") from None
