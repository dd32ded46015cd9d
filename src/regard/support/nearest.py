"""Did you mean …: the nearest right name to one that is not known."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, or None where none is like it at all."""
    by_lowered = {each.lower(): each for each in known}
    matches = get_close_matches(name.lower(), by_lowered, n=1, cutoff=0.6)
    return by_lowered[matches[0]] if matches else None


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """A sentence about an unknown name: what it is, the nearest right one, and all there are.

    >>> unknown("score", "additve", ["dot", "additive"])
    "unknown score 'additve'; did you mean 'additive'? (known: additive, dot)"
    """
    names = sorted(known)
    guess = nearest(name, names)
    hint = f"; did you mean {guess!r}?" if guess else "."
    return f"unknown {kind} {name!r}{hint} (known: {', '.join(names) or 'none'})"
