"""Models of which the host holds a part: splits, what they take, and runs of others beside them."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest

from calc import InputError, Job, device_memory, plan, quantity
from calc.published import offloading_rows
from calc.steps.expectation import read_on_host, serving_pass
from calc.steps.job import Tokens
from calc.steps.splits import Host, Split

HOST = "96 GB DDR5-5600"
ASKED = {"prompt": 1000, "generated": 300}


def errors(pairs: list[tuple[float, float]]) -> list[float]:
    return [expected / time - 1 for expected, time in pairs]


def test_runs_that_nothing_was_fitted_to_are_within_a_quarter_in_the_median() -> None:
    held = offloading_rows.kept_back([run for run in offloading_rows.runs() if run.states_host])
    off = errors([(run.expected.m_as("s"), run.time.m_as("s")) for run in held])
    assert len(off) == 6
    assert median(map(abs, off)) == pytest.approx(0.101, abs=0.01)
    assert median(off) == pytest.approx(0.011, abs=0.01)


def test_one_run_of_a_sweep_says_what_the_others_take() -> None:
    off = errors(
        [
            (run.as_after(sweep[0]).m_as("s"), run.time.m_as("s"))
            for sweep in offloading_rows.sweeps().values()
            for run in sweep[1:]
        ]
    )
    assert len(off) == 12
    assert median(map(abs, off)) < 0.02
    assert max(map(abs, off)) < 0.1


def test_a_plan_leaves_as_few_experts_to_the_host_as_fit() -> None:
    planned = plan("gpt-oss-120b", "rtx-4090", host=HOST, **ASKED)
    assert planned.split == Split(Host.read(HOST), experts=24)
    assert planned.fits
    fewer = Split(Host.read(HOST), experts=23)
    job = Job.of("gpt-oss-120b", "rtx-4090", None, planned.job.formats, "llama.cpp", split=fewer)
    assert job.weights.memory - fewer.held(job.weights) + planned.cache_memory > planned.room
    [point] = planned.points
    assert point["host"]["options"] == "-ngl 99 --n-cpu-moe 24"
    assert "--n-cpu-moe 24" in str(planned)


def test_device_and_host_hold_all_between_them() -> None:
    for name, split in (
        ("gpt-oss-120b", Split(Host.read(HOST), experts=20)),
        ("qwen-3-14b", Split(Host.read(HOST), layers=11)),
    ):
        whole = Job.of(name, "rtx-4090", software="llama.cpp")
        job = replace(whole, split=split)
        held = split.held(job.weights).m_as("GiB")
        [beside], [all_of_it] = (device_memory.of(one, 1000).parts for one in (job, whole))
        assert beside.memory.m_as("GiB") + held == pytest.approx(all_of_it.memory.m_as("GiB"))
        assert read_on_host(job, Tokens(writing=1, context=1)) <= split.held(job.weights) * 1.001


def test_more_on_the_host_takes_longer_and_no_program_beats_its_memory() -> None:
    times = []
    for experts in (0, 12, 24, 36):
        split = Split(Host.read(HOST), experts=experts)
        job = Job.of("gpt-oss-120b", "rtx-4090", software="llama.cpp", split=split)
        load = Tokens(writing=1, context=1000)
        times.append(serving_pass(job, load).total.m_as("s"))
        assert times[-1] >= (read_on_host(job, load) / split.host.bandwidth).m_as("s")
    assert times == sorted(times)


def test_long_steps_have_weights_sent_and_short_ones_do_not() -> None:
    split = Split(Host.read(HOST), experts=36)
    job = Job.of("gpt-oss-120b", "rtx-4090", software="llama.cpp", split=split)
    assert "sent by host" not in serving_pass(job, Tokens(reading=31, prompt=31))
    one, two = (
        serving_pass(job, Tokens(reading=count, prompt=count))["sent by host"].m_as("s")
        for count in (512, 1024)
    )
    assert two == pytest.approx(2 * one)


def test_hosts_as_people_write_them() -> None:
    for text, bandwidth in (
        ("96 GB DDR5-5600", "89.6 GB/s"),
        ("64GB DDR4 3200", "51.2 GB/s"),
        ("128 GiB of DDR4-3200 x4", "102.4 GB/s"),
        ("512 GB DDR5-4800 x 12", "460.8 GB/s"),
        ("32 GB LPDDR5X-7500", "120 GB/s"),
        ("96 GB at 60 GB/s", "60 GB/s"),
    ):
        assert Host.read(text).bandwidth.m_as("GB/s") == pytest.approx(
            quantity(bandwidth).m_as("GB/s")
        )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"host": "fast"}, "as in"),
        ({"host": "16 GB DDR5-5600"}, "it needs more of it"),
        ({"host": HOST, "devices": 2}, "beside one device"),
        ({"host": HOST, "software": "vllm"}, "is for llama.cpp"),
        ({"host": HOST, "batch": [1, 8]}, "one batch"),
        ({"host": "96 GB DDR5-5600 x99"}, "1 to 24 channels"),
    ],
)
def test_what_no_host_can_be_is_refused(asked: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        plan("gpt-oss-120b", "rtx-4090", **ASKED, **asked)  # type: ignore[arg-type]


def test_a_device_that_shares_its_memory_has_no_host_beside_it() -> None:
    with pytest.raises(InputError, match="share a memory"):
        plan("gpt-oss-120b", "apple-m4", host=HOST, **ASKED)


def test_a_host_that_is_not_needed_changes_nothing() -> None:
    alone = plan("gpt-oss-20b", "rtx-4090", software="llama.cpp", **ASKED)
    beside = plan("gpt-oss-20b", "rtx-4090", host=HOST, **ASKED)
    assert beside.split is None
    assert beside.time_per_token == alone.time_per_token


# --- experts that the host's memory has no place for ---

DISK = "64 GB DDR5-5600, 7 GB/s NVMe"
LARGE = {"model": "deepseek-r1", "hardware": "rtx-4090", "weights": "q4_k_m", **ASKED}


def test_hosts_with_a_disk_as_people_write_them() -> None:
    for text in (
        DISK,
        "64 GB DDR5-5600 and 7 GB/s SSD",
        "64 GB DDR5-5600, 2 TB SSD 7 GB/s",
        "64 GB DDR5-5600, SSD at 7 GB/s",
        "64 GB DDR5-5600 with 1 TB 7 GB/s NVMe SSD",
        "64 GB DDR5-5600, NVMe SSD at 7 GB/s disk",
        "64 GB at 89.6 GB/s, 7000 MB/s NVMe SSD",
    ):
        host = Host.read(text)
        assert host.ssd is not None
        assert (host.ssd.m_as("GB/s"), host.memory.m_as("GB")) == (7, 64)
        assert host.bandwidth.m_as("GB/s") == pytest.approx(89.6)
        assert host.written == text
    assert Host.read(HOST).ssd is None


def test_caches_of_experts_that_nothing_was_fitted_to() -> None:
    """Three sources of six are kept back: more is expected to be found than they found."""
    sources = sorted({cache.source for cache in offloading_rows.caches()})
    held = [cache.error for cache in offloading_rows.caches() if cache.source in sources[1::2]]
    assert (len(held), len(offloading_rows.caches())) == (7, 17)
    assert median(held) == pytest.approx(0.10, abs=0.01)
    assert median(map(abs, held)) == pytest.approx(0.10, abs=0.01)
    even = [cache.share - cache.found for cache in offloading_rows.caches()]
    assert median(even) < -0.2  # routing that favours none is further off


def test_what_the_memory_has_no_place_for_is_read_from_the_disk() -> None:
    with pytest.raises(InputError, match="an SSD beside it"):
        plan(host="64 GB DDR5-5600", **LARGE)  # type: ignore[arg-type]
    planned = plan(host=DISK, **LARGE)  # type: ignore[arg-type]
    assert planned.split is not None
    assert planned.expected is not None
    held = planned.split.held(planned.kept)
    movable = planned.split.held(planned.kept, of_experts=True)
    resident = (quantity("64 GB") - (held - movable)) / movable
    assert planned.split.resident == pytest.approx(resident.m_as(""))
    writing = planned.expected.passes["each token"]
    experts = planned.split.read(planned.kept, 1, of_experts=True)
    missed = experts * (1 - planned.split.resident**0.33)
    assert writing["host's SSD"].m_as("s") == pytest.approx((missed / quantity("7 GB/s")).m_as("s"))
    [point] = planned.points
    assert point["host"]["on_ssd"].m_as("GB") == pytest.approx(held.m_as("GB") - 64)
    assert point["interval"] == {}  # no published rows are like it
    assert "without --no-mmap and --mlock" in str(planned)
    assert planned.time_per_token.lower <= planned.expected.results["time_per_token"]


def test_a_faster_disk_and_more_memory_are_never_slower() -> None:
    times = []
    for memory, rate in ((64, 3), (64, 7), (128, 7), (256, 7), (512, 7)):
        host = f"{memory} GB DDR5-5600, {rate} GB/s NVMe"
        expected = plan(host=host, **LARGE).expected  # type: ignore[arg-type]
        assert expected is not None
        times.append(expected.results["time_per_token"].m_as("s"))
    assert times == sorted(times, reverse=True)
    enough = plan(host="512 GB DDR5-5600", **LARGE).expected  # type: ignore[arg-type]
    assert enough is not None
    assert times[-1] == enough.results["time_per_token"].m_as("s")
