"""Where a file named in a configuration is."""

import re
from pathlib import Path

import pytest

from regard import prepare
from regard.data.places import place, samples
from regard.support.errors import Misuse


def test_a_path_is_itself_and_a_shipped_sample_is_named_with_regard(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\n")
    assert place(str(tmp_path / "a.tsv")) == tmp_path / "a.tsv"
    assert "quickstart.en-es.tsv" in samples()
    assert "LICENSE.txt" not in samples()
    assert "\t" in place("regard:quickstart.en-es.tsv").read_text(encoding="utf-8").splitlines()[0]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("regard:quickstart.en-se.tsv", "unknown sample 'quickstart.en-se.tsv'; did you mean 'quickstart.en-es.tsv'"),
        ("{}/corpus.ne", "{}/corpus.ne: there is no such file; did you mean {}/corpus.en?"),
        ("{}/nowhere/corpus.en", "{}/nowhere/corpus.en: there is no such file (nor the folder {}/nowhere)"),
        ("{}/quite_other", "{}/quite_other: there is no such file"),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest_that_is(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "corpus.en").write_text("x")
    with pytest.raises(Misuse, match=re.escape(said.format(tmp_path, tmp_path)) + "$|known"):
        place(name.replace("{}", str(tmp_path)))


def test_a_sample_is_prepared_as_any_other_file(tmp_path: Path) -> None:
    prepared = prepare({"train": "regard:two-pairs.tsv", "tokenizer": {"kind": "words"}}, tmp_path, quiet=True)
    assert len(prepared.train) == 2
    assert str(prepared.train.origin(1)) == "regard:two-pairs.tsv:2"
