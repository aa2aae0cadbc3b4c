"""Power that devices were measured to draw, as `calc watts` and `calc collective` print it."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

import pytest

import calc
from benchmarks import power as fit
from calc import constants, energy, hardware, machines, quantity
from calc.published import power_rows
from calc.steps import device_power
from tests.calc.command import Command


def test_every_measured_power_is_read_by_device_and_load(command: Command) -> None:
    """ML.ENERGY's H100s: 72 loads, none above the design power by more than its meter is off."""
    answer = json.loads(command.prints("watts h100 --json"))
    assert len(answer["rows"]) == 72
    assert all(0.3 < row["share_of_design_power"] < 1.02 for row in answer["rows"])
    eight = json.loads(command.prints("watts h100 --model llama-3-1-8b --json"))["rows"]
    assert [row["model"] for row in eight] == ["meta-llama/Llama-3.1-8B-Instruct"] * len(eight)
    # Its own two figures agree: what the GPUs drew over their tokens a second is their J/token.
    for draw in power_rows.draws():
        if draw.of == "devices":
            measured = draw.row.measured
            per_token = measured["avg_gpu_power_total"] / measured["output_tokens_per_s"]
            assert per_token == pytest.approx(measured["gpu_energy_per_output_token"], rel=1e-3)


def test_of_a_device_that_nobody_measured_there_is_a_marked_estimate(command: Command) -> None:
    text = command.prints("watts a100")
    assert "0 loads measured: an estimate is 171.4 W to 394.6 W" in text
    assert "an unpublished power" in command.prints("watts apple-m3-ultra")


def test_a_collective_says_whose_curve_it_took(command: Command) -> None:
    """nccl-tests printed 373 µs for 16 MB on 64 H100s, and the bound is of two ports' rings."""
    answer = json.loads(command.prints("collective all-reduce 16MB dgx-h100 --devices 64 --json"))
    least, most = (answer["interval"][end]["value"] for end in ("low", "high"))
    assert answer["lower"]["value"] * 1e6 < least * 1e6 < 373 < most * 1e6
    assert [curve["machine"] for curve in answer["curves"]] == ["dgx-h100"]
    text = " ".join(
        command.prints("collective all-reduce 16MB aws-p5 --devices 64 --explain").split()
    )
    assert (
        "NVIDIA DGX H100 over InfiniBand or RoCE, not EFA by nccl-tests, in place, scaled" in text
    )
    assert "a collective is one of all_gather" in command.refuses(
        "collective", "all-red", "1 GB", "h100"
    )


def test_the_coefficients_of_power_are_the_fit_of_all_metered_loads() -> None:
    """The range is that of models and of devices that were left out."""
    loads = fit.loads(power_rows.draws())
    assert len(loads) == 139
    names = ("at_work", "by_memory", "by_compute")
    stored = [constants.get(f"coefficient_power_{name}").m_as("") for name in names]
    assert stored == pytest.approx(fit.fitted(loads))
    models = fit.left_out(loads, lambda load: load.model)
    devices = fit.left_out(loads, lambda load: load.device)
    pairs = [fit.ends(factor for _, factor in factors) for factors in (models, devices)]
    low, high = (constants.get(f"coefficient_power_{end}").m_as("") for end in ("low", "high"))
    assert low == pytest.approx(min(pair[0] for pair in pairs), abs=0.005)
    assert high == pytest.approx(max(pair[1] for pair in pairs), abs=0.005)
    off = sorted(abs(factor - 1) for _, factor in models)
    assert median(off) < 0.11
    assert abs(median(factor for _, factor in models) - 1) < 0.02, "signed"
    by_design = [abs(load.share * load.time - 1) for load, _ in models]
    by_work = [abs(factor * load.time - 1) for load, factor in models]
    assert median(by_work) < 0.14 < median(by_design), "of the energy of a token"


