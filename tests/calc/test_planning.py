"""Plans: a calculation by hand, bounds and limits, masks against a scalar loop, and refusals."""

from __future__ import annotations

import csv
import re
import tomllib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import calc
from calc import InputError, Layout, hardware, machines, models, quantity
from calc.catalog import software
from calc.catalog.machines import Machine
from calc.catalog.software import Software
from calc.core.records import DATA
from calc.planning import Bounds, Plan, plan
from calc.steps import communication, device_memory, timing
from calc.steps.expectation import serving_pass
from calc.steps.job import Job, Tokens
from tests.calc.unexpected import IN_FP8, NO_RATE, UNEXPECTED

H100 = hardware.H100
KEYS = ("llama-3-8b", "llama-3-70b", "mixtral-8x7b", "deepseek-v3", "gemma-2-27b")
CLOSE = 1 + 1e-9

some_model = st.sampled_from([models.get(key) for key in KEYS])
asked = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 512),
        "prompt": st.integers(1, 4000),
        "generated": st.integers(1, 4000),
        "devices": st.sampled_from([1, 2, 8, 16]),
        "price": st.just("3 USD/hour"),
    }
)


def with_rates(bandwidth: float = 1, peak: float = 1, link: float = 1) -> Machine:
    """A DGX H100 whose rates are so many times what they are."""

    def times(record: Any, factor: float) -> Any:
        return replace(record, _published=record.published * factor)

    records = dict(H100.records)
    records["memory_bandwidth"] = times(records["memory_bandwidth"], bandwidth)
    records["link_bandwidth"] = times(records["link_bandwidth"], link)
    peaks = dict(H100.peaks)
    peaks["peak"] = {name: times(each, peak) for name, each in peaks["peak"].items()}
    device = replace(H100, records=records, peaks=peaks)
    dgx = machines.get("dgx-h100")
    joined = {name: times(dgx.records[name], link) for name in ("bandwidth", "ports")}
    return replace(dgx, device=device, records=dgx.records | joined)


def times_of(made: Plan) -> list[float]:
    bounds = (made.time_to_first_token, made.time_per_token, made.answer_time)
    return [float(each.m_as("s")) for pair in bounds for each in pair]


def test_by_hand() -> None:
    """Llama 3 70B on two H100, in plain arithmetic from its architecture and the data sheet."""
    asked: dict[str, Any] = {"price": "3 USD/hour", "software": "none"}
    made = plan("llama-3-70b", "H100", batch=8, prompt=1000, generated=200, **asked)
    assert made.devices == 2
    parameters, layers = 70_553_706_496, 80
    cache = 2 * layers * 8 * 128 * 2  # of a token: keys and values, 8 heads 128 wide, two bytes
    assert made.weight_memory.m_as("byte") == parameters
    assert made.cache_memory.m_as("byte") == 8 * 1200 * cache / 2
    matrices = parameters - 128256 * 8192 - 161 * 8192  # less the embedding and the norms
    context = 1000 + 200 / 2
    memory = (2 * matrices + 8 * context * cache) / (2 * 3.35e12)
    attention = 2 * context * layers * 64 * 256
    compute = 8 * (2 * matrices + attention) / (2 * 989e12)
    links = 2 * layers * 2 * (8 * 8192 * 2 / 2) / 450e9
    token = [memory, memory + compute + links]
    assert [each.m_as("s") for each in made.time_per_token] == pytest.approx(token)
    assert made.binds == "memory bandwidth"
    inside = matrices - 128256 * 8192
    reading = 8000 * (2 * inside + 2 * 500.5 * layers * 64 * 256) + 8 * 2 * 128256 * 8192
    assert made.reading.parts["compute"].m_as("s") == pytest.approx(reading / (2 * 989e12))
    sums = 2 * layers * 2 * (8000 * 8192 * 2 / 2) / 450e9
    assert made.reading.parts["links"].m_as("s") == pytest.approx(sums)
    answer = made.time_to_first_token.upper.m_as("s") + 199 * token[1]
    assert made.answer_time.upper.m_as("s") == pytest.approx(answer)
    assert made.throughput.lower.m_as("token/s") == pytest.approx(1600 / answer)
    assert made.cost_per_token is not None
    assert made.energy_per_token is not None
    assert made.cost_per_token.upper.m_as("USD/token") == pytest.approx(6 / 3600 * answer / 1600)
    assert made.energy_per_token.upper.m_as("J/token") == pytest.approx(2 * 1275 * answer / 1600)


@given(some_model, asked)
def test_bounds_and_roofs(model: models.Transformer, question: dict[str, Any]) -> None:
    made = plan(model, with_rates(), **question)
    for step in (made.reading, made.writing):
        assert step.lower <= step.upper <= 3 * step.lower * CLOSE
        assert step.lower == max(step.parts.values()) == step.parts[step.bound]
        assert step.operations / step.lower <= H100.peak(made.dtype) * made.devices * CLOSE
    left = (made.room - made.memory) / made.capacity.sequence  # blocks do not fill it to the end
    assert left > -0.01 if made.fits else left < 0.01
    if made.fits:
        assert made.binds == made.writing.bound
        for pair in (made.throughput, made.cost_per_token, made.energy_per_token):
            assert pair is not None
            assert pair.lower <= pair.upper
        assert all(np.isfinite(times_of(made)))
    else:
        assert made.binds == "memory capacity"
        assert all(np.isnan(times_of(made)))


@given(some_model, asked, *[st.floats(1, 100)] * 3)
def test_faster_parts_are_never_slower(
    model: models.Transformer, question: dict[str, Any], bandwidth: float, peak: float, link: float
) -> None:
    slow = plan(model, H100, **question)
    for rates in ((bandwidth, 1, 1), (1, peak, 1), (1, 1, link), (bandwidth, peak, link)):
        fast = plan(model, with_rates(*rates), **question)
        if slow.fits:
            for new, old in zip(times_of(fast), times_of(slow), strict=True):
                assert new <= old * CLOSE


