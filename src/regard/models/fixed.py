"""A Transformer's decoder in tensors that never change their shape or place: what a CUDA graph can replay.

Caches have room for all steps from the beginning. The hypotheses of a sentence share one (see `written`), each step
writing K places behind those before it; `came` [B, K, T] says at which places the tokens of a hypothesis stand, and
`places · K` where there is none yet.

Shape letters: B sentences, K hypotheses each, R = B K rows, S source places, T steps, H heads, d width, V vocabulary.
"""

from typing import TYPE_CHECKING
from weakref import ref

import torch
from torch import Tensor
from torch.nn.functional import linear

from regard.attention import Mask, attend, masks, normalise, scores, settle
from regard.attention.fast import short
from regard.attention.heads import MultiHead
from regard.attention.positions import Rotary
from regard.models.layers import Block

if TYPE_CHECKING:
    from regard.models.transformer import Looked, Transformer


def obstacle(model: "Transformer") -> str | None:
    """What keeps a model from being stepped so, in words; None where nothing does."""
    if model.encoder is None:
        return "a language model has no source"
    if model.decoder.positions.hook == "bias":
        return f"positions of the kind {model.settings.positions} are reckoned from where they stand"
    if model.settings.window is not None:
        return "a window looks back from where it stands"
    return None


class Fixed:
    """Room for so many sentences, hypotheses each, source places and steps."""

    def __init__(self, model: "Transformer", sentences: int, each: int, places: int, steps: int) -> None:
        self._model = ref(model)  # what is kept ready for a model must not keep the model
        self.sentences, self.each, self.places, self.steps = sentences, each, places, steps
        blocks = list(model.decoder.layers)
        first = blocks[0].attention.query.weight
        self.device = first.device
        autocast = torch.is_autocast_enabled(self.device.type)
        self.dtype = torch.get_autocast_dtype(self.device.type) if autocast else first.dtype
        self.short = all(_short(heads, self.device, self.dtype) for block in blocks for heads in _heads(block))
        self.joined = [_joined(block.attention) for block in blocks]
        self.keys = [self._room(block.attention, steps * each) for block in blocks]
        self.values = [self._room(block.attention, steps * each) for block in blocks]
        crossing = [block.cross for block in blocks if block.cross is not None]
        self.source_keys = [self._room(cross, places) for cross in crossing]
        self.source_values = [self._room(cross, places) for cross in crossing]
        self.lengths = torch.zeros(sentences, dtype=torch.int32, device=self.device)
        self.real = torch.zeros(sentences, 1, 1, places, dtype=torch.bool, device=self.device)
        nothing = torch.zeros(1, steps, model.settings.width, device=self.device, dtype=first.dtype)
        self.nothing = nothing
        self.positions = model.decoder.positions.add(nothing)[0]
        turns = model.decoder.positions
        self.turns = turns.table.rows(0, steps, nothing) if isinstance(turns, Rotary) else None
        self.own = torch.arange(each, device=self.device)

    @property
    def model(self) -> "Transformer":
        model = self._model()
        assert model is not None
        return model

    def _room(self, heads: MultiHead, places: int) -> Tensor:
        shape = (self.sentences, heads.kv_heads, places, heads.head_width)
        return torch.zeros(shape, device=self.device, dtype=self.dtype)

    def refresh(self) -> None:
        """Take in what was made of weights that have been written to since."""
        for block, (weight, bias) in zip(self.model.decoder.layers, self.joined, strict=True):
            new = _joined(block.attention)
            weight.copy_(new[0])
            if bias is not None and new[1] is not None:
                bias.copy_(new[1])
        self.positions.copy_(self.model.decoder.positions.add(self.nothing)[0])

    def fill(self, memory: "Looked") -> None:
        """Take in the sources of a batch, which may have fewer sentences and places than there is room for."""
        sentences, places = memory.sentences or 0, memory.sources[0].projected.length
        inside = torch.arange(self.places, device=self.device)
        lengths = torch.ones(self.sentences, dtype=torch.long, device=self.device)
        lengths[:sentences] = places if memory.lengths is None else memory.lengths.to(self.device)
        self.lengths.copy_(lengths)
        self.real.copy_((inside < lengths.view(-1, 1)).view_as(self.real))
        for number, source in enumerate(memory.sources):
            self.source_keys[number][:sentences, :, :places] = source.projected.key
            self.source_values[number][:sentences, :, :places] = source.projected.value

    def step(self, tokens: Tensor, at: Tensor, came: Tensor, upto: int) -> Tensor:
        """Logits [R, V] after feeding tokens [R] at the step `at` [1], which is below `upto`; came [B, K, T] with this
        step's places in it."""
        x = self.model.words(tokens.unsqueeze(-1)).states + self.positions.index_select(0, at)
        own = self._mask(came[:, :, :upto], upto)
        for number, block in enumerate(self.model.decoder.layers):
            x = self._block(number, block, x, at, own, upto)
        x = x if self.model.decoder.norm is None else self.model.decoder.norm(x)
        logits: Tensor = self.model.output(x[:, -1])
        return logits

    def _mask(self, came: Tensor, upto: int) -> Tensor:
        """[B, 1, K, places]: which of its sentence's places are a hypothesis's own."""
        places = upto * self.each
        cells = torch.zeros(self.sentences, self.each, places + 1, dtype=torch.bool, device=self.device)
        cells.scatter_(2, came.clamp(max=places), True)
        return cells[:, :, :places].unsqueeze(1)

    def _settled(self, cells: Tensor) -> Mask:
        return settle(masks.tensor(cells), cells.shape, self.device, clean=True, alive=True)

    def _block(self, number: int, block: Block, x: Tensor, at: Tensor, own: Tensor, upto: int) -> Tensor:
        heads = block.attention
        query, key, value = self._projected(number, heads, block.before(x, block.attention_norm))
        if self.turns is not None:
            query, key = self._turned(query, at), self._turned(key, at)
        places = at * self.each + self.own
        self.keys[number].index_copy_(2, places, key)
        self.values[number].index_copy_(2, places, value)
        filled = upto * self.each
        mixed = self._mixed(query, self.keys[number][:, :, :filled], self.values[number][:, :, :filled], heads, own)
        x = block.after(x, heads.out(mixed), block.attention_norm)
        cross = block.cross
        assert cross is not None
        query = self._split(cross.query(block.before(x, block.cross_norm)), cross.heads)
        mixed = self._mixed(query, self.source_keys[number], self.source_values[number], cross, None)
        x = block.after(x, cross.out(mixed), block.cross_norm)
        if block.feed_forward is None:
            return x
        return block.after(x, block.feed_forward(block.before(x, block.feed_forward_norm)), block.feed_forward_norm)

    def _mixed(self, query: Tensor, key: Tensor, value: Tensor, heads: MultiHead, own: Tensor | None) -> Tensor:
        """[R, 1, H d]: what query [B, H, K, d] mixes of the cells of a table, or of the real places of the source."""
        if self.short:
            q, k, v = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
            lengths, scale = self.lengths if own is None else None, heads.head_width**-0.5
            mixed = short.of_rows(short.Rows(q, k, v, None, lengths, own, short.FREE, scale))
            return mixed.flatten(0, 1).flatten(1).unsqueeze(1)
        mask = self._settled(self.real if own is None else own)
        return _rows(attend(query, key, value, mask=mask, score=heads.score, normalise=heads.normalise))

    def _projected(self, number: int, heads: MultiHead, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[B, H, K, d] each, by one product."""
        weight, bias = self.joined[number]
        joined = self._split(linear(x, weight, bias), heads.heads + 2 * heads.kv_heads)
        query, key, value = joined.split_with_sizes((heads.heads, heads.kv_heads, heads.kv_heads), 1)
        return query, key, value

    def _turned(self, x: Tensor, at: Tensor) -> Tensor:
        turns = self.model.decoder.positions
        assert isinstance(turns, Rotary)
        assert self.turns is not None
        return turns.turned(x, self.turns.index_select(0, at))

    def _split(self, x: Tensor, heads: int) -> Tensor:
        """[R, 1, H d] → [B, H, K, d]."""
        return x.view(self.sentences, self.each, heads, -1).transpose(1, 2)


def _heads(block: Block) -> list[MultiHead]:
    return [heads for heads in (block.attention, block.cross) if heads is not None]


def _short(heads: MultiHead, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the kernels for short rows compute what these heads do."""
    return (
        device.type == "cuda"
        and dtype in short.KINDS
        and short.available()
        and short.too_much(1, heads.head_width, device, trains=False) is None
        and heads.score == scores.ScaledDot()
        and heads.normalise == normalise.softmax
    )


def _rows(mixed: Tensor) -> Tensor:
    """[B, H, K, d] → [R, 1, H d]."""
    return mixed.transpose(1, 2).flatten(0, 1).flatten(1).unsqueeze(1)


def _joined(heads: MultiHead) -> tuple[Tensor, Tensor | None]:
    """The matrices of queries, keys and values one under another."""
    parts = (heads.query, heads.key, heads.value)
    bias = None if heads.query.bias is None else torch.cat([each.bias for each in parts])
    return torch.cat([each.weight for each in parts]), bias
