"""Servers under load: closed loops by their laws, recorded runs, and what a benchmark shows."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from calc import InputError, Job, Layout, plan, software
from calc.planning.service import Replica, Run, Steps, loops, observe, simulate
from calc.planning.service.load import Trace
from calc.planning.service.observed import Point, fitted, with_numbers
from calc.planning.serving_plan import Plan
from calc.published import closed_loops, datasets, serving_rows
from calc.published.reading import Row
from experiments import under_load

STEP = 0.01
PLANTED = {"sustained": 0.8, "step": 0.002, "sequence": 40e-6, "request": 0.03}


def steps(read: float = 0.0, launched: float = 0.0) -> Steps:
    """Each step takes a hundredth of a second, and so much more for each token that it reads."""
    count = np.arange(65)
    apart: Any = np.where(count, STEP - read * count, 0.0)
    together: Any = read * np.arange(4096)
    return Steps(together, apart, 0.0 * apart, 0.0, launched=launched)


def loop(clients: int, rounds: int = 10, prompt: int = 1, answer: int = 50) -> Trace:
    count = clients * rounds
    prompts, answers = np.full(count, prompt), np.full(count, answer)
    return Trace(np.zeros(count), prompts, answers, np.zeros_like(prompts))


def test_a_closed_loop_keeps_all_its_clients_busy() -> None:
    """Little's law: clients over the time of a request are the requests of a second."""
    run = simulate(Replica(steps(1e-4), 10**9, 2000, 64), loop(8, prompt=100), None, 8)
    time = float((run.done - run.arrivals).mean())
    rate = len(run.arrivals) / run.elapsed
    assert rate * time == pytest.approx(8, rel=0.01)


def test_a_client_that_is_away_asks_later() -> None:
    near, far = (
        simulate(Replica(steps(), 10**9, 2000, 64), loop(1, 3), None, 1, away)
        for away in (0.0, 2.0)
    )
    assert far.elapsed - near.elapsed == pytest.approx(2 * 2.0)


def arriving(replica: Replica) -> Run:
    """A request whose prompt comes while another writes, long before that is done."""
    lengths = np.array([1, 100]), np.array([400, 50])
    return simulate(replica, Trace(np.array([0.0, 0.105]), *lengths, np.array([0, 0])))


@pytest.mark.parametrize(("how", "later"), [({"waits": 20}, 20 * STEP), ({"request": 0.5}, 0.5)])
def test_prompts_wait_for_others_and_until_a_server_knows_of_them(
    how: dict[str, Any], later: float
) -> None:
    plain = Replica(steps(), 10**9, 2000, 64)
    first, waited = (arriving(each).first[1] for each in (plain, replace(plain, **how)))
    assert waited - first == pytest.approx(later)


@pytest.mark.parametrize(("every", "written_before"), [(1, 11), (13, 12), (50, 49)])
def test_prompts_are_begun_at_one_of_so_many_steps(every: int, written_before: int) -> None:
    run = arriving(Replica(steps(), 10**9, 2000, 64, every=every))
    assert run.first[1] == pytest.approx((written_before + 1) * STEP)


def test_a_script_s_sequences_stand_for_those_of_the_engine() -> None:
    job = Job.of("llama-3-8b", "dgx-h100", software="vllm")
    assert loops.served(job, (900, 1000), 4000, slots=3000).slots == 3000


def at_rate(name: str) -> under_load.Met:
    return under_load.at_rate(next(row for row in datasets.mlperf_rows() if row["id"] == name))


def test_a_result_at_a_rate_has_the_copies_of_its_configuration() -> None:
    met = at_rate("6.0-0073-deepseek-r1-server")
    assert met.job is not None
    assert met.job.layout == Layout(data=8, experts=8)
    assert at_rate("6.0-0039-deepseek-r1-interactive").reason == "its own head drafts three tokens"


def test_a_result_kept_the_limits_of_its_scenario() -> None:
    """Steps are as expected where limits are kept, and no shorter than it needs elsewhere."""
    within = at_rate("6.0-0024-llama2-70b-99-interactive")
    assert within.factor == 1
    beyond = at_rate("6.0-0004-llama2-70b-99-interactive")
    assert 0.8 < beyond.factor < 1
    assert 0.9 * 0.04 < beyond.expected["tpot p99"] <= 0.04
    assert beyond.expected["ttft p99"] <= 0.45


def test_all_that_write_wait_where_steps_do_not_mix() -> None:
    mixed = arriving(Replica(steps(0.001), 10**9, 2000, 64))
    apart = arriving(Replica(steps(0.001), 10**9, 2000, 64, mixes=False))
    assert mixed.first[1] - apart.first[1] == pytest.approx(STEP)  # which nobody writes in
    assert apart.done[0] == pytest.approx(mixed.done[0])


