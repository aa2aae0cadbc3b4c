"""Hardware that one does not have: `calc simulate` and `calc sweep`, both on the digits."""

from __future__ import annotations

import argparse
import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

from calc import simulation
from calc.commands.command_output import answers
from calc.commands.options import add_options, chosen, numbers, split_at_commas, whole
from calc.core.arguments import whole_number
from calc.core.errors import InputError
from calc.core.progress import ProgressBar
from calc.core.report import Report, Table, values
from calc.core.units import Quantity
from calc.simulation.budgets import key_of

if TYPE_CHECKING:
    from polars import DataFrame

LAYERS = "64-32-10"
TRAINING = {"epochs": 20, "alpha": 0.1, "batch_size": 32, "seed": 0}
SWEEP = {
    "pruning_levels": "0,0.5,0.7,0.9",
    "precisions": "fp32,int8",
    "budgets": "4 kB,8 kB",
    "active_budget": None,  # the first
    "power": "15 W",
}
SWEPT = (simulation.Experiment, simulation.Grid, simulation.run_sweep)


def _add_layers(parser: argparse.ArgumentParser) -> None:
    help_ = "inputs and outputs of each layer; the digits have 64 and 10 (default: %(default)s)"
    parser.add_argument("--layers", default=LAYERS, help=help_)


def add_simulate(parser: argparse.ArgumentParser) -> None:
    _add_layers(parser)
    add_options(parser, simulation.HardwareSimulationConfig)
    add_options(parser, simulation.run_training_with_hardware_constraints, list(TRAINING), TRAINING)
    parser.add_argument("--plan", action="store_true", help="plan only; train nothing")
    answers(parser, _simulate)


def _simulate(options: argparse.Namespace) -> Report:
    device = simulation.HardwareSimulationConfig(
        enabled=True, **chosen(options, simulation.HardwareSimulationConfig)
    )
    if options.plan:
        sizes = simulation.LayerSizes.dense(*_widths(options.layers))
        plan = simulation.prepare_hardware_constrained_run(sizes, options.batch_size, device)
        return Report(tables=[Table(_plan_rows(plan))], facts=_plan_facts(plan))
    network, split = _network_for_digits(options.layers), simulation.digits(options.seed)
    with ProgressBar(options.epochs, "training") as bar:
        run = simulation.run_training_with_hardware_constraints(
            network,
            split[:2],
            **{name: getattr(options, name) for name in TRAINING},
            simulation_config=device,
            on_epoch=lambda history: bar.advance(f"loss {history.loss[-1]:.3f}"),
        )
    accuracy = float((run.model.predict(split.X_test) == split.y_test).mean())
    facts = {
        "plan": _plan_facts(run.plan),
        **values(run, "history elapsed simulated_time"),
        "test_accuracy": accuracy,
    }
    rows = [
        *_plan_rows(run.plan),
        ("loss, first and last epoch", f"{run.history.loss[0]:.3f}, {run.history.loss[-1]:.3f}"),
        ("accuracy in training", f"{run.history.accuracy[-1]:.1%}"),
        ("accuracy in the test", f"{accuracy:.1%} of {len(split.y_test)}"),
        ("time here", str(run.elapsed)),
        ("time on the device", f"{run.simulated_time} (× {run.plan.compute_speed_factor:g})"),
    ]
    return Report(tables=[Table(rows)], facts=facts)


def _plan_facts(plan: simulation.HardwarePlan) -> dict[str, object]:
    return {**vars(plan), "feasible": plan.feasible, "reason": plan.reason}


def _plan_rows(plan: simulation.HardwarePlan) -> list[tuple[str, str]]:
    rows = [
        ("batch", str(plan.batch) if plan.batch else "none"),
        ("limited by", f"{plan.limited_by} ({plan.reason})"),
        ("precision", plan.precision.upper()),
        ("memory", f"{_bytes(plan.total_memory)} of {plan.budget}"),
        ("parameters", _bytes(plan.parameter_memory)),
        ("activations", _bytes(plan.activation_memory)),
    ]
    if plan.int8_overhead.magnitude:
        rows.append(("scales and biases, beside that", _bytes(plan.int8_overhead)))
    return rows


