"""The command `calc`: look up devices, constants and laws, use the roofline, evaluate text.

Built on argparse, which starts in a few milliseconds and is always there.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import io
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, get_args, get_type_hints

from pint import DimensionalityError

from calc import constants, hardware, laws, roofline
from calc.errors import InputError
from calc.records import Record, source
from calc.units import Quantity, quantity


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a user's mistake is one sentence on stderr and exit code 1."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without µ gets its escape
            stream.reconfigure(errors="backslashreplace")
    try:
        lines = options.run(options)
    except (InputError, DimensionalityError) as error:
        print(f"calc: {error}", file=sys.stderr)
        return 1
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


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="calc", description="Numbers of machine-learning systems, with units and sources."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    listing = commands.add_parser("list", help="names of devices, constants or laws")
    listing.add_argument(
        "what",
        nargs="?",
        choices=["devices", "constants", "laws"],
        help="all where nothing is said",
    )
    listing.set_defaults(run=_list)

    show = commands.add_parser(
        "show", help="everything about a device, a constant or a law, with sources"
    )
    show.add_argument("name", help="a name that `calc list` prints, such as h100")
    show.set_defaults(run=_show)

    place = commands.add_parser(
        "roofline", help="what bounds some work on a device, and its best time"
    )
    place.add_argument("device", help="a device that `calc list` prints, such as h100")
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
    return parser


def _list(options: argparse.Namespace) -> list[str]:
    lists = {"devices": _device_lines, "constants": _constant_lines, "laws": _law_lines}
    if options.what:
        return lists[options.what]()
    lines: list[str] = []
    for title, make in lists.items():
        lines += [*([""] if lines else []), f"{title}:", *(f"  {line}" for line in make())]
    return lines


def _device_lines() -> list[str]:
    return _columns([(key, hardware.get(key).name) for key in hardware.names()])


def _constant_lines() -> list[str]:
    return _columns([(name, str(constants.get(name))) for name in constants.names()])


def _law_lines() -> list[str]:
    return _columns([(name, _summary(law)) for name, law in laws().items()])


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
    if hardware.key_of(name) in hardware.names():
        return _device(hardware.get(name))
    raise InputError(f"there is no device, constant or law {options.name!r}; {_advice(name)}")


def _advice(name: str) -> str:
    """The nearest names, where a law is also known by its name without the module."""
    spellings: dict[str, list[str]] = {}
    for full in (*hardware.names(), *constants.names(), *laws()):
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
        *_columns(rows),
        "",
        *[f"Source: {cited}" for _, cited in sorted(sources.items())],
        *[f"Note: {note}" for note in notes],
    ]


def _value(record: Record) -> str:
    estimate = " (estimate)" if record.provenance.kind == "estimate" else ""
    return f"{record.published}{estimate}" if record.published is not None else "unpublished"


def _roofline(options: argparse.Namespace) -> list[str]:
    device = hardware.get(options.device)
    operations = _amount("--flops", options.flops, "FLOP")
    traffic = _amount("--bytes", options.bytes, "byte")
    peak, bandwidth = device.peak(options.dtype), device.memory_bandwidth
    step = traffic, bandwidth, operations, peak
    overlapped, apart = roofline.execution_time_overlapped(*step), roofline.execution_time(*step)
    counted_in = hardware.DTYPES[options.dtype.lower()]  # FLOP, or OP for integers
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
    return _columns(
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


def _columns(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(first) for first, _ in rows)
    return [f"{first:<{width}}  {second}" for first, second in rows]
