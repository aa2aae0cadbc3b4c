"""Mixed precision: products in 16 bits, weights and sums in 32, and a scale against underflow.

FP16 has 5 bits of exponent, so small gradients vanish: the loss is scaled up before backward and
the gradients down after it. Where a gradient overflows, its step is left out and the scale halved.
BF16 has the exponent of FP32 and needs no scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calc import formats
from calc.codesign.torch_extra import torch
from calc.codesign.training_step import Loss, State, Trainer
from calc.core.errors import InputError, abbreviated

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class MixedPrecisionTrainer(Trainer):
    """A trainer under autocast, in BF16 or FP16; a scaler guards the latter.

    `overflows` counts the steps whose gradients were not finite; `scale` is what multiplies the
    loss now. Options of torch's GradScaler, such as init_scale, go in as `scaler`.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Loss,
        *,
        dtype: str = "bf16",
        scaler: Mapping[str, object] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, optimizer, loss, **options)
        self.dtype = formats.get(dtype).key
        if self.dtype not in DTYPES:
            raise InputError(f"mixed precision is in BF16 or FP16; got {abbreviated(dtype)}")
        self.overflows = 0
        self.scaler = torch.amp.GradScaler(
            self.device.type, enabled=self.dtype == "fp16", **(scaler or {})
        )

    @property
    def scale(self) -> float:
        """Factor by which the loss is multiplied."""
        return float(self.scaler.get_scale())

    @property
    def overflow_rate(self) -> float:
        """Share of the steps so far whose gradients overflowed."""
        return self.overflows / self.steps if self.steps else 0.0

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self.device.type, DTYPES[self.dtype]):
            return super().forward(inputs, targets)

    def backward(self, loss: torch.Tensor) -> None:
        super().backward(self.scaler.scale(loss))

    def update(self) -> bool:
        before = self.scale
        self.scaler.unscale_(self.optimizer)
        self.clip()
        self.scaler.step(self.optimizer)  # which leaves the weights where a gradient is not finite
        self.scaler.update()
        overflowed = self.scale < before
        self.overflows += overflowed
        return not overflowed

    def remedy(self) -> str:
        return " or BF16, whose range is FP32's," if self.dtype == "fp16" else ""

    def state_dict(self) -> State:
        return super().state_dict() | {
            "dtype": self.dtype,
            "scaler": self.scaler.state_dict(),
            "overflows": self.overflows,
        }

    def load_state_dict(self, state: State) -> None:
        if state.get("dtype") != self.dtype:
            raise InputError(
                f"this trainer computes in {self.dtype.upper()}, and the state is of one in"
                f" {str(state.get('dtype', 'FP32')).upper()}"
            )
        super().load_state_dict(state)
        self.scaler.load_state_dict(state["scaler"])
        self.overflows = state["overflows"]
