"""Images and samples a second of networks that write no tokens: `calc throughput`."""

from __future__ import annotations

import argparse

from calc.commands.options import add_options, chosen, model_of, numbers
from calc.commands.output import answers
from calc.steps import throughput


def add_throughput(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        help="a name that `calc list models` prints: of a vision or diffusion transformer, a"
        " convolutional network, an encoder such as bert-base, or a recommender; or a config.json",
    )
    parser.add_argument("device", help="a machine or a device that `calc list` prints, or a .toml")
    add_options(parser, throughput.of)
    answers(parser, _throughput)


def _throughput(options: argparse.Namespace) -> throughput.Throughput:
    asked = chosen(options, throughput.of)
    if isinstance(asked["pixels"], str):  # as they were typed
        sides = numbers("pixels", asked["pixels"], "--pixels 1024,768")
        asked["pixels"] = [int(side) if side.is_integer() else side for side in sides]
    return throughput.of(model_of(asked.pop("model")), **asked)
