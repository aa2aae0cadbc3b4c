"""Machines: what they answer, what a mistake in their file is told, and whether ours hold."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

import calc
from calc import InputError, hardware, machines, quantity
from calc.catalog.machines import NotMeasured
from calc.core.citations import bibliography
from tests.calc.command import Written
from tests.calc.parts import TABLES, product
from tests.rows import each_row

GOOD = """
[made-up]
name = "Made Up 8"
device = "h100"
domain = 8
fabric = "switch"
kind = "datasheet"
source = "williams2009roofline"
checked = 2024-05-06
bandwidth = { value = 100, unit = "GB/s", direction = "each way" }
ports = { kind = "unpublished", direction = "each way", note = "Nobody was told (asked 2024)." }

[made-up.reached.gemm]
bf16 = { value = 500, unit = "TFLOP/s", source = "williams2009roofline", note = "4096³." }

[sibling]
name = "Made Up 16"
device = "h200"
domain = 16
fabric = "torus"
sides = [4, 4]
rates_of = "made-up"
kind = "datasheet"
source = "williams2009roofline"
checked = 2024-05-06
bandwidth = { value = 100, unit = "GB/s", direction = "each way" }

[sibling.reached.gemm]
fp8 = { value = 900, unit = "TFLOP/s", source = "williams2009roofline" }
"""


def test_a_good_machine(written: Written) -> None:
    machine = machines.load(written(GOOD))["made-up"]
    assert machine.bandwidth == quantity("100 GB/s")
    assert machine.reached("gemm", "BF16") == quantity("500 TFLOP/s")
    assert "Checked 2024-05-06" in calc.source(machine.bandwidth)
    assert not machine.publishes("ports")
    with pytest.raises(InputError, match=r"Made Up 8 has 8 devices, .* take at most 8"):
        machine.ports  # noqa: B018
    assert machine.records["ports"].provenance.note == "Nobody was told (asked 2024)."
    with pytest.raises(InputError, match="Made Up 8 has no power of the whole machine in"):
        machine.power  # noqa: B018


def test_rates_of_another_machine_hold_where_there_are_no_own(written: Written) -> None:
    sibling = machines.load(written(GOOD))["sibling"]
    assert sibling.reached("gemm", "bf16") == quantity("500 TFLOP/s")
    assert sibling.reached("gemm", "fp8") == quantity("900 TFLOP/s")
    assert not machines.load(written(GOOD))["made-up"].has_reached("gemm", "fp8")


OWN_DEVICE = """
[mine]
name = "My accelerator"
year = 2026
kind = "estimate"
source = "my notes"
checked = 2026-11-20
memory_bandwidth = { value = 1.2, unit = "TB/s" }
memory_capacity = { value = 48, unit = "GB" }
on_chip_memory = { kind = "unpublished", note = "Not told by its vendor." }
tdp = { value = 300, unit = "W" }
peak.bf16 = { value = 180, unit = "TFLOP/s" }
"""


def test_a_machine_of_ones_own_stands_in_a_file_beside_its_device(tmp_path: Path) -> None:
    both, joined = tmp_path / "both.toml", GOOD.replace('device = "h100"', 'device = "mine"')
    both.write_text(OWN_DEVICE + joined, encoding="utf-8")
    machine = machines.get(f"{both}:made-up")
    assert machine.device.name == "My accelerator"
    assert machines.get(f"{both}:sibling").device is hardware.get("h200")
    assert machines.get(f"{both}:mine").domain == 1
    assert hardware.get(both).key == "mine"  # the only device there
    assert list(machines.load(both)) == ["made-up", "sibling"]
    assert list(hardware.load(both)) == ["mine"]
    made = calc.plan("llama-3-8b", f"{both}:made-up", prompt=100, generated=10, devices=8)
    vectors = 2 * 4096
    assert made.writing.parts["links"].m_as("s") == pytest.approx(64 * 2 * vectors * 7 / 8 / 100e9)
    collective = calc.communication.time("all_reduce", "1 GB", 8, machine)
    assert collective.lower.m_as("s") == pytest.approx(2 * 7 / 8 * 0.01)
    with pytest.raises(InputError, match="not one machine alone; it holds made-up, sibling: ask"):
        machines.get(both)
    with pytest.raises(
        InputError, match="no machine or device 'other'; it holds mine, made-up, sibling: ask for"
    ):
        machines.get(f"{both}:other")
    both.write_text(GOOD, encoding="utf-8")
    with pytest.raises(InputError, match="not one device alone; it holds no device at all"):
        hardware.get(both)


def test_the_name_of_a_machine_is_refused_with_what_to_write() -> None:
    model = calc.models.get("llama-3-8b")
    for ask in (
        lambda: calc.inference.decode(model, "dgx-h100", 100),  # type: ignore[arg-type]
        lambda: calc.step(calc.Job(model, "dgx-h100"), calc.Batch(100)),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=r"write machines\.get\('dgx-h100'\)$"):
            ask()


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ("domain = 8", "domian = 8", "made-up has an unknown field domian; known are name, dev"),
        ("domain = 8", 'domain = "8"', "made-up must have a domain, int in TOML"),
        ("domain = 8", "domain = 0", "made-up.domain must be a whole number from 1; got 0"),
        ("domain = 8", "domain = 1", "made-up has a domain of 1 and the fabric 'switch'"),
        ('device = "h100"', 'device = "h101"', "there is no device 'h101'"),
        ('fabric = "switch"', 'fabric = "wire"', "made-up.fabric must be one of none, switch,"),
        ("sides = [4, 4]", "sides = [4, 5]", "sibling.sides must multiply to its 16 devices; got"),
        ("sides = [4, 4]\n", "", "its 16 devices; got none"),
        ('"switch"', '"switch"\nsides = [8]', "sides are those of a torus; its fabric is switch"),
        ('unit = "GB/s", dir', 'unit = "GB", dir', "made-up.bandwidth must be positive and meas"),
        ('"GB/s", direction = "each way" }\nports', '"GB/s" }\nports', 'direction = "each way"'),
        ("value = 100", "value = -100", "must be positive and measured in byte/s or its like"),
        ("reached.gemm]\nbf16", "reached.gem]\nbf16", "reached has an unknown kind gem; known are"),
        ("bf16 =", "bf61 =", "made-up.reached.gemm has an unknown name bf61; known are fp64,"),
        ("500, unit", '500, kind = "datasheet", unit', "gemm.bf16 must be of the kind measured"),
        ('rates_of = "made-up"', 'rates_of = "sibling"', "sibling.rates_of must name a machine"),
        ('rates_of = "made-up"', 'rates_of = "other"', "above it, of the file that has rates;"),
    ],
)
def test_a_mistake_is_named(written: Written, right: str, wrong: str, sentence: str) -> None:
    assert right in GOOD
    with pytest.raises(InputError) as refusal:
        machines.load(written(GOOD.replace(right, wrong, 1)))
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_was_not_measured_is_told() -> None:
    with pytest.raises(NotMeasured, match="products in FP4 was not measured on NVIDIA DGX H100"):
        machines.DGX_H100.reached("gemm", "fp4")
    with pytest.raises(InputError, match="one of gemm, lasting, attention, memory, host_link"):
        machines.DGX_H100.reached("gem", "fp4")


def test_a_device_stands_in_its_usual_machine() -> None:
    for key in hardware.names():
        machine = machines.of(hardware.get(key))
        assert machine.device.key == key
    usual = [machines.get(key).device.key for key in machines.names() if machines.get(key).usual]
    assert len(usual) == len(set(usual)), "a device has one usual machine"
    assert machines.get("tpu v5p").key == "tpu-v5p-pod"
    assert machines.get("t4").domain == 1


# --- our own data ---

PUBLISHED = (("bandwidth", "GB/s", 1e-3), ("ports", "Gbit/s", 1e-6), ("power", "kW", 1e-6))


def test_fabrics_ports_and_powers_are_what_their_parts_make() -> None:
    with each_row() as row:
        for key in machines.names():
            with row(key):
                machine, parts = machines.get(key), TABLES["machines"].get(key, {})
                assert (machine.domain > 1) == ("bandwidth" in parts)
                assert machine.domain == product(parts.get("domain", 1))
                for field, unit, rounding in PUBLISHED:
                    assert machine.publishes(field) == (field in parts)
                    if field in parts:
                        value = getattr(machine, field).m_as(unit)
                        assert value == pytest.approx(product(parts[field]), rel=rounding)


def test_what_was_reached_is_below_what_is_published() -> None:
    for key in machines.names():
        machine = machines.get(key)
        for dtype in machine.rates.get("gemm", {}):
            assert 0.4 < machine.reached("gemm", dtype) / machine.device.peak(dtype) < 1, key
        for name in machine.rates.get("memory", {}):
            reached = machine.reached("memory", name) / machine.device.memory_bandwidth
            assert 0.7 < reached < 1, (key, name)
        for name in machine.rates.get("attention", {}):
            assert machine.reached("attention", name) < machine.device.peak("bf16"), key
        for name in machine.rates.get("host_link", {}):
            assert machine.reached("host_link", name) < machine.host_link, key


def test_our_records_hold() -> None:
    for key in machines.names():
        machine = machines.get(key)
        assert machine.name in machine._repr_html_()
        for record in machine.all_records():
            assert record.provenance.source in bibliography(), record.provenance.title
            assert record.provenance.checked > datetime.date(2024, 1, 1)
            reached = "reached" in record.provenance.key
            assert not reached or record.provenance.note, "says under which conditions"
            if record.provenance.kind == "estimate":
                assert record.provenance.note


CLOSE = 1.2  # between the shares of two peaks of one machine, of which both are products
PASSES = 1.25  # between the rates of passes over one memory
BEYOND = 1.02  # of a published rate, which is rounded


def test_rates_of_one_machine_go_together() -> None:
    """Wide formats and narrow reach alike shares of their peaks."""
    with each_row() as row:
        for name in machines.names():
            with row(name):
                machine = machines.get(name)
                shares = {
                    (kind, dtype): (machine.reached(kind, dtype) / machine.device.peak(dtype)).m_as(
                        ""
                    )
                    for kind in ("gemm", "lasting")
                    for dtype in machine.device.dtypes
                    if machine.has_reached(kind, dtype)
                }
                assert all(share < 1 for share in shares.values())
                for (kind, dtype), share in shares.items():
                    if dtype == "fp8" and (kind, "bf16") in shares:
                        assert 1 / CLOSE < share / shares[kind, "bf16"] < CLOSE
                ways = ("read", "write", "copy", "triad")
                passes = [
                    machine.reached("memory", way).m_as("byte/s")
                    for way in ways
                    if machine.has_reached("memory", way)
                ]
                if passes:
                    assert max(passes) <= BEYOND * machine.device.memory_bandwidth.m_as("byte/s")
                    assert max(passes) <= PASSES * min(passes)


GENERATIONS = {"3.0": 8, "4.0": 16, "5.0": 32, "6.0": 64}  # Gbit/s of a lane
FRAMED = {"6.0": 242 / 256}  # of the bits, where a packet's frames take the others


def test_a_link_to_the_host_is_as_fast_as_its_lanes() -> None:
    """Notes name the generation and the lanes, whose bits less encoding make the bandwidth; what
    makes a link of another kind stands in `tests/parts.toml`."""
    tried = 0
    with each_row() as row:
        for name in machines.names():
            machine = machines.get(name)
            link = machine.host_link if machine.publishes("host_link") else None
            origin = None if link is None else link.provenance
            note = "" if origin is None else origin.note or ""
            if link is not None and (lanes := re.match(r"PCIe (\d\.0) x(\d+)", note)):
                with row(name):
                    bits = GENERATIONS[lanes[1]] * int(lanes[2]) * FRAMED.get(lanes[1], 128 / 130)
                    assert link.m_as("GB/s") == pytest.approx(bits / 8, rel=5e-3)
                    tried += 1
            elif link is not None:
                with row(name):
                    made = TABLES["machines"].get(name, {}).get("host_link")
                    assert made, (
                        f"write what makes the host_link of {name}, in GB/s one way, under"
                        ' [machines] in tests/parts.toml, as host_link = "900 / 2"'
                    )
                    assert link.m_as("GB/s") == pytest.approx(product(made), rel=1e-6)
    assert tried > 20


@pytest.mark.parametrize("key", ["t4", "a30", "a10g", "mi210"])
def test_cards_without_links_of_their_own_are_joined_by_pcie(key: str) -> None:
    machine = machines.of(hardware.get(key))
    assert machine.hosted.domain > 1
    assert machine.hosted.bandwidth == machine.device.host_link
    planned = calc.plan("llama-2-13b", key, devices=4, prompt=500, generated=100)
    assert planned.fits
    assert planned.layout.tensor == 4
