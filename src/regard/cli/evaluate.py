"""`regard evaluate` and `regard compare`: how good models are, and whether one is better than another."""

from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from regard.cli.app import app
from regard.cli.opening import Device, Ensemble, Quiet, Threads, check_outputs, opened
from regard.cli.translate import search_settings

if TYPE_CHECKING:
    from regard.decoding.settings import SearchSettings
    from regard.evaluation.assessment import Assessment
    from regard.evaluation.reading import Examples
    from regard.pipeline.model import Pipeline

Data = Annotated[
    list[str] | None,
    typer.Argument(
        help="One file of sources and references (TSV, CoNLL-U, …), or a file of sources and files of references."
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option("--measure", help="bleu, chrf, ter, exact, wer, cer, whole; accuracy, f1, spans. May be repeated."),
]
To = Annotated[str | None, typer.Option(help="The language, where the model knows several.")]
Beam = Annotated[int | None, typer.Option(help="Hypotheses kept for a text; 1 is greedy search.")]
Lowercase = Annotated[bool, typer.Option("--lowercase", help="Capitals do not count.")]
Tokenize = Annotated[str | None, typer.Option(help="sacreBLEU's tokenizer for BLEU: 13a, zh, ja-mecab, char, none, …")]
Group = Annotated[bool, typer.Option("--group", help="Each source once, with all its references.")]
First = Annotated[int | None, typer.Option(min=1, help="Only so many, from the beginning.")]
Report = Annotated[Path | None, typer.Option(help="Write one HTML file with all of it, which needs no network.")]
Plot = Annotated[Path | None, typer.Option(help="Draw the scores by length: a PNG, SVG or PDF file.")]
Perplexity = Annotated[bool, typer.Option("--perplexity", help="Also the perplexity of the references.")]
Json = Annotated[Path | None, typer.Option(help="Write the figures as JSON.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="Anything else about the search: --set no_repeat=3.")]


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="The model's folder.")],
    data: Data = None,
    ensemble: Ensemble = None,
    to: To = None,
    beam: Beam = None,
    measure: Measures = None,
    lowercase: Lowercase = False,
    tokenize: Tokenize = None,
    group: Group = False,
    first: First = None,
    perplexity: Perplexity = False,
    worst: Annotated[int, typer.Option(min=0, help="How many of the worst outputs to show.")] = 3,
    report: Report = None,
    plot: Plot = None,
    json: Json = None,
    settings: Settings = None,
    device: Device = "cpu",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Score a model: by its measures, by length, with what lies behind a low score."""
    from regard.evaluation import tables

    check_outputs(report, json, picture=plot)
    how = _How(to, search_settings(settings, beam=beam), measure or [], lowercase, tokenize, perplexity, quiet)
    examples = _examples(data or [], first, group)
    asked = opened(model, device, threads, ensemble=ensemble)
    how.check(asked, examples)
    found = how.assess(asked, examples, Path(model).resolve().name)
    print(f"{found.model} on {examples.name}, {len(examples):,} examples\n\n{tables.scores(found)}\n")
    print(tables.lengths([found]))
    if found.by_label:
        print(f"\n{tables.labels(found)}\n\n{tables.confusion(found, width=get_terminal_size().columns)}")
    if found.diagnostics:
        print(f"\n{tables.diagnostics(found)}" + (f"\n\n{tables.worst(found, worst)}" if worst else ""))
    _written([found], report, plot, json, {} if report is None else {found.model: asked}, to)


@app.command()
def compare(
    models: Annotated[list[str], typer.Argument(help="The folders of two models or more; the first is the baseline.")],
    data: Annotated[list[str], typer.Option("--data", help="As for evaluate; repeat it for files of references.")],
    to: To = None,
    beam: Beam = None,
    measure: Measures = None,
    lowercase: Lowercase = False,
    tokenize: Tokenize = None,
    group: Group = False,
    first: First = None,
    perplexity: Perplexity = False,
    report: Report = None,
    plot: Plot = None,
    json: Json = None,
    settings: Settings = None,
    device: Device = "cpu",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Several models on the same data: scores, whether they differ, and by length."""
    from regard.evaluation import tables
    from regard.evaluation.assessment import compared
    from regard.support.errors import Misuse

    if len(models) < 2:
        raise Misuse(f"compare: expected two models or more; got {len(models)} (regard evaluate takes one)")
    check_outputs(report, json, picture=plot)
    how = _How(to, search_settings(settings, beam=beam), measure or [], lowercase, tokenize, perplexity, quiet)
    examples = _examples(data, first, group)
    loaded = {name: opened(model, device, threads) for name, model in zip(_names(models), models, strict=True)}
    for each in loaded.values():
        how.check(each, examples)
    found = [how.assess(each, examples, name) for name, each in loaded.items()]
    print(f"{len(examples):,} examples of {examples.name}\n")
    told = [tables.comparison([each.model for each in found], compared(found)), tables.further(found)]
    print("\n\n".join(filter(None, [*told, tables.lengths(found)])))
    _written(found, report, plot, json, loaded if report else {}, to)


class _How(NamedTuple):
    """How models are asked and scored."""

    to: str | None
    search: "SearchSettings"
    measures: list[str]
    lowercase: bool
    tokenize: str | None
    perplexity: bool
    quiet: bool

    def check(self, model: "Pipeline", examples: "Examples") -> None:
        """That the model can be measured so, before any is asked."""
        from regard.evaluation.measures import Options
        from regard.pipeline.scoring import check

        Options(self.lowercase, self.tokenize)
        check(model, examples, self.measures, self.perplexity)

    def assess(self, model: "Pipeline", examples: "Examples", name: str) -> "Assessment":
        from regard.evaluation.measures import Options
        from regard.pipeline.scoring import evaluate as score

        return score(
            model, examples, name=name, to=self.to, search=self.search, measures=self.measures,
            options=Options(self.lowercase, self.tokenize), with_perplexity=self.perplexity, quiet=self.quiet,
        )  # fmt: skip


def _examples(data: list[str], first: int | None, group: bool) -> "Examples":
    from regard.evaluation.reading import read_examples

    examples = read_examples(data).first(first)
    return examples.grouped() if group else examples


def _names(models: list[str]) -> list[str]:
    """The last part of each folder's path, or as much of it as tells them apart."""
    names = [Path(model).resolve().name for model in models]
    return names if len(set(names)) == len(names) else [f"{number}:{name}" for number, name in enumerate(names, 1)]


def _written(
    found: list["Assessment"],
    report: Path | None,
    plot: Path | None,
    json: Path | None,
    models: dict[str, "Pipeline"],
    to: str | None,
) -> None:
    """All that is to be written of what was found."""
    from regard.support.atomic import write_text

    if plot is not None:
        from regard.cli.plot import drawn
        from regard.evaluation.pictures.curves import by_length

        drawn(lambda: by_length(found), plot)

    if json is not None:
        from json import dumps

        from regard.evaluation.records import record

        write_text(json, dumps([record(each) for each in found], indent=2, ensure_ascii=False) + "\n")
    if report is not None:
        from regard.evaluation.report import page
        from regard.pipeline.samples import samples

        shown = {name: samples(model, found[0].examples, to) for name, model in models.items()}
        write_text(report, page(found, shown))
        print(f"\nreport: {report}")
