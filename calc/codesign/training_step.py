"""One training step, whose three parts every trainer of this package shares and changes one of.

A step clears the gradients, runs forward and backward over the parts of a batch, each weighted by
its share, and updates the weights:

    for part in parts(batch):  forward, backward of share · loss
    update()

A plain trainer has one part. Accumulation makes several, a varying batch size makes as many as fit,
mixed precision changes forward, backward and update, several processes change the shares.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict

from calc.codesign.torch_extra import torch
from calc.core.errors import InputError

Loss: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Weigh: TypeAlias = Callable[[torch.Tensor], torch.Tensor | float]
Pair: TypeAlias = tuple[torch.Tensor, torch.Tensor]
Batches: TypeAlias = Iterable[Pair]
Gradients: TypeAlias = tuple[torch.Tensor, int, tuple[str, ...]]
State: TypeAlias = dict[str, Any]
"""What torch saves: numbers, tensors and more such dictionaries, by name."""


class Options(TypedDict, total=False):
    """Options of every trainer, beside those of its own."""

    weigh: Weigh
    clip_norm: float | None


@dataclass(frozen=True)
class Step:
    """Record of one step, which updates no weights where the gradients overflowed."""

    number: int
    loss: float
    seconds: float
    samples: int
    parts: int
    updated: bool
    events: tuple[str, ...] = ()


class Trainer:
    """Trains a model with an optimizer on a loss that is a mean over samples.

    `weigh(targets)` is the number that this mean divides by: the samples, where nothing is said. A
    loss that skips targets (ignore_index) or weights classes divides by something else, and needs
    to say by what, as in `lambda targets: (targets != -100).sum()`, where a batch is split.

    `clip_norm` limits the norm of the whole batch's gradient, once a step.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Loss,
        *,
        weigh: Weigh = len,
        clip_norm: float | None = None,
    ) -> None:
        self.model, self.optimizer, self.loss = model, optimizer, loss
        self.weigh, self.clip_norm = weigh, clip_norm
        self.steps = 0
        self.device = next(model.parameters()).device

    def fit(
        self, loader: Batches, epochs: int = 1, on_step: Callable[[Step], None] | None = None
    ) -> list[Step]:
        """A step for every batch of the loader, so many times over."""
        done: list[Step] = []
        for _ in range(epochs):
            before = len(done)
            for inputs, targets in loader:
                done.append(self.step(inputs, targets))
                if on_step:
                    on_step(done[-1])
            if len(done) == before:
                raise InputError("fit(): the loader gave no batch; it is empty or used up")
        return done

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> Step:
        """Train on one batch, and say what happened."""
        if not len(inputs) or len(inputs) != len(targets):
            raise InputError(
                f"step(): a batch needs one sample or more and a target for each;"
                f" got {len(inputs)} samples and {len(targets)} targets"
            )
        start = time.perf_counter()
        inputs, targets = inputs.to(self.device), targets.to(self.device)
        loss, parts, events = self.gradients(inputs, targets)
        if not torch.isfinite(loss):
            self.optimizer.zero_grad()
            raise InputError(
                f"step {self.steps + 1}: the loss was {float(loss)}, so the weights were left as"
                f" they were; a smaller learning rate{self.remedy()} may help"
            )
        updated = self.update()
        self.steps += 1
        if not updated:
            events = (*events, "overflow")
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        seconds = time.perf_counter() - start
        return Step(self.steps, float(loss), seconds, len(inputs), parts, updated, events)

    def gradients(self, inputs: torch.Tensor, targets: torch.Tensor) -> Gradients:
        """Fresh gradients of the batch's mean loss; that loss, the number of parts, the events."""
        self.optimizer.zero_grad()
        whole = self.whole_weight(targets)
        if not whole:
            raise InputError(f"step {self.steps + 1}: no target of the batch counts in its loss")
        total, count = 0.0, 0
        for part_inputs, part_targets in self.parts(inputs, targets):
            share = float(self.weigh(part_targets)) / whole
            if not share:  # all of its targets are skipped, and their mean is 0 / 0
                continue
            mean = self.forward(part_inputs, part_targets)
            self.backward(mean * share)
            total, count = total + mean.detach() * share, count + 1
        return total, count, ()

    def parts(self, inputs: torch.Tensor, targets: torch.Tensor) -> Iterator[Pair]:
        """Yield the parts of a batch that go through the model at once: here the whole batch."""
        yield inputs, targets

    def whole_weight(self, targets: torch.Tensor) -> float:
        """Return the total weight of which each part has a share."""
        return float(self.weigh(targets))

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean loss of one part."""
        return self.loss(self.model(inputs), targets)

    def backward(self, loss: torch.Tensor) -> None:
        """Add this loss's gradients to those that are there."""
        loss.backward()

    def update(self) -> bool:
        """Change the weights by the gradients; False where they were not fit for it."""
        self.clip()
        self.optimizer.step()
        return True

    def clip(self) -> None:
        """Limit the gradient of the whole batch; of each part, it would be another gradient."""
        if self.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)

    def remedy(self) -> str:
        """Return a remedy, besides a smaller learning rate, for a loss that is no number."""
        return ""

    def state_dict(self) -> State:
        """Return all that a later run needs to go on as if there had been no end."""
        return {
            "steps": self.steps,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from what `state_dict` gave."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.steps = state["steps"]
