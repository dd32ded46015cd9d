"""What several rooms lean on: writing without loss, and the nearest right name."""

import ctypes
import os
import stat
import sys
from pathlib import Path

import pytest

from regard.support.atomic import write_text, writing
from regard.support.memory import give_back_freed_memory
from regard.support.nearest import nearest, unknown


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_text(file, "old")

    def stops_half_way() -> None:
        with writing(file, "w") as out:
            out.write("ne")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        stops_half_way()
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_write_that_ends_well_takes_the_place_of_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_text(file, "old")
    write_text(file, "neu\r\nzwei\n")
    assert file.read_bytes() == b"neu\r\nzwei\n"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such rights")
def test_a_new_file_has_the_rights_any_new_file_has(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_text(tmp_path / "atomic", "")
    assert stat.S_IMODE((tmp_path / "atomic").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("additve", "additive"), ("Softmax", "softmax"), ("sofmax", "softmax"), ("zzz", None)],
)
def test_the_nearest_right_name_is_found(name: str, expected: str | None) -> None:
    assert nearest(name, ["softmax", "additive", "dot"]) == expected


def test_an_unknown_name_is_answered_with_the_nearest_and_all_known() -> None:
    assert unknown("score", "additve", ["dot", "additive"]) == (
        "unknown score 'additve'; did you mean 'additive'? (known: additive, dot)"
    )
    assert unknown("score", "zzz", ["dot"]) == "unknown score 'zzz'. (known: dot)"


def resident() -> float:
    """MiB of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is asked")
def test_freed_memory_between_blocks_that_are_used_is_given_back() -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("another C library than glibc")
    libc.malloc.restype = ctypes.c_void_p
    size = 64 << 10
    blocks = [ctypes.c_void_p(libc.malloc(size)) for _ in range(1000)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    for place, block in enumerate(blocks):
        if place % 10:  # what stays holds the rest back
            libc.free(block)
    before = resident()
    assert give_back_freed_memory()
    assert resident() < before - 40
    for block in blocks[::10]:
        libc.free(block)
