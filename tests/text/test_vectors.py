"""Words as numbers: codes, one-hot, counts, TF-IDF, and vectors from files."""

import gzip
import math
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.support.errors import Misuse
from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer
from regard.text.vectors import (
    Vectors,
    bag_of_words,
    character_codes,
    correlation,
    cosine,
    one_hot,
    picture,
    plane,
    tf_idf,
)

FEW = settings(deadline=None, derandomize=True, max_examples=60)
TEXTS = ["mat cat mat", "cat rat rat"]
DOG = [0.3645, 0.9507, 0.7320, 0.5987]
CAT = [0.2949, 0.7559, 0.6172, 0.4943]


def some() -> Vectors:
    return Vectors(["cat", "dog", "sing"], [[1, 2, 0], [1, 1.5, 0], [0, -1, 3]])


def test_a_word_is_the_codes_of_its_characters() -> None:
    assert character_codes(["cat", "", "é🙂"]).tolist() == [[99, 97, 116], [0, 0, 0], [233, 128578, 0]]
    with pytest.raises(ValueError, match="expected a list of words; got one text"):
        character_codes("cat")


def test_one_hot_as_in_the_lecture_and_no_word_is_like_another() -> None:
    vocabulary = ["mat", "cat", "rat"]
    assert one_hot(TEXTS[0].split(), vocabulary).tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0]]
    codes = one_hot(vocabulary, vocabulary)
    assert (codes @ codes.T).tolist() == np.eye(3).tolist()
    with pytest.raises(ValueError, match="unknown word 'ratt'; did you mean 'rat'"):
        one_hot(["ratt"], vocabulary)
    with pytest.raises(ValueError, match="'cat' stands in it twice"):
        one_hot(["cat"], ["cat", "mat", "cat"])


def test_a_bag_of_words_counts_or_says_whether() -> None:
    vocabulary = ["mat", "cat", "rat"]
    assert bag_of_words(TEXTS, vocabulary).dense.tolist() == [[2, 1, 0], [0, 1, 2]]
    assert bag_of_words(TEXTS, vocabulary, occurs=True).dense.tolist() == [[1, 1, 0], [0, 1, 1]]
    learned = bag_of_words(["Don't stop, don't!", "স্কুলে যাই"])
    assert learned.words == ("don't", "stop", "যাই", "স্কুলে")
    assert learned.column("don't").tolist() == [2, 0]
    assert str(bag_of_words(TEXTS)).splitlines() == ["   cat  mat  rat", "1    1    2    0", "2    1    0    2"]
    with pytest.raises(ValueError, match="unknown word 'ca'; did you mean 'cat'"):
        bag_of_words(TEXTS).column("ca")
    with pytest.raises(ValueError, match="expected a list of texts; got one text"):
        bag_of_words("mat cat mat")
    with pytest.raises(ValueError, match="texts: empty vocabulary"):
        bag_of_words(["", "..."])


def test_tf_idf_by_either_formula() -> None:
    plain = tf_idf(TEXTS, ["mat", "cat", "rat"], formula="plain").dense
    assert plain == pytest.approx(np.array([[2 / 3 * math.log(2), 0, 0], [0, 0, 2 / 3 * math.log(2)]]))
    smooth = tf_idf(TEXTS, ["mat", "cat", "rat"]).dense
    rare = math.log(3 / 2) + 1  # of mat and rat, in one text of two; cat's is 1
    assert smooth[0] == pytest.approx(np.array([2 * rare, 1, 0]) / math.hypot(2 * rare, 1))
    never = tf_idf(TEXTS, ["cat", "dog"], formula="plain")
    assert never.dense.tolist() == [[0, 0], [0, 0]]
    with pytest.raises(ValueError, match="unknown formula 'plane'; did you mean 'plain'"):
        tf_idf(TEXTS, formula="plane")  # type: ignore[arg-type]


def test_cosine_and_correlation_of_the_lectures_dog_and_cat() -> None:
    assert correlation(DOG, CAT) == pytest.approx(0.9968, abs=5e-5)
    assert correlation(DOG, CAT) == pytest.approx(np.corrcoef(DOG, CAT)[0, 1])
    assert cosine(DOG, CAT) == pytest.approx(np.dot(DOG, CAT) / np.linalg.norm(DOG) / np.linalg.norm(CAT))
    assert cosine([[1, 0], [0, 2]], [0, 3]).tolist() == [0, 1]
    assert cosine([0, 0], [1, 1]) == 0


