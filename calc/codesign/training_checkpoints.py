"""Checkpoints: written whole or not at all, read back only by the model that they are of.

The new file is written beside the old one, forced to disk, and put in its place by one rename, so
whenever a process is killed, the name holds the one or the other. A half-written neighbour, which
a kill can leave, is overwritten by the next save.
"""

from __future__ import annotations

import os
from pathlib import Path

from calc.codesign.torch_extra import torch
from calc.codesign.training_step import Trainer
from calc.core.errors import InputError
from calc.core.files import opened

LARGEST_MB = 1e6  # of a checkpoint
KIND = "calc.codesign checkpoint, version 1"


def save_checkpoint(trainer: Trainer, path: Path | str) -> None:
    """Save all that a run needs to go on: weights, optimizer, scaler, counts, random numbers.

    >>> from tempfile import TemporaryDirectory
    >>> import torch
    >>> model = torch.nn.Linear(8, 2)
    >>> descent = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> trainer = Trainer(model, descent, torch.nn.functional.mse_loss)
    >>> with TemporaryDirectory() as folder:
    ...     save_checkpoint(trainer, f"{folder}/run.pt")
    ...     [path.name for path in Path(folder).iterdir()]
    ['run.pt']
    """
    target = Path(path)
    partial = target.with_name(f"{target.name}.partial")
    random = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        random["cuda"] = torch.cuda.get_rng_state(trainer.device)
    state = {"kind": KIND, "trainer": trainer.state_dict(), "random": random}
    try:
        with partial.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None


def load_checkpoint(trainer: Trainer, path: Path | str) -> None:
    """Put a trainer of the same model where the saved one was; one that is refused is unchanged.

    >>> from tempfile import TemporaryDirectory
    >>> import torch
    >>> model = torch.nn.Linear(8, 2)
    >>> descent = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> trainer = Trainer(model, descent, torch.nn.functional.mse_loss)
    >>> with TemporaryDirectory() as folder:
    ...     save_checkpoint(trainer, f"{folder}/run.pt")
    ...     step = trainer.step(torch.ones(4, 8), torch.ones(4, 2))
    ...     load_checkpoint(trainer, f"{folder}/run.pt")
    >>> step.number, trainer.steps  # back where it was before its first step
    (1, 0)
    """
    source = Path(path)
    try:
        with opened(source, LARGEST_MB) as file:
            state = torch.load(file, map_location="cpu", weights_only=True)
    except InputError:
        raise
    except Exception:  # torch reads other bytes as a program, which can fail in any way
        raise InputError(
            f"{source} is no checkpoint, or was cut off or changed; give an older one"
        ) from None
    if not isinstance(state, dict) or state.get("kind") != KIND:
        raise InputError(f"{source} was not written by save_checkpoint()")
    _check_model(trainer.model, state["trainer"]["model"], source)
    trainer.load_state_dict(state["trainer"])
    torch.set_rng_state(state["random"]["cpu"])
    if trainer.device.type == "cuda" and "cuda" in state["random"]:
        torch.cuda.set_rng_state(state["random"]["cuda"], trainer.device)


def _check_model(model: torch.nn.Module, saved: dict[str, torch.Tensor], source: Path) -> None:
    here = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    there = {name: tuple(tensor.shape) for name, tensor in saved.items()}
    for name in sorted(here.keys() | there.keys()):
        if here.get(name) != there.get(name):
            raise InputError(
                f"{source} is of another model: {name} is {_words(there.get(name))} in it and"
                f" {_words(here.get(name))} here"
            )


def _words(shape: tuple[int, ...] | None) -> str:
    return "missing" if shape is None else " × ".join(map(str, shape)) or "a single number"


def _sync_folder(folder: Path) -> None:
    """The rename itself outlives a loss of power only when the folder is on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
