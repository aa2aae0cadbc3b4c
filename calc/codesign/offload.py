"""Offloading: the optimizer's state lives in the host's memory, and its step is taken there.

On the device stay the weights and their gradients: of 16 bytes for each parameter of FP32 Adam,
8 stay; of a mixed-precision recipe's 16, with its FP32 master weights on the host too, 4. The price
is the link: each step, gradients go down and weights come up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from calc.codesign.torch_extra import torch
from calc.codesign.training_step import Pair, State
from calc.codesign.work import tensor_bytes
from calc.core.arguments import in_bytes
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws.links import transfer_time


class CPUOffloadingOptimizer(torch.optim.Optimizer):
    """An optimizer of torch's, given as its class, whose state is on the host.

        CPUOffloadingOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)

    The host holds the weights once more, in FP32 where the device's have 16 bits, so its step is
    that of the optimizer itself, bit for bit. Groups and learning rates are changed as usual.
    """

    def __init__(
        self,
        parameters: Iterable[torch.Tensor],
        optimizer: Callable[..., torch.optim.Optimizer],
        **options: object,
    ) -> None:
        super().__init__(parameters, options)
        groups = [
            {**group, "params": [_on_host(weight) for weight in group["params"]]}
            for group in self.param_groups
        ]
        self.host = optimizer(groups, **options)

    def step(self, closure: None = None) -> None:
        """Gradients to the host, the step there, weights back; host gradients are cleared."""
        for group, host_group in zip(self.param_groups, self.host.param_groups, strict=True):
            host_group.update({name: group[name] for name in group if name != "params"})
        for weight, master in self._pairs():
            if weight.grad is not None:
                master.grad = weight.grad.to("cpu", master.dtype, copy=True)
        self.host.step()
        self.host.zero_grad()
        with torch.no_grad():
            for weight, master in self._pairs():
                weight.copy_(master)

    @property
    def link_traffic(self) -> tuple[Quantity, Quantity]:
        """Bytes of one step: gradients to the host, weights to the device."""
        weights = [weight for weight, _ in self._pairs() if weight.requires_grad]
        size = in_bytes(sum(map(tensor_bytes, weights)))  # a gradient has its weight's format
        return size, size

    def link_time(self, bandwidth: QuantityLike, latency: QuantityLike = "0 s") -> Quantity:
        """Time of a step's transfers over a link with this bandwidth each way, one after the other.

        What a step costs beside the host's arithmetic, where nothing overlaps.
        """
        times = (transfer_time(size, bandwidth, latency) for size in self.link_traffic)
        return sum(times, quantity(0, "s"))

    def state_dict(self) -> State:
        """The host's state, and its weights, which may have more bits than the device's."""
        return {
            "host": self.host.state_dict(),
            "weights": [master.detach() for _, master in self._pairs()],
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from what `state_dict` gave."""
        self.host.load_state_dict(state["host"])
        for group, host_group in zip(self.param_groups, self.host.param_groups, strict=True):
            group.update({name: host_group[name] for name in group if name != "params"})
        with torch.no_grad():
            for (_, master), saved in zip(self._pairs(), state["weights"], strict=True):
                master.copy_(saved)

    def _pairs(self) -> list[Pair]:
        """Each weight on the device with its copy on the host."""
        return [
            pair
            for group, host_group in zip(self.param_groups, self.host.param_groups, strict=True)
            for pair in zip(group["params"], host_group["params"], strict=True)
        ]


def _on_host(weight: torch.Tensor) -> torch.Tensor:
    wide = torch.promote_types(weight.dtype, torch.float32)
    return weight.detach().to("cpu", wide, copy=True).requires_grad_(weight.requires_grad)
