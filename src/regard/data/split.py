"""A dev split that leaks nothing: whole groups of examples that share a side, directly or by way of others.

One sentence has several translations, and each of them others again. A split by lines would put "Thank you." → "Danke."
into training and "Thank you." → "Danke schön." into dev; here all examples that hang together stay on one side.

    rows = dev_rows(((source, target) for ...), size=1000, seed=0)      numbers of examples, in order

The examples are read once; what is kept of each is 8 bytes a side, on the disk. In memory are only the groups of the
examples drawn for dev, which are found by going through those bytes until no group grows any more (union-find over
the sides' hashes). A group too large for dev is given up when that shows, so the memory is bounded by `size`.
"""

import tempfile
import unicodedata
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

BUFFER: Final = 1 << 16
CHUNK: Final = 1 << 20


def dev_rows(examples: Iterable[Sequence[str]], size: int, seed: int) -> NDArray[np.int64]:
    """The numbers of about `size` examples to hold out, never more, in rising order.

    An example is its sides: (source, target), or the text alone where the other side is a label. The same examples
    and seed give the same rows. Fewer come where the groups are too large to fit: none where all hang together.
    """
    with SideHashes() as hashes:
        for sides in examples:
            hashes.add(sides)
        return hashes.dev_rows(size, seed)


def side_hash(side: str | bytes, of: str = "") -> int:
    """64 bits of a side, blind to case, to white space and to how accents are composed.

    `of` is what it is a side of, such as its language: what is the same in two languages is two.
    """
    if isinstance(side, str):
        plain = " ".join(unicodedata.normalize("NFC", side).casefold().split())
        side = plain.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(side, digest_size=8, key=of.encode()).digest(), "little")


