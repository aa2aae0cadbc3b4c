"""Small models, data and comparisons that the tests of the training loop share."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the training loop needs torch")
nn, cross_entropy = torch.nn, torch.nn.functional.cross_entropy


def network(*widths: int, dtype: Any = None, seed: int = 0) -> Any:
    """Linear layers with ReLU between them, the same for the same seed."""
    torch.manual_seed(seed)
    layers: list[Any] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).to(dtype or torch.float32)


def batch(samples: int, inputs: int, classes: int, dtype: Any = None, seed: int = 1) -> Any:
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, inputs, generator=source, dtype=torch.float64)
    y = torch.randint(classes, (samples,), generator=source)
    return x.to(dtype or torch.float32), y


def sgd(model: Any, rate: float = 0.1) -> Any:
    return torch.optim.SGD(model.parameters(), rate)


def gradients(model: Any) -> Any:
    """Return all gradients in one vector, in FP64."""
    return torch.cat([each.grad.double().flatten() for each in model.parameters()])


def weights(model: Any) -> Any:
    return torch.cat([each.detach().double().flatten() for each in model.parameters()])


def reference_gradients(model: Any, x: Any, y: Any, loss: Any = cross_entropy) -> Any:
    """Return torch's gradients of the whole batch, with nothing of calc's in between."""
    by_parameter = torch.autograd.grad(loss(model(x), y), list(model.parameters()))
    return torch.cat([each.double().flatten() for each in by_parameter])