@pytest.mark.parametrize("measure", [cosine, correlation])
def test_vectors_of_different_width_have_no_likeness(measure: Any) -> None:
    for a, b, shapes in [([1], [1, 2], "[1] and [2]"), (3, [1], "[] and [1]"), ([], [], "[0] and [0]")]:
        with pytest.raises(ValueError, match=re.escape(f"expected vectors with as many numbers each; got {shapes}")):
            measure(a, b)
    with pytest.raises(ValueError, match=re.escape("on both sides, or one on one; got [2, 1] and [3, 1]")):
        measure(np.ones((2, 1)), np.ones((3, 1)))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_vectors_of_what_is_no_number_are_refused_and_not_likened(wrong: float) -> None:
    for measure in (cosine, correlation):
        with pytest.raises(ValueError, match="a and b: expected finite numbers"):
            measure([1, 2, wrong], [1, 2, 3])
    with pytest.raises(ValueError, match="matrix: expected finite numbers; the vector of 'b' has others"):
        Vectors(["a", "b"], [[1, 2], [wrong, 4]])
    with pytest.raises(ValueError, match="to: expected finite numbers"):
        Vectors(["a", "b"], [[1, 2], [3, 4]]).nearest([1, wrong])


def test_the_nearest_words_point_the_same_way() -> None:
    near = some().nearest("cat")
    assert [each.word for each in near] == ["dog", "sing"]
    assert near[0].cosine == pytest.approx(4 / math.sqrt(5 * 3.25))
    assert [each.word for each in some().nearest([0, 0, 1], 2)] == ["sing", "cat"]
    assert [each.word for each in some().nearest("cat", without=["dog"])] == ["sing"]
    assert some().nearest("cat", 0) == []
    with pytest.raises(ValueError, match=re.escape("expected a word or a vector [3]; got [2]")):
        some().nearest([1, 2])
    with pytest.raises(KeyError, match="no vector for 'Cat'; there is one for 'cat'"):
        some().nearest("Cat")
    with pytest.raises(KeyError, match="unknown word 'sings'; did you mean 'sing'"):
        some()["sings"]


@FEW
@given(st.integers(2, 40), st.integers(1, 50), st.integers(0, 3))
def test_nearest_is_what_sorting_all_gives(words: int, count: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).standard_normal((words, 4)).astype(np.float32)
    vectors = Vectors([f"w{n}" for n in range(words)], matrix)
    expected = sorted(range(1, words), key=lambda n: -cosine(matrix[0], matrix[n]))[:count]
    assert [each.word for each in vectors.nearest("w0", count)] == [f"w{n}" for n in expected]


@pytest.mark.parametrize("binary", [False, True])
def test_word2vec_files_are_read_as_they_are_written(tmp_path: Path, binary: bool) -> None:
    some().save(tmp_path / "v", binary=binary)
    read = Vectors.read(tmp_path / "v")
    assert read.words == some().words
    assert np.array_equal(read.matrix, some().matrix)
    (tmp_path / "v.gz").write_bytes(gzip.compress((tmp_path / "v").read_bytes()))
    assert Vectors.read(tmp_path / "v.gz", words={"dog"}).words == ("dog",)
    assert Vectors.read(tmp_path / "v", most=2).words == ("cat", "dog")


def test_binary_word2vec_without_line_ends_is_read_too(tmp_path: Path) -> None:
    rows = {"cat": (1.5, -2.0), "né": (0.25, 8.0)}
    path = tmp_path / "v.bin"
    path.write_bytes(b"2 2\n" + b"".join(f"{w} ".encode() + struct.pack("<2f", *row) for w, row in rows.items()))
    read = Vectors.read(path)
    assert {word: tuple(read[word].tolist()) for word in read.words} == rows


