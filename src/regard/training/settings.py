"""What can be set about training. Reads no torch: a configuration is checked before any work starts."""

from typing import Literal, Self

from pydantic import Field, model_validator

from regard.config import Settings


class OptimizerSettings(Settings):
    """How gradients become steps."""

    name: Literal["adamw", "adam", "sgd", "muon"] = "adamw"
    """muon turns the updates of matrices into orthogonal ones (where torch has it) and leaves the rest to adamw."""
    rate: float | None = Field(default=None, gt=0)
    """The learning rate at its highest; unset: 5e-4 for adam and adamw, 0.5 for sgd, 5e-3 for muon."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Of adam and adamw: how long the means of the gradients and of their squares remember."""
    epsilon: float = Field(default=1e-8, gt=0)
    """Of adam and adamw: added to the root of the mean square."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Of sgd and muon."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Matrices shrink by this share times the rate a step (adam: it is added to the gradient)."""

    @property
    def highest(self) -> float:
        """The learning rate at its highest."""
        return {"sgd": 0.5, "muon": 5e-3}.get(self.name, 5e-4) if self.rate is None else self.rate


class ScheduleSettings(Settings):
    """How the learning rate goes over time: up in a line for `warmup` steps, then as named."""

    name: Literal["inverse_root", "cosine", "linear", "constant", "plateau"] = "inverse_root"
    """inverse_root: √(warmup / step); cosine and linear fall to `final` by the last step; plateau falls by `factor`
    when evaluations stop getting better."""
    warmup: int = Field(default=400, ge=0)
    """Steps."""
    final: float = Field(default=0.0, ge=0, le=1)
    """What is left of the rate at the last step, for cosine and linear."""
    factor: float = Field(default=0.5, gt=0, lt=1)
    """For plateau: what the rate is multiplied by."""
    patience: int = Field(default=2, ge=1)
    """For plateau: so many evaluations without a better one and the rate falls."""


class AveragingSettings(Settings):
    """Which weights are evaluated and saved: the last ones, or a mean, which is nearly always better."""

    name: Literal["exponential", "last", "none"] = "exponential"
    """exponential: w ← d w + (1 - d) new at every step; last: the mean of the weights at the last evaluations."""
    decay: float = Field(default=0.998, gt=0, lt=1)
    """d, for exponential; early in a run less, so that the beginning is forgotten."""
    count: int = Field(default=5, ge=1)
    """How many, for last."""


class TeachingSettings(Settings):
    """What a decoder is fed in training: the right tokens, or sometimes its own (scheduled sampling)."""

    own: float = Field(default=0.0, ge=0, le=1)
    """How often it is fed its own prediction in the end, for recurrent decoders; 0 is teacher forcing throughout."""
    start: int = Field(default=0, ge=0)
    """The step at which that begins …"""
    full: int = Field(default=1, ge=1)
    """… and how many steps later it has grown to `own`."""


class ReinforceSettings(Settings):
    """Hard attention by REINFORCE: how its reward, baseline and entropy count."""

    weight: float = Field(default=1.0, ge=0)
    """Of the term (reward - baseline) log p(choice)."""
    discount: float = Field(default=0.5, ge=0, le=1)
    """How much less each later word counts in the reward of a choice; 0 rewards a choice by its own word alone."""
    entropy: float = Field(default=0.01, ge=0)
    """Of the entropy of the choices, which keeps them from settling too soon."""
    baseline: float = Field(default=0.1, ge=0)
    """Of the squared error of the learned baseline."""


class NoiseSettings(Settings):
    """For the task reconstruct: the source is the target with this done to it."""

    drop: float = Field(default=0.0, ge=0, lt=1)
    """The share of the tokens that are left out."""
    mask: float = Field(default=0.0, ge=0, lt=1)
    """The share of the tokens that become <unk>."""
    shuffle: int = Field(default=0, ge=0)
    """Tokens move by fewer places than this; 0 and 1 leave them where they are."""


