"""`regard train`: one command from corpus to model folder."""

from typing import Annotated

import typer

from regard.cli.app import app


@app.command()
def train(
    config: Annotated[str, typer.Argument(help="A YAML file, or the name of a configuration that comes with regard.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting: path.to.key=value. May be given many times.")
    ] = None,
    output: Annotated[str | None, typer.Option(help="The model folder; the same as --set output=….")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps or auto.")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything that is drawn.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew, whatever is in the output folder.")] = False,
    anyway: Annotated[
        bool,
        typer.Option("--anyway", help="Go on from a checkpoint though settings differ from those it was made with."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Tell nothing but errors.")] = False,
) -> None:
    """Train a model: from the corpora a configuration names to a model folder.

    A run that was stopped or killed goes on where it was when the same command is given again.
    """
    from regard.training.progressing import Stopped
    from regard.training.running import train as run
    from regard.training.shipped import found

    named = {"output": output, "device": device, "threads": threads, "seed": seed}
    overrides = [*(set_ or []), *(f"{key}={value}" for key, value in named.items() if value is not None)]
    try:
        run(found(config), overrides, quiet=quiet, fresh=fresh, anyway=anyway)
    except Stopped as stopped:
        typer.echo(f"regard: {stopped}", err=True)
        raise typer.Exit(128 + stopped.signal_number) from None
