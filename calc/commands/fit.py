"""Command `calc fit`: what a device's memory holds of a model."""

from __future__ import annotations

import argparse

from calc.commands.command_output import answers
from calc.commands.options import add_model_and_device, add_options, chosen
from calc.core.nouns import options_of
from calc.published import engine_logs
from calc.published.engine_logs import LogExplained
from calc.steps import device_memory
from calc.steps.held_memory import Memory


def add_fit(parser: argparse.ArgumentParser) -> None:
    add_model_and_device(parser)
    add_options(parser, device_memory.fit)
    parser.add_argument(
        "--log",
        metavar="FILE",
        help="explain each line on memory of an engine's log, of vLLM, SGLang or llama.cpp, beside"
        " what is expected; how it was started is read there where no option says it",
    )
    answers(parser, _fit, explained=True)


def _fit(options: argparse.Namespace) -> Memory | LogExplained:
    asked = chosen(options, device_memory.fit)
    if options.log is None:
        return device_memory.fit(**asked)
    model, device = asked.pop("model"), asked.pop("device")
    usual = {name: meant.default for name, meant in options_of(device_memory.fit).items()}
    said = {name: value for name, value in asked.items() if value != usual[name]}
    return engine_logs.explain(model, device, options.log, **said)