def test_a_step_that_reads_takes_the_time_of_its_launches() -> None:
    run = arriving(Replica(steps(launched=0.2), 10**9, 2000, 64))
    assert run.ttft[0] == pytest.approx(0.2)


def test_engines_have_limits_of_their_own() -> None:
    of = {
        name: loops.served(Job.of("llama-3-8b", machine, software=name), (900, 1000), 4000)
        for name, machine in (("vllm", "dgx-h100"), ("sglang", "dgx-b200"))
    }
    assert (of["vllm"].chunk, of["vllm"].slots, of["vllm"].mixes) == (8192, 1024, True)
    assert (of["sglang"].chunk, of["sglang"].slots, of["sglang"].mixes) == (16384, 2048, False)


@pytest.mark.parametrize(("name", "most"), [("rtx-4090", 0.03), ("rtx-pro-6000", 0.09)])
def test_a_recorded_run_is_replayed_request_by_request(name: str, most: float) -> None:
    met, measured, expected = under_load.replayed(name)
    assert np.median(np.abs(measured.ttft / expected.ttft - 1)) < most
    assert np.median(np.abs(measured.tpot / expected.tpot - 1)) < most
    assert measured.ttft.mean() == pytest.approx(met.measured["ttft"])


@pytest.mark.parametrize("index", range(1000, 1300, 100))
def test_rows_are_simulated_or_say_why_not(index: int) -> None:
    met = under_load.closed_loop(closed_loops.rows()[index])
    assert bool(met.expected) != bool(met.reason)


def drawn(count: int) -> list[Row]:
    loops = [row for row in closed_loops.rows() if row["mode"] == "agg" and row["clients"] <= 64]
    return random.Random(45).sample(loops, count)


def planned(job: Job, **asked: Any) -> Plan:
    """A plan of the devices and the formats of a job."""
    layout, formats = job.layout, job.formats
    experts = layout.experts if layout.experts > 1 else None
    asked |= {"tensor": layout.tensor, "copies": layout.data, "experts": experts}
    asked |= {"weights": formats.weights, "kv": formats.kv, "dtype": formats.dtype}
    return plan(job.model, job.measured_on, **asked)


def test_plans_meet_users_as_published_loops_are_met() -> None:
    """The plan's door and that of `calc validate --published` give the same, to the digit."""
    asked = 0
    for row in drawn(6):
        met = under_load.closed_loop(row)
        if met.job is None:
            continue
        asked_for = {"prompt": row["input"], "generated": row["output"]}
        users, program = under_load.clients_of(row, met.job), str(row["software"])
        loop = planned(met.job, users=users, software=program, **asked_for).expected
        assert loop is not None
        assert loop.time_to_first_token.m_as("s") == met.expected["ttft"]
        assert loop.time_per_token.m_as("s") == met.expected["tpot"]
        asked += 1
    assert asked > 3


def test_users_of_a_plan_are_those_of_a_closed_loop() -> None:
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "software": "vllm"}
    many = plan("llama-3-8b", "h100", users=[1, 32], devices=1, **asked)
    one = plan("llama-3-8b", "h100", users=32, devices=1, **asked)
    assert many.expected is not None
    assert one.expected is not None
    first, token = one.expected.time_to_first_token, one.expected.time_per_token
    assert many.expected.time_to_first_token[1] == first
    cycle = first + 199 * token
    assert one.expected.throughput.m_as("token/s") == pytest.approx((32 * 200 / cycle).m_as("1/s"))
    batch = plan("llama-3-8b", "h100", batch=32, devices=1, **asked)
    assert batch.expected is not None
    assert first < batch.expected.time_to_first_token  # which waits for all prompts
    assert token > batch.expected.time_per_token  # which waits for none
    assert "32 users" in one.answer
    crowd = plan("llama-3-70b", "h100", users=64, devices=2, **asked)
    assert crowd.fits  # since some wait for others
    assert crowd.memory <= crowd.room
    assert "a batch of 32 read at once" in batch.answer