@given(some_model, asked, st.floats(1.1, 100))
def test_all_rates_together_only_change_the_clock(
    model: models.Transformer, question: dict[str, Any], factor: float
) -> None:
    slow, fast = plan(model, H100, **question), plan(model, with_rates(*[factor] * 3), **question)
    assert fast.binds == slow.binds
    assert np.array(times_of(fast)) * factor == pytest.approx(times_of(slow), nan_ok=True)


def test_a_large_batch_of_short_contexts_reaches_the_compute_roof() -> None:
    large = plan("llama-3-8b", H100, batch=10**6, prompt=1, generated=1, devices=1)
    assert large.binds == "memory capacity"  # no memory holds it, but the pass has its roof
    assert large.writing.bound == "compute"
    assert (large.writing.operations / large.writing.lower).m_as("TFLOP/s") == pytest.approx(989)


@pytest.mark.parametrize("key", ["llama-3-70b", "mixtral-8x7b", "deepseek-v3"])
@pytest.mark.parametrize("devices", [None, [[[1]], [[2]], [[16]]]])
def test_arrays_agree_with_a_loop(key: str, devices: Any) -> None:
    batches, prompts = [1, 40, 40_000], [100, 1000, 6000]
    rest: dict[str, Any] = {"generated": 200, "price": "2 USD/hour"}
    made = plan(
        key, H100, batch=np.array(batches)[:, None], prompt=prompts, devices=devices, **rest
    )
    assert made.fits.any()
    assert not made.fits.all()
    words = made.binds
    for index in np.ndindex(made.fits.shape):
        *first, row, column = index
        count = devices[first[0]][0][0] if devices else None
        question: dict[str, Any] = {
            "batch": batches[row],
            "prompt": prompts[column],
            "devices": count,
        } | rest
        if devices is None and not made.fits[index]:
            with pytest.raises(InputError, match="does not fit on"):
                plan(key, H100, **question)
            continue
        alone = plan(key, H100, **question)
        assert made.fits[index] == alone.fits
        assert words[index] == alone.binds
        memory = np.broadcast_to(made.memory.m_as("byte"), made.fits.shape)[index]
        assert memory == pytest.approx(alone.memory.m_as("byte"))
        for name in ("time_to_first_token", "answer_time", "throughput", "cost_per_token"):
            for array, single in zip(getattr(made, name), getattr(alone, name), strict=True):
                assert array[index].magnitude == pytest.approx(single.magnitude, nan_ok=True)


@given(st.integers(1, 300), st.integers(1, 2000), st.sampled_from(["BF16", "INT8", "4.25 bit"]))
def test_the_fewest_devices_hold_the_batch_and_fewer_do_not(
    batch: int, prompt: int, weights: str
) -> None:
    model = models.get("llama-3-405b")
    made = plan(model, H100, batch=batch, prompt=prompt, generated=100, weights=weights)
    assert made.fits
    counts = Layout.slices_of(model)
    for fewer in counts[: counts.index(made.devices.magnitude)]:
        small = plan(
            model, H100, batch=batch, prompt=prompt, generated=100, weights=weights, devices=fewer
        )
        assert not small.fits


def test_bounds_read_the_caches_of_devices_beyond_the_heads_once() -> None:
    """Llama 3 70B has 8 heads of keys and values, so that of 16 devices two have the same one.

    A program that shares them out reads each cache once; engines hold copies, as is expected.
    """
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200}
    short, sixteen = quantity(327_680), {"devices": 16}
    eight = plan("llama-3-70b", "dgx-h100", batch=16, devices=8, **asked)
    made = plan("llama-3-70b", "dgx-h100", batch=16, **sixteen, **asked)
    assert made.cache_memory == eight.cache_memory
    bare = plan("llama-3-70b", "dgx-h100", batch=16, software="none", **sixteen, **asked)
    assert bare.cache_memory * 2 == eight.cache_memory
    room = 16 * 80 * 2**30 - 2 * 70_553_706_496
    assert bare.largest_batch == room // (1200 * short.magnitude)
    matrices = 2 * (70_553_706_496 - 128256 * 8192 - 161 * 8192)
    cache = 16 * 1100 * short.magnitude
    shared = (matrices + cache) / (16 * 3.35e12)
    assert made.writing.parts["memory bandwidth"].m_as("s") == pytest.approx(shared)
    sums = 160 * 16 * 8192 * 2 / 8 / 50e9  # in a server, and an eighth of them across
    assert made.writing.parts["links"].m_as("s") == pytest.approx(sums)
    assert made.expected is not None
    assert eight.expected is not None
    caches = [parts.expected.writing["cache"].m_as("s") for parts in (made, eight)]
    assert caches[0] == pytest.approx(caches[1], rel=0.01)  # of twice the devices, with copies
    both = plan(
        "llama-3-70b",
        "dgx-h100",
        batch=16,
        prompt=quantity([10, 1000], ""),
        generated=200,
        **sixteen,
    )
    for index, prompt in enumerate((10, 1000)):
        alone = plan("llama-3-70b", "dgx-h100", batch=16, prompt=prompt, generated=200, **sixteen)
        assert both.time_per_token.upper[index] == alone.time_per_token.upper
    assert any("has 8 heads of keys and values for 16 slices" in e for e in made.caveats)
    assert not eight.caveats


