"""Published rows held to themselves: most numbers of a source are there twice, in other units,
in the words of their row, or in the rows beside it. What is typed wrong shows in the other."""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections import Counter, defaultdict
from itertools import pairwise
from statistics import median
from typing import Any

import pytest

from calc.core.records import DATA
from calc.published import closed_loops
from tests.rows import each_row

PUBLISHED = DATA / "published"


def tables(name: str) -> dict[str, Any]:
    return tomllib.loads((PUBLISHED / f"{name}.toml").read_text(encoding="utf-8"))


def lines(name: str) -> list[dict[str, str]]:
    with open(PUBLISHED / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# Of each group its rows, a mapping each of conditions and of what was measured.
ROWS: dict[str, list[dict[str, Any]]] = {
    name: [
        row | {each["name"]: each["value"] for each in row.get("measured", [])}
        for row in tables(name)[group]
    ]
    for name, group in (
        ("kernels", "kernel"),
        ("collectives", "collective"),
        ("training", "training"),
        ("serving", "serving"),
    )
}

TOKENS = "global_batch_seqs * seq_len"
OPERATIONS = "2 * m * n * k"
RATE = "output_tokens_per_s"
# Of rows that have all of it: what is the other, to how much, and at least how many rows say both.
SAME: list[tuple[str, str, str, float, int]] = [
    ("training", "tokens_per_s", "tokens_per_s_per_gpu * num_devices", 0.01, 145),
    ("training", "tokens_per_s * step_time", TOKENS, 0.01, 30),
    ("training", "tokens_per_s_per_gpu * num_devices * step_time", TOKENS, 0.01, 3),
    ("training", "tokens_per_s_per_gpu * num_devices * step_time_median", TOKENS, 0.01, 45),
    ("training", "tokens_per_s_per_chip * num_devices * step_time", TOKENS, 0.01, 13),
    ("training", "tokens_per_s_per_gpu * num_devices", "samples_per_s_median * seq_len", 0.01, 17),
    ("training", "global_batch_tokens", TOKENS, 0, 139),
    ("training", "global_batch_seqs", "micro_batch * grad_accum * num_devices", 0, 139),
    ("training", "aggregate * 1000", "tflops_per_gpu * num_devices", 0.02, 7),
    ("training", "params", "12 * layers * hidden**2 + vocab * hidden", 0.04, 7),
    ("kernels", "mean_tflops / spec_tflops", "efficiency / 100", 0.01, 17),
    # Operands of one byte and a result of two move in the time that the operations take.
    (
        "kernels",
        f"memory_bandwidth * {OPERATIONS} / tflops / 1000",
        "m * k + k * n + 2 * m * n",
        0.03,
        34,
    ),
    ("kernels", "latency_cycles / clock_mhz * 1000", "latency_ns", 1e-6, 13),
    ("kernels", f"{OPERATIONS} / time / 1e9", "tflops", 1e-6, 2),
    ("kernels", "wall_power / performance", "energy_per_token", 1e-6, 5),
    ("kernels", "4096 * 16 / bandwidth_at_64_kib / 1000", "time_per_kernel", 1e-6, 5),
    ("serving", "avg_gpu_power_total", f"gpu_energy_per_output_token * {RATE}", 0.03, 139),
    # Little's law; of the median and the mean time of a token.
    ("serving", f"{RATE} * median_inter_token_latency / 1000", "batch", 0.5, 139),
    ("serving", "output_tokens_per_s_per_gpu * num_devices", "output_tokens_per_s", 0.01, 90),
    ("serving", "output_tokens_per_s_per_chip * num_devices", "output_tokens_per_s", 0.01, 3),
]  # fmt: skip


@pytest.mark.parametrize(("group", "what", "is_", "within", "least"), SAME)
def test_what_a_row_says_twice_is_the_same(
    group: str, what: str, is_: str, within: float, least: int
) -> None:
    names = set(re.findall(r"[a-z]\w*", re.sub(r"\de\d", "", f"{what} {is_}")))
    complete = [
        row for row in ROWS[group] if all(isinstance(row.get(name), (int, float)) for name in names)
    ]
    assert len(complete) >= least
    with each_row() as row:
        for one in complete:
            with row(one["id"]):
                assert eval(what, {}, one) == pytest.approx(eval(is_, {}, one), rel=within)


SHAPE = "model", "layers", "seq_len"
WEIGHTS = "model", "dtype_weights", "parallelism"
RUN = "model", "seq_len", "task", "software"  # whose releases count the attention of GPT-OSS apart
# Of rows alike in so much, what is the same of all, and to how much.
ALIKE: list[tuple[str, str, tuple[str, ...], float]] = [
    ("training", "model_tflops_per_gpu / mfu", ("device", "dtype"), 0.01),
    ("training", "tflops_per_chip / mfu", ("device",), 0.02),
    ("training", "hfu / mfu", ("activation_checkpointing",), 0.03),
    ("training", "tflops_per_gpu / percent_of_peak", (), 0.02),
    ("training", "mfu * num_devices / tokens_per_s", ("device", "dtype", *SHAPE), 0.02),
    ("training", "model_tflops_per_gpu / tokens_per_s_per_gpu", RUN, 0.03),
    ("training", "tflops_per_chip / tokens_per_s_per_chip", ("model", "seq_len"), 0.02),
    ("training", "tokens_per_s_async_tp / tokens_per_s_vanilla_tp", (), 0.1),
    ("serving", "reported_memory_bandwidth / decode_tokens_per_s", WEIGHTS, 0.02),
]  # fmt: skip


@pytest.mark.parametrize(("group", "what", "alike", "within"), ALIKE)
def test_what_rows_beside_each_other_say_is_the_same(
    group: str, what: str, alike: tuple[str, ...], within: float
) -> None:
    names = set(re.findall(r"[a-z]\w*", what))
    groups = defaultdict(list)
    for one in ROWS[group]:
        if names <= one.keys():
            key = (one["source_key"], *(one.get(name) for name in alike))
            groups[key].append((eval(what, {}, one), one["id"]))
    assert any(len(of) > 1 for of in groups.values())
    with each_row() as row:
        for of in groups.values():
            middle = median(value for value, _ in of)
            for value, name in of:
                with row(name):
                    assert value == pytest.approx(middle, rel=within)


def test_lengths_and_counts_are_those_of_the_rows_beside() -> None:
    """Powers of two count too: 4069 for 4096 is none. What a source has once is told here."""
    alone = {
        ("tpu-recipes-trillium-llama3.3-70b", 1000),
        ("deepseek-open-infra-day6", 4989),
        ("deepseek-open-infra-day6", 144),
        ("sglang-large-scale-ep", 2000),
        ("sglang-large-scale-ep", 96),
        ("vultr-b200-poc", 1000),
    }
    fields = ("seq_len", "input_len", "max_num_seqs", "head_dim", "local_batch", "num_devices")
    counted = set()
    for group in ("kernels", "serving", "training"):
        for field in fields:
            times = Counter(
                (row["source_key"], row[field])
                for row in ROWS[group]
                if isinstance(row.get(field), int)
            )
            counted |= {
                (source, value)
                for (source, value), count in times.items()
                if count == 1 and value & (value - 1)
            }
    # Devices of training are counted by what a row says twice; a few sources have odd ones.
    once = counted - DEVICES
    assert not once - alone, "once in a source: look there, then list it in `alone`"
    assert not alone - once, "no longer once in its source: take it from `alone`"


DEVICES = {
    ("dgxc-25.02-llama3.1-405b", 192),
    ("dgxc-25.02-llama3.1-405b", 96),
    ("dgxc-25.02-llama3.1-405b", 2304),
    ("maxtext-readme", 3840),
    ("maxtext-readme", 6144),
    ("maxtext-v4", 192),
    ("megatron-readme-h100", 4608),
    ("narayanan-2021-table1", 1920),
    ("narayanan-2021-table1", 3072),
    ("mt-nlg-530b", 2800),
    ("mt-nlg-530b", 3360),
    ("mlperf-training-v5.0", 2432),
    ("mlperf-training-v5.0", 2560),
    ("mlperf-training-v5.1", 2560),
    ("mlperf-training-v5.1", 448),
}
ODD_LAYOUTS = {  # which their sources contradict, or that count the cores of chips; notes say so
    *(f"nemo-longseq-{n}" for n in (2, 3, 4, 6, 7, 8)),
    *(f"dgxc-25.02-llama3.1-405b-{n}" for n in (7, 8)),
    "dgxc-25.02-llama3.1-405b-3",
    "deepseek-online",
}


def test_degrees_make_the_devices_and_replicas_share_the_batch() -> None:
    degree = re.compile(r"\b(TP|PP|CP|DP|EP|DEP|FSDP) ?=? ?([1-9]\d*)")
    checked = 0
    with each_row() as row:
        for one in ROWS["training"] + ROWS["serving"]:
            degrees = {
                name: int(value) for name, value in degree.findall(one.get("parallelism", ""))
            }
            devices = one.get("num_devices")
            if not degrees or not isinstance(devices, int) or one["id"] in ODD_LAYOUTS:
                continue
            checked += 1
            cut = math.prod(degrees.get(name, 1) for name in ("TP", "PP", "CP"))
            copies = degrees.get("DP", degrees.get("FSDP", degrees.get("DEP")))
            with row(one["id"]):
                if "cores" in one["parallelism"]:
                    assert devices * 2 == degrees["TP"]
                elif copies:
                    assert devices in (cut * copies, degrees.get("EP", 0))
                elif "seq_len" in one:
                    assert devices % cut == 0
                else:
                    assert devices in (cut, degrees.get("EP", 0))
                batch, micro = one.get("global_batch_seqs"), one.get("micro_batch", 1)
                if isinstance(batch, int):
                    assert batch % (devices // cut * micro) == 0
    assert checked > 700


def test_devices_are_those_of_the_words_beside() -> None:
    """Counts are those of "8xH100", "64 GPUs", "4x v5e-256" or "v5p-128", which counts cores."""
    of_more = {
        "llm-foundry-benchmarks",
        "gpt-fast-readme",
        "vultr-b200-poc",
        "mlperf-training-v5.1",
    }
    counts = re.compile(r"(?<![\w.])(\d+)(?= ?[x×]|(?: GPUs| [Cc]hips| TPU7x|xA3))|(?<=x)8(?= )")
    slices = re.compile(r"(?:v5e|v6e|80gb)-(\d+)")
    cores = re.compile(r"v(?:4|5p)-(\d+)$")
    checked = 0
    with each_row() as row:
        for one in ROWS["training"] + ROWS["serving"]:
            system, devices = one.get("system", ""), one.get("num_devices")
            numbers = [int(each[0]) for each in counts.finditer(system)]
            numbers += map(int, slices.findall(system))
            halved = [int(count) // 2 for count in cores.findall(system)]
            if not (numbers or halved) or not isinstance(devices, int):
                continue
            if one["source_key"] not in of_more:
                checked += 1
                with row(f"{one['id']}, {system}"):
                    assert devices in (math.prod(numbers + halved), *numbers[:1])
    assert checked > 300


def test_times_make_the_bandwidths_of_a_curve() -> None:
    over = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "alltoall": 1.0}
    with each_row() as row:
        for one in ROWS["collectives"]:
            if "time_us" not in one:
                continue
            n, sizes = one["num_devices"], one["size_bytes"]
            with row(one["id"]):
                assert all(less < more for less, more in pairwise(sizes))
                for times, rates, factor in (
                    ("time_us", "algbw_gb_s", 1.0),
                    ("time_us", "busbw_gb_s", over[one["collective"]] * (n - 1) / n),
                    (
                        "in_place_time_us",
                        "in_place_busbw_gb_s",
                        over[one["collective"]] * (n - 1) / n,
                    ),
                ):
                    for size, time, rate in zip(
                        sizes, one.get(times, []), one.get(rates, []), strict=False
                    ):
                        made = size / time / 1000 * factor
                        assert rate == pytest.approx(made, rel=0.01, abs=0.02), size


def test_a_closed_loop_is_what_its_name_says() -> None:
    """Each name is its source's file, with mode, lengths, clients and devices that cut it."""
    pattern = re.compile(r"_(agg|disagg)_(\d+)x(\d+)_c(\d+)?(?:_tp(\d+)(?:_\d)?_ep)?")
    with each_row() as row:
        for one in lines("closed_loops"):
            match = pattern.search(one["id"])
            with row(one["id"]):
                assert match
                names = ("mode", "input", "output", "clients")
                assert all(
                    word in (None, one[name])
                    for word, name in zip(match.groups(), names, strict=False)
                )
                device = one["machine"].removeprefix("dgx-").removesuffix("-nvl72")
                assert f"_{device}_" in one["id"]
                if match[5] and one["mode"] == "agg":
                    cut = int(one["tensor"]) * int(one["data"] or 1)
                    # Some files count each of the devices with attention of its own as all.
                    assert cut in (int(match[5]), int(match[5]) ** 2)
                assert 0 < float(one["tpot_ms"]) < float(one["ttft_ms"])


def test_drafts_are_told_of_whole_days_of_a_server() -> None:
    """A server ran with drafts or without on a day, and with them sooner for up to 128 clients."""
    load = ("machine", "format", "mode", "input", "output", "clients", "tensor", "data", "experts")
    drafted: dict[tuple[str, ...], set[str]] = {}
    plain: dict[tuple[str, ...], list[float]] = {}
    soon: dict[tuple[str, ...], list[float]] = {}
    with each_row() as row:
        for one in lines("closed_loops"):
            if one["model"] != "deepseek-v3" or one["software"] != "tensorrt-llm":
                assert not one["drafts"]
                continue
            day = tuple(one[name] for name in ("machine", "format", "mode", "day"))
            drafted.setdefault(day, set()).add(one["drafts"])
            if int(one["clients"] or 999) > 128:
                continue  # a full batch gains nothing
            kind = soon if one["drafts"] else plain
            kind.setdefault(tuple(one[name] for name in load), []).append(float(one["tpot_ms"]))
        for day, kinds in drafted.items():
            with row("-".join(day)):
                assert len(kinds) == 1
        for both in soon.keys() & plain.keys():
            with row("-".join(both)):
                assert max(soon[both]) < min(plain[both])


def test_percentiles_of_a_load_rise_and_its_name_is_of_its_model() -> None:
    limits_of = {name: table["limits"] for name, table in tables("datasets").items()}
    with each_row() as row:
        for one in lines("mlperf_loads"):
            with row(one["id"]):
                assert one["id"].endswith(f"-{one['scenario'].lower()}")
                for time in ("ttft", "tpot"):
                    rising = [
                        float(one[f"{time}_p{share}"]) for share in ("50", "90", "95", "99", "99.9")
                    ]
                    assert rising == sorted(rising)
                    for name, limits in limits_of.items():
                        if re.search(name, one["id"]) and one["scenario"] in limits:
                            most = limits[one["scenario"]][time == "tpot"] * 1000
                            assert float(one[f"{time}_p99"]) <= most * 1.01


def test_parts_of_an_engine_s_memory_make_its_share() -> None:
    whole = [
        row | row["measured"]
        for row in tables("engine_memory")["memory"]
        if {"weights", "step", "outside", "caches"} <= row["measured"].keys()
    ]
    assert len(whole) >= 45
    with each_row() as row:
        for one in whole:
            with row(one["id"]):
                made = one["weights"] + one["step"] + one["outside"] + one["caches"]
                assert made == pytest.approx(one["visible"] * one["utilization"], rel=3e-4)


def test_requests_of_a_trace_come_begin_and_end() -> None:
    for name in tables("traces"):
        rows = lines(f"trace_{name}")
        arrivals = [float(one["arrival"]) for one in rows]
        assert arrivals == sorted(arrivals)
        with each_row() as row:
            for number, one in enumerate(rows):
                with row(f"{name}, {number}"):
                    assert float(one["arrival"]) < float(one["first"]) < float(one["done"])
                    written = float(one["done"]) - float(one["first"])
                    assert 0.005 < written / int(one["generated"]) < 0.3
                    assert int(one["prompt"]) > 0


def test_loops_elsewhere_are_what_their_names_say_and_none_beats_its_bound() -> None:
    """Rows of each chip have an expectation; those of MI355X are within 20 % in the median."""
    rows = closed_loops.elsewhere()
    errors: dict[str, list[float]] = {}
    for row in rows:
        lengths, clients = f"{row['input']}x{row['output']}", f"_c{row['clients']}"
        assert lengths in row.id, row.id
        assert clients in row.id, row.id
        assert row["machine"].partition("-")[0] in row.id.replace("tpu7", "tpu"), row.id
        compared = closed_loops.predict(row)
        assert compared.error is not None, row.id
        assert compared.prediction is not None
        assert compared.prediction.lower < compared.measured, row.id
        errors.setdefault(row["machine"], []).append(abs(compared.error))
    counts = {machine: len(off) for machine, off in errors.items()}
    assert counts == {
        "mi355x-8": 176,
        "mi300x-8": 64,
        "mi325x-8": 29,
        "tpu-v7-cube": 4,
        "gaudi3-8": 4,
    }
    assert median(errors["mi355x-8"]) < 0.2
