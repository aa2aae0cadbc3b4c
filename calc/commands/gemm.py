"""One matrix product on a device: `calc gemm`."""

from __future__ import annotations

import argparse

from calc.catalog import machines
from calc.commands.options import add_options, chosen
from calc.commands.output import answers
from calc.steps import kernels


def add_gemm(parser: argparse.ArgumentParser) -> None:
    for name, what in (
        ("m", "rows of the result"),
        ("n", "columns of the result"),
        ("k", "length of the sums"),
    ):
        parser.add_argument(name, type=int, help=what)
    parser.add_argument("device", help="a machine or a device that `calc list` prints, or a .toml")
    add_options(parser, kernels.gemm)
    answers(parser, _gemm)


def _gemm(options: argparse.Namespace) -> kernels.Gemm:
    return kernels.gemm(**chosen(options, kernels.gemm), machine=machines.of(options.device))
