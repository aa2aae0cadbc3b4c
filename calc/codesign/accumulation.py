"""Gradient accumulation: a batch that does not fit goes through in parts, and the step is the same.

The gradient of a mean over N samples is the sum over parts of n/N times the gradient of the part's
own mean. Dividing by the number of parts instead is right only where all are of one size.

It is not the same step where a sample's loss depends on which others are with it, and these are
named: batch normalisation takes its statistics from a part, dropout draws other masks, a mean that
skips targets (ignore_index) or weights classes does not divide by the samples, and a gradient that
is clipped part by part is another gradient, which is why `clip_norm` acts once a step.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Unpack

from calc.codesign.torch_extra import torch
from calc.codesign.training_step import Loss, Options, Pair, Trainer
from calc.core.arguments import whole_number
from calc.core.errors import InputError

DROPOUT = torch.nn.modules.dropout._DropoutNd
BATCH_NORM = torch.nn.modules.batchnorm._BatchNorm


class GradientAccumulationTrainer(Trainer):
    """A trainer whose step takes a batch in parts of at most `micro_batch` samples.

    It warns of what makes that another step than the whole batch's, where this can be seen in the
    model or in the loss, and refuses a batch whose skipped targets would be weighted wrongly.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Loss,
        *,
        micro_batch: int,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, optimizer, loss, **options)
        self.micro_batch = whole_number("micro_batch", micro_batch)
        self._warned = False

    def parts(self, inputs: torch.Tensor, targets: torch.Tensor) -> Iterator[Pair]:
        if len(inputs) > self.micro_batch:
            self._check(targets)
        yield from zip(inputs.split(self.micro_batch), targets.split(self.micro_batch), strict=True)

    def _check(self, targets: torch.Tensor) -> None:
        if self.weigh is len and divides_by_other_than_samples(self.loss, targets):
            raise InputError(
                "the loss's mean skips targets or weights classes, so parts cannot be weighted by"
                " their samples; give weigh, what the mean divides by, as in"
                " weigh=lambda targets: (targets != -100).sum()"
            )
        reasons = breaks_equality(self.model)
        if reasons and not self._warned:
            self._warned = True
            warnings.warn(
                f"steps in parts will not equal steps with the whole batch: {'; '.join(reasons)}",
                stacklevel=2,
            )


def breaks_equality(model: torch.nn.Module) -> list[str]:
    """Return the reasons that tie a sample's loss to its batch, in a model that is being trained.

    >>> import torch
    >>> breaks_equality(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.1)))
    ['1 (Dropout) draws a mask for each part']
    """
    reasons = []
    for name, module in model.named_modules():
        if not module.training:
            continue
        if isinstance(module, BATCH_NORM):
            reasons.append(f"{name} ({type(module).__name__}) normalises by the part's statistics")
        elif isinstance(module, DROPOUT) and module.p > 0:
            reasons.append(f"{name} ({type(module).__name__}) draws a mask for each part")
    return reasons


def divides_by_other_than_samples(loss: Loss, targets: torch.Tensor) -> bool:
    """Return whether a torch loss averages over fewer than all samples, or weights them."""
    if (reduction := getattr(loss, "reduction", "mean")) != "mean":
        raise InputError(f"the loss must be a mean over samples; its reduction is {reduction}")
    if getattr(loss, "weight", None) is not None:
        return True
    ignored = getattr(loss, "ignore_index", None)
    return ignored is not None and bool((targets == ignored).any())
