"""`regard explain`: how one output came about."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import app
from regard.cli.opening import Device, Threads, as_asked, check_outputs, opened
from regard.cli.translate import Settings, search_settings


@app.command()
def explain(
    model: Annotated[str, typer.Argument(help="The model's folder.")],
    text: Annotated[str, typer.Argument(help="One sentence; for captions the name of an image file.")],
    to: Annotated[str | None, typer.Option(help="The language, where the model knows several.")] = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy search.")] = None,
    candidates: Annotated[int, typer.Option(min=1, help="How many of the likeliest tokens to tell at each step.")] = 5,
    step: Annotated[
        int | None, typer.Option(min=1, help="Work out this step: its derivation, number by number.")
    ] = None,
    only: Annotated[str | None, typer.Option(help="Of the derivation only some steps: 'A, p'.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the derivation of the step as a page: every number opens.")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the alignment: a PNG or SVG file.")] = None,
    layer: Annotated[int | None, typer.Option(help="Of the alignment; all of them otherwise, averaged.")] = None,
    head: Annotated[int | None, typer.Option(help="Of the alignment; all of them otherwise, averaged.")] = None,
    font: Annotated[
        list[Path] | None, typer.Option(help="A font file for a script that no font here has; may be repeated.")
    ] = None,
    settings: Settings = None,
    device: Device = "cpu",
    threads: Threads = None,
) -> None:
    """Show how one output came about: where it looked, what else was likely, and the arithmetic of any step."""
    import shutil
    import sys

    from regard.evaluation.pictures.terminal import heat
    from regard.pipeline.explaining_answers import explain_any

    check_outputs(html, picture=picture)
    loaded = opened(model, device, threads)
    search = search_settings(settings, beam=beam)
    told = explain_any(loaded, text, to=to, settings=search, candidates=candidates)
    with as_asked():
        look = told.look(layer, head)
    columns = shutil.get_terminal_size().columns
    print(told.lines(columns if sys.stdout.isatty() else None))
    if look is not None:
        print(f"\n{heat(*look, width=columns)}")
    if picture is not None:
        from regard.cli.plot import drawn

        drawn(lambda: told.picture(layer, head), picture, font)
    if step is not None and html is None:
        with as_asked():
            print(f"\n{told.derivation(step - 1).text(only=only)}")
    if html is not None:
        from regard.support.atomic import write_text

        number = (step or 1) - 1
        write_text(html, told.derivation(number).html(told.title(number)))
        print(f"\npage: {html}")
