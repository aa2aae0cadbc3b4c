"""The command `calc`: look up devices, constants and laws, use the roofline, plan servers, evaluate
text, train small networks as on devices that one does not have, and measure the machine that one
has.

Built on argparse, which starts in a few milliseconds and is always there.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import io
import json
import math
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_args, get_type_hints

from pint import DimensionalityError

from calc import constants, hardware, laws, models, roofline
from calc.core.errors import InputError
from calc.core.formatting import columns
from calc.core.records import Record, source
from calc.core.units import Quantity, quantity

if TYPE_CHECKING:
    from calc import simulation

INTERRUPTED = 128 + signal.SIGINT  # what a shell expects of a program that Ctrl-C has ended

OPTION_OF = {
    "operations": "flops",
    "traffic": "bytes",
    "generated": "generate",
    "max_memory": "memory",
    "compute_speed_factor": "slowdown",
    "batch_size_limit": "limit",
    "batch_size": "batch",
    "latency_batch": "batch",
    "active_budget": "active",
}
"""The options that are called otherwise than the arguments of the library that they become."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a user's mistake is one sentence on stderr and exit code 1."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without µ gets its escape
            stream.reconfigure(errors="backslashreplace")
    try:
        lines = options.run(options)
    except (InputError, DimensionalityError) as error:
        print(f"calc: {_as_typed(str(error), options)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        rows = getattr(options, "resume", None)
        kept = f"; finished rows are kept in {rows}, and the same command goes on from there"
        print(f"calc: interrupted{kept if rows and Path(rows).is_file() else ''}", file=sys.stderr)
        return INTERRUPTED
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except OSError as error:
        # What is still to be written goes nowhere, so that Python does not fail over it at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # a pipe's reader, as `head`, has seen enough
            print(f"calc: cannot write the output: {error.strerror}", file=sys.stderr)
            return 1
    return 0


def _as_typed(sentence: str, options: argparse.Namespace) -> str:
    """What the library refuses, with an option for its argument, and 0 for the float of it."""

    def option(found: re.Match[str]) -> str:
        name = OPTION_OF.get(found[1], found[1])
        return f"--{name.replace('_', '-')}" if name in vars(options) else found[0]

    sentence = re.sub(r"^(?:\w+\(\): )?(\w+)(?= must | needs |: cannot read )", option, sentence)
    sentence = re.sub(r"\b(\w+)=True\b", option, sentence)
    return re.sub(r"(?<=; got )(-?\d+)\.0$", r"\1", sentence)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="calc", description="Numbers of machine-learning systems, with units and sources."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    listing = commands.add_parser("list", help="names of devices, models, constants or laws")
    listing.add_argument(
        "what",
        nargs="?",
        choices=["devices", "models", "constants", "laws"],
        help="all where nothing is said",
    )
    listing.set_defaults(run=_list)

    show = commands.add_parser(
        "show", help="everything about a device, a model, a constant or a law, with sources"
    )
    show.add_argument("name", help="a name that `calc list` prints, such as h100")
    show.set_defaults(run=_show)

    place = commands.add_parser(
        "roofline", help="what bounds some work on a device, and its best time"
    )
    place.add_argument(
        "device",
        help="a device that `calc list` prints, such as h100, or the .toml of `calc measure`",
    )
    place.add_argument(
        "--flops", required=True, help='operations: "137 GFLOP", or a bare number of FLOP'
    )
    place.add_argument(
        "--bytes", required=True, help='memory traffic: "100 MB", or a bare number of bytes'
    )
    place.add_argument(
        "--dtype", default="fp16", help="data type of the matrix units (default: %(default)s)"
    )
    place.set_defaults(run=_roofline)

    evaluate = commands.add_parser("eval", help="evaluate an expression with units")
    evaluate.add_argument("expression", help='such as "10 GB / 2 GB/s"')
    evaluate.add_argument("--to", metavar="UNIT", help="print the result in this unit")
    evaluate.set_defaults(run=_eval)

    _add_plan(commands)
    _add_simulate(commands)
    _add_sweep(commands)
    _add_training(commands)
    _add_measure(commands)
    return parser


def _add_plan(commands: Any) -> None:
    planned = commands.add_parser(
        "plan", help="whether a model fits, on how many devices, how fast it answers, at what cost"
    )
    planned.add_argument(
        "model", help="a model that `calc list` prints, such as llama-3-70b, or a config.json"
    )
    planned.add_argument(
        "device", help="a device that `calc list` prints, such as h100, or a .toml"
    )
    for name, needed, meaning in (
        ("--batch", False, "sequences at a time (1)"),
        ("--prompt", True, "tokens that each reads"),
        ("--generate", True, "tokens that each writes"),
        ("--devices", False, "how many share the model (the fewest that hold the batch)"),
    ):
        planned.add_argument(
            name, required=needed, metavar="N", help=f"{meaning}; several with commas"
        )
    planned.add_argument(
        "--weights", default="BF16", help="their format, or bits: INT8, 8 bit (%(default)s)"
    )
    planned.add_argument("--kv", default="BF16", help="that of keys and values (%(default)s)")
    planned.add_argument("--dtype", help="what products are computed in (bf16, where there is)")
    planned.add_argument("--link", help='between devices, each way: "32 GB/s" (that of the data)')
    planned.add_argument("--price", help='of a device: "3 USD/hour"; without it, no cost')
    planned.set_defaults(run=_plan)


def _plan(options: argparse.Namespace) -> list[str]:
    from calc.planning import plan

    for what, given in (("model", options.model), ("device", options.device)):
        if "," in given and not given.endswith((".json", ".toml")):
            raise InputError(
                f"calc plan takes one {what}, and several numbers with commas; got {given!r}"
            )
    of_file = options.model.endswith(".json")
    counts = {
        "devices": options.devices,
        "batch": options.batch or "1",
        "prompt": options.prompt,
        "generated": options.generate,
    }
    made = plan(
        models.from_config(Path(options.model)) if of_file else options.model,
        _given_device(options.device),
        weights=options.weights,
        kv=options.kv,
        dtype=options.dtype,
        link=options.link,
        price=options.price,
        **_grid(counts),
    )
    lines = [made.table(), "", "Assumed:", *(f"- {each}" for each in made.assumptions)]
    if not getattr(made.fits, "ndim", 0):
        lines += ["", "What would change it:", *(f"- {each}" for each in made.what_would_change)]
    return lines


def _grid(counts: dict[str, str | None]) -> dict[str, Any]:
    """A number for each count; of several with commas every combination, an axis for each count."""
    listed = {name: _numbers(name, text) for name, text in counts.items() if text is not None}
    axes = [name for name, each in listed.items() if len(each) > 1]
    found: dict[str, Any] = {}
    for name, values in listed.items():
        behind = len(axes) - axes.index(name) - 1 if name in axes else 0
        for _ in range(behind):
            values = [[each] for each in values]
        found[name] = values if name in axes else values[0]
    return found


def _numbers(name: str, text: str) -> list[Any]:
    try:
        return [float(each) for each in _listed(text)]
    except ValueError:
        raise InputError(f"{name} must be whole numbers, as in 1,8,64; got {text!r}") from None


def _add_simulate(commands: Any) -> None:
    simulate = commands.add_parser(
        "simulate", help="train on the digits as a smaller, slower device would"
    )
    simulate.add_argument(
        "--layers",
        default="64-32-10",
        help="inputs and outputs of each layer; the digits have 64 and 10 (default: %(default)s)",
    )
    simulate.add_argument(
        "--memory", default="512 MiB", help="what the device has (default: %(default)s)"
    )
    simulate.add_argument(
        "--precision",
        default="float32",
        help="float32, float16, bfloat16 or int8 (default: %(default)s)",
    )
    simulate.add_argument(
        "--batch", type=int, default=32, help="samples in a batch, if they fit (default: 32)"
    )
    simulate.add_argument(
        "--limit", type=int, default=128, help="the largest batch (default: %(default)s)"
    )
    simulate.add_argument(
        "--slowdown",
        type=float,
        default=1.0,
        help="how many times as long the device takes (default: 1)",
    )
    simulate.add_argument(
        "--mode",
        default="all_outputs",
        help="what is counted: all_outputs, inference or training (default: %(default)s)",
    )
    simulate.add_argument(
        "--optimizer",
        default="sgd",
        help="whose state training counts: sgd, momentum or adam (default: %(default)s)",
    )
    simulate.add_argument("--epochs", type=int, default=20, help="(default: %(default)s)")
    simulate.add_argument(
        "--alpha", type=float, default=0.1, help="the length of a step (default: %(default)s)"
    )
    simulate.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    simulate.add_argument("--plan", action="store_true", help="plan only; train nothing")
    simulate.add_argument("--sleep", action="store_true", help="wait as long as the device would")
    simulate.add_argument(
        "--run-infeasible",
        action="store_true",
        help="where not one sample fits, train with a batch of 1 all the same",
    )
    simulate.add_argument("--json", action="store_true", help="print JSON in place of a table")
    simulate.set_defaults(run=_simulate)


def _list(options: argparse.Namespace) -> list[str]:
    lists = {
        "devices": _device_lines,
        "models": _model_lines,
        "constants": _constant_lines,
        "laws": _law_lines,
    }
    if options.what:
        return lists[options.what]()
    lines: list[str] = []
    for title, make in lists.items():
        lines += [*([""] if lines else []), f"{title}:", *(f"  {line}" for line in make())]
    return lines


def _device_lines() -> list[str]:
    return columns([(key, hardware.get(key).name) for key in hardware.names()])


def _model_lines() -> list[str]:
    return columns([(key, models.get(key).name) for key in models.names()])


def _constant_lines() -> list[str]:
    return columns([(name, str(constants.get(name))) for name in constants.names()])


def _law_lines() -> list[str]:
    return columns([(name, _summary(law)) for name, law in laws().items()])


def _show(options: argparse.Namespace) -> list[str]:
    name = options.name.removeprefix("calc.")
    if name in constants.names():
        return [str(constants.get(name)), source(constants.get(name))]
    if name in laws():
        law = laws()[name]
        return [
            f"calc.{name}({', '.join(_argument_words(law))})",
            "",
            *(inspect.getdoc(law) or "").splitlines(),
        ]
    if name.endswith(".toml") or hardware.key_of(name):
        return _device(_given_device(name))
    if models.key_of(name):
        return _model(models.get(name))
    raise InputError(
        f"there is no device, model, constant or law {options.name!r}; {_advice(name)}"
    )


def _advice(name: str) -> str:
    """The nearest names, where a law is also known by its name without the module."""
    spellings: dict[str, list[str]] = {}
    for full in (*hardware.names(), *models.names(), *constants.names(), *laws()):
        for spelling in {full, full.split(".")[-1]}:
            spellings.setdefault(spelling, []).append(full)
    close = [name] if name in spellings else difflib.get_close_matches(name.lower(), spellings)
    nearest = dict.fromkeys(full for spelling in close for full in spellings[spelling])
    question = f"did you mean {' or '.join(nearest)}? " if nearest else ""
    return f"{question}`calc list` prints their names"


def _argument_words(law: Callable[..., Any]) -> list[str]:
    """ "peak: FLOP/s" and the like, from the annotations."""
    hints = get_type_hints(law, include_extras=True)
    units = {name: get_args(hints[name])[1] for name in inspect.signature(law).parameters}
    return [f"{name}: {unit}" if unit else name for name, unit in units.items()]


def _summary(law: Callable[..., Any]) -> str:
    return (inspect.getdoc(law) or "").split("\n")[0]


def _device(device: hardware.Accelerator) -> list[str]:
    rows = [
        (title, _value(device.records[name]))
        for name, title in hardware.FIELDS.items()
        if name in device.records
    ]
    for table, title in hardware.PEAKS.items():
        rows += [
            (f"{title}, {dtype}", _value(record)) for dtype, record in device.peaks[table].items()
        ]
    if device.publishes("memory_bandwidth"):
        rows += [(f"ridge point, {each}", str(device.ridge_point(each))) for each in device.dtypes]
    sources = {r.provenance.source: r.provenance.citation for r in device.all_records()}
    notes = [
        f"{r.provenance.title}: {r.provenance.note}"
        for r in device.all_records()
        if r.provenance.note
    ]
    return [
        f"{device.name} ({device.year})",
        *columns(rows),
        "",
        *[f"Source: {cited}" for _, cited in sorted(sources.items())],
        *[f"Note: {note}" for note in notes],
    ]


def _given_device(name: str) -> hardware.Accelerator:
    """A device of the data, or that of a file which `calc measure` wrote."""
    if not name.endswith(".toml"):
        return hardware.get(name)
    from calc import measure

    return measure.read(Path(name))


def _model(model: models.Transformer | models.ResNet) -> list[str]:
    numbers = {
        field.name.replace("_", " "): value
        for field in fields(model)
        if isinstance(value := getattr(model, field.name), Quantity)
    }
    rows = [(name, str(number)) for name, number in numbers.items() if name != "total"]
    if isinstance(model, models.Transformer):
        rows += [(f"parameters, {part}", str(count)) for part, count in model.parts.items()]
    rows += [("parameters, counted", str(model.parameters))]
    rows += [("parameters, published", str(model.total))]
    origins = [number.provenance for number in numbers.values() if number.provenance]
    sources = {each.source: each.citation for each in origins}
    return [
        f"{model.name} ({model.year})",
        *columns(rows),
        "",
        *[f"Source: {cited}" for _, cited in sorted(sources.items())],
        *[f"Note: {each.title}: {each.note}" for each in origins if each.note],
    ]


def _value(record: Record) -> str:
    estimate = " (estimate)" if record.provenance.kind == "estimate" else ""
    return f"{record.published}{estimate}" if record.published is not None else "unpublished"


def _roofline(options: argparse.Namespace) -> list[str]:
    device = _given_device(options.device)
    operations = _amount("--flops", options.flops, "FLOP")
    traffic = _amount("--bytes", options.bytes, "byte")
    peak, bandwidth = device.peak(options.dtype), device.memory_bandwidth
    step = traffic, bandwidth, operations, peak
    overlapped, apart = roofline.execution_time_overlapped(*step), roofline.execution_time(*step)
    counted_in = hardware.DTYPES[hardware.dtype_of(options.dtype)]  # FLOP, or OP for integers
    rows = [
        ("device", f"{device.name}, {options.dtype}: {peak}, {bandwidth}"),
        ("arithmetic intensity", "none, since no bytes are moved"),
        ("ridge point", str(device.ridge_point(options.dtype))),
    ]
    if traffic.magnitude:
        intensity = roofline.arithmetic_intensity(operations, traffic).to(f"{counted_in}/byte")
        reached = roofline.attainable(peak, bandwidth, intensity).to(f"{counted_in}/s")
        share = roofline.utilization(peak, bandwidth, intensity).to("%")
        rows[1] = ("arithmetic intensity", str(intensity))
        rows += [
            ("bound by", str(roofline.bound(peak, bandwidth, intensity))),
            ("attainable", f"{reached} ({share} of the dense peak)"),
        ]
    return columns(
        [*rows, ("time, perfect overlap", str(overlapped)), ("time, no overlap", str(apart))]
    )


def _amount(option: str, text: str, unit: str) -> Quantity:
    """The option names its unit, so a bare number will do there; 50% or GB/MB is none."""
    given = quantity(text)
    if not given.unitless:
        return given
    if re.search(r"%|[^\W\d_eE]", text):
        raise InputError(f"{option} needs a quantity in {unit}, or a bare number; got {text!r}")
    return quantity(given.magnitude, unit)


def _eval(options: argparse.Namespace) -> list[str]:
    result = quantity(options.expression)
    if options.to is None:
        return [str(result)]
    if not options.to.strip():
        raise InputError("--to needs a unit, as in --to GB; 1 is that of a pure number")
    converted = result.to(options.to)
    if not math.isfinite(converted.magnitude):
        raise InputError(f"{result} is too large for a floating-point number of {options.to}")
    return [str(converted)]


def _add_sweep(commands: Any) -> None:
    sweep = commands.add_parser(
        "sweep", help="train on the digits, and measure prunings and precisions of the network"
    )
    sweep.add_argument(
        "--layers", default="64-32-10", help="inputs and outputs of each layer (%(default)s)"
    )
    for name, default, meaning in (
        ("--pruning", "0,0.5,0.7,0.9", "shares that are pruned"),
        ("--kinds", "unstructured", "of unstructured and structured"),
        ("--precisions", "float32,int8", "of float32, float16, bfloat16 and int8"),
        ("--budgets", "4 kB,8 kB", "budgets of memory to flag"),
    ):
        sweep.add_argument(name, default=default, help=f"{meaning}, with commas (%(default)s)")
    sweep.add_argument(
        "--active",
        metavar="BUDGET",
        help="what `accepted` means in the rows of a file or JSON (the first budget)",
    )
    sweep.add_argument("--storage", default="dense", help="dense, csr or bitmask (%(default)s)")
    sweep.add_argument("--power", default="15 W", help="watts of the device (%(default)s)")
    sweep.add_argument(
        "--latency-multiplier", type=float, default=1.0, help="how much slower it is (1)"
    )
    for name, count, meaning in (
        ("--seeds", 3, "trainings, from the seeds 0, 1, …"),
        ("--epochs", 40, "of each training"),
        ("--repeats", 30, "timed passes of each variant"),
        ("--batch", 256, "samples in a timed pass"),
        ("--workers", 1, "processes"),
    ):
        sweep.add_argument(name, type=int, default=count, help=f"{meaning} (%(default)s)")
    sweep.add_argument(
        "--resume",
        metavar="FILE",
        help="keep finished rows there, and go on from those there are; workers need it",
    )
    sweep.add_argument("--json", action="store_true", help="print all rows as JSON, not a table")
    sweep.add_argument("--csv", metavar="FILE", help="write all rows there")
    sweep.add_argument("--parquet", metavar="FILE", help="write all rows there")
    sweep.set_defaults(run=_sweep)


def _sweep(options: argparse.Namespace) -> list[str]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from contextlib import ExitStack

    from calc import simulation
    from calc.core.arguments import whole_number
    from calc.core.progress import ProgressBar

    files = _table_files(options)
    workers = whole_number("--workers", options.workers)
    if workers > 1 and options.resume is None:
        raise InputError(
            f"--workers {workers} needs --resume FILE: a pool dies with any of its workers, and"
            f" finished rows are kept there"
        )
    budgets = _listed(options.budgets)
    with ExitStack() as open_until_done:
        executor = None
        if workers > 1:
            pool = ProcessPoolExecutor(
                workers,
                multiprocessing.get_context("spawn"),
                signal.signal,  # Ctrl-C is answered here alone, where rows are kept
                (signal.SIGINT, signal.SIG_IGN),
            )
            executor = open_until_done.enter_context(pool)
        bar = open_until_done.enter_context(ProgressBar(1, "sweeping"))
        table = simulation.run_sweep(
            _network_for_digits(options.layers),
            simulation.digits(),
            [_share(each) for each in _listed(options.pruning)],
            _listed(options.precisions),
            budgets,
            options.active or budgets[0],
            options.power,
            options.latency_multiplier,
            options.repeats,
            executor,
            kinds=_listed(options.kinds),
            seeds=range(whole_number("--seeds", options.seeds)),
            epochs=options.epochs,
            latency_batch=options.batch,
            storage=options.storage,
            resume=options.resume,
            on_progress=bar.update,
        )
    for file in files:
        simulation.write_table(table, file)
    if options.json:
        return _json({"rows": table.to_dicts()})
    memory = f"memory_{options.storage}_bytes"
    return _sweep_lines(simulation.summarize_sweep(table), memory, budgets)


def _table_files(options: argparse.Namespace) -> list[Path]:
    """Where the rows are to be written, before any are made."""
    from calc.simulation.frames import checked_target

    files = []
    for kind in ("csv", "parquet"):
        given = getattr(options, kind)
        if given is None:
            continue
        target = checked_target(given)
        if target.suffix != f".{kind}":
            raise InputError(f"--{kind} needs a name that ends in .{kind}; got {given!r}")
        if options.resume is not None and target.resolve() == Path(options.resume).resolve():
            raise InputError(f"--{kind} would overwrite the file of --resume, {given}")
        files.append(target)
    return files


def _sweep_lines(summary: Any, memory: str, budgets: list[str]) -> list[str]:
    """A line for each variant, and whether it is within each budget."""
    from calc.simulation.budgets import key_of

    within = [f"within {budget}" for budget in budgets]
    rows = [("pruning", "precision", "accuracy", "latency", "memory", *within)]
    for row in summary.iter_rows(named=True):
        spread = "" if row["accuracy_std"] is None else f" ± {row['accuracy_std']:.1%}"
        rows.append(
            (
                f"{row['pruning']:.0%} {row['kind']}" if row["pruning"] else "none",
                row["precision"],
                f"{row['accuracy']:.1%}{spread}",
                f"{Quantity(row['latency_seconds'], 's'):.3g}",
                f"{row[memory]:.0f} byte",
                *("no" if row[key_of(budget)] else "yes" for budget in budgets),
            )
        )
    return columns(rows)


def _add_measure(commands: Any) -> None:
    measure = commands.add_parser(
        "measure", help="measure this machine's roofs, and write them as a device"
    )
    measure.add_argument(
        "file", nargs="?", default="machine.toml", help="written anew (%(default)s)"
    )
    measure.add_argument("--threads", type=int, default=1, help="cores to use (%(default)s)")
    measure.add_argument("--gpu", action="store_true", help="measure the GPU that torch finds")
    measure.set_defaults(run=_measure)

    validate = commands.add_parser(
        "validate", help="predict some two dozen kernels from measured roofs, and time them"
    )
    validate.add_argument(
        "file", nargs="?", default="machine.toml", help="that `calc measure` wrote (%(default)s)"
    )
    validate.set_defaults(run=_validate)


def _measure(options: argparse.Namespace) -> list[str]:
    from calc import measure
    from calc.core.files import writable
    from calc.core.progress import ProgressBar

    target = writable(options.file)
    if target.suffix != ".toml":
        raise InputError(f"a device is written as .toml; got {options.file!r}")
    replaced = target.exists()
    command = "calc measure --gpu" if options.gpu else f"calc measure --threads {options.threads}"
    with ProgressBar(1, "measuring") as bar:
        if options.gpu:
            found = measure.gpu_survey(bar.update)
        else:
            found = measure.survey(options.threads, bar.update)
    written = f"written to {target}{', over what it held' if replaced else ''}"
    return [
        *_survey_lines(found, measure.save(found, target, command)),
        f"{written}; `calc roofline {target}` reads it, and in Python",
        f'import calc; (device,) = calc.hardware.load("{target}").values()',
    ]


def _survey_lines(found: Any, device: hardware.Accelerator) -> list[str]:
    """Medians and spreads, where the caches end, and the picture with the ridge points."""
    from calc.measure.picture import roofline_lines

    tables = {
        "bandwidth": found.bandwidths,
        "peak": found.peaks,
        "latency": found.latencies,
        "working set": {
            f"{Quantity(size / 1024, 'KiB'):.0f}": each for size, each in found.working_sets.items()
        },
    }
    rows = [
        (f"{kind}, {name}", f"{each.value:.4g}", f"± {each.spread:.1%}")
        for kind, table in tables.items()
        for name, each in table.items()
    ]
    dtype = max(device.dtypes, key=lambda each: float(device.peak(each).m_as("FLOP/s")))
    ridges = [(f"ridge point, {each}", f"{device.ridge_point(each):.3g}") for each in device.dtypes]
    h100 = hardware.H100
    return [
        f"{device.name}; medians, and the range of the middle half of the repeats",
        *columns(rows),
        "",
        *roofline_lines(device, dtype),
        "",
        *columns([*ridges, ("of an H100, fp16", f"{h100.ridge_point('fp16'):.3g}")]),
    ]


def _validate(options: argparse.Namespace) -> list[str]:
    from calc import measure
    from calc.core.progress import ProgressBar

    device = measure.read(Path(options.file))
    if device.measurement["threads"] != 1 or "gpu" in device.measurement["machine"]:
        raise InputError(
            f"{options.file} is not of one core, which the kernels run on; make one by"
            f" `calc measure --threads 1`"
        )
    with ProgressBar(1, "validating") as bar:
        kernels = measure.suite(measure.this_machine().beyond_caches)
        compared = measure.validate(kernels, device, bar.update)
    rows = [("kernel", "format", "predicted", "measured", "ratio")]
    for each in compared:
        measured = f"{each.measured.value.to('ms'):.3g}" if each.measured else "too noisy"
        ratio = f"{each.ratio:.2f}" if each.measured else "–"
        rows.append((each.name, each.dtype, f"{each.predicted.to('ms'):.3g}", measured, ratio))
    steady = [each for each in compared if each.measured]
    if not steady:
        return [*columns(rows), "", "every kernel was too noisy; try again while nothing runs"]
    worst = max(steady, key=lambda each: measure.error(each.ratio))
    return [
        *columns(rows),
        "",
        f"half of {len(steady)} kernels are within"
        f" {measure.median_error([each.ratio for each in steady]):.0%} of the roofline;"
        f" the worst is {worst.name}, at {worst.ratio:.3g} times its time",
    ]


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--pruning needs shares, as in 0,0.5,0.9; got {text!r}") from None


def _simulate(options: argparse.Namespace) -> list[str]:
    from calc import simulation  # which needs numpy; no other command does
    from calc.core.progress import ProgressBar

    device = simulation.HardwareSimulationConfig(
        enabled=True,
        max_memory=options.memory,
        compute_speed_factor=options.slowdown,
        precision_mode=options.precision,
        batch_size_limit=options.limit,
        mode=options.mode,
        optimizer=options.optimizer,
        sleep=options.sleep,
        run_infeasible=options.run_infeasible,
    )
    if options.plan:
        sizes = simulation.LayerSizes.dense(*_widths(options.layers))
        plan = simulation.prepare_hardware_constrained_run(sizes, options.batch, device)
        return _json(plan.as_dict()) if options.json else columns(_plan_rows(plan))
    split = simulation.digits(options.seed)
    with ProgressBar(options.epochs, "training") as bar:
        run = simulation.run_training_with_hardware_constraints(
            _network_for_digits(options.layers),
            split.X_train,
            split.y_train,
            options.epochs,
            options.alpha,
            options.batch,
            options.seed,
            device,
            on_epoch=lambda history: bar.advance(f"loss {history.loss[-1]:.3f}"),
        )
    first, last = run.history.loss[0], run.history.loss[-1]
    right = float((run.model.predict(split.X_test) == split.y_test).mean())
    if options.json:
        return _json(run.as_dict() | {"test_accuracy": right})
    return columns(
        [
            *_plan_rows(run.plan),
            ("loss, first and last epoch", f"{first:.3f}, {last:.3f}"),
            ("accuracy in training", f"{run.history.accuracy[-1]:.1%}"),
            ("accuracy in the test", f"{right:.1%} of {len(split.y_test)}"),
            ("time here", str(run.elapsed)),
            ("time on the device", f"{run.simulated_time} (× {run.plan.compute_speed_factor:g})"),
        ]
    )


def _network_for_digits(layers: str) -> simulation.NeuralNetwork:
    from calc import simulation

    widths = _widths(layers)
    if (widths[0], widths[-1]) != (64, 10):
        raise InputError(
            "--layers needs the 64 inputs and 10 outputs of the digits, as in 64-32-10; "
            f"got {layers!r}"
        )
    return simulation.NeuralNetwork(widths, ["relu"] * (len(widths) - 2) + ["softmax"])


def _add_training(commands: Any) -> None:
    training = commands.add_parser(
        "training", help="what a training run made of its device, from its log"
    )
    training.add_argument("log", help="a file that calc.codesign.RunLog wrote")
    training.add_argument("--html", metavar="FILE", help="write it there as a page, with drawings")
    training.set_defaults(run=_training)


def _training(options: argparse.Namespace) -> list[str]:
    from calc.codesign import dashboard_text, read_run, write_dashboard

    run = read_run(options.log)
    if options.html:
        write_dashboard(run, options.html)
    return dashboard_text(run)


def _widths(text: str) -> list[int]:
    try:
        return [int(each) for each in text.split("-")]
    except ValueError:
        raise InputError(f"--layers needs whole numbers, as in 64-32-10; got {text!r}") from None


def _plan_rows(plan: simulation.HardwarePlan) -> list[tuple[str, str]]:
    rows = [
        ("batch", str(plan.batch) if plan.batch else "none"),
        ("limited by", f"{plan.limited_by} ({plan.reason})"),
        ("precision", plan.precision),
        ("memory", f"{_bytes(plan.total_memory)} of {plan.budget}"),
        ("parameters", _bytes(plan.parameter_memory)),
        ("activations", _bytes(plan.activation_memory)),
    ]
    if plan.int8_overhead.magnitude:
        rows.append(("scales and biases, beside that", _bytes(plan.int8_overhead)))
    return rows


def _bytes(amount: Quantity) -> str:
    """All of its bytes, and the size of that: "313384 byte (306 KiB)"."""
    held = amount.m_as("byte")
    unit = "GiB" if held >= 2**30 else "MiB" if held >= 2**20 else "KiB"
    return f"{held:.0f} byte ({amount.m_as(unit):.4g} {unit})"


def _json(result: dict[str, Any]) -> list[str]:
    return json.dumps(result, indent=2, ensure_ascii=False).splitlines()
