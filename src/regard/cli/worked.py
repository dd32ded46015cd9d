"""`regard problems`, `work`, `check`: worked problems."""

from typing import Annotated

import typer

from regard.cli.app import app

ProblemName = Annotated[str, typer.Argument(metavar="PROBLEM", help="A problem file, or the name of a shipped one.")]


@app.command()
def problems() -> None:
    """List the worked problems that come with regard."""
    from regard.worked import read_problem
    from regard.worked.shipped import shipped

    names = shipped()
    width = max(map(len, names), default=0)
    for name, path in names.items():
        typer.echo(f"{name:{width}}  {read_problem(path).title}")


@app.command()
def work(problem: ProblemName) -> None:
    """Work a problem step by step."""
    from regard.worked import page, read_problem, solve

    typer.echo(page.text(solve(read_problem(problem))))


@app.command()
def check(problem: ProblemName) -> None:
    """Mark an answer worked by hand."""
    from regard.worked import read_problem
    from regard.worked.marking import mark

    marks = mark(read_problem(problem))
    for step in marks.steps:
        typer.echo(f"{step.name}: {step.verdict}")
    raise typer.Exit(1 if marks.first_wrong else 0)
