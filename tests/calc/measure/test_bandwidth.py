"""Measurements of memory, caches and products: what they do, and what they count."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy
import pytest

from calc import InputError, quantity
from calc.measure import (
    Measured,
    NoisyError,
    bandwidth,
    gemm,
    latency,
    repeated_timing,
    surveying,
    working_set_curve,
)
from calc.measure.threads import blas_threads, in_slices


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], object]]]:
    """Work that was to be timed: it runs once, and takes a millisecond on every clock."""
    works: list[Callable[[], object]] = []

    def timed(work: Callable[[], object], what: str, **_: Any) -> Measured:
        works.append(work)
        work()
        return Measured(quantity("1 ms"), 0.0, 1, what)

    for module in (bandwidth, gemm):
        monkeypatch.setattr(module, "timed", timed)
    for module in (latency, working_set_curve):
        monkeypatch.setattr(module, "timed_anew", lambda make, what, **_: timed(make(), what))
    yield works
    assert works


@pytest.mark.parametrize("threads", [1, 3])
def test_copy_and_triad_count_as_stream_does(done: list[Any], threads: int) -> None:
    size = 3 * 2**20
    copied, summed = (made(size, threads) for made in (bandwidth.copy, bandwidth.triad))
    assert copied.value.m_as("byte/s") == pytest.approx(2 * size / 1e-3)
    assert summed.value.m_as("byte/s") == pytest.approx(3 * size / 1e-3)
    on = "1 thread" if threads == 1 else "3 threads"
    assert copied.how == f"copy of 3 MiB, {on}"
    assert re.fullmatch(rf"triad of 3 MiB by (numba|NumPy in blocks), {on}", summed.how)


@pytest.mark.parametrize("with_numba", [False, True])
def test_the_triad(monkeypatch: pytest.MonkeyPatch, with_numba: bool) -> None:
    if with_numba:
        pytest.importorskip("numba")
    monkeypatch.setattr(bandwidth, "find_spec", lambda _: with_numba)
    b, c = numpy.random.default_rng(1).random((2, 3 * bandwidth.BLOCK + 5))
    a = numpy.zeros_like(b)
    bandwidth.one_triad(a, b, c, 2)
    numpy.testing.assert_allclose(a, b + 3 * c, rtol=1e-15)


def test_slices_leave_nothing_out() -> None:
    a, b = numpy.zeros(1001), numpy.arange(1001.0)
    with in_slices(numpy.copyto, (a, b), 4) as work:
        work()
    assert (a == b).all()


def test_a_product_counts_two_operations_a_term(done: list[Any]) -> None:
    assert gemm.rate("fp32", 64).value.m_as("FLOP/s") == pytest.approx(2 * 64**3 / 1e-3)


def test_blas_is_held_to_its_threads() -> None:
    pool = pytest.importorskip("threadpoolctl")
    with pool.threadpool_limits(2):
        assert {each["num_threads"] for each in pool.threadpool_info()} == {2}
        with blas_threads(1):
            assert {each["num_threads"] for each in pool.threadpool_info()} == {1}


def test_the_chain_is_one_cycle_through_every_line() -> None:
    following = latency.chain(2**14)
    at, visited = 0, []
    for _ in range(2**14 // 64):
        visited.append(at)
        at = int(following[at])
    assert at == 0
    assert sorted(visited) == list(range(0, 2**14 // 8, 8))
    with pytest.raises(InputError, match="two cache lines"):
        latency.chain(64)


def test_a_walk_goes_on_where_it_was() -> None:
    following = latency.chain(2**12)
    ends = []

    def chase(steps_from: Any, start: int, steps: int) -> int:
        for _ in range(steps):
            start = int(steps_from[start])
        ends.append(start)
        return start

    go_on = latency._walk(chase, following, 5)
    go_on()
    go_on()
    assert ends[1] == chase(following, 0, 10)


def test_without_numba_the_time_of_python_is_taken_off(
    done: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "find_spec", lambda _: None)
    measured = latency.latency(2**16)
    assert measured.value.m_as("s") == 0  # both walks took the same on this clock
    assert "by Python, above the first cache" in measured.how


@pytest.fixture
def in_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test may run while others do: however noisy, it counts."""
    monkeypatch.setattr(repeated_timing, "NOISY", float("inf"))


@pytest.mark.skipif(not find_spec("numba"), reason="numba is not installed")
@pytest.mark.usefixtures("in_a_crowd")
def test_memory_is_slower_than_a_cache() -> None:
    assert latency.latency(2**26).value > 4 * latency.latency(2**13).value


def test_working_sets_are_powers_of_two_up_to_the_largest(done: list[Any]) -> None:
    sizes = working_set_curve.sizes(2**20)
    assert sizes[-1] == 2**20
    assert all(2 * small == large for small, large in pairwise(sizes))
    rate = working_set_curve.bandwidth(2**20).value.m_as("byte/s")
    assert rate == pytest.approx(2**22 / 1e-3, rel=2e-4)


