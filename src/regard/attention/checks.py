"""What `attend` and `weigh` are given, checked once: each error names the argument, what was expected, what came."""

import torch
from torch import Tensor

from regard.attention import masks, scores
from regard.attention import normalise as normalisers
from regard.attention.call import Call
from regard.attention.masks import Mask
from regard.attention.normalise import Normaliser
from regard.attention.scores import Score


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
    if not 0 <= dropout <= 1:
        raise ValueError(f"dropout: expected a share between 0 and 1; got {dropout!r}")
    _tensors(query, key, value)
    _lengths(key, value)
    groups = _groups(query, key, value)
    score.check(query, key)
    shape = _scores_shape(query, key, groups)
    if value is not None:
        _leading("value", value, shape, groups)
    if bias is not None:
        _bias(bias, query, shape)
    if mask is not None:
        mask = masks.as_mask(mask)
        mask.check(shape)
    return Call(query, key, value, score, bias, mask, normalise, dropout, generator, shape, groups)


def _tensors(query: Tensor, key: Tensor, value: Tensor | None) -> None:
    for name, each in (("query", query), ("key", key), ("value", value)):
        if each is None:
            continue
        if not isinstance(each, Tensor):
            raise ValueError(f"{name}: expected a tensor; got {type(each).__name__}")
        if not each.is_floating_point():
            raise ValueError(f"{name}: expected floating-point numbers; got {dtype_of(each)}")
        if each.ndim < 2:
            raise ValueError(f"{name}: expected at least two axes [length, width]; got {list(each.shape)}")
        if each.device != query.device:
            raise ValueError(f"{name}: is on {each.device}, the query on {query.device}")
        if each.dtype != query.dtype and not torch.is_autocast_enabled(query.device.type):
            raise ValueError(f"{name}: is {dtype_of(each)}, the query {dtype_of(query)}")


def _lengths(key: Tensor, value: Tensor | None) -> None:
    if value is not None and value.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"value: expected one row for each of the {key.shape[-2]} keys; got {value.shape[-2]} rows "
            f"(key {list(key.shape)}, value {list(value.shape)})"
        )


def _groups(query: Tensor, key: Tensor, value: Tensor | None) -> int:
    """How many query heads share one key head. A single head of keys broadcasts like any axis of 1."""
    heads = query.shape[-3] if query.ndim > 3 else 1
    shared = key.shape[-3] if key.ndim > 3 else 1
    if value is not None and value.ndim > 3 and key.ndim > 3 and value.shape[-3] != shared:
        raise ValueError(f"value: expected the {shared} heads of the key; got {value.shape[-3]}")
    if shared in (1, heads) or heads == 1:
        return 1
    if heads % shared:
        raise ValueError(f"key: its heads must divide the query's; got {shared} heads for {heads}")
    return heads // shared


def _scores_shape(query: Tensor, key: Tensor, groups: int) -> torch.Size:
    _leading("key", key, query.shape, groups)
    leading = torch.broadcast_shapes(query.shape[:-2], _shared_shape(key, groups)[:-2])  # type: ignore[no-untyped-call]
    return torch.Size([*leading, query.shape[-2], key.shape[-2]])


def _leading(name: str, given: Tensor, beside: torch.Size, groups: int) -> None:
    """The axes before the last two must broadcast against those of the query."""
    own = _shared_shape(given, groups)[:-2]
    for size, other in zip(reversed(own), reversed(beside[:-2]), strict=False):
        if size != other and 1 not in (size, other):
            raise ValueError(
                f"{name}: its leading axes {list(given.shape[:-2])} do not fit the query's {list(beside[:-2])}"
            )


def _shared_shape(given: Tensor, groups: int) -> list[int]:
    shape = list(given.shape)
    if groups > 1:
        shape[-3] *= groups
    return shape


def _bias(bias: Tensor, query: Tensor, shape: torch.Size) -> None:
    if not isinstance(bias, Tensor) or not bias.is_floating_point():
        came = dtype_of(bias) if isinstance(bias, Tensor) else type(bias).__name__
        raise ValueError(
            f"bias: expected floating-point numbers to add to the scores; got {came} (a mask goes in mask=)"
        )
    if bias.device != query.device:
        raise ValueError(f"bias: is on {bias.device}, the query on {query.device}")
    fits = bias.ndim <= len(shape) and all(
        size in (1, there) for size, there in zip(reversed(bias.shape), reversed(shape), strict=False)
    )
    if not fits:
        raise ValueError(f"bias: {list(bias.shape)} does not broadcast to the scores' shape {list(shape)}")


def dtype_of(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
