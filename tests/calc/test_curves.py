"""Curves of collectives: their rows, what is made of them, and what predicts one left out."""

from __future__ import annotations

import csv
import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from benchmarks import collectives
from calc import InputError, curves, machines
from calc.catalog.machines import NotMeasured
from calc.core.citations import bibliography
from calc.published import left_out
from calc.steps.curves import Curve

HEADER = ",".join(curves.COLUMNS) + "\n"
GOOD = HEADER + "".join(
    f"made up,dgx-h100,all_reduce,8,1,domain,{size},{time},a program,williams2009roofline\n"
    for size, time in (
        ("1000", "1e-5,175e6"),
        ("10000", "1.1e-5,1.59e9"),
        ("100000", "2e-5,8.75e9"),
        ("1000000", "1e-4,17.5e9"),
    )
)


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], tuple[Curve, ...]]:
    def load(text: str) -> tuple[Curve, ...]:
        path = tmp_path / "made_up.csv"
        path.write_text(text, encoding="utf-8")
        return curves.load(path)

    return load


@pytest.mark.parametrize("size", [1, 1000, 1234.5, 20000, 1e5, 9e5, 1e6])
def test_times_between_sizes_are_those_of_numpy(
    load: Callable[[str], tuple[Curve, ...]], size: float
) -> None:
    [curve] = load(GOOD)
    there = np.interp(np.log(size), np.log(curve.sizes), np.log(curve.times))
    assert curve.time(size) == pytest.approx(np.exp(there))


def test_times_beyond_the_largest_size_are_in_proportion(
    load: Callable[[str], tuple[Curve, ...]],
) -> None:
    [curve] = load(GOOD)
    assert curve.time(3e6) == pytest.approx(3e-4)


def test_below_a_curve_that_is_not_flat_nothing_is_known(
    load: Callable[[str], tuple[Curve, ...]],
) -> None:
    [curve] = load(GOOD.replace("1.1e-5", "1.5e-5"))
    with pytest.raises(NotMeasured, match="was measured from 1000 byte on, where its time is not"):
        curve.time(10)
    [point] = load("\n".join(GOOD.splitlines()[:2]))
    with pytest.raises(NotMeasured):
        point.time(10)


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ("curve,", "name,", "its columns must be curve, machine,"),
        ("10000,", "100,", "made up: its sizes must rise from row to row"),
        ("2e-5", "-2e-5", "made up: sizes and times must be positive"),
        ("2e-5", "soon", "made up: sizes, times and counts must be numbers"),
        ("h100,all_reduce,8", "h100,all_reduce,1", "devices at least two"),
        ("all_reduce", "sum", "the operation must be one of all_gather, reduce_scatter,"),
        ("domain", "near", "and the span one of domain, across; got all_reduce and near"),
        ("dgx-h100", "abacus", "there is no machine 'abacus'"),
    ],
)
def test_a_mistake_is_named(
    load: Callable[[str], tuple[Curve, ...]], right: str, wrong: str, sentence: str
) -> None:
    with pytest.raises(InputError) as refusal:
        load(GOOD.replace(right, wrong, 1))
    assert sentence in str(refusal.value)


def test_what_an_operation_consists_of() -> None:
    """Symmetry and sums alone make other operations; an all-to-all is made of nothing else."""
    b200, a100 = map(machines.get, ("dgx-b200", "dgx-a100"))
    scattered = curves.times("reduce_scatter", 2**30, 8, b200)
    assert curves.times("all_gather", 2**30, 8, b200) == scattered == [1451.69e-6]
    whole = curves.times("all_reduce", 2**30, 8, a100)
    assert curves.times("all_gather", 2**30, 8, a100) == pytest.approx([whole[0] / 2])