def test_latents_are_copied_while_they_fit_and_shared_out_beyond() -> None:
    """Latent attention has no heads to divide by: by measured times copies are faster here."""
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "weights": "fp8", "dtype": "fp8"}
    asked |= {"software": "none"}
    one, many = (plan("deepseek-v3", "h200", batch=16, devices=n, **asked) for n in (1, 8))
    assert many.cache_memory * 8 == one.cache_memory
    assert "caches" not in many.expected.writing
    full = plan("deepseek-v3", "h200", batch=many.largest_batch, devices=8, **asked)
    writing = full.expected.writing
    assert "caches" in writing
    assert writing["cache"].m_as("s") == pytest.approx(
        full.batch.magnitude * 1100 * 61 * 576 * 2 / 8 / 4.48e12, rel=0.05
    )
    assert not plan("deepseek-v3", "h200", batch=many.largest_batch + 1, devices=8, **asked).fits


def test_a_window_that_fills_during_the_answer() -> None:
    """Mistral 7B reads the smaller of its context and 4 096 tokens of cache, 128 KiB each: the mean
    over each token that it writes, from 3 000 to 6 000.
    """
    asked: dict[str, Any] = {"prompt": 3000, "generated": 3000, "batch": 8, "software": "none"}
    made = plan("mistral-7b", "h100", **asked)
    contexts = 3000 + np.linspace(0, 3000, 300_001)
    cache = 8 * 2**17 * np.trapezoid(np.minimum(contexts, 4096), contexts) / 3000
    weights = 2 * (7_241_732_096 - 32_000 * 4096 - 65 * 4096)
    time = (weights + cache) / H100.memory_bandwidth.m_as("byte/s")
    assert made.writing.parts["memory bandwidth"].m_as("s") == pytest.approx(time, rel=1e-6)
    assert made.cache_memory.m_as("byte") == 8 * 2**17 * 4096
    assert made.largest_batch == (80 * 2**30 - 2 * 7_241_732_096) // (2**17 * 4096)


def test_an_array_of_one_point_is_printed_as_a_line_of_a_table() -> None:
    question: dict[str, Any] = {"prompt": 100, "generated": 20, "devices": 1}
    one = plan("llama-3-8b", "rtx-4090", batch=np.array([8]), **question)
    two = plan("llama-3-8b", "rtx-4090", batch=np.array([8, 16]), **question)
    head, row, *_ = one.tables[0].rows
    assert (
        dict(zip(head, row, strict=True)).items()
        <= dict(zip(*two.tables[0].rows[:2], strict=True)).items()
    )
    assert "the bound cuts ends marked" in one.stands_on


def test_what_would_change_of_shared_experts_is_what_they_allow() -> None:
    shared: dict[str, Any] = {"batch": 256, "experts": 8, "prompt": 1000, "generated": 64}
    changes = plan("mixtral-8x7b", "dgx-b200", **shared).explained().what_would_change
    assert any(each.startswith("INT8 weights") for each in changes)


def test_after_an_answer_of_one_token_another_would_take_the_step_of_all_users() -> None:
    made = plan("llama-3-8b", "rtx-4090", users=8, prompt=1000, generated=0)
    assert made.expected is not None
    assert made.expected.writing is not None
    assert made.expected.time_per_token == made.expected.writing.total
    assert 0 < made.time_per_token.lower.m_as("s") < made.time_per_token.upper.m_as("s")
    assert "the bound cuts each token" in made.stands_on


def test_what_would_change_is_true() -> None:
    question: dict[str, Any] = {"batch": 8, "prompt": 1000, "generated": 200}
    question |= {"software": "none"}
    made = plan("llama-3-70b", H100, **question)
    first, full, more, small, smaller = made.explained().what_would_change
    assert first == (
        "From batch 1157 on, compute would bind each token, but 2 devices hold 78 sequences."
    )
    for batch, bound in ((1156, "memory bandwidth"), (1157, "compute")):
        again = plan("llama-3-70b", H100, **(question | {"batch": batch, "devices": 2}))
        assert again.writing.bound == bound
    assert full.startswith("Batch 78, the largest that fits, writes ")
    assert plan("llama-3-70b", H100, devices=2, **(question | {"batch": 78})).fits
    assert not plan("llama-3-70b", H100, devices=2, **(question | {"batch": 79})).fits
    assert more.startswith("4 devices: ")
    expected = [
        plan("llama-3-70b", H100, **(question | {"devices": count})).expected.time_per_token
        for count in (2, 4)
    ]
    assert f"time per token ({(expected[1] / expected[0]).m_as(''):.3g} expected), " in more
    assert re.search(r" a second \([\d.]+ expected\) and takes .* answer \([\d.]+ expected\)", full)
    assert small.startswith("INT8 weights: ")
    assert small.endswith("fit on 1 device.")
    assert plan("llama-3-70b", H100, weights="INT8", **question).devices == 1
    assert smaller.startswith("INT4 weights: ")
    below = (
        plan("llama-3-8b", H100, batch=600, prompt=100, generated=10)
        .explained()
        .what_would_change[0]
    )
    assert below.startswith("Below batch ")
    assert below.endswith(", memory bandwidth binds each token.")
    always = (
        plan("llama-3-8b", H100, batch=8, prompt=8000, generated=100)
        .explained()
        .what_would_change[0]
    )
    assert always == "At this length memory bandwidth binds each token, whatever the batch."


def test_settings_that_no_plan_takes_are_told_as_those_of_fit() -> None:
    question: dict[str, Any] = {"prompt": 1000, "generated": 200, "devices": 1}
    most = plan("llama-3-8b", H100, batch=1, **question).largest_batch.magnitude
    *_, way = plan("llama-3-8b", H100, batch=most + 1, **question).explained().what_would_change[:3]
    assert way.startswith("It fits with settings of vLLM 0.24.0 that calc fit takes: utilization ")


