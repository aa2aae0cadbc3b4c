"""Live figures: what a page is told of each model, against the laws themselves."""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, strategies as some

from calc import (
    Batch,
    Job,
    Layout,
    communication,
    cost,
    curves,
    hardware,
    links,
    machines,
    quantity,
    queueing,
    roofline,
    scaling,
    step,
    training,
)
from calc.commands import main
from calc.core.errors import InputError
from calc.derivations.cost_and_carbon import RentOrBuy, RunPrice
from calc.derivations.links_examples import FourLinks
from calc.derivations.roofline_chapter import MeasuredRoofline
from calc.derivations.service_under_load import PromptQueue
from calc.derivations.training_at_scale import Failures, ShardedStates
from figures import live
from figures.live import prompt
from figures.live.model import Amount, Choice, Count, Input

ODD = ["", "x", "2 GB GB", "nan", "inf", "-1", "0", "1e999", "3 furlong", "10**10**10", "é"]


def answered(name: str, **inputs: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(live.answer(name, json.dumps(inputs)))
    return answer


def texts(each: Input) -> some.SearchStrategy[str]:
    """Return texts that a reader may type into a field: within its range, or anything."""
    if isinstance(each, Choice):
        return some.sampled_from(each.words)
    if isinstance(each, Count):
        most = min(each.most, each.least * 4096)
        return some.integers(each.least, most).map(str)
    low, high = max(each.least, 1e-9), each.most
    powers = some.floats(math.log10(low), math.log10(high))
    return powers.map(lambda power: f"{10**power:.4g} {each.unit}".strip())


@pytest.mark.parametrize("name", live.MODELS)
def test_the_defaults_of_a_model_give_rows_and_facts(name: str) -> None:
    answer = answered(name)
    assert answer["rows"], answer
    assert all(math.isfinite(y) for *_, y in answer["rows"])
    assert all(answer["facts"].values())
    description = json.loads(live.describe(name))
    assert [each["name"] for each in description["inputs"]] == list(live.get(name).defaults())


@pytest.mark.parametrize("name", live.MODELS)
def test_the_program_and_the_command_run_and_print(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = answered(name)
    exec(answer["python"], {})
    assert any(sign.isdigit() for sign in capsys.readouterr().out)
    # The search of layouts takes seconds, and has tests of its own.
    if answer["command"] and "plan-training" not in answer["command"]:
        assert main(shlex.split(answer["command"])[1:]) == 0
        assert any(sign.isdigit() for sign in capsys.readouterr().out)


@pytest.mark.parametrize("name", live.MODELS)
@given(data=some.data())
def test_any_input_gives_rows_or_a_sentence(name: str, data: some.DataObject) -> None:
    fields = live.get(name).inputs
    state = {each.name: data.draw(texts(each) | some.sampled_from(ODD)) for each in fields}
    answer = answered(name, **state)
    if "errors" in answer:
        assert answer["errors"].keys() <= {"", *state}
        assert all(0 < len(text) < 600 for text in answer["errors"].values())
        assert not any("Traceback" in text for text in answer["errors"].values())
    else:
        assert all(math.isfinite(y) for *_, y in answer["rows"])


@given(intensity=some.floats(1e-2, 1e5), device=some.sampled_from(["h100", "a100", "mi300x"]))
def test_rows_of_the_roofline_are_its_law(intensity: float, device: str) -> None:
    answer = answered("roofline", device=device, intensity=repr(intensity))
    entry, machine = hardware.get(device), machines.get(device)
    roofs = {
        entry.name: (entry.peak("bf16"), entry.memory_bandwidth),
        "what kernels reached": (machine.reached("gemm", "bf16"), machine.memory_reached),
    }
    assert {name for name, *_ in answer["rows"]} == set(roofs)
    for name, x, y in answer["rows"]:
        assert y == roofline.attainable(*roofs[name], f"{x!r} FLOP/byte").m_as("TFLOP/s")


def test_figures_open_with_the_measured_dots_of_the_book() -> None:
    dots = [tuple(dot[1:]) for dot in answered("roofline")["measured"]]
    assert dots == list(MeasuredRoofline.dots)
    assert answered("roofline", device="h200")["measured"] == []  # of its own nobody measured any
    measured = answered("all-reduce")["measured"]
    curve = curves.get("allreduce-8xh100-dgxc")
    assert {(x, y) for _, x, y in measured} >= {
        (size, quantity(time, "s").m_as("us"))
        for size, time in zip(curve.sizes, curve.times, strict=True)
        if 1e3 <= size <= 1e10
    }
    assert answered("all-reduce", devices="4")["measured"] == []


@pytest.mark.parametrize("name", ["decode", "service", "training", "all-reduce"])
def test_a_band_is_around_what_is_expected(name: str) -> None:
    answer = answered(name)
    assert answer["bands"]
    # Of the line itself, in its unit: short arrays are where sources differ most.
    least = min(each.low for each in curves.spreads()) if name == "all-reduce" else 0.3
    for line, outline in answer["bands"]:
        drawn = [tuple(row[1:]) for row in answer["rows"] if row[0] == line]
        half = len(outline) // 2
        lows, highs = outline[:half], outline[half:][::-1]
        for low, (x, y), high in zip(lows, drawn, highs, strict=True):
            along = 0 if name == "decode" else 1  # there time is across
            assert low[along] < (x, y)[along] < high[along]
            assert low[along] / (x, y)[along] > 0.999 * least


def test_a_rate_takes_devices_by_what_its_tokens_cost() -> None:
    """In whole groups, at the price of the cheapest dot: 300 requests a second of 200 tokens."""
    state = {"rate": "300 request/s", "machine": "dgx-h100", "other": "dgx-h100"}
    answer = answered("service", model="llama-3-1-70b", **state)
    [(_, _, paid)] = answer["dots"]
    told = answer["facts"]["NVIDIA DGX H100"]
    [(group, devices)] = re.findall(r"on (\d+) devices, .* take (\d+) of them", told)
    needed = 300 * 200 * paid / 1e6 * 3600 / 3  # at 3 USD an hour for a device
    assert int(group) > 1
    assert needed <= int(devices) < needed + int(group)


def test_a_run_is_drawn_by_its_devices() -> None:
    answer = answered("training")
    assert answer["dots"][0][1] == 1024
    job = Job.of("llama-2-7b", "dgx-h100", Layout(data=256, microbatches=4, sharding=1))
    expected = step(job, Batch(4096, 1, "selective")).expected
    assert expected is not None
    hours = {x: y for line, x, y in answer["rows"] if line == "expected"}
    assert hours[256] == pytest.approx(140e9 / (1024 * 4096) * expected.m_as("hour"))


@given(serial=some.floats(0, 1), coherency=some.floats(0, 1), processors=some.integers(1, 10**6))
def test_rows_of_scaling_are_its_laws(serial: float, coherency: float, processors: int) -> None:
    state = {"serial": repr(serial), "coherency": repr(coherency), "processors": str(processors)}
    laws = {
        "Amdahl": lambda n: scaling.amdahl(serial, n),
        "Gustafson": lambda n: scaling.gustafson(serial, n),
        "universal": lambda n: scaling.universal_scalability(n, serial, coherency),
    }
    answer = answered("scaling", **state)
    assert {name for name, *_ in answer["rows"]} == set(laws)
    for name, x, y in answer["rows"]:
        assert y == laws[name](x).m_as("")


@given(busy=some.floats(0, 0.99), servers=some.integers(1, 200))
def test_rows_of_the_queue_are_its_laws(busy: float, servers: int) -> None:
    for name, x, y in answered("queue", utilization=repr(busy), servers=str(servers))["rows"]:
        if name == "mean":
            law = queueing.waiting_time("1 s", x, servers)
        else:
            law = queueing.waiting_tail("1 s", x, int(name.split()[0]), 0.01)
        assert y == law.m_as("s")


def test_rows_of_a_link_of_checkpoints_and_of_rent_are_their_laws() -> None:
    for _, x, y in answered("link", latency="5 us")["rows"]:
        law = links.effective_bandwidth(f"{x!r} byte", "50 GB/s", "5 us")
        assert y == law.m_as("GB/s")
    failures = training.time_between_failures("5 year", 16384)
    for name, x, y in answered("checkpoints", between="5 year", restart="5 min")["rows"]:
        law = training.goodput(f"{x!r} min", name.removeprefix("saved in "), "5 min", failures)
        assert y == law.m_as("%")
    paid = answered("cost", electricity="0.1 USD/kWh", pue="1.3", rent="3 USD/h")["rows"]
    for name, x, y in paid:
        kept = name.removeprefix("kept for ")
        owned = 3.0
        if name != "rented":
            price = cost.price_of_ownership("40000 USD", kept, "1.275 kW", "0.1 USD/kWh", 1.3)
            owned = price.m_as("USD/hour") / x
        assert y == pytest.approx(owned)


def test_figures_open_with_what_the_book_draws() -> None:
    """The inputs of the book's example, and the places that its figure marks."""
    rent = RentOrBuy
    marked = {f"{share:.0%}" for _, share, _ in answered("cost")["dots"]}
    prices = (
        cost.price_of_ownership(rent.purchase, life, RunPrice.power, rent.electricity)
        for life in rent.lifetimes
    )
    evens = (cost.break_even_utilization(price, rent.rent).m_as("") for price in prices)
    assert marked == {f"{even:.0%}" for even in evens}
    saved = [tuple(dot[1:]) for dot in answered("checkpoints")["dots"]]
    best = [
        (Failures.interval.m_as("min"), Failures.goodput.m_as("%")),
        (Failures.slow_interval.m_as("min"), Failures.slow_goodput.m_as("%")),
    ]
    assert saved == [pytest.approx(state, rel=1e-3) for state in best]
    tails = {line for line, *_ in answered("queue")["rows"]} - {"mean"}
    assert {int(line.split()[0]) for line in tails} == set(PromptQueue.servers)
    assert str(FourLinks.rows[2][4]) in answered("link")["facts"]["Half of the bandwidth from"]
    held = sum(y for _, devices, y in answered("memory")["rows"] if devices == "1")
    parts = training.recipe("adam-mixed").bytes_per_parameter
    states = training.model_memory(ShardedStates.model.parameters, parts)
    assert held == pytest.approx(states.m_as("GB"))


@pytest.mark.parametrize(("machine", "devices"), [("dgx-h100", 8), ("tpu-v5p-pod", 64)])
def test_rows_of_a_collective_are_its_times(machine: str, devices: int) -> None:
    for name, x, y in answered("all-reduce", machine=machine, devices=str(devices))["rows"]:
        time = communication.time("all_reduce", f"{x!r} byte", devices, machine)
        law = time.lower if name == "lower bound" else time.needed
        assert y == law.m_as("us")


@pytest.mark.parametrize(
    ("name", "field", "text", "sentence"),
    [
        ("roofline", "intensity", "3 GB", "in FLOP/byte or the like"),
        ("roofline", "m", "2.5", "a whole number from 1 to 10\u202f000\u202f000"),
        ("roofline", "device", "h1000", "is one of h100, h800"),
        ("all-reduce", "size", "0 GB", "from 1 byte to 10 TB"),
        ("scaling", "serial", "twice", "twice"),
        ("training", "sequences", "1000", "a multiple of copies · microbatch, 1024 · 1; got 1000"),
    ],
)
def test_a_refusal_stands_beside_its_field(name: str, field: str, text: str, sentence: str) -> None:
    errors = answered(name, **{field: text})["errors"]
    assert sentence in errors[field]


def test_what_the_library_refuses_of_all_together_is_said() -> None:
    assert "no dense peak" in answered("roofline", device="a100", dtype="fp8")["errors"][""]
    too_large = answered("decode", model="llama-3-405b")["errors"][""]
    assert "not one sequence of 2048 tokens fits" in too_large


def test_a_name_that_is_no_model_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean roofline"):
        live.describe("rooflin")


def test_live_figures_need_no_numpy() -> None:
    """A browser has none of it: no package registry carries numpy for it."""
    program = (
        "import sys; sys.modules['numpy'] = None; import json; from figures import live;"
        "print([name for name in live.MODELS if 'rows' not in json.loads(live.answer(name, '{}'))])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == "[]", run.stderr


@pytest.mark.parametrize(
    ("source", "text", "error"),
    [
        ("1 +", "", "SyntaxError: invalid syntax"),
        ("x = 2\nx * 3", "6\n", ""),
        ("print(1)\n1 / 0", "1\n", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "", "Nothing ends here"),
        ("import os; os._exit(1)", "", "Nothing ends here"),
        ("raise KeyboardInterrupt", "", "KeyboardInterrupt"),
        ("plot([1], [1, 2])", "", "plot() needs as many numbers upward as across"),
        ("plot([], [])", "", "and one at least; got 0 and 0"),
        (
            "raise ModuleNotFoundError('No module named http', name='http.client')",
            "",
            "No module named http: what needs a terminal, processes or a network is left out",
        ),
        ("import nothing_of_the_sort", "", "No module named 'nothing_of_the_sort'"),
        ("help(quantity)", prompt.calc.quantity.__doc__.split("\n")[0], ""),
        ("help()", "help(thing), as in help(calc.plan)\n", ""),
    ],
)
def test_the_prompt_prints_and_says_what_went_wrong(source: str, text: str, error: str) -> None:
    answer = json.loads(prompt.run(source))
    assert answer["text"] == text or (text and answer["text"].startswith(text))
    assert error in answer["error"]
    assert bool(error) == bool(answer["error"])


def test_the_prompt_keeps_plots_in_the_unit_of_the_first_number() -> None:
    source = "plot([quantity('1 kB'), quantity('2 MB')], [1, 2], across='Size', log=True)"
    (plot,) = json.loads(prompt.run(source))["plots"]
    assert plot["rows"] == [["y", 1, 1], ["y", 2000, 2]]
    assert plot["drawing"]["x"] == {"label": "Size", "unit": "kB", "log": True}


def test_fields_have_labels_of_their_own() -> None:
    for name in live.MODELS:
        fields = live.get(name).inputs
        assert len({each.label for each in fields}) == len(fields)
        for each in fields:
            if not (isinstance(each, Amount | Count) and each.optional):
                each.read(each.default)
