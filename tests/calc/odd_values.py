"""Odd values, and every public function of the library with the values that it usually takes."""

from __future__ import annotations

import datetime
import inspect
import math
import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy
import pint

import calc
from calc import formats, hardware, layouts, machines, models, quantity, rollouts, simulation
from calc.core.law import Range
from calc.core.public import modules

SEED = int(os.environ.get("BATTERY_SEED", "25"))
"""Seed of all that the battery draws; docs/checking-a-change.md says how to draw others."""

foreign = pint.UnitRegistry(cache_folder=None)


class Odd:
    """An object that is nothing, and fails at being an array."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")

    def __repr__(self) -> str:
        return "odd\nobject"


def deep(levels: int) -> Any:
    nested: Any = 1
    for _ in range(levels):
        nested = [nested]
    return nested


# The values are made anew for each call, so that none sees what another did to them.
ODD: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "nan": lambda: math.nan,
    "infinity": lambda: math.inf,
    "minus infinity": lambda: -math.inf,
    "signalling": lambda: Decimal("sNaN"),
    "decimal": lambda: Decimal("1e-7"),
    "fraction": lambda: Fraction(1, 3),
    "true": lambda: True,
    "zero": lambda: 0,
    "minus": lambda: -1,
    "small": lambda: 5e-324,
    "large": lambda: 1.7e308,
    "huge": lambda: 10**400,
    "complex": lambda: 1 + 2j,
    "empty text": lambda: "",
    "blank": lambda: "  \n",
    "word": lambda: "llama",
    "number as text": lambda: "3",
    "quantity as text": lambda: "3 GB",
    "expression": lambda: "9**9**9",
    "small text": lambda: "1e-400",
    "nul": lambda: "a\0b",
    "surrogate": lambda: "\udcff",
    "long text": lambda: "x" * 5000,
    "unicode": lambda: "𝟛 µs\u2028",
    "bytes": lambda: b"3 GB",
    "empty list": list,
    "list": lambda: [1, 2],
    "list of texts": lambda: ["1 GB", "x"],
    "ragged": lambda: [[1, 2], [3]],
    "deep": lambda: deep(200),
    "with none": lambda: [1.0, None],
    "dict": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "range": lambda: range(3),
    "generator": lambda: (each for each in (1, 2)),
    "object": object,
    "odd object": Odd,
    "type": lambda: int,
    "function": lambda: len,
    "date": lambda: datetime.date(2026, 1, 1),
    "array": lambda: numpy.array([1.0, 2.0]),
    "empty array": lambda: numpy.array([]),
    "flat array": lambda: numpy.array(3.0),
    "array of nan": lambda: numpy.array([1.0, math.nan]),
    "array of complex": lambda: numpy.array([1j]),
    "array of texts": lambda: numpy.array(["a", "b"]),
    "array of objects": lambda: numpy.array([object(), None]),
    "array of bools": lambda: numpy.array([True, False]),
    "array of dates": lambda: numpy.array(["2026-01-01"], dtype="datetime64[D]"),
    "array of halves": lambda: numpy.array([1, 2], dtype=numpy.float16),
    "array of bytes": lambda: numpy.array([255], dtype=numpy.uint8),
    "structured": lambda: numpy.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
    "masked": lambda: numpy.ma.masked_array([1.0, 2.0], mask=[True, False]),
    "wide": lambda: numpy.ones((3, 0, 2)),
    "quantity": lambda: quantity("3 GB"),
    "other quantity": lambda: quantity("3 USD/token"),
    "pure quantity": lambda: quantity(3, ""),
    "quantity of nan": lambda: quantity(math.nan, "s"),
    "quantities": lambda: quantity([1, 2], "GB"),
    "no quantities": lambda: quantity([], "GB"),
    "list of quantities": lambda: [quantity("1 GB"), quantity("2 GB")],
    "foreign": lambda: foreign.Quantity(3, "second"),
    "foreign bytes": lambda: foreign.Quantity(3, "byte"),
    "foreign of a list": lambda: foreign.Quantity([1, 2], "meter"),
    "device": lambda: hardware.H100,
    "model": lambda: models.get("llama-3-8b"),
    "network of images": lambda: models.get("resnet-50"),
    "format": lambda: formats.FP16,
    "namespace": SimpleNamespace,
}

# What arguments that are no plain numbers usually are, by their names.
USUAL: dict[str, Any] = {
    "models": "llama-3-8b",
    "machines": "t4",
    "model": models.get("llama-3-8b"),
    "device": hardware.H100,
    "hardware": hardware.H100,
    "layout": calc.Layout(),
    "job": calc.Job.of("llama-3-8b", "dgx-h100"),
    "batch": calc.Batch(128),
    "load": calc.Tokens(writing=1, context=128),
    "trained": calc.steps.job.ALL,
    "inner": layouts.Link("450 GB/s"),
    "outer": layouts.Link("50 GB/s"),
    "recipe": "adam-mixed",
    "levers": [(0.5, 2)],
    "data": [1.0, 2.0],
    "restored": [1.0, 2.0],
    "left": [[1, 2]],
    "right": [[1], [2]],
    "machine": machines.get("dgx-h100"),
    "lengths": rollouts.Lengths(1000, 4096),
    "form": formats.FP16,
    "terms": [1.0, 2.0],
}
IN_SIMULATION: dict[str, Any] = {
    "model": simulation.NeuralNetwork((4, 3, 2), ("relu", "softmax")),
    "simulation_config": simulation.HardwareSimulationConfig(),
    "layer_sizes": (4, 3, 2),
    "activations": ("relu", "softmax"),
    "budget": "1 MiB",
    "budgets": quantity("1 MiB"),
    "shape": (4, 3),
    "precision": "fp16",
    "table": {"a": [1, 2], "b": [2, 1]},
    "objectives": {"a": "max", "b": "min"},
}
NETWORKS: dict[str, dict[str, Any]] = {  # in the modules of one family
    "convolution": {
        "model": models.get("resnet-50"),
        "layer": models.get("resnet-50").convolutions[0],
    },
    "diffusion": {"model": models.get("flux-1-dev")},
    "formats": {"name": "weights"},
    "encoder_decoder": {"model": models.get("whisper-large-v3")},
    "recommenders": {"model": models.get("dlrm-dcnv2")},
    "planning": {"rate": "1 request/s", "prompt": 100, "generated": 10, "requests": 100},
}
SIMULATION = (  # what trains nothing
    "HardwareSimulationConfig",
    "NeuralNetwork",
    "adjust_batch_size_to_memory",
    "apply_precision_constraint",
    "arithmetic",
    "estimate_activation_memory",
    "estimate_parameter_memory",
    "estimate_total_memory",
    "pareto_frontier",
    "plan_batches",
    "prepare_hardware_constrained_run",
    "storage_bytes",
)
CHECKED_BY_CALLERS = {"answer", "curves", "device_power", "expectation", "measured"}
DATA = ("constants", "hardware", "models", "runs", "formats")


@cache
def functions() -> dict[str, Callable[..., Any]]:
    """The laws, and all public functions of the modules of laws, of data and of plans."""
    callables: dict[str, Callable[..., Any]] = dict(calc.all_laws())
    folders = [f"calc.{folder}." for folder in ("laws", "networks", "steps")]
    places = modules("calc").items()
    lawful = {name for name, location in places if location.startswith(tuple(folders))}
    for name in sorted({"hardware", *lawful, *DATA, "planning"} - CHECKED_BY_CALLERS):
        module = getattr(calc, name)
        for member in {*vars(module), *dir(module)}:
            value = getattr(module, member)
            defined_here = getattr(value, "__module__", "").startswith(module.__name__)
            if (
                defined_here
                and not member.startswith("_")
                and (inspect.isfunction(value) or _is_made(value))
            ):
                callables.setdefault(f"{name}.{member}", value)
    del callables["planning.training_row"]  # which hands all that it is given to plan_training
    del callables["communication.seconds"]  # of what `communication.time` checks, for those who did
    callables |= {"quantity": calc.quantity, "source": calc.source}
    callables |= {f"simulation.{name}": getattr(simulation, name) for name in SIMULATION}
    callables["models.with_context"] = models.get("llama-3-8b").with_context
    callables["layouts.parameters"] = layouts.Layout().parameters
    for form in (formats.FP16, formats.BF16, formats.INT8, formats.E8M0, formats.MXFP4):
        for method in ("encode", "decode", "round", "ulp", "round_fp32"):
            if hasattr(form, method):
                callables[f"formats.{form.key}.{method}"] = getattr(form, method)
    for method in ("peak", "sparse_peak", "vector_peak", "ridge_point", "publishes"):
        callables[f"hardware.h100.{method}"] = getattr(hardware.H100, method)
    return callables


def _is_made(value: Any) -> bool:
    """Return whether a value is a class that callers make, no result's type or word of typing."""
    return inspect.isclass(value) and value.__name__ in (
        "Layout",
        "Link",
        "Transformer",
        "Float",
        "Integer",
        "PowerOfTwo",
    )