def test_what_would_make_it_fit() -> None:
    small = plan("llama-3-70b", H100, prompt=1000, generated=200, batch=8, devices=1)
    assert small.explained().what_would_change == (
        "It fits on 2 devices.",
        "It fits with weights int4: 89.64 sequences of 1200 tokens.",
    )
    large = plan("llama-3-70b", H100, prompt=1000, generated=200, batch=10**5, devices=64)
    nowhere, batch = large.explained().what_would_change
    assert nowhere == "It fits on 576 devices as TP8 PP8 × 9."
    assert batch == f"Batch {large.largest_batch.magnitude:.0f} fits."
    assert small.answer.endswith("does not fit, 64.73 GiB too little on each")
    assert re.search("GiB +of 72.85 GiB: does not fit", small.table())
    assert "each token" not in small.explain()


def test_no_plan_cuts_a_model_over_parts_of_domains() -> None:
    """Kimi K3 has 96 heads, which 12 devices could share: one domain of eight and half of one."""
    asked: dict[str, Any] = {"prompt": 8000, "generated": 500}
    assert plan("kimi-k3", "b200", **asked).devices == 16
    twelve = plan("kimi-k3", "b200", devices=12, **asked)
    assert any(
        sentence.startswith("16 devices: ") for sentence in twelve.explained().what_would_change
    )


@pytest.mark.parametrize("software", ["vllm", "vllm 0.19", "sglang", "llama-cpp", "none", None])
@pytest.mark.parametrize("model", ["llama-3-1-8b", "deepseek-v3", "gemma-3-27b", "gpt-oss-20b"])
def test_a_plan_holds_what_the_memory_of_a_program_does(model: str, software: str | None) -> None:
    asked: dict[str, Any] = {"batch": 3, "prompt": 3000, "generated": 1000, "devices": 8}
    made = plan(model, "dgx-h200", software=software, **asked)
    fitted = calc.device_memory.fit(model, "dgx-h200", software, tensor=8, context=4000)
    assert made.largest_batch == fitted.largest_batch
    assert made.weight_memory == fitted.parts[0].memory
    assert made.room == fitted.room
    beside = sum((part.memory for part in fitted.parts[1:]), quantity("0 GiB"))
    cache = made.cache_memory.m_as("byte")
    assert made.memory.m_as("byte") == pytest.approx(
        (fitted.parts[0].memory + beside).m_as("byte") + cache
    )
    assert cache == pytest.approx(3 * fitted.start.taken(4000))


def test_what_an_engine_does_not_hold_does_not_fit() -> None:
    asked: dict[str, Any] = {"prompt": 8000, "generated": 500}
    assert not plan("deepseek-v3-2", "a100", devices=8, **asked).fits
    assert not calc.device_memory.fit("deepseek-v3-2", "a100", tensor=8, context=8500).fits
    assert plan("deepseek-v3-2", "a100", devices=8, software="none", **asked).fits


def test_a_link_that_the_data_lack_is_no_lack_of_memory() -> None:
    """Two of them hold what one does not, and one holds its INT4: said alike with and without."""
    question: dict[str, Any] = {"prompt": 10, "generated": 10, "software": "none"}
    linked, small = (
        plan("llama-3-8b", "jetson-orin-nano", devices=1, **question).explained().what_would_change
    )
    assert linked.startswith("It fits on 2 devices, once link (--link")
    assert small.startswith("It fits with weights int4: ")
    with pytest.raises(InputError) as refusal:
        plan("llama-3-8b", "jetson-orin-nano", **question)
    assert str(refusal.value) == (
        "Llama 3 8B does not fit on 1 NVIDIA Jetson Orin Nano Super 8 GB: of each, weights take"
        " 14.96 GiB, and keys and values 2.5 MiB at batch 1; it has 8 GiB for them."
        f" {linked} {small}"
    )
    assert plan("llama-3-8b", "jetson-orin-nano", link="1 GB/s", **question).devices == 2
    assert plan("llama-3-8b", "jetson-orin-nano", weights="INT4", **question).fits


def test_memory_is_told_in_units_of_its_size() -> None:
    question: dict[str, Any] = {"prompt": 10, "generated": 10}
    rows = plan("llama-3-8b", "xeon-8480", **question).tables[0].rows
    assert [row[1] for row in rows[1:4]] == ["14.96 GiB", "14.96 GiB", "2.5 MiB"]
    assert (rows[1][2], rows[1][-1]) == ("of 3686 GiB", "fits")
    decimal = plan("llama-3-8b", "gaudi3", **question).table()
    assert re.search(r"memory of each +16.07 GB +of 115.2 GB ", decimal)
    assert re.search(r"\n  weights +16.06 GB\n", decimal)
    assert re.search("keys and values +2.621 MB", decimal)


def test_assumptions_say_what_is_left_out() -> None:
    question: dict[str, Any] = {"prompt": 1000, "generated": 200}
    said = "\n".join(plan("mistral-7b", "tpu-v5e", **question).assumptions)
    for words in ("No price", "The power of Google TPU v5e is unpublished", "32 of its 32 layers"):
        assert words in said
    said = "\n".join(plan("llama-3-8b", H100, price="2 USD/hour", **question).assumptions)
    assert "A device costs 2 USD/h" in said
    assert "at most its 700 W; the bound of energy is that of a device that is idle, 78.8 W" in said
    assert "of the 575 W that are left of the 10.2 kW of NVIDIA DGX H100" in said
    said = "\n".join(plan("llama-3-8b", H100, link="32 GB/s", **question).assumptions)
    assert "Energy is that of devices alone; hosts and cooling come on top." in said
    said = "\n".join(plan("llama-3-8b", "gb200-nvl72", **question).assumptions)
    assert "power of the whole machine of NVIDIA GB200 NVL72 is an estimate" in said
    assert "slice" not in said
    made = plan("mistral-7b", "tpu-v5e", **question)
    assert made.energy_per_token is None
    assert made.cost_per_token is None
    assert plan("llama-3-8b", "v100", **question).dtype == "fp16"


