"""A batch that adapts to memory: split further when it runs out, grown back with care.

The optimizer's step stays that of the whole batch, since the batch is split into parts that
accumulate; only how much goes through at once changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from calc.codesign.accumulation import GradientAccumulationTrainer
from calc.codesign.torch_extra import torch
from calc.codesign.training_step import Gradients, Loss, Options, State
from calc.codesign.work import SavedTensors
from calc.core.arguments import memory, whole_bytes, whole_number
from calc.core.errors import InputError
from calc.core.units import QuantityLike

# What torch's allocators say in a RuntimeError that is no torch.OutOfMemoryError; the CPU's:
# "DefaultCPUAllocator: can't allocate memory: you tried to allocate … bytes".
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


@dataclass(frozen=True)
class BatchChange:
    """The step in which the batch that goes through at once changed, and why."""

    step: int
    before: int
    after: int
    reason: str


class DynamicBatchSizeTrainer(GradientAccumulationTrainer):
    """A trainer that halves what goes through at once when memory runs out, and tries again.

    After `patience` steps without trouble it tries twice as much, up to `micro_batch`. Where that
    fails, it waits twice as long before the next trial. `changes` keeps the history.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Loss,
        *,
        micro_batch: int,
        patience: int = 100,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, optimizer, loss, micro_batch=micro_batch, **options)
        self.largest = self.micro_batch
        self.patience = whole_number("patience", patience)
        self.changes: list[BatchChange] = []
        self._quiet_steps = 0
        self._trying = False

    def gradients(self, inputs: torch.Tensor, targets: torch.Tensor) -> Gradients:
        events: tuple[str, ...] = ()
        self._grow(len(inputs))
        while True:
            try:
                loss, parts, _ = super().gradients(inputs, targets)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                sentence = str(error).partition("\n")[0] or type(error).__name__
            else:
                self._quiet_steps += 1
                self._trying = False
                return loss, parts, events
            # Out of the except block: the error held the frames, and they held the activations.
            self.optimizer.zero_grad()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            self._shrink(len(inputs), sentence)
            events = (*events, "out of memory")

    def _shrink(self, samples: int, sentence: str) -> None:
        tried = min(self.micro_batch, samples)
        if tried == 1:
            raise InputError(
                f"step {self.steps + 1}: one sample alone does not fit in memory ({sentence});"
                f" a smaller model, fewer activations or offloading may help"
            )
        if self._trying:
            self.patience *= 2
        self._change(tried, (tried + 1) // 2, "out of memory")

    def _grow(self, samples: int) -> None:
        wanted = min(2 * self.micro_batch, self.largest)
        if self._quiet_steps >= self.patience and self.micro_batch < min(wanted, samples):
            self._change(self.micro_batch, wanted, f"{self._quiet_steps} steps without trouble")
            self._trying = True

    def _change(self, before: int, after: int, reason: str) -> None:
        self.micro_batch, self._quiet_steps, self._trying = after, 0, False
        self.changes.append(BatchChange(self.steps + 1, before, after, reason))

    def state_dict(self) -> State:
        return super().state_dict() | {
            "micro_batch": self.micro_batch,
            "patience": self.patience,
            "quiet_steps": self._quiet_steps,
            "changes": [vars(change) for change in self.changes],
        }

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.micro_batch, self.patience = state["micro_batch"], state["patience"]
        self._quiet_steps = state["quiet_steps"]
        self.changes = [BatchChange(**change) for change in state["changes"]]


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out, on a GPU or on the CPU, whose allocator has other words.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("shapes do not match"))
    (True, False)
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    message = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in message for words in OUT_OF_MEMORY)


class SimulatedMemory:
    """A budget for what forward saves for backward, which raises as an allocator would.

        with SimulatedMemory("1 MiB") as held:
            trainer.step(inputs, targets)

    Each tensor saved counts by its elements, once, and until backward has used it; parameters,
    which are there anyway, do not count. `peak` is the most that was held, in bytes.
    """

    def __init__(self, budget: QuantityLike) -> None:
        self.budget = memory("budget", budget)
        self._tensors = SavedTensors(self._check)

    @property
    def peak(self) -> int:
        """Largest number of bytes held at a time."""
        return self._tensors.peak

    def __enter__(self) -> SimulatedMemory:
        self._tensors.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._tensors.__exit__(*error)

    def _check(self, held: int) -> None:
        if held > whole_bytes(self.budget):
            raise torch.OutOfMemoryError(
                f"simulated memory: {held} bytes are saved for backward, and the budget is"
                f" {self.budget}"
            )