@pytest.mark.parametrize("devices", [16, 32, 64, 256])
def test_sums_across_servers_are_expected_of_sums_not_of_gathers(devices: int) -> None:
    """H200s have NVLink and ports of H100s, and of their own only gathers, whose rings are long."""
    h100, h200 = map(machines.get, ("dgx-h100", "dgx-h200"))
    for size in (512e3, 2**30):
        expected = curves.times("all_reduce", size, devices, h100)
        [seconds] = curves.times("all_reduce", size, devices, h200)
        assert min(expected) <= seconds <= max(expected)
    for name in ("dgx-h200", "dgx-b200", "hgx-b300"):
        [(_, used)] = curves.predicted("all_reduce", 64e3, devices, machines.get(name))
        assert {each.operation for each in used} == {"all_reduce"}


def test_a_short_gather_in_a_server_is_expected_of_gathers() -> None:
    """Gathers of H100s begin at 33.5 MB; below they go on as B200s', not as a sum of A100s."""
    used = [
        curve.name
        for _, each in curves.predicted("all_gather", 16e6, 8, machines.get("dgx-h100"))
        for curve in each
    ]
    assert used == ["allgather-8xh100-cnode3", "reducescatter-8xb200-hgx-vultr"]


@pytest.mark.parametrize("machine", ["dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72", "dgx-a100"])
@pytest.mark.parametrize("operation", curves.OPERATIONS)
def test_no_expectation_jumps_where_a_curve_begins(operation: str, machine: str) -> None:
    entry = machines.get(machine)
    begins = {int(each.sizes[0]) for each in curves.load()}
    for devices, begin in itertools.product((8, 16, 64, 144), begins):
        above, below = (
            curves.times(operation, size, devices, entry) for size in (begin, begin - 1)
        )
        assert below == pytest.approx(above, rel=1e-2 if begin > 1000 else 0.2)


def test_a_machine_without_a_curve_has_that_of_the_machine_most_like_it() -> None:
    """A GB300's switch has the bandwidth of a B200's."""
    exchanged = curves.times("all_to_all", 2**30, 8, machines.get("dgx-b200"))
    assert curves.times("all_to_all", 2**30, 8, machines.get("gb300-nvl72")) == exchanged
    assert curves.times("all_to_all", 2**30, 8, machines.get("dgx-b200"), "x") == exchanged


def test_another_number_of_devices_against_what_was_measured_of_it() -> None:
    """Bekman's bus bandwidths of two MI300X and 4 GiB, of some B200 and H200 and 8 GiB.

    The four H200 add up on a ring, which their switch is expected to beat. Oracle's rack of GB300,
    whose switches add up, takes as long for 64 devices as for eight, where a ring would take 12 %
    longer; its time is expected of the servers of B200 of Bekman.
    """
    for machine, devices, gibibytes, bus, error in (
        ("mi300x-8", 2, 4, 47.671e9, 0.1),
        ("dgx-b200", 6, 8, 778.2e9, 0.05),
        ("dgx-b200", 7, 8, 811.2e9, 0.05),
        ("dgx-h200", 4, 8, 363.3e9, 0.15),
        ("gb300-nvl72", 8, 8, 838.38e9, 0.05),
        ("gb300-nvl72", 64, 16, 930.48e9, 0.05),
    ):
        size = gibibytes * 2**30
        [seconds] = curves.times("all_reduce", size, devices, machines.get(machine))
        measured = 2 * (devices - 1) / devices * size / bus
        assert seconds == pytest.approx(measured, rel=error), machine


def test_an_exchange_grows_with_what_leaves_a_domain() -> None:
    """Ten H100 servers send 72 / 80 of the array, two 8 / 16: that takes 1.8 times as long."""
    h100 = machines.get("dgx-h100")
    [ten], [two] = (curves.times("all_to_all", 2**34, devices, h100) for devices in (80, 16))
    assert ten == pytest.approx(0.336737)
    assert two == pytest.approx(ten / 1.8, rel=0.01)
    assert two == pytest.approx(0.174994, rel=0.1)  # as measured on two of these servers


