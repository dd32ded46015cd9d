"""A network as a table: its parts, their shapes, parameters, memory, and the multiply-adds of a token.

The multiply-adds are counted, not reckoned (`counting`).
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from regard.attention import MultiHead
from regard.models.baselines import Connected, Fixed
from regard.models.characters import Characters
from regard.models.contract import Model, SequenceModel
from regard.models.counting import counted
from regard.models.inputs import Rows
from regard.models.layers import FeedForward, Output
from regard.models.outputs import AttentionPooling, Head
from regard.models.rnn.bridge import Bridge
from regard.models.rnn.looking import Looking
from regard.models.rnn.readout import Readout

PLACES = 20
"""Of the source and of the target that go through the model, unless another number is asked for."""
WHOLE = (
    MultiHead, FeedForward, Looking, Readout, Bridge, Output, AttentionPooling, Head, Characters, Rows, Connected,
)  # fmt: skip
"""What is told in one row, with all that is inside it."""
NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
NUMBERS = 3
"""The first column of the table that holds numbers."""


@dataclass(frozen=True)
class Part:
    """A row of the table."""

    name: str
    """As in the weights file; layers of one shape stand together: layers.0-3."""
    kind: str
    """The class."""
    shapes: str
    """Of its tensors: `4 × [256, 256]`."""
    parameters: int
    memory: int
    """Bytes of them."""
    multiply_adds: float
    """A token."""


@dataclass(frozen=True)
class Shown:
    """All of it."""

    parts: tuple[Part, ...]
    parameters: int
    memory: int
    source: str
    """What was encoded: `20 places`, or an image."""
    encoding: float
    """Multiply-adds for each place of the source, or for the image."""
    decoding: float | None
    """Multiply-adds for each token of the target; None where there is none."""


def shown(model: Model, places: int = PLACES) -> Shown:
    """The table of a model, counted with a source and a target of so many places."""
    places = _within_limits(model, places)
    encoding, decoding = counted(model, places, named_parts(model))
    image = model.sizes.image
    shares = 1 if image is not None else places  # an image is one thing, however many cells it has
    totals = {name: encoding[name] / shares + decoding[name] / places for name in {*encoding, *decoding}}
    seen: set[int] = set()
    parts = tuple(_together([_part(model, name, totals, seen) for name in named_parts(model)]))
    told = f"an image of {image[1]} × {image[2] or image[1]}" if image is not None else f"{places} places"
    return Shown(
        parts, sum(each.parameters for each in parts), sum(each.memory for each in parts), told,
        encoding.total() / shares, decoding.total() / places if isinstance(model, SequenceModel) else None,
    )  # fmt: skip


def table(shown: Shown) -> str:
    """Columns of plain text."""
    head = ("part", "kind", "shapes", "parameters", "memory", "multiply-adds a token")
    rows = [
        (each.name, each.kind, each.shapes, f"{each.parameters:,}", in_bytes(each.memory), f"{each.multiply_adds:,.0f}")
        for each in shown.parts
    ]
    a_token = shown.encoding + (shown.decoding or 0.0)
    rows.append(("all", "", "", f"{shown.parameters:,}", in_bytes(shown.memory), f"{a_token:,.0f}"))
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [
            each.ljust(width) if at < NUMBERS else each.rjust(width)
            for at, (each, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, "", _counted_with(shown)])


def _counted_with(shown: Shown) -> str:
    if "image" in shown.source:
        encoding = f"{shown.encoding:,.0f} multiply-adds for {shown.source}"
    else:
        encoding = f"{shown.encoding:,.0f} multiply-adds for each of {shown.source} of the source"
    if shown.decoding is None:
        return f"{encoding}."
    return f"{encoding}, {shown.decoding:,.0f} for each token of the target."


def in_bytes(size: int) -> str:
    """`1.4 MB`."""
    for unit, power in (("GB", 3), ("MB", 2), ("kB", 1)):
        if size >= 1000**power:
            return f"{size / 1000**power:.1f} {unit}"
    return f"{size} B"


def _within_limits(model: Model, places: int) -> int:
    """As many as the model can tell apart."""
    limits = [places, getattr(model, "longest", None), model.W.shape[1] if isinstance(model, Fixed) else None]
    return min(each for each in limits if each is not None)


def named_parts(model: nn.Module) -> list[str]:
    """What gets a row: parts that are told as one, plain layers elsewhere, single tensors; in the model's order."""
    found: list[str] = []
    for name, module in model.named_modules():
        if any(name.startswith(f"{other}.") for other in found):
            continue
        own = [one for one, _ in module.named_parameters(recurse=False)]
        below = any(True for child in module.children() for _ in child.parameters())
        if isinstance(module, WHOLE) or (own and name and not below):
            found.append(name)
        else:
            found += [f"{name}.{one}" if name else one for one in own]
    return found


def _part(model: nn.Module, name: str, totals: Mapping[str, float], seen: set[int]) -> Part:
    """A row; tensors that stood in an earlier one (tied, shared) are not counted again."""
    modules = dict(model.named_modules())
    held = list(modules[name].parameters()) if name in modules else [model.get_parameter(name)]
    kind = type(modules[name]).__name__ if name in modules else "Parameter"
    new = [each for each in held if id(each) not in seen]
    seen.update(map(id, new))
    shapes = ", ".join(filter(None, [_shapes(new), "shared" if len(new) < len(held) else ""]))
    # What a model does itself it does with tensors of its own.
    products = totals.get(name if name in modules else "", 0.0)
    size = sum(each.numel() * each.element_size() for each in new)
    return Part(name, kind, shapes, sum(each.numel() for each in new), size, products)


def _shapes(held: list[nn.Parameter]) -> str:
    """`4 × [256, 256], 4 × [256]`."""
    counts = Counter(str(list(each.shape)) for each in held)
    return ", ".join(shape if count == 1 else f"{count} × {shape}" for shape, count in counts.items())


def _together(parts: list[Part]) -> list[Part]:
    """Layers of one kind and shape as one row."""
    groups: dict[tuple[str, str, str], list[Part]] = {}
    for part in parts:
        groups.setdefault((NUMBER.sub("#", part.name), part.kind, part.shapes), []).append(part)
    return [_sum(each) for each in groups.values()]


def _sum(parts: list[Part]) -> Part:
    first, last = parts[0], parts[-1]
    numbers = zip(NUMBER.findall(first.name), NUMBER.findall(last.name), strict=True)
    ranges = iter(["-".join(dict.fromkeys(each)) for each in numbers])
    name = NUMBER.sub(lambda _: next(ranges), first.name)
    count, size = sum(each.parameters for each in parts), sum(each.memory for each in parts)
    return Part(name, first.kind, first.shapes, count, size, sum(each.multiply_adds for each in parts))
