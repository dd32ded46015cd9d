"""Nothing in a training pass or a step of a decoder waits for the device.

Tensors of the device meta have no numbers: whoever would fetch one from them fails, as it would wait on a GPU.
"""

import pytest
import torch

from regard.models.rnn import layers
from regard.models.transformer import Transformer
from tests.models.kinds import SEQUENCES, target


@pytest.mark.parametrize("name", SEQUENCES)
def test_no_number_is_fetched_from_the_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "must_be_written_out", lambda x: True)  # PyTorch's own packs by lengths on the CPU
    kind = SEQUENCES[name]
    model = kind.model().to("meta").train()
    source, fed, lengths = kind.source().to("meta"), target().to("meta"), kind.lengths.to("meta")
    logits = model(source, fed, lengths)
    logits.sum().backward()
    model.eval()
    with torch.no_grad():
        memory = model.encode(source, lengths)
        state = model.start(memory)
        for place in range(2):
            logits, state, _ = model.step(fed[:, place], state, memory)
            if not isinstance(model, Transformer):  # whose caches are looked at before they are copied
                state = state.select(torch.zeros(3, dtype=torch.long, device="meta"))
    assert logits.device.type == "meta"


def test_fetching_a_number_would_be_seen() -> None:
    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        bool(torch.ones(2, device="meta").all())