def test_latency_grows_with_the_levels_of_a_tree_and_the_length_of_a_ring() -> None:
    """A sum in 512 servers: ten rounds where four have three. A gather in 64: 64, not two."""
    h100, h200 = machines.get("dgx-h100"), machines.get("dgx-h200")
    four = curves.get("allreduce-32xh100-xe9680")
    [seconds] = curves.times("all_reduce", 8, 4096, h100)
    assert seconds == pytest.approx(four.times[0] * 10 / 3, rel=0.01)
    gathered = curves.get("allgather-16gpu-dwsflex-gke")
    [seconds] = curves.times("all_gather", 1024, 512, h200)
    assert seconds == pytest.approx(gathered.times[0] * 64 / 2, rel=0.05)


@pytest.mark.parametrize(
    ("operation", "devices", "most"), [("all_reduce", 14_400, 1440), ("all_gather", 800, 80)]
)
def test_nothing_is_expected_of_far_more_devices_than_were_measured(
    operation: str, devices: int, most: int
) -> None:
    h100 = machines.get("dgx-h100")
    assert curves.times(operation, 2**30, devices, h100)
    with pytest.raises(NotMeasured, match=f"has {most}, so nothing is expected of more than 10 ti"):
        curves.times(operation, 2**30, devices + 8, h100)


def test_a_curve_that_does_not_reach_down_to_a_size_is_continued_by_another() -> None:
    """Eight servers were measured from 1 MiB on, and four from 8 byte on."""
    h100 = machines.get("dgx-h100")
    long, short = "allreduce-64xh100-of-64", "allreduce-32xh100-xe9680"
    for size, names in ((2**20, [long]), (2**19, [long, short])):
        [(_, used)] = curves.predicted("all_reduce", size, 64, h100)
        assert [curve.name for curve in used] == names
    [tiny] = curves.times("all_reduce", 8, 64, h100)  # whose latency no sum of 64 knows
    assert tiny == pytest.approx(curves.get(short).times[0] * 4 / 3, rel=0.01)


