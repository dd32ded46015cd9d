"""A typed configuration becomes a network: which class for which kind and task, told in one table.

build(TransformerSettings(width=256), Sizes(source=8000, target=8000), "translate")
"""

from collections.abc import Callable
from typing import Any

from regard.models.baseline_settings import FixedSettings, WindowSettings
from regard.models.baselines import Fixed, WindowEncoder
from regard.models.contract import Encoder, Model
from regard.models.input_settings import ImageSettings, InputSettings, RowSettings, WordSettings
from regard.models.network_settings import TASKS, Network, Settled, Task, network_settings
from regard.models.outputs import EncoderLabeller, EncoderTagger
from regard.models.rnn.decoder import Recurrent
from regard.models.rnn.encoder import RecurrentEncoder
from regard.models.rnn_settings import RecurrentSettings
from regard.models.sizes import Sizes
from regard.models.transformer import Transformer, TransformerEncoder
from regard.models.transformer_settings import TransformerSettings
from regard.support.nearest import unknown

__all__ = ["TASKS", "Network", "Settled", "Task", "build", "network_settings"]

SEQUENCES = ("translate", "caption", "reconstruct")
"""Tasks with a sequence out of something that is encoded."""
ONE_ANSWER = ("tag", "classify")
"""Tasks that an encoder alone does, under a head."""


def build(network: Settled, sizes: Sizes, task: str) -> Model:
    """The model for a task: a SequenceModel, a Tagger or a Labeller, with weights drawn from torch's generator."""
    if task not in TASKS:
        raise ValueError(unknown("task", task, TASKS))
    network = as_the_data_are(network, sizes, task)
    model = _MAKERS[type(network)](network, sizes, task)
    model.settings, model.sizes, model.task = network, sizes, task
    return model


def as_the_data_are(network: Any, sizes: Sizes, task: str) -> Any:
    """Settings whose input, where none was chosen, is of the sort that the data are: images, rows or words."""
    if isinstance(network, FixedSettings):
        return network.changed(encoder=as_the_data_are(network.encoder, sizes, task))
    if network.input not in (None, WordSettings()):
        return network
    found = _input_of(sizes, task)
    return network if found is None else network.changed(input=found)


def _input_of(sizes: Sizes, task: str) -> InputSettings | None:
    if task == "caption" or sizes.image is not None:
        return ImageSettings()
    return RowSettings() if sizes.input_width is not None and sizes.source is None else None


def _transformer(network: TransformerSettings, sizes: Sizes, task: str) -> Model:
    needed = "decoder" if task == "language_model" else "encoder" if task in ONE_ANSWER else "encoder-decoder"
    if network.parts not in (None, needed):
        raise ValueError(f"parts: the task {task} needs {needed!r}; got {network.parts!r} (or leave it unset)")
    if task in ONE_ANSWER:
        return _over(TransformerEncoder(network, sizes), network, sizes, task)
    return Transformer(network.changed(parts=needed), sizes)


def _recurrent(network: RecurrentSettings, sizes: Sizes, task: str) -> Model:
    if task in ONE_ANSWER:
        return _over(RecurrentEncoder(network.encoder, sizes), network, sizes, task)
    return Recurrent(network, sizes, alone=task == "language_model")


def _window(network: WindowSettings, sizes: Sizes, task: str) -> Model:
    if task not in ONE_ANSWER:
        raise ValueError(f"kind: a window gives tags or a label, not what the task {task} needs; take 'recurrent'")
    return _over(WindowEncoder(network, sizes), network, sizes, task)


def _fixed(network: FixedSettings, sizes: Sizes, task: str) -> Model:
    if task not in SEQUENCES:
        raise ValueError(f"kind: fixed maps a source to a sequence, not what the task {task} needs; take 'recurrent'")
    return Fixed(network, sizes)


def _over(encoder: Encoder, network: Any, sizes: Sizes, task: str) -> Model:
    """Tags or a label over an encoder."""
    return (EncoderTagger if task == "tag" else EncoderLabeller)(network.head, sizes, encoder)


_MAKERS: dict[type, Callable[[Any, Sizes, str], Model]] = {
    TransformerSettings: _transformer, RecurrentSettings: _recurrent, WindowSettings: _window, FixedSettings: _fixed,
}  # fmt: skip
