"""Work of each process that test_distributed starts: `python -m … RANK FOLDER`."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

from calc import InputError, codesign
from tests.calc.codesign.small_runs import batch, cross_entropy, gradients, network, nn, sgd, torch

PROCESSES = 2
SHARDS = {"even": (16, 16), "uneven": (25, 7), "one sample": (31, 1)}
DTYPES = {"fp32": torch.float32, "fp64": torch.float64}


def data(dtype: Any) -> Any:
    return batch(32, 24, 10, dtype)


def shard(name: str, rank: int, x: Any, y: Any) -> Any:
    rows = slice(0, SHARDS[name][0]) if rank == 0 else slice(SHARDS[name][0], None)
    return x[rows], y[rows]


def refusal(action: Any) -> str:
    try:
        action()
    except InputError as error:
        return str(error)
    return "nothing was refused"


def work(rank: int) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for name in SHARDS:
        for kind, dtype in DTYPES.items():
            model = network(24, 48, 10, dtype=dtype)
            trainer = codesign.MultiGPUTrainer(model, sgd(model), cross_entropy)
            step = trainer.step(*shard(name, rank, *data(dtype)))
            results[f"{name}, {kind}"] = {"gradients": gradients(model), "loss": step.loss}
    model = network(24, 48, 10, dtype=torch.float64)
    trainer = codesign.MultiGPUTrainer(
        model, torch.optim.Adam(model.parameters()), cross_entropy, clip_norm=0.1
    )
    x, y = data(torch.float64)
    trainer.fit([(x[rank::PROCESSES], y[rank::PROCESSES])], epochs=5)
    results["trained"] = {"weights": [each.detach().clone() for each in model.parameters()]}
    empty = x[: 32 * rank]
    results["refused"] = {
        "no samples": refusal(lambda: trainer.step(empty, y[: len(empty)])),
        "batches": refusal(lambda: trainer.fit([(x, y)] * (3 - rank))),
        "no length": refusal(lambda: trainer.fit(iter([(x, y)]))),
        "batch norm": refusal(lambda: normalised()),
        "not a number": refusal(lambda: trainer.step(x if rank else x * float("nan"), y)),
    }
    trainer.step(x, y)  # after all of that, they still agree
    results["after"] = {"weights": [each.detach().clone() for each in model.parameters()]}
    return results


def normalised() -> None:
    model = nn.Sequential(nn.Linear(24, 16), nn.BatchNorm1d(16), nn.Linear(16, 10))
    codesign.MultiGPUTrainer(model, sgd(model), cross_entropy)


if __name__ == "__main__":
    warnings.simplefilter("error", UserWarning)
    number, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/met", rank=number, world_size=PROCESSES
    )
    torch.save(work(number), folder / f"{number}.pt")
    torch.distributed.destroy_process_group()
