"""Plans of services: limits, pools, traces, drafts, what is printed, and bad input."""

from __future__ import annotations

import itertools
import math
import pickle
import re
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from calc import InputError, Limits, Load, Server, inference, machines, plan_service, quantity
from calc.catalog.intervals import MEASURED, PEAKS, Around
from calc.core.nouns import arguments_of
from calc.laws import speculation
from calc.planning.service import ServicePlan, Steps, plan_services, read_trace
from calc.planning.service.load import poisson
from calc.planning.service.queue import Demand
from tests.calc.command import Command, Written
from tests.calc.flatly import flatly
from tests.calc.unexpected import IN_FP8, NO_RATE, UNEXPECTED

ASKED: dict[str, Any] = {
    "rate": "10 request/s",
    "prompt": 1000,
    "generated": 200,
    "ttft": "1 s",
    "tpot": "50 ms",
    "software": "vllm",
}


def small(**more: Any) -> ServicePlan:
    return flatly(plan_service, "llama-3-8b", "dgx-h100", **(ASKED | {"pools": "mixed"} | more))


@pytest.fixture(scope="module")
def large() -> ServicePlan:
    return flatly(
        plan_service, "llama-3-70b", "dgx-h100", **(ASKED | {"rate": 20, "price": "3 USD/hour"})
    )


def test_the_simulation_keeps_the_limits(large: ServicePlan) -> None:
    assert large.ttft <= quantity("1 s")
    assert large.tpot <= quantity("50 ms")
    assert large.design.keeps
    assert large.devices >= large.least_devices
    assert all(
        each.devices >= large.devices for each in large.designs if each.keeps or each.run is None
    )
    assert large.cost_per_token is not None
    assert large.energy_per_token is not None
    throughput = large.throughput.m_as("token/s")
    assert throughput == pytest.approx(20 * 200, rel=0.01)
    paid = large.devices * 3 / 3600 / throughput * 1e6
    assert large.cost_per_token.m_as("USD/Mtoken") == pytest.approx(paid)


def test_one_copy_less_breaks_a_limit(large: ServicePlan) -> None:
    from calc.planning.service.design_search import simulated

    for pool in large.design.pools:
        if pool.count > 1:
            assert not simulated(replace(pool, count=pool.count - 1)).keeps


@pytest.mark.parametrize("device", ["rtx-pro-4500-server", "m5-max"])
def test_where_nothing_was_measured_nothing_takes_less_than_its_bound(device: str) -> None:
    """No peak of them is published: memory alone bounds a step, and draws power, of one of them."""
    plan = plan_service("llama-3-1-8b", device, Load(0.1, 100, 100), Limits("10 s", "100 ms"))
    assert plan.design.simulated is not None
    assert (plan.power is None) == (device == "m5-max")
    for least, simulated in zip(plan.least_times.values(), plan.design.simulated, strict=True):
        assert least <= simulated * (1 + 1e-9)


