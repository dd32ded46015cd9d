"""One update: losses, gradients, their length, the optimizer. Nothing in it waits for a GPU.

    loss = update(fed_batches, places)          the mean over all places; nan where the update was left out

A loss or gradient that is not finite leaves the weights and the optimizer as they were. That is decided on the device:
the fused optimizers of PyTorch take the decision, and the factor that shortens a long gradient, as tensors.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import get_total_norm
from torch.optim import Optimizer

from regard.training.feeding import Fed
from regard.training.optimizers import fused, whole


class Update:
    """From batches to new weights."""

    def __init__(
        self,
        objective: nn.Module,
        optimizers: Sequence[Optimizer],
        *,
        clip: float,
        bfloat16: bool,
        device: torch.device,
        ranks: int = 1,
    ) -> None:
        self.objective, self.optimizers, self.clip = objective, list(optimizers), clip
        self.bfloat16, self.device, self.ranks = bfloat16, device, ranks
        self.parameters = [each for each in objective.parameters() if each.requires_grad]
        self.fused = fused(self.optimizers)

    def __call__(self, several: Sequence[Fed], places: int) -> Tensor:
        """`places`: how many words (tags, labels) the batches of all processes hold together."""
        return self.run(several, 1.0 / max(places, 1))

    def run(self, several: Sequence[Fed], share: float | Tensor) -> Tensor:
        """The same, with 1 / places as a number or, for a graph, as a tensor."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        losses = []
        for number, fed in enumerate(several):
            with self._unsynchronised() if number < len(several) - 1 else nullcontext():
                with self.autocast():
                    loss = self.objective(fed) * share
                (loss * self.ranks if self.ranks > 1 else loss).backward()  # which are then averaged over the ranks
            losses.append(loss.detach())
        loss = losses[0] if len(losses) == 1 else torch.stack(losses).sum()
        norm = get_total_norm([each.grad for each in self.parameters if each.grad is not None])
        fine = torch.isfinite(norm) & torch.isfinite(loss)
        self._step(norm, fine)
        return loss.masked_fill(~fine, torch.nan)

    def autocast(self) -> AbstractContextManager[None]:
        """Products in bfloat16 where that was chosen."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.bfloat16)

    def _step(self, norm: Tensor, fine: Tensor) -> None:
        if not self.fused:
            self._step_plainly(norm, fine)
            return
        found = (~fine).float()
        longer = (norm / self.clip).clamp(min=1.0) if self.clip else torch.ones_like(norm)
        for optimizer in self.optimizers:
            stepper = whole(optimizer)
            stepper.found_inf, stepper.grad_scale = found, longer  # type: ignore[attr-defined]
            optimizer.step()

    def _step_plainly(self, norm: Tensor, fine: Tensor) -> None:
        """For optimizers that know no such tensors."""
        if not bool(fine):
            return
        if self.clip and float(norm) > self.clip:
            torch._foreach_mul_(
                [each.grad for each in self.parameters if each.grad is not None], self.clip / float(norm)
            )
        for optimizer in self.optimizers:
            optimizer.step()

    def _unsynchronised(self) -> AbstractContextManager[None]:
        """Only the last of several batches sends gradients round."""
        if isinstance(self.objective, DistributedDataParallel):
            return self.objective.no_sync()
        return nullcontext()


class History:
    """The losses of the last updates, kept on the device until they are asked for."""

    def __init__(self, device: torch.device, size: int = 256) -> None:
        self.losses = torch.zeros(size, device=device)
        self.count = 0

    @property
    def full(self) -> bool:
        return self.count == len(self.losses)

    def put(self, loss: Tensor) -> None:
        self.losses[self.count].copy_(loss, non_blocking=True)
        self.count += 1

    def take(self) -> Tensor:
        """All since the last time, on the device."""
        taken = self.losses[: self.count].clone()
        self.count = 0
        return taken
