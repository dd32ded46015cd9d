"""Names of steps: unique, as short as they can be, and other names by which they may be asked for."""

from collections import Counter
from collections.abc import Collection, Sequence

from regard.tracing.record import Record
from regard.tracing.rules.norms import NAMES


def names(
    records: Sequence[Record],
    shown: Collection[int],
    target: int,
    gradients: dict[int, str],
    known: dict[int, str],
    loss: bool = False,
) -> tuple[dict[int, str], dict[int, tuple[str, ...]]]:
    """For the number of each record its name, and its other names.

    known: bare names of records that no label names. A target without a name is the output, or the loss.
    """
    unnamed = {target: "loss" if loss else "output"}
    first = {record.number: _wanted(record, record.number in shown, unnamed, gradients, known) for record in records}
    stands = Counter(wanted[0] for number, wanted in first.items() if number in shown)
    chosen: dict[int, str] = {}
    taken: set[str] = set()
    ranks = {r.number: 2 if r.number not in shown else int(not r.labels and r.number not in gradients) for r in records}
    for rank in range(
        3
    ):  # who was named keeps the name before what is called after an operation, and that before hidden ones
        group = [record for record in records if ranks[record.number] == rank]
        wishes = {r.number: _wish(first[r.number], rank == 2, stands) for r in group}
        often = Counter(wishes.values())
        seen: Counter[str] = Counter()
        for record in group:
            wish = wishes[record.number]
            seen[wish] += 1
            name = wish if often[wish] == 1 and wish not in taken else _numbered(wish, seen, taken)
            chosen[record.number] = name
            taken.add(name)
    others = {
        record.number: tuple(
            dict.fromkeys(a for a in _aliases(record, first[record.number], known) if a != chosen[record.number])
        )
        for record in records
    }
    return chosen, others


def _wish(wanted: list[str], hidden: bool, stands: Counter[str]) -> str:
    """The bare name where it stands once, else the full one."""
    return wanted[-1] if hidden or stands[wanted[0]] > 1 else wanted[0]


def _numbered(wish: str, seen: Counter[str], taken: set[str]) -> str:
    while f"{wish}#{seen[wish]}" in taken:
        seen[wish] += 1
    return f"{wish}#{seen[wish]}"


def _wanted(
    record: Record, shown: bool, unnamed: dict[int, str], gradients: dict[int, str], known: dict[int, str]
) -> list[str]:
    """The bare name and the full one."""
    if record.number in gradients:
        return [gradients[record.number]]
    if record.labels:
        name, _, module = record.labels[-1]
        return [name, joined(module, name)]
    if record.known_as:
        return [record.known_as]
    if record.role in ("given", "parameter"):
        # What code holds beside its parameters and buffers, like a table of positions, is no input.
        held = "constant" if record.module else "input"
        return [joined(record.module, held if record.role == "given" else record.role)]
    if record.outputs_of:
        return [record.outputs_of[0]]
    if record.number in unnamed and shown:
        return [unnamed[record.number]]
    if record.number in known:
        return [known[record.number], joined(record.module, known[record.number])]
    statistic = NAMES.get(record.operation, {}).get(record.output)
    return [joined(record.module, statistic[0] if statistic else record.operation.rpartition(".")[2].strip("_"))]


def _aliases(record: Record, wanted: list[str], known: dict[int, str]) -> list[str]:
    return [*wanted, *(each for name, _, module in reversed(record.labels) for each in (name, joined(module, name))),
            *record.outputs_of, *([known[record.number]] if record.number in known else ())]  # fmt: skip


def joined(module: str, name: str) -> str:
    return f"{module}.{name}" if module else name
