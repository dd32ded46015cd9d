"""`regard translate` and `regard predict`: lines in, results out."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.app import app
from regard.cli.opening import (
    Device,
    Engine,
    Ensemble,
    Map,
    Model,
    Precision,
    Quiet,
    Threads,
    made_of,
    marked,
    opened,
    translator,
)

if TYPE_CHECKING:
    from regard.decoding.settings import SearchSettings
    from regard.decoding.vocabulary_map import VocabularyMap
    from regard.pipeline.fast.engine import Fast
    from regard.pipeline.model import Pipeline
    from regard.pipeline.writing import Answer

Texts = Annotated[list[str] | None, typer.Argument(metavar="[TEXT…]", help="Texts; none: see --input.")]
Input = Annotated[Path | None, typer.Option("--input", "-i", help="A file of one text a line; none: standard input.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="A file for the results; none: standard output. After a stop it is gone on with."
    ),
]
Form = Annotated[str, typer.Option("--format", "-f", help="text, json or tsv.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin an --output again that was stopped half way.")]
Beam = Annotated[int | None, typer.Option(help="Hypotheses kept for a text; 1 is greedy search.")]
Best = Annotated[int | None, typer.Option("--nbest", help="Results for each text.")]
Sample = Annotated[bool, typer.Option("--sample", help="Draw by probability instead of searching.")]
Temperature = Annotated[float | None, typer.Option(help="Of sampling.")]
Seed = Annotated[int | None, typer.Option(help="Of sampling.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Anything else about the search: --set no_repeat=3 (see docs/decoding.md)."),
]


@app.command()
def translate(
    texts: Texts = None,
    model: Model = None,
    ensemble: Ensemble = None,
    to: Annotated[str | None, typer.Option(help="The language, where the model knows several.")] = None,
    beam: Beam = None,
    nbest: Best = None,
    input: Input = None,
    output: Output = None,
    format: Form = "text",
    alignment: Annotated[bool, typer.Option("--alignment", help="Where each word looked (json, tsv).")] = False,
    sample: Sample = False,
    temperature: Temperature = None,
    seed: Seed = None,
    prefix: Annotated[str, typer.Option(help="What every result begins with.")] = "",
    forbid: Annotated[list[str] | None, typer.Option(help="A word that is not said; may be repeated.")] = None,
    vocabulary_map: Map = None,
    cut: Annotated[str, typer.Option(help="At the ends of sentences: long (texts), always, never.")] = "long",
    settings: Settings = None,
    fresh: Fresh = False,
    engine: Engine = "auto",
    device: Device = "cpu",
    precision: Precision = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Translate texts, a file, or standard input, line by line."""
    from regard.pipeline.fast.engine import unable
    from regard.pipeline.sources import CUTS

    _one_of("--cut", cut, CUTS)
    search = search_settings(
        settings, beam=beam, nbest=nbest, sample=sample or None, temperature=temperature, seed=seed
    )  # fmt: skip
    only = unable(search, alignment) or ("--vocabulary-map" if vocabulary_map is not None else None)
    loaded = translator(model, device, threads, precision, ensemble, engine=engine, pytorch=only, few=bool(texts))
    # An engine that gives the scores of single tokens only when asked is asked where they are written.
    more: dict[str, Any] = {"token_scores": True} if format == "json" and not hasattr(loaded, "model") else {}
    if vocabulary_map is not None:
        more["vocabulary_map"] = read_map_for(loaded, vocabulary_map)
    asked: dict[str, Any] = {"to": to, "cut": cut, "prefix": prefix, "forbidden": forbid or []}
    loaded.translate([], to=to)  # a language that it does not know is told before anything is read

    def answers(group: Sequence[str]) -> Sequence[Any]:
        return loaded.translate(group, settings=search, attention=alignment, keep_problems=True, **asked, **more)

    facts = made_of(
        loaded,
        input,
        search=search.model_dump(mode="json"),
        format=format,
        alignment=alignment,
        precision=precision,
        engine="pytorch" if hasattr(loaded, "model") else "ctranslate2",
        beside=[marked(Path(each)) for each in (*(ensemble or ()), *filter(None, [vocabulary_map]))],
        **asked,
    )
    _run(answers, "translating", texts, input, output, format, facts, search.nbest, alignment, fresh, quiet)


