"""Work of a step, counted while it runs: operations, bytes moved, bytes saved for backward."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from calc.codesign.torch_extra import torch

Key: TypeAlias = tuple[int, int, torch.dtype]  # where a tensor lies, and how much it is
tree_leaves = torch.utils._pytree.tree_leaves  # torch has no public name for it


class WorkCounter:
    """Counts what runs inside it; its numbers stand when it is left.

    `flop` are those of products and convolutions, forward and backward. `traffic` is the bytes that
    each operation reads and writes, were nothing fused and no cache shared: an upper bound of what
    memory sees. `saved` is the most bytes that were kept for backward. Counting slows a step down
    many times, so its time is that of another one, which is not counted.

    >>> import torch
    >>> from calc.codesign import Trainer
    >>> model = torch.nn.Linear(64, 10)
    >>> descent = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> trainer = Trainer(model, descent, torch.nn.functional.cross_entropy)
    >>> inputs, targets = torch.randn(32, 64), torch.randint(10, (32,))
    >>> with WorkCounter() as work:
    ...     step = trainer.step(inputs, targets)
    >>> work.flop  # one product forward and one back, 2 · 32 · 64 · 10 each
    81920
    """

    def __init__(self) -> None:
        self.flop = self.traffic = self.saved = 0

    def __enter__(self) -> WorkCounter:
        self._tensors, self._operations = SavedTensors(), _Operations()
        self._tensors.__enter__()
        self._operations.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._operations.__exit__(*error)
        self._tensors.__exit__(*error)
        self.flop, self.traffic = self._operations.flop, self._operations.bytes
        self.saved = self._tensors.peak


class SavedTensors:
    """The bytes of the tensors that forward saves, held until backward has used them.

    Each counts by its elements, once however often it is saved. A parameter does not count: it is
    there anyway. `on_save` is told the sum before a tensor is added to it. Those that are open in
    one another all count, though torch asks the hooks of the innermost alone.
    """

    _open: ClassVar[list[SavedTensors]] = []

    def __init__(self, on_save: Callable[[int], None] = lambda held: None) -> None:
        self.held = self.peak = 0
        self._on_save, self._times = on_save, dict[Key, int]()

    def __enter__(self) -> SavedTensors:
        self._hooks = torch.autograd.graph.saved_tensors_hooks(_pack, lambda saved: saved.tensor)
        self._hooks.__enter__()
        self._open.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._open.remove(self)
        self._hooks.__exit__(*error)

    def hold(self, saved: _Kept, key: Key, size: int) -> None:
        """Count a saved tensor until the graph lets go of what stands for it."""
        if key not in self._times:
            self._on_save(self.held + size)
            self.held += size
            self.peak = max(self.peak, self.held)
        self._times[key] = self._times.get(key, 0) + 1
        weakref.finalize(saved, self._release, key, size)

    def _release(self, key: Key, size: int) -> None:
        self._times[key] -= 1
        if not self._times[key]:
            del self._times[key]
            self.held -= size


class _Kept:
    """Stand-in for a saved tensor in the graph, which goes when the graph lets go of it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor.detach()  # an output would hold the graph that holds this


def _pack(tensor: torch.Tensor) -> _Kept:
    saved = _Kept(tensor)
    if not isinstance(tensor if tensor._base is None else tensor._base, torch.nn.Parameter):
        key = (tensor.data_ptr(), tensor.numel(), tensor.dtype)
        for counter in SavedTensors._open:
            counter.hold(saved, key, tensor_bytes(tensor))
    return saved


class _Operations(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.flop = self.bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        count = torch.utils.flop_counter.flop_registry.get(func.overloadpacket)
        if count:
            self.flop += count(*args, **(kwargs or {}), out_val=out)
        if not func.is_view:
            moved = (args, kwargs, out)
            self.bytes += sum(
                tensor_bytes(leaf) for leaf in tree_leaves(moved) if isinstance(leaf, torch.Tensor)
            )
        return out


def tensor_bytes(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements; of an expanded one, of those that are there."""
    size: int = tensor.numel() * tensor.element_size()
    stored: int = tensor.untyped_storage().nbytes()
    return min(size, stored)


def saved_tensor_bytes(forward: Callable[[], object]) -> int:
    """Bytes that a forward pass keeps for backward, parameters not counted.

    >>> import torch
    >>> layer, inputs = torch.nn.Linear(64, 10), torch.ones(32, 64)
    >>> saved_tensor_bytes(lambda: layer(inputs))  # its inputs, 32 · 64 · 4 byte
    8192
    """
    with SavedTensors() as saved:
        result = forward()
    del result
    return saved.peak
