"""Small questions about shapes and kinds of tensors, asked in several files."""

from torch import Tensor


def broadcasts(own: tuple[int, ...], to: tuple[int, ...], both: bool = False) -> bool:
    """Whether axes broadcast to those of another shape; with `both`, whether each may widen the other."""
    if len(own) > len(to) and not both:
        return False
    # Neither all(…) nor zip over lengths that differ: the compiler of torch 2.9 cannot read them.
    for axis in range(-min(len(own), len(to)), 0):
        if own[axis] not in (1, to[axis]) and not (both and to[axis] == 1):
            return False
    return True


def dtype_of(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
