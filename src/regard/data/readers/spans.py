"""Spans as tags: B-x begins a span of the kind x, I-x goes on with it, O is outside (BIO, also called IOB2)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """words[start:end] are a span of a kind."""

    start: int
    end: int
    kind: str


def wrong(tags: Sequence[str]) -> int | None:
    """The first tag that makes no sense where it stands: no B-, I- or O, or an I-x that goes on with nothing."""
    before = "O"
    for place, tag in enumerate(tags):
        head, dash, kind = tag.partition("-")
        if tag != "O" and (head not in ("B", "I") or not dash or not kind):
            return place
        if head == "I" and before not in (f"B-{kind}", f"I-{kind}"):
            return place
        before = tag
    return None


def from_iob1(tags: Sequence[str]) -> list[str]:
    """The older form, where B- stands only between two spans of a kind that touch, as BIO."""
    found: list[str] = []
    for before, tag in zip(["O", *tags], tags, strict=False):
        kind = tag[2:]
        begins = tag.startswith("I-") and before not in (f"I-{kind}", f"B-{kind}")
        found.append(f"B-{kind}" if begins else tag)
    return found


def spans_of(tags: Sequence[str]) -> list[Span]:
    """The spans that BIO tags make; ValueError where they make none."""
    if (place := wrong(tags)) is not None:
        raise ValueError(f"tag {place + 1}: {tags[place]!r} makes no span there")
    starts = [place for place, tag in enumerate(tags) if tag.startswith("B-")]
    ends = [next((end for end in range(start + 1, len(tags)) if not tags[end].startswith("I-")), len(tags))
            for start in starts]  # fmt: skip
    return [Span(start, end, tags[start][2:]) for start, end in zip(starts, ends, strict=True)]


def tags_of(spans: Iterable[Span], words: int) -> list[str]:
    """The BIO tags of spans that do not overlap."""
    tags = ["O"] * words
    for start, end, kind in spans:
        if not 0 <= start < end <= words or any(tag != "O" for tag in tags[start:end]):
            raise ValueError(f"span {start}:{end} ({kind}) overlaps another or leaves the {words} words")
        tags[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
    return tags
