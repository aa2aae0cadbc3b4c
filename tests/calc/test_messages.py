"""One function says what a message takes, at every door, and of which links its curve is."""

from __future__ import annotations

import json
import random
from itertools import product

import pytest

from calc import communication, curves, machines, plan, software
from calc.catalog.machines import NotMeasured
from calc.core.errors import InputError
from tests.calc.command import Command

PLACES = ("h100", "l40s", "rtx-pro-6000", "mi300x", "tpu-v6e", "a100", "gb200")


def test_every_sum_of_a_plan_is_what_the_one_function_says() -> None:
    """Parts of drawn plans over how often slices add up; among 4 L40S as in the command below."""
    draws = random.Random(6)
    for machine in PLACES:
        devices, batch = draws.choice((2, 4)), draws.choice((1, 16, 64))
        made = plan("llama-3-8b", machine, batch=batch, prompt=512, generated=64, devices=devices)
        assert made.expected is not None
        assert made.expected.writing is not None
        size = f"{2 * batch * 4096} byte"
        asked = "all_reduce", size, devices, made.machine, made.software
        taken = made.expected.writing["tensor"].m_as("s")
        assert taken == pytest.approx(64 * communication.time(*asked).needed.m_as("s")), machine
        assert communication.seconds(asked[0], 2 * batch * 4096, *asked[2:]) * 64 == pytest.approx(
            taken
        )


def test_a_command_says_what_a_plan_takes(command: Command) -> None:
    """524 MB over four L40S by PCIe: 211 ms, not the 34 of a switch, whose curve it never has."""
    answer = json.loads(command.prints("collective all-reduce 524MB l40s --devices 4 --json"))
    assert answer["expected"]["value"] == pytest.approx(0.211, rel=0.01)
    assert {curve["machine"] for curve in answer["curves"]} == {"l40s-8"}
    text = command.prints("collective all-reduce 524MB l40s --devices 4")
    assert "by vLLM 0.22.0" in text
    words = "all-reduce 64kB h100"
    of_engine = json.loads(command.prints(f"collective {words} --software vllm --json"))
    assert of_engine["curves"][0]["software"] == "vLLM 0.24.0"
    assert "vLLM 0.24.0 takes 6.371" in command.prints(f"collective {words}")
    explained = command.prints(f"collective {words} --explain")
    assert "Curves:" in explained
    assert "Assumed:" in explained


def test_no_curve_is_of_links_of_another_kind() -> None:
    """A switch is its vendor's, and PCIe, a torus and a mesh are none."""
    for name, operation in product(machines.names(), curves.OPERATIONS):
        machine = machines.get(name)
        if machine.domain == 1:
            continue
        try:
            collective = communication.time(operation, "1 MB", machine.domain, machine)
        except InputError:  # of a domain that a slice or an operation does not have
            continue
        if collective.expected is None:
            assert "links of its kind" in collective.missing
        for curve in collective.measured:
            measured_on = machines.get(curve.machine)
            assert measured_on.fabric == machine.fabric, (name, curve.name)
            if machine.fabric == "switch":
                names = {one.device.name.split()[0] for one in (measured_on, machine)}
                assert names == {"NVIDIA"}, (name, curve.name)


def test_a_torus_takes_published_bandwidths_and_its_hops() -> None:
    """The hops on 4 × 4 go to the farthest along both axes, there and back, a microsecond each."""
    v5e = machines.get("tpu-v5e")
    collective = communication.time("all_reduce", "1 MB", 16, v5e)
    ways = 2 if v5e.wraparound else 1
    hops = 2 * 2 * (4 // ways)
    assert (collective.needed - collective.lower).m_as("us") == pytest.approx(hops)
    assert collective.measured == ()
    assert collective.interval is None
    assert "1 µs a hop" in collective.stands_on
    with pytest.raises(NotMeasured, match="links of its kind, AWS's switch"):
        assert communication.time("all_reduce", "1 MB", 8, "trn3").needed


@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        ("aws-p5", "NVIDIA DGX H100 over InfiniBand or RoCE, not EFA"),
        ("gcp-a3-mega", "NVIDIA DGX A100 40 GB over InfiniBand or RoCE, not GPUDirect-TCPXO"),
        ("azure-nd-h100-v5", "as on NVIDIA DGX H100 by"),
    ],
)
def test_a_curve_of_another_network_is_said_to_be(machine: str, sentence: str) -> None:
    collective = communication.time("all_reduce", "1 GB", 16, machine)
    assert sentence in collective.stands_on
    inside = communication.time("all_reduce", "1 GB", 8, machine)
    assert "over" not in inside.stands_on


def test_sums_of_engines_are_never_faster_than_bounds() -> None:
    for machine, devices, key in product(PLACES, (2, 4, 8), ("vllm", "sglang", "tensorrt-llm")):
        for size in ("256 byte", "1 MB", "1 GB"):
            try:
                collective = communication.time(
                    "all_reduce", size, devices, machine, software.get(key)
                )
            except InputError:
                continue
            if collective.expected is not None:
                assert collective.expected >= collective.lower


def test_another_count_over_pcie_is_that_of_the_nearest_count() -> None:
    """Six L40S send 5 / 3 of what two do over two links, 10 / 6 · 4 / 7 of eight's."""
    six, eight = (communication.time("all_reduce", "1 GB", n, "l40s") for n in (6, 8))
    assert [curve.devices for curve in six.measured] == [8]
    share = (six.needed / eight.needed).m_as("")
    assert share == pytest.approx((5 / 6) / (7 / 8), rel=0.01)
