"""What `attend` and `weigh` are given, checked once: each error names the argument, what was expected, what came.

Every call passes here, so the common case (equal leading axes, no bias) is decided by a few comparisons.
"""

import torch
from torch import Tensor

from regard.attention import masks, scores
from regard.attention import normalise as normalisers
from regard.attention.call import Call
from regard.attention.masks import Mask
from regard.attention.normalise import Normaliser
from regard.attention.scores import Score
from regard.attention.shapes import broadcasts, dtype_of

KINDS = frozenset((torch.float32, torch.float64, torch.bfloat16, torch.float16))
KNOWN = "float32, float64, bfloat16 or float16"


def checked(
    query: Tensor,
    key: Tensor,
    value: Tensor | None,
    score: Score | str,
    bias: Tensor | None,
    mask: Mask | Tensor | None,
    normalise: Normaliser | str,
    dropout: float,
    generator: torch.Generator | None,
) -> Call:
    score = scores.named(score)
    normalise = normalisers.named(normalise)
    if dropout != 0.0:
        check_dropout(dropout)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise ValueError(f"generator: expected a torch.Generator; got {type(generator).__name__}")
    shape, groups = alike(query, key, value), 1
    if shape is None:
        _tensor("query", query)
        _beside("key", key, query)
        if value is not None:
            _beside("value", value, query)
    score.check(query, key)
    if shape is None:
        shape, groups = _shape(query, key)
        if value is not None:
            _value(value, key, shape, groups)
    if bias is not None:
        check_bias(bias, query, shape)
    if mask is not None:
        mask = masks.as_mask(mask)
        mask.check(shape)
    return Call(query, key, value, score, bias, mask, normalise, dropout, generator, shape, groups)


def alike(query: Tensor, key: Tensor, value: Tensor | None) -> torch.Size | None:
    """The shape of the scores where nothing is left to be checked: three dense tensors of one kind, on one device,
    with the same leading axes. None: look closer."""
    if type(query) is not Tensor or type(key) is not Tensor or type(value) is not Tensor:
        return None
    kind, device, size = query.dtype, query.device, query.shape
    own, other = key.shape, value.shape
    leading = size[:-2]
    if (
        len(size) < 2
        or kind not in KINDS
        or key.dtype is not kind
        or value.dtype is not kind
        or own[:-2] != leading
        or other[:-2] != leading
        or own[-2] != other[-2]
        or key.device != device
        or value.device != device
        or not (query.layout is key.layout is value.layout is torch.strided)
    ):
        return None
    return torch.Size((*size[:-1], own[-2]))


def _tensor(name: str, given: Tensor) -> None:
    if not isinstance(given, Tensor):
        raise ValueError(f"{name}: expected a tensor; got {type(given).__name__}")
    if given.dtype not in KINDS:
        expected = KNOWN if given.is_floating_point() else "floating-point numbers"
        raise ValueError(f"{name}: expected {expected}; got {dtype_of(given)}")
    if given.layout is not torch.strided:
        raise ValueError(f"{name}: expected a dense tensor; got one of the layout {str(given.layout)[6:]}")
    if given.ndim < 2:
        raise ValueError(f"{name}: expected at least two axes [length, width]; got {list(given.shape)}")


def _beside(name: str, given: Tensor, query: Tensor) -> None:
    """A key or value beside the query: of its kind, on its device."""
    _tensor(name, given)
    if given.device != query.device:
        raise ValueError(f"{name}: is on {given.device}, the query on {query.device}")
    if given.dtype != query.dtype and not torch.is_autocast_enabled(query.device.type):
        raise ValueError(f"{name}: is {dtype_of(given)}, the query {dtype_of(query)}")


def check_dropout(share: float) -> None:
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise ValueError(f"dropout: expected a share between 0 and 1; got {share!r}")


def _shape(query: Tensor, key: Tensor) -> tuple[torch.Size, int]:
    """The shape of the scores [..., T, S], and how many query heads share a key head."""
    leading: tuple[int, ...] = query.shape[:-2]
    own = key.shape[:-2]
    groups = 1
    if own != leading:
        groups = _groups(leading, own)
        leading = _joined("key", own if groups == 1 else (*own[:-1], leading[-1]), leading, own)
    return torch.Size((*leading, query.shape[-2], key.shape[-2])), groups


def _groups(leading: tuple[int, ...], own: tuple[int, ...]) -> int:
    """One where the heads are as many, or one that broadcasts: a single head of keys, or of queries."""
    heads = leading[-1] if len(leading) > 1 else 1
    fewer = own[-1] if len(own) > 1 else 1
    if fewer in (1, heads) or heads == 1:
        return 1
    if fewer == 0 or heads % fewer:
        raise ValueError(f"key: its heads must divide the query's; got {fewer} heads for {heads}")
    return heads // fewer


def _joined(name: str, own: tuple[int, ...], beside: tuple[int, ...], came: tuple[int, ...]) -> tuple[int, ...]:
    """Leading axes broadcast against those of the query."""
    if not broadcasts(own, beside, both=True):
        raise ValueError(f"{name}: its leading axes {list(came)} do not fit the query's {list(beside)}")
    rank = max(len(own), len(beside))
    pairs = zip((1,) * (rank - len(own)) + own, (1,) * (rank - len(beside)) + beside, strict=True)
    return tuple(there if mine == 1 else mine for mine, there in pairs)


def _value(value: Tensor, key: Tensor, shape: torch.Size, groups: int) -> None:
    if value.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"value: expected one row for each of the {key.shape[-2]} keys; got {value.shape[-2]} rows "
            f"(key {list(key.shape)}, value {list(value.shape)})"
        )
    own = value.shape[:-2]
    if own == key.shape[:-2] or (groups == 1 and own == shape[:-2]):
        return
    if len(own) > 1 and len(key.shape) > 3 and own[-1] not in (1, key.shape[-3]) and key.shape[-3] != 1:
        raise ValueError(f"value: expected the {key.shape[-3]} heads of the key; got {own[-1]}")
    shared = own if groups == 1 or len(own) < 2 or own[-1] == 1 else (*own[:-1], shape[-3])
    _joined("value", shared, shape[:-2], own)


def check_bias(bias: Tensor, query: Tensor, shape: torch.Size) -> None:
    if not isinstance(bias, Tensor) or not bias.is_floating_point():
        came = dtype_of(bias) if isinstance(bias, Tensor) else type(bias).__name__
        raise ValueError(
            f"bias: expected floating-point numbers to add to the scores; got {came} (a mask goes in mask=)"
        )
    if bias.device != query.device:
        raise ValueError(f"bias: is on {bias.device}, the query on {query.device}")
    if not broadcasts(bias.shape, shape):
        raise ValueError(f"bias: {list(bias.shape)} does not broadcast to the scores' shape {list(shape)}")
