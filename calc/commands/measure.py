"""The reader's own machine: `calc measure` and `calc validate`."""

from __future__ import annotations

import argparse

from calc import measure, published
from calc.catalog import hardware
from calc.commands.command_output import answers
from calc.commands.options import add_options
from calc.core.errors import InputError
from calc.core.files import writable
from calc.core.progress import ProgressBar
from calc.core.report import Report, Reported, Table, values
from calc.core.units import Quantity
from calc.measure.gpu.parts import names_of
from calc.measure.picture import roofline_lines
from calc.published import closed_loops, kernel_tables, reporting
from calc.published.reporting import Agreement

FILE = "machine.toml"


def add_measure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default=FILE, help="written anew (%(default)s)")
    add_options(parser, measure.survey)
    parser.add_argument("--gpu", action="store_true", help="measure the GPU that torch finds")
    parser.add_argument(
        "--all",
        metavar="FOLDER",
        help="with --gpu: products, memory, launches, attention, loops of a model, power and"
        " collectives too, as tables in this folder; the parts that it holds already are kept",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help="with --gpu: copies, products in BF16 and FP8, attention, launches, loops of a model,"
        " power and the resolvent, in so many minutes, as tables in FILE, a folder then; the next"
        " call goes on where time ended",
    )
    answers(parser, _measure)


def _measure(options: argparse.Namespace) -> Report:
    if options.minutes is not None:
        return _measure_briefly(options)
    if options.all is not None:
        return _measure_all(options)
    target = writable(options.file)
    if target.suffix != ".toml":
        raise InputError(f"a device is written as .toml; got {options.file!r}")
    replaced = target.exists()
    command = "calc measure --gpu" if options.gpu else f"calc measure --threads {options.threads}"
    with ProgressBar(1, "measuring") as bar:
        if options.gpu:
            survey = measure.gpu_survey(bar.update)
        else:
            survey = measure.survey(options.threads, bar.update)
    device = measure.save(survey, target, command)
    best = max(device.dtypes, key=lambda dtype: float(device.peak(dtype).m_as("FLOP/s")))
    facts = {
        "file": str(target),
        "name": device.name,
        **values(survey, "bandwidths peaks latencies working_sets"),
        "ridge_point": {dtype: device.ridge_point(dtype) for dtype in device.dtypes},
        "too_noisy": survey.too_noisy,
    }
    written = f"written to {target}{', over what it held' if replaced else ''}"
    work = '--flops "1 GFLOP" --bytes "1 GB"'
    lines = [
        *_survey_lines(survey, device, best),
        f"{written}; `calc roofline {target} {work} --dtype {best}` reads it, and in Python",
        f'import calc; device = calc.hardware.get("{target}")',
    ]
    return Report(lines, facts=facts)


def _measure_all(options: argparse.Namespace) -> Report:
    if not options.gpu:
        raise InputError("--all is the record of a GPU: give --gpu too")
    if options.file != FILE:
        raise InputError(f"--all writes tables into {options.all}, and no {options.file}")
    parts = _recorded(options.all)
    lines = [
        f"{len(parts)} tables are in {options.all}: {', '.join(parts)}",
        "docs/adding-a-measured-row.md says how a record becomes part of the project",
    ]
    return Report(lines, facts={"folder": options.all, "parts": parts})


def _measure_briefly(options: argparse.Namespace) -> Report:
    if not options.gpu or options.all is not None:
        raise InputError("--minutes is of the brief record of a GPU: give --gpu, and no --all")
    folder = options.file
    if folder == FILE:
        raise InputError(
            "--minutes writes tables into a folder: name it, as in `calc measure --gpu"
            f" --minutes {options.minutes:g} my-gpu`"
        )
    parts = _recorded(folder, options.minutes)
    left = [name for name in names_of(brief=True) if name not in parts]
    again = f"`calc measure --gpu --minutes {options.minutes:g} {folder}` goes on with"
    lines = [
        f"{len(parts)} tables are in {folder}: {', '.join(parts) or 'none is whole yet'}",
        f"{again} {', '.join(left)}"
        if left
        else f"`python -m experiments.record_gpu {folder}` makes it part of the project",
    ]
    return Report(lines, facts={"folder": folder, "parts": parts, "left": left})


def _recorded(folder: str, minutes: float | None = None) -> list[str]:
    from calc.measure import gpu

    with ProgressBar(1, "measuring") as bar:

        def told(done: int, total: int, part: str) -> None:
            bar.title = f"measuring {part}"
            bar.update(done, total)

        parts: list[str] = gpu.record(folder, on_progress=told, minutes=minutes)
    return parts


