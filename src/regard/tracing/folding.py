"""Which primitives a person would write down as steps, and which are parts of others.

Labelled tensors, what modules return, and what several steps read stand for themselves. Moves are passed over. What
one step alone reads is folded into it, as long as its formula can still be read in one go: sums of products may stand
in a formula of single cells, not in another sum.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from regard.tracing.record import Record
from regard.tracing.rules import RULES
from regard.tracing.rules.norms import NAMES

MOST_CELLS = 6
"""In a formula of single cells."""
MOST_SUMS = 2
"""In a formula of single cells."""
PRODUCTS = frozenset({"aten.mm", "aten.bmm", "aten.addmm", "aten.baddbmm", "aten.mv", "aten.dot", "aten.linear"})
SCALINGS = frozenset({"aten.mul", "aten.div", "aten.neg"})
SUMS = frozenset({"aten.sum", "aten.mean"})


class Folding:
    """Decides from the last record to the first, so that what reads a record is decided before it."""

    def __init__(
        self, records: Sequence[Record], sources: Mapping[int, tuple[int, ...]], asked: Collection[int]
    ) -> None:
        self.shown: set[int] = set()
        self._sources = sources
        self._records = {record.number: record for record in records}
        self._uses: dict[int, list[int]] = {record.number: [] for record in records}
        self._apart: set[int] = set()
        """Records that are read through a join of several."""
        self._root: dict[int, int] = {}
        """Of a folded record the step it is part of; of a step itself."""
        self._cells: dict[int, int] = {}
        self._sums: dict[int, int] = {}
        for record in reversed(records):
            self._decide(record, record.number in asked)
            self._tell(record, sources[record.number])

    def _decide(self, record: Record, asked: bool) -> None:
        number = record.number
        stands = asked or bool(record.labels)
        into = None if stands else self._into(record)
        if into is None and (stands or not _passed_over(record) or self._returned(record)):
            self.shown.add(number)
            self._root[number] = number
            self._cells[number], self._sums[number] = _cells(record), _sort(record) == "over"
        elif into is not None:
            root = self._root[number] = self._root[into]
            self._cells[root] += _cells(record) - 1
            self._sums[root] += _sort(record) == "over"

    def _returned(self, record: Record) -> bool:
        """Whether a move is what a module returns of what it computed, and nobody gave it a better name."""
        if not record.outputs_of or len(self._sources[record.number]) == 0:
            return False
        computed = self._records[self._sources[record.number][0]].role == "computed"
        uses = [self._records[number] for number in self._uses[record.number]]
        renamed = len(uses) == 1 and uses[0].role == "move" and uses[0].number not in self._apart
        return (computed or record.operation == "aten.embedding") and not renamed

    def _tell(self, record: Record, sources: tuple[int, ...]) -> None:
        """Its sources of who reads them: the readers of a move that is passed over read through it."""
        hidden_move = record.role == "move" and record.number not in self._root
        joined = hidden_move and (len(sources) > 1 or record.number in self._apart)
        often = Counter(() if record.called is None else record.called.reads)
        for source in (each for each in sources for _ in range(max(often[each], 1))):
            if joined:
                self._apart.add(source)
            if source in self._uses:
                self._uses[source] += self._uses[record.number] if hidden_move else [record.number]

    def _into(self, record: Record) -> int | None:
        """What the record is folded into, if anything."""
        if record.role != "computed" or record.called is None:
            return None
        uses = self._uses[record.number]
        if len(uses) != 1 or record.number in self._apart or record.output in NAMES.get(record.operation, ()):
            return None
        reader = self._records[uses[0]]
        if _sort(reader) == "move":
            return reader.number if len(self._sources[reader.number]) == 1 else None
        return reader.number if not record.outputs_of and self._fits(record, reader) else None

    def _fits(self, record: Record, reader: Record) -> bool:
        root = self._root[reader.number]
        if reader.role != "computed" or self._cells[root] + _cells(record) - 1 > MOST_CELLS:
            return False
        within_a_sum = _sort(reader) == "over" or _sort(self._records[root]) == "over"
        if _sort(record) == "over":
            return not within_a_sum and self._sums[root] < MOST_SUMS
        if not within_a_sum:
            return True
        if reader.operation in PRODUCTS:
            return record.operation in SCALINGS and _cells(record) == 1
        return reader.operation in SUMS and reader.number == root


def _passed_over(record: Record) -> bool:
    """Moves; and constants of one number, and givens of none, which are no steps: the number stands in the formulas."""
    size = record.shape.numel()
    return record.role == "move" or (record.role == "constant" and size < 2) or (record.role == "given" and size == 0)


def _sort(record: Record) -> str:
    if record.role == "move":
        return "move"
    entry = RULES.get(record.operation)
    return entry.sort if entry is not None else "each"


def _cells(record: Record) -> int:
    return 1 if record.called is None else len(record.called.reads)
