"""A model folder as CTranslate2 loads it. Weights go from file to file; no torch is needed.

What the engine computes differently, or not at all, is refused by name: `obstacles`.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.models.reading import read_model_json
from regard.models.transformer_settings import TransformerSettings
from regard.support.atomic import write_text
from regard.support.errors import Failure, Misuse
from regard.text.specials import SPECIALS
from regard.text.tokenizer import Tokenizer

EXPORTED = "exported.json"
PLACES = 2048
"""Positions written down for encodings that know no end."""
Kind = Literal["float32", "float16", "int8"]
KINDS: tuple[Kind, ...] = ("float32", "float16", "int8")
Weights = Mapping[str, NDArray[Any]]


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
    if kind not in KINDS:
        raise Misuse(f"kind of numbers: expected {', '.join(KINDS)}; got {kind!r}")
    folder, out = Path(folder), Path(out)
    held = read_model_json(folder)
    if said := obstacles(held["task"], held["network"]):
        raise Misuse(f"{folder}: CTranslate2 cannot run this model:\n  " + "\n  ".join(said))
    try:
        import ctranslate2
    except ImportError:
        raise Failure("CTranslate2 is not installed: pip install 'regard[serve]'") from None
    settings = TransformerSettings.model_validate(held["network"])
    tokenizers = {side: Tokenizer.load(folder / name) for side, name in held["tokenizers"].items()}
    spec = filled(settings, _read(folder / "weights.safetensors"), tokenizers)
    spec.validate()
    if kind != "float32":
        spec.optimize(quantization=kind)
    beside = out.with_name(out.name + ".writing")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    spec.save(str(beside))
    for side, tokenizer in tokenizers.items():
        tokenizer.save(beside / f"{side}.json")
    record = {
        "format": "regard-exported", "format_version": 1, "kind": kind, "ctranslate2": ctranslate2.__version__,
        "task": held["task"], "start": settings.start, "tokenizers": sorted(tokenizers), "about": held["about"],
    }  # fmt: skip
    write_text(beside / EXPORTED, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    _put(beside, out)


def _put(beside: Path, out: Path) -> None:
    """The folder that was written, in the place of the one that stood there, if one of ours did."""
    if out.exists():
        if any(out.iterdir()) and not (out / EXPORTED).is_file():
            shutil.rmtree(beside)
            raise Misuse(f"{out}: is there already, and holds no exported model; name another folder")
        shutil.rmtree(out)
    beside.rename(out)


def _read(path: Path) -> Weights:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return {name: each.astype(np.float32) for name, each in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise Misuse(f"{path}: cannot be read: {error}") from None


def filled(settings: TransformerSettings, weights: Weights, tokenizers: Mapping[str, Tokenizer]) -> Any:
    """The engine's own description of the network, with its numbers."""
    from ctranslate2.specs import TransformerSpec, common_spec, transformer_spec

    activation = {
        "relu": common_spec.Activation.RELU, "gelu": common_spec.Activation.GELU, "silu": common_spec.Activation.SWISH,
    }[settings.activation]  # fmt: skip
    rotary: dict[str, Any] = {}
    if settings.positions.startswith("rotary"):
        rotary = {"rotary_dim": settings.one_head, "rotary_interleave": settings.positions == "rotary_interleaved"}
    same = {
        "pre_norm": settings.norm_place == "pre", "activation": activation, "ffn_glu": settings.gated,
        "rms_norm": settings.norm == "rms", **rotary,
    }  # fmt: skip
    encoder = transformer_spec.TransformerEncoderSpec(settings.encoder_layers, settings.heads, **same)
    decoder = transformer_spec.TransformerDecoderSpec(settings.decoder_layers, settings.heads, **same)
    spec = TransformerSpec(encoder, decoder)
    _words(spec, settings, weights)
    for part, name in ((encoder, "encoder.stack"), (decoder, "decoder")):
        _positions(part, name, settings, weights)
        for number, layer in enumerate(part.layer):
            _layer(layer, f"{name}.layers.{number}", weights)
        if f"{name}.norm.weight" in weights:
            _norm(part.layer_norm, f"{name}.norm", weights)
    source, target = (list(tokenizers[side].pieces) for side in ("source", "target"))
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    start = settings.start if isinstance(settings.start, str) else target[settings.start]
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = SPECIALS[2], SPECIALS[3], SPECIALS[1]
    spec.config.decoder_start_token = start
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.config.layer_norm_epsilon = settings.norm_epsilon
    return spec


