"""`regard serve`: a translator behind HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import app


@app.command()
def serve(
    model: Annotated[
        Path | None, typer.Argument(help="A model's folder; none: the one that comes with regard.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 is all of them.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of that address; 0 is any that is free.")] = 5000,
    engine: Annotated[str, typer.Option(help="auto, pytorch or ctranslate2.")] = "auto",
    numbers: Annotated[str, typer.Option(help="For ctranslate2: int8, float16 or float32.")] = "int8",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the CPU; all cores otherwise.")] = None,
    keys: Annotated[Path | None, typer.Option(help="A file of API keys, one a line; a request needs one then.")] = None,
    origin: Annotated[
        list[str] | None, typer.Option(help="A page elsewhere that may ask (CORS); may be repeated.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any limit: --set characters=2000 (see docs/serving.md).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Serve a translator: the interface of LibreTranslate, explanations, and a page for people."""
    from regard.builtin import translator
    from regard.config import settings_from
    from regard.serving.settings import ServerSettings
    from regard.serving.starting import free_port, opened, read_keys
    from regard.serving.starting import serve as listen
    from regard.support.errors import Misuse

    folder = model or translator()
    if folder is None:
        raise Misuse("name a model's folder: this build of regard comes without a translator")
    given = {"api_keys": read_keys(keys), "origins": tuple(origin or ())}
    settings = settings_from(
        {name: value for name, value in given.items() if value}, ServerSettings, set_ or (), name="server"
    )
    found = opened(folder, engine, numbers, threads)
    port = free_port(host, port)
    if not quiet:
        own = "" if model is not None else "the translator that comes with regard, by "
        shown = f"[{host}]" if ":" in host else host
        typer.echo(f"regard: {own}{found.said}\nregard: http://{shown}:{port}  (Ctrl-C stops)")
    listen(found, settings, host, port)
