"""What can be found out before any work starts: files that are missing, networks that cannot be, packages not there."""

from typing import Any

import torch

from regard.data.places import place
from regard.data.settings import several
from regard.models.build import build
from regard.models.input_settings import WordSettings
from regard.models.sizes import Sizes
from regard.support.errors import Misuse
from regard.text.settings import TokenizerSettings
from regard.training import fine_tuning
from regard.training.config import Config
from regard.training.recording import writer_class


def check(config: Config) -> None:
    """Misuse with the first thing that is in the way."""
    settings = getattr(config.settled, "input", None)
    if isinstance(settings, WordSettings) and settings.vectors is not None:
        place(settings.vectors)
    if config.training.tensorboard:
        writer_class()
    fine_tuning.checked(config)
    if config.init_from is None and config.data is not None:
        _can_be_built(config)


def _can_be_built(config: Config) -> None:
    """The network on a device that holds no numbers, in a small world of the sort that the data are."""
    try:
        with torch.device("meta"):
            build(config.settled, _small_world(config), config.task)
    except Misuse:
        raise
    except ValueError as error:
        raise Misuse(f"network: {error}") from None
    except (NotImplementedError, RuntimeError):
        return  # what cannot be tried without numbers is found out when the data are known


def _small_world(config: Config) -> Sizes:
    assert config.data is not None
    columns = several(config.data.train)[0].sorts()
    joint = not isinstance(config.data.tokenizer, TokenizerSettings) or config.data.tokenizer.joint
    known: dict[str, Any] = {"target": 40 if joint else 50, "tags": 4, "labels": 4, "characters": 257}
    source = columns.get("source", "text")
    if source in ("text", "words"):
        known["source"] = 40
    elif source == "numbers":
        known["input_width"] = 2
    else:
        known["image"] = (1, 64, 0)
    return Sizes(**known)