def test_measured_rates_are_not_called_published() -> None:
    (machine,) = hardware.load(DATA / "measured" / "cpu.toml").values()
    question: dict[str, Any] = {"prompt": 10, "generated": 10, "weights": "INT4"}
    for device, word in ((machine, "measured"), (H100, "published")):
        made = plan("llama-3-8b", device, **question | {"dtype": device.dtypes[-1]})
        assert f"Both bounds take {word} rates: " in made.assumptions[1]


def test_links_may_be_given() -> None:
    made = plan("llama-3-8b", "l4", prompt=1000, generated=200, devices=2, link="32 GB/s")
    slow = plan("llama-3-8b", "l4", prompt=1000, generated=200, devices=2, link="1 GB/s")
    assert slow.reading.parts["links"].m_as("s") == pytest.approx(
        32 * made.reading.parts["links"].m_as("s")
    )
    assert slow.reading.bound == "links"


def test_a_plan_prints_as_its_table() -> None:
    made = plan("llama-3-8b", H100, batch=[1, 8], prompt=1000, generated=200)
    assert str(made) == made.table()
    alone = plan("llama-3-8b", H100, prompt=1000, generated=200)
    assert str(alone) == f"{alone}" == alone.table()
    assert repr(made) == "<Llama 3 8B on NVIDIA H100 SXM5 80 GB: 2 points>"
    assert repr(alone) == "<Llama 3 8B on 1 NVIDIA H100 SXM5 80 GB, batch 1, 1000 + 200 tokens>"
    assert alone.table().startswith(
        "Llama 3 8B on 1 NVIDIA H100 SXM5 80 GB, one sequence: 6.06 ms a token"
    )
    assert "; vLLM 0.24.0; " in alone.table()
    assert (
        "vLLM" not in plan("llama-3-8b", H100, prompt=1000, generated=200, software="none").table()
    )


def test_the_docstring_names_the_bounds() -> None:
    made = plan("llama-3-8b", H100, prompt=1000, generated=200, price="3 USD/hour")
    bounds = [name for name in dir(Plan) if isinstance(getattr(made, name, None), Bounds)]
    assert {f"`{name}`" for name in bounds if not name.startswith("_")} == set(
        re.findall(r"`\w+`", (Plan.__doc__ or "").split(" are `Bounds`")[0])
    )


def test_a_table_of_points() -> None:
    devices = np.array([[2], [8]])
    made = plan("llama-3-70b", H100, batch=[1, 2000], prompt=1000, generated=200, devices=devices)
    assert made.answer == "Llama 3 70B on NVIDIA H100 SXM5 80 GB; prompt 1000, generated 200"
    header, *rows = made.tables[0].rows
    assert header == (
        *("devices", "batch", "each holds (GiB)", "each token (ms)", "throughput (token/s)"),
        *("first token (ms)", "whole answer (s)", "energy of devices (J/token)"),
        *("energy (J/token)", "what binds"),
    )
    for row, point in zip(rows, made.points, strict=True):
        assert row[-1] == point["binds"]
        if not point["fits"]:
            assert set(row[3:-1]) == {"does not fit", "–"}
            continue
        printed = float(row[3].partition(" ")[0])
        assert printed == pytest.approx(point["expected"]["time_per_token"].m_as("ms"), rel=5e-3)
    bounds = made.tables[1].rows
    least = made.points[0]["time_per_token"].lower.m_as("ms")
    assert float(bounds[1][3].partition(" ")[0]) == pytest.approx(least, rel=1e-3)
    for row, point in zip(bounds[1:], made.points, strict=True):
        assert (set(row[2:]) == {"–"}) is not point["fits"]
    with pytest.raises(InputError, match="told of one point, and this plan has 4"):
        made.explained()


def test_a_table_of_points_says_what_was_not_measured() -> None:
    """A missing rate leaves no line an expectation, and the assumptions name it."""
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "devices": 8}
    made = plan("llama-3-70b", "mi300x", batch=[8, 16], **asked)
    alone = plan("llama-3-70b", "mi300x", batch=8, **asked)
    assert alone.expected is not None
    assert made.points[0]["expected"]["time_per_token"] == alone.expected.time_per_token
    assert made.assumptions == alone.assumptions
    nothing = plan("llama-3-70b", UNEXPECTED, batch=[8, 16], **asked, **IN_FP8)
    assert nothing.stands_on.startswith(f"BOUND ONLY, published peaks alone: the {NO_RATE}")
    assert all(row[2].startswith("≥") for row in nothing.tables[0].rows[1:])
    assert any(NO_RATE in each for each in nothing.assumptions)


def test_formats_are_named_in_any_spelling_and_printed_in_one() -> None:
    asked = {"prompt": 1000, "generated": 200}
    plain = plan("llama-3-8b", H100, **asked, weights="fp8", kv="float16", dtype="FP8")
    for weights, kv, dtype in (("FP8_E4M3", "half", "e4m3"), ("e4m3", "2 byte", "float8_e5m2")):
        made = plan("llama-3-8b", H100, **asked, weights=weights, kv=kv, dtype=dtype)
        assert made.time_per_token == plain.time_per_token
        assert made.memory == plain.memory
    assert "in FP8 at 1979 TFLOP/s, with weights in FP8 E4M3 (feed-forward," in plain.assumptions[0]
    assert "values in FP16;" in plain.assumptions[0]
    bits = plan("llama-3-8b", H100, **asked, weights="4", kv=4.5)
    assert "with weights in 4 bit and keys and values in 4.5 bit" in bits.assumptions[0]
    assert bits.model_memory.m_as("byte") == plain.model.parameters.m_as("param") / 2


