"""Preparing: from files to shards, tokenizers and texts; killed, resumed, altered, repeated."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config import settings_from
from regard.data import gathering, inputs, pieces, steps
from regard.data.batches import Batches, BatchSettings
from regard.data.prepared import Prepared
from regard.data.preparing import prepare
from regard.data.readers.strips import WORDS
from regard.data.settings import DataSettings
from regard.support.errors import Failure, Misuse
from regard.text.settings import TokenizerSettings
from regard.text.tokenizer import Tokenizer
from tests.data.test_readers import digits


def settings(**values: Any) -> DataSettings:
    return settings_from({"tokenizer": {"kind": "characters"}, **values}, DataSettings)


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def pairs(path: Path, count: int, start: int = 0) -> str:
    """A TSV of pairs, no two of which share a side."""
    return write(path, [f"word{n} cat {n}\tWort{n} Katze {n}" for n in range(start, start + count)])


def prepared_of(folder: Path, **values: Any) -> Prepared:
    return prepare(settings(**values), folder / "out", quiet=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def lines_of(prepared: Prepared, split: str) -> list[int]:
    return [prepared.splits[split].origin(row).line for row in range(len(prepared.splits[split]))]


# What comes out


def test_pairs_become_numbers_that_read_as_the_pairs(tmp_path: Path) -> None:
    prepared = prepared_of(tmp_path, train={"tsv": pairs(tmp_path / "a.tsv", 50)}, dev_size=5)
    assert prepared.fresh
    assert prepared.dev is not None
    assert (len(prepared.train), len(prepared.dev)) == (45, 5)
    assert sorted(lines_of(prepared, "train") + lines_of(prepared, "dev")) == list(range(1, 51))
    for row, told in enumerate(prepared.texts("dev")):
        line = prepared.dev.origin(row).line
        assert told == {"source": f"word{line - 1} cat {line - 1}", "target": f"Wort{line - 1} Katze {line - 1}"}
        for side in ("source", "target"):
            tokens = prepared.dev.tokens(side, row)
            assert prepared.tokenizers[side].decode(tokens) == told[side]
            assert tokens[-1] == 3
    assert prepared.tokenizers["source"] is prepared.tokenizers["target"]
    vocabulary = prepared.tokenizers["source"].vocabulary
    assert prepared.sizes() == {"source": vocabulary, "target": vocabulary}
    assert (prepared.tests, prepared.names, prepared.pairs) == ((), (), ())
    with pytest.raises(ValueError, match=re.escape("expected one whose texts are kept (dev); got 'train'")):
        prepared.texts("train")


def test_given_dev_and_tests_are_taken_as_they_are(tmp_path: Path) -> None:
    tests = {
        "short": {"tsv": pairs(tmp_path / "s.tsv", 3, 200)},
        "long-one": {"tsv": pairs(tmp_path / "l.tsv", 4, 300)},
    }
    prepared = prepared_of(
        tmp_path, train=pairs(tmp_path / "a.tsv", 50), dev=pairs(tmp_path / "d.tsv", 7, 100), test=tests,
    )  # fmt: skip
    assert {name: len(each) for name, each in prepared.splits.items()} == {
        "train": 50,
        "dev": 7,
        "short": 3,
        "long-one": 4,
    }
    assert prepared.tests == ("short", "long-one")
    assert prepared.texts("short")[0]["source"] == "word200 cat 200"
    assert prepared.splits["dev"].files == prepared.train.files


@pytest.mark.parametrize("both_ways", [False, True])
def test_several_languages_have_a_tag_in_front_and_a_pair(tmp_path: Path, both_ways: bool) -> None:
    files = {"de": pairs(tmp_path / "de.tsv", 40), "nl": pairs(tmp_path / "nl.tsv", 40, start=100)}
    sources = [
        {"tsv": file, "languages": {"source": "en", "target": to}, "both_ways": both_ways} for to, file in files.items()
    ]
    prepared = prepared_of(tmp_path, train=sources, dev_size=4)
    assert prepared.pairs == (("en-de", "de-en", "en-nl", "nl-en") if both_ways else ("en-de", "en-nl"))
    assert prepared.dev is not None
    assert Counter(told["pair"] for told in prepared.texts("dev")) == dict.fromkeys(prepared.pairs, 2)
    for row, told in enumerate(prepared.texts("dev")):
        first, second = told["pair"].split("-")
        source = prepared.dev.tokens("source", row)
        assert source[0] == prepared.tokenizers["source"].tag(second)
        assert told["source"].startswith("word" if first == "en" else "Wort")
        assert prepared.tokenizers["source"].decode(source) == told["source"]
        assert prepared.tokenizers["target"].decode(prepared.dev.tokens("target", row)) == told["target"]
        assert prepared.pairs[prepared.dev.tokens("pair", row)[0]] == told["pair"]
    assert len(prepared.train) == (152 if both_ways else 76)
    batch = next(iter(Batches(prepared.train, BatchSettings(tokens=200))))
    assert batch.source is not None
    assert set(batch.source[:, 0].tolist()) <= set(prepared.tokenizers["source"].tags.values())


def test_target_tags_can_be_asked_for_or_not(tmp_path: Path) -> None:
    one = {"tsv": pairs(tmp_path / "a.tsv", 40), "languages": {"source": "en", "target": "de"}}
    assert prepared_of(tmp_path / "1", train=one).tokenizers["source"].languages == ()
    asked = prepared_of(tmp_path / "2", train=one, target_tags=True)
    assert asked.tokenizers["source"].languages == ("de",)
    assert asked.train.tokens("source", 0)[0] == asked.tokenizers["source"].tag("de")
    assert "pair" not in asked.columns
    other = {"tsv": pairs(tmp_path / "b.tsv", 40)}
    with pytest.raises(Misuse, match=r"b\.tsv: languages are missing, and the tag of the target's goes in front"):
        prepared_of(tmp_path / "3", train=[one, other], target_tags=True)


def test_each_side_may_have_a_tokenizer_of_its_own(tmp_path: Path) -> None:
    prepared = prepared_of(
        tmp_path, train=pairs(tmp_path / "a.tsv", 40), tokenizer={"kind": "characters", "joint": False}, dev_size=0
    )
    source, target = prepared.tokenizers["source"], prepared.tokenizers["target"]
    assert "K" in target.pieces
    assert "K" not in source.pieces
    assert (tmp_path / "out" / "source.json").exists()
    assert prepared.dev is None


def test_tokenizers_that_exist_are_used_and_checked(tmp_path: Path) -> None:
    Tokenizer.train(["word cat Wort Katze 0123456789"], TokenizerSettings(kind="characters")).save(tmp_path / "t.json")
    given = str(tmp_path / "t.json")
    prepared = prepared_of(tmp_path, train=pairs(tmp_path / "a.tsv", 40), tokenizer=given)
    assert prepared.tokenizers["source"] == Tokenizer.load(given)
    both = {"tsv": pairs(tmp_path / "a.tsv", 40), "languages": {"source": "en", "target": "de"}, "both_ways": True}
    with pytest.raises(Misuse, match=r"t\.json has no tag for de and en, which the targets need \(it has none\)"):
        prepared_of(tmp_path / "2", train=both, tokenizer=given)


def test_long_texts_end_a_piece_before_many_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "BYTES", 1000)
    prepared = prepared_of(tmp_path, train={"text": write(tmp_path / "a.txt", ["word " * 60] * 10)}, dev_size=0)
    assert [each["rows"] for each in prepared.train.manifest["shards"]] == [4, 4, 2]


def test_unknown_tokens_are_counted(tmp_path: Path) -> None:
    train = write(tmp_path / "a.tsv", ["a b\ta"] * 9)
    prepared = prepared_of(
        tmp_path, train=train, dev=write(tmp_path / "d.tsv", ["a x\tb"]), tokenizer={"kind": "words"}
    )
    assert "dev: 1 examples, 3 source tokens (33.33% unknown), 2 target tokens" in prepared.report


def test_the_sample_is_bounded_and_small_languages_weigh_more_with_a_temperature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "EXAMPLES", 150)
    seen: list[list[str]] = []
    real = Tokenizer.train.__func__  # type: ignore[attr-defined]

    def train(kind: type[Tokenizer], texts: Any, *rest: Any, **options: Any) -> Tokenizer:
        seen.append(list(texts))
        return real(kind, seen[-1], *rest, **options)  # type: ignore[no-any-return]

    monkeypatch.setattr(Tokenizer, "train", classmethod(train))
    files = {"de": pairs(tmp_path / "de.tsv", 900), "nl": pairs(tmp_path / "nl.tsv", 100, start=5000)}
    sources = [{"tsv": file, "languages": {"source": "en", "target": to}} for to, file in files.items()]
    for number, (temperature, small) in enumerate([(1, 20), (100, 99)]):
        prepared_of(tmp_path / str(number), train=sources, dev_size=0, sample=200, sample_temperature=temperature)
        numbers = [int(text.split()[-1]) for text in seen[-1] if text.startswith("word")]
        assert len(seen[-1]) == 400
        assert len(numbers) == len(set(numbers)) == 200
        assert sum(each >= 5000 for each in numbers) == small
        assert 300 < np.mean([each for each in numbers if each < 5000]) < 600
    prepared_of(tmp_path / "all", train=sources, dev_size=0, sample_temperature=100)
    often = Counter(seen[-1])
    assert {often[f"word{n} cat {n}"] for n in range(5000, 5100)} == {4, 5}
    assert {often[f"word{n} cat {n}"] for n in range(900)} == {0, 1}


# Every sort of data


def test_words_tags_and_spellings(tmp_path: Path) -> None:
    text = "The\tDET\ncat\tNOUN\n\nA\tDET\nfar-off\tADJ\n\n"
    (tmp_path / "a.tsv").write_text(text * 20)
    (tmp_path / "d.tsv").write_text("The\tDET\nfar\tX\n")
    prepared = prepared_of(
        tmp_path, train={"tagged": str(tmp_path / "a.tsv")}, dev={"tagged": str(tmp_path / "d.tsv")}, characters=5,
        tokenizer={"kind": "words", "split_punctuation": True},
    )  # fmt: skip
    assert prepared.names == ("ADJ", "DET", "NOUN", "X")
    assert prepared.sizes()["tags"] == 4
    assert prepared.sizes()["characters"] == 257
    assert "names that train never shows: X" in prepared.report
    assert prepared.texts("dev") == [{"source": ["The", "far"], "tags": ["DET", "X"]}]
    assert prepared.dev is not None
    assert prepared.dev.tokens("source", 0).tolist()[1:] == [1, 3]
    batch = next(iter(Batches(prepared.train, shuffle=False)))
    assert batch.source is not None
    assert batch.tags is not None
    assert batch.source.shape == (len(prepared.train), 3, 6)
    spelled = {tuple(each - 1 for each in row if each) for row in batch.source[:, :, 1:].flatten(0, 1).tolist()}
    assert {bytes(each) for each in spelled} == {b"The", b"cat", b"A", b"far-o", b""}
    assert batch.source[:, -1, 1:].sum() == 0
    assert [prepared.names[tag] for tag in batch.tags[0]] in (["DET", "NOUN"], ["DET", "ADJ"])


def test_words_of_several_tokens_are_counted_and_spelled_token_by_token(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("don't go!\tX Y\n" * 20)
    prepared = prepared_of(
        tmp_path, train={"tsv": str(tmp_path / "a.tsv"), "columns": {"source": 1, "tags": 2}}, characters=3
    )
    assert prepared.train.tokens("words", 0).tolist() == [5, 3]
    spelled = prepared.train.tokens("characters", 0)
    assert [bytes((row[row > 0] - 1).tolist()).decode() for row in spelled] == [*"don'tgo!", ""]


def test_labels_and_series_and_images_and_text_alone(tmp_path: Path) -> None:
    labelled = prepared_of(
        tmp_path / "labels", train={"labelled": write(tmp_path / "l.tsv", ["pos\tgood", "neg\tbad"] * 9)}
    )
    assert (labelled.names, labelled.sizes()["labels"]) == (("neg", "pos"), 2)
    assert labelled.train.tokens("label", 0).tolist() == [1]
    series = prepared_of(
        tmp_path / "series", train={"series": write(tmp_path / "s.tsv", ["up\t1,2 3,4", "no\t5,6"] * 9)}
    )
    assert series.sizes() == {"input_width": 2, "labels": 2}
    assert series.tokenizers == {}
    assert series.train.tokens("source", 0).tolist() == [[1, 2], [3, 4]]
    text = prepared_of(tmp_path / "texts", train={"text": write(tmp_path / "t.txt", ["one", "two"] * 9)})
    assert list(text.columns) == ["target"]
    strips = prepared_of(tmp_path / "strips", train={**digits(tmp_path), "count": 60}, dev_size=5)
    assert strips.sizes()["image"] == (1, 4, 0)
    assert strips.dev is not None
    words = {word: number * 10 + 1 for number, word in enumerate(WORDS["en"].split())}
    for row, told in enumerate(strips.texts("dev")):
        columns = strips.dev.tokens("source", row)
        assert columns.shape[1] == 4
        shown = [each for each in columns[:, 0].tolist() if each]
        assert shown[::3] == [words[word] for word in told["target"].split()]
    batch = next(iter(Batches(strips.train, BatchSettings(examples=3, tokens=999))))
    assert batch.source is not None
    assert batch.source.shape[:3] == (3, 1, 4)


def test_images_of_other_heights_in_another_source_are_told(tmp_path: Path) -> None:
    from tests.data.test_readers import idx

    first = digits(tmp_path)
    (tmp_path / "x").mkdir()
    second = {
        "images": idx(tmp_path / "x" / "i", np.zeros((2, 5, 3), np.uint8)),
        "captions": write(tmp_path / "c", ["a", "b"]),
    }
    with pytest.raises(Misuse, match=r"5 pixels of height with 1 channels in the source; .* has 4 pixels of height"):
        prepared_of(tmp_path, train=[{**first, "count": 9}, second])


# What is left out, and the counts


def test_everything_that_is_left_out_is_counted_and_told(tmp_path: Path) -> None:
    lines = [f"good {n}\tgut {n}" for n in range(100)]
    lines += [
        "\tleer",
        "no tab",
        "good 3\tgut 3",
        "good 7\tgut 7",
        "good 7\tanders",
        f"{'long ' * 30}\tlang",
        "x\0y\tz",
    ]
    lines += ["dev one\tdev eins", "dev one\tdev zwei", "x " * 12 + "\tx"]
    prepared = prepared_of(
        tmp_path, train=write(tmp_path / "a.tsv", lines), dev=write(tmp_path / "d.tsv", ["Dev  one\tdev eins"]),
        clean={"duplicates": "pair", "max_words": 20, "held_out": "side"}, max_tokens=20, on_bad="skip",
        skipped=str(tmp_path / "left.tsv"),
    )  # fmt: skip
    assert len(prepared.train) == 101
    assert lines_of(prepared, "train") == [*range(1, 101), 105]
    for line in [
        "train: 101 examples", "110 read from",
        "3 cannot be used: 1 an empty side, 1 control characters, 1 wrong number of columns",
        "6 left out: 2 also in dev or a test, 2 seen before, 1 too long, 1 too many tokens",
        "1 training examples stand in it too, 2 share a side with it",
    ]:  # fmt: skip
        assert line in prepared.report
    head, *lines = (tmp_path / "left.tsv").read_text().splitlines()
    assert head == "# left out by regard prepare: file, line, reason, text"
    left = [line.split("\t") for line in lines]
    assert sorted(int(line) for _, line, *_ in left) == [101, 102, 103, 104, 106, 107, 108, 109, 110]
    assert left[0] == [str(tmp_path / "a.tsv"), "101", "an empty side: the source is empty", "\\tleer"]
    assert Counter(reason.split(":")[0] for _, _, reason, _ in left) == {
        "an empty side": 1, "wrong number of columns": 1, "control characters": 1, "too long": 1, "seen before": 2,
        "also in dev or a test": 2, "too many tokens": 1,
    }  # fmt: skip


@pytest.mark.parametrize("side", ["\u200b", "\ufeff\ufeff", "\u00ad", " \u200d\u2060 "])
def test_a_side_of_which_nothing_can_be_seen_is_empty(tmp_path: Path, side: str) -> None:
    name = write(tmp_path / "a.tsv", ["a\tb", f"a\t{side}"])
    with pytest.raises(Misuse, match=re.escape(f"{name}:2: an empty side: the target is empty but for characters")):
        prepared_of(tmp_path, train=name)
    shown = write(tmp_path / "b.tsv", [f"a{n}\tb\u200d{n}\ufe0f" for n in range(20)])
    assert len(prepared_of(tmp_path, train=shown, dev_size=0).train) == 20


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.tsv", "the data are read from it"),
        ("also-a.tsv", "the data are read from it"),
        ("folder", "expected a file to write to, and this is a folder"),
        ("none/left.tsv", "there is no folder"),
        ("precious.txt", "it exists and is no list of lines that were left out; it is not written over"),
        ("out/manifest.json", "prepared data go there"),
    ],
)
def test_the_list_of_what_was_left_out_is_never_written_over_something_else(
    tmp_path: Path, name: str, said: str
) -> None:
    train = pairs(tmp_path / "a.tsv", 50)
    (tmp_path / "also-a.tsv").hardlink_to(tmp_path / "a.tsv")
    (tmp_path / "folder").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "precious.txt").write_text("precious")
    before = contents(tmp_path)
    with pytest.raises(Misuse, match=re.escape(f"data.skipped: {tmp_path / name}: {said}")):
        prepared_of(tmp_path, train=train, on_bad="skip", skipped=str(tmp_path / name))
    assert contents(tmp_path) == before


def test_a_list_of_what_was_left_out_is_replaced_and_one_that_was_deleted_comes_back(tmp_path: Path) -> None:
    train, left = write(tmp_path / "a.tsv", ["no tab", "\tb"] * 20 + ["a b\tc d"]), tmp_path / "left.tsv"
    chosen = {"train": {"tsv": train}, "on_bad": "skip", "skipped": str(left), "dev_size": 0}
    assert prepared_of(tmp_path, **chosen).fresh
    told = left.read_bytes()
    assert told.count(b"\n") == 1 + 40
    assert not prepared_of(tmp_path, **chosen).fresh
    left.unlink()
    assert prepared_of(tmp_path, **chosen).fresh
    assert left.read_bytes() == told
    write(tmp_path / "a.tsv", ["\tb", "a b\tc d"])
    assert prepared_of(tmp_path, **chosen).fresh
    assert left.read_text().splitlines()[1:] == [f"{train}\t1\tan empty side: the source is empty\t\\tb"]


def test_the_first_bad_line_stops_unless_told_otherwise(tmp_path: Path) -> None:
    name = write(tmp_path / "a.tsv", ["a\tb", "\tb"])
    with pytest.raises(Misuse, match=re.escape(f"{name}:2: an empty side: the source is empty. (data.on_bad: skip")):
        prepared_of(tmp_path, train=name)


@pytest.mark.parametrize(("what", "kept"), [("pair", 5), ("source", 3), ("target", 4)])
def test_duplicates_are_of_the_side_that_is_named(tmp_path: Path, what: str, kept: int) -> None:
    lines = ["a\tx", "a\tx", "a\ty", "b\tx", "c\tz", "c\tw"]
    prepared = prepared_of(tmp_path, train=write(tmp_path / "a.tsv", lines), clean={"duplicates": what})
    assert len(prepared.train) == kept


def test_dev_and_test_are_never_cleaned_but_their_form_is(tmp_path: Path) -> None:
    same = write(tmp_path / "d.tsv", ["e\u0301 same words here\tx"] * 3)
    prepared = prepared_of(
        tmp_path, train=pairs(tmp_path / "a.tsv", 30), dev=same, max_tokens=20,
        clean={"normal_form": "NFC", "duplicates": "pair", "max_words": 3},
    )  # fmt: skip
    assert [told["source"] for told in prepared.texts("dev")] == ["\u00e9 same words here"] * 3
    assert "3 texts changed by the normal form" in prepared.report


def test_nothing_of_dev_or_test_is_in_training_in_any_language_or_direction(tmp_path: Path) -> None:
    """English sentences with several translations, into two languages, in files of either order, read both ways."""
    random = np.random.default_rng(0)
    de = [f"satz {a} mm\tsentence {b} mm" for a, b in random.integers(0, 1500, (600, 2))]
    nl = [f"sentence {a} mm\tzin {b} mm" for a, b in random.integers(0, 1500, (600, 2))]
    sources = [
        {"tsv": write(tmp_path / "de.tsv", de), "languages": {"source": "de", "target": "en"}, "both_ways": True},
        {"tsv": write(tmp_path / "nl.tsv", nl), "languages": {"source": "en", "target": "nl"}, "both_ways": True},
    ]
    prepared = prepared_of(tmp_path, train=sources, dev_size=80, test_size=40)
    decode = prepared.tokenizers["source"].decode
    sides = {
        split: {decode(each.tokens(side, row)) for row in range(len(each)) for side in ("source", "target")}
        for split, each in prepared.splits.items()
    }
    assert prepared.tests == ("test",)
    assert len(prepared.splits["dev"]) > 40
    assert len(prepared.splits["test"]) > 20
    assert sides["dev"].isdisjoint(sides["train"])
    assert sides["test"].isdisjoint(sides["train"])
    assert sides["test"].isdisjoint(sides["dev"])
    assert sum(map(len, prepared.splits.values())) == 2400


# Again, in several processes, after damage, after death


def test_nothing_changed_is_nothing_to_do(tmp_path: Path) -> None:
    chosen = settings(train={"tsv": pairs(tmp_path / "a.tsv", 50)})
    assert prepare(chosen, tmp_path / "out", quiet=True).fresh
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.name != ".lock"}
    os.utime(tmp_path / "a.tsv")
    assert not prepare(chosen, tmp_path / "out", quiet=True).fresh
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert prepare(chosen.changed(seed=1), tmp_path / "out", quiet=True).fresh
    pairs(tmp_path / "a.tsv", 51)
    assert prepare(chosen, tmp_path / "out", quiet=True).fresh


def test_what_an_earlier_preparation_made_and_this_one_does_not_is_gone(tmp_path: Path) -> None:
    train = pairs(tmp_path / "a.tsv", 50)
    prepared_of(
        tmp_path,
        train=train,
        test={"old": pairs(tmp_path / "t.tsv", 5, 100)},
        tokenizer={"joint": False, "kind": "characters"},
    )
    prepared_of(tmp_path, train=train, dev_size=0)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"train", "tokenizer.json", "manifest.json", ".lock"}


@pytest.mark.parametrize("file", ["train/00000.safetensors", "dev/texts.jsonl", "dev/manifest.json", "tokenizer.json"])
def test_altered_files_are_named_and_made_again(tmp_path: Path, file: str, capfd: pytest.CaptureFixture[str]) -> None:
    chosen = settings(train={"tsv": pairs(tmp_path / "a.tsv", 50)})
    prepare(chosen, tmp_path / "out", quiet=True)
    before = contents(tmp_path / "out")
    path = tmp_path / "out" / file
    altered = bytearray(path.read_bytes())
    altered[-3] ^= 2
    path.write_bytes(altered)
    with pytest.raises(Failure, match=re.escape(f"{path}: altered since it was written")):
        Prepared(tmp_path / "out").verify()
    assert prepare(chosen, tmp_path / "out").fresh
    assert f"{path}: altered since it was written; preparing again" in capfd.readouterr().err
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize(
    "file", ["train/manifest.json", "dev/manifest.json", "train/00000.safetensors", "manifest.json", "tokenizer.json"]
)
def test_missing_files_are_made_again(tmp_path: Path, file: str) -> None:
    chosen = settings(train={"tsv": pairs(tmp_path / "a.tsv", 50)})
    prepare(chosen, tmp_path / "out", quiet=True)
    before = contents(tmp_path / "out")
    (tmp_path / "out" / file).unlink()
    assert prepare(chosen, tmp_path / "out", quiet=True).fresh
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("place", ["train/notes.txt", "old/notes.txt", "dev/mine/notes.txt"])
def test_a_file_of_ones_own_among_the_prepared_is_named_and_never_deleted(tmp_path: Path, place: str) -> None:
    train = pairs(tmp_path / "a.tsv", 50)
    prepared_of(tmp_path, train=train, test={"old": pairs(tmp_path / "t.tsv", 5, 100)})
    mine = tmp_path / "out" / place
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("precious")
    before = contents(tmp_path / "out")
    split, name = place.split("/")[:2]
    with pytest.raises(Misuse, match=re.escape(f"out/{split}: prepared data would go there") + f".*it holds {name}"):
        prepared_of(tmp_path, train=train, seed=1)
    assert contents(tmp_path / "out") == before


def test_a_folder_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "out" / "train").mkdir(parents=True)
    (tmp_path / "out" / "train" / "corpus.txt").write_text("precious")
    with pytest.raises(Misuse, match=r"out/train: prepared data would go there, and it is something else"):
        prepared_of(tmp_path, train=pairs(tmp_path / "a.tsv", 50))
    assert (tmp_path / "out" / "train" / "corpus.txt").read_text() == "precious"


def two_sources(tmp_path: Path) -> DataSettings:
    """Several pieces of several sources, with something of everything."""
    source = {"languages": {"source": "en", "target": "de"}, "both_ways": True}
    train = [
        {"tsv": pairs(tmp_path / "a.tsv", 130), **source},
        {"tsv": write(tmp_path / "b.tsv", [f"x{n % 9}\ty{n % 9}" for n in range(30)]), **source},
    ]
    test = {"tsv": pairs(tmp_path / "t.tsv", 8, 500), **source}
    return settings(
        train=train, test=test, dev_size=10, clean={"duplicates": "pair"}, skipped=str(tmp_path / "left.tsv")
    )


def test_any_number_of_processes_write_the_same_bytes_and_no_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "EXAMPLES", 20)
    monkeypatch.setattr(steps, "ALONE", 0)
    chosen = two_sources(tmp_path)
    for count in (1, 2):
        prepare(chosen, tmp_path / f"out{count}", processes=count, quiet=True)
    assert contents(tmp_path / "out1") == contents(tmp_path / "out2")
    assert len(list((tmp_path / "out1" / "train").glob("*.safetensors"))) == 8
    code = f"""
