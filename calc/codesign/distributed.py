"""Several processes, each with a device and its own rows of the batch, and one gradient.

torch's DistributedDataParallel sums the gradients while backward runs, with NCCL between GPUs and
gloo between CPUs. It takes the plain mean of the processes' gradients; weighted by each one's share
of the samples, that is the gradient of the whole batch, uneven shards included.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sized
from typing import Unpack

from calc.codesign.accumulation import BATCH_NORM
from calc.codesign.torch_extra import torch
from calc.codesign.training_step import Batches, Gradients, Loss, Options, Step, Trainer
from calc.core.errors import InputError

dist = torch.distributed


class MultiGPUTrainer(Trainer):
    """A trainer that is one of several processes, started by `torchrun` or joined before.

    `step` takes this process's rows, as many as it has; one without any is refused in all of them,
    and so are loaders of different lengths, for which the others would wait for ever. Process r of
    n reads its part with `torch.utils.data.Subset(data, range(r, len(data), n))`.

    Batch normalisation would take its statistics from a shard, so it is refused, unless it has been
    converted to torch's SyncBatchNorm, which GPUs have.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Loss,
        **options: Unpack[Options],
    ) -> None:
        _join()
        super().__init__(model, optimizer, loss, **options)
        for name, module in model.named_modules():
            if isinstance(module, BATCH_NORM) and not isinstance(module, torch.nn.SyncBatchNorm):
                raise InputError(
                    f"{name} ({type(module).__name__}) would normalise by the statistics of each"
                    f" process's own rows; convert it by torch.nn.SyncBatchNorm on GPUs, or use"
                    f" LayerNorm or GroupNorm"
                )
        self.processes: int = dist.get_world_size()
        self._mean_weight = 0.0
        on_gpu = [self.device.index] if self.device.type == "cuda" else None
        self.replica = torch.nn.parallel.DistributedDataParallel(model, device_ids=on_gpu)

    def fit(
        self, loader: Batches, epochs: int = 1, on_step: Callable[[Step], None] | None = None
    ) -> list[Step]:
        if not isinstance(loader, Sized):
            raise InputError("fit(): of several processes, each needs a loader with a length")
        counts = self._of_all(len(loader))
        if len(set(counts)) > 1:
            raise InputError(
                f"fit(): the processes have different numbers of batches, {_listed(counts)}, and"
                f" would wait for each other for ever; give each as many"
            )
        return super().fit(loader, epochs, on_step)

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> Step:
        weights = self._of_all(float(self.weigh(targets)) if len(targets) else 0.0)
        if not all(weights):
            raise InputError(
                f"step {self.steps + 1}: every process needs a sample that counts; the processes"
                f" have {_listed(weights)}"
            )
        self._mean_weight = sum(weights) / self.processes
        return super().step(inputs, targets)

    def whole_weight(self, targets: torch.Tensor) -> float:
        return self._mean_weight  # since the mean over processes is taken of the shares

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self.loss(self.replica(inputs), targets)

    def gradients(self, inputs: torch.Tensor, targets: torch.Tensor) -> Gradients:
        loss, parts, events = super().gradients(inputs, targets)
        dist.all_reduce(loss)  # so that all stop where one's is no number
        return loss / self.processes, parts, events

    def _of_all(self, number: float) -> list[float]:
        """Return this number as each process has it, one for each."""
        mine = torch.tensor([number], dtype=torch.float64, device=self.device)
        said = [torch.zeros_like(mine) for _ in range(self.processes)]
        dist.all_gather(said, mine)
        return [float(number_said) for number_said in said]


def _join() -> None:
    """Join the processes that torchrun started, unless that is done."""
    if dist.is_initialized():
        return
    if "RANK" not in os.environ:
        raise InputError(
            "MultiGPUTrainer is one of several processes: start them with torchrun, or call"
            " torch.distributed.init_process_group() in each before"
        )
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")


def _listed(numbers: list[float]) -> str:
    return " and ".join(f"{number:g}" for number in numbers)