class TrainingSettings(Settings):
    """How long, in what pieces, by which rule, and what is watched."""

    steps: int | None = Field(default=None, ge=1)
    """Stop after so many updates …"""
    epochs: float | None = Field(default=None, gt=0)
    """… or after so many passes over the data …"""
    minutes: float | None = Field(default=None, gt=0)
    """… or after so long, whichever comes first. Unset all three: 30 epochs."""
    optimizer: OptimizerSettings = OptimizerSettings()
    """How gradients become steps."""
    schedule: ScheduleSettings = ScheduleSettings()
    """How the learning rate goes."""
    averaging: AveragingSettings = AveragingSettings()
    """Which weights are evaluated and saved."""
    teaching: TeachingSettings = TeachingSettings()
    """What a decoder is fed."""
    reinforce: ReinforceSettings = ReinforceSettings()
    """For hard attention of that kind."""
    accumulate: int = Field(default=1, ge=1)
    """How many batches make one update."""
    clip: float = Field(default=1.0, ge=0)
    """The longest gradient; a longer one is scaled down to it. 0: none is."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """The share of the right answer's weight that is spread over all answers."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of products: bfloat16 where the device multiplies it faster, with weights and sums in float32."""
    compile: Literal["auto", "yes", "no"] = "auto"
    """torch.compile: takes a minute to begin with and is faster afterwards; auto weighs the one against the other."""
    fused: Literal["auto", "yes", "no"] = "auto"
    """On a GPU, for Transformers in bfloat16: what stands between the products is one pass each, by Triton, in place of
    torch.compile and without its minute; no: the network as it is written."""
    graphs: Literal["auto", "yes", "no"] = "auto"
    """CUDA graphs: a whole step becomes one launch, one graph for each shape of batch (see batches.shapes)."""
    temperature: float = Field(default=1.0, ge=1)
    """With several sources (or directions) of n_i examples each, an epoch holds them by n_i^(1 / temperature): above
    1 the small ones come more often than they are, and the large ones less."""
    noise: NoiseSettings = NoiseSettings()
    """What is done to the source of the task reconstruct, anew at every pass."""
    evaluate_every: float = Field(default=1.0, gt=0)
    """In epochs; the development set is decoded and scored."""
    evaluate_at_most: int = Field(default=1000, ge=1)
    """So many examples of it, the same each time."""
    keep_best: int = Field(default=1, ge=1)
    """How many of the best models are kept; the best one is what is saved at the end."""
    patience: int | None = Field(default=8, ge=1)
    """Stop after so many evaluations without a better one; null: never."""
    save_every: float = Field(default=5.0, gt=0)
    """Minutes between checkpoints; one is also written at every evaluation, and when asked to stop."""
    not_finite: int = Field(default=10, ge=1)
    """Stop after so many losses in a row that are not finite; each is skipped and counted."""
    samples: int = Field(default=3, ge=0)
    """Outputs shown at each evaluation."""
    tell_every: float = Field(default=1.0, gt=0)
    """Seconds between readings of the loss, which go to metrics.jsonl; a GPU is not made to wait in between."""
    tensorboard: bool = False
    """Write every figure for TensorBoard as well, which must be installed."""
    shard_optimizer: bool = False
    """With several processes: each keeps only its share of the optimizer's state."""

    @model_validator(mode="after")
    def _sums_up(self) -> Self:
        if self.optimizer.name != "sgd" and not all(0 <= beta < 1 for beta in self.optimizer.betas):
            raise ValueError(
                f"optimizer.betas: expected two numbers from 0 to below 1; got {list(self.optimizer.betas)}"
            )
        return self

    @property
    def most_epochs(self) -> float | None:
        """Passes over the data after which to stop, if that is what ends it."""
        unset = self.steps is None and self.epochs is None and self.minutes is None
        return 30.0 if unset else self.epochs