def test_more_requests_and_tighter_limits_take_no_fewer_devices() -> None:
    counts = [small(rate=rate).devices for rate in (5, 40, 160)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert small(rate=40, tpot="20 ms").devices >= small(rate=40, tpot="100 ms").devices


def test_more_copies_make_nothing_slower(large: ServicePlan) -> None:
    pool = large.design.pools[0]
    loads = [replace(pool, count=count).load for count in range(pool.count, pool.count + 4)]
    assert all(more.ttft <= fewer.ttft for fewer, more in itertools.pairwise(loads))


def test_a_prompt_alone_takes_the_prefill() -> None:
    """The closed form is no less than the law for one prompt."""
    plan = small(prompt_spread=0, generated_spread=0)
    pool = plan.design.pools[0]
    alone = pool.replica.under(1e-6, pool.demand, 0.5)
    setup = plan.service.setup
    law = inference.prefill(setup.model, setup.machine, 1000).lower.m_as("s")
    assert alone.mean_ttft >= law
    assert plan.ttft.m_as("s") >= law
    assert "lengths drawn at random" not in plan.chosen
    assert "lengths drawn at random" in small(prompt_spread=0, generated_spread=1).chosen


def test_ends_are_in_the_unit_of_what_lies_between_them() -> None:
    ends = Around(quantity(0.0374, "s"), quantity(0.0213, "s"), quantity(math.inf, "s"))
    assert ends.told("37.4 ms") == "21.3 to ∞ ms"


def test_a_prefix_cache_and_a_draft_take_less() -> None:
    asked = {"rate": 60, "ttft": "400 ms", "tpot": "25 ms"}
    plain = small(**asked)
    cached = small(**asked, hit_rate=0.8)
    assert cached.design.pools[0].most > 1.2 * plain.design.pools[0].most
    base = small(rate=1)
    drafted = small(rate=1, draft="llama-3-2-1b", drafted=3, acceptance=0.7)
    written = speculation.speculative_tokens(0.7, 3).m_as("")
    assert drafted.service.written == pytest.approx(written)
    assert drafted.load.mean_tpot < base.load.mean_tpot
    assert any("drafts 3 tokens" in each for each in drafted.assumptions)


def test_two_pools_split_the_work() -> None:
    plan = flatly(
        plan_service, "llama-3-70b", "dgx-h100", **(ASKED | {"rate": 20, "pools": "disaggregated"})
    )
    reads, writes = plan.design.pools
    assert (reads.does, writes.does) == ("prefill", "decode")
    assert plan.devices == reads.devices + writes.devices
    assert writes.transfer == pytest.approx(
        1000 * 327_680 / (2 * machines.get("dgx-h100").ports.m_as("byte/s")), rel=0.01
    )
    assert plan.design.load.mean_tpot >= writes.transfer / 200
    assert any("from one pool to the other" in each for each in plan.assumptions)
    narrow = flatly(
        plan_service, "llama-3-8b", "dgx-h100", **(ASKED | {"pools": "disaggregated", "chunk": 512})
    )
    assert narrow.design.pools[1].replica.chunk == 512


def test_goodput_is_the_rate_until_limits_break(large: ServicePlan) -> None:
    """Nearly all keep both limits at the rate that the plan is for, and none in an overload."""
    from calc.planning.service.design_search import simulated

    design = large.design
    assert design.simulated_goodput == pytest.approx(20, rel=0.02)
    assert design.goodput == pytest.approx(20, rel=0.02)
    assert design.at_rate(5).goodput == pytest.approx(5, rel=0.01)
    assert design.at_rate(1000).goodput == 0
    assert design.at_rate(25).simulated_goodput is None
    near = design.at_rate(0.95 * design.most)
    again = replace(near, pools=tuple(simulated(each) for each in near.pools))
    assert again.simulated_goodput == pytest.approx(near.goodput, rel=0.1)


def test_a_longer_limit_costs_no_more(large: ServicePlan) -> None:
    limits = quantity([1, 20, 30, 50, 100], "ms")
    paid = large.frontier(limits).m_as("h/Mtoken")
    assert math.isinf(paid[0])
    assert all(less <= more for more, less in itertools.pairwise(paid))
    # At the plan's own limits, what its groups take at full load, in parts of copies.
    full = sum(each.size / each.most for each in large.design.pools)
    at_limit = large.frontier("50 ms").m_as("s/token") * large.service.demand.answer
    assert at_limit <= full * (1 + 1e-6)
    assert large.frontier("50 ms").m_as("h/Mtoken") == pytest.approx(paid[3])
    for wrong in ("5 GB", "-1 s", [0, 1]):
        with pytest.raises(InputError, match="tpot must be positive times"):
            large.frontier(wrong)


def test_what_is_printed(large: ServicePlan, tmp_path: Path) -> None:
    text = str(large)
    low, high = (int(end.magnitude) for end in large.interval["devices"])
    assert large.answer.startswith(
        f"Llama 3 70B: {large.devices} ({low} to {high} at 80%) NVIDIA H100"
    )
    assert large.least_devices <= low <= large.devices <= high
    for name in ("ttft", "tpot"):
        low, high = large.interval[name]
        assert low <= getattr(large, name) <= high
    assert "first token, 99 %" in text
    assert "served by" in repr(large)
    assert large._repr_html_().startswith("<table>")
    sentences = (*large.assumptions, *large.what_would_change, *large.why_not_others)
    assert all(each.endswith(".") and "\n" not in each for each in sentences)
    rows = large.rows()
    assert rows[0]["devices"] == large.devices
    assert rows[0]["simulated_ttft"] == large.ttft
    drawn = tmp_path / "service.svg"
    large.draw().savefig(drawn)
    assert "Requests a second" in drawn.read_text(encoding="utf-8") or drawn.stat().st_size > 5000


def test_progress_is_told() -> None:
    progress: list[tuple[int, int]] = []
    small(on_progress=lambda done, total: progress.append((done, total)))
    assert progress[-1] == (1, 1)


def test_the_command(command: Command, tmp_path: Path) -> None:
    line = ["plan-service", "llama-3-8b", "h100", "--rate", "10", "--prompt", "1000"]
    line += ["--generated", "200", "--ttft", "1s", "--tpot", "50ms", "--pools", "mixed"]
    printed = command.prints(*line, "--software", "vllm")
    assert printed.startswith(
        "Llama 3 8B: 1 (1 to 1 at 80%) NVIDIA H100 SXM5 80 GB, 1 replica of TP1"
    )
    assert "10 request/s, 1000 + 200 tokens" in printed
    assert "Why not another design:" not in printed
    assert "Why not another design:" in command.prints(*line, "--software", "vllm", "--explain")
    facts = command.facts(*line, "--draw", str(tmp_path / "times.svg"))
    assert facts["devices"] == 1
    assert facts["rows"][0]["design"] == "1 replica of TP1"
    assert facts["closed_form"]["batch"] > 1
    assert (tmp_path / "times.svg").stat().st_size > 5000
    assert command.prints(*line, "--csv").splitlines()[0].startswith("design,devices,pools")
    assert "a drawing needs a name that ends in .svg or .png; got" in command.refuses(
        *line, "--draw", "times.txt"
    )


TRACE = "arrival,prompt,generated\n0,100,20\n0.5,200,10\n0.5,50,1\n"


def test_a_bound_on_a_short_trace_is_below_its_simulation(written: Written) -> None:
    file = written(
        "arrival,prompt,generated\n0,1000,200\n0.5,1000,200\n1.1,500,100\n2,800,300\n", "short.csv"
    )
    plan = flatly(plan_service, "qwen-3-32b", "h100", trace=file, ttft="1 s", tpot="40 ms")
    assert plan.design.simulated is not None
    for name, simulated in zip(("ttft", "tpot"), plan.design.simulated, strict=True):
        assert plan.least_times[name] <= plan.interval[name][0].m_as("s") <= simulated


def test_traces_are_read(tmp_path: Path) -> None:
    plain, azure, burst = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv"))
    plain.write_text(TRACE)
    azure.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
    )
    burst.write_text("Timestamp,Model,Request tokens,Response tokens\n5,x,472,18\n45,x,1087,230\n")
    assert read_trace(plain).answers.tolist() == [20, 10, 1]
    assert read_trace(azure).arrivals.tolist() == pytest.approx([0, 4.314579], abs=1e-5)
    assert read_trace(burst).prompts.tolist() == [472, 1087]
    import polars

    table = tmp_path / "a.parquet"
    polars.DataFrame(
        {"arrival": [0.0, 1.5], "prompt": [10, 20], "generated": [5, 6]}
    ).write_parquet(table)
    assert read_trace(table).arrivals.tolist() == [0.0, 1.5]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (TRACE + "1,-5,3\n", r"line 5: prompt must be a whole number .* got '-5'"),
        (TRACE + "1,5,0\n", "line 5: generated must be a whole number"),
        (TRACE + "1,5,2.5\n", "line 5: generated must be a whole number"),
        (TRACE + "0.2,5,3\n", r"line 5: arrivals must be in the order of time; got '0.2'"),
        (TRACE + "soon,5,3\n", "line 5: arrival must be seconds"),
        (TRACE + "nan,5,3\n", "line 5: arrival must be seconds|line 5: .*arrival"),
        (TRACE + "1,5\n", "line 5: generated must be a whole number .* got ''"),
        ("time,in,out\n1,2,3\n", "a trace needs a column arrival"),
        ("", "a trace needs a column arrival"),
        ("arrival,prompt,generated\n0,1,1\n", "needs two requests or more; it has 1"),
        ("arrival,prompt,generated\n0,1,1\n0,1,1\n", "all requests of the trace arrive at once"),
    ],
)
def test_a_bad_line_of_a_trace_is_named(written: Written, text: str, sentence: str) -> None:
    file = written(text, "trace.csv")
    with pytest.raises(InputError, match=sentence):
        read_trace(file)


