"""A piece of work on a device, `calc roofline`, and arithmetic with units, `calc eval`."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pint import DimensionalityError

from calc.catalog import hardware, machines
from calc.catalog.intervals import PEAKS
from calc.commands.command_output import answers
from calc.commands.options import option_of
from calc.core.errors import InputError, marked
from calc.core.report import Answer, Report, Table, fact_rows
from calc.core.units import Quantity, quantity
from calc.laws import roofline

if TYPE_CHECKING:
    from matplotlib.figure import Figure


BILLIONS = re.compile(r"(\d[\d.]*)\s*B\b")


def add_roofline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", help="a name that `calc list` prints, such as h100, or a .toml")
    for name, unit, example in (("operations", "FLOP", "137 GFLOP"), ("traffic", "byte", "100 MB")):
        help_ = f'{name}: "{example}", or a bare number in {unit}'
        parser.add_argument(option_of(name), dest=name, required=True, help=help_)
    parser.add_argument(
        "--dtype", default="fp16", help="data type of the matrix units (default: %(default)s)"
    )
    answers(parser, _roofline, drawn="the roofs and the work under them", explained=True)


def _roofline(options: argparse.Namespace) -> Placed:
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
    return Placed(device.name, facts)


@dataclass(frozen=True, eq=False, repr=False)
class Placed(Answer):
    """Work under the roofs of a device; `draw` shows it there."""

    name: str
    placed: Mapping[str, Any]
    """The answer, by names that stay."""

    @property
    def answer(self) -> str:
        """The least time, and what bounds it."""
        bound = f", bound by {self.placed['bound']}" if self.placed["bound"] else ""
        return f"at least {self.placed['time']['perfect_overlap']} on {self.name}{bound}"

    @property
    def stands_on(self) -> str:
        """Sentence that the answer is a bound."""
        return f"BOUND ONLY, {PEAKS}: kernels run below them, and start"

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The answer for programs."""
        return {**self.placed, **self.headline}

    @cached_property
    def tables(self) -> list[Table]:
        """The roofs, where the work stands, and its time without overlap."""
        placed = self.placed
        intensity = placed["arithmetic_intensity"]
        printed = {
            "device": f"{placed['dtype'].upper()}: {placed['peak']}, {placed['memory_bandwidth']}",
            "arithmetic_intensity": "none, since no bytes are moved"
            if intensity is None
            else intensity,
            "ridge_point": placed["ridge_point"],
        }
        if placed["bound"]:
            share = f"({placed['utilization']} of the dense peak)"
            printed |= {"attainable": f"{placed['attainable']} {share}"}
        return [Table(fact_rows(printed | {"time": placed["time"]}))]

    def draw(self) -> Figure:
        """The roofs over the arithmetic intensity, and the work under them."""
        from calc.planning import drawing

        intensity = self.placed["arithmetic_intensity"]
        if intensity is None:
            raise InputError("a roofline has bytes to move and operations to do: give --bytes")
        roofs = self.placed["peak"], self.placed["memory_bandwidth"]
        return drawing.roofline(self.name, *roofs, (intensity, self.placed["attainable"]))


def _amount(name: str, text: str, unit: str) -> Quantity:
    """The option names its unit, so a bare number will do there; 50% or GB/MB is none."""
    amount = quantity(text)
    if not amount.unitless:
        return amount
    if re.search(r"%|[^\W\d_eE]", text):
        raise InputError(
            f"{marked(name)} needs a quantity in {unit}, or a bare number; got {text!r}"
        )
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
    lines = [str(result)]
    if result.is_compatible_with("byte**2") and (billions := BILLIONS.search(options.expression)):
        lines.append(f"{billions[0]} is bytes here; for billions write {billions[1]}e9")
    return Report(lines, facts={"expression": options.expression, "quantity": result})