@app.command()
def predict(
    texts: Texts = None,
    model: Model = None,
    ensemble: Ensemble = None,
    beam: Beam = None,
    nbest: Best = None,
    input: Input = None,
    output: Output = None,
    format: Form = "text",
    alignment: Annotated[
        bool, typer.Option("--alignment", help="Where each word looked, or what it counted for a label (json).")
    ] = False,
    sample: Sample = False,
    temperature: Temperature = None,
    seed: Seed = None,
    tokenized: Annotated[
        bool, typer.Option("--tokenized", help="For tags: words are what stands between spaces.")
    ] = False,
    settings: Settings = None,
    fresh: Fresh = False,
    device: Device = "cpu",
    precision: Precision = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Ask a model what its task is: tags, a label, a caption (lines are names of image files), a text that goes on."""
    search = search_settings(
        settings, beam=beam, nbest=nbest, sample=sample or None, temperature=temperature, seed=seed
    )  # fmt: skip
    loaded = opened(model, device, threads, precision, ensemble)

    def answers(group: Sequence[str]) -> Sequence[Any]:
        inputs: Sequence[Any] = [line.split() for line in group] if tokenized and loaded.task == "tag" else group
        return loaded.predict(inputs, settings=search, attention=alignment, keep_problems=True)

    facts = made_of(
        loaded,
        input,
        search=search.model_dump(mode="json"),
        format=format,
        alignment=alignment,
        tokenized=tokenized,
        precision=precision,
        beside=[marked(Path(each)) for each in ensemble or ()],
    )
    _run(answers, "predicting", texts, input, output, format, facts, search.nbest, alignment, fresh, quiet)


def read_map_for(loaded: "Pipeline | Fast", path: Path) -> "VocabularyMap":
    from regard.pipeline.mapping import read_map
    from regard.support.errors import Misuse

    if not hasattr(loaded, "model"):
        raise Misuse("--vocabulary-map: a model that was exported for CTranslate2 takes none; name its model folder")
    return read_map(path, loaded.tokenizers)


def search_settings(overrides: list[str] | None, **given: Any) -> "SearchSettings":
    from regard.config import settings_from
    from regard.decoding.settings import SearchSettings

    values = {name: value for name, value in given.items() if value is not None}
    if "nbest" in values and "beam" not in values and "sample" not in values:
        values["beam"] = max(values["nbest"], SearchSettings().beam)
    return settings_from(values, SearchSettings, overrides or (), name="search")


def _run(
    answers: Callable[[Sequence[str]], Sequence["Answer"]],
    what: str,
    texts: list[str] | None,
    input: Path | None,
    output: Path | None,
    format: str,
    facts: Mapping[str, Any],
    nbest: int,
    alignment: bool,
    fresh: bool,
    quiet: bool,
) -> None:
    from regard.pipeline.lines import reader, writer
    from regard.pipeline.running import run
    from regard.pipeline.writing import FORMATS, written

    _one_of("--format", format, FORMATS)
    with writer(output, facts, fresh=fresh) as to:
        run(
            answers, reader(texts or [], input), to,
            lambda answer, number: written(answer, number, format, nbest=nbest, alignment=alignment),  # type: ignore[arg-type]
            what=what, quiet=quiet or (input is None and output is None),
        )  # fmt: skip


def _one_of(option: str, value: str, known: Sequence[str]) -> None:
    from regard.support.errors import Misuse
    from regard.support.nearest import unknown

    if value not in known:
        raise Misuse(f"{option}: {unknown('choice', value, known)}")
