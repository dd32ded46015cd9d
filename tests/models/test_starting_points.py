"""The configurations that come with the package: each is one, and its network is built and runs."""

from pathlib import Path

import pytest
import torch

from regard.config import read_config
from regard.models.build import build
from regard.models.contract import SequenceModel
from regard.models.sizes import Sizes
from regard.training.config import Config

FOLDER = Path(__file__).parents[2] / "configs"
NAMES = [
    "rnn-plain", "rnn-bahdanau", "rnn-luong", "transformer-tiny", "transformer-base", "tagger", "classifier",
    "captioner",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_starting_point_is_short_and_its_network_runs(name: str) -> None:
    path = FOLDER / f"{name}.yaml"
    assert len(path.read_text(encoding="utf-8").splitlines()) < 30
    config = read_config(path, Config)
    image = (1, 28, 0) if config.task == "caption" else None
    characters = 257 if config.data is not None and config.data.characters else None
    sizes = Sizes(source=50, target=50, tags=7, labels=2, characters=characters, image=image)
    model = build(config.settled, sizes, config.task).eval()
    source = torch.rand(2, 1, 28, 56) if image else torch.randint(4, 50, (2, 5))
    source = source if characters is None else torch.randint(4, 50, (2, 5, 9))
    with torch.inference_mode():
        if isinstance(model, SequenceModel):
            assert model(source, torch.randint(4, 50, (2, 3))).shape == (2, 3, 50)
        else:
            logits = model.predict(model.encode(source))
            assert logits.shape == ((2, 5, 7) if config.task == "tag" else (2, 2))


@pytest.mark.parametrize("name", NAMES)
def test_every_starting_point_is_told_in_the_readme(name: str) -> None:
    assert f"| `{name}` |" in (FOLDER / "README.md").read_text(encoding="utf-8")