def _survey_lines(survey: measure.Survey, device: hardware.Accelerator, best: str) -> list[str]:
    """Medians and spreads, where the caches end, and the picture with the ridge points."""
    sizes = {
        f"{Quantity(size / 1024, 'KiB'):.0f}": rate for size, rate in survey.working_sets.items()
    }
    tables = {
        "bandwidth": survey.bandwidths,
        "peak": survey.peaks,
        "latency": survey.latencies,
        "working set": sizes,
    }
    rows = [
        (f"{kind}, {name}", f"{median.value:.4g}", f"± {median.spread:.1%}")
        for kind, table in tables.items()
        for name, median in table.items()
    ]
    ridges = [
        (f"ridge point, {dtype.upper()}", f"{device.ridge_point(dtype):.3g}")
        for dtype in device.dtypes
    ]
    ridges.append(("of an H100, FP16", f"{hardware.H100.ridge_point('fp16'):.3g}"))
    return [
        f"{device.name}; medians, and the range of the middle half of the repeats",
        *Table(rows).lines,
        "",
        *roofline_lines(device, best),
        "",
        *Table(ridges).lines,
        *(f"left out, since another program was in the way: {name}" for name in survey.too_noisy),
    ]


def add_validate(parser: argparse.ArgumentParser) -> None:
    help_ = "a .toml that `calc measure` wrote, or another of one core (%(default)s)"
    parser.add_argument("device", nargs="?", default=FILE, help=help_)
    parser.add_argument(
        "--published",
        nargs="?",
        const="",
        metavar="FILE",
        help="hold what calc expects to published measurements instead, or to those of a .toml file"
        " in the form of calc/data/published",
    )
    parser.add_argument(
        "--group",
        choices=(*published.GROUPS, closed_loops.GROUP),
        help="of published measurements, those of this kind; closed loops of clients, which take"
        " most of a minute, are compared where they are asked for, and else printed as recorded",
    )
    parser.add_argument(
        "--kernels",
        nargs="?",
        const="",
        metavar="FILE",
        help="how far the tables of engines' kernels are off their rows instead, as they are, and"
        " with a version and a device left out; of a .csv file in the form of"
        " calc/data/measured/kernel_shares.csv",
    )
    answers(parser, _validate, table=True)


def _validate(options: argparse.Namespace) -> Reported:
    if options.kernels is not None and (options.published, options.group) != (None, None):
        raise InputError(
            "--kernels is of the tables of kernels alone; leave out --published and --group, or it"
        )
    if options.published is not None:
        return _published(options.published, options.group)
    if options.kernels is not None:
        return kernel_tables.errors(options.kernels)
    if options.group is not None:
        raise InputError("--group chooses among published measurements; give --published too")
    device = hardware.get(options.device)
    threads, machine = (device.measurement.get(name) for name in ("threads", "machine"))
    if device.measurement and (threads != 1 or (isinstance(machine, dict) and "gpu" in machine)):
        raise InputError(
            f"{options.device} is not of one core, which the kernels run on; make one by"
            f" `calc measure --threads 1`"
        )
    with ProgressBar(1, "validating") as bar:
        kernels = measure.suite(measure.this_machine().beyond_caches)
        compared = measure.validate(kernels, device, bar.update)
    rows: list[dict[str, object]] = []
    cells = [("kernel", "format", "predicted", "measured", "ratio")]
    for kernel in compared:
        measured = kernel.measured.value if kernel.measured else None
        rows.append(
            {
                "kernel": kernel.name,
                **values(kernel, "dtype predicted"),
                "measured": measured,
                "ratio": kernel.ratio,
            }
        )
        clock = "too noisy" if measured is None else f"{measured.to('ms'):.3g}"
        ratio = "–" if measured is None else f"{kernel.ratio:.2f}"
        predicted = f"{kernel.predicted.to('ms'):.3g}"
        cells.append((kernel.name, kernel.dtype.upper(), predicted, clock, ratio))
    verdict = _verdict([kernel for kernel in compared if kernel.measured])
    return Report(tables=[Table(cells)], sentences={"": [verdict]}, facts={"rows": rows})


def _published(file: str, group: str | None) -> Agreement:
    if file:
        measurements = published.load(file)
    else:
        loops = group == closed_loops.GROUP
        measurements = (
            (*closed_loops.rows(), *closed_loops.elsewhere()) if loops else published.rows(group)
        )
    chosen = [row for row in measurements if group in (None, row.group)]
    if not chosen:
        raise InputError(f"{file}: holds no [[{group}]], which --group asks for")
    with ProgressBar(len(chosen), "predicting") as bar:
        compared = []
        for row in chosen:
            compared.append(published.predict(row))
            bar.advance()
    if file or group not in (None, closed_loops.GROUP):
        return Agreement(compared)
    recorded = reporting.under_load()  # of loops that are compared anew first tokens alone
    return Agreement(compared, recorded[-1:] if group else recorded)


def _verdict(steady: list[measure.Comparison]) -> str:
    if not steady:
        return "every kernel was too noisy; try again while nothing runs"
    worst = max(steady, key=lambda kernel: measure.error(kernel.ratio))
    return (
        f"half of {len(steady)} kernels are within"
        f" {measure.median_error([kernel.ratio for kernel in steady]):.0%} of the roofline;"
        f" the worst is {worst.name}, at {worst.ratio:.3g} times its time"
    )
