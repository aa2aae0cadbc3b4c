"""The stored measurement goes wherever a device goes: into every law, planner and figure."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import calc
import figures
from calc import device_memory, hardware, inference, layouts, models, rollouts
from calc.core.records import DATA
from calc.measure.kernel_suite import product
from calc.planning.plan_nouns import Draft, Limits, Load, Server, Training
from calc.published import engine_logs
from tests.calc.references import expected
from tests.calc.test_law import LAWS, arguments_of, assert_is, valid
from tests.rows import each_row

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds

(CPU,) = hardware.load(DATA / "measured" / "cpu.toml").values()
RATES = {"FLOP/s": CPU.peak("fp32"), "byte/s": CPU.memory_bandwidth}
OF_RATES = [
    name
    for name, law in LAWS.items()
    if RATES.keys() & {x.unit for x in arguments_of(law).values()}
]


@pytest.mark.parametrize("name", OF_RATES)
def test_every_law_of_a_rate_takes_it(name: str) -> None:
    units = {each: argument.unit for each, argument in arguments_of(LAWS[name]).items()}
    quantities = {
        each: RATES.get(units[each], drawn) for each, drawn in valid(LAWS[name], seed=1).items()
    }
    result = LAWS[name](**quantities)
    arguments = {each: quantities[each].m_as(units[each]) for each in quantities}
    assert_is(name, getattr(result, "magnitude", result), arguments, expected(name, arguments))


DEVICE = re.compile(r"\b(Accelerator|Device)\b")  # of calc.hardware, or as a law sees it


BY_ENGINES = device_memory.fit, engine_logs.explain  # whose rules are none of a CPU


def functions_of_devices() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function of calc and of the figures that takes accelerators."""
    for package in (calc, figures):
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            if not DEVICE.search(path.read_text(encoding="utf-8")):
                continue
            parts = path.relative_to(Path(package.__path__[0]).parent).with_suffix("").parts
            module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
            for name, function in inspect.getmembers(module, inspect.isfunction):
                parameters = inspect.signature(function).parameters.values()
                if (
                    function.__module__ == module.__name__
                    and not name.startswith("_")
                    and function not in BY_ENGINES
                    and any(DEVICE.search(str(each.annotation)) for each in parameters)
                ):
                    yield f"{module.__name__}.{name}", function


@cache
def functions() -> dict[str, Callable[..., Any]]:
    """Return all functions of devices; the figures that are imported for it compute for seconds."""
    return dict(functions_of_devices())


LINK = layouts.Link("10 GB/s")
GIVEN = {  # an argument of each name, where it has no default
    "model": models.get("llama-3-8b"),
    "context": 128,
    "length": 128,
    "prompt": 128,
    "generated": 16,
    "average": 64,
    "limit": 128,
    "tokens": 128,
    "sequences": 1,
    "layout": layouts.Layout(),
    "inner": LINK,
    "outer": LINK,
    "kernel": product("product", "fp32", 32, 32, 32),
    "kernels": [lambda: product("product", "fp32", 32, 32, 32)],
    "dtype": "fp32",
    "form": "bf16",
    "lengths": rollouts.Lengths(16, limit=64),
    "answers": 8,
    "operation": "broadcast",
    "size": "1 MB",
    "devices": 1,
    "models": "llama-3-8b",
    "draft": Draft("llama-3.2-1b", acceptance=0.8),
    "server": Server(),
    "load": Load("1 request/hour", prompt=16, generated=16),
    "limits": Limits("1 hour", "1 hour"),
    "run": Training(128, sequences=1, length=128, dtype="fp32"),
    "ttft": "1 hour",
    "tpot": "1 hour",
    "price": "1 USD/hour",
    "points": [f"concurrency={n},ttft={n} s,tpot={n} s" for n in (1, 2, 4)],
}

ANSWERS: dict[str, Any] = {"prompt": 16, "generated": 16}
LIMITS = {"ttft": "1 hour", "tpot": "1 hour"}
GIVEN_TO = {  # what a function may be given instead
    "calc.planning.comparing.compare.compare": {"machines": CPU},
    "calc.planning.service.asked.draft_of": {"lengths": ANSWERS | {"batch": 1}},
    "calc.planning.service.break_even.break_even": {"api": "groq-gpt-oss-20b"} | LIMITS,
    "calc.planning.service.observed.observe": ANSWERS,
    "calc.planning.service.several.plan_services": {"machines": [CPU]},
    "calc.steps.throughput.of": {"model": "resnet-50", "dtype": "fp32"},
    "calc.planning.training.training_planner.plan_training": {
        "model": models.from_shape(2, 64, 4, context=128, vocabulary=512, feed_forward_width=256),
        "devices": 1,
    },
}


@pytest.mark.slow
def test_every_function_of_a_device_takes_it() -> None:
    with each_row() as row:
        for name in functions():
            with row(name):
                assert_takes_it(name)


def assert_takes_it(name: str) -> None:
    from matplotlib.figure import Figure

    arguments: dict[str, Any] = {}
    for each in inspect.signature(functions()[name]).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            continue
        if "tuple[Accelerator, str]" in str(each.annotation):
            arguments[each.name] = [(CPU, "fp32"), (hardware.H100, "fp16")]
        elif "[Accelerator]" in str(each.annotation):
            arguments[each.name] = [CPU, hardware.H100]
        elif DEVICE.search(str(each.annotation)):
            arguments[each.name] = CPU
        elif each.default is each.empty or each.name in ("inner", "outer"):  # of a device alone
            assert each.name in GIVEN, f"say in GIVEN what {name}() may be given for {each.name}"
            arguments[each.name] = GIVEN[each.name]
    answer = functions()[name](**arguments | GIVEN_TO.get(name, {}))
    assert answer is not None  # and one device alone sends nothing, in no time
    if isinstance(answer, Figure):
        answer.draw_without_rendering()
        labels = {text.get_text() for axes in answer.axes for text in axes.texts}
        assert any("EPYC" in each for each in labels)
    if name.endswith(".alt"):
        assert "EPYC" in answer


def test_they_are_found() -> None:
    """Names that would be missed if the search went wrong."""
    assert {
        *("calc.steps.inference.prefill", "calc.steps.inference.frontier"),
        *("calc.measure.validation.predicted_time", "calc.measure.picture.roofline_lines"),
        *("figures.roofline.draw", "figures.devices.alt", "figures.measured_roofline.draw"),
    } <= functions().keys()


def test_a_step_of_decoding_on_it_is_bound_by_its_own_memory() -> None:
    step = inference.decode(GIVEN["model"], CPU, 128)
    assert step.bound == "memory"
    # 8.03 billion parameters less the embedding that is looked up, in two bytes, and the cache.
    read = 2 * (8_030_261_248 - 128_256 * 4096 - 266_240) + 128 * 2**17
    assert step.lower.m_as("s") == pytest.approx(read / CPU.memory_bandwidth.m_as("byte/s"))