def test_below_all_curves_that_are_not_flat_nothing_is_expected(
    load: Callable[[str], tuple[Curve, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    steep = load(GOOD.replace("1.1e-5", "1.5e-5"))
    monkeypatch.setattr(curves, "_stored", lambda: steep)
    for name in ("_like", "_pool"):  # which remember
        monkeypatch.setattr(curves, name, getattr(curves, name).__wrapped__)
    with pytest.raises(NotMeasured, match="no curve goes below the 1000 byte at which that begins"):
        curves.times("all_reduce", 100, 8, machines.get("dgx-h100"))


# --- our own data ---


def test_bus_bandwidths_are_those_of_sizes_and_times() -> None:
    wrong = []
    with curves.FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            devices, bus = int(row["devices"]), float(row["bus_bandwidth"])
            passes = 2 if row["operation"] == "all_reduce" else 1
            factor = passes * (devices - 1) / devices
            bandwidth = factor * float(row["size_bytes"]) / float(row["time_seconds"])
            if abs(bandwidth - bus) > 0.02 * bus + 6e6:  # printed to 0.01 GB/s
                wrong.append((row["curve"], row["size_bytes"]))
    assert not wrong


def test_half_of_the_largest_bus_bandwidth(load: Callable[[str], tuple[Curve, ...]]) -> None:
    """The largest bandwidth is 17.5 GB/s, of a megabyte; a tenth of that reaches 8.75."""
    [curve] = load(GOOD)
    assert curve.half_size == 100_000


def test_a_curve_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="no curve is called 'abacus'"):
        curves.get("abacus")


def test_every_curve_names_its_source() -> None:
    for curve in curves.load():
        assert curve.source in bibliography(), curve.name
        assert (curve.span == "domain") == (curve.devices <= machines.get(curve.machine).domain)


def test_starts_are_of_networks_not_of_how_fast_links_are() -> None:
    """EFA starts later than InfiniBand; a B200 starts as an H100 does, on links twice as fast."""
    size = 2.0**20
    efa, infiniband = (machines.get(key) for key in ("aws-p5", "dgx-h100"))
    over_efa, over_infiniband = (
        curves.times("all_reduce", size, 32, machine, without="allreduce-32xh100-of-64")
        for machine in (efa, infiniband)
    )
    assert min(over_efa) > 3 * max(over_infiniband)
    short, long = 2.0**18, 2.0**32
    without = "bekman2026mlengineering"
    b200, h100 = (machines.get(key) for key in ("dgx-b200", "dgx-h100"))
    for length, least, most in ((short, 0.7, 2.0), (long, 0.6, 0.7)):
        [slower, *_] = curves.times("all_reduce", length, 8, h100)
        [faster, *_] = curves.times("all_reduce", length, 8, b200, without)
        assert least < faster / slower < most


def test_spreads_are_those_of_sources_left_out_and_hold_of_others() -> None:
    points, unexpected = collectives.left_out()
    assert len(points) > 400
    assert unexpected == 18, "of MI300X, of whose links there is one source alone"
    stored = [dataclasses.astuple(spread) for spread in curves.spreads()]
    for one, other in zip(stored, map(dataclasses.astuple, collectives.made(points)), strict=True):
        assert one == pytest.approx(other, abs=1e-3)
    inside = [holds for holds, _ in collectives.covered(points).values()]
    assert 0.75 < sum(inside) / len(inside) < 0.85
    off = sorted(abs(point.factor - 1) for point in points)
    assert median(off) < 0.121
    assert off[int(0.9 * len(off))] < 0.56


def test_the_nearest_curve_predicts_one_left_out_best() -> None:
    rows = left_out.left_out()
    assert len(rows) == 26

    def error(name: str) -> float:
        return float(median(getattr(each, name) for each in rows))

    assert error("nearest") < 0.15
    assert error("nearest") < min(error(name) for name in ("line", "two_pieces", "three_pieces"))
    assert error("line") > 0.2


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_a_fit_finds_the_latency_and_the_share_it_was_made_with(pieces: int) -> None:
    """A share of 0.8, half of it reached at 10⁶ byte, which is a point of the grid."""
    sizes = [2.0**power for power in range(16, 34)]
    fit = left_out._pieces([(size, 0.8 * size / (size + 1e6)) for size in sizes], pieces)[-1]
    for size in (1e5, 1e6, 1e9):
        assert fit(size) == pytest.approx(0.8 * size / (size + 1e6), rel=1e-6)


def test_two_pieces_meet_where_they_were_made_to() -> None:
    """One line of half a size of 10⁵ up to the ninth size, another of 10⁷ from the tenth on."""
    sizes = [2.0**power for power in range(16, 34)]
    shares = [0.3 * size / (size + 1e5) for size in sizes[:9]]
    shares += [0.9 * size / (size + 1e7) for size in sizes[9:]]
    fit = left_out._pieces([*zip(sizes, shares, strict=True)], 2)[-1]
    assert [fit(size) for size in sizes] == pytest.approx(shares, rel=1e-6)


@pytest.mark.parametrize(
    ("devices", "domains"), [(1024, 16), (72, 1), (73, 73), (2**61 - 1, 2**61 - 1)]
)
def test_domains_are_filled_alike_however_many_devices_there_are(
    devices: int, domains: int
) -> None:
    """64 in each of 16 racks of 72; the last is a prime, which shares out among no fewer."""
    assert curves.domains_of(devices, machines.get("gb200-nvl72")) == domains


def test_from_how_many_sizes_and_how_flat_a_curve_is_flat_below_them() -> None:
    """Each limit holds to the last size, second and byte."""
    sizes = tuple(1024.0 * 2**power for power in range(curves.SIZES))
    rising = (1e-5, curves.FLAT * 1e-5, 2e-5, 3e-5)
    flat = replace(curves.get("allreduce-8xh100-dgxc"), sizes=sizes, times=rising)
    assert flat.reaches(8)
    assert flat.time(8) == rising[0]
    steeper = replace(flat, times=(1e-5, 1.001 * rising[1], *rising[2:]))
    fewer = replace(flat, sizes=sizes[1:], times=(1e-5, 1e-5, 2e-5))
    far = replace(flat, sizes=tuple(curves.COMPARED_FROM / 1024 * size for size in sizes))
    for curve in (steeper, fewer, far):
        assert not curve.reaches(0.999 * curve.sizes[0])
        assert curve.reaches(curve.sizes[0])
