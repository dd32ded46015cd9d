"""Tables of figures as plain text: what the commands print, and what the reports lay out again."""

from collections.abc import Sequence

from regard.evaluation.assessment import Assessment
from regard.evaluation.significance import Compared

Row = tuple[str, ...]


def grid(head: Row, rows: Sequence[Row]) -> str:
    """Columns under one another: the first to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [_aligned(row, widths) for row in (head, *rows)]
    return "\n".join(line.rstrip() for line in lines)


def _aligned(row: Row, widths: Sequence[int]) -> str:
    rest = (each.rjust(width) for each, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join([row[0].ljust(widths[0]), *rest])


def number(value: float) -> str:
    return f"{value:.2f}" if abs(value) > 1.5 else f"{value:.4f}"


def scores(found: Assessment) -> str:
    """Every score, and how it was reckoned where that is not told by its name."""
    rows = [(score.name, number(score.value), score.signature) for score in found.scores]
    lines = [
        f"{name.ljust(max(len(row[0]) for row in rows))}  {value.rjust(8)}{f'  {signature}' if signature else ''}"
        for name, value, signature in rows
    ]
    return "\n".join(lines)


def lengths(found: Sequence[Assessment]) -> str:
    """The main score of each model by the length of the source."""
    head = ("words", "sentences", *(each.model for each in found))
    rows = [
        (buckets[0].name, f"{buckets[0].count:,}", *(number(one.score.value) if one.score else "-" for one in buckets))
        for buckets in zip(*(each.lengths for each in found), strict=True)
    ]
    few = any(bucket.count > 0 and bucket.few for bucket in found[0].lengths)
    note = "\n(a score of fewer than 30 sentences says little)" if few else ""
    return f"{found[0].scores[0].name} by length\n{grid(head, rows)}{note}"


def labels(found: Assessment) -> str:
    """Precision, recall and F1 of each label, and of each kind of span."""
    parts = [grid(head, rows) for head, rows in label_rows(found)]
    return "\n\n".join(parts)


def label_rows(found: Assessment) -> list[tuple[Row, list[Row]]]:
    """A head and rows for labels, and for spans where tags are such."""
    return [
        (
            (what, "precision", "recall", "F1", "true"),
            [
                (str(name), number(one.precision), number(one.recall), number(one.f1), f"{one.true:,}")
                for name, one in each.items()
            ],
        )
        for what, each in (("label", found.by_label), ("span", found.by_span))
        if each
    ]


def confusion(found: Assessment, most: int = 20, width: int | None = None) -> str:
    """How often each truth (a row) was told as each label (a column); the commonest labels, where there are many.

    width: columns that do not fit it follow below.
    """
    commonest = sorted(found.by_label, key=lambda label: -found.by_label[label].true)[:most]
    names = sorted(map(str, commonest))
    by_text = {(str(true), str(said)): count for (true, said), count in found.confusion.items()}
    rows = [(true, *(str(by_text.get((true, said), 0) or "·") for said in names)) for true in names]
    left = len(found.by_label) - len(names)
    note = f"\n(without {left} rarer labels)" if left else ""
    return "\n\n".join(_folded(("true, told", *names), rows, width)) + note


def _folded(head: Row, rows: Sequence[Row], width: int | None) -> list[str]:
    """A grid, or several below one another of as many columns as fit a width, the first column in each."""
    first, *others = (max(map(len, column)) + 2 for column in zip(head, *rows, strict=True))
    parts: list[list[int]] = [[]]
    room = 0
    for place, wide in enumerate(others, 1):
        room += wide
        if width is not None and parts[-1] and first - 2 + room > width:
            parts.append([])
            room = wide
        parts[-1].append(place)
    return [
        grid((head[0], *(head[place] for place in part)), [(row[0], *(row[place] for place in part)) for row in rows])
        for part in parts
    ]


def diagnostics(found: Assessment) -> str:
    """Shares, then what stands out in words."""
    told = found.diagnostics
    if told is None:
        return ""
    rows = [
        ("unknown tokens of sources", f"{told.unknown:.1%}"), ("outputs with <unk>", f"{told.unknown_outputs:.1%}"),
        ("copies of the source", f"{told.copies:.1%}"), ("repeats", f"{told.repeats:.1%}"),
        ("empty outputs", f"{told.empty:.1%}"), ("outputs without an end", f"{told.cut:.1%}"),
        ("length to references", f"{told.length_ratio:.2f}"),
    ]  # fmt: skip
    hints = "".join(f"\n- {hint}" for hint in told.hints)
    return grid(("diagnostics", ""), rows) + (f"\n{hints}" if hints else "")


def worst(found: Assessment, count: int = 3) -> str:
    """The outputs that are least like their references."""
    if found.diagnostics is None:
        return ""
    parts = [
        f"{each.place + 1}. chrF {each.score:.1f}\n   source    {each.source}\n   output    {each.output}\n"
        f"   reference {each.reference}"
        for each in found.diagnostics.worst[:count]
    ]
    return "least like their references\n" + "\n".join(parts)


def comparison(names: Sequence[str], tests: dict[str, list[Compared]]) -> str:
    """Each measure: every model with its interval, and whether it differs from the first."""
    parts = []
    for measure, results in tests.items():
        rows = [
            (name, number(each.score.value), f"{number(each.mean)} ± {number(each.interval)}",
             each.verdict(results[0], names[0]))
            for name, each in zip(names, results, strict=True)
        ]  # fmt: skip
        width = max(len(row[0]) for row in rows)
        lines = [f"{name.ljust(width)}  {value:>8}  {interval:>18}  {said}" for name, value, interval, said in rows]
        parts.append("\n".join([measure, *lines]))
    return "\n\n".join(parts)


def further(found: Sequence[Assessment]) -> str:
    """Scores that no test compares, such as perplexity, of each model; nothing where there are none."""
    first = len(found[0].measures)
    parts = []
    for scores_ in zip(*(each.scores[first:] for each in found), strict=True):
        rows = [(each.model, number(score.value)) for each, score in zip(found, scores_, strict=True)]
        parts.append(grid((scores_[0].name, ""), rows))
    return "\n\n".join(parts)
