"""Sessions, the hashes of traces, and the caches in which replicas find prefixes again."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from calc import plan_service
from calc.core.errors import InputError
from calc.core.records import DATA
from calc.laws.caches import PrefixCache
from calc.planning import ServicePlan
from calc.planning.service import read_trace
from calc.planning.service.prefixes import Sessions, routed, unlimited
from tests.calc.command import Command
from tests.calc.flatly import flatly

SERVICE: dict[str, Any] = {
    "rate": 20,
    "prompt": 300,
    "generated": 300,
    "ttft": "1 s",
    "tpot": "50 ms",
    "software": "vllm",
    "pools": "mixed",
    "percentile": 95,
    "requests": 300,
}
LINES = [  # times in ms, as Mooncake's; 512 tokens of a block
    {"timestamp": 0, "input_length": 1500, "output_length": 9, "hash_ids": [1, 2, 3]},
    {"timestamp": 500, "input_length": 1536, "output_length": 9, "hash_ids": [1, 2, 4]},
    {"timestamp": 2000, "input_length": 1000, "output_length": 9, "hash_ids": [5, 6]},
    {"timestamp": 2500, "input_length": 1024, "output_length": 9, "hash_ids": [1, 2]},
]


def trace_file(folder: Path, lines: list[dict[str, Any]]) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


@cache
def planned(**more: Any) -> ServicePlan:
    return flatly(plan_service, "llama-3-1-8b", "h100", **(SERVICE | more))


def found(plan: ServicePlan) -> tuple[float, ...]:
    hits = plan.design.pools[0].found
    assert hits is not None
    return hits


def test_hits_of_mooncakes_traces_are_within_five_points_of_its_paper() -> None:
    """One cache of some size has the hits of the paper's table 2 and figure 9.

    The ten nodes of its figure 10 lie between replicas that take turns and those that are sent what
    they have: Mooncake's scheduler moves requests away from nodes whose queue is long.
    """
    with (DATA / "measured" / "prefix_hits_published.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    one = [row for row in rows if row["replicas"] == "1"]
    assert len(one) == 4
    for row in one:
        assert abs(float(row["hit_rate"]) - float(row["published"])) < 0.05, row
    for trace in ("conversation", "synthetic"):
        ten = [row for row in rows if row["replicas"] == "10" and row["trace"] == trace]
        turns, prefix = sorted(float(row["hit_rate"]) for row in ten)
        assert turns < float(ten[0]["published"]) < prefix


def test_blocks_fall_from_tier_to_tier_and_come_back() -> None:
    cache = PrefixCache((2, 1))
    assert cache.find((1, 2, 3)) == (0, 0)  # 1 has fallen to the second tier
    assert cache.find((1, 9)) == (0, 1)  # and takes 2 there in its turn: 3 is left in the first
    assert cache.find((3,)) == (0, 1)
    assert cache.find((2,)) == (0, 0)  # which fell out


def test_a_trace_with_hashes_finds_what_they_say(tmp_path: Path) -> None:
    trace = read_trace(trace_file(tmp_path, LINES))
    assert (trace.block, trace.arrivals.tolist()) == (512, [0.0, 0.5, 2.0, 2.5])
    assert unlimited(trace).cached.tolist() == [0, 1024, 0, 1023]  # the last token is read
    ((small, tiers),) = routed(trace, 1, (1, 1), "prefix")
    assert small.cached.tolist() == [0, 0, 0, 0]  # each prompt pushes its own beginning out
    assert tiers.tolist() == [[0, 0]] * 4
    ((_, tiers),) = routed(trace, 1, (3, 3), "prefix")
    assert tiers.tolist() == [[0, 0], [1024, 0], [0, 0], [0, 1023]]


def test_routing_by_prefix_sends_a_session_back_to_its_replica(tmp_path: Path) -> None:
    trace = read_trace(trace_file(tmp_path, LINES))
    hits = {
        routing: sum(int(mine.cached.sum()) for mine, _ in routed(trace, 2, (10,), routing))
        for routing in ("prefix", "turns")
    }
    assert hits == {"prefix": 1024 + 1023, "turns": 1023}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("nonsense", "is not valid JSON: Expecting value: line 3 column 1"),
        ('{"timestamp": 900, "inp', "bad.jsonl: ends in the middle of line 3$"),
        ("[900, 9, 1]", "line 3: is no object of JSON"),
        ('{"timestamp": 900, "input_length": 9, "output_length": 1}', "line 3: hash_ids are in"),
        (
            '{"timestamp": 900, "input_length": 9, "output_length": 1, "hash_ids": [1, 2]}',
            "line 3: 2 hash_ids do not fit its 9 tokens in blocks of 512",
        ),
        ('{"timestamp": 900, "output_length": 1, "hash_ids": [1]}', "needs a column prompt"),
    ],
)
def test_a_bad_line_is_one_sentence(line: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join([*map(json.dumps, LINES[:2]), line]), encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        read_trace(path)


def test_sessions_grow_and_find_all_that_was_said() -> None:
    """A turn after n others finds n prompts and answers and what is shared, counted by hand."""
    sessions = Sessions(5, 6, 20, 1000, 200, 300, 0.0, 0.0, 10**6, seed=1)
    trace = unlimited(sessions.draw(5, 2000))
    assert len(trace) == 2000
    assert trace.rate == pytest.approx(5, rel=0.01)
    had = (trace.prompts - 1200) // 500
    assert (trace.prompts == 1200 + 500 * had).all()
    assert had.mean() == pytest.approx(5, rel=0.15)  # of geometric sessions, mean turns less one
    said = 1000 + 500 * had
    late = trace.cached[had > 0]
    assert ((late <= said[had > 0]) & (late > said[had > 0] - 2 * 256)).mean() > 0.9


@pytest.mark.slow
def test_more_room_finds_more_and_needs_no_more_devices() -> None:
    sessions = {"turns": 6.0, "shared": 2000, "think": "10 s"}
    small, host = planned(**sessions), planned(**sessions, host_cache="256 GB")
    assert found(small)[1:] == (0, 0)
    assert found(host)[1] > 0
    assert sum(found(host)) > sum(found(small))
    assert host.devices <= small.devices < planned(prompt=6000).devices


def test_room_without_content_and_sessions_of_a_trace_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found by content: give turns or shared, or a trace of"):
        planned(host_cache="256 GB")
    path = trace_file(tmp_path, LINES)
    asked = {**SERVICE, "trace": path, "prompt": None, "generated": None, "turns": 3}
    with pytest.raises(InputError, match="a trace is given"):
        flatly(plan_service, "llama-3-1-8b", "h100", **asked)
    with pytest.raises(InputError, match="do not fit a context of 8192"):
        flatly(plan_service, "llama-3-8b", "h100", **(SERVICE | {"turns": 3, "shared": 8192}))


def test_the_command_line_takes_a_trace_with_hashes(tmp_path: Path, command: Command) -> None:
    path = trace_file(tmp_path, LINES)
    options = [
        "--ttft=1 s",
        "--tpot=50 ms",
        "--pools=mixed",
        "--software=vllm",
        "--host-cache=100 GB",
    ]
    facts = command.facts("plan-service", "llama-3-1-8b", "h100", f"--trace={path}", *options)
    assert any("tokens of prompts 40.5% are found again" in line for line in facts["assumptions"])


def test_a_copy_is_simulated_for_as_many_requests_as_are_asked_for() -> None:
    """Beginning and end, which are not steady, are left out of what is counted."""
    plan = planned(turns=3)
    assert len(plan.design.pools[0].run.arrivals) > 0.8 * len(plan.service.trace)


# --- agents ---

AGENTS: dict[str, Any] = {"turns": 20.0, "think": "15 s", "shared": 8000, "prompt": 1400}


def test_agents_at_work_are_those_of_littles_law() -> None:
    """Sessions that are going at a time, counted one by one in what is drawn."""
    sessions = Sessions(8, 20, 15, 8000, 1400, 100, 0.0, 0.0, 10**6, seed=2)
    assert sessions.agents(8) == pytest.approx(8 * 15 * 19 / 20)
    trace = sessions.draw(8, 6000)
    ends: dict[int, list[float]] = {}
    assert trace.blocks is not None
    for time, names in zip(trace.arrivals.tolist(), trace.blocks, strict=True):
        ends.setdefault(names[-1] >> 20, []).append(time)
    last = trace.arrivals[-1]
    middle = [last * share / 20 for share in range(4, 15)]
    going = [sum(turns[0] <= at < turns[-1] for turns in ends.values()) for at in middle]
    assert sum(going) / len(going) == pytest.approx(sessions.agents(8), rel=0.1)


def test_agents_are_asked_for_in_place_of_a_rate() -> None:
    by_agents = planned(**AGENTS, rate=None, agents=57.0, subagents=1.0)
    rate = 57 * 2 / (15 * 19 / 20)
    assert by_agents.service.rate == pytest.approx(rate)
    assert by_agents.agents == pytest.approx(57)
    assert by_agents.most_agents == pytest.approx(57 * by_agents.design.most / rate)
    assert by_agents.devices == planned(**AGENTS, rate=rate).devices
    assert "agents at once" in by_agents.text()
    assert planned().agents is None


@pytest.mark.parametrize(
    "more", [{"rate": 5, "turns": 9.0}, {"rate": None, "turns": 1.0}, {"rate": None, "agents": 0}]
)
def test_agents_beside_a_rate_or_without_turns_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="agents"):
        planned(**({"agents": 9.0} | more))


def test_a_published_session_finds_what_was_said_before() -> None:
    """Turns of a coding agent (vllm-mlx, pull request 46), its tools' results a turn each.

    The answers, which are found too, are not printed: by prompts alone a little less is found.
    """
    prompts = [10351, 11871, 13370, 14900, 16426, 17995, 18379, 18537, 20114, 21894]
    cached = [10457, 11955, 13485, 15010, 16553, 18081, 18493, 18609, 20378]
    off = [before / hit - 1 for before, hit in zip(prompts[:-1], cached, strict=True)]
    sessions = Sessions(1, 20, 15, 0, 1400, 100, 0.0, 0.0, 10**6, seed=0)
    caches = PrefixCache((10**6,))
    for turn, prompt in enumerate(prompts):
        names = sessions._names(1, prompt)
        tokens = 256 * sum(caches.find(names, names))
        if turn:
            assert tokens == prompts[turn - 1] // 256 * 256
            assert -0.04 < tokens / cached[turn - 1] - 1 <= 0
    assert len(off) == 9
    assert sorted(off)[4] == pytest.approx(-0.0078, abs=0.001)
