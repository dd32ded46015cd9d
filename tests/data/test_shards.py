"""Shards: examples on the disk as they were given, opened without being read, damage named."""

import itertools
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from regard.data.shards import Column, ShardSet
from regard.data.writing import smallest
from regard.support.errors import Failure, Misuse
from tests.data.sets import of, pairs

FEW = settings(deadline=None, derandomize=True, max_examples=50)
RUNS = st.lists(st.lists(st.integers(0, 65_535), max_size=6), min_size=1, max_size=150)


@FEW
@given(RUNS, st.data())
def test_every_example_comes_back_alone_and_with_others(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[int]], data: st.DataObject
) -> None:
    from regard.data.writing import write_set

    folder = tmp_path_factory.mktemp("set")
    write_set(folder, {"target": Column("uint16", "tokens", 65_536)}, {"target": runs}, rows_a_shard=40)
    examples = ShardSet(folder)
    assert len(examples) == len(runs)
    assert examples.lengths("target").tolist() == [len(run) for run in runs]
    assert [examples.tokens("target", row).tolist() for row in range(len(runs))] == runs
    rows = data.draw(st.lists(st.integers(0, len(runs) - 1)))
    flat, offsets = examples.gather("target", rows)
    assert [flat[a:b].tolist() for a, b in itertools.pairwise(offsets)] == [runs[row] for row in rows]


def test_numbers_have_the_smallest_type_that_holds_them(tmp_path: Path) -> None:
    assert [smallest(size) for size in (1, 65_536, 65_537)] == ["uint16", "uint16", "uint32"]
    examples = of(tmp_path, {"target": Column("uint32", "tokens", 100_000)}, {"target": [[99_999, 3]]})
    assert examples.tokens("target", 0).tolist() == [99_999, 3]


def test_other_tools_open_a_shard_as_it_is(tmp_path: Path) -> None:
    examples = pairs(tmp_path, [(2, 3), (1, 2)])
    held = load_file(tmp_path / "00000.safetensors")
    assert held["source.values"].tolist() == [4, 4, 5]
    assert held["target.offsets"].tolist() == [0, 3, 5]
    assert str(examples.origin(1)) == "memory:2"


def test_arrays_in_any_order_of_memory_are_stored_row_by_row(tmp_path: Path) -> None:
    rows = [np.arange(6, dtype=np.uint8).reshape(3, 2).T, np.arange(9, dtype=np.uint8).reshape(3, 3).T]
    examples = of(tmp_path, {"source": Column("uint8", "image", width=3)}, {"source": rows})
    for place, row in enumerate(rows):
        assert examples.tokens("source", place).tolist() == row.tolist()


def test_a_set_goes_to_another_process_as_the_name_of_its_folder(tmp_path: Path) -> None:
    examples = pairs(tmp_path, [(2, 3)] * 100)
    packed = pickle.dumps(examples)
    assert len(packed) < 400
    assert pickle.loads(packed).tokens("source", 70).tolist() == examples.tokens("source", 70).tolist()


def test_what_is_read_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="read-only"):
        pairs(tmp_path, [(2, 3)]).tokens("source", 0)[0] = 1


def test_a_shard_that_is_missing_or_cut_short_is_named_at_opening(tmp_path: Path) -> None:
    examples = pairs(tmp_path, [(2, 3)] * 100)
    path = tmp_path / "00001.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(
        Failure, match=re.escape(f"{path}: this shard has {len(whole) - 1:,} bytes, expected {len(whole):,}")
    ):
        ShardSet(tmp_path)
    path.unlink()
    with pytest.raises(Failure, match=re.escape(f"{path}: this shard is missing")):
        ShardSet(tmp_path)
    assert examples.tokens("source", 3).tolist() == [7, 7]


def test_an_altered_shard_is_named_when_all_bytes_are_read(tmp_path: Path) -> None:
    examples = pairs(tmp_path, [(2, 3)] * 100)
    examples.verify()
    path = tmp_path / "00001.safetensors"
    altered = bytearray(path.read_bytes())
    altered[-1] ^= 1
    path.write_bytes(altered)
    with pytest.raises(Failure, match=re.escape(f"{path}: altered since it was written")):
        ShardSet(tmp_path).verify()
    path.write_bytes(b"\xff" * len(altered))
    with pytest.raises(Failure, match="altered since it was written"):
        ShardSet(tmp_path).tokens("source", 70)


def test_what_is_asked_for_wrongly_is_told(tmp_path: Path) -> None:
    examples = pairs(tmp_path, [(2, 3)])
    with pytest.raises(ValueError, match="unknown column 'sorce'; did you mean 'source'"):
        examples.lengths("sorce")
    with pytest.raises(ValueError, match="the column 'source' holds tokens, not names"):
        examples.names("source")
    with pytest.raises(IndexError, match="row 1 asked for, of 1"):
        examples.tokens("source", 1)
    with pytest.raises(IndexError, match="rows -1 to 0 asked for, of 1"):
        examples.gather("source", [0, -1])


def test_a_folder_that_is_no_set_is_told(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="no prepared data here"):
        ShardSet(tmp_path)
    pairs(tmp_path / "train", [(2, 3)])
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(Misuse, match=r"not the folder of a split; there are .*train"):
        ShardSet(tmp_path)
    manifest = json.loads((tmp_path / "train" / "manifest.json").read_text())
    (tmp_path / "train" / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(Misuse, match="written in format 99, this version reads 1"):
        ShardSet(tmp_path / "train")
    (tmp_path / "train" / "manifest.json").write_text("{")
    with pytest.raises(Failure, match="altered since it was written"):
        ShardSet(tmp_path / "train")
