"""A Transformer's tensors under the engine's names, and the bytes of the engine's file of them.

`of(settings, held, kind)` takes the tensors of a weights file, where matrices may be in 8 bits already
(`models.eight_bits`): those are passed on as they are. Reads neither torch nor the engine.

A file of the engine: the version of its form, the name and version of the kind of network, how many tensors; then for
each its name, its shape, the number of its type, how many bytes, and these; then which names stand for others.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regard.models.eight_bits import SCALE, quantised
from regard.models.transformer_settings import TransformerSettings

Kind = Literal["float32", "float16", "int8"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Tensors = Mapping[str, NDArray[Any]]
FORM, NETWORK, REVISION = 6, "TransformerSpec", 7
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
"""By their numbers."""
PLACES = 2048
"""Positions written down for encodings that know no end."""
ACTIVATIONS = {"relu": 0, "gelu": 3, "silu": 2}
PROJECTIONS = ("query", "key", "value")


@dataclass
class Layout:
    """What goes into the file: tensors, and other names for some of them."""

    held: Tensors
    kind: Kind
    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def matrix(self, name: str, *own: str) -> None:
        """One matrix, of one or several of ours over one another."""
        if self.kind != "int8":
            self.tensors[f"{name}/weight"] = np.concatenate([self._whole(each) for each in own]).astype(self.kind)
            return
        parts = [self._in_bits(each) for each in own]
        self.tensors[f"{name}/weight"] = np.concatenate([q for q, _ in parts])
        self.tensors[f"{name}/weight_scale"] = 1 / np.concatenate([scale for _, scale in parts])

    def vector(self, name: str, *own: str) -> None:
        """One vector of several of ours, where the network has them; or a table that stays as it is."""
        if own[0] in self.held:
            self.put(name, np.concatenate([self._whole(each) for each in own]))

    def put(self, name: str, values: NDArray[Any]) -> None:
        self.tensors[name] = values.astype("float16" if self.kind == "float16" else "float32")

    def linear(self, name: str, *own: str) -> None:
        self.matrix(name, *(f"{each}.weight" for each in own))
        self.vector(f"{name}/bias", *(f"{each}.bias" for each in own))

    def norm(self, name: str, own: str) -> None:
        self.vector(f"{name}/gamma", f"{own}.weight")
        self.vector(f"{name}/beta", f"{own}.bias")

    def numbers(self, name: str, kind: str, **values: float) -> None:
        for each, value in values.items():
            self.tensors[f"{name}/{each}"] = np.array(value, kind)

    def _whole(self, name: str) -> NDArray[np.float32]:
        tensor = self.held[name].astype(np.float32)
        return tensor * self.held[name + SCALE][:, None] if name + SCALE in self.held else tensor

    def _in_bits(self, name: str) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        return (self.held[name], self.held[name + SCALE]) if name + SCALE in self.held else quantised(self._whole(name))


def of(settings: TransformerSettings, held: Tensors, kind: Kind) -> Layout:
    """All that the engine asks of a network whose settings it can run."""
    layout = Layout(held, kind)
    _words(layout, settings)
    for part, own in (("encoder", "encoder.stack"), ("decoder", "decoder")):
        _stack(layout, part, settings)
        _positions(layout, part, own, settings)
        layers = settings.encoder_layers if part == "encoder" else settings.decoder_layers
        for number in range(layers):
            _layer(layout, f"{part}/layer_{number}", f"{own}.layers.{number}", settings)
        layout.norm(f"{part}/layer_norm", f"{own}.norm")
    return layout


def _words(layout: Layout, settings: TransformerSettings) -> None:
    """Embeddings and the output. A tensor that stands in several places is in the file under its first name."""
    source, target, output = "encoder.input.vectors.weight", "words.vectors.weight", "output.vectors.weight"
    layout.matrix("encoder/embeddings_0", source)
    if target in layout.held:
        layout.matrix("decoder/embeddings", target)
    else:
        layout.aliases["decoder/embeddings/weight"] = "encoder/embeddings_0/weight"
    if output in layout.held:
        layout.matrix("decoder/projection", output)
    else:
        first = "decoder/embeddings" if target in layout.held else "encoder/embeddings_0"
        layout.aliases["decoder/projection/weight"] = f"{first}/weight"
    layout.vector("decoder/projection/bias", "output.bias")


def _stack(layout: Layout, part: str, settings: TransformerSettings) -> None:
    """What encoder and decoder each say of themselves."""
    layout.numbers(
        part, "int8", activation=ACTIVATIONS[settings.activation], pre_norm=settings.norm_place == "pre",
        scale_embeddings=settings.scale_embedding,
    )  # fmt: skip
    layout.numbers(part, "int16", num_heads=settings.heads)
    if part == "encoder":
        layout.numbers(part, "int8", embeddings_merge=0, multi_query_attention=0)
        return
    layout.numbers(
        part, "int8", alibi=0, alibi_use_positive_positions=0, scale_alibi=0, start_from_zero_embedding=0
    )  # fmt: skip
    layout.numbers(part, "int16", alignment_heads=1, alignment_layer=-1)


def _positions(layout: Layout, part: str, own: str, settings: TransformerSettings) -> None:
    if settings.positions.startswith("rotary") and part == "decoder":
        return
    if settings.positions == "learned":
        layout.vector(f"{part}/position_encodings/encodings", f"{own}.positions.vectors")
        return
    if part == "decoder":
        layout.aliases["decoder/position_encodings/encodings"] = "encoder/position_encodings/encodings"
        return
    if settings.positions.startswith("sinusoidal"):
        table = sinusoids(PLACES, settings.width, split=settings.positions == "sinusoidal_split")
    else:
        table = np.zeros((PLACES, settings.width), np.float32)
    layout.put(f"{part}/position_encodings/encodings", table)


def sinusoids(places: int, width: int, *, split: bool) -> NDArray[np.float32]:
    """The table of `attention.positions`, without torch."""
    angles = np.arange(places)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    sine, cosine = np.sin(angles), np.cos(angles[:, : width // 2])
    if split:
        return np.concatenate([sine, cosine], 1).astype(np.float32)
    table = np.empty((places, width), np.float32)
    table[:, 0::2], table[:, 1::2] = sine, cosine
    return table


def _layer(layout: Layout, name: str, own: str, settings: TransformerSettings) -> None:
    attention = f"{name}/self_attention"
    layout.norm(f"{attention}/layer_norm", f"{own}.attention_norm")
    layout.linear(f"{attention}/linear_0", *(f"{own}.attention.{each}" for each in PROJECTIONS))
    layout.linear(f"{attention}/linear_1", f"{own}.attention.out")
    if settings.positions.startswith("rotary"):
        layout.numbers(attention, "int32", rotary_dim=settings.one_head)
        layout.numbers(attention, "int8", rotary_interleave=settings.positions == "rotary_interleaved")
        layout.numbers(attention, "float32", rotary_base=10_000)
    if f"{own}.cross.query.weight" in layout.held:
        cross = f"{name}/attention"
        layout.norm(f"{cross}/layer_norm", f"{own}.cross_norm")
        layout.linear(f"{cross}/linear_0", f"{own}.cross.query")
        layout.linear(f"{cross}/linear_1", *(f"{own}.cross.{each}" for each in PROJECTIONS[1:]))
        layout.linear(f"{cross}/linear_2", f"{own}.cross.out")
    forward = f"{own}.feed_forward"
    layout.norm(f"{name}/ffn/layer_norm", f"{own}.feed_forward_norm")
    layout.linear(f"{name}/ffn/linear_0", f"{forward}.gate" if settings.gated else f"{forward}.inner")
    if settings.gated:
        layout.linear(f"{name}/ffn/linear_0_noact", f"{forward}.inner")
    layout.linear(f"{name}/ffn/linear_1", f"{forward}.outer")


def written(layout: Layout) -> Iterable[bytes]:
    """The bytes of model.bin, a piece at a time."""
    yield struct.pack("<I", FORM) + _name(NETWORK) + struct.pack("<II", REVISION, len(layout.tensors))
    for name, tensor in sorted(layout.tensors.items()):
        shape = struct.pack(f"<B{tensor.ndim}I", tensor.ndim, *tensor.shape)
        yield _name(name) + shape + struct.pack("<BI", TYPES.index(tensor.dtype.name), tensor.nbytes)
        yield np.ascontiguousarray(tensor).tobytes()
    yield struct.pack("<I", len(layout.aliases))
    for name, first in sorted(layout.aliases.items()):
        yield _name(name) + _name(first)


def _name(text: str) -> bytes:
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"
