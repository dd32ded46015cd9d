"""The table of rules, and how a rule gets into it."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from regard.tracing.rules.call import Maker

Sort = Literal["each", "over", "move"]
"""each: from one cell of each input; over: from many cells of some input; move: without arithmetic."""


class Entry(NamedTuple):
    make: Maker
    sort: Sort


RULES: dict[str, Entry] = {}
"""For the name of a primitive how its cells are made."""


def rule(sort: Sort, *names: str) -> Callable[[Maker], Maker]:
    """Enters a function for the operations of these names of aten."""

    def enter(make: Maker) -> Maker:
        for name in names:
            assert name not in RULES, name
            RULES[f"aten.{name}"] = Entry(make, sort)
        return make

    return enter
