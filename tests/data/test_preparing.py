"""Preparing: from files to shards, tokenizers and texts."""

from pathlib import Path
from typing import Any

import pytest

from regard.config import settings_from
from regard.data.preparing import prepare
from regard.data.settings import DataSettings


def settings(**values: Any) -> DataSettings:
    return settings_from({"tokenizer": {"kind": "characters"}, **values}, DataSettings)


def pairs(path: Path, count: int, start: int = 0) -> str:
    """A TSV of pairs, no two of which share a side."""
    path.write_text("".join(f"word{n} cat {n}\tWort{n} Katze {n}\n" for n in range(start, start + count)))
    return str(path)


def test_pairs_become_numbers_that_read_as_the_pairs(tmp_path: Path) -> None:
    prepared = prepare(settings(train={"tsv": pairs(tmp_path / "a.tsv", 50)}, dev_size=5), tmp_path / "out", quiet=True)
    assert prepared.fresh
    assert prepared.dev is not None
    assert (len(prepared.train), len(prepared.dev)) == (45, 5)
    for row, told in enumerate(prepared.texts("dev")):
        for side in ("source", "target"):
            tokens = prepared.dev.tokens(side, row)
            assert prepared.tokenizers[side].decode(tokens) == told[side]
            assert tokens[-1] == 3
        line = prepared.dev.origin(row).line
        assert told["source"] == f"word{line - 1} cat {line - 1}"


def test_nothing_changed_is_nothing_to_do(tmp_path: Path) -> None:
    chosen = settings(train={"tsv": pairs(tmp_path / "a.tsv", 50)})
    assert prepare(chosen, tmp_path / "out", quiet=True).fresh
    assert not prepare(chosen, tmp_path / "out", quiet=True).fresh
    pairs(tmp_path / "a.tsv", 51)
    assert prepare(chosen, tmp_path / "out", quiet=True).fresh


@pytest.mark.parametrize("both_ways", [False, True])
def test_several_languages_have_a_tag_in_front_and_a_pair(tmp_path: Path, both_ways: bool) -> None:
    files = {"de": pairs(tmp_path / "de.tsv", 40), "nl": pairs(tmp_path / "nl.tsv", 40, start=100)}
    sources = [
        {"tsv": file, "languages": {"source": "en", "target": to}, "both_ways": both_ways} for to, file in files.items()
    ]
    prepared = prepare(settings(train=sources, dev_size=4), tmp_path / "out", quiet=True)
    assert prepared.pairs == (("en-de", "de-en", "en-nl", "nl-en") if both_ways else ("en-de", "en-nl"))
    assert prepared.dev is not None
    for row, told in enumerate(prepared.texts("dev")):
        first, second = told["pair"].split("-")
        source = prepared.dev.tokens("source", row)
        assert source[0] == prepared.tokenizers["source"].tag(second)
        assert told["source"].startswith("word" if first == "en" else "Wort")
        assert prepared.tokenizers["source"].decode(source) == told["source"]
        assert prepared.pairs[prepared.dev.tokens("pair", row)[0]] == told["pair"]
    assert len(prepared.train) == (152 if both_ways else 76)