BAD = [
    ({"prompt": 0}, "prompt must be a whole number from 1; got 0"),
    ({"generated": -1}, "generated must be a whole number from 1; got -1"),
    ({"batch": 2.5}, "batch must be a whole number from 1; got 2.5"),
    ({"batch": [1, 0]}, r"batch must be a whole number from 1; got \[1, 0\]"),
    ({"batch": []}, r"batch must be a whole number from 1; got \[\]"),
    ({"batch": "8 token"}, "batch must be a whole number from 1; got '8 token'"),
    ({"batch": "x"}, "batch: cannot read 'x'"),
    ({"batch": 2, "users": 2}, r"plan\(\) takes batch, .* or users, .*; got both"),
    ({"devices": 8, "tensor": 4, "copies": 3}, "stages times copies; got devices=8 with tensor=4"),
    (
        {"devices": 8, "tensor": 3},
        "devices are tensor times stages times copies; got devices=8 with tensor=3",
    ),
    ({"devices": 8, "copies": 3}, "devices=8 are no whole number for each of copies=3"),
    ({"copies": 2}, "each of copies=2 needs a sequence of the batch; got batch=1"),
    ({"by": "beauty"}, r"plan\(\): by must be one of cost, .*; got 'beauty'"),
    ({"by": "energy", "devices": [1, 2]}, "by chooses the layout of one point"),
    ({"by": "cost"}, 'by="cost" goes by what devices cost, .* needs price'),
    (
        {"by": "energy", "tensor": 3},
        "allow no layout with tensor=3; groups of devices are TP1, TP2",
    ),
    ({"experts": 2}, "Llama 3 8B has no experts that 2 devices could share out"),
    ({"batch": float("inf")}, "batch must be a whole number from 1 to 1e15; got inf"),
    ({"batch": float("nan")}, "batch must be a whole number from 1; got nan"),
    ({"devices": 0}, "devices must be a whole number from 1; got 0"),
    ({"batch": [1, 1e23]}, r"batch must be a whole number from 1 to 1e15; got \[1, 1e\+23\]"),
    ({"devices": 3}, "Llama 3 8B has 32 heads, which 3 slices do not divide: take 1, .* or 32"),
    ({"devices": [1, 64]}, "32 heads, which 64 slices do not divide"),
    ({"prompt": 9000}, "Llama 3 8B reads at most 8192 tokens; got a context of 9200"),
    ({"batch": [1, 2], "prompt": [1, 2, 3]}, r"do not broadcast: batch \(2,\), prompt \(3,\)"),
    ({"weights": "INT9"}, r"there is no format 'INT9'; did you mean int8"),
    ({"weights": "2 s"}, "weights must be the size of an element, .* or the name of its format"),
    ({"weights": ["fp8", "int8"]}, "weights: "),
    ({"weights": quantity([8, 4], "bit")}, "weights must be one format or size"),
    ({"kv": 2}, "kv must be the size of an element, .* got 2"),
    ({"price": "3"}, r"price must be one positive quantity in USD/s .* got '3'"),
    ({"price": "-3 USD/hour"}, "price must be one positive quantity"),
    ({"price": "1e308 USD/hour"}, "price is of one device, at most 100000 USD/hour; got '1e308"),
    ({"price": "3 EUR/hour"}, "price: cannot read '3 EUR/hour'"),
    ({"link": "3 GB"}, "link must be one positive quantity in byte/s"),
    ({"dtype": "fp3"}, "has no dense peak for 'fp3'"),
    ({"batch": 10**9}, r"does not fit on 32 .* It fits on \d+ devices as TP8 PP4 × \d+\. Batch \d"),
]


def test_the_layout_that_is_not_said_is_chosen_by_a_rule() -> None:
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "batch": 64}
    ways = {
        (tensor, copies): plan("llama-3-70b", H100, tensor=tensor, copies=copies, **asked)
        for tensor, copies in ((8, 1), (4, 2), (2, 4))
    }
    rates = {way: made.expected.throughput for way, made in ways.items() if made.expected}
    best = plan("llama-3-70b", H100, devices=8, by="throughput", **asked)
    assert best.expected is not None
    assert best.expected.throughput == max(rates.values())
    assert f"8 devices as TP{best.tensor}" in best.chosen[0]
    assert best.chosen[0].endswith("best by throughput")


def test_several_devices_are_planned_one_by_one() -> None:
    with pytest.raises(InputError, match="one device; got 'h100,a100': plan for each of them"):
        plan("llama-3-8b", "h100,a100", prompt=10, generated=10)


