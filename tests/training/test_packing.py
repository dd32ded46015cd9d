"""States of any nesting, in one file that executes nothing."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.training import packing


def test_a_nested_state_comes_back_as_it_was(tmp_path: Path) -> None:
    shared = torch.arange(4.0)
    state: dict[str, Any] = {
        "a": [1, 2.5, None, "text", True], "b": {3: {"t": shared, "also": shared}, "empty": {}, "none": []},
        "view": shared[1:3], "bits": torch.tensor([1], dtype=torch.uint8), "half": torch.ones(2, dtype=torch.bfloat16),
    }  # fmt: skip
    packing.write(tmp_path / "s", state)
    back = packing.read(tmp_path / "s")
    assert back["a"] == state["a"]
    assert list(back["b"]) == [3, "empty", "none"]
    assert torch.equal(back["b"][3]["also"], shared)
    assert torch.equal(back["view"], shared[1:3])
    assert back["half"].dtype == torch.bfloat16


@pytest.mark.parametrize("damage", [lambda data: data[:50], lambda data: b"", lambda data: b"x" * 100])
def test_what_is_no_state_is_told(tmp_path: Path, damage: Any) -> None:
    packing.write(tmp_path / "s", {"t": torch.zeros(100)})
    (tmp_path / "s").write_bytes(damage((tmp_path / "s").read_bytes()))
    with pytest.raises(ValueError, match="s: no checkpoint, or a damaged one"):
        packing.read(tmp_path / "s")