def test_bad_parquet_is_told(tmp_path: Path, written: Written) -> None:
    file = written("no parquet", "trace.parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_trace(file)
    with pytest.raises(InputError, match="there is no such file"):
        read_trace(tmp_path / "none.parquet")
    import polars

    polars.DataFrame({"arrival": [1.0, 0.5], "prompt": [1, 2], "generated": [1, 2]}).write_parquet(
        file
    )
    with pytest.raises(InputError, match="row 2: arrivals must be in the order of time"):
        read_trace(file)


def test_a_trace_is_planned_for(tmp_path: Path, written: Written) -> None:
    trace = poisson(5, 600, 800, 150, 0.8, 1.0, seed=3)
    file = tmp_path / "trace.csv"
    rows = zip(trace.arrivals, trace.prompts, trace.answers, strict=True)
    file.write_text("arrival,prompt,generated\n" + "\n".join(f"{a},{p},{g}" for a, p, g in rows))
    limits = {"ttft": "1 s", "tpot": "50 ms", "pools": "mixed"}
    plan = flatly(plan_service, "llama-3-8b", "h100", trace=file, **limits)  # type: ignore[arg-type]
    assert plan.service.rate == pytest.approx(5, rel=0.1)
    assert len(plan.design.run.arrivals) == 540  # type: ignore[union-attr]
    faster = flatly(plan_service, "llama-3-8b", "h100", trace=file, rate=200, **limits)  # type: ignore[arg-type]
    assert faster.devices > plan.devices
    long = written(TRACE + "1,9000,3\n", "long.csv")
    with pytest.raises(InputError, match="request 4 has 9003 tokens, and Llama 3 8B reads at most"):
        flatly(plan_service, "llama-3-8b", "h100", trace=long, **limits)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"rate": None}, "needs a trace, or rate, prompt and generated; what is left out: rate"),
        ({"rate": 0}, "rate must be one positive quantity"),
        ({"rate": "5 GB"}, "rate must be one positive quantity in request/s"),
        ({"ttft": "-1 s"}, "ttft must be one positive quantity in s"),
        ({"tpot": "5"}, "tpot must be one positive quantity in s"),
        ({"percentile": 100}, "percentile must be in per cent, from 1 to below 100; got 100"),
        ({"pools": "both"}, "pools must be one of mixed, disaggregated"),
        ({"hit_rate": 1.5}, "hit_rate is a share, at most 1"),
        ({"draft": "llama-3-2-1b"}, "needs acceptance with draft"),
        ({"acceptance": 0.5}, "needs draft with acceptance"),
        ({"chunk": 3}, "chunk must be a whole number from 16"),
        ({"requests": 3}, "requests must be a whole number from 100|count must be"),
        ({"prompt_spread": -1}, "prompt_spread must be a number from 0"),
        ({"trace": "x.csv"}, "takes the lengths of its trace, and prompt and generated are given"),
    ],
)
def test_bad_input_is_told_in_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as refused:
        small(**arguments)
    assert "\n" not in str(refused.value)