def _words(spec: Any, settings: TransformerSettings, weights: Weights) -> None:
    """Embeddings and the output. A tensor that stands in several places is in the file under its first name."""
    source = weights["encoder.input.vectors.weight"]
    target = weights.get("words.vectors.weight", source)
    spec.encoder.embeddings[0].weight, spec.decoder.embeddings.weight = source, target
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = settings.scale_embedding
    spec.decoder.projection.weight = weights.get("output.vectors.weight", target)
    if settings.output_bias:
        spec.decoder.projection.bias = weights["output.bias"]


def _positions(part: Any, name: str, settings: TransformerSettings, weights: Weights) -> None:
    if settings.positions.startswith("rotary"):
        if hasattr(part, "position_encodings"):
            part.position_encodings.encodings = np.zeros((PLACES, settings.width), np.float32)
        return
    if settings.positions == "learned":
        table = weights[f"{name}.positions.vectors"]
    elif settings.positions == "none":
        table = np.zeros((PLACES, settings.width), np.float32)
    else:
        table = sinusoids(PLACES, settings.width, split=settings.positions == "sinusoidal_split")
    part.position_encodings.encodings = table


def sinusoids(places: int, width: int, *, split: bool) -> NDArray[np.float32]:
    """The table of `attention.positions`, without torch."""
    angles = np.arange(places)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    sine, cosine = np.sin(angles), np.cos(angles[:, : width // 2])
    if split:
        return np.concatenate([sine, cosine], 1).astype(np.float32)
    table = np.empty((places, width), np.float32)
    table[:, 0::2], table[:, 1::2] = sine, cosine
    return table


def _layer(layer: Any, name: str, weights: Weights) -> None:
    own = layer.self_attention
    _norm(own.layer_norm, f"{name}.attention_norm", weights)
    own.linear[0].weight = np.concatenate([weights[f"{name}.attention.{each}.weight"] for each in QKV])
    if f"{name}.attention.query.bias" in weights:
        own.linear[0].bias = np.concatenate([weights[f"{name}.attention.{each}.bias"] for each in QKV])
    _linear(own.linear[1], f"{name}.attention.out", weights)
    if f"{name}.cross.query.weight" in weights:
        cross = layer.attention
        _norm(cross.layer_norm, f"{name}.cross_norm", weights)
        _linear(cross.linear[0], f"{name}.cross.query", weights)
        cross.linear[1].weight = np.concatenate([weights[f"{name}.cross.{each}.weight"] for each in QKV[1:]])
        if f"{name}.cross.key.bias" in weights:
            cross.linear[1].bias = np.concatenate([weights[f"{name}.cross.{each}.bias"] for each in QKV[1:]])
        _linear(cross.linear[2], f"{name}.cross.out", weights)
    _norm(layer.ffn.layer_norm, f"{name}.feed_forward_norm", weights)
    gated = f"{name}.feed_forward.gate.weight" in weights
    _linear(layer.ffn.linear_0, f"{name}.feed_forward.{'gate' if gated else 'inner'}", weights)
    if gated:
        _linear(layer.ffn.linear_0_noact, f"{name}.feed_forward.inner", weights)
    _linear(layer.ffn.linear_1, f"{name}.feed_forward.outer", weights)


QKV = ("query", "key", "value")


def _linear(spec: Any, name: str, weights: Weights) -> None:
    spec.weight = weights[f"{name}.weight"]
    if f"{name}.bias" in weights:
        spec.bias = weights[f"{name}.bias"]


def _norm(spec: Any, name: str, weights: Weights) -> None:
    spec.gamma = weights[f"{name}.weight"]
    if f"{name}.bias" in weights:
        spec.beta = weights[f"{name}.bias"]
