"""One HTML file with everything that was found out: no network, no script, light or dark as the system is."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from numpy.typing import NDArray

from regard.evaluation.assessment import Assessment, compared
from regard.evaluation.pictures.curves import by_length
from regard.evaluation.scores import Score
from regard.evaluation.tables import label_rows, number
from regard.version import __version__

Row = Sequence[str]
WIDE = 12
"""A heat map of more columns than this takes the whole width of the page."""


@dataclass(frozen=True)
class Shown:
    """One output to look at, and where its words looked."""

    source: str
    output: str
    reference: str
    score: float
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    weights: NDArray[Any] | None = None
    """[rows, columns] between words, averaged over layers and heads."""
    tags: tuple[tuple[str, str, str], ...] = ()
    """Instead of texts: words, what each was told to be, and what it is."""
    picture: bytes = b""
    """A PNG, such as that of an image and where a caption looked in it."""


STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --soft: #666; --line: #ddd; --page: #fff; --well: #f5f5f3;
  --wrong: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e6; --soft: #a5a5a2; --line: #3a3a3c; --page: #18181a; --well: #232326;
    --wrong: #ff8a80; }
  figure.curve { background: #fff; width: fit-content; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .25rem .8rem .25rem 0; text-align: left; vertical-align: top; }
th { font-weight: 600; } tbody tr { border-top: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
code, .soft { color: var(--soft); font-size: .85rem; } figure { margin: 1rem 0; }
figure svg { max-width: 100%; height: auto; }
.heat td, .heat th { padding: .15rem .3rem; text-align: center; font-size: .85rem; border: 0; }
.heat tbody tr { border: 0; } .heat tbody th { text-align: right; white-space: nowrap; font-weight: 400; }
.heat thead th { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; font-weight: 400; }
.heat td { min-width: 1.9rem; font-variant-numeric: tabular-nums; }
.heat thead th { padding: .5rem .3rem .1rem; }
.samples { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr)); gap: 1rem 2rem; }
.samples article { background: var(--well); border-radius: .5rem; padding: .2rem 1rem; min-width: 0; }
.samples article.wide { grid-column: 1 / -1; }
.samples img { max-width: 100%; background: #fff; border-radius: .25rem; }
.tags { display: flex; flex-wrap: wrap; gap: .3rem .9rem; margin: .6rem 0; }
.tags span { display: inline-grid; justify-items: center; } .tags small { color: var(--soft); font-size: .7rem; }
.tags .wrong small { color: var(--wrong); font-weight: 600; }
dl { display: grid; grid-template-columns: 5.5rem 1fr; gap: .1rem .6rem; margin: .6rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
details { margin: .6rem 0; } summary { cursor: pointer; }
"""


