"""Measured exchanges of experts' tokens: against other sources, against the bound, bad input."""

from __future__ import annotations

from pathlib import Path

import pytest

from calc import Formats, Job, Layout, Tokens, experts, machines, published, step
from calc.catalog import expert_exchanges
from calc.catalog.expert_exchanges import COLUMNS
from calc.core.errors import InputError
from calc.steps import communication, expectation

CELLS = [
    *["decode", "dispatch", "h100", "sglang", "1.0", "8", "1", "60"],
    "0.05 0.01",
    "",
    "",
    "4096",
    "100 120 200",
]
LINE = dict(zip(COLUMNS, CELLS, strict=True))


def written(tmp_path: Path, **changed: str) -> Path:
    path = tmp_path / "exchanges.csv"
    path.write_text("\n".join([",".join(COLUMNS), ",".join((LINE | changed).values())]))
    return path


def test_what_others_measured_between_servers_is_near() -> None:
    """The authors of DeepEP measured H800s, whose ports are those of H100s."""
    rows = {
        int(row.number("num_devices") or 0): row.measured
        for row in published.rows("collective")
        if row.id.startswith("deepep-v1-lowlat")
    }
    for devices in (16, 32, 64):
        for way, size in (("dispatch", 1 + 4 / 128), ("combine", 2.0)):
            domains = devices // 8
            curve = expert_exchanges.exchange_of("h100", "sglang", "decode", way, devices, domains)
            assert curve is not None
            assert (curve.devices, curve.domains) == (devices, domains)
            left = 128 * 7168 * size * communication.crossings(8, devices, domains, each=True)
            measured = rows[devices][f"{way}_latency"] * 1e-6
            assert curve.time(float(left)) == pytest.approx(measured, rel=0.2)


def test_no_measured_exchange_is_faster_than_its_bound() -> None:
    for curve in expert_exchanges.load():
        machine = machines.of(curve.device)
        if curve.domains > 1:
            rate = machine.ports.m_as("byte/s")
        else:
            rate = machine.bandwidth.m_as("byte/s")
        for index, time in enumerate(curve.times):
            assert time > curve.smallest * 2**index / rate, curve


@pytest.mark.parametrize("devices", [2, 8, 64, 144])
def test_copies_are_those_of_devices_or_servers_that_are_reached(devices: int) -> None:
    machine = machines.get("dgx-h100")
    places = devices if devices <= machine.domain else devices // machine.domain
    copies = communication.copies_of_a_token(machine, 8, devices)
    assert copies == pytest.approx(experts.devices_reached(8, places).magnitude)
    left = communication.crossings(8, devices, max(1, devices // machine.domain), each=False)
    assert left == pytest.approx(copies * (1 - 1 / places))


def exchange(software: str, machine: str, devices: int) -> expectation.Parts:
    layout = Layout(data=devices, experts=devices)
    job = Job.of("deepseek-v3", machine, layout, Formats("fp8", "fp8"), software)
    return expectation.serving_pass(job, Tokens(writing=32 * devices, context=2000))


def test_a_step_takes_the_exchange_of_its_own_program() -> None:
    exchanged = exchange("sglang", "dgx-h200", 8)
    assert "among 8 h200" in str(exchanged.origins["experts"][0])
    assert 58 * 20e-6 < exchanged["experts"].m_as("s") < 58 * 60e-6
    across = exchange("sglang", "dgx-h200", 16)
    assert "messages as on NVIDIA H100" in across.kin
    other = exchange("vllm", "dgx-h200", 8)  # which calls what it is told to
    assert "start-up" in str(other.origins["experts"][0])


def test_a_prompt_takes_the_kernels_for_many_tokens() -> None:
    layout = Layout(data=8, experts=8)
    job = Job.of("deepseek-v3", "dgx-h100", layout, Formats("fp8", "fp8"), "sglang")
    parts = expectation.serving_pass(job, Tokens(reading=8 * 4096, prompt=4096))
    assert "for prompts" in str(parts.origins["experts"][0])


def test_the_bound_sends_a_token_once_to_each_device() -> None:
    layout = Layout(data=2, experts=2)
    job = Job.of("deepseek-v3", "gb200-nvl72", layout, Formats("fp8", "fp8"))
    links = step(job, Tokens(writing=2 * 8192, context=1000)).parts["links"]
    vectors, reached = 8192 * 7168 * 3 * 58, (1 - 2**-8)
    assert links.m_as("s") == pytest.approx(vectors * reached / 900e9)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"kernels": "both"}, "kernels are one of decode, prompts, all"),
        ({"rows": "many"}, "counts, sizes, errors and times must be numbers"),
        ({"own": ""}, "how far its own rows are off is needed"),
        ({"tenths": "100"}, "at least two positive times among two devices are needed"),
        ({"tenths": "100 120 90"}, "its time falls with more bytes"),
    ],
)
def test_a_malformed_curve_is_refused_by_its_name(
    tmp_path: Path, changed: dict[str, str], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        list(expert_exchanges.load(written(tmp_path, **changed)))


def test_other_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "exchanges.csv"
    path.write_text("kernels,way\n")
    with pytest.raises(InputError, match="its columns must be kernels, way, device"):
        list(expert_exchanges.load(path))
