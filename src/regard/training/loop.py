"""The loop: batches, an update, now and then an evaluation, a checkpoint, a word to whoever watches.

`Run` holds all that changes while a model trains; `resuming` brings it to the disk and back, to the bit.
"""

import math
import signal
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from regard.data.collating import Batch
from regard.models.contract import Model, SequenceModel
from regard.support.errors import Failure
from regard.training import checkpoint, faults
from regard.training.averaging import Averaging
from regard.training.config import Config
from regard.training.evaluating import Evaluator, Found
from regard.training.feeding import feed, noised, shared
from regard.training.optimizers import set_rate
from regard.training.processes import Processes
from regard.training.progressing import Best, Counters, Heeding, Stopped
from regard.training.recording import Recorder
from regard.training.resuming import state_of
from regard.training.schedule import Schedule
from regard.training.stream import Stream
from regard.training.telling import State, Teller
from regard.training.updating import History

ASK_EVERY = 8
"""Updates between which several processes agree on whether to stop, save or evaluate by the clock."""


@dataclass
class Run:
    """A model in training, and what goes with it."""

    config: Config
    model: Model
    update: Callable[..., Tensor]
    optimizers: list[Optimizer]
    schedule: Schedule
    averaging: Averaging
    stream: Stream
    processes: Processes
    evaluator: Evaluator | None
    teller: Teller
    lengths_stay: bool = False
    counters: Counters = field(default_factory=Counters)
    best: list[Best] = field(default_factory=list)
    before_update: Callable[[int], None] | None = None
    """Told the number of each update before it is made."""
    recorder: Recorder | None = None

    def __post_init__(self) -> None:
        self.device = self.processes.device
        self.start = self.model.start_token if isinstance(self.model, SequenceModel) else 0
        self.history = History(self.device)
        self._recent: deque[tuple[int, Any, Any]] = deque(
            maxlen=len(self.history.losses) + self.config.training.not_finite
        )
        self._signals = Heeding()
        self._clock = self._told = self._saved = time.monotonic()
        self._since = (0, self._clock)
        self._mean_loss = math.nan

    # The loop

    def train(self) -> None:
        """Until the end, or until asked to stop (Stopped), or until the loss stays infinite (Failure)."""
        own = self.config.training
        self.model.train()
        try:
            with self._signals:
                while not self.counters.done:
                    self.step()
                    stop, save, told, over = self._agreed()
                    if told or self.history.full:
                        self.read_losses()
                    if over or self._evaluation_is_due():
                        self.read_losses()
                        self.evaluate()
                        save = True
                    if over or (own.patience is not None and self.counters.without_better >= own.patience):
                        self.counters.done = save = True
                    if save or stop:
                        self.save()
                    if stop and not self.counters.done:
                        raise Stopped(
                            self._signals.asked or signal.SIGTERM, str(checkpoint.path_in(self.config.output))
                        )
        finally:
            self.stream.close()

    def step(self) -> None:
        """One update, from as many batches as are accumulated."""
        self.counters.step += 1
        self.schedule.clock_gone = self._clock_gone()
        set_rate(self.optimizers, self.schedule.share(self.counters.step))
        if self.before_update is not None:
            self.before_update(self.counters.step)
        batches = [self._next() for _ in range(self.config.training.accumulate)]
        places = sum(batch.tokens for batch in batches)
        fed = [self._fed(batch) for batch in batches]
        try:
            loss = self.update(fed, places)
        except torch.OutOfMemoryError as error:
            raise Failure(faults.out_of_memory(self.config, self.counters.step, self.device, batches, error)) from None
        self.averaging.after_step()
        self.history.put(loss)
        self.counters.places += places

    def _next(self) -> Batch:
        batch = self.stream.next()
        self._recent.append((self.counters.step, self.stream.source, batch.rows))
        if self.config.task == "reconstruct":
            batch = noised(batch, self.config.training.noise, (self.config.seed, *self.stream.position))
        return batch

    def _fed(self, batch: Batch) -> Any:
        mine = shared(batch, self.processes.rank, self.processes.ranks)
        return feed(mine, self.start, self.device, lengths_stay=self.lengths_stay)

    # What is due

    def _agreed(self) -> tuple[bool, bool, bool, bool]:
        """Whether to stop for a signal, to save, to read the losses, and whether it is over; all processes agree."""
        now = time.monotonic()
        self.counters.seconds += now - self._clock
        self._clock = now
        if self.processes.ranks > 1 and self.counters.step % ASK_EVERY:
            return False, False, False, self._is_over_by_count()
        own = self.config.training
        limit = own.minutes is not None and self.counters.seconds >= own.minutes * 60
        save = now - self._saved >= own.save_every * 60
        told = now - self._told >= own.tell_every or (self.device.type == "cpu" and self.counters.in_a_row > 0)
        stop, save, told, limit = self.processes.any([self._signals.asked > 0, save, told, limit])
        return stop, save, told, limit or self._is_over_by_count()

    def _is_over_by_count(self) -> bool:
        own = self.config.training
        steps = own.steps is not None and self.counters.step >= own.steps
        return steps or (own.most_epochs is not None and self.stream.epochs >= own.most_epochs)

    def _evaluation_is_due(self) -> bool:
        """Whenever another `evaluate_every` epochs are full."""
        if self.evaluator is None:
            return False
        return self.stream.epochs >= (self.counters.evaluations + 1) * self.config.training.evaluate_every

    def _clock_gone(self) -> float | None:
        minutes = self.config.training.minutes
        return None if minutes is None else min(1.0, self.counters.seconds / (minutes * 60))

    # Losses

    def read_losses(self) -> None:
        """Fetch the losses since the last time, write and tell them; skipped ones are counted."""
        if not self.history.count:
            return
        losses = self.processes.summed(self.history.take()).tolist()
        for number, loss in enumerate(losses, self.counters.step - len(losses) + 1):
            self._heard(number, loss)
        now = time.monotonic()
        places, since = self._since
        speed = (self.counters.places - places) / max(now - since, 1e-9)
        self._since, self._told = (self.counters.places, now), now
        finite = [loss for loss in losses if math.isfinite(loss)]
        if not finite:
            return
        self._mean_loss = sum(finite) / len(finite)
        rate = float(self.optimizers[0].param_groups[0].get("highest", 0.0)) * self.schedule.share(self.counters.step)
        if self.recorder is not None:
            figures = {"epoch": round(self.stream.epochs, 4), "loss": self._mean_loss, "rate": rate}
            timed = {"tokens_a_second": round(speed, 1), "seconds": round(self.counters.seconds, 3)}
            self.recorder("train", self.counters.step, figures | timed | {"left_out": self.counters.left_out})
        self.teller.update(State(self.stream.epochs, self.counters.step, self._mean_loss, speed, rate, self._still()))

    def _heard(self, step: int, loss: float) -> None:
        if math.isfinite(loss):
            self.counters.in_a_row = 0
            return
        self.counters.left_out += 1
        self.counters.in_a_row += 1
        if self.counters.in_a_row >= self.config.training.not_finite:
            rows = [(source, each) for number, source, rows in self._recent if number == step for each in rows]
            raise Failure(faults.not_finite(self.config, step, self.counters.in_a_row, rows))

    def _still(self) -> float | None:
        """Seconds until the end, by what has gone so far."""
        own = self.config.training
        gone = [self._clock_gone() or 0.0]
        gone += [self.counters.step / own.steps] if own.steps else []
        gone += [self.stream.epochs / own.most_epochs] if own.most_epochs else []
        share = max(gone)
        return self.counters.seconds * (1 - share) / share if 0 < share <= 1 else None

    # Evaluations and checkpoints

    def evaluate(self) -> None:
        """Score the averaged weights and keep them if they are among the best; the first process does it for all."""
        if self.evaluator is None:
            return
        self.averaging.before_evaluation()
        told: Any = None
        if self.processes.first:
            search = self.config.decoding.changed(beam=self.config.evaluation.beam, nbest=1, groups=1)
            self.teller.doing = f"step {self.counters.step:,}: scoring the development set"
            with self.averaging.in_place():
                found = self.evaluator(self.model, search)
                told = found, self._kept(found.rank(self.config.decides))
        found, file = self.processes.gathered(told)[0]
        self._judge(found, file)
        self._since = (self.counters.places, time.monotonic())
        self.model.train()

    def _kept(self, rank: list[float]) -> str | None:
        """The file the weights were written to, if they are among the best."""
        keep = self.config.training.keep_best
        if len(self.best) >= keep and rank <= self.best[keep - 1].rank:
            return None
        return checkpoint.write_weights(self.config.output, self.counters.step, self.model)

    def _judge(self, found: Found, file: str | None) -> None:
        rank = found.rank(self.config.decides)
        better = not self.best or rank > self.best[0].rank
        self.counters.evaluations += 1
        self.counters.without_better = 0 if better else self.counters.without_better + 1
        self.schedule.hear(rank[0], higher_is_better=True)
        if file is not None:
            self.best.append(Best(self.counters.step, rank, file, found.figures))
            self.best.sort(key=lambda each: each.rank, reverse=True)
            del self.best[self.config.training.keep_best :]
        if self.recorder is not None:
            timed = {"epoch": round(self.stream.epochs, 4), "seconds": round(self.counters.seconds, 3)}
            self.recorder("dev", self.counters.step, timed | found.figures)
        self.teller.doing = ""
        self._tell_evaluation(found, better)

    def _tell_evaluation(self, found: Found, better: bool) -> None:
        columns = {"epoch": f"{self.stream.epochs:.2f}", "step": f"{self.counters.step:,}"}
        columns |= {"loss": f"{self._mean_loss:.3f}", "dev loss": f"{found.loss:.3f}"}
        columns |= {score.name: str(score).removeprefix(score.name).strip() for score in found.scores.values()}
        self.teller.row(columns | {"best": "*" if better else ""})
        for pair, scores in found.by_pair.items():
            self.teller.say(f"    {pair}: {', '.join(map(str, scores.values()))}")
        self.teller.samples(found.samples)

    def save(self) -> None:
        """Write a checkpoint, and forget weights that are none of the best any more."""
        self.read_losses()
        state = state_of(self)  # all processes give their parts
        if self.processes.first:
            checkpoint.write(self.config.output, state)
            checkpoint.forget_all_but(self.config.output, [each.file for each in self.best])
        self.processes.wait()
        self._saved = time.monotonic()

    def forget_time(self) -> None:
        """Speeds are reckoned from here on."""
        self._since = (self.counters.places, time.monotonic())