def page(found: Sequence[Assessment], shown: Mapping[str, Sequence[Shown]] | None = None) -> str:
    """The report on one model, or on several beside one another: all on the same examples."""
    names = ", ".join(each.model for each in found)
    data = found[0].examples
    parts = [
        f"<h1>{escape(names)}</h1><p>On {len(data):,} examples of <b>{escape(data.name)}</b>. "
        f'<span class="soft">regard {__version__}</span></p>',
        _section("Scores", _scores(found)),
        _section("Do they differ?", _differences(found)) if len(found) > 1 else "",
        _section("By length", _lengths(found)),
    ]
    for each in found:
        before = f"{each.model}: " if len(found) > 1 else ""
        parts += [_section(before + title, body) for title, body in _of_one(each, (shown or {}).get(each.model, ()))]
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(names)}</title>'
    scale = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    return f"{head}{scale}<style>{STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>\n"


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def table(head: Row, rows: Sequence[Row], numbers: Sequence[int] = ()) -> str:
    """numbers: columns that hold numbers."""

    def line(cells: Row, kind: str) -> str:
        return "".join(
            f"<{kind}{' class=n' if place in numbers else ''}>{escape(cell)}</{kind}>"
            for place, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{line(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _scores(found: Sequence[Assessment]) -> str:
    by_name: list[tuple[Score, ...]] = list(zip(*(each.scores for each in found), strict=True))
    rows = [(scores[0].name, *(number(score.value) for score in scores), scores[0].signature) for scores in by_name]
    return table(("", *(each.model for each in found), "signature"), rows, range(1, len(found) + 1))


def _differences(found: Sequence[Assessment]) -> str:
    rows = [
        (measure, each.model, number(result.score.value), f"{number(result.mean)} ± {number(result.interval)}",
         result.verdict(results[0], found[0].model))
        for measure, results in compared(found).items()
        for each, result in zip(found, results, strict=True)
    ]  # fmt: skip
    return table(("", "model", "score", "95 of 100 samples", ""), rows, (2, 3)) + (
        '<p class="soft">Paired bootstrap, 1,000 samples.</p>'
    )


def _lengths(found: Sequence[Assessment]) -> str:
    rows = [
        (each[0].name, f"{each[0].count:,}", *(number(one.score.value) if one.score else "–" for one in each))
        for each in zip(*(one.lengths for one in found), strict=True)
    ]
    head = ("words", "examples", *(each.model for each in found))
    return table(head, rows, range(1, len(head))) + f'<figure class="curve">{_svg(found)}</figure>'


def _svg(found: Sequence[Assessment]) -> str:
    """The curve as SVG, its letters as letters."""
    from regard.evaluation.pictures import drawn

    text = drawn(by_length(found, title=f"{found[0].scores[0].name} by length"), "svg").decode()
    return text[text.index("<svg") :]


def _of_one(found: Assessment, shown: Sequence[Shown]) -> list[tuple[str, str]]:
    return [
        ("Labels", _labels(found)),
        ("What lies behind it", _diagnostics(found)),
        (_title(shown), f'<div class="samples">{"".join(map(_shown, shown))}</div>' if shown else ""),
        ("Least like their references", _worst(found)),
        ("Settings", _settings(found)),
    ]


def _labels(found: Assessment) -> str:
    if not found.by_label:
        return ""
    names = list(map(str, found.by_label))
    counts = {(str(true), str(said)): count for (true, said), count in found.confusion.items()}
    confusion = [(true, *(str(counts.get((true, said), "")) for said in names)) for true in names]
    return (
        "".join(table(head, rows, range(1, 5)) for head, rows in label_rows(found))
        + "<h3>Truths (rows) and what was told (columns)</h3>"
        + table(("", *names), confusion, range(1, len(names) + 1))
    )


def _diagnostics(found: Assessment) -> str:
    told = found.diagnostics
    if told is None:
        return ""
    shares = (
        ("unknown tokens of sources", told.unknown), ("outputs with <unk>", told.unknown_outputs),
        ("copies of the source", told.copies), ("repeats", told.repeats), ("empty outputs", told.empty),
        ("outputs without an end", told.cut),
    )  # fmt: skip
    rows = [*((name, f"{share:.1%}") for name, share in shares), ("length to references", f"{told.length_ratio:.2f}")]
    hints = "".join(f"<li>{escape(hint)}</li>" for hint in told.hints)
    return table(("", ""), rows, (1,)) + (f"<ul>{hints}</ul>" if hints else "")


def _title(shown: Sequence[Shown]) -> str:
    looks = any(each.weights is not None or each.picture for each in shown)
    return "Some outputs, and where they looked" if looks else "Some outputs"


def _shown(each: Shown) -> str:
    if each.tags:
        return (
            f'<article class="wide"><div class="tags">{"".join(_tagged(*word) for word in each.tags)}</div></article>'
        )
    facts = (("source", each.source), ("output", each.output), ("reference", each.reference))
    told = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts if text)
    picture = "" if each.weights is None else heat(each.weights, each.rows, each.columns)
    if each.picture:
        said = escape(f"{each.source}: where each word of its caption looked")
        picture = f'<img alt="{said}" src="data:image/png;base64,{b64encode(each.picture).decode()}">'
    wide = " class=wide" if each.picture or len(each.columns) > WIDE else ""
    return f"<article{wide}><dl>{told}<dt>score</dt><dd>{each.score:.3f}</dd></dl>{picture}</article>"


def _tagged(word: str, said: str, true: str) -> str:
    if said == true:
        return f"<span>{escape(word)}<small>{escape(said)}</small></span>"
    return f'<span class="wrong">{escape(word)}<small>{escape(said)}, not {escape(true)}</small></span>'


def heat(weights: NDArray[Any], rows: Row, columns: Row) -> str:
    """A heat map as a table: rows look, columns are looked at; the browser shapes every script."""
    head = "".join(f"<th scope=col>{escape(word)}</th>" for word in columns)
    body = "".join(
        f"<tr><th scope=row>{escape(row)}</th>{''.join(map(_cell, line))}</tr>"
        for row, line in zip(rows, weights.tolist(), strict=True)
    )
    return f'<table class="heat"><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(weight: float) -> str:
    from matplotlib import colormaps

    red, green, blue, _ = (round(255 * each) for each in colormaps["cividis"](min(max(weight, 0.0), 1.0)))
    ink = "#fff" if weight < 0.55 else "#000"
    text = f"{weight:.2f}".lstrip("0") if weight >= 0.005 else "0"
    return f'<td style="background:rgb({red},{green},{blue});color:{ink}">{text}</td>'


def _worst(found: Assessment) -> str:
    if found.diagnostics is None:
        return ""
    rows = [
        (str(each.place + 1), f"{each.score:.1f}", each.source, each.output, each.reference)
        for each in found.diagnostics.worst
    ]
    return table(("", "chrF", "source", "output", "reference"), rows, (0, 1))


def _settings(found: Assessment) -> str:
    rows = []
    for name, value in found.settings.items():
        if isinstance(value, Mapping):
            rows += [(f"{name}.{key}", str(each)) for key, each in value.items()]
        else:
            rows.append((name, str(value)))
    return f"<details><summary>What the outputs came about with</summary>{table(('', ''), rows)}</details>"
