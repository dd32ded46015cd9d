"""The report of an answer: what a teacher would write, at the width of a terminal; and `regard check`."""

import json
from pathlib import Path

import pytest

from regard.cli import main
from regard.worked import read_problem
from regard.worked.marking import mark
from regard.worked.report import told
from regard.worked.shipped import shipped
from tests.worked.answers import asked

SELF_ATTENTION = """\
Self-attention
==============
3 of 6 answered steps are right, 3 are wrong. The first mistake is in E[2,3].

  right    Q, K, V
  wrong    E = Q Kᵀ
           [2,3] you wrote 18; it is 12
             12 = 2·2 + 2·3 + 2·1
           One digit misread: 18 stands in [2,3], where 12 should.
  wrong    A = softmax(E)
           [2,1] you wrote 0.000007; from your own numbers it is 7.324e-7, in
             truth 6.034e-6
             7.324e-7 ≈ e^4 / (e^4 + e^16 + e^18)
           One digit misread: 0.000007 in [2,1] is ten times too large, a
             decimal place off.
           [2,2], [2,3] follow from your earlier numbers.
           Cut, not rounded: [3,1] 0.00029 for 0.0002954
  wrong    O = A V
           [1,1] you wrote 1.0932; from your own numbers it is 1.932, in truth
             1.937
             1.932 = 0.06·1 + 0.468·2 + 0.468·2
           [3,1] you wrote 1.099; from your own numbers it is 1.998, in truth
             2.000
           [2,1], [2,2], [2,3] follow from your earlier numbers.
           Cut, not rounded: [2,1] 1.99 for 1.998, [3,3] 0.357 for 0.3579"""


def test_a_report_is_short_in_order_and_has_the_equation_that_was_missed() -> None:
    assert told(mark(read_problem("self-attention"))) == SELF_ATTENTION


@pytest.mark.parametrize("name", shipped())
@pytest.mark.parametrize("width", [60, 80])
def test_a_report_fits_the_terminal(name: str, width: int) -> None:
    lines = told(mark(read_problem(name)), "somebody", width).splitlines()
    assert max(map(len, lines)) <= width
    assert not any(line != line.rstrip() for line in lines)


def test_a_right_answer_is_told_in_a_few_lines() -> None:
    report = told(mark(read_problem("masked-self-attention")), "Ada")
    assert report.splitlines() == [
        "Masked self-attention, worked by Ada",
        "====================================",
        "Everything is right.",
        "",
        "  right    Q, K, V, E, M, A, O",
    ]


def test_an_unanswered_problem_says_where_the_answer_goes() -> None:
    assert "an answer stands under `claimed`" in told(mark(read_problem("rnn-step")))


def test_steps_left_out_are_named() -> None:
    report = told(mark(read_problem("dot-attention")))
    assert "Every step that is answered is right." in report
    assert "  -        c, joined" in report


def test_a_number_is_told_with_the_digits_that_show_its_error() -> None:
    # 7.13489 with four digits would be 7.135, of which 7.14 is a rounding.
    report = told(mark(read_problem("self-attention-scaled")))
    assert "[2,3] you wrote 7.14; it is 7.1349" in report
    assert "Only the last digit is off: was a number rounded on the way?" in report


def test_another_shape_is_told_with_both() -> None:
    report = told(mark(read_problem("luong")))
    assert "The shape is another: 4 numbers where there should be one number." in report
    assert "0.5 = 0.1·0.3 + 0.2·0.4 + 0.3·0.5 + 0.4·0.6\n           Too many: [1,2], [1,3], [1,4]\n" in report
    steps, given = {"y": "W @ W"}, {"W": "[[1, 2], [3, 4]]"}
    report = told(mark(asked(steps, given, {"y": "[[7], [15]]"})))
    assert report.endswith("2×2.\n           Missing: [1,2], [2,2]\n             10 = 1·2 + 2·4")
    assert "you wrote" not in report
    report = told(mark(asked(steps, given, {"y": "[[7], [16]]"})))
    assert "[2,1] you wrote 16; it is 15\n             15 = 3·1 + 4·3\n           Missing: [1,2], [2,2]" in report


def test_cells_left_blank_are_told() -> None:
    steps, given = {"y": "W @ W", "z": "y * 2"}, {"W": "[[1, 2], [3, 4]]"}
    report = told(mark(asked(steps, given, {"y": "[[7, _], [_, _]]", "z": "[[14, 20], [30, 44]]"})))
    assert "Everything that is filled in is right." in report
    assert "right    y = W W\n           Left blank: [1,2], [2,1], [2,2]\n  right    z" in report


def test_what_a_right_number_was_cut_from_is_the_true_value() -> None:
    report = told(mark(asked({"y": "x * 3", "z": "y * 1.109"}, {"x": "1"}, {"y": "4", "z": "3.32"})))
    assert "Cut, not rounded: [1,1] 3.32 for 3.327" in report


def test_many_wrong_cells_are_told_briefly() -> None:
    report = told(mark(asked({"y": "x * 2"}, {"x": "[1, 2, 3, 4, 5, 6]"}, {"y": "[9, 9, 9, 9, 9, 9]"})))
    assert "[1,3] you wrote 9; it is 6" in report
    assert "and 3 more: [1,4], [1,5], [1,6]" in report
    assert report.count("you wrote") == 3


def test_the_equation_is_of_the_claimants_own_numbers() -> None:
    given, steps = {"x": "[1, 2]"}, {"y": "x * 10", "z": "sum(y)"}
    marks = mark(asked(steps, given, {"y": "[10, 30]", "z": "41"}))
    assert marks["z"].missed == "40 = 10 + 30"
    assert "you wrote 41; from your own numbers it is 40, in truth 30" in told(marks)


def test_the_equation_is_the_arithmetic_and_not_where_the_number_was_passed_on_from() -> None:
    assert mark(read_problem("bag-of-words"))["counts"].missed == "2 = 1 + 0 + 1"
    assert mark(read_problem("positional-encoding"))["PE_1"].missed == "0.8415 ≈ sin(1)"


@pytest.mark.parametrize(("name", "status"), [("masked-self-attention", 0), ("self-attention", 1)])
def test_the_exit_status_says_whether_something_is_wrong(
    name: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["check", name])
    assert (left.value.code or 0) == status
    assert read_problem(name).title in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_status_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "torn.yaml"
    path.write_text("title: torn\ngiven: {X: [1, 2]}\nsteps: {Y: X @}\n", encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        main(["check", str(path)])
    assert left.value.code == 2
    assert "step Y" in capsys.readouterr().err


def test_check_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["check", "cross-entropy", "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert found["first_wrong"] == {"step": "average", "cell": [1, 1]}
    assert found["counts"] == {"right": 2, "follows": 0, "wrong": 1, "unclaimed": 3}
    average = found["steps"][2]
    assert (average["name"], average["verdict"], average["slip"]) == ("average", "wrong", None)
    assert average["wrong_cells"] == [
        {
            "cell": [1, 1],
            "claimed": 0.7,
            "true": pytest.approx(0.7993, abs=1e-4),
            "follows": pytest.approx(0.7967, abs=1e-4),
        }
    ]