@pytest.mark.parametrize("size", [2**13, 2**14, 2**20])
def test_arrays_of_a_working_set_begin_with_a_line_and_far_from_each_other(size: int) -> None:
    held = []
    for before in range(5):  # what was there before moves them about
        held.append(numpy.ones(101 * before))
        arrays = working_set_curve.arrays(size)
        held += arrays
        addresses = [each.ctypes.data for each in arrays]
        assert not any(each % 64 for each in addresses)
        assert 0.97 * size < sum(each.nbytes for each in arrays) <= size
        apart = numpy.subtract.outer(addresses, addresses)[numpy.triu_indices(3, 1)]
        assert (numpy.minimum(apart % 4096, -apart % 4096) >= 1024).all()


def test_each_cache_is_measured_within_its_reach() -> None:
    caches = {1: 2**15, 2: 2**20, 3: 2**25}
    assert surveying._within(caches) == {"L1": 2**14, "L2": 2**16, "L3": 2**21}
    assert surveying._within({1: 2**17, 2: 3 * 2**16}) == {"L1": 2**16, "L2": 3 * 2**16}
    assert surveying._within({}) == {}


@pytest.mark.usefixtures("in_a_crowd")
def test_torch_measures_other_formats() -> None:
    torch = pytest.importorskip("torch")
    from calc.measure import torch_rates

    before = torch.get_num_threads()
    torch.set_num_threads(2)  # a measurement takes one, and gives them back
    assert torch_rates.rate("bf16").value.m_as("GFLOP/s") > 0.1
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
    with pytest.raises(InputError, match="torch measures bf16 on cpu; got 'fp64'"):
        torch_rates.rate("fp64")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no CUDA device here"):
            torch_rates.copy_on_gpu()


def test_a_gpu_is_measured() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    from calc.measure import accelerator, gpu_survey

    device = accelerator(gpu_survey())
    assert device.peak("bf16") > device.peak("fp32")
    assert 1 < device.ridge_point("bf16").magnitude < 1e4


@pytest.mark.parametrize("with_numba", [False, True])
def test_a_triad_in_two_passes_is_no_roof(
    monkeypatch: pytest.MonkeyPatch, with_numba: bool
) -> None:
    monkeypatch.setattr(surveying, "find_spec", lambda name: name == "numba" and with_numba)
    monkeypatch.setattr(surveying.working_set_curve, "sizes", lambda _: [])
    monkeypatch.setattr(bandwidth, "copy", lambda *_: Measured(quantity("20 GB/s"), 0, 7, "copy"))
    monkeypatch.setattr(bandwidth, "triad", lambda *_: Measured(quantity("10 GB/s"), 0, 7, "triad"))
    monkeypatch.setattr(gemm, "peak", lambda *_: Measured(quantity("50 GFLOP/s"), 0, 7, "peak"))
    monkeypatch.setattr(latency, "latency", lambda _: Measured(quantity("5 ns"), 0, 7, "chase"))
    surveyed = surveying.survey()
    expected = 5 / (2 / 20 + 3 / 10) if with_numba else 20
    assert surveyed.memory_bandwidth.value.m_as("GB/s") == pytest.approx(expected)
    assert ("memory" in surveyed.latencies) == with_numba


def test_what_was_too_noisy_is_measured_again_after_the_others() -> None:
    asked: list[str] = []

    def step(name: str, noisy: int) -> Callable[[], Measured]:
        def run() -> Measured:
            asked.append(name)
            if asked.count(name) <= noisy:
                raise NoisyError(f"{name} is noisy")
            return Measured(quantity("1 s"), 0.0, 7, name)

        return run

    steps = {("a", "late"): step("late", 1), ("a", "steady"): step("steady", 0)}
    results = surveying._done(steps, None)
    assert asked == ["late", "steady", "late"]
    assert list(results) == list(steps)


def test_what_stays_noisy_is_left_out_but_for_what_makes_a_device() -> None:
    second = Measured(quantity("1 s"), 0.0, 7, "a test")

    def noisy() -> Measured:
        raise NoisyError("never quiet")

    def steady() -> Measured:
        return second

    steps = {
        ("bandwidth", "copy"): steady,
        ("peak", "fp32"): steady,
        ("peak", "fp64"): noisy,
        ("latency", "L1"): noisy,
    }
    about = {"machine": {}, "name": "any", "memory_bytes": 1, "cache": None, "threads": 1}
    survey = surveying._surveyed(steps, None, **about)
    assert (*survey.bandwidths, *survey.peaks) == ("copy", "fp32")
    assert survey.too_noisy == ("peak fp64", "latency L1")
    for needed in list(steps)[:2]:
        with pytest.raises(NoisyError, match="never quiet"):
            surveying._done({**steps, needed: noisy}, None)
