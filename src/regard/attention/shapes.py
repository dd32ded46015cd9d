"""Small questions about shapes and kinds of tensors, asked in several files."""

from torch import Tensor


def broadcasts(own: tuple[int, ...], to: tuple[int, ...], both: bool = False) -> bool:
    """Whether axes broadcast to those of another shape; with `both`, whether each may widen the other."""
    if len(own) > len(to) and not both:
        return False
    pairs = zip(reversed(own), reversed(to), strict=False)
    return all(size in (1, there) or (both and there == 1) for size, there in pairs)


def dtype_of(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