def test_limits_that_cannot_be_kept() -> None:
    asked = ASKED | {"rate": 1}
    with pytest.raises(
        InputError,
        match=r"within a TTFT of 10 ms, and the best that can be had is [\d.]+ ms on TP8; nor"
        r" within a TPOT of 1 ms, and the best that can be had is [\d.]+ ms on TP\d",
    ):
        flatly(
            plan_service, "llama-3-8b", "dgx-h100", **(asked | {"ttft": "10 ms", "tpot": "1 ms"})
        )
    with pytest.raises(InputError, match=r"within a TPOT of 1 ms, and the best"):
        flatly(plan_service, "llama-3-8b", "dgx-h100", **(asked | {"tpot": "1 ms"}))
    with pytest.raises(InputError, match=r"take \d+ devices, and devices=1 allows no more"):
        small(rate=100, devices=1)
    with pytest.raises(InputError, match=r"Llama 3 405B does not fit on TP4 PP2 .* holds 0 tokens"):
        flatly(plan_service, "llama-3-1-405b", "rtx-4090-8", **ASKED)


def test_groups_of_copies_that_share_experts_out_are_taken() -> None:
    """DeepSeek-R1 fits no eight H100s: sixteen, whose copies of attention have a queue each."""
    asked = ASKED | {"generated": 400, "ttft": "2 s", "tpot": "100 ms", "pools": "mixed"}
    planned = flatly(plan_service, "deepseek-r1", "dgx-h100", **asked)
    [pool] = planned.design.pools
    assert (pool.group.data, pool.group.tensor, pool.group.experts) == (16, 1, 16)
    assert str(pool) == "1 replica of DP16 EP16"
    assert (pool.devices, pool.queues) == (16, 16)
    assert planned.load.batch == pytest.approx(16 * pool.load.batch)
    assert any(sentence.startswith("Copies of attention") for sentence in planned.assumptions)
    words = planned.deployment("vllm").commands[0]
    assert "--tensor-parallel-size 1 --data-parallel-size 16" in words
    assert "--enable-expert-parallel" in words
    assert (
        "--tp-size 16 --dp-size 16 --enable-dp-attention"
        in (planned.deployment("sglang").commands[0])
    )
    with pytest.raises(InputError, match="no option for copies of attention"):
        planned.deployment("trtllm")


