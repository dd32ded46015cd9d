"""The ways to one answer, under one signature: the reference, and each fast path as far as a CPU can go it."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from regard.attention import attend, masks, normalise, scores
from regard.attention.checks import checked
from regard.attention.fast import flex

Path = Callable[..., Tensor]


def by_reference(query: Tensor, key: Tensor, value: Tensor, **settings: Any) -> Tensor:
    return attend(query, key, value, implementation="reference", **settings)


def by_sdpa(query: Tensor, key: Tensor, value: Tensor, **settings: Any) -> Tensor:
    return attend(query, key, value, implementation="fused", **settings)  # on a CPU only sdpa can be meant


def by_flex(query: Tensor, key: Tensor, value: Tensor, **settings: Any) -> Tensor:
    """The flex path with a kernel that needs no GPU; without a mask it gets one that leaves nothing out."""
    settings = {"score": scores.ScaledDot(), "bias": None, "normalise": normalise.softmax, **settings}
    if settings.get("mask") is None:
        settings["mask"] = masks.window(None, None)
    call = checked(query, key, value, dropout=0.0, generator=None, **settings)
    return flex.run(call, attention=uncompiled)


def uncompiled(query: Tensor, key: Tensor, value: Tensor, *, block_mask: BlockMask, scale: float) -> Tensor:
    """flex_attention as it is; where gradients are wanted, which it has none of on a CPU, PyTorch's other kernel."""
    if not query.requires_grad:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
            return flex_attention(query, key, value, block_mask=block_mask, scale=scale)
    sizes = (*query.shape[:2], query.shape[-2], key.shape[-2])
    keep = create_mask(block_mask.mask_mod, *sizes, device="cpu")
    return scaled_dot_product_attention(query, key, value, attn_mask=keep, scale=scale)


PATHS: dict[str, Path] = {"reference": by_reference, "sdpa": by_sdpa, "flex": by_flex}


def some(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0, grad: bool = True) -> Tensor:
    """Numbers like those of a network, the same each time."""
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return numbers.to(dtype).requires_grad_(grad)


def qkv(*shape: int, keys: int | None = None, seed: int = 0, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """A query of this shape [..., T, d], a key and a value with `keys` places (T unless said)."""
    *leading, queries, width = shape
    places = queries if keys is None else keys
    return [
        some(*leading, length, width, seed=3 * seed + which, dtype=dtype)
        for which, length in enumerate((queries, places, places))
    ]
