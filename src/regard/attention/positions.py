"""Where a thing stands, told to a network that otherwise sees its input as a set.

Each kind acts at one of three hooks, and leaves the other two as they are:
- `input`: `add(x)` adds a vector to each input;
- `rotate`: `rotate(x)` turns queries and keys, so that their product depends on the distance;
- `bias`: `bias(queries, keys)` is added to the scores.

`start` is the place of the first row, for decoding with a cache.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from regard.support.nearest import unknown
from regard.tracing.labels import label

Hook = Literal["input", "rotate", "bias", "none"]
Layout = Literal["interleaved", "split"]
Pairing = Literal["half", "interleaved"]
LAYOUTS = ("interleaved", "split")
PAIRINGS = ("half", "interleaved")


class Positions(nn.Module):
    """No positions: attention permutes with its input. The other kinds replace the hook they act at."""

    hook: ClassVar[Hook] = "none"

    def add(self, x: Tensor, start: int = 0) -> Tensor:
        """x [..., T, d] with the places' vectors added."""
        return x

    def rotate(self, x: Tensor, start: int = 0) -> Tensor:
        """Queries or keys [..., T, d], turned by their places."""
        return x

    def bias(self, queries: int, keys: int) -> Tensor | None:
        """[heads, T, S] to add to the scores; the last query stands beside the last key."""
        return None


class Table:
    """Rows for places 0, 1, 2, …, computed once for each device and dtype as far as they have been asked for.

    A memo, not a state: what it gives depends on the arguments alone. It is no buffer, because `module.half()`
    would round it for good.
    """

    def __init__(self, compute: Callable[[Tensor], Tensor]) -> None:
        self.compute = compute
        self.held: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def rows(self, start: int, end: int, like: Tensor) -> Tensor:
        _check_start(start)
        if torch.compiler.is_compiling():
            return self._computed(start, end, like)
        kind = (like.device, like.dtype)
        held = self.held.get(kind)
        if held is None or held.shape[0] < end:
            # What is made under inference_mode could never be trained with afterwards.
            with torch.inference_mode(False):
                held = self._computed(0, max(256, 2 * end), like)
            if type(held) is Tensor:  # not a fake one, of a tracer
                self.held[kind] = held
        return held[start:end]

    def _computed(self, start: int, end: int, like: Tensor) -> Tensor:
        # Angles grow with the place: in float32 those of far places would be wrong in the fourth digit.
        exact = torch.float32 if like.device.type == "mps" else torch.float64
        return self.compute(torch.arange(start, end, dtype=exact, device=like.device)).to(like.dtype)


class Sinusoidal(Positions):
    """PE(p, 2i) = sin(p / base^(2i/d)), PE(p, 2i + 1) = cos(p / base^(2i/d)) (Vaswani and others 2017).

    layout="interleaved" has sines and cosines in turn, as in the paper; "split" all sines, then all cosines, as
    in Marian.
    """

    hook = "input"

    def __init__(self, width: int, layout: Layout = "interleaved", base: float = 10000.0) -> None:
        super().__init__()
        if layout not in LAYOUTS:
            raise ValueError(unknown("layout", str(layout), LAYOUTS))
        _check_sizes("sinusoidal", base, width=width)
        self.width, self.layout, self.base = width, layout, base
        self.table = Table(partial(_sinusoids, width=width, layout=layout, base=base))

    def add(self, x: Tensor, start: int = 0) -> Tensor:
        if x.shape[-1] != self.width:
            raise ValueError(f"sinusoidal: made for width {self.width}; got {x.shape[-1]}")
        return x + self.table.rows(start, start + x.shape[-2], x)


def sinusoids(places: int, width: int, layout: Layout = "interleaved", base: float = 10000.0) -> Tensor:
    """The table [places, width] in float64."""
    return _sinusoids(torch.arange(places, dtype=torch.float64), width, layout, base)


