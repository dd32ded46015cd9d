"""Scores beside sacreBLEU's and scikit-learn's own, and worked by hand."""

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.evaluation import scores
from regard.evaluation.evaluating import are_spans, chosen, sequence_scores, tag_scores
from regard.evaluation.measures import Options, suiting
from regard.evaluation.measures import chosen as measures
from regard.support.errors import Misuse

OUTPUTS = ["The black cat ate a mouse .", "Let us go home", "a dog", "It rains ."]
FIRST = ["The black cat ate the mouse .", "Let's go home", "one dog", "It is raining ."]
SECOND = ["A black cat ate the mouse .", "We go home", "a dog", "It rains"]


def test_text_scores_are_sacrebleus_with_their_signatures() -> None:
    references = [list(pair) for pair in zip(FIRST, SECOND, strict=True)]
    bleu = scores.text_score("bleu", OUTPUTS, references)
    assert bleu.value == sacrebleu.corpus_bleu(OUTPUTS, [FIRST, SECOND]).score
    assert "nrefs:2" in bleu.signature
    assert "tok:13a" in bleu.signature
    chrf = scores.text_score("chrf", OUTPUTS, references)
    assert chrf.value == sacrebleu.corpus_chrf(OUTPUTS, [FIRST, SECOND]).score
    ter = scores.text_score("ter", OUTPUTS, references)
    assert ter.value == sacrebleu.corpus_ter(OUTPUTS, [FIRST, SECOND]).score
    assert not ter.higher_is_better
    lowered = scores.text_score("bleu", OUTPUTS, references, lowercase=True, tokenize="char")
    assert lowered.value == sacrebleu.corpus_bleu(OUTPUTS, [FIRST, SECOND], lowercase=True, tokenize="char").score
    assert str(bleu) == f"BLEU {bleu.value:.2f}"


def test_sources_may_have_different_numbers_of_references() -> None:
    some = [[one, two] if place < 2 else [one] for place, (one, two) in enumerate(zip(FIRST, SECOND, strict=True))]
    found = scores.text_score("bleu", OUTPUTS, some)
    assert found.value == sacrebleu.corpus_bleu(OUTPUTS, [FIRST, [*SECOND[:2], None, None]]).score  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"output 2 has no reference"):
        scores.text_score("bleu", OUTPUTS[:2], [["a"], []])
    with pytest.raises(ValueError, match=r"expected references for each of 4 outputs; got 1"):
        scores.text_score("bleu", OUTPUTS, [["a"]])


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30))
@settings(max_examples=20, deadline=None)
def test_labels_are_counted_as_scikit_learn_counts_them(pairs: list[tuple[str, str]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    said, true = [a for a, _ in pairs], [b for _, b in pairs]
    assert scores.accuracy(said, true).value == pytest.approx(metrics.accuracy_score(true, said))
    assert scores.macro_f1(said, true).value == pytest.approx(metrics.f1_score(true, said, average="macro"))
    names = sorted({*said, *true})
    found = scores.confusion(said, true)
    if len(names) > 1:
        table = metrics.confusion_matrix(true, said, labels=names)
        assert [[found[(a, b)] for b in names] for a in names] == table.tolist()
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(true, said, labels=names, zero_division=0)
    each = scores.f1_by_label(said, true)
    assert [each[name].precision for name in names] == pytest.approx(precision.tolist())
    assert [each[name].recall for name in names] == pytest.approx(recall.tolist())
    assert [each[name].f1 for name in names] == pytest.approx(f1.tolist())


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("B-PER I-PER O B-LOC", [(0, 2, "PER"), (3, 4, "LOC")]),
        ("B-PER B-PER", [(0, 1, "PER"), (1, 2, "PER")]),
        ("B-PER I-LOC", [(0, 1, "PER"), (1, 2, "LOC")]),
        ("O I-PER I-PER", [(1, 3, "PER")]),
        ("O O", []),
    ],
)
def test_spans_are_read_from_tags(tags: str, found: list[scores.Span]) -> None:
    assert scores.spans(tags.split()) == found


def test_a_span_is_right_when_its_ends_and_its_kind_are() -> None:
    said = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG", "O"]]
    true = [["B-PER", "I-PER", "O", "B-ORG"], ["B-ORG", "I-ORG"]]
    found = scores.span_f1(said, true)
    assert (found.right, found.said, found.true) == (1, 3, 3)
    assert tag_scores(said, true)[0].name == "F1 (spans)"
    assert tag_scores([["A"]], [["A"]])[0].name == "accuracy"
    assert not are_spans(["O", "O"])


@given(st.text("ab", max_size=7), st.text("ab", max_size=7))
def test_edits_are_the_fewest_there_are(one: str, other: str) -> None:
    def slow(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        return min(slow(a[1:], b) + 1, slow(a, b[1:]) + 1, slow(a[1:], b[1:]) + (a[0] != b[0]))

    assert scores.edits(one[:5], other[:5]) == slow(one[:5], other[:5])


def test_error_rates_take_the_nearest_reference() -> None:
    several = [[["hh", "ah", "l", "ow"], ["hh", "eh", "l", "ow"]], [["k", "ae", "t"]]]
    said = [["hh", "eh", "l"], ["k", "ae", "t"]]
    assert scores.error_rate(said, several).value == pytest.approx(1 / 7)
    assert (
        scores.whole_error_rate([tuple(each) for each in said], [[tuple(x) for x in each] for each in several]).value
        == 0.5
    )


def test_measures_are_chosen_by_the_data_or_by_name() -> None:
    assert suiting("text", [["a b c"]]) == ["bleu", "chrf", "ter"]
    assert suiting("text", [["word"]]) == ["chrf", "exact", "cer"]
    assert suiting("tags", [(["B-A", "O"],)]) == ["spans", "accuracy", "f1"]
    assert suiting("tags", [(["NOUN"],)]) == ["accuracy", "f1"]
    found = {name: each(["k a t", "d o g"], [["k a t"], ["d a g"]], Options()) for name, each in
             measures("text", ["wer", "whole", "cer", "exact"], []).items()}  # fmt: skip
    assert found["wer"].value == pytest.approx(1 / 6)
    assert found["cer"].value == pytest.approx(1 / 10)
    assert (found["whole"].value, found["exact"].value) == (0.5, 0.5)
    with pytest.raises(Misuse, match=r"unknown measure of text 'blue'; did you mean 'bleu'\?"):
        measures("text", ["blue"], [])


def test_single_words_are_not_judged_by_bleu() -> None:
    assert sequence_scores(["abc"], [["abd"]])[0].name == "chrF2"
    assert [each.name for each in sequence_scores(["a b c"], [["a b d"]])] == ["BLEU", "chrF2", "exact"]
    assert [each.value for each in sequence_scores([], [])] == [0, 0, 0]


def test_some_examples_are_spread_evenly_and_always_the_same() -> None:
    assert chosen(10, 4).tolist() == [0, 3, 6, 9]
    assert chosen(3, 4).tolist() == chosen(3, None).tolist() == [0, 1, 2]