def test_users_are_met_in_the_middle_of_answers_and_not_in_step() -> None:
    """Clients that begin at once, with lengths alike, meet at every first token."""
    asked: dict[str, Any] = {"prompt": 5000, "generated": 500, "weights": "fp8", "devices": 2}
    asked |= {"software": "vllm"}
    many, in_step = (
        plan("llama-3.3-70b", "h100", users=users, **asked).expected
        for users in ([25, 10], loops.Clients(25, at_once=True))
    )
    assert many is not None
    assert in_step is not None
    first = many.time_to_first_token[0]
    assert in_step.time_to_first_token > 2 * first
    assert first.m_as("s") == pytest.approx(0.689, rel=0.3)  # a benchmark of NIM 1.8
    for name, mean in (("time_to_first_token", first), ("time_per_token", many.time_per_token[0])):
        half, tenth, last = (many.percentiles[f"{name}_p{share}"][0] for share in (50, 90, 99))
        assert half <= tenth <= last
        assert half <= 1.1 * mean <= 1.1 * last
    row = plan("llama-3.3-70b", "h100", users=25, **asked)
    expected = row.points[0]["expected"]
    assert expected["time_to_first_token_p99"] == many.percentiles["time_to_first_token_p99"][0]
    assert "time to first token p99" in row.explain()


@pytest.mark.slow
def test_no_program_beats_the_bounds_of_users() -> None:
    for row in drawn(20):
        met = under_load.closed_loop(row)
        if met.job is None:
            continue
        prompt, generated = (round(0.9 * row[name]) for name in ("input", "output"))
        made = planned(met.job, users=row["clients"], prompt=prompt, generated=generated)
        answer = row.measured["ttft"] + (made.generated.m_as("") - 1) * row.measured["tpot"]
        assert made.time_per_token.lower.m_as("s") < row.measured["tpot"]
        assert made.answer_time.lower.m_as("s") < answer


def test_copies_share_users_and_batches_evenly() -> None:
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "software": "vllm"}
    for load in ("users", "batch"):
        one = plan("llama-3-8b", "h100", tensor=2, **{load: 16}, **asked)
        two = plan("llama-3-8b", "h100", tensor=2, copies=2, **{load: 32}, **asked)
        assert two.devices == 4
        assert one.expected is not None
        assert two.expected is not None
        for name in ("time_to_first_token", "time_per_token"):
            mine, theirs = (getattr(made.expected, name).m_as("s") for made in (one, two))
            assert mine == pytest.approx(theirs)
            assert getattr(one, name).lower.m_as("s") == pytest.approx(
                getattr(two, name).lower.m_as("s")
            )
        assert (two.expected.throughput / one.expected.throughput).m_as("") == pytest.approx(2)


def test_planted_numbers_are_found_again() -> None:
    from calc.planning.service.observed import _simulated

    job = Job.of("llama-3.1-8b", "h100", Layout(), software="vllm")
    planted = replace(job, software=with_numbers(job.software, PLANTED))

    def times(point: Point) -> tuple[float, float]:
        return _simulated(planted, point)

    points = [Point(clients, 0.0, 0.0, 1000, 200, 0.8) for clients in (2, 12, 48)]
    points = [at._replace(ttft=first, tpot=rest) for at in points for first, rest in [times(at)]]
    seen = fitted(job, points)
    for (first, rest), point in zip(seen.expected, points, strict=True):
        assert rest == pytest.approx(point.tpot, rel=0.05)
        assert first == pytest.approx(point.ttft, rel=0.2)
    assert seen.numbers["sustained"] == pytest.approx(PLANTED["sustained"], rel=0.1)
    assert seen.numbers["request"] == pytest.approx(PLANTED["request"], abs=0.015)


POINTS = ["concurrency=4,ttft=60 ms,tpot=8 ms", "concurrency=64,ttft=0.3 s,tpot=16 ms"]
LENGTHS: dict[str, Any] = {"prompt": 1000, "generated": 300}


def test_what_was_observed_is_software_of_every_planner(tmp_path: Path) -> None:
    seen = observe("llama-3.1-8b", "h100", POINTS, **LENGTHS)
    seen.save(tmp_path / "mine.toml")
    again = software.get(str(tmp_path / "mine.toml"))
    assert again.step == pytest.approx(seen.software.step, rel=1e-4)
    both = [
        plan("llama-3.1-8b", "h100", batch=8, **LENGTHS, software=name)
        for name in ("vllm", str(tmp_path / "mine.toml"))
    ]
    times = [one.expected.time_per_token.m_as("s") for one in both if one.expected]
    assert times[0] != times[1]
    (tmp_path / "device.toml").write_text("[mine]\n", encoding="utf-8")
    with pytest.raises(InputError, match="take another name"):
        seen.save(tmp_path / "device.toml")


