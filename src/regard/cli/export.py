"""`regard export`: a model in the form of another engine."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import app


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A model's folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    to: Annotated[
        str, typer.Option(help="The engine: ctranslate2; or regard: a model folder again, in other numbers.")
    ] = "ctranslate2",
    numbers: Annotated[
        str, typer.Option(help="float32 (the same text), float16 (half as large), int8 (a quarter, faster).")
    ] = "float32",
) -> None:
    """Write a Transformer as CTranslate2 loads it, or any model in fewer bits; every command takes such a folder."""
    from regard.support.errors import Misuse
    from regard.support.nearest import unknown

    if to == "regard":
        from regard.models.folder import rewritten

        rewritten(model, output, numbers)  # type: ignore[arg-type] # which is checked there
    elif to == "ctranslate2":
        from regard.pipeline.fast.export import export_folder

        export_folder(model, output, numbers)  # type: ignore[arg-type] # which is checked there
    else:
        raise Misuse(unknown("engine", to, ["ctranslate2", "regard"]))
    print(f"{output}: written in {numbers}, for {'CTranslate2' if to == 'ctranslate2' else 'regard'}")
