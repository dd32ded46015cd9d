"""Pictures: the right label on the right tick, the right number in the right cell, and what cannot be shown said."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.evaluation.assessment import assess
from regard.evaluation.gravity import bare, pulled
from regard.evaluation.pictures import fonts as choice
from regard.evaluation.pictures import saved
from regard.evaluation.pictures.curves import by_length, over_steps
from regard.evaluation.pictures.fonts import PictureWarning, add, fonts, scripts
from regard.evaluation.pictures.heat import across, alignment, grid
from regard.evaluation.pictures.images import looked
from regard.evaluation.pictures.moving import Moved, moved, plane
from regard.evaluation.pictures.terminal import clusters, heat
from regard.evaluation.reading import Examples
from regard.support.errors import Misuse

WEIGHTS = np.array([[0.7, 0.25, 0.05], [0.0, 0.1, 0.9]])
ROWS, COLUMNS = ["le", "chat"], ["the", "black", "cat"]


def test_labels_stand_on_their_own_ticks_and_numbers_in_their_cells() -> None:
    picture = alignment(WEIGHTS, ROWS, COLUMNS, title="a cat")
    axes = picture.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == COLUMNS
    assert [label.get_text() for label in axes.get_yticklabels()] == ROWS
    assert list(axes.get_xticks()) == [0, 1, 2]
    [image] = axes.get_images()
    np.testing.assert_array_equal(image.get_array(), WEIGHTS)
    assert image.get_clim() == (0, 1)
    cells = {tuple(map(int, text.get_position())): text.get_text() for text in axes.texts}
    assert cells[(0, 0)] == ".70"
    assert cells[(2, 1)] == ".90"
    assert cells[(0, 1)] == "0"
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first word of the output is at the top
    assert not alignment(np.full((20, 3), 1 / 3), [str(n) for n in range(20)], COLUMNS).axes[0].texts


def test_maps_of_several_layers_stand_in_a_row_for_each() -> None:
    assert across(maps=36, heads=6) == 6
    assert across(maps=16, heads=8) == 8
    assert [across(maps=heads, heads=heads) for heads in (1, 3, 4, 6, 8, 12)] == [1, 3, 4, 3, 4, 4]


def test_a_grid_has_a_map_for_each_head_under_its_name() -> None:
    tables = np.stack([WEIGHTS, 1 - WEIGHTS, WEIGHTS / 2])
    picture = grid(tables, ROWS, COLUMNS, names=["one", "two", "three"], across=2)
    maps = [axes for axes in picture.axes if axes.get_images()]
    assert [axes.get_xlabel() for axes in maps] == ["one", "two", "three"]
    np.testing.assert_array_equal(maps[1].get_images()[0].get_array(), 1 - WEIGHTS)
    with pytest.raises(ValueError, match=r"weights: expected \[maps, 2, 3\]; got \[2, 3\]"):
        grid(WEIGHTS, ROWS, COLUMNS)


@pytest.mark.parametrize("draw", [alignment, heat])
def test_weights_that_are_not_of_these_words_are_refused(draw: Any) -> None:
    with pytest.raises(ValueError, match=r"weights: expected \[2, 2\], as there are words; got \[2, 3\]"):
        draw(WEIGHTS, ROWS, COLUMNS[:2])
    with pytest.raises(ValueError, match=r"not finite"):
        alignment(WEIGHTS * np.nan, ROWS, COLUMNS)


def test_pictures_are_saved_the_same_each_time_in_the_form_of_their_names(tmp_path: Path) -> None:
    for name, begins in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")):
        first = saved(alignment(WEIGHTS, ROWS, COLUMNS), tmp_path / name).read_bytes()
        assert first.startswith(begins)
        assert saved(alignment(WEIGHTS, ROWS, COLUMNS), tmp_path / name).read_bytes() == first
    assert ">black<" in (tmp_path / "a.svg").read_text()  # letters stay letters
    with pytest.raises(Misuse, match=r"a.gif: pictures are written as png, svg, pdf"):
        saved(alignment(WEIGHTS, ROWS, COLUMNS), tmp_path / "a.gif")


def test_a_script_that_no_font_has_is_said_on_the_picture_and_in_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = choice._known()
    monkeypatch.setattr(choice, "_known", lambda: {choice.PLAIN: plain[choice.PLAIN]})
    with pytest.warns(PictureWarning, match=r"no font here has Bengali: install one \(such as Noto Sans Bengali\)"):
        picture = alignment([[1.0]], ["যাই"], ["go"])
    assert "no font here has Bengali" in picture.get_supxlabel().replace("\n", " ")
    assert fonts(["Größe, naïve, привет, αβγ"]) == ((choice.PLAIN,), "")


def test_fonts_are_chosen_by_the_letters_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    held = {choice.PLAIN: set(map(ord, "abc")), "Noto Sans Bengali": set(map(ord, "যাই")), "Other": set(map(ord, "যা"))}
    monkeypatch.setattr(choice, "_known", lambda: held)
    monkeypatch.setattr(choice, "_letters_of", lambda name: frozenset(held.get(name, ())))
    found = fonts(["abc যাই"]) if choice.joins() else None
    if found is not None:
        assert found == ((choice.PLAIN, "Noto Sans Bengali"), "")
    monkeypatch.setattr(choice, "joins", lambda: False)
    with pytest.warns(PictureWarning, match=r"draws Bengali letter by letter, unjoined; version 3.11 joins them"):
        fonts(["যাই"])
    assert scripts(map(ord, "aযह")) == ["Bengali", "Devanagari", "Latin"]


def test_a_file_that_is_no_font_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.ttf").write_text("no font")
    with pytest.raises(Misuse, match=r"x.ttf: not a font that can be read"):
        add(tmp_path / "x.ttf")


def test_blocks_stand_under_the_letters_of_their_words() -> None:
    lines = heat(WEIGHTS, ROWS, COLUMNS).splitlines()
    assert lines[-3] == "  le ██▒▒░░"
    assert lines[-2] == "chat ··░░██"
    upright = [
        "".join(line[5 + 2 * n] if len(line) > 5 + 2 * n else " " for line in lines[:-3]).strip() for n in range(3)
    ]
    assert upright == COLUMNS
    narrow = heat(WEIGHTS, ROWS, [*COLUMNS[:2], "cat"], width=9)
    assert len(narrow.split("\n\n")) == 1  # no fewer than four columns side by side
    wide = heat(np.tile(WEIGHTS, 3), ROWS, COLUMNS * 3, width=15)
    assert len(wide.split("\n\n")) == 2


def test_marks_stay_with_their_letters() -> None:
    assert clusters("बत्ती") == ["ब", "त्ती"]
    assert clusters("é") == ["é"]
    assert clusters("") == []
    lines = heat(np.array([[1.0, 0.0]]), ["যাই"], ["बत्ती", "中文"]).splitlines()
    assert [line.strip()[:1] for line in lines[:2]] == ["ब", "त"]


def test_the_plane_keeps_the_most_of_the_differences() -> None:
    dice = np.random.default_rng(0)
    vectors = dice.normal(size=(30, 5)) * [5, 3, 0.1, 0.1, 0.1]
    centre, axes, kept = plane(vectors)
    decomposition = pytest.importorskip("sklearn.decomposition").PCA(2).fit(vectors)
    np.testing.assert_allclose(np.abs(axes.T), np.abs(decomposition.components_), atol=1e-8)
    assert kept == pytest.approx(decomposition.explained_variance_ratio_.sum())
    np.testing.assert_allclose(centre, vectors.mean(0))
    assert plane(vectors[:, :2])[2] == 1.0


def test_attention_without_weights_draws_words_to_those_they_are_like() -> None:
    vectors = {"money": np.array([2.0, 0.0]), "river": np.array([0.0, 2.0]), "bank": np.array([1.0, 1.0])}
    one, other = pulled([["money", "bank"], ["river", "bank"]], vectors)
    scores = np.array([[4, 2], [2, 2]]) / np.sqrt(2)
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(one.weights, weights)
    np.testing.assert_allclose(one.after, weights @ np.array([[2, 0], [1, 1]]))
    assert one.after[1, 0] > 1 > other.after[1, 0]  # "bank" goes towards money here, towards the river there
    np.testing.assert_array_equal(one.before[1], other.before[1])
    [still] = bare([["money", "bank"]], vectors)
    np.testing.assert_array_equal(still.before, still.after)
    with pytest.raises(Misuse, match=r"vectors: there are none for tree"):
        pulled([["money", "tree"]], vectors)


def test_words_are_drawn_where_they_went() -> None:
    before = np.array([[0.0, 0.0], [1.0, 1.0]])
    picture = moved([Moved(("a", "b"), before, before + 1), Moved(("b", "c"), before, before - 1)])
    axes = picture.axes[0]
    words = [(text.get_text(), tuple(text.xy)) for text in axes.texts if text.get_text()]  # type: ignore[attr-defined]
    assert words == [("a", (1, 1)), ("b", (2, 2)), ("b", (-1, -1)), ("c", (0, 0))]
    sides = [text.get_horizontalalignment() for text in axes.texts if text.get_text()]
    assert sides == ["left", "left", "right", "right"]  # not on the arrow that comes to it
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a b", "b c"]  # type: ignore[union-attr]


def test_words_that_come_close_together_stay_readable() -> None:
    start = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]])
    near = np.array([[4.0, 4.0], [4.1, 4.0], [4.0, 4.1], [4.6, 4.0]])
    crowd = [Moved(("money", "bank", "grows", "slowly"), start, near), Moved(("river", "bank"), start[:2], near[:2])]
    picture = moved(crowd)
    picture.draw_without_rendering()
    boxes = [text.get_window_extent() for text in picture.axes[0].texts if text.get_text()]
    assert len(boxes) == 6
    assert [(a, b) for a in range(6) for b in range(a) if boxes[a].overlaps(boxes[b])] == []
    marks = picture.axes[0].transData.transform(np.concatenate([near, near[:2]]))
    assert not [box for box in boxes for x, y in marks if box.contains(x, y)]


def test_a_picture_in_which_nothing_moves_says_so() -> None:
    before = np.array([[0.0, 0.0], [1.0, 1.0]])
    label = moved([Moved(("a", "b"), before, before)]).axes[0].get_xlabel()
    assert label == "without attention nothing moves; this plane keeps 100% of the differences"
    assert "hollow: before attention" in moved([Moved(("a", "b"), before, before + 1)]).axes[0].get_xlabel()


def test_an_image_is_shown_once_for_each_word() -> None:
    weights = np.zeros((2, 4, 6))
    weights[0, :, :3] = 0.5
    picture = looked(np.ones((4, 6)), weights, ["five", "two"])
    titled = [axes for axes in picture.axes if axes.get_title()]
    assert [axes.get_title() for axes in titled] == ["five", "two"]
    np.testing.assert_array_equal(titled[0].get_images()[1].get_array(), weights[0])
    with pytest.raises(ValueError, match=r"weights: expected \[2, 4, 5\]; got \[2, 4, 6\]"):
        looked(np.ones((4, 5)), weights, ["five", "two"])


def test_curves_by_length_are_hollow_where_there_are_few() -> None:
    sources = tuple(" ".join(["word"] * n) for n in [5] * 40 + [15] * 3)
    examples = Examples("made", sources, tuple((each,) for each in sources), "text")
    found = [assess(name, examples, list(sources)) for name in ("one", "two")]
    axes = by_length(found).axes[0]
    marks = [line for line in axes.get_lines() if line.get_marker() not in ("None", "")]
    assert [str(mark.get_markerfacecolor()) == "white" for mark in marks] == [False, True, False, True]
    assert axes.get_ylabel() == "BLEU"
    assert [label.get_text().split("\n")[1] for label in axes.get_xticklabels()][:2] == ["40 sentences", "3 sentences"]
    steps = over_steps({"train": [(1, 3.0), (2, 2.0)], "dev": [(2, 2.5)]}).axes[0]
    assert [list(map(float, line.get_ydata())) for line in steps.get_lines()] == [[3.0, 2.0], [2.5]]  # type: ignore[arg-type]


def test_the_highest_mark_by_length_stands_whole_in_the_picture() -> None:
    sources = tuple(" ".join(["word"] * n) for n in [5] * 40 + [15])
    examples = Examples("made", sources, tuple((each,) for each in sources), "text")
    said = ["wrong", "wrong", *sources[2:]]  # somewhat lower where they are short
    axes = by_length([assess("one", examples, said)]).axes[0]
    axes.get_figure().draw_without_rendering()  # type: ignore[union-attr]
    highest = max(float(line.get_ydata()[0]) for line in axes.get_lines())  # type: ignore[arg-type, index]
    room = axes.bbox.y1 - axes.transData.transform((0, highest))[1]
    assert room > 3.5 / 72 * axes.get_figure().dpi  # type: ignore[union-attr]
    assert [label.get_text().split("\n")[1] for label in axes.get_xticklabels()][1] == "1 sentence"


def test_no_picture_asks_for_a_screen() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from regard.evaluation.pictures.heat import alignment; alignment([[1.0]], ['a'], ['b']);"
        "print('matplotlib.pyplot' in sys.modules, 'torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.sub(r"\s+", " ", run.stdout).strip() == "False False"
