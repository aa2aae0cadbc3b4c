"""A matrix product, attention, a collective, and a whole network, `calc throughput`."""

from __future__ import annotations

import argparse

from calc.catalog import machines
from calc.commands.command_output import answers
from calc.commands.options import add_options, chosen, numbers, whole
from calc.core.names import spellings, squeezed
from calc.steps import communication, curves, products, throughput

WORDS = {"send": ("send_recv", "send_receive", "point_to_point", "p2p")}
OPERATIONS = spellings({name: WORDS.get(name, ()) for name in curves.OPERATIONS})  # as allreduce
DEVICE = "a machine or a device that `calc list` prints, or a .toml"


def add_gemm(parser: argparse.ArgumentParser) -> None:
    for name, what in (
        ("m", "rows of the result"),
        ("n", "columns of the result"),
        ("k", "length of the sums"),
    ):
        parser.add_argument(name, type=whole, help=what)
    parser.add_argument("device", help=DEVICE)
    add_options(parser, products.gemm)
    answers(parser, _gemm, explained=True)


def _gemm(options: argparse.Namespace) -> products.Gemm:
    return products.gemm(**chosen(options, products.gemm), machine=machines.of(options.device))


def add_attention(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("length", type=whole, help="tokens of a sequence, as 32k")
    parser.add_argument("device", help=DEVICE)
    add_options(parser, products.attention)
    answers(parser, _attention, explained=True)


def _attention(options: argparse.Namespace) -> products.Attention:
    machine = machines.of(options.device)
    return products.attention(**chosen(options, products.attention), machine=machine)


def add_collective(parser: argparse.ArgumentParser) -> None:
    named = ", ".join(name.replace("_", "-") for name in curves.OPERATIONS)
    parser.add_argument("operation", help=f"one of {named}")
    parser.add_argument(
        "size", help='of the whole array, "16 MB"; of an all-to-all or a send, of a device'
    )
    parser.add_argument("device", help=DEVICE)
    parser.add_argument("--devices", type=whole, help="those of the machine where it is left out")
    add_options(parser, communication.time)
    answers(parser, _collective, explained=True)


def _collective(options: argparse.Namespace) -> communication.CollectiveTime:
    machine = machines.of(options.device)
    operation = OPERATIONS.get(squeezed(options.operation), options.operation)
    devices = machine.domain if options.devices is None else options.devices
    return communication.time(operation, options.size, devices, machine, options.software)


def add_throughput(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        help="a name that `calc list models` prints: of a vision or diffusion transformer, a"
        " convolutional network, an encoder such as bert-base, or a recommender; or a config.json",
    )
    parser.add_argument("device", help=DEVICE)
    add_options(parser, throughput.of)
    answers(parser, _throughput, explained=True)


def _throughput(options: argparse.Namespace) -> throughput.Throughput:
    arguments = chosen(options, throughput.of)
    if isinstance(arguments["pixels"], str):  # as they were typed
        arguments["pixels"] = numbers("pixels", arguments["pixels"], "--pixels 1024,768")
    return throughput.of(**arguments)
