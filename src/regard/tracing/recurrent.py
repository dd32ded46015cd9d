"""Names inside nn.LSTM, nn.GRU, nn.RNN and their cells: the gates and states, as the notes call them.

PyTorch labels nothing; but the primitives of a cell come in one order, and so are known by it. Where the order is
another (a future version, a fused kernel), nothing is named.
"""

import re
from typing import TYPE_CHECKING

from torch import nn

from regard.tracing.record import Called, Record

if TYPE_CHECKING:
    from regard.tracing.tape import Tape

Order = tuple[tuple[str, str], ...]

LSTM: Order = (
    ("add", "a"), ("sigmoid", "i"), ("sigmoid", "f"), ("tanh", "g"), ("sigmoid", "o"), ("mul", ""), ("mul", ""),
    ("add", "C"), ("tanh", ""), ("mul", "h"),
)  # fmt: skip
GRU: Order = (
    ("add", ""), ("sigmoid", "r"), ("add", ""), ("sigmoid", "z"), ("mul", ""), ("add", ""), ("tanh", "n"),
    ("sub", ""), ("mul", ""), ("add", "h"),
)  # fmt: skip
ORDERS: dict[type, Order] = {
    nn.LSTM: LSTM, nn.LSTMCell: LSTM, nn.GRU: GRU, nn.GRUCell: GRU,
    nn.RNN: (("add", "a"), ("tanh", "h")), nn.RNNCell: (("add", "a"), ("tanh", "h")),
}  # fmt: skip
WEIGHT = re.compile(r"weight_ih_l(\d+)(_reverse)?$")

BIAS = re.compile(r"(.*\.)?bias_ih_l\d+(_reverse)?$")


class Recurrent:
    """Follows one call of such a module, and names what it saw when the module has returned."""

    def __init__(self, tape: "Tape", module: nn.Module) -> None:
        self._tape, self._module = tape, module
        self._order = ORDERS[type(module)]
        if getattr(module, "nonlinearity", "tanh") == "relu":
            self._order = (("add", "a"), ("relu", "h"))
        self._kinds = {kind for kind, _ in self._order}
        self._layer, self._reverse, self._place, self._lost = 0, False, 0, False
        self._found: list[tuple[int, bool, int, str, int]] = []
        """Layer, whether from the end, step, what it is, the record."""

    def saw(self, operation: str, called: Called, number: int) -> None:
        """An operation of the module."""
        kind = operation.removeprefix("aten.")
        if kind in ("mm", "addmm", "linear"):
            self._product(called)
        elif kind in self._kinds and not self._lost and not self._biased(called):
            step, place = divmod(self._place, len(self._order))
            expected, name = self._order[place]
            self._lost = kind != expected
            self._place += 1
            if name and not self._lost:
                self._found.append((self._layer, self._reverse, step, name, number))

    def _product(self, called: Called) -> None:
        """The product of all inputs with their weight begins a layer, or its other direction."""
        for number in called.reads:
            match = WEIGHT.search(_origin(self._tape.records, number).known_as)
            if match is not None:
                self._lost = self._lost or self._place % len(self._order) != 0
                self._layer, self._reverse, self._place = int(match[1]), match[2] is not None, 0

    def _biased(self, called: Called) -> bool:
        """Whether it adds the bias to all inputs' products, apart from them where the batch comes first."""
        return any(BIAS.match(_origin(self._tape.records, number).known_as) for number in called.reads)

    def done(self) -> None:
        """The module has returned: how many steps there were is known."""
        if self._lost:
            return
        steps = {(layer, reverse): step + 1 for layer, reverse, step, _, _ in self._found}
        for layer, reverse, step, name, number in self._found:
            place = steps[layer, reverse] - step if reverse else step + 1
            record = self._tape.records[number]
            if not record.labels:
                record.labels.append((self._name(name, layer, reverse, place), "", record.module))

    def _name(self, part: str, layer: int, reverse: bool, place: int) -> str:
        """h_3; h→_3 and h←_3 of two directions; h_3^1 of a layer under the top one; h of a cell alone."""
        if not isinstance(self._module, nn.RNNBase):
            return part
        way = "" if not self._module.bidirectional else "←" if reverse else "→"
        lower = "" if layer == self._module.num_layers - 1 else f"^{layer + 1}"
        return f"{part}{way}_{place}{lower}"


def _origin(records: list[Record], number: int) -> Record:
    """What a view is a view of."""
    record = records[number]
    while record.view is not None:
        record = records[record.sources[0]]
    return record