class SideHashes:
    """The hashes of the sides of all examples, on the disk, in a file that goes when it is closed."""

    def __init__(self, folder: str | Path | None = None, *, across: bool = False) -> None:
        """`across`: equal hashes are one side in whichever column they stand (the hash says what it is a side of)."""
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 # closed by __exit__
        self._across = across
        self._buffer = array("Q")
        self._sides = 0
        self._count = 0

    def __enter__(self) -> "SideHashes":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    def add(self, sides: Sequence[str]) -> None:
        """One more example; the next number is its."""
        self._sides = self._sides or len(sides)
        if isinstance(sides, str) or len(sides) != self._sides or not sides:
            came = "a text" if isinstance(sides, str) else f"{len(sides)} sides"
            raise ValueError(f"example {self._count}: expected {self._sides or 'one or more'} sides; got {came}")
        self._buffer.extend(map(side_hash, sides))
        self._count += 1
        if len(self._buffer) >= BUFFER:
            self._flush()

    def add_hashes(self, hashes: Hashes) -> None:
        """[rows, sides]: examples by the hashes of their sides."""
        self._flush()
        self._sides = self._sides or hashes.shape[1]
        self._file.write(np.ascontiguousarray(hashes, np.uint64).tobytes())
        self._count += len(hashes)

    def dev_rows(self, size: int, seed: int) -> NDArray[np.int64]:
        """The numbers of about `size` examples to hold out; see the function of that name."""
        return self.held_out_rows([size], seed)[0]

    def held_out_rows(
        self, sizes: Sequence[int], seed: int, kinds: Sequence[Sequence[range]] | None = None
    ) -> list[NDArray[np.int64]]:
        """For each size the numbers of about as many examples; no two of these sets share a side either.

        `kinds`: the numbers of the examples of each kind, such as a pair of languages, which are drawn in turn; of
        none comes more than a tenth into a set.
        """
        if min(sizes) < 0:
            raise ValueError(f"size: expected 0 or more; got {min(sizes)}")
        self._flush()
        # Twice as many as are needed, for those whose group turns out to be too large.
        drawn = _drawn(kinds or [[range(self._count)]], 2 * sum(sizes) + 100, np.random.default_rng(seed))
        groups = _Groups(most=max(1, min(max(sizes), max(max(sizes) // 20, 20))), across=self._across)
        self._grow(groups, np.sort(drawn))
        return _chosen(groups, drawn, sizes, _Kinds(kinds) if kinds else None)

    def _flush(self) -> None:
        self._buffer.tofile(self._file)
        self._buffer = array("Q")

    def _grow(self, groups: "_Groups", drawn: NDArray[np.int64]) -> None:
        for start, chunk in self._chunks():
            first, last = np.searchsorted(drawn, [start, start + len(chunk)])
            groups.take(drawn[first:last], chunk[drawn[first:last] - start])
        while (edge := groups.edge(self._sides)) and any(map(len, edge)):
            for start, chunk in self._chunks():
                near = groups.near(chunk, edge)
                groups.take(start + near, chunk[near])

    def _chunks(self) -> Iterator[tuple[int, Hashes]]:
        """[rows, sides], and the number of the first row."""
        self._file.seek(0)
        start = 0
        while data := self._file.read(CHUNK * self._sides * 8):
            chunk = np.frombuffer(data, np.uint64).reshape(-1, self._sides)
            yield start, chunk
            start += len(chunk)


Node = tuple[int, int]
"""A side of an example: which one, and its hash."""


class _Groups:
    """Groups of examples that share a side, as far as they were followed: union-find over the sides."""

    def __init__(self, most: int, across: bool = False) -> None:
        self.most = most
        """The most examples of a group; one that is larger is given up, and not followed further."""
        self._column = (lambda side: 0) if across else (lambda side: side)
        self.node: dict[int, Node] = {}
        """One side of each example that was taken."""
        self.size: dict[Node, int] = {}
        self._parent: dict[Node, Node] = {}
        self._new: list[Node] = []
        self._seen: dict[Node, int] = {}

    def take(self, rows: NDArray[np.int64], hashes: Hashes) -> None:
        """Put examples into the groups of their sides, which so become one."""
        for row, sides in zip(rows.tolist(), hashes.tolist(), strict=True):
            if row not in self.node:
                roots = [self._find((self._column(side), value)) for side, value in enumerate(sides)]
                self.node[row] = roots[0]
                self.size[roots[0]] += 1
                for root in roots[1:]:
                    self._join(roots[0], root)

    def edge(self, sides: int) -> list[Hashes]:
        """The sides met since the last call whose groups are still worth following, sorted, for each column."""
        new = [node for node in self._new if self.alive(node)]
        self._new = []
        columns = [self._column(side) for side in range(sides)]
        return [np.array(sorted(v for c, v in new if c == column), np.uint64) for column in columns]

    def near(self, chunk: Hashes, edge: list[Hashes]) -> NDArray[np.int64]:
        """The places in a chunk of examples that have a side on the edge.

        A side that more examples share than a group may have ends its group, and its examples are not looked at.
        """
        found = np.zeros(len(chunk), bool)
        for side, values in enumerate(edge):
            if not len(values):
                continue
            place = np.minimum(np.searchsorted(values, chunk[:, side]), len(values) - 1)
            hit = values[place] == chunk[:, side]
            often = np.bincount(place[hit], minlength=len(values))
            column = self._column(side)
            few = np.array([self._few((column, int(value)), int(n)) for value, n in zip(values, often, strict=True)])
            found |= hit & few[place]
        return np.flatnonzero(found)

    def _few(self, node: Node, more: int) -> bool:
        if not more:
            return True
        self._seen[node] = self._seen.get(node, 0) + more
        if self._seen[node] > self.most:
            self.size[self._find(node)] += self._seen[node]
        return self._seen[node] <= self.most

    def alive(self, node: Node) -> bool:
        return self.size[self._find(node)] <= self.most

    def root(self, row: int) -> Node:
        return self._find(self.node[row])

    def _find(self, node: Node) -> Node:
        if node not in self._parent:
            self._parent[node] = node
            self.size[node] = 0
            self._new.append(node)
        root = node
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[node] != root:
            self._parent[node], node = root, self._parent[node]
        return root

    def _join(self, first: Node, second: Node) -> None:
        first, second = self._find(first), self._find(second)
        if first != second:
            small, large = sorted((first, second), key=self.size.__getitem__)
            self._parent[small] = large
            self.size[large] += self.size[small]


def _drawn(kinds: Sequence[Sequence[range]], size: int, random: np.random.Generator) -> NDArray[np.int64]:
    """At most `size` numbers, each once: one of each kind in turn, as long as there are some.

    Of several kinds none gives more than may come into two sets of a tenth each, and as many again.
    """
    each = []
    for spans in kinds:
        counts = np.array([len(span) for span in spans])
        total = int(counts.sum())
        most = min(size, total) if len(kinds) == 1 else min(size, total // 10 * 4 + 20, total)
        places = random.choice(total, most, replace=False)
        span = np.searchsorted(np.cumsum(counts), places, side="right")
        firsts = np.array([span.start for span in spans]) - np.concatenate([[0], np.cumsum(counts)[:-1]])
        each.append(places + firsts[span])
    turns = np.concatenate([np.arange(len(rows)) for rows in each])
    return np.concatenate(each)[np.argsort(turns, kind="stable")][:size].astype(np.int64)


class _Kinds:
    """Of which kind an example is, and how many of each kind a set may have."""

    def __init__(self, kinds: Sequence[Sequence[range]]) -> None:
        spans = sorted((span.start, kind) for kind, spans in enumerate(kinds) for span in spans if len(span))
        self._starts = [start for start, _ in spans]
        self._kinds = [kind for _, kind in spans]
        self._most = [sum(map(len, spans)) // 10 for spans in kinds]

    def add(self, to: Counter[int], rows: Iterable[int]) -> bool:
        """Count the examples of a group to those of a set, where it may have them."""
        more = Counter(self._kinds[bisect_right(self._starts, row) - 1] for row in rows)
        if any(to[kind] + number > self._most[kind] for kind, number in more.items()):
            return False
        to.update(more)
        return True


def _chosen(
    groups: _Groups, drawn: NDArray[np.int64], sizes: Sequence[int], kinds: _Kinds | None
) -> list[NDArray[np.int64]]:
    """Whole groups in the order in which they were drawn, each for the first set that it still fits into."""
    members: dict[Node, list[int]] = {}
    for row in groups.node:
        members.setdefault(groups.root(row), []).append(row)
    chosen: list[list[int]] = [[] for _ in sizes]
    counts: list[Counter[int]] = [Counter() for _ in sizes]
    for root in dict.fromkeys(groups.root(int(row)) for row in drawn):
        if groups.alive(root):
            for each, size, count in zip(chosen, sizes, counts, strict=True):
                own = members[root]
                if len(each) + len(own) <= size and (kinds is None or kinds.add(count, own)):
                    each.extend(own)
                    break
    return [np.array(sorted(each), np.int64) for each in chosen]