RESULTS = {
    "vllm bench serve": {
        "max_concurrency": 8,
        "mean_ttft_ms": 200.0,
        "mean_tpot_ms": 12.0,
        "total_input_tokens": 80_000,
        "total_output_tokens": 16_000,
        "completed": 80,
    },
    "aiperf": {
        "input_config": {"loadgen": {"concurrency": 8}},
        "time_to_first_token": {"unit": "ms", "avg": 200.0},
        "inter_token_latency": {"unit": "ms", "avg": 12.0},
        "input_sequence_length": {"avg": 1000},
        "output_sequence_length": {"avg": 200},
    },
    "guidellm": {
        "benchmarks": [
            {
                "config": {"strategy": {"type_": "concurrent", "streams": 8}},
                "metrics": {
                    "time_to_first_token_ms": {"successful": {"mean": 200.0}},
                    "inter_token_latency_ms": {"successful": {"mean": 12.0}},
                    "prompt_token_count": {"successful": {"mean": 1000}},
                    "output_token_count": {"successful": {"mean": 200}},
                },
            }
        ]
    },
}


@pytest.mark.parametrize("tool", RESULTS)
def test_result_files_say_the_same(tool: str, tmp_path: Path) -> None:
    from calc.planning.service.observed import _read

    (tmp_path / "result.json").write_text(json.dumps(RESULTS[tool]), encoding="utf-8")
    assert list(_read(tmp_path / "result.json")) == [Point(8, 0.2, 0.012, 1000, 200)]


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (POINTS[:1], "two concurrencies or more"),
        ([POINTS[0], "concurrency=64,ttft=0.3 s,tpot=4 ms"], "contradict each other"),
        ([POINTS[0], "concurrency=8,tpot=9 ms"], "has no ttft"),
        ([POINTS[0], "concurrency=8,ttft=1 s,tpot=9 m"], "tpot"),
        ([POINTS[0], "concurrency=8,ttft=1 s,tpot=9 ms,e2e=3 s"], "got e2e"),
        ([POINTS[0], "concurrency=8,ttft=1 s,tpot=900 s"], "not theirs"),
        (["{}"], "no result of a known benchmark"),
        (['{"mean_ttft_ms": 3}'], "no TPOT"),
        (['{"mean_ttft_ms": 3, "mean_tpot_ms": 3}'], "how many clients"),
        (["not json"], "is not valid JSON"),
    ],
)
def test_points_that_say_nothing_are_refused(points: list[str], said: str, tmp_path: Path) -> None:
    inputs: list[str | Path | Point] = list(points)
    if "=" not in points[0]:
        (tmp_path / "result.json").write_text(points[0], encoding="utf-8")
        inputs = [tmp_path / "result.json"]
    with pytest.raises(InputError, match=said):
        observe("llama-3.1-8b", "h100", inputs, **LENGTHS)


@pytest.mark.parametrize(
    ("model", "program", "milliseconds"),
    [
        ("deepseek-v3", "tensorrt-llm", 58 * 2),  # of its layers three have no experts
        ("gpt-oss-120b", "tensorrt-llm", 36 * 1),
        ("llama-3-8b", "tensorrt-llm", 0),
        ("gpt-oss-120b", "vllm", 0),
    ],
)
def test_a_host_launches_more_of_layers_that_keep_latents(
    model: str, program: str, milliseconds: float
) -> None:
    job = Job.of(model, "dgx-h200", Layout(tensor=8), software=program)
    steps = loops.served(job, (1000, 1200), 8).steps
    assert 1e3 * steps.launched == pytest.approx(milliseconds)


def test_loops_on_amd_are_simulated_as_their_own_scripts_start_servers() -> None:
    """Four steps write before prompts are read, and a step takes all prompts that have come."""
    rows = closed_loops.elsewhere()
    chunks = {}
    for row in rows:
        if row["machine"].startswith("mi"):
            users = under_load.clients_of(row, closed_loops.job_of(row))
            assert users.waits == 2
            chunks.setdefault((row["machine"], row["format"]), set()).add(users.chunk)
    assert chunks == {
        ("mi300x-8", "fp8"): {131072},
        ("mi325x-8", "fp8"): {131072},
        ("mi355x-8", "fp8"): {196608},
        ("mi355x-8", "mxfp4"): {32768, 196608},
    }
    met = [under_load.closed_loop(row) for row in rows if row["machine"] == "mi300x-8"][::4]
    late, apart = ([abs(one.errors[name]) for one in met] for name in under_load.TIMES)
    assert median(apart) < 0.2
    assert median(late) < 0.5


def test_weights_fill_no_device_of_a_published_server_further() -> None:
    """Layouts of submitters are taken for rows of the largest throughput up to that share."""
    shares = []
    for row in datasets.mlperf_rows():
        if row["tensor"] and not row["readers"] and not row["unread"]:
            job, _ = under_load._mlperf_job(row)
            shares.append(serving_rows.weights_share(job))
    assert 0.6 < max(shares) <= serving_rows.MOST_WEIGHTS
