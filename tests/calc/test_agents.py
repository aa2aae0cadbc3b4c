"""Coding agents of a node, held to a published benchmark of replayed sessions.

InferenceX replays recorded sessions with their pauses and sub-agents (AgentX). Its pull request
2268 has GLM-5.2 in NVFP4 on eight B300s by SGLang, TP8, caches in FP8, mem-fraction-static 0.85: by
sessions at once, written tokens a second of a user (median), and the share of prompts found in the
devices' memory. A comment of issue 1632 counts what the sessions are: requests by the tokens of
their context, and which share of them sub-agents send.
"""

from __future__ import annotations

from statistics import median

import numpy
import pytest

from calc import device_memory, plan
from calc.derivations.service_under_load import AgentReplay, replayed
from calc.planning.service.prefixes import BLOCK, Sessions, routed
from calc.steps.held_memory import Memory

PACES = {1: 137.3, 2: 123.2, 4: 104.6, 8: 87.8}
FOUND = {1: 0.98, 2: 0.98, 4: 0.98, 8: 0.97, 16: 0.39, 32: 0.05}
REQUESTS = {32: 13_624, 96: 30_622, 192: 34_509, 384: 23_189, 768: 10_882, 1024: 428}
"""Requests by the middle of their class of contexts, in Ki tokens."""
OF_SUBAGENTS = 27_504 / 85_750  # requests of sub-agents for one of the main agent
TURNS = 85_750 / 472  # of a session
CONTEXT = round(1024 * sum(k * n for k, n in REQUESTS.items()) / sum(REQUESTS.values()))
STARTED = {"software": "sglang", "weights": "nvfp4", "kv": "fp8", "tensor": 8}


def held() -> Memory:
    return device_memory.fit("glm-5-2", "b300", utilization=0.85, context=CONTEXT, **STARTED)  # type: ignore[arg-type]


def test_a_users_pace_is_as_expected() -> None:
    """Paces lie in the printed range, 5 to 17 % below what is expected: prompts come between."""
    off = []
    for sessions, pace in PACES.items():
        planned = plan("glm-5-2", "b300", batch=sessions, prompt=CONTEXT, generated=700, **STARTED)
        assert planned.expected is not None
        around = planned.interval("time_per_token")
        assert around is not None
        low, high = around
        assert low.m_as("s") < 1 / pace < high.m_as("s"), sessions
        off.append(planned.expected.time_per_token.m_as("s") * pace - 1)
    assert all(-0.18 < each < -0.04 for each in off)
    assert median(off) == pytest.approx(-0.14, abs=0.02)


def test_the_sessions_that_memory_keeps_are_those_whose_prefixes_were_found() -> None:
    """Prefixes of 8 were found, of 16 no more; 12 are expected to have a place."""
    kept = held().sequences / (1 + OF_SUBAGENTS)
    most, fewer = (
        [sessions for sessions, share in FOUND.items() if (share > 0.9) == stays]
        for stays in (True, False)
    )
    assert max(most) < kept < min(fewer)


def test_the_chapter_quotes_the_same_benchmark() -> None:
    assert (AgentReplay.paces, AgentReplay.requests) == (PACES, REQUESTS)
    assert (AgentReplay.few, AgentReplay.many) == (min(PACES), max(PACES))
    assert AgentReplay.beside == OF_SUBAGENTS
    assert FOUND[AgentReplay.lost] < 0.5 < FOUND[AgentReplay.many]
    paces = [replayed(sessions)[0] * pace - 1 for sessions, pace in PACES.items()]
    assert replayed(8)[1] == held().sequences / (1 + OF_SUBAGENTS)
    assert AgentReplay.least.m_as("%") == pytest.approx(-100 * max(paces))
    assert AgentReplay.most.m_as("%") == pytest.approx(-100 * min(paces))


@pytest.mark.slow
@pytest.mark.parametrize("sessions", [8, pytest.param(32, marks=pytest.mark.nightly)])
def test_a_replay_finds_what_was_found(sessions: int) -> None:
    """A replay of drawn sessions finds nearly all up to 8 at once, and not half of it of 32."""
    each, shared, answer = (CONTEXT - 20_000) / TURNS, 20_000, 700.0
    drawn = Sessions(
        rate=1.0, turns=TURNS, think=20.0, shared=shared, prompt=each - answer, generated=answer,
        prompt_spread=0.0, generated_spread=0.0, context=1_000_000, seed=1, beside=OF_SUBAGENTS,
    )  # fmt: skip
    rate = sessions / drawn.agents(1.0)
    ((served, _),) = routed(drawn.draw(rate, 1500), 1, (held().tokens // BLOCK,), "prefix")
    share = float(numpy.sum(served.cached) / numpy.sum(served.prompts))
    assert (share > 0.95) == (FOUND[sessions] > 0.95)
    assert (share < 0.5) == (FOUND[sessions] < 0.5)
