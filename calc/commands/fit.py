"""What an engine does with a device's memory: `calc fit`."""

from __future__ import annotations

import argparse

from calc.commands.options import add_options, chosen, model_of
from calc.commands.output import answers
from calc.steps import engine_memory


def add_fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", help="a name that `calc list` prints, such as llama-3-70b, or a config.json"
    )
    parser.add_argument(
        "device", help="a machine or a device that `calc list` prints, such as h100, or a .toml"
    )
    add_options(parser, engine_memory.fit)
    answers(parser, _fit, explained=True)


def _fit(options: argparse.Namespace) -> engine_memory.EngineMemory:
    options_of_fit = chosen(options, engine_memory.fit)
    return engine_memory.fit(model_of(options_of_fit.pop("model")), **options_of_fit)
