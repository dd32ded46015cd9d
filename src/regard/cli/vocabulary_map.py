"""`regard vocabulary-map`: which target tokens a source may become, learned from sentence pairs."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import app


@app.command()
def vocabulary_map(
    model: Annotated[str, typer.Argument(help="The model's folder.")],
    data: Annotated[
        list[str], typer.Argument(help="Sentence pairs: one file (TSV, …), or a file of sources and one of targets.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("vocabulary-map.npz"),
    each: Annotated[int, typer.Option(min=1, help="So many target tokens for each source token.")] = 30,
    common: Annotated[int, typer.Option(min=0, help="So many of the commonest are always there.")] = 100,
) -> None:
    """Learn a target vocabulary map, with which `regard translate --vocabulary-map` is quicker."""
    from regard.evaluation.reading import read_examples
    from regard.pipeline.mapping import learned, tokenizers_of
    from regard.support.errors import Misuse

    tokenizers = tokenizers_of(model)
    pairs = read_examples(data)
    if pairs.kind != "text":
        raise Misuse(f"{pairs.name}: expected sentence pairs; it holds {pairs.kind}")
    found = learned(tokenizers, pairs.sources, [several[0] for several in pairs.references], each=each, common=common)
    found.save(output)
    print(f"{output}: from {len(pairs):,} pairs; of {tokenizers['target'].vocabulary:,} target tokens "
          f"{len(found.always):,} are always there, and up to {each} for each source token")  # fmt: skip