import sys
from regard.config import settings_from
from regard.data.preparing import prepare
from regard.data.settings import DataSettings
prepare(DataSettings.model_validate_json({chosen.model_dump_json()!r}), {str(tmp_path / "out3")!r}, quiet=True)
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(contents(tmp_path / "out3")) <= set(contents(tmp_path / "out1"))


class Killed(BaseException):
    """As if the process had ended there."""


def test_killed_at_any_instant_a_rerun_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each change of a name, each removal, and each new folder, over data that were prepared before."""
    monkeypatch.setattr(pieces, "EXAMPLES", 90)
    monkeypatch.setattr(os, "fsync", lambda file: None)
    chosen = two_sources(tmp_path)
    old = settings(train={"tsv": pairs(tmp_path / "old.tsv", 20)}, test={"tsv": pairs(tmp_path / "o.tsv", 5, 50)})
    prepare(old, tmp_path / "old", quiet=True)
    prepare(chosen, tmp_path / "whole", quiet=True)
    expected, left = contents(tmp_path / "whole"), (tmp_path / "left.tsv").read_bytes()
    out = tmp_path / "out"
    for moment in range(1, 200):
        shutil.copytree(tmp_path / "old", out)
        if _until(moment, monkeypatch, lambda: prepare(chosen, out, quiet=True)):
            break
        assert prepare(chosen, out, quiet=True).texts("dev")
        assert contents(out) == expected
        assert (tmp_path / "left.tsv").read_bytes() == left
        shutil.rmtree(out)
    assert 25 < moment < 199


def _until(moment: int, monkeypatch: pytest.MonkeyPatch, work: Any) -> bool:
    """Do the work until so many changes of names, removals and new folders; whether it ended before."""
    count = 0

    def counting(real: Any) -> Any:
        def called(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count >= moment:
                raise Killed("here")
            return real(*arguments, **options)

        return called

    with monkeypatch.context() as patch:
        for name in ("replace", "rename", "unlink", "rmdir", "mkdir"):
            patch.setattr(os, name, counting(getattr(os, name)))
        try:
            work()
        except Killed:
            return False
    return True


def test_a_process_killed_outright_goes_on_behind_what_it_had_done(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
from regard.data import pieces, steps, sharding
from regard.data.preparing import prepare
from regard.data.settings import DataSettings
pieces.EXAMPLES, steps.ALONE = 20, 0
settings = DataSettings.model_validate_json({two_sources(tmp_path).model_dump_json()!r})
real, count = sharding.Worker.do, 0
def do(self, number):
    global count
    count += 1
    if count == 4:
        (self.work / "out" / "train" / ".00003.safetensors.abc.part").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, number)
    print("shard", number, flush=True)
if sys.argv[2] == "kill":
    sharding.Worker.do = do
print("fresh", prepare(settings, sys.argv[1], processes=1, quiet=True).fresh)
"""

    def run(folder: str, how: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, str(tmp_path / folder), how], capture_output=True, text=True)

    killed = run("out", "kill")
    assert killed.returncode == -9
    assert killed.stdout.split("\n")[:3] == ["shard 0", "shard 1", "shard 2"]
    note = tmp_path / "out" / ".preparing" / "done" / "00001.json"
    stamp = note.stat().st_mtime_ns
    shard = (tmp_path / "out" / ".preparing" / "out" / "train" / "00001.safetensors").stat().st_mtime_ns
    assert stamp >= shard
    assert run("out", "on").stdout == "fresh True\n"
    assert (tmp_path / "out" / "train" / "00001.safetensors").stat().st_mtime_ns == shard
    run("whole", "on")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_sources_that_were_read_whole_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = two_sources(tmp_path)

    def killed(*_: Any) -> None:
        raise Killed("here")

    with monkeypatch.context() as patch:
        patch.setattr(steps, "shard_all", killed)
        with pytest.raises(Killed, match="here"):
            prepare(chosen, tmp_path / "out", quiet=True)
    monkeypatch.setattr(gathering, "reading", killed)
    monkeypatch.setattr(Tokenizer, "train", killed)
    assert prepare(chosen, tmp_path / "out", quiet=True).fresh


