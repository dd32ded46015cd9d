"""Matrices in 8 bits, a quarter of their size. Reads no torch.

    W_rc ≈ s_r q_rc        q_rc = round(W_rc / s_r), whole numbers from -127 to 127        s_r = max_c |W_rc| / 127

q stands in a file under the tensor's own name, s under that name and `SCALE`. The largest of each row comes out as it
was, and every other number within s_r / 2. The rows of CTranslate2's int8 are the same numbers.

Shape letters: R rows, C columns.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCALE = ".scale"
LARGEST = 127


def quantised(matrix: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """W [R, C] as q [R, C] and s [R]; a row of zeros has the scale 1."""
    whole = np.asarray(matrix, np.float32)
    if not np.isfinite(whole).all():
        raise ValueError("8 bits: expected finite numbers; some are not")
    scale = np.abs(whole).max(1, initial=0.0) / np.float32(LARGEST)
    scale[scale < np.finfo(np.float32).tiny] = 1
    return np.rint(whole / scale[:, None]).astype(np.int8), scale


def restored(held: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    """The tensors of a file, those in 8 bits multiplied out."""
    return {
        name: each * held[name + SCALE][:, None] if name + SCALE in held else each.astype(np.float32)
        for name, each in held.items()
        if not is_scale(name, held)
    }


def is_scale(name: str, held: Mapping[str, Any]) -> bool:
    """Whether it holds the scales of another tensor in the file."""
    return name.endswith(SCALE) and name.removesuffix(SCALE) in held


def in_eight_bits(weights: str | Path) -> bool:
    """Whether a file of weights holds matrices so; a file that cannot be read does not."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(weights), framework="numpy") as file:
            names = set(file.keys())
    except (OSError, SafetensorError):
        return False
    return any(is_scale(name, dict.fromkeys(names)) for name in names)
