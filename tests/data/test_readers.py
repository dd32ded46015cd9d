"""Readers: what becomes an example, and what is told of what does not."""

import bz2
import gzip
import json
import lzma
import os
import random
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from regard import prepare
from regard.config import settings_from
from regard.data.readers import Bad, Example, reading, tagged
from regard.data.readers.spans import Span, spans_of, tags_of
from regard.data.readers.strips import WORDS
from regard.data.settings import DataSettings, several
from regard.data.sources import Source
from regard.support.errors import Failure, Misuse


def source_of(**source: Any) -> Source:
    return several(settings_from({"train": source}, DataSettings).train)[0]


def read(**source: Any) -> list[Example | Bad]:
    with reading(source_of(**source)) as (found, _):
        return list(found)


def fields(found: list[Example | Bad]) -> list[tuple[Any, ...]]:
    return [each.fields for each in found if isinstance(each, Example)]


def bad(found: list[Example | Bad]) -> list[tuple[int, str, str]]:
    return [(each.line, each.reason, each.said) for each in found if isinstance(each, Bad)]


def write(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


# Two files


def test_two_files_pair_line_by_line(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a", "one\ntwo\x85two\n"), write(tmp_path / "b", gzip.compress(b"eins\r\nzwei"))
    found = read(source=source, target=target)
    assert found == [Example(1, ("one", "eins")), Example(2, ("two\x85two", "zwei"))]


def test_a_line_that_is_no_utf8_is_told_with_its_own_file(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a", "one\ntwo\nx"), write(tmp_path / "b", b"eins\nzw\xff\ndrei")
    found = read(source=source, target=target)
    assert found[1] == Bad(2, "not UTF-8", "byte 0xff at place 3 is not UTF-8", "zw\\xff", file=1)
    assert len(fields(found)) == 2


def test_files_of_different_length_are_told_with_the_line_where_they_part(tmp_path: Path) -> None:
    """A line of the target is missing; everything behind it is shifted by one."""
    words = [f"{'long ' * (n % 7)}sentence {n}{'?' if n % 3 else '.'}" for n in range(200)]
    source = write(tmp_path / "a", "\n".join(words))
    target = write(tmp_path / "b", "\n".join(word for n, word in enumerate(words) if n != 120))
    said = f"{source} has 200 lines and {target} has 199; line by line they must be translations of one another. "
    with pytest.raises(Misuse, match=re.escape(said + "They seem to part at line 121:") + r"\n.*sentence 120\."):
        read(source=source, target=target)


@pytest.mark.parametrize(
    ("source_lacks", "target_lacks", "first"),
    [([], [120, 700], 121), ([], [120, 300, 550, 800], 121), ([120], [400, 401], 121), ([300], [120, 121, 122], 121)],
)
def test_where_lines_are_missing_in_several_places_the_first_is_told(
    tmp_path: Path, source_lacks: list[int], target_lacks: list[int], first: int
) -> None:
    draw = random.Random(1)
    words = [f"{'long ' * draw.randrange(9)}sentence{draw.choice('?.!')}" for n in range(1000)]
    files = [
        write(tmp_path / name, "\n".join(word for n, word in enumerate(words) if n not in lacks))
        for name, lacks in (("a", source_lacks), ("b", target_lacks))
    ]
    with pytest.raises(Misuse, match=rf"They seem to part at line {first}:"):
        read(source=files[0], target=files[1])


def test_a_file_that_is_only_longer_is_told_with_its_first_line_alone(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a", "same\n" * 9), write(tmp_path / "b", "same\n" * 12)
    with pytest.raises(Misuse, match=re.escape(f"{target}:10 is the first line without a partner")):
        read(source=source, target=target)


def test_a_missing_file_is_told_with_the_nearest_that_is_there(tmp_path: Path) -> None:
    write(tmp_path / "corpus.en", "x")
    with pytest.raises(Misuse, match=r"corpus\.em: there is no such file; did you mean .*corpus\.en"):
        read(source=str(tmp_path / "corpus.em"), target=str(tmp_path / "corpus.en"))


# Lines


def test_columns_by_number_and_by_name(tmp_path: Path) -> None:
    name = write(tmp_path / "a.tsv", "id\ten\tde\n1\tone\teins\n2\ttwo\tzwei\n")
    assert fields(read(tsv=name, columns={"source": 2, "target": 3}))[1:] == [("one", "eins"), ("two", "zwei")]
    by_name = read(tsv=name, columns={"source": "de", "target": "en"})
    assert by_name == [Example(2, ("eins", "one")), Example(3, ("zwei", "two"))]
    with pytest.raises(Misuse, match=r"a\.tsv:1: unknown column 'dee'; did you mean 'de'"):
        read(tsv=name, columns={"source": "dee", "target": "en"})


def test_a_line_with_other_columns_is_told(tmp_path: Path) -> None:
    name = write(tmp_path / "a.tsv", "a\tb\nc\nd\te\tf\ng\th\n")
    found = read(tsv=name)
    assert bad(found) == [
        (2, "wrong number of columns", "1 column, expected 2 as in the first line"),
        (3, "wrong number of columns", "3 columns, expected 2 as in the first line"),
    ]
    assert fields(found) == [("a", "b"), ("g", "h")]


def test_words_and_tags_in_a_line_each(tmp_path: Path) -> None:
    name = write(tmp_path / "a.tsv", "the cat\tDET NOUN\tDT NN\n")
    assert fields(read(tsv=name, columns={"source": 1, "tags": 2})) == [(["the", "cat"], ["DET", "NOUN"])]


def test_labels_and_texts_alone(tmp_path: Path) -> None:
    name = write(tmp_path / "a", "pos\tgood film\nneg\tbad\tfilm\n")
    found = read(labelled=name)
    assert fields(found) == [("good film", "pos")]
    assert bad(found) == [(2, "wrong number of columns", "3 columns, expected 2")]
    assert fields(read(text=name)) == [("pos\tgood film",), ("neg\tbad\tfilm",)]


# Records


def test_json_lines(tmp_path: Path) -> None:
    lines = ['{"translation": {"en": "a", "de": "b"}}', "[1]", '{"translation": {"en": "a"}}', "{", '"' + "[" * 9]
    found = read(
        jsonl=write(tmp_path / "a", "\n".join(lines)), columns={"source": "translation.en", "target": "translation.de"}
    )
    assert fields(found) == [("a", "b")]
    assert [(line, reason) for line, reason, _ in bad(found)] == [
        (2, "not a JSON object"), (3, "a field that is missing or no text"), (4, "not a JSON object"),
        (5, "not a JSON object"),
    ]  # fmt: skip
    assert bad(found)[1][2] == "the field 'translation.de' is missing, expected text"


def test_a_key_that_stands_twice_is_a_bad_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl", '{"source": "a", "source": "b", "target": "c"}\n{"source": "d", "target": "e"}\n'
    )
    found = read(jsonl=path)
    assert fields(found) == [("d", "e")]
    assert bad(found) == [(1, "not a JSON object", "the key 'source' stands in it twice")]


def test_json_nested_too_deeply_is_a_bad_line_and_no_crash(tmp_path: Path) -> None:
    found = read(jsonl=write(tmp_path / "a", "[" * 200_000))
    assert bad(found) == [(1, "not a JSON object", "nested too deeply")]


def test_labels_of_records_may_be_numbers_and_tags_are_lists(tmp_path: Path) -> None:
    name = write(tmp_path / "a", '{"text": "x", "label": 3}\n{"text": "x", "label": true}\n{"text": 5, "label": "a"}')
    found = read(jsonl=name, columns={"source": "text", "label": "label"})
    assert fields(found)[0] == ("x", "3")
    assert bad(found)[-1][2] == "the field 'text' is 5, expected text"
    name = write(tmp_path / "b", '{"w": ["a", "b"], "t": ["X", "Y"]}\n{"w": "a b", "t": ["X", "Y"]}')
    found = read(jsonl=name, columns={"source": "w", "tags": "t"})
    assert fields(found) == [(["a", "b"], ["X", "Y"])]
    assert bad(found)[0][2] == "the field 'w' is 'a b', expected a list of texts"


def test_parquet(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    pairs = [{"en": "a", "de": "b"}, {"en": "c", "de": None}]
    parquet.write_table(pyarrow.table({"id": [1, 2], "translation": pairs}), path)
    columns = {"source": "translation.en", "target": "translation.de"}
    found = read(parquet=str(path), columns=columns)
    assert found[0] == Example(1, ("a", "b"))
    assert bad(found) == [
        (2, "a field that is missing or no text", "the field 'translation.de' is missing, expected text")
    ]
    with pytest.raises(Misuse, match="unknown field 'translatoin'; did you mean 'translation'"):
        read(parquet=str(path), columns={"source": "translatoin.en", "target": "translation.de"})
    with pytest.raises(Misuse, match="not a Parquet file that can be read"):
        read(parquet=write(tmp_path / "b.parquet", "text"))
    packed = tmp_path / "packed.parquet"
    for packer in (gzip, lzma, bz2):
        packed.write_bytes(packer.compress(path.read_bytes()))
        assert read(parquet=str(packed), columns=columns) == found
    packed.write_bytes(gzip.compress(path.read_bytes())[:-9])
    with pytest.raises(Failure, match=r"packed\.parquet: cut short: the compressed data end"):
        read(parquet=str(packed), columns=columns)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell how much memory was used")
def test_parquet_whose_rows_are_one_group_is_not_held_whole(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    path, texts = tmp_path / "a.parquet", [os.urandom(1000).hex() for _ in range(25_000)]
    parquet.write_table(pyarrow.table({"source": texts, "target": texts}), path, row_group_size=25_000)
    code = (
        "import pyarrow.parquet, sys; from pathlib import Path; from regard.data.sources import Parquet;"
        "from regard.data.readers import reading;"
        "most = lambda: int(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]) * 1024;"
        "before = most()\nwith reading(Parquet(parquet=sys.argv[1])) as (found, _): count = sum(1 for _ in found)\n"
        "print(count, most() - before)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    count, more = map(int, run.stdout.split())
    assert count == 25_000
    assert more < path.stat().st_size  # it is 70 MB for a file of any size; held whole, 1.7 times its size


def test_a_dataset_by_name_with_its_classes_by_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])})
    held = datasets.Dataset.from_dict({"text": ["good", "bad"], "label": [1, 0]}, features=features)
    asked = []

    def load(*names: Any, **options: Any) -> Any:
        asked.append((names, options))
        return held.to_iterable_dataset()

    monkeypatch.setattr(datasets, "load_dataset", load)
    found = read(dataset="some/corpus", split="validation", columns={"source": "text", "label": "label"})
    assert fields(found) == [("good", "pos"), ("bad", "neg")]
    assert asked == [(("some/corpus", None), {"split": "validation", "revision": None, "streaming": True})]


# Translators' memories

MEMORY = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en-US"><seg>Press <bpt i="1">&lt;b&gt;</bpt><hi>Enter</hi><ept i="1">&lt;/b&gt;</ept> &amp;
 wait<ph>{0}</ph>.</seg></tuv><tuv xml:lang="de"><seg>Eingabe   drücken.</seg></tuv></tu>
<tu><note>half</note><tuv xml:lang="fr"><seg>Non</seg></tuv><tuv xml:lang="EN"><seg>No</seg></tuv></tu>
</body></tmx>"""
BOTH = {"source": "en", "target": "de"}


def test_a_memorys_segments_are_reduced_to_text(tmp_path: Path) -> None:
    found = read(tmx=write(tmp_path / "a.tmx", gzip.compress(MEMORY.encode())), languages=BOTH)
    assert found[0] == Example(4, ("Press Enter & wait.", "Eingabe drücken."))
    assert bad(found) == [(6, "a language that is missing", "no segment in de; there are en, fr")]


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/hostname">]>', "declares the entity 'x'"),
        ('<!DOCTYPE tmx [<!ENTITY a "b"><!ENTITY c "&a;&a;&a;">]>', "declares the entity 'a'"),
        ('<!DOCTYPE tmx [<!ENTITY % p SYSTEM "http://localhost/p">%p;]>', "declares the entity 'p'"),
    ],
)
def test_a_memory_with_entities_of_its_own_is_refused(tmp_path: Path, head: str, said: str) -> None:
    body = '<tmx><tu><tuv xml:lang="en"><seg>&x;</seg></tuv></tu></tmx>'
    with pytest.raises(Misuse, match=re.escape(said)):
        read(tmx=write(tmp_path / "a.tmx", head + body), languages=BOTH)


def test_xml_that_is_none_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"a\.tmx:2: not well-formed XML: mismatched tag"):
        read(tmx=write(tmp_path / "a.tmx", "<tmx>\n<tu></tmx>"), languages=BOTH)


def memory(*segments: tuple[str, bytes], head: bytes = b'<!DOCTYPE tmx SYSTEM "tmx14.dtd">') -> bytes:
    told = b"".join(b'<tuv xml:lang="%s"><seg>%s</seg></tuv>\n' % (code.encode(), text) for code, text in segments)
    return head + b"\n<tmx><body>\n<tu>" + told + b"</tu></body></tmx>"


def test_entities_of_html_are_text_and_others_are_refused_with_their_line(tmp_path: Path) -> None:
    told = memory(("en", b"a caf&eacute;&hellip; &lt;b&gt;&#33;"), ("de", b"so&nbsp;ein"))
    assert fields(read(tmx=write(tmp_path / "a.tmx", told), languages=BOTH)) == [("a café… <b>!", "so ein")]
    wrong = memory(("en", b"a &secret; word"), ("de", b"ein Wort"))
    with pytest.raises(Misuse, match=r"a\.tmx:3: &secret; is declared nowhere in the file"):
        read(tmx=write(tmp_path / "a.tmx", wrong), languages=BOTH)


def test_a_second_segment_in_a_language_is_told(tmp_path: Path) -> None:
    told = memory(
        ("en", b""), ("fr", b"un"), ("fr", b"une"), ("de", b"eins"), ("de", b"eins"), ("EN", b""), ("EN", b"")
    )
    found = read(tmx=write(tmp_path / "a.tmx", told), languages=BOTH)
    assert fields(found) == [("", "eins")]
    assert bad(found) == [
        (line, "a second segment in one language",
         f"the unit of line 3 has one in {code} already; the first of them counts")
        for line, code in ((7, "de"), (8, "en"), (9, "en"))
    ]  # fmt: skip


def test_a_second_variant_of_a_language_is_told_as_a_second_segment_is(tmp_path: Path) -> None:
    told = memory(
        ("en-US", b"color"), ("de", b"Farbe"), ("fr", b"couleur"), ("en-GB", b"colour"), ("en-GB", b"hue"), ("pt", b"")
    )
    found = read(tmx=write(tmp_path / "a.tmx", told), languages=BOTH)
    assert fields(found) == [("color", "Farbe")]
    assert [(each.line, each.said) for each in found if isinstance(each, Bad)] == [
        (line, "the unit of line 3 has one in en-us already; the first of them counts") for line in (6, 7)
    ]
    variants = read(tmx=write(tmp_path / "b.tmx", told), languages={"source": "en-US", "target": "fr"})
    assert variants == [Example(3, ("color", "couleur"))]


@pytest.mark.parametrize("before", [0, (1 << 17) - 80])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"caf\xe9", "byte 0xe9 is not UTF-8"),
        (b"a\0b", "has a control character, U+0000 (NUL)"),
        (b"a\x01b", "has a control character, U+0001"),
        (b"a & b", "not well-formed XML: not well-formed (invalid token)"),
    ],
)
def test_bytes_that_a_memory_cannot_have_are_told(tmp_path: Path, before: int, text: bytes, said: str) -> None:
    path = write(tmp_path / "a.tmx", memory(("en", b"x" * before + text), ("de", b"gut")))
    with pytest.raises(Misuse, match=re.escape(f"{path}:3: {said}")):
        read(tmx=path, languages=BOTH)


# Words and tags

CONLLU = """# text = Don't go
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
3.1\tx\tx\tX\tX\t_\t_\t_\t_\t_

# a broken one
1\tonly\ttwo

1\tHi\thi\tINTJ\tUH\t_\t0\troot\t_\t_"""


def test_conllu_takes_words_and_leaves_ranges_and_empty_nodes(tmp_path: Path) -> None:
    name = write(tmp_path / "a.conllu", CONLLU)
    found = read(conllu=name)
    assert fields(found) == [(["Do", "n't", "go"], ["AUX", "PART", "VERB"]), (["Hi"], ["INTJ"])]
    assert bad(found) == [(9, "wrong number of columns", "3 between tabs, expected 10")]
    assert fields(read(conllu=name, tags="xpos"))[0][1] == ["VB", "RB", "VB"]


@pytest.mark.parametrize(("kind", "line"), [("conllu", 5), ("tagged", 2)])
def test_a_word_without_its_tag_is_told_with_its_own_line(kind: str, line: int, tmp_path: Path) -> None:
    path = write(tmp_path / "a", CONLLU.replace("\tVERB\t", "\t\t") if kind == "conllu" else "a\tX\nb\t\nc\tX\n")
    settings = {"train": {kind: path}, "dev_size": 0, "tokenizer": {"vocabulary": 300}}
    with pytest.raises(Misuse, match=f"a:{line}: an empty side: tag . is empty"):
        prepare(settings, tmp_path / "prepared", quiet=True)


@pytest.mark.parametrize(
    ("numbers", "line", "said"),
    [
        (["1", "2", "1", "2"], 4, "the word's number is '1', expected 3"),
        (["1", "x", "2"], 3, "the word's number is 'x', expected 2"),
        (["1", "", "2"], 3, "the word's number is '', expected 2"),
        (["2", "1"], 2, "the word's number is '2', expected 1"),
    ],
    ids=["no empty line between two", "no number", "none", "turned round"],
)
def test_words_of_conllu_that_are_not_in_order_are_told(
    numbers: list[str], line: int, said: str, tmp_path: Path
) -> None:
    rows = "".join(f"{number}\tw\tw\tX\t_\t_\t0\t_\t_\t_\n" for number in numbers)
    found = read(conllu=write(tmp_path / "a.conllu", f"# one\n{rows}\n{CONLLU}"))
    assert bad(found)[0] == (line, "words out of order", said)
    assert len(fields(found)) == len(fields(read(conllu=write(tmp_path / "b.conllu", CONLLU))))


@pytest.mark.parametrize("kind", ["tagged", "conllu"])
def test_sentences_that_nothing_ends_are_refused_before_they_fill_the_memory(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tagged, "LONGEST", 50)
    name = write(tmp_path / "a", "word\tX\n\n" + "word\tX\n" * 51)
    with pytest.raises(Misuse, match=r"a:3: a sentence of more than 50 lines; is there an empty line after each"):
        read(**{kind: name})


def test_tagged_lines_with_spans(tmp_path: Path) -> None:
    text = "New\tx\tB-LOC\nYork\tx\tI-LOC\n\nin\tx\tI-LOC\n\nno\tx\n\nok\tx\tO\n"
    name = write(tmp_path / "a.tsv", text)
    found = read(tagged=name, tag=3, spans="bio")
    assert fields(found) == [(["New", "York"], ["B-LOC", "I-LOC"]), (["ok"], ["O"])]
    assert bad(found) == [
        (4, "tags that make no spans", "the tag I-LOC of 'in' after the start makes no span"),
        (6, "wrong number of columns", "2 between tabs, expected 3"),
    ]
    older = read(tagged=name, tag=3, spans="iob1")
    assert fields(older)[1] == (["in"], ["B-LOC"])


def test_a_column_more_than_the_first_line_has_is_told(tmp_path: Path) -> None:
    found = read(tagged=write(tmp_path / "a.tsv", "the\tDET\ncat\tNOUN\n\na\tDET\nred\tdog\tNOUN\n\nwe\tPRON\n"))
    assert fields(found) == [(["the", "cat"], ["DET", "NOUN"]), (["we"], ["PRON"])]
    assert bad(found) == [(5, "wrong number of columns", "3 between tabs, expected 2")]


def test_spans_become_tags_and_come_back() -> None:
    spans = [Span(0, 2, "LOC"), Span(2, 3, "LOC"), Span(4, 5, "PER")]
    tags = ["B-LOC", "I-LOC", "B-LOC", "O", "B-PER"]
    assert tags_of(spans, 5) == tags
    assert spans_of(tags) == spans
    with pytest.raises(ValueError, match="tag 2: 'I-PER' makes no span there"):
        spans_of(["B-LOC", "I-PER"])
    with pytest.raises(ValueError, match=re.escape("span 1:3 (PER) overlaps another or leaves the 4 words")):
        tags_of([Span(0, 2, "LOC"), Span(1, 3, "PER")], 4)


# Numbers


def test_series_of_one_number_and_of_several(tmp_path: Path) -> None:
    found = read(series=write(tmp_path / "a", "up\t1 2.5 -3e2\ndown\t4\t5\n"))
    assert [(each[0].tolist(), each[1]) for each in fields(found)] == [
        ([[1], [2.5], [-300]], "up"),
        ([[4], [5]], "down"),
    ]
    found = read(series=write(tmp_path / "b", "1,2 3,4\t5,6,7\n"), target="numbers")
    assert [each.tolist() for each in fields(found)[0]] == [[[5, 6, 7]], [[1, 2], [3, 4]]]
    assert fields(found)[0][0].dtype == np.float32


def test_numbers_that_cannot_be_are_told_with_their_step(tmp_path: Path) -> None:
    found = read(series=write(tmp_path / "a", "x\t1,2 3,4\nx\t1,2 3\nx\t1,2 3,four\nx\t1,2 inf,1\nx\t1e60,2\nno tab\n"))
    said = [said for _, _, said in bad(found)]
    assert said.pop(1).startswith("steps: could not convert string to float")
    assert said == [
        "step 2 of the steps has 1 numbers, expected 2",
        "step 2 of the steps is inf,1, expected finite numbers",
        "step 1 of the steps is 1e60,2, expected finite numbers",
        "no tab; expected the target, a tab and the steps",
    ]


# Images


def idx(path: Path, items: np.ndarray) -> str:
    sizes = struct.pack(f">{items.ndim}I", *items.shape)
    return write(path, gzip.compress(bytes([0, 0, 8, items.ndim]) + sizes + items.tobytes()))


def test_idx_images_with_labels_and_captions(tmp_path: Path) -> None:
    pictures = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    images, labels = idx(tmp_path / "i", pictures), idx(tmp_path / "l", np.array([7, 1], np.uint8))
    found = fields(read(images=images, labels=labels))
    assert [label for _, label in found] == ["7", "1"]
    assert np.array_equal(found[1][0], pictures[1][..., None])
    captions = write(tmp_path / "c", "a boat\nthe sea\n")
    colours = fields(read(images=images, captions=captions, channels=3))
    assert colours[0][1] == "a boat"
    assert np.array_equal(colours[0][0], pictures[0][..., None].repeat(3, 2))


def test_idx_files_that_do_not_fit_are_told(tmp_path: Path) -> None:
    images = idx(tmp_path / "i", np.zeros((3, 2, 2), np.uint8))
    with pytest.raises(Misuse, match=r"has 3 images and .* has 2 labels; expected one for each"):
        read(images=images, labels=idx(tmp_path / "l", np.zeros(2, np.uint8)))
    with pytest.raises(Misuse, match=r"has 3 images and .* has 5 captions"):
        read(images=images, captions=write(tmp_path / "c", "a\nb\nc\nd\ne\n"))
    with pytest.raises(Misuse, match="not an idx file of bytes"):
        read(images=write(tmp_path / "x", "PNG"), captions=str(tmp_path / "c"))
    cut = write(tmp_path / "y", bytes([0, 0, 8, 3]) + struct.pack(">3I", 9, 2, 2) + bytes(10))
    with pytest.raises(Misuse, match="cut short: 2 of 9 items are whole"):
        read(images=cut, captions=str(tmp_path / "c"))
    for head, said in [
        (bytes([0, 0, 8, 3, 0, 0, 0]), "cut short in the head"),
        (bytes([0, 0, 8, 3]) + struct.pack(">3I", 9, 1 << 20, 1 << 20), "an item has 1,099,511,627,776 bytes"),
        (bytes([0, 0, 8, 3]) + struct.pack(">3I", 1 << 31, 0, 2), "an item has 0 bytes"),
    ]:
        with pytest.raises(Misuse, match=re.escape(said)):
            read(images=write(tmp_path / "z", head), captions=str(tmp_path / "c"))


def test_a_folder_of_png_files(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    (folder / "sub").mkdir(parents=True)
    for name, size in [("a.png", (6, 4)), ("sub/b.png", (9, 8)), ("odd.png", (2, 2))]:
        Image.new("RGB", size, (255, 0, 0)).save(folder / name)
    write(folder / "broken.png", "no picture")
    told = write(
        tmp_path / "captions.tsv", "a.png\ta red one\nsub/b.png\tanother\nbroken.png\tx\nnone.png\tx\nno tab\n"
    )
    found = read(images=str(folder), captions=told, height=4)
    assert [(pixels.shape, text) for pixels, text in fields(found)] == [
        ((4, 6, 1), "a red one"),
        ((4, 4, 1), "another"),
    ]
    assert (fields(found)[0][0] == 76).all()  # 0.299 of 255, as grey is
    assert [(line, reason) for line, reason, _ in bad(found)] == [
        (3, "an image that cannot be used"), (4, "an image that cannot be used"), (5, "wrong number of columns"),
        (3, "an image without a caption or label"),
    ]  # fmt: skip
    assert bad(found)[1][2] == "none.png: there is no such image"
    assert bad(found)[3][2] == f"odd.png: {told} does not name it"
    without = read(images=str(folder), captions=told, channels=3)
    assert bad(without)[0][2] == "8 pixels high, expected 4; set `height` to bring all to one"
    assert fields(without)[0][0][0, 0].tolist() == [255, 0, 0]


# Strips of digits


def digits(tmp_path: Path) -> dict[str, str]:
    """Twenty images of 4 by 3 pixels, each full of ten times what it is, and one more."""
    labels = np.arange(20, dtype=np.uint8) % 10
    images = np.broadcast_to((labels * 10 + 1)[:, None, None], (20, 4, 3)).astype(np.uint8)
    return {"digits": idx(tmp_path / "i", images), "labels": idx(tmp_path / "l", labels)}


@pytest.mark.parametrize("language", ["en", "bn"])
def test_a_strip_shows_its_digits_in_order_with_gaps(tmp_path: Path, language: str) -> None:
    found = fields(read(**digits(tmp_path), count=200, gap=5, language=language))
    words = WORDS[language].split()
    lengths, edges = set(), set()
    for pixels, caption in found:
        assert (pixels.shape[0], pixels.shape[2]) == (4, 1)
        row = pixels[0, :, 0].tolist()
        assert (pixels == np.array(row)[None, :, None]).all()
        shown = [value for value in row if value]
        assert [words[value // 10] for value in shown[::3]] == caption.split()
        assert shown == [value for value in shown[::3] for _ in range(3)]
        lengths.add(len(caption.split()))
        edges.add(row.index(shown[0]))
    assert lengths == {1, 2, 3, 4, 5, 6}
    assert edges == {0, 1, 2, 3, 4, 5}


def test_strips_are_drawn_by_their_seed(tmp_path: Path) -> None:
    files = digits(tmp_path)
    first = [caption for _, caption in fields(read(**files, count=30))]
    assert [caption for _, caption in fields(read(**files, count=40))][:30] == first
    assert [caption for _, caption in fields(read(**files, count=30, seed=1))] != first
    assert {len(each.split()) for each in first} <= {1, 2, 3, 4, 5, 6}
    with pytest.raises(Misuse, match="unknown language 'ess'; did you mean 'es'"):
        read(**files, language="ess")
    with pytest.raises(Misuse, match="shortest 3 is more than longest 2"):
        read(**files, shortest=3, longest=2)
    with pytest.raises(Misuse, match=r"has 20 images and .* 2 labels"):
        read(digits=files["digits"], labels=idx(tmp_path / "m", np.zeros(2, np.uint8)))


@pytest.mark.parametrize("language", WORDS)
def test_every_language_has_ten_different_digits(language: str) -> None:
    assert len(set(WORDS[language].split())) == 10


# What a source may say


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"tvs": "a"}, "no kind of source has the key 'tvs'; did you mean 'tsv'?"),
        ({"target": "a"}, "a target without a source"),
        ({"tsv": "a", "jsonl": "b"}, "expected one kind of source, came tsv and jsonl"),
        ("pairs", "'pairs' does not say what kind of source it is"),
        ("memory.tmx.gz", "write {tmx: memory.tmx.gz, languages: {source: en, target: de}}"),
        ({"tsv": "a", "columns": {"source": 1, "target": "en"}}, "expected numbers or names for all, came both"),
        ({"tsv": "a", "columns": {"source": 1, "label": 2, "tags": 3}}, "came label and source and tags"),
        ({"jsonl": "a", "columns": {"source": 1, "target": 2}}, "expected the names of fields, came numbers"),
        ({"images": "a"}, "expected captions or labels, one of the two"),
        ({"tsv": "a", "both_ways": True}, "both_ways needs languages"),
    ],
)
def test_a_source_that_cannot_be_is_told(source: Any, said: str) -> None:
    with pytest.raises(Misuse, match=re.escape(said)):
        settings_from({"train": source}, DataSettings)


def test_sources_of_other_columns_than_the_first_are_told() -> None:
    with pytest.raises(Misuse, match=re.escape("dev: a.conllu gives source (words) and tags (tags); the first source")):
        settings_from({"train": "a.tsv", "dev": "a.conllu"}, DataSettings)


def test_a_name_alone_says_its_kind_by_its_ending() -> None:
    chosen = settings_from({"train": ["a.tsv.gz", "b.jsonl", "c.parquet"]}, DataSettings)
    assert [type(each).__name__ for each in several(chosen.train)] == ["Tsv", "Jsonl", "Parquet"]
    assert json.loads(chosen.model_dump_json())["train"][0]["tsv"] == "a.tsv.gz"


@pytest.mark.parametrize(
    "source",
    [{"tsv": "folder"}, {"source": "a", "target": "folder"}, {"jsonl": "folder"}, {"parquet": "folder"},
     {"tmx": "folder", "languages": BOTH}, {"digits": "folder", "labels": "a"}],
)  # fmt: skip
def test_a_folder_where_a_file_is_expected_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    write(tmp_path / "a", "a\n")
    with pytest.raises(Misuse, match="folder: expected a file, and this is a folder"):
        read(**source)


def test_images_and_labels_that_are_swapped_are_told(tmp_path: Path) -> None:
    images = write(tmp_path / "images", b"\0\0\x08\x03" + struct.pack(">3I", 2, 3, 3) + bytes(18))
    labels = write(tmp_path / "labels", b"\0\0\x08\x01" + struct.pack(">I", 2) + bytes(2))
    said = "images: expected labels, one number each, and these are images"
    with pytest.raises(Misuse, match=re.escape(said + "; are the two files swapped?")):
        read(digits=labels, labels=images, language="en", count=2)
    with pytest.raises(Misuse, match=said):
        read(images=images, labels=images)
