"""`regard explain`: how one output came about."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import app
from regard.cli.opening import Device, Threads, opened
from regard.cli.translate import search_settings


@app.command()
def explain(
    model: Annotated[str, typer.Argument(help="The model's folder.")],
    text: Annotated[str, typer.Argument(help="One sentence.")],
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
    device: Device = "cpu",
    threads: Threads = None,
) -> None:
    """Show how one output came about: where it looked, what else was likely, and the arithmetic of any step."""
    import shutil

    from regard.evaluation.pictures.terminal import heat
    from regard.pipeline.explaining import explain as explained
    from regard.pipeline.explaining import lines

    loaded = opened(model, device, threads)
    told = explained(loaded, text, to=to, settings=search_settings(None, beam=beam), candidates=candidates)
    print(f"{told.result.source}\n{told.result.text}\n\nlog-probability {told.result.log_prob:.3f}, ", end="")
    print(f"score {told.result.score:.3f}\n\n{lines(told)}")
    if told.result.attention is not None:
        weights, rows, columns = told.result.attention.of_words(layer, head)
        print(f"\n{heat(weights, rows, columns, width=shutil.get_terminal_size().columns)}")
        if picture is not None:
            from regard.cli.plot import drawn
            from regard.evaluation.pictures.heat import alignment

            drawn(lambda: alignment(weights, rows, columns, title=told.result.text), picture)
    if step is not None and html is None:
        print(f"\n{told.derivation(step - 1).text(only=only)}")
    if html is not None:
        from regard.support.atomic import write_text

        number = step or 1
        title = f"Step {number} of {told.result.source} → {told.result.text}"
        write_text(html, told.derivation(number - 1).html(title))
        print(f"\npage: {html}")
