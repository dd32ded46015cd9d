"""A class's work: many answers marked, one row each, and where they first go wrong."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from rich.cells import cell_len, set_cell_size

from regard.support.errors import Misuse
from regard.support.progress import Progress
from regard.worked.marking import mark
from regard.worked.marks import Marks
from regard.worked.reading import read_problem
from regard.worked.report import told
from regard.worked.shipped import ENDINGS

LONGEST_NAME = 32
MANY = 20
"""Answers that take long enough to tell how it goes."""
COUNTED = ("right", "follows", "wrong", "unclaimed")


@dataclass(frozen=True)
class Answer:
    """One file: whose it is, and its marks, or why it has none."""

    file: str
    name: str = ""
    marks: Marks | None = None
    error: str = ""
    handed_in: bool = False
    """Whether the file only answers a problem of another file: it is somebody's, even where nothing is filled in."""

    @property
    def empty(self) -> bool:
        """Whether nothing is claimed and nobody named: a problem, and no answer to one."""
        if self.marks is None or self.name or self.handed_in:
            return False
        return self.marks.counts["unclaimed"] == len(self.marks.steps)

    @property
    def wrong(self) -> bool:
        return self.marks is not None and self.marks.first_wrong is not None

    @property
    def status(self) -> int:
        """The exit status: 0 where nothing is wrong, 1 where something is, 2 where it cannot be read."""
        return 2 if self.marks is None else int(self.wrong)

    def told(self) -> str:
        """What a person is told of it."""
        if self.marks is None:
            raise Misuse(self.error)
        return told(self.marks, self.name)

    def as_json(self) -> dict[str, Any]:
        """What `--format json` prints of it; Misuse where it cannot be read."""
        if self.marks is None:
            raise Misuse(self.error)
        return self.marks.as_json()

    def as_row(self) -> dict[str, Any]:
        """The same as one of several: with the file, whose it is, and the error where it cannot be read."""
        whose = {"file": self.file} | ({"name": self.name} if self.name else {})
        return whose | ({"error": self.error} if self.marks is None else self.as_json())


def answers(paths: Sequence[str | Path], quiet: bool = True) -> list[Answer]:
    """The answers in files and folders, marked. A file that cannot be read is one of them, with its error."""
    found: list[Answer] = []
    each_file = files(paths)
    with Progress("marking", "answers", len(each_file), quiet=quiet or len(each_file) < MANY) as progress:
        for path, named in each_file:
            one = answer(path)
            progress.add()
            if named or not one.empty:
                found.append(one)
    if not found:
        raise Misuse(f"{', '.join(map(str, paths))}: no answers here; a problem without `claimed` has nothing to mark")
    return found


def files(paths: Sequence[str | Path]) -> list[tuple[Path, bool]]:
    """All of them, a folder's in the order of their names, and whether a file was named itself."""
    found: list[tuple[Path, bool]] = []
    for path in map(Path, paths):
        if not path.is_dir():
            found.append((path, True))
            continue
        try:
            inside = [each for each in sorted(path.iterdir()) if each.suffix in ENDINGS and each.is_file()]
        except OSError as error:
            raise Misuse(f"{path}: {(error.strerror or 'it cannot be read').lower()}") from None
        if not inside:
            raise Misuse(f"{path}: no problem files in this folder (they end in {' or '.join(ENDINGS)})")
        found += [(each, False) for each in inside]
    return found


def answer(path: str | Path) -> Answer:
    """One answer, marked."""
    try:
        problem = read_problem(path)
        return Answer(str(path), problem.answered_by, mark(problem), handed_in=problem.is_answer)
    except Misuse as error:
        return Answer(str(path), error=str(error))


def table(all_answers: Sequence[Answer], width: int = 80) -> str:
    """One row an answer, and under them what the class got wrong first."""
    rows = [_row(each) for each in all_answers]
    heads = ("answer", "right", "follows", "wrong", "left out", "first wrong")
    sizes = [max(map(cell_len, column)) for column in zip(heads, *(row for row in rows if len(row) > 2), strict=True)]
    sizes[0] = min(max(sizes[0], *(cell_len(row[0]) for row in rows)), LONGEST_NAME)
    lines = [_line(heads, sizes), "-" * min(width, sum(sizes) + 2 * len(sizes) - 2)]
    lines += [line for row in rows for line in _wrapped(_line(row, sizes), row, sizes, width)]
    return "\n".join([*lines, "", *summary(all_answers)])


def _row(answer: Answer) -> tuple[str, ...]:
    whose = answer.name or Path(answer.file).stem
    if answer.marks is None:
        return whose, answer.error
    counts = [str(answer.marks.counts[verdict]) for verdict in COUNTED]
    return whose, *counts, _first(answer.marks)


def _first(marks: Marks) -> str:
    if marks.first_wrong is None:
        return "-"
    step, cell = marks.first_wrong
    though = f", though not in {', '.join(step.against)}" if step.against else ""
    slip = f", {step.slip.partition(':')[0]}{though}" if step.slip else ""
    return f"{step.name}[{','.join(map(str, cell.place))}]{slip}"


def _line(row: Sequence[str], sizes: Sequence[int]) -> str:
    name = row[0] if cell_len(row[0]) <= sizes[0] else set_cell_size(row[0], sizes[0] - 1) + "…"
    name = set_cell_size(name, sizes[0])
    if len(row) == 2:
        return f"{name}  {row[1]}"
    numbers = [each.rjust(size) for each, size in zip(row[1:-1], sizes[1:-1], strict=True)]
    return "  ".join([name, *numbers, row[-1]]).rstrip()


def _wrapped(line: str, row: Sequence[str], sizes: Sequence[int], width: int) -> list[str]:
    """What does not fit goes on below, under its own column."""
    before = sizes[:1] if len(row) == 2 else sizes[:-1]
    indent = " " * min(sum(before) + 2 * len(before), width // 2)
    if cell_len(line) <= width:
        return [line]
    return wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)


def summary(all_answers: Sequence[Answer]) -> list[str]:
    """How many have no mistake, and the steps at which most others first go wrong."""
    marked = [each.marks for each in all_answers if each.marks is not None]
    wrong = [marks.first_wrong for marks in marked if marks.first_wrong is not None]
    answered = f"{len(marked)} answer{'s' if len(marked) != 1 else ''}"
    said = [f"{answered}, {len(marked) - len(wrong)} without a mistake."]
    if wrong:
        firsts = Counter(step.name for step, _ in wrong).most_common(3)
        said.append("First wrong at " + ", ".join(f"{name} ({count})" for name, count in firsts) + ".")
    if unread := len(all_answers) - len(marked):
        said.append(f"{unread} cannot be read.")
    return said
