"""The Transformer as `models.transformer` has it, in training: the same parameters, with fused parts between products.

Shape letters: B sentences, S source places, T target places, N all places of all sentences, D width, V vocabulary.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.positions import Learned, Sinusoidal
from regard.models.fused.adding import Normed, add_norm
from regard.models.fused.drawing import Chance
from regard.models.fused.hidden import hidden
from regard.models.fused.linear import Group, Joined, copied, linear
from regard.models.fused.logits import logits
from regard.models.fused.looking import Heads, Memory, looked, own
from regard.models.fused.sums import Sums
from regard.models.fused.words import Reading, words
from regard.models.layers import Block
from regard.models.transformer import Stack, Transformer
from regard.models.words import Words

WIDEST = 4096
"""The widest vectors that a program holds a row of."""


def obstacle(model: nn.Module, device: torch.device) -> str | None:
    """What stands in the way, in words; None where nothing does."""
    if device.type != "cuda":
        return "its kernels run on a GPU only"
    if torch.version.hip is not None:
        return "its products, which read bfloat16 and write float32, are those of NVIDIA's libraries"
    if find_spec("triton") is None:
        return "Triton is not installed"
    return unlike(model)


def unlike(model: nn.Module) -> str | None:
    """What of the network is not what the fused parts compute."""
    if not isinstance(model, Transformer):
        return "only Transformers with a sequence out are fused"
    own = model.settings
    for is_so, said in (
        (own.norm_place != "pre" or not own.ends_with_norm, "norms come first in a block, and at the end"),
        (own.norm == "none", "blocks are normalised"),
        (own.score != "scaled_dot" or own.normalise != "softmax", "attention is scaled dot and softmax"),
        (own.kv_heads not in (None, own.heads), "each head has its own keys"),
        (own.attention_dropout > 0, "attention weights are not dropped"),
        (own.window is not None, "attention sees all places"),
        (not own.out_projection, "heads go through a matrix"),
        (not own.feed_forward or own.gated, "there is a feed-forward network, without a gate"),
        (own.positions not in ("none", "sinusoidal", "sinusoidal_split", "learned"), "positions are added to words"),
        (own.output != "linear" or own.output_bias, "logits are plain products"),
        (own.parts != "decoder" and own.encoder_layers == 0, "there is an encoder"),
        (own.width > WIDEST, f"vectors are at most {WIDEST} wide"),
    ):
        if is_so:
            return f"it is made for networks where {said}"
    if model.encoder is not None and (type(model.encoder.input) is not Words or model.encoder.widen is not None):
        return "it is made for plain words in"
    if any(type(each) is not nn.Linear for each in model.modules() if isinstance(each, nn.Linear)):
        return "some layer was put in another's place"
    if not all(each.requires_grad and each.dtype == torch.float32 for each in model.parameters()):
        return "it trains all weights, in float32"
    return None


@dataclass(frozen=True)
class Layer:
    """A block, and the copies of its matrices."""

    block: Block
    own: Joined
    out: Joined
    inner: Joined
    outer: Joined
    query: Joined | None = None
    looked: Joined | None = None


class Pass(NamedTuple):
    """What the parts of one pass share."""

    chance: Chance
    sums: Sums
    tables: dict[int, Reading]

    def reading(self, table: Tensor) -> Reading:
        """The same for source and target where they share a table."""
        if id(table) not in self.tables:
            self.tables[id(table)] = Reading(table)
        return self.tables[id(table)]


class Fused:
    """fused(source, target, lengths) → logits [B, T, V], for training alone. Keeps nothing between calls."""

    def __init__(self, model: Transformer, kind: torch.dtype = torch.bfloat16) -> None:
        self.model, self.kind = model, kind
        self.encoding = () if model.encoder is None else tuple(model.encoder.stack.layers)
        self.decoding = tuple(model.decoder.layers)
        self.vectors = [each for each in model.parameters() if each.ndim == 1]
        self.crosses = [each.cross for each in self.decoding if each.cross is not None]

    def __call__(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        with torch.autocast(target.device.type, enabled=False):
            rows, width = max(source.numel(), target.numel()), self.model.settings.width
            sums = Sums(self.vectors, rows, width, len(target))
            run = Pass(Chance(target.device), sums, {})
            encoding, decoding, sources, table = self._copied()
            memory, across = None, self._heads(target, source.shape[1], None, causal=False)
            if self.model.encoder is not None:
                lengths = None if lengths is None else lengths.to(torch.int32)
                assert sources is not None
                states = self._encoded(source, lengths, encoding, run)
                across = replace(across, lengths=lengths)
                memory = Memory(states, sources, across, run.sums)
            y = self._decoded(target, memory, across, decoding, run)
            found = logits(y, table, self.model.output.vectors.weight)
        return found.view(*target.shape, -1)

    def _encoded(self, source: Tensor, lengths: Tensor | None, layers: list[Layer], run: "Pass") -> Tensor:
        assert self.model.encoder is not None
        assert isinstance(self.model.encoder.input, Words)
        heads = self._heads(source, source.shape[1], lengths, causal=False)
        return self._climbed(self.model.encoder.stack, self.model.encoder.input, source, layers, heads, run)

    def _decoded(
        self, target: Tensor, memory: Memory | None, across: Heads, layers: list[Layer], run: "Pass"
    ) -> Tensor:
        heads = self._heads(target, target.shape[1], None, causal=True)

        def cross(x: Tensor, query: Joined, number: int) -> Tensor:
            assert memory is not None
            return looked(x, query, memory, number, across, run.sums)

        return self._climbed(self.model.decoder, self.model.words, target, layers, heads, run, cross)

    def _climbed(
        self, stack: Stack, table: Words, tokens: Tensor, layers: list[Layer], heads: Heads, run: "Pass",
        cross: Callable[[Tensor, Joined, int], Tensor] | None = None,
    ) -> Tensor:  # fmt: skip
        """[N, D]: what stands at the top of a stack, normalised."""
        settings, share = self.model.settings, stack.dropout
        reading = run.reading(table.vectors.weight)
        x = words(tokens, reading, table.scale, self._places(stack, tokens), run.chance.at(share))
        a: Tensor | None = None
        b: Tensor | None = None

        def added(norm: nn.Module | None) -> tuple[Tensor, Tensor]:
            return add_norm(x, a, b, normed(norm), run.chance.at(share), self.kind, run.sums)

        for number, layer in enumerate(layers):
            x, y = added(layer.block.attention_norm)
            a, b = _without_bias(own(y, layer.own, heads, run.sums), layer.out, run)
            if layer.query is not None and layer.looked is not None and cross is not None:
                x, y = added(layer.block.cross_norm)
                a, b = _without_bias(cross(y, layer.query, number), layer.looked, run)
            x, y = added(layer.block.feed_forward_norm)
            drawn = run.chance.at(settings.activation_dropout)
            between = hidden(y, layer.inner, settings.activation, drawn, run.sums)
            a, b = _without_bias(between, layer.outer, run)
        return added(stack.norm)[1]

    def _places(self, stack: Stack, tokens: Tensor) -> Tensor | None:
        kind, places = stack.positions, tokens.shape[1]
        if isinstance(kind, Sinusoidal):
            return kind.table.rows(0, places, stack.layers[0].attention.query.weight)
        if isinstance(kind, Learned):
            kind.add(kind.vectors.new_empty(places, kind.vectors.shape[1]))  # which says where there are too few
            return kind.vectors[:places]
        return None

    def _heads(self, tokens: Tensor, keys: int, lengths: Tensor | None, *, causal: bool) -> Heads:
        sizes = self.model.settings.heads, self.model.settings.one_head
        return Heads(len(tokens), tokens.shape[1], keys, *sizes, lengths, causal, tokens.device)

    def _copied(self) -> tuple[list[Layer], list[Layer], Joined | None, Tensor]:
        """All matrices in the products' kind of numbers."""
        groups: list[Group] = [group for block in (*self.encoding, *self.decoding) for group in groups_of(block)]
        groups += [[part for each in self.crosses for part in (each.key, each.value)]] if self.crosses else []
        found, (table,) = copied(groups, [self.model.output.vectors.weight], self.kind)
        given = iter(found)
        encoding = [_layer(block, given) for block in self.encoding]
        decoding = [_layer(block, given) for block in self.decoding]
        return encoding, decoding, next(given, None), table


def groups_of(block: Block) -> list[Group]:
    """The layers of a block that read the same rows, each time."""
    own, cross, net = block.attention, block.cross, block.feed_forward
    assert net is not None
    crossing: list[Group] = [] if cross is None else [[cross.query], [_matrix(cross.out)]]
    return [[own.query, own.key, own.value], [_matrix(own.out)], [net.inner], [net.outer], *crossing]


def _layer(block: Block, given: Iterator[Joined]) -> Layer:
    return Layer(block, *(next(given) for _ in groups_of(block)))


def _matrix(part: nn.Module) -> nn.Linear:
    assert isinstance(part, nn.Linear)
    return part


def _without_bias(x: Tensor, joined: Joined, run: Pass) -> tuple[Tensor, Tensor | None]:
    """The product, and the bias that whoever comes next is to add."""
    a = linear(x, joined._replace(bias=None, biases=()), run.sums)
    return a, joined.biases[0] if joined.biases else None


def normed(part: nn.Module | None) -> Normed:
    assert isinstance(part, (nn.LayerNorm, nn.RMSNorm))
    shift = part.bias if isinstance(part, nn.LayerNorm) else None
    assert part.eps is not None
    return Normed(part.weight, shift, part.eps)