def _sinusoids(places: Tensor, width: int, layout: Layout, base: float) -> Tensor:
    angles = label(places.unsqueeze(-1) * _frequencies(width, base, places), "angles", f"p / {base:g}^(2i/d)")
    sine, cosine = angles.sin(), angles[:, : width // 2].cos()
    if layout == "split":
        return torch.cat([sine, cosine], -1)
    if width % 2:  # one sine more than cosines
        return torch.cat([torch.stack([sine[:, :-1], cosine], -1).flatten(-2), sine[:, -1:]], -1)
    return torch.stack([sine, cosine], -1).flatten(-2)


class Learned(Positions):
    """A trained vector for each place, up to a longest length."""

    hook = "input"

    def __init__(self, places: int, width: int) -> None:
        super().__init__()
        _check_sizes("learned positions", places=places, width=width)
        self.vectors = nn.Parameter(torch.randn(places, width) * width**-0.5)

    def add(self, x: Tensor, start: int = 0) -> Tensor:
        end = start + x.shape[-2]
        if x.shape[-1] != self.vectors.shape[1]:
            raise ValueError(f"learned positions: made for width {self.vectors.shape[1]}; got {x.shape[-1]}")
        _check_start(start)
        if end > self.vectors.shape[0]:
            raise ValueError(
                f"learned positions: made for {self.vectors.shape[0]} places; got {end} "
                "(a network's setting longest says for how many)"
            )
        return x + self.vectors[start:end]


class Rotary(Positions):
    """Pairs of dimensions turn by p · base^(-2i/d) (Su and others 2021), so q · k depends on the distance alone.

    pairing="half" pairs dimension i with i + d/2 (as most released models do); "interleaved" 2i with 2i + 1, as
    in the paper. The two are not the same function: weights trained with one need it.
    """

    hook = "rotate"

    def __init__(self, width: int, pairing: Pairing = "half", base: float = 10000.0) -> None:
        super().__init__()
        if pairing not in PAIRINGS:
            raise ValueError(unknown("pairing", str(pairing), PAIRINGS))
        if width % 2:
            raise ValueError(f"rotary: dimensions are turned in pairs, so the width must be even; got {width}")
        _check_sizes("rotary", base, width=width)
        self.width, self.pairing, self.base = width, pairing, base
        self.table = Table(partial(_turns, width=width, base=base))

    def rotate(self, x: Tensor, start: int = 0) -> Tensor:
        if x.shape[-1] != self.width:
            raise ValueError(f"rotary: made for width {self.width}; got {x.shape[-1]}")
        return self.turned(x, self.table.rows(start, start + x.shape[-2], x))

    def turned(self, x: Tensor, rows: Tensor) -> Tensor:
        """x turned by rows of the table, one a place, or one for all."""
        cosine, sine = rows.chunk(2, -1)
        if self.pairing == "half":
            first, second = x.chunk(2, -1)
            return torch.cat([first * cosine - second * sine, first * sine + second * cosine], -1)
        first, second = x[..., 0::2], x[..., 1::2]
        turned = torch.stack([first * cosine - second * sine, first * sine + second * cosine], -1)
        return turned.flatten(-2)


def _turns(places: Tensor, width: int, base: float) -> Tensor:
    """[places, width]: the cosines of a place's angles, then their sines."""
    angles = label(places.unsqueeze(-1) * _frequencies(width, base, places), "angles", f"p / {base:g}^(2i/d)")
    return torch.cat([angles.cos(), angles.sin()], -1)


class Alibi(Positions):
    """bias = -slope_h · |i - j| (Press, Smith and Lewis 2022): nearer keys score higher, each head at its own rate."""

    hook = "bias"
    slopes: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        if heads < 1:
            raise ValueError(f"alibi: expected one head or more; got {heads}")
        self.register_buffer("slopes", torch.tensor(alibi_slopes(heads)), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Alibi":
        """To another device, but not to another kind of numbers: half precision would round the slopes for good."""
        exact = self.slopes
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.slopes = exact.to(self.slopes.device)
        return self

    def bias(self, queries: int, keys: int) -> Tensor:
        device = self.slopes.device
        own = torch.arange(keys - queries, keys, device=device).unsqueeze(-1)
        away = (own - torch.arange(keys, device=device)).abs()
        return -self.slopes.view(-1, 1, 1) * away


def alibi_slopes(heads: int) -> list[float]:
    """2^(-8/H), 2^(-16/H), … for H a power of two; else those of the power below, then every other of the one above."""
    whole = 2 ** math.floor(math.log2(heads))
    slopes = [2.0 ** (-8 * (head + 1) / whole) for head in range(whole)]
    return slopes + [2.0 ** (-4 * (2 * head + 1) / whole) for head in range(heads - whole)]


def make(name: str, *, width: int, heads: int, head_width: int, places: int = 1024) -> Positions:
    """A kind by name, for a model that is built from a configuration."""
    makers: dict[str, Callable[[], Positions]] = {
        "none": Positions,
        "sinusoidal": lambda: Sinusoidal(width),
        "sinusoidal_split": lambda: Sinusoidal(width, "split"),
        "learned": lambda: Learned(places, width),
        "rotary": lambda: Rotary(head_width),
        "rotary_interleaved": lambda: Rotary(head_width, "interleaved"),
        "alibi": lambda: Alibi(heads),
    }
    if name not in makers:
        raise ValueError(unknown("positions", name, makers))
    return makers[name]()


def _check_start(start: int) -> None:
    if start < 0:
        raise ValueError(f"start: expected a place, 0 or more; got {start}")


def _check_sizes(kind: str, base: float = 1.0, **sizes: int) -> None:
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{kind}: {name} must be a whole number, 1 or more; got {size!r}")
    if not 0 < base < math.inf:
        raise ValueError(f"{kind}: base must be above 0 and finite; got {base!r}")


def _frequencies(width: int, base: float, like: Tensor) -> Tensor:
    """base^(-2i/d) for i = 0, 1, …, one for each sine."""
    exponents: Tensor = -torch.arange(0, width, 2, dtype=like.dtype, device=like.device) / width
    return base**exponents
