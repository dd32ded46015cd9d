"""What was worked in place of a step: its formula with a usual slip in it, also a slip in the steps before it that
somebody may have worked in one go with it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from regard.worked import changes
from regard.worked.attempt import VIEWS, Attempt, Slip
from regard.worked.calls import Call
from regard.worked.changes import Blanked, Change, Setting, changed
from regard.worked.marks import CUT
from regard.worked.nodes import Binary, Name, Node, Number

MOST_LOOKS = 12_000
"""At cells, in the search for slips in one answer, about half a second; where more are needed nothing is said."""
LOOKS_AT_ALL = 4
"""What the whole interval of a cell costs, in looks at nearby values."""
LOOKS_A_PART = 2
"""What working a changed formula costs for each of its names, numbers, signs and calls, in looks at cells."""
MOST_FORMS = 12
"""Ways to write one formula with the steps before it put in, of those that are tried."""


class Form(NamedTuple):
    """A formula, with earlier steps put in where somebody may have worked them in one go."""

    root: Node
    put: Mapping[str, Node] = {}
    """What stands there for those steps."""
    sure: bool = True
    """Where those are steps of some weight, a single cell is no evidence of what happened inside of them."""


def instead(attempt: Attempt) -> Slip | None:
    """The change that explains every wrong cell. One that also agrees with all other cells is better than one that
    does not. And where a step that was put in was answered without the slip, only what gives every cell of this one is
    believed, more than one digit of them, and what speaks against it is said."""
    against: Slip | None = None
    partial: Slip | None = None
    several = len(attempt.wrong) > 1
    digits = sum(attempt.cells[place].claimed.digits for place in attempt.wrong)
    for form, change in _candidates(attempt, several):
        if (found := _explained(attempt, change.to, change.said)) is None:
            continue
        slip, whole = found
        if names := _without_it(attempt, form, change.to):
            against = against or (_told_against(attempt, slip, names) if whole and digits > 1 else None)
        elif whole:
            return slip
        elif several:
            partial = partial or slip
    return against or partial


def _candidates(attempt: Attempt, several: bool) -> Iterator[tuple[Form, Change]]:
    """Every change of every form, until so much has been worked that the search ends."""
    reach = attempt.reach
    if reach.looks > MOST_LOOKS:
        return
    forms, setting = _forms(attempt), _setting(attempt)
    for rule in changes.RULES:
        for form in forms:
            for change in changed(form.root, rule, setting) if form.sure or several else ():
                reach.looks += LOOKS_A_PART * change.to.size
                if reach.looks > MOST_LOOKS:
                    return
                yield form, change


def _setting(attempt: Attempt) -> Setting:
    formulas = {name: formula.root for name, formula in attempt.formulas.items() if name != attempt.name}
    return Setting(formulas, set(attempt.known.true) - set(formulas) - {attempt.name}, attempt.known.true)


def _forms(attempt: Attempt) -> list[Form]:
    forms, seen = [Form(attempt.root)], {str(attempt.root)}
    for form in forms:
        for name in form.root.names:
            formula = attempt.formulas.get(name)
            if formula is None or not (_light(formula.root) or name not in attempt.known.standing):
                continue
            replacing = _replacing(name, formula.root)
            longer = form.root.rewritten(replacing)
            if str(longer) not in seen and len(forms) < MOST_FORMS:
                seen.add(str(longer))
                put = {each: part.rewritten(replacing) for each, part in form.put.items()} | {name: formula.root}
                forms.append(Form(longer, put, form.sure and _light(formula.root)))
    return forms


def _without_it(attempt: Attempt, form: Form, changed_to: Node) -> tuple[str, ...]:
    """The steps that were put in, that the slip would have changed, and that were answered without a wrong cell."""
    standing = attempt.known.standing
    answered = [name for name in attempt.formulas if name in form.put and {*standing.get(name, ())} - {"unclaimed"}]
    sound = [name for name in answered if "wrong" not in standing[name]]
    return tuple(name for name in sound if not _stands_in(form.put[name], changed_to))


def _stands_in(part: Node, whole: Node) -> bool:
    """Whether a piece of a formula is worked in another; of a mask put on afterwards only its places are read."""
    below = whole.parts[:1] if isinstance(whole, Blanked) else whole.parts
    return part == whole or any(_stands_in(part, each) for each in below)


def _told_against(attempt: Attempt, slip: Slip, names: tuple[str, ...]) -> Slip:
    listed, them = (names[0], "it") if len(names) == 1 else (f"{', '.join(names[:-1])} and {names[-1]}", "them")
    have = "has" if len(names) == 1 else "have"
    return slip._replace(
        text=f"{slip.text}; your {listed} {have} no such slip, so {attempt.name} was not worked from {them}",
        against=names,
    )


def _replacing(name: str, by: Node) -> Callable[[Node], Node]:
    return lambda node: by if isinstance(node, Name) and node.name == name else node


def _light(formula: Node) -> bool:
    """A step that only scales or masks another."""
    divides = isinstance(formula, Binary) and formula.sign == "/"
    divides |= isinstance(formula, Binary) and formula.sign == "*" and any(map(_is_number, formula.parts))
    return divides or (isinstance(formula, Call) and formula.function in ("mask", "scale"))


def _is_number(node: Node) -> bool:
    return isinstance(node, Number)


def _explained(attempt: Attempt, recipe: Node, said: str) -> tuple[Slip, bool] | None:
    """The slip where the changed formula gives every row with a wrong cell, and whether it gives the others too."""
    try:
        value = attempt.known.worked(recipe, {name: attempt.known.own[name] for name in attempt.known.sources(recipe)})
        if value.shape != attempt.true.shape or not all(_gives(attempt, recipe, place) for place in attempt.wrong):
            return None
        rest = [place for place, cell in enumerate(attempt.cells) if cell.verdict not in ("wrong", "unclaimed")]
        rows = {_row(attempt, place) for place in attempt.wrong}
        given = {place for place in rest if _gives(attempt, recipe, place)}
        if any(place not in given and _row(attempt, place) in rows for place in rest):
            return None
        cut = {place for place in given if attempt.cells[place].remark == CUT and _gives(attempt, recipe, place, False)}
    except (ValueError, KeyError, _Tired):  # what cannot be worked was not what somebody worked
        return None
    blank = {k for k, cell in enumerate(attempt.cells) if cell.verdict == "unclaimed" and _row(attempt, k) in rows}
    return Slip(said, recipe, frozenset({*given, *blank, *attempt.wrong}), frozenset(cut)), len(given) == len(rest)


class _Tired(Exception):
    """So many cells have been looked at that the search ends."""


def _row(attempt: Attempt, place: int) -> int:
    return place // attempt.true.shape[-1] if attempt.true.ndim else 0


def _gives(attempt: Attempt, recipe: Node, place: int, cut_too: bool = True) -> bool:
    number = attempt.cells[place].claimed
    for interval, looks in ((attempt.reach.nearby, 1), (attempt.reach.all, LOOKS_AT_ALL)):  # the first is quick
        attempt.reach.looks += looks
        if attempt.reach.looks > MOST_LOOKS:
            raise _Tired
        reached = [interval(recipe, place, view) for view in VIEWS]
        if any(number.is_rounded_from(each) or (cut_too and number.is_cut_from(each)) for each in reached):
            return True
    return False
