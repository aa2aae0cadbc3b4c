"""A piece of work on a device, `calc roofline`, and arithmetic with units, `calc eval`."""

from __future__ import annotations

import argparse
import math
import re

from pint import DimensionalityError

from calc.catalog import hardware, machines
from calc.commands.options import option_of
from calc.commands.output import answers
from calc.core.errors import InputError
from calc.core.report import Report, Table, fact_rows
from calc.core.units import Quantity, quantity
from calc.laws import roofline


def add_roofline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", help="a name that `calc list` prints, such as h100, or a .toml")
    for name, unit, example in (("operations", "FLOP", "137 GFLOP"), ("traffic", "byte", "100 MB")):
        help_ = f'{name}: "{example}", or a bare number in {unit}'
        parser.add_argument(option_of(name), dest=name, required=True, help=help_)
    parser.add_argument(
        "--dtype", default="fp16", help="data type of the matrix units (default: %(default)s)"
    )
    answers(parser, _roofline)


def _roofline(options: argparse.Namespace) -> Report:
    machine = machines.key_of(options.device) if hardware.key_of(options.device) is None else None
    device = machines.get(machine).device if machine else hardware.get(options.device)
    operations = _amount("operations", options.operations, "FLOP")
    traffic = _amount("traffic", options.traffic, "byte")
    peak, bandwidth = device.peak(options.dtype), device.memory_bandwidth
    ridge, dtype = device.ridge_point(options.dtype), hardware.dtype_of(options.dtype)
    step = traffic, bandwidth, operations, peak
    facts: dict[str, object] = {
        "device": device.key,
        "dtype": dtype,
        "peak": peak,
        "memory_bandwidth": bandwidth,
        "operations": operations,
        "traffic": traffic,
        "arithmetic_intensity": None,
        "ridge_point": ridge,
        "bound": None,
        "attainable": None,
        "utilization": None,
        "time": {
            "perfect_overlap": roofline.execution_time_overlapped(*step),
            "no_overlap": roofline.execution_time(*step),
        },
    }
    if traffic.magnitude:
        intensity = roofline.arithmetic_intensity(operations, traffic).to(ridge.units)
        facts |= {
            "arithmetic_intensity": intensity,
            "bound": str(roofline.bound(peak, bandwidth, intensity)),
            "attainable": roofline.attainable(peak, bandwidth, intensity).to(peak.units),
            "utilization": roofline.utilization(peak, bandwidth, intensity).to("%"),
        }
    elif operations.magnitude:  # the limit of an intensity that grows
        facts |= {"bound": "compute", "attainable": peak, "utilization": quantity(100, "%")}
    printed = {
        "device": f"{device.name}, {dtype.upper()}: {peak}, {bandwidth}",
        "arithmetic_intensity": facts["arithmetic_intensity"]
        if traffic.magnitude
        else "none, since no bytes are moved",
        "ridge_point": ridge,
    }
    if facts["bound"]:
        share = f"({facts['utilization']} of the dense peak)"
        printed |= {"bound by": facts["bound"], "attainable": f"{facts['attainable']} {share}"}
    return Report(tables=[Table(fact_rows(printed | {"time": facts["time"]}))], facts=facts)


def _amount(name: str, text: str, unit: str) -> Quantity:
    """The option names its unit, so a bare number will do there; 50% or GB/MB is none."""
    amount = quantity(text)
    if not amount.unitless:
        return amount
    if re.search(r"%|[^\W\d_eE]", text):
        raise InputError(f"{name} needs a quantity in {unit}, or a bare number; got {text!r}")
    return quantity(amount.magnitude, unit)


def add_eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("expression", help='such as "10 GB / 2 GB/s"')
    parser.add_argument("--to", metavar="UNIT", help="print the result in this unit")
    answers(parser, _eval)


def _eval(options: argparse.Namespace) -> Report:
    result = quantity(options.expression)
    if options.to is not None:
        if not options.to.strip():
            raise InputError("--to needs a unit, as in --to GB; 1 is that of a pure number")
        try:
            converted = result.to(options.to)
        except DimensionalityError:
            raise InputError(
                f"--to needs a unit of the same dimension as {result}; got {options.to!r}"
            ) from None
        if not math.isfinite(converted.magnitude):
            raise InputError(f"{result} is too large for a floating-point number of {options.to}")
        result = converted
    return Report([str(result)], facts={"expression": options.expression, "quantity": result})
