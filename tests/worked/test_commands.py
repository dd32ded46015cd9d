"""The commands: what they print, what they write, and how they end."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard import cli
from regard.worked.shipped import folder, shipped


class Ran:
    """What a command printed, and its exit status."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def regard(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ran:
        try:
            cli.main([*arguments])
            status: object = 0
        except SystemExit as left:
            status = left.code or 0
        printed = capsys.readouterr()
        assert isinstance(status, int)
        assert "Traceback" not in printed.err
        return Ran(status, printed.out, printed.err)

    return run


RIGHT = "problem: self-attention\nname: Ada\nclaimed:\n  E: [[2, 4, 4], [4, 16, 12], [4, 12, 10]]\n"
WRONG = "problem: self-attention\nname: Bo\nclaimed:\n  E: [[2, 4, 4], [4, 16, 18], [4, 12, 10]]\n"


def test_the_shipped_problems_are_listed_with_a_line_each(regard) -> None:  # type: ignore[no-untyped-def]
    lines = regard("problems").out.splitlines()
    assert [line.split()[0] for line in lines] == [*shipped()]
    assert all(len(line.split()) > 3 for line in lines)


def test_listing_the_problems_reads_no_torch() -> None:
    code = (
        "import sys; from regard.cli import main\ntry: main(['problems'])\nfinally: assert 'torch' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stderr, run.returncode) == ("", 0)
    assert "self-attention" in run.stdout


@pytest.mark.parametrize("name", [*shipped()])
def test_every_shipped_problem_is_worked_within_the_width(name: str, regard, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("COLUMNS", "80")
    ran = regard("work", name)
    assert ran.status == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "no rule is known" not in ran.out


def test_a_problem_is_worked_step_by_step(regard) -> None:  # type: ignore[no-untyped-def]
    out = regard("work", "self-attention").out
    assert out.startswith("Self-attention\n==============\n")
    rows = " +input 1 +input 2 +input 3 *\n +input 1 +2 +4 +4 *\n +input 2 +4 +16 +12 *\n +input 3 +4 +12 +10 *\n"
    assert re.search(rf"E = Q Kᵀ +3 × 3\n{rows}", out)
    assert "E[0, 0]: 2 = 1·0 + 0·1 + 2·1" in out


def test_digits_and_steps_can_be_asked_for(regard) -> None:  # type: ignore[no-untyped-def]
    out = regard("work", "self-attention", "--digits", "2", "--only", "A").out
    assert "0.063" in out
    assert "0.0634" not in out
    assert "E = " not in out


@pytest.mark.parametrize(
    ("ending", "begins"), [("md", "# Self"), ("tex", r"\documentclass"), ("html", "<!doctype"), ("json", "{")]
)
def test_the_ending_of_a_file_says_the_format(ending: str, begins: str, regard) -> None:  # type: ignore[no-untyped-def]
    ran = regard("work", "self-attention", "-o", f"out.{ending}")
    assert (ran.status, ran.out) == (0, "")
    assert Path(f"out.{ending}").read_text(encoding="utf-8").lower().startswith(begins.lower())


def test_what_is_said_goes_before_the_ending(regard) -> None:  # type: ignore[no-untyped-def]
    regard("work", "self-attention", "-f", "json", "-o", "out.txt")
    assert json.loads(Path("out.txt").read_text(encoding="utf-8"))["regard"] == "derivation"


def test_an_answer_is_marked_and_the_status_says_how_it_is(regard) -> None:  # type: ignore[no-untyped-def]
    Path("right.yaml").write_text(RIGHT)
    Path("wrong.yaml").write_text(WRONG)
    right, wrong = regard("check", "right.yaml"), regard("check", "wrong.yaml")
    assert (right.status, wrong.status) == (0, 1)
    assert "[2,3] you wrote 18; it is 12" in wrong.out
    assert "Ada" in right.out


def test_marks_as_json_are_what_programs_read(regard) -> None:  # type: ignore[no-untyped-def]
    Path("wrong.yaml").write_text(WRONG)
    ran = regard("check", "wrong.yaml", "--format", "json")
    found = json.loads(ran.out)
    assert ran.status == 1
    assert [*found] == ["title", "steps", "first_wrong", "counts"]
    assert found["first_wrong"] == {"step": "E", "cell": [2, 3]}
    assert found["counts"] == {"right": 0, "follows": 0, "wrong": 1, "unclaimed": 5}
    step = next(step for step in found["steps"] if step["name"] == "E")
    assert step["wrong_cells"] == [{"cell": [2, 3], "claimed": 18.0, "true": 12.0, "follows": 12.0}]


def test_a_class_is_marked_as_a_table_with_a_row_each(regard) -> None:  # type: ignore[no-untyped-def]
    Path("class").mkdir()
    for name, text in (("a", RIGHT), ("b", WRONG), ("c", WRONG.replace("Bo", "Cy")), ("not-an-answer", "")):
        Path(f"class/{name}.yaml").write_text(text or "given: {X: 1}\nsteps: {Y: X}\n")
    ran = regard("check", "class", "--quiet")
    rows = ran.out.splitlines()
    assert ran.status == 1
    assert rows[0].split() == ["answer", "right", "follows", "wrong", "left", "out", "first", "wrong"]
    assert rows[2].split() == ["Ada", "1", "0", "0", "5", "-"]
    assert rows[3].split()[:6] == ["Bo", "0", "0", "1", "5", "E[2,3],"]
    assert rows[4].startswith("Cy")
    assert rows[6:] == ["3 answers, 1 without a mistake.", "First wrong at E (2)."]


def test_an_answer_file_handed_in_blank_has_its_row(regard) -> None:  # type: ignore[no-untyped-def]
    Path("class").mkdir()
    Path("class/a.yaml").write_text(RIGHT)
    regard("worksheet", "self-attention", "-o", "class/blank.yaml")
    ran = regard("check", "class", "--quiet")
    assert ran.status == 0
    assert [row.split() for row in ran.out.splitlines()[2:4]] == [
        ["Ada", "1", "0", "0", "5", "-"],
        ["blank", "0", "0", "0", "6", "-"],
    ]
    assert "2 answers" in ran.out


def test_a_file_that_cannot_be_read_does_not_keep_the_others_from_being_marked(regard) -> None:  # type: ignore[no-untyped-def]
    Path("a.yaml").write_text(RIGHT)
    Path("b.yaml").write_text("given: [\n")
    ran = regard("check", "a.yaml", "b.yaml", "missing.yaml", "-q")
    assert ran.status == 2
    assert "Ada" in ran.out
    assert "b.yaml:2:1: not YAML: a value is missing here, or a bracket is not closed" in " ".join(ran.out.split())
    assert "missing.yaml: no such file or directory" in ran.out
    assert "2 cannot be read." in ran.out


def test_a_table_tells_of_cells_with_three_places_and_of_no_escape_sequences(regard) -> None:  # type: ignore[no-untyped-def]
    deep = "given: {X: [[1, 2]]}\nsteps: {Y: 'stack(X, X)'}\nclaimed: {Y: [[[1, 2]], [[1, 3]]]}\n"
    Path("a.yaml").write_text('name: "A\\e[31mda"\n' + deep)
    Path("b.yaml").write_text(RIGHT)
    rows = regard("check", "a.yaml", "b.yaml").out.splitlines()
    assert rows[2].startswith("A[31mda")
    assert "Y[2,1,2]" in rows[2]


def test_several_answers_as_json_are_a_list_with_their_files(regard) -> None:  # type: ignore[no-untyped-def]
    Path("a.yaml").write_text(RIGHT)
    Path("b.yaml").write_text("given: [\n")
    found = json.loads(regard("check", "a.yaml", "b.yaml", "-q", "-f", "json").out)
    assert [each["file"] for each in found] == ["a.yaml", "b.yaml"]
    assert found[0]["name"] == "Ada"
    assert found[0]["counts"]["right"] == 1
    assert "not YAML" in found[1]["error"]


def test_progress_is_told_beside_the_table(regard) -> None:  # type: ignore[no-untyped-def]
    Path("a.yaml").write_text(RIGHT)
    assert "marking: 30 answers" in regard("check", *["a.yaml"] * 30).err
    assert regard("check", *["a.yaml"] * 30, "-q").err == ""
    assert regard("check", *["a.yaml"] * 3).err == ""


def test_a_new_problem_works_as_it_stands(regard) -> None:  # type: ignore[no-untyped-def]
    assert "regard work mine.yaml" in regard("new-problem", "mine.yaml").out
    assert regard("work", "mine.yaml").status == 0
    marked = json.loads(regard("check", "mine.yaml", "-f", "json").out)
    assert marked["first_wrong"] == {"step": "E", "cell": [3, 1]}
    assert {step["name"]: step["verdict"] for step in marked["steps"]}["A"] == "follows"


def test_a_new_problem_writes_over_nothing_unless_told_to(regard) -> None:  # type: ignore[no-untyped-def]
    Path("problem.yaml").write_text("mine")
    ran = regard("new-problem")
    assert (ran.status, Path("problem.yaml").read_text()) == (2, "mine")
    assert ran.err == "regard: problem.yaml is there already; name another file, or say --force to write over it\n"
    assert regard("new-problem", "--force").status == 0


def test_a_new_problem_names_every_function_and_layer(regard) -> None:  # type: ignore[no-untyped-def]
    from regard.worked.functions import FUNCTIONS
    from regard.worked.layers import LAYERS

    regard("new-problem")
    text = Path("problem.yaml").read_text(encoding="utf-8")
    assert [name for name in (*FUNCTIONS, *LAYERS) if not re.search(rf"\b{name}\b", text)] == []


def test_a_worksheet_goes_to_a_file_or_here(regard) -> None:  # type: ignore[no-untyped-def]
    assert regard("worksheet", "self-attention").out.startswith("# Self-attention")
    regard("worksheet", "self-attention", "--part", "key", "-o", "key.html")
    assert "<h1>Key: Self-attention</h1>" in Path("key.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["work", "self-atention"], "no such file, and no shipped problem of this name; did you mean self-attention?"),
        (["work", "missing.yaml"], "missing.yaml: no such file or directory"),
        (["work", "."], ".: is a directory"),
        (["work", "self-attention", "-f", "pdf"], "unknown format 'pdf'"),
        (["work", "self-attention", "-d", "7"], "digits: expected a whole number from 2 to 6; got 7"),
        (["work", "self-attention", "--only", "Z"], "unknown step 'Z'"),
        (["work", "self-attention", "-o", "no/folder/x.html"], "no/folder/x.html: cannot be written"),
        (["check", "missing.yaml"], "missing.yaml: no such file or directory"),
        (["check", "self-attention", "-f", "html"], "unknown format 'html'"),
        (["check", "empty"], "empty: no problem files in this folder (they end in .yaml or .yml)"),
        (["check", "unanswered"], "unanswered: no answers here"),
        (["worksheet", "self-attention", "--part", "all"], "unknown part 'all'"),
        (["worksheet", "self-attention", "-d", "1"], "digits: expected a whole number from 2 to 6; got 1"),
        (["new-problem", "no/folder/x.yaml"], "no/folder/x.yaml: cannot be written"),
        (["work", "latin.yaml"], "latin.yaml:2:9: not UTF-8, as a problem file is"),
        (["work", "big.yaml"], "big.yaml: a problem file has at most 500000 bytes; this one is larger"),
        (["check", "loop.yaml"], "loop.yaml:1:1: this is itself an answer; an answer names the problem it answers"),
        (["check", "far.yaml"], "far.yaml:1:10: problem: 'gone.yaml': no such file beside this one"),
    ],
)
def test_misuse_is_one_line_and_status_2(arguments: list[str], said: str, regard) -> None:  # type: ignore[no-untyped-def]
    Path("empty").mkdir()
    Path("unanswered").mkdir()
    Path("unanswered/a.yaml").write_text("given: {X: 1}\nsteps: {Y: X}\n")
    Path("latin.yaml").write_bytes("about: ü\ntitle: ".encode() + b"a\xe9")
    Path("big.yaml").write_bytes(b"#" * 500_001)
    Path("loop.yaml").write_text("problem: loop.yaml\nclaimed: {}\n")
    Path("far.yaml").write_text("problem: gone.yaml\nclaimed: {}\n")
    ran = regard(*arguments)
    assert ran.status == 2
    assert ran.err.startswith("regard: ")
    assert ran.err.count("\n") == 1
    assert said in ran.err


def test_a_problem_comes_through_a_pipe(regard) -> None:  # type: ignore[no-untyped-def]
    read, write = os.pipe()
    os.write(write, b"given: {X: [1, 2]}\nsteps: {Y: X * 2}\n")
    os.close(write)
    assert "Y = X · 2" in regard("work", f"/dev/fd/{read}").out
    os.close(read)


def test_the_wheel_has_the_problems_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import regard as package

    installed = tmp_path / "site" / "regard"
    (installed / "problems").mkdir(parents=True)
    monkeypatch.setattr(package, "__file__", str(installed / "__init__.py"))
    assert folder() == installed / "problems"


def test_the_rows_of_a_class_fit_the_terminal(tmp_path: Path) -> None:
    from regard.worked.classwork import answers, table

    name = "Somebody whose name is longer than all others"
    (tmp_path / "one.yaml").write_text(f"problem: self-attention\nname: {name}\nclaimed: {{E: 1, Q: [1, x]}}\n")
    (tmp_path / "two.yaml").write_text(
        f"title: t\nname: {name}\ngiven: {{s: 2}}\nsteps: {{scores_of_all: 's / sqrt(4)', x: 's * 2'}}\n"
        "claimed: {scores_of_all: 0.5}\n"
    )
    told = table(answers([tmp_path]))
    assert max(map(len, told.splitlines())) <= 80
    assert "divided by d instead of its root" in " ".join(told.split())
    assert "expected a number, came 'x'" in " ".join(told.split())