def test_two_pools_need_something_to_send_and_a_way() -> None:
    for machine, more in (
        ("dgx-h100", {"generated": 1, "generated_spread": 0}),
        ("jetson-agx-orin", {}),
    ):
        with pytest.raises(InputError, match="two pools need a link between devices"):
            flatly(
                plan_service, "llama-3-8b", machine, **(ASKED | {"pools": "disaggregated"} | more)
            )


def test_without_measured_rates_bounds_decide() -> None:
    asked = ASKED | IN_FP8 | {"rate": 0.2, "tpot": "200 ms"}
    plan = flatly(plan_service, "llama-3-70b", UNEXPECTED, **asked)
    expected = plan.design.pools[0].answers.expected
    assert not isinstance(expected, Steps)
    assert NO_RATE in expected.reason
    assert any("upper bound at published rates" in each for each in plan.assumptions)
    assert math.isfinite(plan.load.ttft)


def test_lengths_have_the_mean_and_the_spread_that_are_asked_for() -> None:
    trace = poisson(3, 20_000, 500, 200, 0.5, 1.0, seed=4)
    assert trace.prompts.mean() == pytest.approx(500, rel=0.005)
    assert trace.prompts.std() / trace.prompts.mean() == pytest.approx(0.5, rel=0.03)
    assert trace.answers.std() / trace.answers.mean() == pytest.approx(1.0, rel=0.03)
    assert trace.rate == pytest.approx(3, rel=0.03)
    assert trace.at_rate(6).rate == pytest.approx(6)
    demand = Demand.mean_of(trace)
    answers = trace.answers.astype(float)
    assert demand.answer_length == pytest.approx((answers**2).sum() / answers.sum())
    assert [len(each) for each in trace.first(10).turns(3)] == [4, 3, 3]
    np.testing.assert_array_equal(
        np.sort(np.concatenate([each.arrivals for each in trace.first(10).turns(3)])),
        trace.first(10).arrivals,
    )


def test_plans_travel_between_processes() -> None:
    """Plans are pickled, so that sweeps run on any executor."""
    plan = small()
    assert str(pickle.loads(pickle.dumps(plan))) == str(plan)


