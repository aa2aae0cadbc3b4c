"""torch, or the sentence that says how to get it: `from calc.codesign.torch_extra import torch`."""

from __future__ import annotations

from calc.core.errors import extra

with extra("the training loop of calc.codesign", "torch", "torch"):
    import torch
    import torch.distributed
    import torch.utils.flop_counter

__all__ = ["torch"]