def _bytes(amount: Quantity) -> str:
    """Return a size in bytes and in a larger unit: "313384 byte (306 KiB)"."""
    size = amount.m_as("byte")
    unit = "GiB" if size >= 2**30 else "MiB" if size >= 2**20 else "KiB"
    return f"{size:.0f} byte ({amount.m_as(unit):.4g} {unit})"


def _network_for_digits(layers: str) -> simulation.NeuralNetwork:
    widths = _widths(layers)
    if (widths[0], widths[-1]) != (64, 10):
        raise InputError(
            "--layers needs the 64 inputs and 10 outputs of the digits, as in 64-32-10; "
            f"got {layers!r}"
        )
    return simulation.NeuralNetwork(widths, ["relu"] * (len(widths) - 2) + ["softmax"])


def _widths(text: str) -> list[int]:
    try:
        return [int(width) for width in text.split("-")]
    except ValueError:
        raise InputError(f"--layers needs whole numbers, as in 64-32-10; got {text!r}") from None


def add_sweep(parser: argparse.ArgumentParser) -> None:
    _add_layers(parser)
    for called in SWEPT:
        add_options(parser, called, defaults=SWEEP)
    for name, count, meaning in (
        ("--seeds", 3, "trainings, from the seeds 0, 1, …"),
        ("--workers", 1, "processes; several need --resume"),
    ):
        parser.add_argument(name, type=whole, default=count, help=f"{meaning} (default: {count})")
    parser.add_argument("--parquet", metavar="FILE", help="write the rows to a .parquet file")
    answers(parser, _sweep, table=True)


def _sweep(options: argparse.Namespace) -> Report:
    workers = whole_number("--workers", options.workers)
    if workers > 1 and options.resume is None:
        raise InputError(
            f"--workers {workers} needs --resume FILE: a pool dies with any of its workers, and"
            f" finished rows are kept there"
        )
    measured, pruned, limits = (chosen(options, called) for called in SWEPT)
    for name in ("precisions", "kinds"):
        pruned[name] = split_at_commas(pruned[name])
    pruned["pruning_levels"] = numbers("pruning_levels", pruned["pruning_levels"], "0,0.5,0.9")
    pruned["seeds"] = range(whole_number("--seeds", options.seeds))
    limits["budgets"] = budgets = split_at_commas(limits["budgets"])
    limits["active_budget"] = limits["active_budget"] or budgets[0]
    done: list[int] = []
    with ExitStack() as open_until_done:
        if workers > 1:
            pool = ProcessPoolExecutor(
                workers,
                multiprocessing.get_context("spawn"),
                signal.signal,  # Ctrl-C is answered here alone, where rows are kept
                (signal.SIGINT, signal.SIG_IGN),
            )
            limits["executor"] = open_until_done.enter_context(pool)
        bar = open_until_done.enter_context(ProgressBar(1, "sweeping"))

        def progress(rows: int, total: int) -> None:
            done.append(rows)
            bar.update(rows, total)

        network = _network_for_digits(options.layers)
        experiment = simulation.Experiment(network, simulation.digits(), **measured)
        grid = simulation.Grid(**pruned)
        table = simulation.run_sweep(experiment, grid, **limits, on_progress=progress)
    if options.parquet is not None:
        simulation.write_table(table, options.parquet)
    reused = done[0] if done else 0
    memory = f"memory_{options.storage}_bytes"
    lines = _sweep_lines(simulation.summarize_sweep(table), memory, budgets)
    if options.resume is not None:
        lines.append(f"{reused} of {len(table)} rows were in {options.resume} already")
    return Report(lines, facts={"rows": table.to_dicts(), "reused": reused})


def _sweep_lines(summary: DataFrame, memory: str, budgets: list[str]) -> list[str]:
    """A line for each variant, and whether it is within each budget."""
    within = [f"within {budget}" for budget in budgets]
    rows = [("pruning", "precision", "accuracy", "latency", "memory", *within)]
    for row in summary.iter_rows(named=True):
        spread = "" if row["accuracy_std"] is None else f" ± {row['accuracy_std']:.1%}"
        rows.append(
            (
                f"{row['pruning']:.0%} {row['kind']}" if row["pruning"] else "none",
                row["precision"].upper(),
                f"{row['accuracy']:.1%}{spread}",
                f"{Quantity(row['latency_seconds'], 's'):.3g}",
                f"{row[memory]:.0f} byte",
                *("no" if row[key_of(budget)] else "yes" for budget in budgets),
            )
        )
    return Table(rows).lines
