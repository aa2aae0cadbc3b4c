"""Commands of serving and training: `calc plan`, `plan-training`, `plan-service`, `compare`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from calc.catalog import apis, engines, machines
from calc.catalog.models.model_files import model_of
from calc.commands.command_output import answers
from calc.commands.options import (
    add_config,
    add_options,
    add_planning,
    chosen,
    numbers,
    option_of,
    split_at_commas,
)
from calc.core.errors import InputError
from calc.core.nouns import options_of
from calc.core.progress import ProgressBar
from calc.planning import (
    BreakEven,
    Comparison,
    Plan,
    ReinforcementPlan,
    ServicePlan,
    TrainingPlan,
    break_even,
    compare,
    plan,
    plan_reinforcement,
    plan_service,
    plan_training,
)
from calc.planning.service import ServicePlans, plan_services
from calc.planning.service.deployment import Deployment
from calc.planning.service.manifests import PLATFORMS, Manifests
from calc.planning.serving_plan import Plans
from calc.planning.setup import COUNTS

SEVERAL = (*COUNTS, "users", "tensor")
"""Options of which a plan may have several numbers."""


def add_plan(parser: argparse.ArgumentParser) -> None:
    usually = "dgx-b200, or h100 for the machine in which it usually stands; or a .toml"
    add_planning(parser, plan, "llama-3-70b", f"{usually}; several by commas")
    parser.add_argument(
        "--parts",
        action="store_true",
        help="print the parts of the expected passes too, with their shares and their sources",
    )
    parser.epilog = (
        f"{', '.join(SEVERAL)}: a whole number, or several with commas, as in 1,8,64: every"
        " combination is planned."
    )
    drawn = "throughput against the time per token over the points"
    answers(parser, _plan, table=True, drawn=drawn, explained=True)


def _plan(options: argparse.Namespace) -> Plans:
    arguments = chosen(options, plan)
    counts = {name: arguments.pop(name) for name in SEVERAL if arguments[name] is not None}
    arguments |= _grid(counts)
    model = arguments.pop("model")
    if isinstance(model, str) and "," in model:
        raise InputError(
            f"calc plan takes one model, and several devices and numbers with commas; got {model!r}"
        )
    devices = [machines.of(device) for device in split_at_commas(options.device)]
    plans: list[Plan] = []
    refused: dict[str, str] = {}
    for device in devices:
        try:
            plans.append(plan(model, device, **arguments).with_expectation())
        except InputError as error:
            if device is devices[-1] and not plans:
                raise
            refused[device.device.key] = str(error)
    answer = Plans(tuple(plans), refused, options.parts)
    if options.parts and not answer.of_one_point:
        count = sum(len(made.points) for made in plans)
        raise InputError(
            f"--parts prints those of one plan, and {count} are asked for: give one"
            " device and one number of each"
        )
    if answer.of_one_point and options.explain:
        return answer.explained()
    return answer


def _grid(counts: dict[str, object]) -> dict[str, object]:
    """A number for each count; of several with commas every combination, an axis for each count."""
    several = {name: numbers(name, str(text), "1,8,64") for name, text in counts.items()}
    axes = [name for name, values in several.items() if len(values) > 1]
    grid: dict[str, object] = {}
    for name, values in several.items():
        column: list[Any] = values
        for _ in axes[axes.index(name) + 1 :] if name in axes else []:
            column = [[value] for value in column]
        grid[name] = column if name in axes else values[0]
    return grid


def add_plan_training(parser: argparse.ArgumentParser) -> None:
    add_planning(parser, plan_training, "llama-3-405b", "dgx-h100; or a .toml")
    parser.add_argument(
        "--rl",
        action="store_true",
        help="plan a step of reinforcement learning instead: rollouts, reward, update and new"
        " weights, by the options below from --answers on, and --devices and --price",
    )
    known = options_of(plan_training)
    names = [name for name in options_of(plan_reinforcement) if name not in known]
    add_options(parser, plan_reinforcement, names)
    for action in parser._actions:
        if action.option_strings:
            action.required = False  # of the one or of the other, which is checked once it is known
    figure = "the time of a step by its parts, for the ten best layouts,"
    answers(parser, _plan_training, table=True, drawn=figure, explained=True)


def _plan_training(options: argparse.Namespace) -> TrainingPlan | ReinforcementPlan:
    called = plan_reinforcement if options.rl else plan_training
    needed = [
        option_of(name)
        for name, meant in options_of(called).items()
        if meant.required and getattr(options, name, None) is None and name != "hardware"
    ]
    which = "calc plan-training --rl" if options.rl else "calc plan-training"
    if needed:
        raise InputError(f"{which} needs {', '.join(needed)}")
    own = options_of(called)
    others = options_of(plan_training if options.rl else plan_reinforcement)
    foreign = [
        option_of(name)
        for name, meant in others.items()
        if name not in own and getattr(options, name, None) not in (None, meant.default)
    ]
    if foreign:
        raise InputError(f"{which} has no {', '.join(foreign)}: leave it")
    if options.rl:
        arguments = chosen(options, plan_reinforcement) | {"hardware": machines.of(options.device)}
        counts = numbers("devices", str(options.devices), "32")
        if len(counts) > 1:
            raise InputError(f"{which} takes one number of devices; got {options.devices}")
        return plan_reinforcement(**arguments | {"devices": counts[0]})
    arguments = chosen(options, plan_training) | {"hardware": machines.of(options.device)}
    with ProgressBar(1, "planning") as bar:
        return plan_training(**arguments, on_progress=bar.update)


TRACE = """a trace has a line for each request: when it came, in seconds or as a date, and tokens

  timestamp,prompt_tokens,output_tokens
  0.0,1200,300
  0.4,800,150
  0.9,2048,512"""


def add_plan_service(parser: argparse.ArgumentParser) -> None:
    usually = "dgx-h100; or a .toml; several by commas, to be ranked"
    add_planning(parser, plan_service, "llama-3-70b", usually)
    parser.add_argument(
        "--write",
        metavar="ENGINE",
        help="print the commands that start these servers with vllm, sglang or trtllm, the last"
        ' version that is known, or the one that is named, as in "vllm 0.19"',
    )
    parser.add_argument(
        "--kubernetes",
        nargs="?",
        const="manifests",
        choices=PLATFORMS,
        help="print, in place of the commands of --write, manifests for Kubernetes: Deployments, or"
        " LeaderWorkerSets over several hosts, with their Services and the router of two pools;"
        " kserve, dynamo or llm-d: what these read in their place",
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = TRACE
    answers(parser, _plan_service, table=True, drawn="the times against the rate", explained=True)


def _plan_service(
    options: argparse.Namespace,
) -> ServicePlan | ServicePlans | Deployment | Manifests:
    arguments = chosen(options, plan_service)
    model = arguments.pop("model")
    if "," in options.device:
        if options.write is not None or options.draw is not None or options.kubernetes:
            raise InputError("--write, --kubernetes and --draw are of one machine; give one")
        prices = arguments["prices"]
        arguments["prices"] = replace(prices, price=_by_machine(prices.price))
        return plan_services(model, split_at_commas(options.device), **arguments)
    machine = machines.of(options.device)
    if options.kubernetes and options.write is None:
        raise InputError("--kubernetes is of what is written: it needs --write, as in --write vllm")
    if options.write is not None:
        engines.starting(options.write)  # refused before anything is planned
        if options.csv or options.draw:
            raise InputError("--write prints commands, which no --csv and no --draw has: leave it")
    with ProgressBar(1, "simulating") as bar:
        service = plan_service(model, machine, **arguments, on_progress=bar.update)
    if options.write is None:
        return service
    if options.kubernetes:
        return service.manifests(options.write, options.kubernetes)
    return service.deployment(options.write)


def add_break_even(parser: argparse.ArgumentParser) -> None:
    add_planning(parser, break_even, "gpt-oss-120b", "h100; or a .toml")
    parser.epilog = f"Prices to compare with: {', '.join(apis.names())}."
    answers(parser, _break_even, table=True, explained=True)


def _break_even(options: argparse.Namespace) -> BreakEven:
    return break_even(**chosen(options, break_even), hardware=machines.of(options.device))


def add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models",
        help="a name that `calc list` prints, such as llama-3-70b, or a config.json; several by"
        " commas",
    )
    parser.add_argument(
        "--machines",
        required=True,
        metavar="MACHINES",
        help="machines or devices that `calc list` prints, such as dgx-h100,mi300x-8, or a .toml;"
        " several by commas",
    )
    add_options(parser, compare)
    add_config(parser, compare)
    parser.epilog = (
        'A price, and a number of devices, is one for all, "3 USD/hour", or by machine, as in'
        " dgx-h100=3 USD/hour,mi300x-8=2 USD/hour."
    )
    answers(parser, _compare, table=True, drawn="the front", explained=True)


def _compare(options: argparse.Namespace) -> Comparison:
    arguments = chosen(options, compare)
    arguments["models"] = list(map(model_of, split_at_commas(arguments["models"])))
    arguments["machines"] = split_at_commas(arguments["machines"])
    for name in ("price", "devices"):
        arguments[name] = _by_machine(arguments[name])
    return compare(**arguments)


def _by_machine(text: str | None) -> str | dict[str, str] | None:
    """One text for all, or those of machines, as in dgx-h100=3 USD/hour,mi300x-8=2 USD/hour."""
    if text is None or "=" not in text:
        return text
    pairs = (pair.partition("=") for pair in split_at_commas(text))
    return {machine.strip(): price.strip() for machine, _, price in pairs}