def test_glove_files_with_spaces_in_words_and_words_twice(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("the 0.5 -1\n. . . 2 3e-1\nthe 9 9\n\n7 1 1")
    read = Vectors.read(path)
    assert read.words == ("the", ". . .", "7")
    assert read.matrix.tolist() == np.array([[0.5, -1], [2, 0.3], [1, 1]], np.float32).tolist()


def test_words_that_are_left_out_are_counted_and_told(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_bytes(b"the 1 2\nthe 9 9\n\xff 1 1\n\xfe 2 2\nthe 3 3\ncat 1 3\n")
    read = Vectors.read(path)
    assert read.words == ("the", "cat")
    assert read.left_out == {"a word that stood before": 2, "a word that is not UTF-8": 2}
    assert "left out: 2 × a word that stood before; left out: 2 × a word that is not UTF-8" in repr(read)
    assert some().left_out == {}


def test_words_that_a_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    for word, binary, said in [
        ("New York", True, "has white space in it, which the binary form cannot hold"),
        ("\nfirst", True, "has white space in it"),
        ("a\nb", False, "has a line end in it"),
        ("\ud800", False, "has half a surrogate pair"),
    ]:
        with pytest.raises(ValueError, match=said):
            Vectors([word], [[1.0, 2.0]]).save(tmp_path / "v", binary=binary)
        assert not (tmp_path / "v").exists()
    Vectors(["New York"], [[1.0, 2.0]]).save(tmp_path / "v")
    assert Vectors.read(tmp_path / "v").words == ("New York",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"1 2\na 1 2\n\nb 1 2\n", "damaged: its first line says 1 words, and there are more"),
        (
            b"1 2\na " + struct.pack("<2f", 1, 2) + b"\nb " + struct.pack("<2f", 1, 2),
            "says 1 words, and there are more",
        ),
        (b"", "there is nothing in it"),
        (b"word only\n", "v:1: expected a word and its numbers"),
        (b"a 1 2\nb 1\n", "v:2: expected a word and 2 numbers; came 1 numbers: 'b 1'"),
        (b"a 1 2\nb 1 x\n", "v:2: expected 2 numbers behind the word: 'b 1 x'"),
        (b"a 1 2\nb 1 nan\n", "v:2: expected finite numbers"),
        (b"a 1 2\nb 1e99 2\n", "v:2: expected finite numbers"),
        (b"3 0\na\nb\nc\n", "v:1: damaged: it says that a vector has 0 numbers"),
        (b"3 999999999999\na 1 2\n", "v:1: damaged: it says that a vector has 999,999,999,999 numbers"),
        (b"3 2\na 1 2\nb 1 2\n", "cut short: it says 3 words, and there are 2"),
        (b"2 2\na " + struct.pack("<2f", 1, 2) + b"b " + b"\0\0", "1 of 2 words are whole"),
        (b"1 2\na " + struct.pack("<2f", 1, math.inf), "the vector of word 1, 'a', is not finite"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(Misuse, match=re.escape(said)):
        Vectors.read(tmp_path / "v")


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="none: there is no such file"):
        Vectors.read(tmp_path / "none")


def test_words_stand_once_and_have_a_row_each() -> None:
    with pytest.raises(ValueError, match=re.escape("matrix: expected [2, width]; got [1, 3]")):
        Vectors(["a", "b"], [[1, 2, 3]])
    with pytest.raises(ValueError, match="'a' stands among them twice"):
        Vectors(["a", "a"], [[1], [2]])


@pytest.mark.parametrize("kind", ["words", "byte_bpe", "bpe"])
def test_a_vocabulary_gets_a_row_a_token_and_the_coverage_is_told(kind: str) -> None:
    texts = ["Dog cat dog cat", "sing song", "Dog cat sing song"] * 9
    tokenizer = Tokenizer.train(texts, TokenizerSettings(kind=kind, vocabulary=320), languages=["es"])
    found = some().mapped(tokenizer)
    assert found.matrix.shape == (tokenizer.vocabulary, 3)
    for text, word in [("cat", "cat"), ("Dog", "dog"), ("sing", "sing")]:
        number = tokenizer.encode(text)[0]
        assert found.known[number]
        assert found.matrix[number].tolist() == some()[word].tolist()
    assert not found.known[tokenizer.encode("song")[0]]
    assert not found.known[:4].any()
    assert not found.matrix[0].any()
    if kind == "words":
        assert str(found.coverage) == "4 of 5 words (80.0%), 1 of them by small letters; without: song"
        assert found.coverage.of_texts({"cat": 6, "song": 2}) == 0.75


def test_rows_without_a_vector_are_drawn_like_the_others_by_the_seed() -> None:
    known = Vectors([f"w{n}" for n in range(500)], np.random.default_rng(0).normal(3, 0.5, (500, 4)))
    words = [*known.words, *(f"x{n}" for n in range(500))]
    found = known.mapped(words, seed=1)
    assert (found.coverage.words, found.coverage.found, found.coverage.share) == (1000, 500, 0.5)
    assert found.matrix[500:].mean() == pytest.approx(3, abs=0.1)
    assert found.matrix[500:].std() == pytest.approx(0.5, abs=0.1)
    assert np.array_equal(found.matrix, known.mapped(words, seed=1).matrix)
    assert not np.array_equal(found.matrix[500:], known.mapped(words, seed=2).matrix[500:])
    assert np.array_equal(found.matrix[:500], known.matrix)


GROUPS = {
    "animals": [f"a{n}" for n in range(6)],
    "plants": [f"p{n}" for n in range(6)],
    "verbs": [f"v{n}" for n in range(6)],
}


def three_groups() -> Vectors:
    random = np.random.default_rng(0)
    centres = random.standard_normal((3, 20))
    rows = np.repeat(centres, 6, axis=0) + 0.2 * random.standard_normal((18, 20))
    return Vectors([word for each in GROUPS.values() for word in each], rows)


@pytest.mark.parametrize("by", ["pca", "tsne"])
def test_words_of_one_kind_lie_together_in_the_plane(by: str) -> None:
    from sklearn.metrics import silhouette_score

    points = plane(three_groups(), three_groups().words, by)  # type: ignore[arg-type]
    assert points.shape == (18, 2)
    assert silhouette_score(points, np.repeat([0, 1, 2], 6)) > 0.6


def texts_of_kinds(count: int = 3000) -> list[str]:
    """Sentences in which words of one kind stand where others of that kind may."""
    draw = np.random.default_rng(0)
    forms = ["the {animals} {verbs} the food", "a {plants} grows in soil", "they {verbs} and see the {animals}"]
    return [forms[n % 3].format(**{name: draw.choice(words) for name, words in GROUPS.items()}) for n in range(count)]


def test_words_in_like_company_learn_like_vectors() -> None:
    from sklearn.metrics import silhouette_score

    learned = Vectors.learn(texts_of_kinds(), 8)
    words = [word for each in GROUPS.values() for word in each]
    assert silhouette_score(learned.of(words), np.repeat([0, 1, 2], 6)) > 0.6
    assert all(near.word.startswith("a") for near in learned.nearest("a0", 5))
    assert np.array_equal(learned.matrix, Vectors.learn(texts_of_kinds(), 8).matrix)
    assert learned.words[0] == "the"


def test_company_is_counted_by_distance_and_weighed_against_chance() -> None:
    """By hand: a b c a b, window 2. N_ab = 1 + 1 + 1/2, N_ac = 1/2 + 1, N_bc = 1 + 1/2."""
    from scipy.sparse import csr_matrix

    from regard.text.vectors import learning

    near = learning._near([["a", "b", "c", "a", "b"]], {"a": 0, "b": 1, "c": 2}, 2)
    assert near.toarray().tolist() == [[0, 2.5, 1.5], [2.5, 0, 1.5], [1.5, 1.5, 0]]
    found = learning._information(csr_matrix(near)).toarray()
    sums, smooth = [4, 4, 3], [4**0.75, 4**0.75, 3**0.75]
    expected = [
        [max(0, math.log(n * sum(smooth) / (sums[i] * smooth[j]))) if n else 0 for j, n in enumerate(row)]
        for i, row in enumerate(near.toarray().tolist())
    ]
    assert found == pytest.approx(np.array(expected))


def test_vectors_wider_than_there_are_words_cannot_be_learned() -> None:
    with pytest.raises(ValueError, match="width: expected fewer than the 2 words that come 5 times or more; got 2"):
        Vectors.learn(["a b"] * 5, 2)
    with pytest.raises(ValueError, match="expected a list of texts; got one text"):
        Vectors.learn("a b c", 2)


def test_the_picture_names_every_word_once_in_its_groups_colour(tmp_path: Path) -> None:
    figure = picture(three_groups(), GROUPS, tmp_path / "words.svg")
    axes = figure.axes[0]
    assert [each.get_text() for each in axes.texts] == list(three_groups().words)
    assert [each.get_text() for each in axes.get_legend().get_texts()] == list(GROUPS)
    assert len({tuple(each.get_facecolor()[0]) for each in axes.collections}) == 3
    assert "<svg" in (tmp_path / "words.svg").read_text()
    with pytest.raises(ValueError, match="expected three or more to lay out; got 2"):
        picture(three_groups(), {"animals": ["a0", "a1"]})
    with pytest.raises(ValueError, match="unknown projection 'pcs'; did you mean 'pca'"):
        plane(three_groups(), ["a0", "p0", "v0"], "pcs")  # type: ignore[arg-type]