@pytest.mark.slow
def test_goodput_that_mlperf_published() -> None:
    """A fifth off in the median, and within two fifths of each row but one.

    What the limits of the scenario Server leave of the rate Offline is the queue's, and is within a
    twentieth. Both are of the scenario Interactive: an MI325X under vLLM 0.6, two years older than
    the kernels that stand for it, and B200s by 42 %.
    """
    from experiments.goodput import compare

    rows = list(compare())
    assert len(rows) >= 20
    errors = {row.row["id"]: max(row.errors, key=abs) for row in rows}
    assert {key for key, error in errors.items() if abs(error) > 0.4} == {"mlperf-v5.1-29"}
    assert median(abs(error) for row in rows for error in row.errors) < 0.21
    h100 = {row.scenario: row for row in rows if "H100-SXM-80GBx32" in row.row["system"]}
    measured = h100["Server"].measured / h100["Offline"].measured
    for server, offline in zip(h100["Server"].predicted, h100["Offline"].predicted, strict=True):
        assert server / offline == pytest.approx(measured, abs=0.05)


SEVERAL = {name: value for name, value in ASKED.items() if name != "software"} | {"pools": "mixed"}


@pytest.mark.slow
def test_several_machines_are_ranked_by_what_all_have() -> None:
    """Devices that nothing is expected of set the basis for all; each is as it is alone."""
    places, asked = [UNEXPECTED, "dgx-h100"], SEVERAL | IN_FP8 | {"price": "3 USD/hour"}
    mixed = plan_services("qwen-3-32b", places, **arguments_of(plan_service, asked))
    alone = [flatly(plan_service, "qwen-3-32b", machine, **asked) for machine in places]
    assert {plan.devices for plan in mixed.plans} == {plan.devices for plan in alone}
    assert mixed.ranked_by == "cost, what published peaks allow at best"
    least = [plan.least_devices for plan in mixed.plans]
    assert least == sorted(least)
    assert {row["basis"] for row in mixed.rows()} == {MEASURED, PEAKS}
    assert any("FP8 alone, 64: BOUND ONLY" in each for each in mixed.caveats)


def test_prices_rank_and_who_serves_nobody_is_told() -> None:
    prices = {"dgx-h100": "3 USD/hour", "dgx-h200": "1 USD/hour", "jetson-orin-nano": "1 USD/hour"}
    plans = plan_services(
        "qwen-3-32b", list(prices), **arguments_of(plan_service, {**SEVERAL, "price": prices})
    )
    assert plans.ranked_by == "cost, what is expected"
    costs = [plan.cost_per_token.m_as("USD/Mtoken") for plan in plans.plans]
    assert costs == sorted(costs)
    assert any("NVIDIA Jetson Orin Nano" in each for each in plans.caveats)
    assert len(plans.text().splitlines()) <= 20
    with pytest.raises(InputError, match="does not fit on TP1 of NVIDIA Jetson Orin Nano"):
        plan_services("qwen-3-32b", ["jetson-orin-nano"], **arguments_of(plan_service, SEVERAL))


def test_what_is_advised_where_memory_lacks_is_taken_and_fits() -> None:
    asked = (Load(0.01, prompt=1000, generated=200), Limits("9 s", "500 ms"))
    with pytest.raises(InputError, match="whose lengths differ") as refused:
        plan_service("phi-4", "v100", *asked)
    assert "It fits with weights fp8: " in str(refused.value)
    assert re.search(r"settings of vLLM .* that calc fit takes: utilization", str(refused.value))
    assert plan_service("phi-4", "v100", *asked, server=Server(weights="fp8")).devices == 1


def test_the_command_takes_several(command: Command) -> None:
    line = ["plan-service", "llama-3-8b", "h100,h200", "--rate", "5", "--prompt", "1000"]
    line += ["--generated", "200", "--ttft", "1 s", "--tpot", "20 token/s", "--pools", "mixed"]
    facts = command.facts(*line, "--price", "h100=3 USD/h,h200=4 USD/h")
    assert [row["rank"] for row in facts["rows"]] == [1, 2]
    assert "are of one machine" in command.refuses(*line, "--write", "vllm")