@pytest.mark.parametrize(("change", "sentence"), BAD)
def test_bad_input(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as refusal:
        plan("llama-3-8b", H100, **({"prompt": 1000, "generated": 200} | change))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("model", "device", "sentence"),
    [
        ("llama", "h100", "there is no model 'llama'"),
        ("llama-3-8b", "h10", "there is no device 'h10'"),
        (3, "h100", "a transformer of calc.models is needed here; got 3"),
        ("resnet-50", "h100", "a transformer of calc.models is needed here; got ResNet-50"),
        ("bert-large", "h100", "BERT-large writes no tokens"),
        (
            "llama-3-8b",
            3,
            "a device of calc.hardware or a machine of calc.machines, or its key, is needed; got 3",
        ),
        ("llama-3-8b", "snapdragon-8-gen-3", "has no dense peak for BF16; it has INT8"),
        (
            "llama-3-405b",
            "t4",
            r"on 8 NVIDIA T4: of each, weights take 94.5. GiB, .* fits on 128 devices, once link",
        ),
    ],
)
def test_bad_models_and_devices(model: Any, device: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        plan(model, device, prompt=100, generated=20)


def test_no_link_no_other_devices() -> None:
    with pytest.raises(
        InputError, match=r"no link of NVIDIA Jetson AGX Orin.* to others: take .*--link"
    ):
        plan("llama-3-8b", "jetson-agx-orin", prompt=100, generated=20, devices=2)
    with pytest.raises(InputError, match=r"joined by PCIe through the host has 8 devices"):
        plan("llama-3-8b", "rtx-3090", prompt=100, generated=20, devices=16)


def test_cards_whose_one_link_is_pcie_work_together_over_the_host() -> None:
    """Two RTX 3090 at their 31.5 GB/s each way, by curves of PCIe alone and never of a switch."""
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "devices": 2}
    answer = plan("llama-3-8b", "rtx-3090", **asked)
    assert answer.job.machine.fabric == "pcie"
    assert "messages as on Server with eight L40S" in answer.stands_on
    [said] = (note for note in answer.caveats if "joined by PCIe through the host" in note)
    assert "31.5 GB/s" in said
    assert plan("llama-3-8b", "rtx-3090", **asked | {"devices": 1}).job.machine.fabric == "none"
    least = communication.least_time("all_reduce", "64 MiB", 2, "rtx-3090")
    assert least.m_as("s") == pytest.approx(2 * (2 - 1) / 2 * 2**26 / 31.5e9)
    assert device_memory.fit("llama-3-8b", "rtx-3090", "vllm 0.19", tensor=2, context=8192).fits


def test_the_parts_of_an_expectation_by_hand() -> None:
    """Llama 3 70B on four H100s: caches and messages at measured rates; vLLM's own time."""
    asked: dict[str, Any] = {"batch": 32, "prompt": 1000, "generated": 200, "devices": 4}
    parts = plan("llama-3-70b", "h100", **asked, software="none").expected.writing
    cache = 32 * 1100 * 327_680 / 4 / 3.18e12 + 80 * 1.26e-6
    assert parts["cache"].m_as("s") == pytest.approx(cache)
    # 32 vectors of 8192 numbers in two bytes are 2^19 bytes: the mean of two measured curves there.
    rows = csv.DictReader((DATA / "measured" / "collectives.csv").read_text().splitlines())
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if (row["machine"], row["operation"], row["span"]) == ("dgx-h100", "all_reduce", "domain"):
            point = float(row["size_bytes"]), float(row["time_seconds"])
            curves.setdefault(row["curve"], []).append(point)
    logs = [
        np.interp(np.log(2**19), *np.log(np.array(points).T))
        for points in curves.values()
        if len(points) >= 4
    ]
    assert parts["tensor"].m_as("s") == pytest.approx(160 * np.exp(np.mean(logs)))
    by_vllm = plan("llama-3-70b", "h100", **asked, software="vllm 0.13").expected.writing
    stored = tomllib.loads((DATA / "software.toml").read_text())["vllm"]
    host = stored["step"]["value"] * 1e-3 + 32 * stored["sequence"]["value"] * 1e-6
    assert by_vllm["host"].m_as("s") == pytest.approx(host)
    rest = sum(by_vllm[name].m_as("s") for name in ("gemm", "memory", "cache", "tensor"))
    assert by_vllm.total.m_as("s") == pytest.approx(rest + host)
    assert by_vllm["tensor"] < parts["tensor"]  # its own sums are sooner done than NCCL's
    works_ahead = plan("llama-3-70b", "h100", **asked, software="vllm 0.14").expected.writing
    assert "host" not in works_ahead
    small = Job.of("llama-3.2-1b", "h100", software="vllm 0.14")
    waits = serving_pass(small, Tokens(writing=1024, context=100))
    others = sum(time.m_as("s") for part, time in waits.items() if part != "host")
    assert waits.total.m_as("s") == pytest.approx(1.5e-3 + 1024 * 30e-6)
    assert others < waits.total.m_as("s")


def test_what_was_not_measured_is_a_share_of_the_peak_that_says_so() -> None:
    """Products and memory of an MI300X were measured, and attention was not."""
    made = plan("llama-3-8b", "mi300x", prompt=1000, generated=20)
    assert made.expected is not None
    matrices = 2 * (8_030_261_248 - 128_256 * 4096 - 65 * 4096)
    writing = made.expected.writing
    least = matrices / 4.15e12  # of all matrices once; each kernel's start and its waves are beside
    assert least < writing["gemm"].m_as("s") < 1.2 * least
    total = writing.total.m_as("s")
    assert made.expected.time_per_token.m_as("s") == pytest.approx(total, rel=0.01)
    (attention,) = (
        line for line in str(made.expected.reading).splitlines() if line.startswith("attention")
    )
    assert "of the published peak, the median of" in attention


def test_an_interval_is_around_what_is_expected_and_within_the_bounds() -> None:
    made = plan("llama-3-70b", "h100", prompt=1000, generated=200, devices=4, software="vllm")
    for name in ("time_to_first_token", "time_per_token", "answer_time", "throughput"):
        (low, high), expected = made.interval(name), made.likely(name)
        assert low <= expected <= high
        bounds = getattr(made, name)
        assert low >= bounds.lower if name != "throughput" else high <= bounds.upper
    (values,) = made.points
    assert values["interval"]["throughput"]["high"] == made.interval("throughput")[1]
    assert "published rows (serving by vLLM, dense models" in made.stands_on
    assert (
        plan("llama-3-8b", "h100", prompt=9, generated=9, link="1 GB/s", devices=2).interval(
            "throughput"
        )
        is None
    )


