"""Attention in models that label nothing: what is normalised and then multiplied with values has our names."""

from collections.abc import Mapping, Sequence

from regard.tracing.record import Record

SOFTMAX = ("aten._softmax", "aten._safe_softmax")
PRODUCTS = ("aten.bmm", "aten.mm", "aten.baddbmm")


def attention_names(records: Sequence[Record], sources: Mapping[int, tuple[int, ...]]) -> dict[int, str]:
    """E for the scores, A for the weights, O for the values mixed by them; without those that have a label."""
    here = {record.number: record for record in records}
    found: dict[int, str] = {}
    for product in records:
        if product.operation in PRODUCTS and product.called is not None:
            weights = _weights(here, sources, product.called.reads[0])
            if weights is not None:
                scores = _moved(here, sources, sources[weights.number][0])
                found |= {scores.number: "E", weights.number: "A", product.number: "O"}
    return {number: name for number, name in found.items() if not here[number].labels and here[number].called}


def _moved(here: Mapping[int, Record], sources: Mapping[int, tuple[int, ...]], number: int) -> Record:
    """What a chain of views is of."""
    while here[number].role == "move" and len(sources[number]) == 1:
        number = sources[number][0]
    return here[number]


def _weights(here: Mapping[int, Record], sources: Mapping[int, tuple[int, ...]], number: int) -> Record | None:
    """The softmax that a factor comes from, through dropout where there was one."""
    record = _moved(here, sources, number)
    if record.operation == "aten.mul" and record.called is not None:
        record = _moved(here, sources, record.called.reads[0])
    return record if record.operation in SOFTMAX and record.role == "computed" else None
