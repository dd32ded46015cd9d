"""In the terminal: fits the width, has its colours only where they are seen, leaves nothing out without saying so."""

import math
import re

import pytest
import torch
from rich.cells import cell_len

from regard.tracing.derivation import Derivation
from regard.tracing.index import whole
from tests.tracing.render.samples import Builder, attention, heads, masked, shapes

WIDE = (*"ab", *["日本語の長い言葉です"] * 3)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def test_a_small_problem_is_written_out_whole() -> None:
    lines = attention().text(width=80).splitlines()
    at = lines.index(next(line for line in lines if line.startswith("A = softmax(M)")))
    assert lines[at].split("  ")[-1].strip() == "3 × 3 · rows are queries, columns keys"
    assert [line.split() for line in lines[at + 1 : at + 5]] == [
        ["how", "are", "you"],
        ["how", "1", "×", "×"],
        ["are", "0.1015", "0.8985", "×"],
        ["you", "0.3875", "0.1760", "0.4364"],
    ]
    assert lines[at + 5].strip() == "A[2, 0]: 0.3875 ≈ e^0.3756 / (e^0.3756 + e^(-0.4135) + e^0.4944)"
    assert lines[-1] == "× is blocked: nothing may be attended to there, and the weight is 0."


@pytest.mark.parametrize("width", [24, 40, 80, 200])
@pytest.mark.parametrize(
    "derivation",
    [attention(), attention(30, 40), heads(), shapes(), attention(5, 3).with_axes({"X": (WIDE, None)}), masked()],
    ids=["small", "large", "heads", "shapes", "wide", "traced"],
)  # fmt: skip
@pytest.mark.parametrize("color", [False, True])
def test_no_line_is_wider_than_the_terminal(derivation: Derivation, width: int, color: bool) -> None:
    text = derivation.text(width=width, color=color)
    assert max(cell_len(ESCAPE.sub("", line)) for line in text.splitlines()) <= width


def test_colours_are_there_only_when_asked_for_or_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not ESCAPE.search(attention().text())  # nobody watches a test
    assert not ESCAPE.search(attention().text(color=False))
    coloured = attention().text(color=True)
    assert "\x1b[" in coloured
    assert [line.rstrip() for line in ESCAPE.sub("", coloured).splitlines()] == attention().text(
        color=False
    ).splitlines()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert ESCAPE.search(attention().text())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not ESCAPE.search(attention().text())


def test_weights_have_a_ground_to_be_read_on_and_blocked_cells_none() -> None:
    text = attention().text(color=True, only="A", width=80)
    assert re.search(r"\x1b\[38;(2;0;0;0;48;2;254;232;56|5;16;48;5;221)m +1 \x1b", text)  # black on the end of cividis
    assert re.search(r"\x1b\[2m +×", text)
    assert re.search(r"48;(2|5);[\d;]+m *-", attention().text(color=True, only="E", width=80))


def test_a_weight_of_nothing_is_blocked_only_where_its_score_is() -> None:
    to = Builder()
    to.softmax("A", to.add("E", torch.tensor([[0.0, -500.0, -math.inf]])))
    assert to.derivation().text(only="A").splitlines()[2].split() == ["0", "1", "0", "×"]
    given = to.steps[-1]
    to.made("B", given.value, whole(given.position, given.shape), [given], known_kind="weights")
    assert to.derivation().text(only="B").splitlines()[2].split() == ["0", "1", "0", "×"]


def test_digits_are_as_asked() -> None:
    for digits in (2, 3, 6):
        assert f"{float(attention()['A'].value[2, 0]):.{digits}f}" in attention().text(digits, "A")
    with pytest.raises(ValueError, match="digits: expected a whole number from 2 to 6; got 9"):
        attention().text(9)


def test_a_big_matrix_is_cut_and_a_slice_of_it_can_be_asked_for() -> None:
    derivation = attention(30, 40)
    text = derivation.text(width=80)
    assert text.count("…") > 10
    assert len(text.splitlines()) < 200
    chosen = derivation.text(only="O[20:22, 5:7]", width=80).splitlines()
    assert chosen[1].split() == ["O[20:22,", "5:7]", "2", "×", "2"]
    assert chosen[2].split() == ["5", "6"]
    row = chosen[3].split()
    assert row == ["how", *(derivation.why("O", 20, column).text.split()[0] for column in (5, 6))]
    assert chosen[5].strip().startswith("O[20, 5]: ")


def test_slices_left_out_are_counted_and_one_is_named_that_can_be_asked_for() -> None:
    text = heads(4, 3, 4).text(width=80)
    assert "8 more slices are left out; ask for one by name, as A[3, 2]" in text
    assert heads(4, 3, 4).text(only="A[3, 2]", width=80).splitlines()[1].split()[:2] == ["A[3,", "2]"]


def test_values_left_out_are_said_to_be() -> None:
    back = Derivation.from_json(attention().to_json(largest=9))
    assert "its values were left out" not in back.text()
    back = Derivation.from_json(attention(4, 3).to_json(largest=11))
    assert "4 × 3 · its values were left out" in back.text(only="Q", width=80)


def test_many_parameters_are_named_and_not_shown() -> None:
    text = attention(4, 30).text(width=100)
    assert "Also given, and shown when asked for by name: X (4 × 30), W_Q (30 × 30)" in text
    assert "W_Q is a parameter" in attention(4, 30).text(only="W_Q")


def test_the_terminal_says_how_wide_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in ((60, 60), (10, 24)):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert max(map(cell_len, attention().text().splitlines())) <= width
        assert attention().text() == attention().text(width=width)


def test_a_terminal_too_narrow_for_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="width: expected at least 24 columns; got 12"):
        attention().text(width=12)


def test_every_kind_of_number_is_shown() -> None:
    text = shapes().text(width=120)
    for words in ("no cells", "9007199254740993", "True  False", "∞  -∞  NaN", "(1 + 2i)", "was made by aten.fft"):
        assert words in text