def test_no_metered_load_draws_less_than_an_idle_device_or_much_more_than_its_design() -> None:
    for draw in power_rows.draws():
        if draw.of == power_rows.DEVICES:
            idle = device_power.idle(machines.of(draw.device.key))
            assert idle is not None
            assert 2 * idle.device < draw.power < 1.02 * draw.device.tdp
            assert draw.expected is not None
            assert draw.expected <= draw.device.tdp


def test_servers_that_were_metered_draw_what_is_said_of_them() -> None:
    """Eight H200s under MLPerf in a server that saves power are in the range, below the design."""
    [one] = {draw.device.key for draw in power_rows.draws() if draw.of == "whole machine"}
    assert one == "h200"
    machine = machines.get("dgx-h200")
    expected = device_power.at_work(machine, 0.3, 0.3)
    assert expected is not None
    low, high = device_power.between(machine, expected)
    metered = [draw.power for draw in power_rows.draws() if draw.of == "whole machine"]
    assert all(low.total < watts < high.total for watts in metered)
    most = device_power.most(machine)
    assert most is not None
    assert high.total <= most.total
    off = median((watts / expected.total).m_as("") for watts in metered)
    assert 0.7 < off < 1 < (most.total / expected.total).m_as("")


@pytest.mark.parametrize("users", [None, 32])
def test_energies_of_a_plan_lie_between_an_idle_device_and_the_design(users: int | None) -> None:
    asked: dict[str, Any] = {"batch": 32} if users is None else {"users": users}
    made = calc.plan("llama-3-1-8b", "h100", prompt=1000, generated=200, devices=1, **asked)
    rates, energies = made.throughput, made.device_energy_per_token
    assert energies is not None
    assert made.expected is not None
    assert energies.lower.m_as("J/token") == pytest.approx(
        45 / 400 * 700 / rates.upper.m_as("token/s")
    )
    assert energies.upper.m_as("J/token") == pytest.approx(700 / rates.lower.m_as("token/s"))
    for name in ("device_energy_per_token", "energy_per_token"):
        around, bounds = made.around(name), made.result(name)
        assert around is not None
        ends = [bounds.lower, *around.ends]
        assert ends == sorted(ends)
        assert around.low < around.expected < around.high
    results, rate = made.expected.results, made.expected.throughput
    drawn, with_rest = (
        (energy * rate).m_as("W")
        for energy in (results["device_energy_per_token"], results["energy_per_token"])
        if energy is not None
    )
    assert 0.59 * 700 < drawn < 700
    assert with_rest - drawn == pytest.approx(575 * 2.8 / 4.6)


def test_a_service_that_nobody_asks_draws_as_idle_devices_and_a_full_one_as_working_ones() -> None:
    limits = calc.Limits("2 s", "100 ms")
    few, many = (
        calc.plan_service("llama-3-1-8b", "h100", calc.Load(rate, 1000, 200), limits, pools="mixed")
        for rate in (0.01, 8)
    )
    assert few.power is not None
    assert many.power is not None
    assert 78.75 < few.power.device.m_as("W") < 100
    assert 0.59 * 700 < many.power.device.m_as("W") <= 700
    assert {"device_energy_per_token", "energy_per_token"} <= few.around.keys()


def test_energy_of_training_is_of_devices_and_of_all() -> None:
    made = calc.plan_training(
        "llama-3-8b", "dgx-h100", calc.Training("1T", length=8192, sequences=64), devices=64
    )
    assert made.power is not None
    assert made.device_energy is not None
    assert made.energy is not None
    assert 0.9 * 700 < made.power.device.m_as("W") <= 700
    alone = made.device_energy / made.device_time / made.pue
    assert alone.m_as("W") == pytest.approx(made.power.device.m_as("W"))
    for which, value in (("device", made.device_energy), ("total", made.energy)):
        around = made.around_energy(value, which)
        assert around is not None
        assert around.bound is not None
        assert around.bound < around.low < value < around.high


