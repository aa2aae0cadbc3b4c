"""Measure what each lever of the training loop does on this machine, and store it.

    OMP_NUM_THREADS=1 python -m experiments.record_training_levers

Writes calc/data/measured/training_levers.csv, a row for each number, how it was measured beside it
in a .toml, and training_run.jsonl, the log of a real run. It needs the extra `torch`; nothing else
should run meanwhile. Times are medians; speeds are ratios of steps that took turns.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from calc import codesign, formats, scaling
from calc.core.records import DATA
from calc.measure import this_machine
from calc.simulation import digits
from experiments.machine import describe, timed
from experiments.tables import write_rows

FOLDER = DATA / "measured"
COMMAND = "OMP_NUM_THREADS=1 python -m experiments.record_training_levers"
WIDTHS, BATCH, CLASSES, REPEATS = (64, 256, 1024, 2048), 128, 10, 9
# Widths, number of layers and batch, from almost all weights to almost all activations.
SHAPES = [(1024, 2, 1), (512, 3, 32), (256, 4, 512), (64, 8, 4096), (16, 16, 16384)]
ADAM_BYTES = 16  # for each parameter: weight, gradient and two moments in FP32
MESSAGES = (1_000, 100_000, 4_000_000, 16_000_000)
Row = tuple[str, str, str, float]


def main() -> None:
    if os.environ.get("OMP_NUM_THREADS") != "1":
        raise SystemExit(f"say how it is measured: {COMMAND}")
    load = os.getloadavg()[0]
    rows: list[Row] = []
    levers = precision, memory, accumulation, padding, offloading, processes
    for measure in (*levers, parts_of_a_step, roofs):
        print(measure.__name__, flush=True)
        rows += measure()
    shown = ((*names, f"{value:.4g}") for *names, value in rows)
    write_rows(FOLDER / "training_levers.csv", ("lever", "case", "measure", "value"), shown)
    by_name = {name: value for lever, _, name, value in rows if lever == "roof"}
    training_run(FOLDER / "training_run.jsonl", by_name)
    describe(
        FOLDER / "training_levers.toml",
        "How training_levers.csv and training_run.jsonl beside this file were measured.\n"
        "Times are medians in seconds; networks are dense, with Adam.\n"
        "Where the load before was not about zero, other work shared the cores.",
        ("torch",),
        threads=1,
        load_before=round(load, 1),
        command=COMMAND,
        widths=WIDTHS,
        batch=BATCH,
        classes=CLASSES,
        repeats=REPEATS,
    )


def precision() -> Iterator[Row]:
    """A step in FP32, and under autocast, by the width of the layers."""
    for width in WIDTHS:
        x, y = data(width)
        model = dense(width, width, width, CLASSES)
        steps = {"fp32": stepper(codesign.Trainer(model, adam(model), cross_entropy), x, y)}
        for dtype in ("bf16", "fp16"):
            model = dense(width, width, width, CLASSES)
            trainer = codesign.MixedPrecisionTrainer(model, adam(model), cross_entropy, dtype=dtype)
            steps[dtype] = stepper(trainer, x, y)
        times = in_turns(steps)
        for dtype, seconds in times.items():
            yield "precision", f"width {width}", f"{dtype}_seconds", seconds
            yield "precision", f"width {width}", f"{dtype}_speedup", times["fp32"] / seconds


def memory() -> Iterator[Row]:
    """Adam's 16 bytes for each parameter, and what forward saves, in FP32 and under autocast."""
    for width, layers, batch in SHAPES:
        model = dense(*[width] * layers, CLASSES)
        x, y = data(width, batch)
        state = ADAM_BYTES * sum(weights.numel() for weights in model.parameters())

        def forward(model: Any = model, x: Any = x, y: Any = y) -> Any:
            return cross_entropy(model(x), y)

        def mixed(forward: Callable[[], Any] = forward) -> Any:
            with torch.autocast("cpu", torch.bfloat16):
                return forward()

        full, half = codesign.saved_tensor_bytes(forward), codesign.saved_tensor_bytes(mixed)
        case = f"{layers} layers of {width}, batch {batch}"
        yield "memory", case, "state_bytes", state
        yield "memory", case, "fp32_saved_bytes", full
        yield "memory", case, "bf16_saved_bytes", half
        yield "memory", case, "ratio", (state + half) / (state + full)


def accumulation() -> Iterator[Row]:
    """Error of a step in parts, weighted by samples and divided by their number."""
    for dtype in (torch.float64, torch.float32):
        for last in (1, 16, 32, 64):
            model = dense(64, 128, 128, CLASSES).to(dtype)
            x, y = data(64, 64 + last)
            x = x.to(dtype)
            wanted = gradient(model, x, y)
            trainer = codesign.GradientAccumulationTrainer(
                model, adam(model), cross_entropy, micro_batch=64
            )
            trainer.gradients(x, y)
            summed = torch.cat([weights.grad.flatten() for weights in model.parameters()])
            halves = (gradient(model, x[:64], y[:64]) + gradient(model, x[64:], y[64:])) / 2
            case = f"{key_of(dtype)}, parts of 64 and {last}"
            largest = wanted.abs().max()
            ulp = torch.nextafter(largest, 2 * largest) - largest
            yield "accumulation", case, "relative_error", relative(summed, wanted)
            off = float((summed - wanted).abs().max() / ulp)
            yield "accumulation", case, "largest_error_ulp", off
            yield "accumulation", case, "error_divided_by_parts", relative(halves, wanted)


