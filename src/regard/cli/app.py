"""The command's root: its name, its help, its version. The files beside it hang their commands on `app`."""

from typing import Annotated

import typer

from regard.version import __version__

app = typer.Typer(
    name="regard",
    help="Sequence-to-sequence models with attention, and the arithmetic of every number in them.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"regard {__version__}")
        raise typer.Exit


@app.callback()
def _regard(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and leave.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Sequence-to-sequence models with attention, and the arithmetic of every number in them."""
