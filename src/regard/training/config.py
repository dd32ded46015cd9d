"""The whole configuration of a run: what `regard train CONFIG` reads. Reads no torch.

task: translate
data:
  train: {source: a.en, target: a.de}     # the only part that must be given
output: models/en-de
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from regard.config import Settings
from regard.data.batch_settings import BatchSettings
from regard.data.settings import DataSettings, several
from regard.decoding.settings import SearchSettings
from regard.models.network_settings import Network, Settled, Task
from regard.models.rnn_settings import RecurrentSettings
from regard.models.transformer_settings import TransformerSettings
from regard.training.settings import TrainingSettings

COLUMNS: dict[str, tuple[set[str], ...]] = {
    "translate": ({"source", "target"},),
    "caption": ({"source", "target"},),
    "tag": ({"source", "tags"},),
    "classify": ({"source", "label"},),
    "language_model": ({"target"},),
    "reconstruct": ({"target"},),
}
"""The columns of the data that each task can work with."""
SEQUENCES = ("translate", "caption", "language_model", "reconstruct")
"""Tasks that give a sequence out."""

ScoreName = Literal[
    "auto", "loss", "bleu", "chrf", "exact", "error_rate", "accuracy", "f1", "span_f1"
]  # fmt: skip
SCORES: dict[str, tuple[ScoreName, ...]] = {
    "translate": ("bleu", "chrf", "exact", "error_rate", "loss"),
    "caption": ("bleu", "chrf", "exact", "error_rate", "loss"),
    "reconstruct": ("bleu", "chrf", "exact", "error_rate", "loss"),
    "language_model": ("loss",),
    "tag": ("accuracy", "span_f1", "f1", "loss"),
    "classify": ("accuracy", "f1", "loss"),
}
"""What can decide which model of a task is best; the first one does where none is named."""


class EvaluationSettings(Settings):
    """How the development set is scored while training goes on."""

    best: ScoreName = "auto"
    """What decides which model is best: bleu or chrf of decoded text, exact (the share of outputs that are right as a
    whole), error_rate (edits a word of the reference), accuracy, f1 (mean over labels), span_f1 (of BIO tags), or
    loss; auto: the first of these that the task has."""
    lowercase: bool = False
    """For bleu and chrf: compare without regard to case."""
    tokenize: str | None = None
    """For bleu: sacreBLEU's tokenizer (13a, none, zh, …); unset, its default."""
    beam: int = Field(default=1, ge=1)
    """Of the search while training goes on; the last evaluation searches as `decoding` says."""
    tokens: int | None = Field(default=None, ge=1)
    """The most places of a batch that is decoded; unset, twice that of training."""


class Config(Settings):
    """A whole run, from data to model folder."""

    task: Task = "translate"
    """What the model is for."""
    name: str | None = None
    """What the model is called in its card; unset, as its folder."""
    data: DataSettings | None = None
    """The corpora and what is done to them; or else `prepared`."""
    prepared: str | None = None
    """A folder that `regard prepare` wrote, used as it is and instead of `data`."""
    network: Network | None = None
    """The network; unset, a Transformer of middling size, or that of `init_from`."""
    batches: BatchSettings = BatchSettings()
    """How examples become batches. Several processes share one batch among them."""
    training: TrainingSettings = TrainingSettings()
    """How long, by which rule."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """How models are scored as training goes on."""
    decoding: SearchSettings = SearchSettings()
    """How outputs are sought when training is over; the model folder keeps it as its default."""
    output: str
    """The model folder that is written; checkpoints go beside the model in it, under `training`."""
    init_from: str | None = None
    """A model folder whose weights, network and tokenizers are trained on from."""
    extend_vocabulary: bool = False
    """With init_from: learn a tokenizer on the new data as well, and add the tokens and languages that the model does
    not have."""
    seed: int = Field(default=1, ge=0)
    """Of weights, order, dropout and everything else that is drawn."""
    device: str = "auto"
    """cpu, cuda, cuda:1, mps; auto takes the fastest there is."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads; unset, as many as there are cores."""

    @property
    def settled(self) -> Settled:
        """The network, with its default filled in."""
        return TransformerSettings() if self.network is None else self.network

    @property
    def decides(self) -> ScoreName:
        """The score that decides which model is best."""
        return SCORES[self.task][0] if self.evaluation.best == "auto" else self.evaluation.best

    @model_validator(mode="after")
    def _data_or_prepared(self) -> Self:
        if (self.data is None) == (self.prepared is None):
            came = "neither" if self.data is None else "both"
            raise ValueError(
                f"data: expected data, or prepared (a folder of regard prepare), one of the two; got {came}"
            )
        return self

    @model_validator(mode="after")
    def _the_task_has_its_columns(self) -> Self:
        if self.data is None:
            return self
        columns = several(self.data.train)[0].sorts()
        if set(columns) not in COLUMNS[self.task]:
            wanted = " or ".join(" and ".join(sorted(each)) for each in COLUMNS[self.task])
            fits = [task for task, needed in COLUMNS.items() if set(columns) in needed]
            raise ValueError(
                f"task: {self.task} needs data with {wanted}; data.train gives {' and '.join(columns)}"
                + (f" (which {' or '.join(fits)} could use)" if fits else "")
            )
        wrong = next((name for name, sort in columns.items() if name == "target" and sort != "text"), None)
        if wrong is not None:
            raise ValueError(f"task: {self.task} gives text out; the target of data.train is {columns[wrong]}")
        return self

    @model_validator(mode="after")
    def _combinations_that_can_be(self) -> Self:
        recurrent = isinstance(self.network, RecurrentSettings)
        hard = (
            self.network.attention.hard
            if isinstance(self.network, RecurrentSettings) and self.network.attention
            else None
        )
        if self.evaluation.best != "auto" and self.evaluation.best not in SCORES[self.task]:
            can = ", ".join(SCORES[self.task])
            raise ValueError(f"evaluation.best: the task {self.task} has no {self.evaluation.best}; it has {can}")
        if self.training.teaching.own > 0 and not recurrent and self.init_from is None:
            raise ValueError(
                "training.teaching.own: scheduled sampling is for recurrent decoders (network.kind: recurrent); "
                "a Transformer sees all steps at once"
            )
        if self.training.teaching.own > 0 and hard == "reinforce":
            raise ValueError(
                "training.teaching.own: not with attention.hard: reinforce, whose reward is of given words"
            )
        if self.extend_vocabulary and self.init_from is None:
            raise ValueError("extend_vocabulary: there is no vocabulary to extend without init_from")
        if self.training.graphs == "yes" and self.batches.shapes is None:
            raise ValueError("training.graphs: a graph is for one shape; bound them with batches.shapes (16, say)")
        return self
