"""`regard plot …`: pictures of what models look at."""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.app import app
from regard.cli.opening import Threads, as_asked, opened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

plots = typer.Typer(
    help="Pictures of what models look at.", no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
)
app.add_typer(plots, name="plot")

Folder = Annotated[str, typer.Argument(help="The model's folder.")]
Out = Annotated[Path, typer.Option("--output", "-o", help="A PNG, SVG or PDF file.")]
To = Annotated[str | None, typer.Option(help="The language, where the model knows several.")]
Layer = Annotated[int | None, typer.Option(help="Which layer, from 1; -1 is the last.")]
Head = Annotated[int | None, typer.Option(help="Which head, from 1.")]
Font = Annotated[
    list[Path] | None, typer.Option(help="A font file for a script that no font here has; may be repeated.")
]


def drawn(make: Callable[[], "Figure"], path: Path, fonts: list[Path] | None = None) -> None:
    """Draw, save, and say in a line what the picture does not show as it should."""
    from regard.evaluation.pictures import saved
    from regard.evaluation.pictures.fonts import PictureWarning, add

    for each in fonts or []:
        add(each)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PictureWarning)
        saved(make(), path)
    for said in dict.fromkeys(str(each.message) for each in caught if each.category is PictureWarning):
        print(f"regard: {path}: {said}", file=sys.stderr)
    print(f"picture: {path}")


@plots.command()
def alignment(
    model: Folder,
    text: Annotated[str, typer.Argument(help="One sentence.")],
    output: Out = Path("alignment.png"),
    to: To = None,
    layer: Layer = None,
    head: Head = None,
    every: Annotated[bool, typer.Option("--every-head", help="A map for each head (of the layer, or of all).")] = False,
    font: Font = None,
    threads: Threads = None,
) -> None:
    """Where the words of an output looked in the source."""
    from regard.evaluation.pictures import heat
    from regard.support.errors import Misuse

    loaded = opened(model, threads=threads)
    if loaded.task not in ("translate", "reconstruct"):
        raise Misuse(f"this model was built to {loaded.task}: regard explain --picture draws where it looked")
    [result] = loaded.translate([text], to=to, attention=True, cut="never")
    attention = result.attention
    if attention is None:
        raise Misuse("there are no words in the text")
    with as_asked():
        stacked, names, rows, columns = attention.every_head(layer)
        weights, _, _ = attention.of_words(layer, head)
    if every:
        across = heat.across(len(stacked), attention.heads)
        drawn(
            lambda: heat.grid(stacked, rows, columns, names=names, title=result.text, across=across), output, font
        )  # fmt: skip
        return
    drawn(lambda: heat.alignment(weights, rows, columns, title=result.text), output, font)


@plots.command()
def heads(
    model: Folder,
    text: Annotated[str, typer.Argument(help="One sentence.")],
    output: Out = Path("heads.png"),
    to: To = None,
    layer: Layer = None,
    word: Annotated[str | None, typer.Option(help="Tell where this word looks, head by head.")] = None,
    font: Font = None,
    threads: Threads = None,
) -> None:
    """Self-attention in the encoder, a map for each head: which head joins which words."""
    from regard.evaluation.pictures import heat
    from regard.pipeline.looking import inside, joined_by, joined_most

    loaded = opened(model, threads=threads)
    attention = inside(loaded, text, to).attention
    with as_asked():
        stacked, names, rows, columns = attention.every_head(layer)
    across = heat.across(len(stacked), attention.heads)
    drawn(lambda: heat.grid(stacked, rows, columns, names=names, title=text, across=across), output, font)
    if word is not None:
        print("\n".join([*joined_by(attention, word), "", *joined_most(attention, word)]))


@plots.command()
def words(
    sentences: Annotated[
        list[str], typer.Argument(help="Two sentences or more: 'money bank grows' 'river bank flows'.")
    ],
    vectors: Annotated[
        Path | None, typer.Option(help="Static vectors: lines of a word and its numbers (GloVe).")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Or a trained model: before and after its encoder.")
    ] = None,
    attention: Annotated[bool, typer.Option(help="Without weights, between static vectors; or none at all.")] = True,
    output: Out = Path("words.png"),
    to: To = None,
    title: Annotated[str, typer.Option(help="Over the picture.")] = "",
    font: Font = None,
    threads: Threads = None,
) -> None:
    """Words in two dimensions before and after attention: each is drawn towards those it has to do with."""
    from regard.evaluation.gravity import bare, pulled
    from regard.evaluation.pictures.moving import moved
    from regard.support.errors import Misuse

    if (vectors is None) == (model is None):
        raise Misuse("words: name a file of --vectors, or a --model; one of the two")
    if model is not None:
        from regard.pipeline.looking import moved_by

        found = moved_by(opened(model, threads=threads), sentences, to)
    else:
        from regard.text.vectors.vectors import Vectors

        split = [each.split() for each in sentences]
        known = Vectors.read(str(vectors), {word for each in split for word in each})
        found = (pulled if attention else bare)(split, known)
    drawn(lambda: moved(found, title=title, note="" if model is None else "every vector at length 1"), output, font)


@plots.command()
def image(
    model: Folder,
    file: Annotated[Path, typer.Argument(help="A PNG file.")],
    output: Out = Path("looked.png"),
    threads: Threads = None,
) -> None:
    """Where the words of a caption looked in its image."""
    from regard.evaluation.pictures.images import looked
    from regard.pipeline.looking import captioned

    picture, maps, said = captioned(opened(model, threads=threads), file)
    drawn(lambda: looked(picture, maps, said), output)


@plots.command()
def loss(
    models: Annotated[list[str], typer.Argument(help="The folders of one model or several, as training left them.")],
    figure: Annotated[str, typer.Option(help="loss, perplexity, bleu, … : whatever was written down.")] = "loss",
    output: Out = Path("loss.png"),
    title: Annotated[str, typer.Option(help="Over the picture.")] = "",
    font: Font = None,
) -> None:
    """How models learned: their losses, or another figure, over the steps of training, in one picture."""
    from regard.evaluation.pictures.curves import over_steps
    from regard.pipeline.learning import curves

    found = curves(models, figure)
    unit = "loss a token (nats)" if figure == "loss" else figure
    drawn(lambda: over_steps(found, title=title, unit=unit), output, font)