def test_a_process_that_ends_badly_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "EXAMPLES", 20)
    monkeypatch.setattr(steps, "ALONE", 0)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(Failure, match="a process that writes shards ended: it was killed"):
        prepare(two_sources(tmp_path), tmp_path / "out", processes=2, quiet=True)


def test_what_a_process_ended_of_is_told_and_what_is_done_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "EXAMPLES", 20)
    monkeypatch.setattr(steps, "ALONE", 0)
    chosen, real = two_sources(tmp_path), steps.shard_all

    def damaged(work: Path, *rest: Any) -> None:
        (work / "read" / "train-000" / "00002.json").write_text("{")
        real(work, *rest)

    monkeypatch.setattr(steps, "shard_all", damaged)
    with pytest.raises(Failure, match=r"a process that writes shards ended: json\.decoder\.JSONDecodeError"):
        prepare(chosen, tmp_path / "out", processes=2, quiet=True)
    done = {path.name for path in (tmp_path / "out" / ".preparing" / "done").iterdir()}
    assert {"00000.json", "00001.json"} & done
    assert "00002.json" not in done


def test_much_that_is_read_through_tells_how_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(inputs, "LARGE", 1_000_000)
    (tmp_path / "a.tsv").write_text("".join(f"{'long ' * 500}{n}\tb\n" for n in range(1000)))
    chosen = {"train": str(tmp_path / "a.tsv"), "tokenizer": {"kind": "characters"}}
    prepare(chosen, tmp_path / "out")
    assert "checking what there is: 2 MB in" in capfd.readouterr().err
    prepare(chosen, tmp_path / "out")
    assert re.search(r"what there is: 2 MB in .*\nverifying: 5 MB in", capfd.readouterr().err)


