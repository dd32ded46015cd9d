"""When a sequence only repeats itself, told of plain numbers: the rule of `decoding.loops`, for engines without torch.

It ends in the same 1 to 8 tokens at least 5 times over, for at least 24 tokens.
"""

from collections.abc import Sequence

LONGEST_PERIOD = 8
FEWEST_TOKENS = 24
FEWEST_TIMES = 5


def stretch(period: int) -> int:
    """How many tokens must repeat with that period."""
    return max(FEWEST_TOKENS, FEWEST_TIMES * period)


def loop_end(tokens: Sequence[object]) -> int | None:
    """The first length at which a search would have seen that these tokens only repeat themselves; None: it would
    not have."""
    runs = [0] * (LONGEST_PERIOD + 1)
    """Of each period: how many tokens up to here are those that stood so many places before."""
    for place, token in enumerate(tokens):
        for period in range(1, LONGEST_PERIOD + 1):
            same = place >= period and tokens[place - period] == token
            runs[period] = runs[period] + 1 if same else 0
            if runs[period] >= stretch(period) - period:
                return place + 1
    return None
