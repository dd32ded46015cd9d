"""`regard prepare`: from the corpora that a configuration names to shards, tokenizers and a report of it all."""

from typing import Annotated

import typer

from regard.cli.app import app


@app.command()
def prepare(
    config: Annotated[str, typer.Argument(help="A YAML file, or the name of a configuration that comes with regard.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting: path.to.key=value. May be given many times.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(help="The folder; without it data.folder, or `data` inside the configuration's output."),
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Processes that write shards; one a core.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the dev split and of the tokenizer's sample.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no report.")] = False,
) -> None:
    """Read, check and clean the corpora of a configuration, learn the tokenizer, and write what training reads.

    Killed at any instant, the same command goes on where it was. Done twice with nothing changed, it does nothing.
    """
    import json
    from pathlib import Path

    from regard.config import read_config
    from regard.data.preparing import prepare as run
    from regard.support.errors import Misuse
    from regard.training.config import Config
    from regard.training.shipped import found

    changes = [*(set_ or []), *([] if seed is None else [f"data.seed={seed}"])]
    if output is not None:  # a configuration of corpora alone need not name the folder of a model
        changes.append(f"output={json.dumps(output)}")
    settings = read_config(found(config), Config, changes)
    if settings.data is None:
        raise Misuse(f"{config}: names prepared data ({settings.prepared}) and no corpora to prepare")
    folder = output or settings.data.folder or str(Path(settings.output) / "data")
    prepared = run(settings.data, folder, processes=processes, quiet=quiet)
    if not quiet:
        typer.echo(f"{folder}: {'prepared' if prepared.fresh else 'nothing changed, nothing to do'}\n{prepared.report}")
