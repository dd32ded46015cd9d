"""A worksheet as an answer file: a cell to be filled in is a _, and `regard check` marks it when that is done."""

from regard.worked.notation import spelled
from regard.worked.worksheet.sheet import Item, Sheet, told

OPENING = """\
# An answer to: {title}
# Put a number in the place of each _ as you would write it down (-inf for a blocked cell), and delete the steps that
# you leave out. `problem` is the file of the problem, beside this one, or the name of a shipped one.
problem: {problem}
name:
claimed:
"""


def written(sheet: Sheet, part: str) -> str:
    """The key is the same file with the numbers."""
    steps = sheet.key if part == "key" else sheet.steps
    opening = OPENING.format(title=sheet.title, problem=sheet.source)
    return opening + "\n".join(_step(item) for item in steps)


def _step(item: Item) -> str:
    assert item.formula is not None
    return f"  # {item.name} = {spelled(item.formula)} ({told(item.shape)})\n  {item.name}:{_cells(item)}\n"


def _cells(item: Item) -> str:
    if not item.shape:
        return f" {_number(item.grids[0].cells[0][0])}"
    matrices = [[f"[{', '.join(_number(cell) for cell in row)}]" for row in grid.cells] for grid in item.grids]
    if len(item.shape) == 1:
        return f" {matrices[0][0]}"
    if len(item.shape) == 2:
        return "".join(f"\n    - {row}" for row in matrices[0])
    return "".join(f"\n    - [{', '.join(rows)}]" for rows in matrices)


def _number(cell: str) -> str:
    return cell.replace("∞", "inf") or "_"