def padding() -> Iterator[Row]:
    """A layer of 10 outputs, padded to 16: operations, and time here, where nothing asks for it."""
    linear = nn.Linear(1024, 10)
    padded = codesign.PaddedLinear(linear, 1024, 16)
    x, _ = data(1024, 4096)
    work = {}
    for name, layer in (("plain", linear), ("padded", padded)):
        with codesign.WorkCounter() as counted:
            layer(x)
        work[name] = counted.flop
    times = in_turns({"plain": lambda: linear(x), "padded": lambda: padded(x)})
    yield "padding", "10 to 16 outputs", "flop_ratio", work["padded"] / work["plain"]
    yield "padding", "10 to 16 outputs", "time_ratio", times["padded"] / times["plain"]
    off = float((linear(x) - padded(x)).abs().max().detach())
    yield "padding", "10 to 16 outputs", "largest_difference", off


def offloading() -> Iterator[Row]:
    """Bytes for each parameter where the model is, and a step's time: here the host is the device,
    so it tells what copying costs, and no link."""
    for dtype in (torch.float32, torch.bfloat16):
        x, y = data(1024)
        x = x.to(dtype)
        case = key_of(dtype)
        steps, held = {}, {}
        for name in ("plain", "offloaded"):
            model = dense(1024, 1024, 1024, CLASSES).to(dtype)
            optimizer = (
                adam(model)
                if name == "plain"
                else codesign.CPUOffloadingOptimizer(model.parameters(), torch.optim.Adam)
            )
            steps[name] = stepper(codesign.Trainer(model, optimizer, cross_entropy), x, y)
            steps[name]()
            tensors = [
                t for state in optimizer.state.values() for n, t in state.items() if n != "step"
            ]
            tensors += [t for weights in model.parameters() for t in (weights, weights.grad)]
            count = sum(weights.numel() for weights in model.parameters())
            held[name] = sum(t.numel() * t.element_size() for t in tensors) / count
        times = in_turns(steps)
        yield "offload", case, "plain_bytes_per_parameter", held["plain"]
        yield "offload", case, "offloaded_bytes_per_parameter", held["offloaded"]
        yield "offload", case, "time_ratio", times["offloaded"] / times["plain"]


def processes() -> Iterator[Row]:
    """The step of one process, that of two with half of the batch each, and what was predicted."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "experiments.record_training_levers"]
        running = [subprocess.Popen([*command, str(rank), folder]) for rank in range(2)]
        ends = [transfer.wait() for transfer in running]
        if any(ends):
            raise SystemExit("a process of two failed; its message is above")
        results = json.loads(Path(folder, "0.json").read_text(encoding="utf-8"))
    for size, seconds in results["all_reduce"].items():
        yield "processes", f"all-reduce of {size} bytes", "seconds", seconds
    small, large = (float(results["all_reduce"][str(size)]) for size in (MESSAGES[0], MESSAGES[-1]))
    latency = small / 2  # a ring of two takes 2 · (L + S / (2 · BW))
    bandwidth = MESSAGES[-1] / (large - small)
    yield "processes", "link", "latency_seconds", latency
    yield "processes", "link", "bandwidth_byte_per_second", bandwidth
    for width in WIDTHS[1:]:
        x, y = data(width)
        model = dense(width, width, width, CLASSES)
        whole = median(stepper(codesign.Trainer(model, adam(model), cross_entropy), x, y))
        size = 4 * sum(weights.numel() for weights in model.parameters())
        serial, link = shares_of_a_step(width)["optimizer"], (f"{bandwidth} byte/s", f"{latency} s")
        predicted = codesign.predict_scaling(f"{whole} s", serial, f"{size} byte", 2, *link)
        case = f"width {width}"
        yield "processes", case, "one_process_seconds", whole
        yield "processes", case, "two_processes_seconds", results["steps"][str(width)]
        yield "processes", case, "speedup", whole / results["steps"][str(width)]
        yield "processes", case, "amdahl_speedup", predicted.amdahl.m_as("")
        yield "processes", case, "predicted_speedup", predicted.speedup.m_as("")


def process(rank: int, folder: Path) -> None:
    """Run one of the two processes: all-reduces, and steps with its half of the batch."""
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"file://{folder}/met", rank=rank, world_size=2)
    results: dict[str, Any] = {"all_reduce": {}, "steps": {}}
    for size in MESSAGES:
        message = torch.ones(size // 4)
        results["all_reduce"][size] = median(partial(dist.all_reduce, message))
    for width in WIDTHS[1:]:
        x, y = data(width)
        model = dense(width, width, width, CLASSES)
        trainer = codesign.MultiGPUTrainer(model, adam(model), cross_entropy)
        results["steps"][width] = median(stepper(trainer, x[rank::2], y[rank::2]))
    (folder / f"{rank}.json").write_text(json.dumps(results), encoding="utf-8")
    dist.destroy_process_group()


def parts_of_a_step() -> Iterator[Row]:
    """Yield the parts of a step's time, on which levers can act, and the ceiling of each."""
    for width in WIDTHS:
        shares = shares_of_a_step(width)
        for name, share in shares.items():
            yield "parts", f"width {width}", name, share
        ceiling = scaling.amdahl_limit(1 - shares["forward"] - shares["backward"]).m_as("")
        yield "parts", f"width {width}", "ceiling_of_faster_products", ceiling


