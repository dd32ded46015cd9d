"""The command `regard`: one short function a command, with no logic of its own."""

import sys
from typing import Annotated

import typer

from regard.support.errors import Failure, Misuse
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


def main(arguments: list[str] | None = None) -> None:
    """Run the command; a misuse ends with one plain line and status 2, a failure with status 1."""
    try:
        app(arguments)
    except (Misuse, Failure, OSError) as error:
        print(f"regard: {_in_words(error)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, Misuse) else 1)


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or 'cannot be used').lower()}"
    return str(error)
