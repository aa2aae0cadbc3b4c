"""One matrix product on a device, `calc gemm`, and a whole network, `calc throughput`."""

from __future__ import annotations

import argparse

from calc.catalog import machines
from calc.commands.options import add_options, chosen, model_of, numbers
from calc.commands.output import answers
from calc.steps import kernels, throughput

DEVICE = "a machine or a device that `calc list` prints, or a .toml"


def add_gemm(parser: argparse.ArgumentParser) -> None:
    for name, what in (
        ("m", "rows of the result"),
        ("n", "columns of the result"),
        ("k", "length of the sums"),
    ):
        parser.add_argument(name, type=int, help=what)
    parser.add_argument("device", help=DEVICE)
    add_options(parser, kernels.gemm)
    answers(parser, _gemm)


def _gemm(options: argparse.Namespace) -> kernels.Gemm:
    return kernels.gemm(**chosen(options, kernels.gemm), machine=machines.of(options.device))


def add_throughput(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        help="a name that `calc list models` prints: of a vision or diffusion transformer, a"
        " convolutional network, an encoder such as bert-base, or a recommender; or a config.json",
    )
    parser.add_argument("device", help=DEVICE)
    add_options(parser, throughput.of)
    answers(parser, _throughput)


def _throughput(options: argparse.Namespace) -> throughput.Throughput:
    arguments = chosen(options, throughput.of)
    if isinstance(arguments["pixels"], str):  # as they were typed
        sides = numbers("pixels", arguments["pixels"], "--pixels 1024,768")
        arguments["pixels"] = [int(side) if side.is_integer() else side for side in sides]
    return throughput.of(model_of(arguments.pop("model")), **arguments)