@cache  # so that all rows are of the same shares
def shares_of_a_step(width: int) -> dict[str, float]:
    """Each part's share of the time of a step, timed in whole steps, as `Trainer` orders them."""
    x, y = data(width)
    samples = x.numpy().copy()
    model = dense(width, width, width, CLASSES)
    optimizer = adam(model)
    by_part: dict[str, list[float]] = {}

    def part(name: str, run: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = run()
        by_part.setdefault(name, []).append(time.perf_counter() - start)
        return result

    def forward(inputs: Any) -> Any:
        return cross_entropy(model(inputs), y)

    for _ in range(1 + 3 * REPEATS):
        inputs = part("data", partial(torch.tensor, samples))  # which copies
        part("clearing", optimizer.zero_grad)
        loss = part("forward", partial(forward, inputs))
        part("backward", loss.backward)
        part("optimizer", optimizer.step)
    times = {name: statistics.median(seconds[1:]) for name, seconds in by_part.items()}
    return {name: seconds / sum(times.values()) for name, seconds in times.items()}


def roofs() -> Iterator[Row]:
    """Yield this machine's roofs on one thread: an FP32 product as fast as any, and a copy."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    yield "roof", "1 thread", "flop_per_second", 2 * 2048**3 / min(timed(lambda: a @ b, REPEATS))
    large, target = torch.ones(64_000_000), torch.empty(64_000_000)
    seconds = min(timed(lambda: target.copy_(large), REPEATS))
    yield "roof", "1 thread", "byte_per_second", 2 * large.numel() * 4 / seconds


class LeveredTrainer(codesign.MixedPrecisionTrainer, codesign.DynamicBatchSizeTrainer):
    """Mixed precision, of batches that go through in parts that fit."""


def training_run(path: Path, roofs: dict[str, float]) -> None:
    """Train on the digits in FP16 within a budget that a whole batch exceeds, and log it.

    The same run is made twice: once for its times, once to count its work.
    """
    path.unlink(missing_ok=True)
    log = codesign.RunLog(
        path,
        "A network on the digits, in FP16 and 1 MB for activations",
        f"{this_machine().processor}, 1 thread, FP32 roof",
        f"{roofs['flop_per_second']:.4g} FLOP/s",
        f"{roofs['byte_per_second']:.4g} byte/s",
    )
    split = digits(seed=0)
    x, y = torch.from_numpy(split.X_train), torch.from_numpy(split.y_train)
    batches = [(x[at : at + 256], y[at : at + 256]) for at in range(0, len(x), 256)]
    for which in ("timed", "counted"):
        model = dense(64, 512, 512, CLASSES)
        trainer = LeveredTrainer(
            model,
            adam(model),
            cross_entropy,
            dtype="fp16",
            micro_batch=256,
            patience=12,
            scaler={"init_scale": 2.0**20, "growth_interval": 20},
        )
        with codesign.SimulatedMemory("1 MB"):
            if which == "timed":
                steps = trainer.fit(batches, epochs=12)
                continue
            for step, (inputs, targets) in zip(steps, batches * 12, strict=True):
                with codesign.WorkCounter() as work:
                    again = trainer.step(inputs, targets)
                assert (again.loss, again.events) == (step.loss, step.events)
                log.record(step, work)


def dense(*widths: int) -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def data(width: int, batch: int = BATCH) -> tuple[Any, Any]:
    torch.manual_seed(1)
    return torch.randn(batch, width), torch.randint(CLASSES, (batch,))


def adam(model: Any) -> Any:
    return torch.optim.Adam(model.parameters())


def gradient(model: Any, x: Any, y: Any) -> Any:
    parts = torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters()))
    return torch.cat([gradients.flatten() for gradients in parts])


def key_of(dtype: torch.dtype) -> str:
    return formats.get(str(dtype).removeprefix("torch.")).key


def relative(value: Any, wanted: Any) -> float:
    return float((value - wanted).norm() / wanted.norm())


def stepper(trainer: Any, x: Any, y: Any) -> Callable[[], Any]:
    return lambda: trainer.step(x, y)


def median(run: Callable[[], Any]) -> float:
    return statistics.median(timed(run, 3 * REPEATS))


def in_turns(runs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Median time of each, measured one after the other and again, so that all see one machine."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(REPEATS):
        for name, run in runs.items():
            seconds[name] += timed(run, 1)
    return {name: statistics.median(times) for name, times in seconds.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) == 3:
        process(int(sys.argv[1]), Path(sys.argv[2]))
    else:
        main()