SWEEP = {  # drafts: accepted share, and tokens a second and watts (p95) under 600, 500 and 400 W
    0: (0.0, (74.8, 537), (74.5, 509), (71.2, 407)),
    1: (0.885, (115.7, 554), (114.9, 509), (108.4, 408)),
    2: (0.795, (144.4, 602), (139.8, 508), (129.3, 407)),
    3: (0.73, (156.0, 603), (152.9, 509), (133.8, 412)),
    4: (0.65, (162.1, 602), (153.6, 511), (132.8, 411)),
    5: (0.595, (159.7, 601), (148.8, 503), (127.5, 409)),
    6: (0.535, (153.2, 601), (142.7, 510), (123.3, 408)),
}
"""Qwen3.8 27B in four bits on an RTX 5090, means of 27 runs [qwen38-mtp]."""
WEIGHTS, HEAD = 17e9, 1e9  # bytes that a pass and each draft read, by the memory that they take


def test_a_cap_slows_what_memory_does_not_bind_as_it_was_measured() -> None:
    """Power is that without a cap: of drafts from two on the 600 W that they were held to."""
    card = hardware.get("rtx-5090")
    fixed = constants.get("coefficient_power_fixed") * card.tdp
    speeds, joules = [], []
    for drafts, (accepted, (rate, watts), *capped) in SWEEP.items():
        moved = rate / (1 + drafts * accepted) * (WEIGHTS + drafts * HEAD)
        use = moved / card.memory_bandwidth.m_as("byte/s")
        for cap, (measured, drawn) in zip((500, 400), capped, strict=True):
            clock = energy.clock_at_cap(quantity(watts, "W") - fixed, quantity(cap, "W") - fixed)
            slower = energy.slowdown_at_clock(use, clock).m_as("")
            speeds.append(measured * slower / rate - 1)
            joules.append(drawn / measured / (min(cap, watts) * slower / rate) - 1)
    assert len(speeds) == 14
    assert median(map(abs, speeds)) < 0.021
    assert max(map(abs, speeds)) < 0.11
    assert -0.02 < median(speeds) < 0, "signed: drafts at 400 W are slower than expected"
    assert 0 < median(joules) < 0.04
    assert abs(speeds[1]) < 0.005, "to which the fixed share is fitted: no drafts, 400 W"


def test_a_plan_under_a_cap_takes_longer_where_compute_binds_and_less_energy() -> None:
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "devices": 1, "batch": 64}
    free, capped = (
        calc.plan("llama-3-1-8b", "h100", **asked, power_cap=cap) for cap in (None, "400 W")
    )
    assert capped.time_per_token == free.time_per_token, "bounds hold under any cap"
    prompt, token, energy_of_one, rate = (
        float((now / before).m_as(""))
        for name in (*TIMES_OF_PASSES, "device_energy_per_token", "throughput")
        if (now := capped.likely(name)) is not None and (before := free.likely(name)) is not None
    )
    assert 1.02 < token < prompt < 1.5
    assert energy_of_one < 1
    drawn = free.likely("device_energy_per_token")
    assert drawn is not None
    assert free.expected is not None
    before_it = (drawn * free.expected.throughput).m_as("W")
    assert before_it * energy_of_one * rate == pytest.approx(400)
    at_most = capped.device_energy_per_token
    assert at_most is not None
    assert (at_most.upper * capped.throughput.lower).m_as("W") == pytest.approx(400)
    assert capped.expected is not None
    assert "power cap" in capped.expected.parts["reading"]


TIMES_OF_PASSES = "time_to_first_token", "time_per_token"


@pytest.mark.parametrize(
    ("device", "cap", "sentence"),
    [
        ("h100", "200 W", "which no lower clock saves"),
        ("h100", "800 W", "at most its 700 W"),
        ("h100", "400", "quantity in W"),
        ("tpu-v5e", "100 W", "is unpublished"),
    ],
)
def test_a_cap_that_cannot_be_is_refused(device: str, cap: str, sentence: str) -> None:
    with pytest.raises(calc.InputError, match=sentence):
        calc.plan("llama-3-1-8b", device, prompt=10, generated=10, power_cap=cap)
