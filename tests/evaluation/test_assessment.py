"""By length, side by side, what lies behind a score; tables and the report say what was found."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from regard.evaluation import tables
from regard.evaluation.assessment import assess, compared
from regard.evaluation.by_length import by_length
from regard.evaluation.diagnostics import diagnose, repeats
from regard.evaluation.measures import Options
from regard.evaluation.reading import Examples, read_examples
from regard.evaluation.records import record
from regard.evaluation.report import Shown, heat, page
from regard.evaluation.scores import Score
from regard.evaluation.significance import compare_counts, compare_texts
from regard.support.errors import Misuse

WORDS = ["the", "black", "cat", "ate", "a", "mouse", "and", "went", "home", "to", "sleep", "in", "its", "warm", "bed"]


def sentences(count: int, seed: int = 0) -> list[str]:
    dice = np.random.default_rng(seed)
    return [" ".join(dice.choice(WORDS, dice.integers(4, 14))) for _ in range(count)]


def spoiled(texts: list[str], share: float, seed: int) -> list[str]:
    dice = np.random.default_rng(seed)
    return [" ".join("dog" if dice.random() < share else word for word in text.split()) for text in texts]


def texts(count: int = 80) -> Examples:
    found = sentences(count)
    return Examples("made", tuple(found), tuple((each,) for each in found), "text")


def test_scores_by_length_are_those_of_the_sentences_of_that_length() -> None:
    lengths = [1, 10, 11, 0, 25, 40, 41, 300]
    asked: list[list[int]] = []

    def score(places: list[int]) -> Score:
        asked.append(places)
        return Score("count", len(places))

    found = by_length(lengths, score)
    assert [each.name for each in found] == ["1-10", "11-20", "21-30", "31-40", "over 40"]
    assert [each.count for each in found] == [3, 1, 1, 1, 2]
    assert asked == [[0, 1, 3], [2], [4], [5], [6, 7]]
    assert all(each.few for each in found)
    assert by_length([5], score)[1].score is None


def test_a_paired_bootstrap_is_sacrebleus() -> None:
    truth = sentences(60)
    good, bad = spoiled(truth, 0.1, 1), spoiled(truth, 0.5, 2)
    ours = compare_texts("bleu", [good, bad], [[each] for each in truth], samples=200)
    named: Any = [("0", good), ("1", bad)]
    _, theirs = PairedTest(named, {"bleu": sacrebleu.BLEU()}, [truth], "bs", n_samples=200)()
    for own, other in zip(ours, theirs["BLEU"], strict=True):
        assert (own.score.value, own.mean, own.interval, own.p) == (other.score, other.mean, other.ci, other.p_value)  # type: ignore[union-attr]
    assert "seed:12345" in ours[0].score.signature
    assert ours[1].verdict(ours[0], "good").startswith("worse than good by ")
    assert ours[0].verdict(ours[0], "good") == "the one the others are compared with"


def test_two_models_that_are_alike_are_not_called_different() -> None:
    truth = sentences(60)
    one, other = spoiled(truth, 0.3, 1), spoiled(truth, 0.3, 2)
    found = compare_texts("chrf", [one, other], [[each] for each in truth], samples=300)
    assert "no difference from one that this data can tell" in found[1].verdict(found[0], "one")


def test_a_model_beside_itself_is_no_worse() -> None:
    truth = sentences(20)
    outputs = spoiled(truth, 0.3, 1)
    for name in ("bleu", "chrf", "ter"):
        found = compare_texts(name, [outputs, outputs], [[each] for each in truth], samples=50)  # type: ignore[arg-type]
        assert (found[1].p, found[1].differs) == (1.0, False)
        assert found[1].verdict(found[0], "itself") == "as good as itself to the last digit"


def one_each(right: list[float]) -> np.ndarray[Any, Any]:
    return np.array([(each, 1.0) for each in right])


def mean(sums: Any) -> Any:
    return sums[..., 0] / sums[..., 1]


def test_counts_are_compared_by_the_same_test() -> None:
    dice = np.random.default_rng(0)
    base = (dice.random(300) < 0.7).astype(float)
    same, worse = np.roll(base, 7), base * (dice.random(300) < 0.7)
    found = compare_counts("accuracy", [one_each(each.tolist()) for each in (base, same, worse)], mean)
    assert found[0].p is None
    assert not found[1].differs
    assert found[2].differs
    assert found[2].verdict(found[0], "base").startswith("worse than base by 0.")
    few = base.copy()
    few[np.flatnonzero(base)[:8]] = 0  # a small difference, and always the same way: only a paired test sees it
    assert compare_counts("accuracy", [one_each(base.tolist()), one_each(few.tolist())], mean)[1].differs
    # the interval is that of a share: 1.96 √(p (1 - p) / n)
    share = base.mean()
    assert found[0].interval == pytest.approx(1.96 * (share * (1 - share) / 300) ** 0.5, rel=0.12)


TAGS = (["B-PER", "I-PER", "O"], ["O", "B-LOC", "O"], ["O"], ["B-LOC", "O", "B-PER"])
CASES: dict[str, tuple[Examples, list[Any], list[Any]]] = {
    "text": (
        Examples("t", ("a", "b", "c", "d"), (("the cat",), ("a dog", "the dog"), ("it rains now",), ("no",)), "text"),
        ["the cat", "the dog", "it rains", "yes"], ["a cat", "dog", "rains", "no"],
    ),
    "tags": (
        Examples("t", (["a"] * 3, ["b"] * 3, ["c"], ["d"] * 3), tuple((each,) for each in TAGS), "tags"),
        [("B-PER", "I-PER", "O"), ("O", "O", "O"), ("O",), ("B-LOC", "O", "B-LOC")],
        [("B-PER", "O", "O"), ("B-ORG", "B-LOC", "O"), ("O",), ("O", "O", "O")],
    ),
    "label": (Examples("l", ("a", "b", "c"), (("x",), ("y",), ("x",)), "label"), ["x", "x", "x"], ["x", "y", "z"]),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "measure"), [
    *(("text", each) for each in ("exact", "whole", "wer", "cer")),
    *(("tags", each) for each in ("accuracy", "f1", "spans")), ("label", "accuracy"), ("label", "f1"),
])  # fmt: skip
def test_whatever_is_measured_is_compared_and_is_the_score_itself(kind: str, measure: str) -> None:
    examples, one, other = CASES[kind]
    found = [assess(name, examples, outputs, measures=[measure]) for name, outputs in (("one", one), ("other", other))]
    [(name, tests)] = compared(found).items()
    assert name == found[0].scores[0].name
    for each, test in zip(found, tests, strict=True):
        assert test.score.value == pytest.approx(each.scores[0].value)
        assert test.score.higher_is_better == each.scores[0].higher_is_better
    assert tests[1].p is not None


def test_a_mean_is_drawn_for_each_sample_the_same_for_all_models() -> None:
    counts = np.random.default_rng(1).random((40, 2))
    one, other = compare_counts("x", [counts, counts * [2, 1]], lambda sums: sums[..., 0] / sums[..., 1], samples=50)
    assert other.mean == pytest.approx(2 * one.mean)
    assert other.interval == pytest.approx(2 * one.interval)


def test_spans_are_scored_by_their_kind() -> None:
    examples, one, _ = CASES["tags"]
    found = assess("m", examples, one)
    kinds = {name: (each.right, each.said, each.true) for name, each in found.by_span.items()}
    assert kinds == {"LOC": (1, 2, 2), "PER": (1, 1, 2)}
    assert found.scores[0].value == pytest.approx(2 * 2 / (3 + 4))
    table = tables.labels(found).splitlines()
    assert table[-3].split() == ["span", "precision", "recall", "F1", "true"]
    assert record(found)["spans"]["PER"]["recall"] == 0.5
    assert "<th>span</th>" in page([found])
    assert assess("m", *CASES["label"][:2]).by_span == {}


def test_diagnostics_say_what_lies_behind_a_low_score() -> None:
    sources = ["ein hund", "eine katze", "das haus", "komm", "ja"]
    outputs = ["ein hund", "a cat a cat a cat a cat", "", "<unk> come", "YES"]
    found = diagnose(sources, outputs, [["a dog"], ["a cat"], ["the house"], ["come"], ["yes"]],
                     unknown=[0.5, 0, 0, 0, 0], ended=[True, False, True, True, True], worst=2)  # fmt: skip
    assert (found.copies, found.repeats, found.empty, found.unknown_outputs, found.cut) == (0.2,) * 5
    assert found.unknown == pytest.approx(0.1)
    assert found.length_ratio == pytest.approx(13 / 8)
    assert found.worst[0].source == "das haus"
    assert len(found.worst) == 2
    hints = " ".join(found.hints)
    for said in (
        "unknown to the model",
        "are empty",
        "are their source",
        "repeat themselves",
        "come to no end",
        "too long",
    ):
        assert said in hints
    fine = diagnose(["ein hund"], ["a dog"], [["a dog"]])
    assert fine.hints == ()
    shouted = diagnose(["x y"], ["A BLACK CAT ATE"], [["a black cat ate"]])
    assert any("without capitals" in hint for hint in shouted.hints)


@pytest.mark.parametrize(("text", "found"), [
    ("a a a", True), ("a b a b a b", True), ("a a b", False), ("", False), ("a b c d a b c d a b c d", True),
    ("the cat and the cat", False),
])  # fmt: skip
def test_repeats_are_three_in_a_row(text: str, found: bool) -> None:
    assert repeats(text) is found


def test_an_assessment_holds_scores_lengths_and_labels() -> None:
    examples = texts()
    found = assess("m", examples, spoiled(list(examples.sources), 0.2, 1), options=Options(lowercase=True),
                   further=[Score("perplexity", 3.5, False)], settings={"beam": 5})  # fmt: skip
    assert [score.name for score in found.scores] == ["BLEU", "chrF2", "TER", "perplexity"]
    assert "case:lc" in found.scores[0].signature
    short = [n for n, each in enumerate(examples.sources) if len(each.split()) <= 10]
    bucket = found.lengths[0]
    assert bucket.count == len(short)
    assert bucket.score is not None
    expected = sacrebleu.corpus_bleu([found.outputs[n] for n in short], [[examples.sources[n] for n in short]])
    assert bucket.score.value == expected.score
    with pytest.raises(ValueError, match=r"expected an output for each of 80 examples; got 1"):
        assess("m", examples, ["a"])
    labels = Examples("l", ("a", "b b", "c"), (("x",), ("y",), ("x",)), "label")
    told = assess("m", labels, ["x", "x", "x"])
    assert told.scores[0].value == pytest.approx(2 / 3)
    assert told.confusion == {("x", "x"): 2, ("y", "x"): 1}
    tags = Examples("t", (["a", "b"], ["c"]), ((["N", "V"],), (["N"],)), "tags")
    assert assess("m", tags, [("N", "N"), ("N",)]).scores[0].value == pytest.approx(2 / 3)


def test_tables_show_what_was_found() -> None:
    examples = texts(40)
    good, bad = (
        assess(name, examples, spoiled(list(examples.sources), share, 1))
        for name, share in (("good", 0.05), ("bad", 0.6))
    )
    assert "nrefs:1" in tables.scores(good)
    lengths = tables.lengths([good, bad]).splitlines()
    assert lengths[0] == "BLEU by length"
    assert lengths[1].split() == ["words", "sentences", "good", "bad"]
    assert lengths[4].split() == ["21-30", "0", "-", "-"]
    said = tables.comparison(["good", "bad"], compared([good, bad]))
    assert "worse than good by" in said
    assert said.index("BLEU") < said.index("chrF2") < said.index("TER")
    labels = assess("m", Examples("l", ("a", "b"), (("x",), ("y",)), "label"), ["x", "x"])
    assert [line.split() for line in tables.confusion(labels).splitlines()[1:]] == [["x", "1", "·"], ["y", "1", "·"]]
    narrow = tables.confusion(labels, width=15).split("\n\n")
    assert [part.splitlines()[0].split() for part in narrow] == [["true,", "told", "x"], ["true,", "told", "y"]]
    assert tables.labels(labels).splitlines()[2].split() == ["y", "0.0000", "0.0000", "0.0000", "1"]
    assert "length to references" in tables.diagnostics(bad)
    assert tables.worst(bad, 1).count("source") == 1


class _Tags(HTMLParser):
    """That what is opened is closed, and nothing is fetched."""

    VOID = ("meta", "link", "br", "path", "use", "rect", "img")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.fetched += [
            str(value) for name, value in attributes if name in ("src", "href") and not str(value).startswith("#")
        ]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_report_is_one_page_that_fetches_nothing() -> None:
    examples = texts(40)
    found = [assess(name, examples, spoiled(list(examples.sources), share, 1), settings={"search": {"beam": 5}})
             for name, share in (("good <1>", 0.05), ("bad", 0.6))]  # fmt: skip
    shown = Shown(
        "a <cat>", "আমি যাই", "un chat", -0.3, ("আমি", "যাই"), ("a", "<cat>"), np.array([[0.9, 0.1], [0.0, 1.0]])
    )
    text = page(found, {"bad": [shown]})
    parser = _Tags()
    parser.feed(text)
    assert parser.open == []
    assert parser.fetched == []
    assert not re.search(r"(?:src|href)=.?https?:|@import|url\((?!#)", text)
    for said in (
        "good &lt;1&gt;",
        "a &lt;cat&gt;",
        "আমি",
        "nrefs:1",
        "worse than good &lt;1&gt; by",
        "21-30",
        "search.beam",
        "<svg",
    ):
        assert said in text
    labelled = page([assess("m", Examples("l", ("a", "b"), (("x",), ("y",)), "label"), ["x", "x"])])
    assert "Truths (rows) and what was told (columns)" in labelled


def test_a_heat_map_in_the_report_is_light_where_much_was_looked_at() -> None:
    text = heat(np.array([[1.0, 0.001]]), ["row"], ["one", "two"])
    assert text.index("one") < text.index("two") < text.index("row")
    cells = re.findall(r"rgb\((\d+),(\d+),(\d+)\);color:(#\w+)\">([\d.]+)<", text)
    assert [cell[4] for cell in cells] == ["1.00", "0"]
    assert sum(map(int, cells[0][:3])) > sum(map(int, cells[1][:3]))
    assert [cell[3] for cell in cells] == ["#000", "#fff"]


def test_an_assessment_is_told_as_json() -> None:
    examples = texts(20)
    told = json.loads(json.dumps(record(assess("m", examples, list(examples.sources)))))
    assert told["scores"]["BLEU"]["value"] == pytest.approx(100)
    assert "signature" in told["scores"]["BLEU"]
    assert told["by_length"][0]["words"] == "1-10"
    assert told["worst"][0]["place"] >= 1


def test_data_are_read_from_one_file_or_several(tmp_path: Path) -> None:
    tsv, source, one, two = (tmp_path / name for name in ("a.tsv", "a.en", "a.de", "b.de"))
    tsv.write_text("a cat\teine Katze\na dog\tein Hund\na cat\tne Katze\n")
    source.write_text("a cat\na dog\n")
    one.write_text("eine Katze\nein Hund\n")
    two.write_text("ne Katze\nn Hund\n")
    found = read_examples([str(tsv)])
    assert found.references == (("eine Katze",), ("ein Hund",), ("ne Katze",))
    assert found.grouped().sources == ("a cat", "a dog")
    assert found.grouped().references[0] == ("eine Katze", "ne Katze")
    assert len(found.first(2)) == 2
    assert read_examples(list(map(str, (source, one, two)))).references == (
        ("eine Katze", "ne Katze"),
        ("ein Hund", "n Hund"),
    )
    tagged = tmp_path / "t.conllu"
    tagged.write_text("1\tdogs\t_\tNOUN\t_\t_\t0\troot\t_\t_\n2\tbark\t_\tVERB\t_\t_\t1\tx\t_\t_\n\n")
    assert read_examples([str(tagged)]).references == ((["NOUN", "VERB"],),)
    labelled = tmp_path / "l.txt"
    labelled.write_text("good\ta film\n")
    found = read_examples([f"{{labelled: {labelled}}}"])
    assert (found.sources, found.references, found.kind) == (("a film",), (("good",),), "label")
    with pytest.raises(Misuse, match=r"only texts can be grouped by their source"):
        found.grouped()


@pytest.mark.parametrize(("files", "said"), [
    ([], r"data: name a file with sources and references"),
    (["no.tsv"], r"no.tsv: no such file"),
    (["a.en", "no.de"], r"no.de: no such file"),
    (["a.en", "b.de"], r"a.en has 2 lines and b.de 1; expected as many"),
    (["bad.tsv"], r"bad.tsv:2: not UTF-8: byte 0xff"),
    (["bad.tsv", "a.en"], r"bad.tsv:2: byte 0xff at place 1 is not UTF-8"),
    (["a.en"], r"does not say what kind of source it is"),
], ids=str)  # fmt: skip
def test_data_that_cannot_be_read_are_said_with_their_place(
    files: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.en").write_text("a\nb\n")
    Path("b.de").write_text("a\n")
    Path("bad.tsv").write_bytes(b"a\tb\n\xff\tb\n")
    with pytest.raises(Misuse, match=said):
        read_examples(files)


def test_images_go_by_the_length_of_what_is_said_of_them_and_by_their_number() -> None:
    images = tuple(np.zeros((8, 60), np.uint8) for _ in range(3))
    captions = (("one two",), (" ".join(["nine"] * 12),), ("six",))
    found = assess("m", Examples("strips", images, captions, "text"), ["one two", "six", "two"])
    assert [bucket.count for bucket in found.lengths] == [2, 1, 0, 0, 0]
    assert found.diagnostics is not None
    assert {each.source for each in found.diagnostics.worst} == {"example 1", "example 2", "example 3"}
    assert found.diagnostics.copies == 0


def test_outputs_that_are_no_texts_are_shown_in_the_report_too() -> None:
    tags = Shown("a <dog>", "", "", 0.0, tags=(("a", "DET", "DET"), ("<dog>", "VERB", "NOUN")))
    picture = Shown("example 7", "six", "nine", -1.0, picture=b"\x89PNG")
    found = assess("m", *CASES["tags"][:2])
    text = page([found], {"m": [tags, picture]})
    parser = _Tags()
    parser.feed(text)
    assert parser.open == []
    assert parser.fetched == ["data:image/png;base64,iVBORw=="]
    assert "<span>a<small>DET</small></span>" in text
    assert '<span class="wrong">&lt;dog&gt;<small>VERB, not NOUN</small></span>' in text
    assert "Some outputs, and where they looked" in text
    assert "Some outputs<" in page([found], {"m": [tags]})
