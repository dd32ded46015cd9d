"""A problem file → a `Problem`, every mistake with its line, column and step."""

from collections.abc import Mapping as MappingOf
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize

from regard.support.errors import Misuse
from regard.worked.cells import is_blank, read_cells
from regard.worked.guessing import unknown
from regard.worked.limits import MOST_BYTES, MOST_CELLS_IN_ALL, MOST_NAMES, MOST_PARTS, spelled
from regard.worked.lines import List, Mapping, Text, Tree, read_lines
from regard.worked.places import Place
from regard.worked.problem import Claimed, Given, Problem
from regard.worked.sections import Sections, printable
from regard.worked.shipped import is_there, located, shipped
from regard.worked.stepping import Lines

KEYS = ("title", "about", "given", "given_rounded", "words", "axes", "steps", "claimed", "problem", "name")
Side = tuple[str, ...] | None
Axes = dict[str, tuple[Side, ...]]
Shapes = MappingOf[str, tuple[int, ...]]
SIDES = ("rows", "columns")


def read_problem(path_or_name: str | Path) -> Problem:
    """The problem in a file, or a shipped one by its name; Misuse says in a sentence what is wrong with it."""
    return _read(path_or_name, asked=False)


def _read(path_or_name: str | Path, asked: bool) -> Problem:
    path = located(path_or_name)
    data = _bytes(path)
    if len(data) > MOST_BYTES:
        raise Misuse(f"{path}: a problem file has at most {MOST_BYTES} bytes; this one is larger")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].rpartition(b"\n")[2]
        at = Place(data[: error.start].count(b"\n") + 1, len(line.decode("utf-8")) + 1)
        raise Misuse(f"{path}:{at}: not UTF-8, as a problem file is") from None
    return _Reader(str(path), asked).problem(read_lines(text, str(path)))


