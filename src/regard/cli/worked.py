"""`regard problems`, `work`, `check`, `worksheet`, `new-problem`: problems on paper."""

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import app

ProblemName = Annotated[str, typer.Argument(metavar="PROBLEM", help="A problem file, or the name of a shipped one.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="A file; its ending says the format. None: here.")]
Digits = Annotated[int, typer.Option("--digits", "-d", help="Significant digits shown, 2 to 6.")]


@app.command()
def problems() -> None:
    """List the worked problems that come with regard."""
    from regard.worked.shipped import lines

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    typer.echo("\n".join(lines(width)))


@app.command()
def work(
    problem: ProblemName,
    format: Annotated[str | None, typer.Option("--format", "-f", help="text, markdown, latex, html or json.")] = None,
    digits: Digits = 4,
    only: Annotated[str | None, typer.Option(help="Show these steps alone: A,O or O[0].")] = None,
    output: Output = None,
) -> None:
    """Work a problem step by step; every number can be traced to those it was made from."""
    from regard.worked import read_problem, solve
    from regard.worked.page import FORMATS, page
    from regard.worked.writing import chosen, write

    form = chosen(format, output, FORMATS)
    write(page(solve(read_problem(problem)), form, digits=digits, only=only), output)


@app.command()
def check(
    answers: Annotated[list[str], typer.Argument(metavar="FILE…", help="Answers, or a folder of them.")],
    format: Annotated[str, typer.Option("--format", "-f", help="text or json.")] = "text",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Mark answers worked by hand: one in full, several as a table with a row each.

    Exit status: 0 when nothing is wrong, 1 when something is, 2 when a file cannot be read.
    """
    from regard.worked import classwork
    from regard.worked.writing import chosen

    form = chosen(format, None, {"text": ".txt", "json": ".json"})
    if len(answers) == 1 and not Path(answers[0]).is_dir():
        one = classwork.answer(answers[0])
        typer.echo(json.dumps(one.as_json(), indent=2) if form == "json" else one.told())
        raise typer.Exit(one.status)
    marked = classwork.answers(answers, quiet)
    several = [each.as_row() for each in marked]
    typer.echo(json.dumps(several, indent=2) if form == "json" else classwork.table(marked))
    raise typer.Exit(max(each.status for each in marked))


@app.command()
def worksheet(
    problem: ProblemName,
    format: Annotated[str | None, typer.Option("--format", "-f", help="markdown, latex, html or yaml.")] = None,
    part: Annotated[str, typer.Option(help="sheet, key or both.")] = "both",
    digits: Digits = 4,
    output: Output = None,
) -> None:
    """A problem with empty matrices to fill in, and its key. As yaml it is an answer file for `regard check`."""
    from regard.worked import read_problem, solve
    from regard.worked.worksheet import FORMATS, PARTS
    from regard.worked.worksheet import worksheet as sheet
    from regard.worked.writing import chosen, one_of, write

    form = chosen(format, output, FORMATS)
    write(sheet(solve(read_problem(problem)), form, part=one_of("part", part, PARTS), digits=digits), output)


@app.command("new-problem")
def new_problem(
    path: Annotated[str, typer.Argument(metavar="FILE", help="Where to write it.")] = "problem.yaml",
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a problem with comments, to start one of your own from."""
    from regard.worked.template import write_template

    write_template(path, replace=force)
    typer.echo(f"{path} is written; try: regard work {path}")