def test_no_example_to_train_on_is_told(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"data\.train: there is no example to train on in .*a\.tsv"):
        prepared_of(tmp_path, train=write(tmp_path / "a.tsv", []))
    with pytest.raises(Misuse, match="no example is left to train on; 40 were read, and 40 had too many tokens"):
        prepared_of(tmp_path, train=pairs(tmp_path / "b.tsv", 40), max_tokens=1, dev_size=0)


def test_a_folder_that_is_not_prepared_is_told(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="no prepared data here"):
        Prepared(tmp_path)
    prepared_of(tmp_path, train=pairs(tmp_path / "a.tsv", 40))
    with pytest.raises(Misuse, match="not a folder of prepared data, but one split of it"):
        Prepared(tmp_path / "out" / "train")


# The command


def regard(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "regard", *arguments], capture_output=True, text=True, **options)


def test_the_command_prepares_tells_and_does_nothing_twice(tmp_path: Path) -> None:
    train = pairs(tmp_path / "a.tsv", 50)
    (tmp_path / "c.yaml").write_text(
        f"data:\n  train: {train}\n  tokenizer: {{kind: words}}\noutput: {tmp_path / 'model'}\n"
    )
    ran = regard("prepare", str(tmp_path / "c.yaml"), "--set", "data.dev_size=5")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"{tmp_path / 'model' / 'data'}: prepared\ntrain: 45 examples")
    assert re.search(r"^reading: 50 examples in [\d.]+ s$", ran.stderr, re.M)
    assert re.search(r"^writing shards: 50 examples in [\d.]+ s$", ran.stderr, re.M)
    again = regard("prepare", str(tmp_path / "c.yaml"), "--set", "data.dev_size=5")
    assert "nothing changed, nothing to do" in again.stdout
    assert again.stderr == ""
    elsewhere = regard("prepare", str(tmp_path / "c.yaml"), "--output", str(tmp_path / "else"), "--quiet")
    assert (elsewhere.returncode, elsewhere.stdout, elsewhere.stderr) == (0, "", "")
    assert json.loads((tmp_path / "else" / "manifest.json").read_text())["splits"]["train"]["examples"] == 45