def _bytes(path: Path) -> bytes:
    """As many as a problem file may have, and one more."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Misuse(f"{path}: {(error.strerror or 'it cannot be read').lower()}") from None


def problem_from(text: str, name: str = "problem") -> Problem:
    """The same from text, wherever it came from; `name` is what messages call it. It reads no file but shipped ones."""
    return _Reader(name, filed=False).problem(read_lines(text, name))


class _Reader:
    def __init__(self, name: str, asked: bool = False, filed: bool = True) -> None:
        self.name, self.asked, self.filed = name, asked, filed
        """`asked`: by an answer, which names a problem and no other answer. `filed`: the text is that of a file, and
        may name another one."""
        self.take = Sections(name)

    def problem(self, tree: Tree) -> Problem:
        top = self.take.mapping(tree, "a problem", KEYS)
        title = self.take.text(top, "title")
        if "problem" in top.items:
            if self.asked:
                self.take.refuse(
                    top.keys["problem"], "this is itself an answer; an answer names the problem it answers"
                )
            return self.answer(top)
        for needed in ("given", "steps"):
            if needed not in top.items:
                self.take.refuse(top.at, f"there is no `{needed}`; a problem has a title, what is given, and its steps")
        axes: Axes = {}
        given = self.given(top, axes)
        problem = Problem(
            title=title or Path(self.name).stem, given=given, steps=(), about=self.take.text(top, "about"),
            words=self.words(top), path=self.name, answered_by=self.take.text(top, "name"),
        )  # fmt: skip
        shapes = {name: tuple(each.value.shape) for name, each in given.items()}
        problem = replace(problem, axes=axes | self.axes(top, problem, shapes))
        lines = self.steps(top, problem)
        problem = replace(problem, steps=tuple(lines.steps))
        shapes = lines.shapes() if "axes" in top.items else {}
        problem = replace(problem, axes={**problem.axes, **self.axes(top, problem, shapes)})
        return replace(problem, claimed=self.claimed(top, problem))

    def answer(self, top: Mapping) -> Problem:
        """A file that only answers: `problem:` names the file (beside this one) or the shipped problem it answers."""
        for key in ("given", "given_rounded", "words", "axes", "steps"):
            if key in top.items:
                self.take.refuse(
                    top.keys[key], f"`{key}` comes from the problem that this file answers; one of them must go"
                )
        asked = _read(self.asked_for(top), asked=True)
        problem = replace(
            asked, title=self.take.text(top, "title") or asked.title, about=self.take.text(top, "about") or asked.about,
            path=self.name, answered_by=self.take.text(top, "name"), claimed={}, is_answer=True,
        )  # fmt: skip
        return replace(problem, claimed=self.claimed(top, problem))

    def asked_for(self, top: Mapping) -> Path:
        """The file of the problem: beside the answer, or shipped."""
        said, at = self.take.text(top, "problem"), top.items["problem"].at
        if not self.filed:
            if said not in shipped():
                self.take.refuse(at, f"problem: {unknown('shipped problem', said[:60], shipped())}")
            return shipped()[said]
        beside = Path(self.name).parent / said
        try:
            path = beside if said and is_there(beside) and beside.is_file() else located(said)
        except Misuse as error:
            self.take.refuse(at, f"problem: {error}")
        if not is_there(path) or not path.is_file():
            self.take.refuse(
                at, f"problem: {said[:60]!r}: no such file beside this one, and no shipped problem of this name"
            )
        return path

    def given(self, top: Mapping, axes: Axes) -> dict[str, Given]:
        section = self.take.mapping(top.items["given"], "`given`")
        rounded = self.rounded(top, section)
        found: dict[str, Given] = {}
        if len(section.items) > MOST_NAMES:
            self.take.refuse(section.at, f"{len(section.items)} givens, and a problem has at most {MOST_NAMES}")
        cells = 0
        for key, tree in section.items.items():
            name = self.take.fit_name(key, section.keys[key])
            if isinstance(tree, Mapping):
                axes[name] = (tuple(map(printable, tree.items)),)
                tree = List(tuple(tree.items.values()), tree.at)
            written, value = read_cells(tree, f"given {key}", self.name)
            axes |= {name: axes[name] + (None,) * (value.ndim - 1)} if name in axes else {}
            cells += value.numel()
            if cells > MOST_CELLS_IN_ALL:
                self.take.refuse(section.keys[key], f"more than {MOST_CELLS_IN_ALL} cells are given in all")
            if bool((value == float("inf")).any()):
                self.take.refuse(section.keys[key], f"given {key}: only -inf (a blocked cell) may be endless")
            found[name] = Given(value, written, name in rounded, section.keys[key].line)
        return found

    def rounded(self, top: Mapping, given: Mapping) -> set[str]:
        names = self.take.listed(top.items.get("given_rounded"), "`given_rounded`")
        for name in names:
            if name.text not in given.items:
                self.take.refuse(name.at, f"given_rounded: {unknown('given', name.text, given.items)}")
        return {normalize("NFKC", name.text) for name in names}

    def words(self, top: Mapping) -> dict[str, tuple[str, ...]]:
        if "words" not in top.items:
            return {}
        section = self.take.mapping(top.items["words"], "`words`")
        return {
            self.take.fit_name(key, section.keys[key]): tuple(
                printable(each.text) for each in self.take.listed(tree, f"words {key}")
            )
            for key, tree in section.items.items()
        }

    def axes(self, top: Mapping, problem: Problem, shapes: Shapes) -> Axes:
        """`axes: {X: [how, are, you], A: {rows: …, columns: …}}`: those of `shapes`, and while there are no steps yet
        no complaint about other names."""
        if "axes" not in top.items:
            return {}
        section = self.take.mapping(top.items["axes"], "`axes`")
        names = [*problem.given, *(step.name for step in problem.steps)]
        found: Axes = {}
        for key, tree in section.items.items():
            name = normalize("NFKC", key)
            if name not in names and problem.steps:
                self.take.refuse(section.keys[key], f"axes: {unknown('name', key, names)}")
            if name in shapes:
                found[name] = self.sides(key, tree, problem, shapes[name])
        return found

    def sides(self, key: str, tree: Tree, problem: Problem, shape: tuple[int, ...]) -> tuple[Side, ...]:
        """Words for the rows and for the columns, as many as there are; of a row of numbers for its cells."""
        what, own = f"axes {key}", SIDES[-len(shape) :] if shape else ()
        given = (
            self.take.mapping(tree, what, SIDES).items if isinstance(tree, Mapping) else dict.fromkeys(own[:1], tree)
        )
        if not shape or any(side not in own for side in given):
            self.take.refuse(
                tree.at, f"{what}: {key} is {spelled(shape)} and has no {' and '.join(given) or 'rows'} to name"
            )
        found: list[Side] = [None] * (len(shape) - 2)
        for side, size in zip(own, shape[-2:], strict=True):
            words = self.side(given.get(side), problem, what)
            if words is not None and len(words) != size:
                self.take.refuse(given[side].at, f"{what}: {len(words)} {side} are named, and {key} has {size}")
            found.append(words)
        return tuple(found)

    def side(self, tree: Tree | None, problem: Problem, what: str) -> Side:
        if tree is None:
            return None
        if isinstance(tree, Text) and tree.text in problem.words:
            return problem.words[tree.text]
        return tuple(printable(each.text) for each in self.take.listed(tree, what))

    def steps(self, top: Mapping, problem: Problem) -> Lines:
        section = self.take.mapping(top.items["steps"], "`steps`")
        if not section.items:
            self.take.refuse(section.at, "there are no steps")
        if (count := len(section.items)) > MOST_NAMES:
            said = f"more than {MOST_NAMES} steps, counted with those of whole layers: {count}"
            self.take.refuse(top.keys["steps"], said)
        lines = Lines(problem, {normalize("NFKC", key) for key in section.items})
        for key, tree in section.items.items():
            at = section.keys[key]
            name = self.take.fit_name(key, at)
            if name in lines.known:
                kind = "given" if name in problem.given else "an earlier step"
                self.take.refuse(at, f"step {key}: {key} is {kind} already; a step needs a name of its own")
            if not isinstance(tree, Text):
                hint = "; joining is concat(a, b)" if isinstance(tree, List) else ""
                self.take.refuse(tree.at, f"step {name}: expected a formula, came {tree.kind}{hint}")
            lines.add(name, tree)
            if lines.size > MOST_PARTS:
                self.take.refuse(at, f"more than {MOST_PARTS} names, numbers and signs in all formulas")
            if len(lines.steps) > MOST_NAMES:
                self.take.refuse(at, f"more than {MOST_NAMES} steps, counted with those of whole layers")
        return lines

    def claimed(self, top: Mapping, problem: Problem) -> dict[str, Claimed]:
        if "claimed" not in top.items:
            return {}
        section = self.take.mapping(top.items["claimed"], "`claimed`")
        names = [step.name for step in problem.steps]
        found = {}
        for key, tree in section.items.items():
            name = normalize("NFKC", key)
            if name not in names:
                reason = f"{key} is given, and is no step" if name in problem.given else unknown("step", key, names)
                self.take.refuse(section.keys[key], f"claimed: {reason}")
            if is_blank(tree):
                continue
            written, value = read_cells(tree, f"claimed {key}", self.name, blanks=True)
            found[name] = Claimed(written, value, section.keys[key].line)
        return {name: found[name] for name in names if name in found}