LABELS = dict.fromkeys(("formats.element_size", "formats.cache_size"), "name")  # of a sentence


@cache
def argument_names(name: str) -> list[str]:
    """The arguments of a function that may be given anything."""
    free = {LABELS.get(name), "on_progress"}  # what a caller's own function raises is the caller's
    return [each for each in usual_arguments(name) if each not in free]


def usual_arguments(name: str) -> dict[str, Any]:
    """A value for each argument of a function, in its range where its annotation tells one."""
    values = IN_SIMULATION if name.startswith("simulation.") else {}
    values = values | NETWORKS.get(name.split(".")[0], {})
    return dict(_usual(*declared(name), USUAL | values))


@cache
def declared(name: str) -> tuple[inspect.Signature, dict[str, Any]]:
    """The arguments of a function, and their annotations."""
    function = functions()[name]
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError:  # of what a module imports for type checkers alone
        hints = {}
    return inspect.signature(function), hints


def _usual(
    signature: inspect.Signature, hints: dict[str, Any], usual: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in usual:
            yield name, usual[name]
        elif parameter.default is not parameter.empty:
            yield name, parameter.default
        elif get_origin(hints.get(name)) is Annotated:
            unit, *more = get_args(hints[name])[1:]
            allowed = next((each for each in more if isinstance(each, Range)), None)
            number = 1.0 if allowed is None or allowed.holds(1.0, 1.0) else 2.0
            yield name, quantity(number, unit)
        else:
            yield name, 1
