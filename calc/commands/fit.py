"""Command `calc fit`: what a device's memory holds of a model."""

from __future__ import annotations

import argparse

from calc.commands.options import add_model_and_device, add_options, chosen
from calc.commands.output import answers
from calc.steps import device_memory


def add_fit(parser: argparse.ArgumentParser) -> None:
    add_model_and_device(parser)
    fit = device_memory.fit
    add_options(parser, fit)
    answers(parser, lambda options: fit(**chosen(options, fit)), explained=True)
