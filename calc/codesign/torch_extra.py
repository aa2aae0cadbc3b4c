"""torch, or the sentence that says how to get it: `from calc.codesign.torch_extra import torch`."""

from __future__ import annotations

from calc.core.errors import MissingExtraError

try:
    import torch
    import torch.distributed
    import torch.utils.flop_counter
except ImportError:
    raise MissingExtraError("the training loop of calc.codesign", "torch", "torch") from None

__all__ = ["torch"]
