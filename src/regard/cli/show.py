"""`regard show MODEL`: the network of a model folder as a table."""

from typing import Annotated

import typer

from regard.cli.app import app


@app.command()
def show(
    model: Annotated[str, typer.Argument(help="A model folder.")],
    places: Annotated[
        int, typer.Option(min=1, help="Places of the source and of the target with which multiply-adds are counted.")
    ] = 20,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Print a network as a table: parts, shapes, parameters, memory, multiply-adds a token."""
    from dataclasses import asdict
    from json import dumps

    from regard.models.folder import load_folder
    from regard.models.showing import shown, table

    loaded = load_folder(model)
    found, kind = shown(loaded.model, places), getattr(loaded.model.settings, "kind", "unknown")
    if json:
        typer.echo(dumps({"task": loaded.task, "kind": kind, **asdict(found)}, indent=2))
        return
    typer.echo(f"{model}: {loaded.task}, a network of the kind {kind}\n\n{table(found)}")