def test_messages_over_a_link_of_ones_own_are_not_expected() -> None:
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "link": "1 GB/s"}
    made = plan("llama-3-70b", "h100", devices=4, **asked)
    assert made.expected is None
    assert made.not_expected == "messages over the link that is given were not measured"
    assert plan("llama-3-8b", "h100", devices=1, **asked).expected is not None


def test_every_device_has_a_router_whole() -> None:
    made = plan("mixtral-8x7b", "dgx-h100", batch=8, prompt=100, generated=100, devices=16)
    assert made.expected is not None
    assert any("share out whole experts" in each for each in made.caveats)


def test_a_table_of_parts_says_what_each_is_made_of() -> None:
    asked = {"batch": 32, "prompt": 1000, "generated": 200}
    made = plan("llama-3-70b", "h100", **asked, devices=4, software="vllm 0.13")  # type: ignore[arg-type]
    first, each = str(made.expected).split("\n\n")
    assert first.split()[:2] == ["first", "token"]
    titles = [line.split("  ")[0] for line in str(made.expected.writing).splitlines()[1:]]
    assert titles == [*made.expected.writing, "sum"]
    (sums,) = (line for line in each.splitlines() if line.startswith("tensor"))
    assert re.search(r"a sum of 524.3 kB by vLLM [\d.]+ \[\S+\]$", sums)
    (host,) = (line for line in each.splitlines() if line.startswith("host"))
    assert re.search(r"1.5 ms a step \[\S+\], 30 µs a sequence \[\S+\]$", host)
    (products,) = (line for line in each.splitlines() if line.startswith("gemm"))
    assert re.search(r"vllm [\d.]+ on h100, product in bf16: \d+ rows, half within \d%", products)


@pytest.mark.parametrize(
    ("devices", "time"), [(2, 25.1), (8, 7.6), (16, 6.1), (32, 7.2), (64, 11.6)]
)
def test_a_ring_with_hops_turns_at_sixteen_and_measured_sums_take_longer(
    devices: int, time: float
) -> None:
    """160 rings a token whose 2·(n − 1) hops take 500 ns each, on top of published rates."""
    asked = {"batch": 32, "prompt": 1000, "generated": 200, "devices": devices, "software": "none"}
    ring = plan("llama-3-70b", "h100", **asked, link="450 GB/s")  # type: ignore[arg-type]
    hops = 160 * 2 * (devices - 1) * 500e-6
    # The errata's caches are copied beyond 8 devices; the plan shares them out, and exchanges.
    same = max(1, devices // 8)
    copies = 32 * 1100 * 327_680 * (same - 1) / (devices * 3.35e12) * 1e3
    exchanges = 80 * 32 * 64 / devices * 256 * 2 * (1 - 1 / same) / 450e9 * 1e3
    sums = ring.time_per_token.upper.m_as("ms") - exchanges + copies
    assert sums + hops == pytest.approx(time, abs=0.051)
    made = plan("llama-3-70b", "h100", **asked)  # type: ignore[arg-type]
    assert made.expected.time_per_token.m_as("ms") > time


def test_machines_of_one_are_joined_by_their_ports() -> None:
    """Ports join them as in `calc.step` and `calc collective`: a bound, as no message was timed."""
    asked: dict[str, Any] = {"prompt": 1000, "generated": 1000}
    made = plan("gpt-oss-120b", "dgx-spark", **asked, weights="bf16")
    assert made.devices == 4
    assert "across the domains of NVIDIA DGX Spark" in made.not_expected
    assert any("over the ports of NVIDIA DGX Spark" in sentence for sentence in made.assumptions)
    assert calc.device_memory.fit("gpt-oss-120b", "dgx-spark", tensor=4, weights="bf16").fits


def test_where_nothing_fits_the_status_says_so_and_rows_say_why() -> None:
    """5000 sequences of 1200 tokens are 1 TiB of caches on two devices."""
    several = calc.plan(
        "llama-3-70b", "h100", batch=[8, 5000], tensor=2, prompt=1000, generated=200
    )
    none = calc.plan("llama-3-70b", "h100", batch=5000, tensor=2, prompt=1000, generated=200)
    assert (several.status, none.status) == (0, 1)
    [row] = [line for line in several.text().splitlines() if line.startswith("5000")]
    assert row.split()[1:7] == ["986", "of", "72.9", "does", "not", "fit"]


def test_cost_and_carbon_stay_in_a_table_that_is_shortened() -> None:
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "grid": "france", "pue": 1.2}
    asked["price"] = "3 USD/hour"
    for made in (
        plan("llama-3-70b", "h100", batch=8, **asked),
        plan("llama-3-70b", "h100", batch=[1, 8], **asked),
        plan("deepseek-v3", "dgx-h200", batch=8, **asked),
    ):
        [table, *_] = made.text().split("\n\n")[1:]
        assert "g/Mtoken" in table
        assert "USD/Mtoken" in table


def test_a_step_says_whose_time_it_has_and_is_that_of_the_plan() -> None:
    """A step without software and a plan by its newest vLLM are two questions, and say so."""
    job = calc.Job.of("llama-3-8b", "dgx-h100")
    for asked, said in (("none", None), ("vllm", "vllm")):
        step = timing.mean_step(replace(job, software=_program(said)), 8, 1000, 200)
        made = plan("llama-3-8b", "h100", batch=8, prompt=1000, generated=200, software=asked)
        assert made.expected is not None
        assert step.expected == made.expected.results["time_per_token"]
        assert step.program in str(step)
    assert calc.step(job, calc.Tokens(writing=8, context=1000)).program == "no software's own time"


def _program(name: str | None) -> Software:
    return software.UNKNOWN if name is None else software.meant(name, "h100", "", "H100")
