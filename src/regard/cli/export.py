"""`regard export`: a model in the form of another engine."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import app


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A model's folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    to: Annotated[str, typer.Option(help="The engine: ctranslate2.")] = "ctranslate2",
    numbers: Annotated[str, typer.Option(help="float32 (the same text), float16, int8 (smaller, faster).")] = "float32",
) -> None:
    """Write a Transformer as CTranslate2 loads it; `regard translate --model` and `regard serve` take that folder."""
    from regard.pipeline.fast.export import export_folder
    from regard.support.errors import Misuse
    from regard.support.nearest import unknown

    if to != "ctranslate2":
        raise Misuse(unknown("engine", to, ["ctranslate2"]))
    export_folder(model, output, numbers)  # type: ignore[arg-type] # which is checked there
    print(f"{output}: written in {numbers}, for CTranslate2")
