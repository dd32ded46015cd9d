"""Files as they are meant: compressed or not, lines by their ends alone, bytes that are no text told apart."""

import bz2
import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import lines as lines_module
from regard.data.lines import Undecodable, read_lines
from regard.support import compressed
from regard.support.errors import Failure, Misuse

FEW = settings(deadline=None, derandomize=True, max_examples=100)
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes, "gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}  # fmt: skip
TEXT = b"".join(f"line {n} \xe9\n".encode() for n in range(20_000))


@pytest.mark.parametrize("kind", PACKED)
def test_a_file_is_read_by_its_content_whatever_its_name(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "corpus.txt.gz"
    path.write_bytes(PACKED[kind](TEXT))
    assert list(read_lines(path)) == TEXT.decode().splitlines()


@pytest.mark.parametrize("kind", ["gzip", "xz", "bzip2", "zstd"])
def test_parts_behind_one_another_are_one_file(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a").write_bytes(PACKED[kind](b"one\ntwo\n") + PACKED[kind](b"three\n"))
    assert list(read_lines(tmp_path / "a")) == ["one", "two", "three"]


@pytest.mark.parametrize("kind", ["gzip", "xz", "bzip2", "zstd"])
def test_a_file_cut_short_is_told_and_not_read_as_shorter(tmp_path: Path, kind: str) -> None:
    whole = PACKED[kind](TEXT)
    (tmp_path / "a").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Failure, match=re.escape(f"{tmp_path / 'a'}: cut short")):
        list(read_lines(tmp_path / "a"))


@pytest.mark.parametrize("kind", ["gzip", "xz", "bzip2", "zstd"])
def test_damaged_data_are_told(tmp_path: Path, kind: str) -> None:
    whole = bytearray(PACKED[kind](TEXT))
    middle = len(whole) // 2
    whole[middle : middle + 40] = bytes(40)
    (tmp_path / "a").write_bytes(whole)
    with pytest.raises(Failure, match="damaged"):
        list(read_lines(tmp_path / "a"))


@pytest.mark.parametrize("kind", ["gzip", "xz", "bzip2", "zstd"])
def test_junk_and_damage_behind_a_part_are_told_and_not_dropped(tmp_path: Path, kind: str) -> None:
    first, second = PACKED[kind](TEXT), bytearray(PACKED[kind](TEXT))
    second[:3] = b"???"
    for behind in (b"junk behind the end", bytes(second)):
        (tmp_path / "a").write_bytes(first + behind)
        with pytest.raises(Failure, match="damaged"):
            list(read_lines(tmp_path / "a"))


def test_zeros_between_streams_of_xz_are_padding_by_fours_and_else_damage(tmp_path: Path) -> None:
    one, two = lzma.compress(b"one\n"), lzma.compress(b"two\n")
    (tmp_path / "a").write_bytes(one + bytes(8) + two + bytes(1 << 18))
    assert list(read_lines(tmp_path / "a")) == ["one", "two"]
    (tmp_path / "a").write_bytes(one + bytes(3) + two)
    with pytest.raises(Failure, match="damaged: 3 zeros behind a stream, no multiple of 4"):
        list(read_lines(tmp_path / "a"))


@FEW
@given(
    st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))),
    st.sampled_from(["\n", "\r\n"]),
)
def test_only_line_ends_end_lines(tmp_path_factory: pytest.TempPathFactory, texts: list[str], end: str) -> None:
    path = tmp_path_factory.mktemp("lines") / "a"
    path.write_bytes("".join(text + end for text in texts).encode())
    expected = [text.removeprefix("\ufeff") if place == 0 else text for place, text in enumerate(texts)]
    assert list(read_lines(path)) == expected


def test_the_last_line_needs_no_end_and_no_line_is_made_up(tmp_path: Path) -> None:
    for content, expected in [(b"", []), (b"a", ["a"]), (b"a\n", ["a"]), (b"a\n\n", ["a", ""]), (b"\n", [""])]:
        (tmp_path / "a").write_bytes(content)
        assert list(read_lines(tmp_path / "a")) == expected


@pytest.mark.parametrize("block", [1, 7, 1 << 17])
def test_how_much_is_read_at_a_time_changes_nothing(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes("à\r\nbé\nü".encode() + b"\n\xff\nx")
    monkeypatch.setattr(compressed.Opened.blocks, "__defaults__", (block,))
    said = "byte 0xff at place 1 is not UTF-8"
    assert list(read_lines(tmp_path / "a")) == ["à", "bé", "ü", Undecodable(said, "\\xff"), "x"]


def test_bytes_that_are_no_utf8_are_told_with_their_place_in_the_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"good\nna\xefve\ngood\n")
    bad = list(read_lines(tmp_path / "a"))[1]
    assert bad == Undecodable("byte 0xef at place 3 is not UTF-8", "na\\xefve")


def test_utf16_and_endless_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes("text\n".encode("utf-16"))
    with pytest.raises(Misuse, match="begins as UTF-16 does"):
        list(read_lines(tmp_path / "a"))
    monkeypatch.setattr(lines_module, "LONGEST", 1000)
    (tmp_path / "b").write_bytes(b"x" * 300_000)
    with pytest.raises(Misuse, match="a line of more than 1,000 bytes; is this a text file"):
        list(read_lines(tmp_path / "b"))