@pytest.mark.parametrize("name", ["big", "12", "a b: {c"])
def test_the_command_takes_a_configuration_of_corpora_alone_where_the_folder_is_given(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "c.yaml").write_text(f"data: {{train: {pairs(tmp_path / 'a.tsv', 50)}, tokenizer: {{kind: words}}}}\n")
    ran = regard("prepare", "c.yaml", "--output", name, "--quiet", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(Prepared(tmp_path / name).train) == 45
    without = regard("prepare", "c.yaml", cwd=tmp_path)
    assert without.returncode == 2
    assert "output: missing" in without.stderr


def test_the_command_tells_bad_input_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"a\tb\nc\xff\td\n")
    (tmp_path / "c.yaml").write_text(f"data: {{train: {tmp_path / 'a.tsv'}}}\noutput: {tmp_path / 'model'}\n")
    ran = regard("prepare", str(tmp_path / "c.yaml"))
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].startswith(
        f"regard: {tmp_path / 'a.tsv'}:2: not UTF-8: byte 0xff at place 2 is not UTF-8"
    )
    assert "Traceback" not in ran.stderr
    for setting in ("data.seed=-1", "data.train={digits: a, labels: b, seed: -1}"):
        ran = regard("prepare", str(tmp_path / "c.yaml"), "--set", setting)
        assert ran.returncode == 2
        assert re.search(r"^regard: .*seed: expected greater than or equal to 0, came -1", ran.stderr)
