"""Rollouts: the longest answer against a simulation, steps and updates against measured ones."""

from __future__ import annotations

import random

import pytest

from calc import InputError, Job, Layout, quantity, rollouts
from calc.laws.rollouts import Lengths
from calc.published import rollout_rows as published
from calc.steps import reinforcement

SEED = 20261122


@pytest.mark.parametrize(("average", "limit", "answers"), [(400, 4096, 64), (3000, 4096, 16)])
def test_the_longest_of_a_batch_as_simulated(average: float, limit: float, answers: int) -> None:
    draw, lengths = random.Random(SEED), Lengths(average, limit)
    trials = 4000
    batches = [
        [min(draw.expovariate(1 / lengths.scale), limit) for _ in range(answers)]
        for _ in range(trials)
    ]
    longest = sum(map(max, batches)) / trials
    mean = sum(map(sum, batches)) / trials / answers
    assert lengths.longest(answers) == pytest.approx(longest, rel=0.02)
    assert mean == pytest.approx(average, rel=0.02)


@pytest.mark.parametrize("limit", [10, 4096, 1e6])
@pytest.mark.parametrize("share", [0.1001, 0.5, 0.9, 0.999, 1 - 1e-6])
def test_answers_that_are_cut_have_the_average_that_was_asked(share: float, limit: float) -> None:
    """∫ e^(−t / μ) dt up to the limit, whether few or nearly all of them reach it."""
    lengths = Lengths(share * limit, limit)
    step = limit / 5000
    mean = step * sum(lengths.unfinished((each + 0.5) * step) for each in range(5000))
    assert mean == pytest.approx(share * limit, rel=1e-6)


def test_the_longest_of_a_sample_as_simulated() -> None:
    draw = random.Random(SEED)
    sample = [draw.lognormvariate(6, 1) for _ in range(200)]
    trials = [max(draw.choices(sample, k=32)) for _ in range(20000)]
    longest = rollouts.expected_maximum(sample, 32)
    assert longest == pytest.approx(sum(trials) / len(trials), rel=0.02)
    assert rollouts.expected_maximum(sample, 1) == pytest.approx(sum(sample) / 200, rel=1e-12)


def test_one_answer_is_of_the_average_length() -> None:
    lengths = Lengths(700, 1536)
    assert lengths.longest(1) == pytest.approx(700, rel=1e-9)
    assert lengths.longest(10**6) == pytest.approx(1536, rel=1e-9)


def test_equal_lengths_leave_no_tail() -> None:
    step = reinforcement.step(Job.of("llama-3-8b", "dgx-h100"), Lengths(4090, 4096), 8)
    assert step.tail.m_as("") == pytest.approx(0, abs=0.02)


def test_a_step_waits_for_the_longest_answer_of_all_engines() -> None:
    """Drawn at random: eight engines of 64 answers, each decoding until its last one ends."""
    draw, lengths = random.Random(SEED), Lengths(1500, 16384)
    weights, token, rate = 15.13619e9, 147456, 3.35e12  # Qwen3 8B in BF16 on an H100

    def engine() -> float:
        rest = [min(draw.expovariate(1 / lengths.scale), 16384) for _ in range(64)]
        cached = sum(each * (200 + each / 2) for each in rest) * token
        return (max(rest) * weights + cached) / rate

    steps = [max(engine() for _ in range(8)) for _ in range(400)]
    job = Job.of("qwen-3-8b", "dgx-h100", Layout(data=8))
    step = reinforcement.step(job, lengths, 512, measured=False)
    assert step.generation.m_as("s") == pytest.approx(sum(steps) / len(steps), rel=0.03)


def test_bounds_of_steps_hold_and_expectations_are_too_short() -> None:
    errors = []
    for each in published.steps():
        assert each.bound.total < each.time, each.id
        errors.append(each.error.m_as(""))
    assert len(errors) == 10
    assert max(errors) < 0  # what engines and trainers do beside kernels is not counted
    assert min(errors) > -0.7


def test_updates_of_weights_as_measured() -> None:
    """The rate of the first row predicts all others within a quarter, on 8 devices or 256."""
    first, *others = published.updates()
    assert len(others) == 5
    for each in others:
        time = rollouts.weight_update_time(each.weights, first.rate)
        assert abs((time / each.time).m_as("") - 1) < 0.25, each.id


def test_point_to_point_stays_above_its_bound() -> None:
    # Kimi K2 in FP8 for 128 GPUs in 1.3 s; a slice of sixteen at 50 GB/s is the least
    assert rollouts.weight_update_time("1026 GB", "50 GB/s", 16) < quantity("1.3 s")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Lengths(5000, 4096), "must be below the limit"),
        (lambda: Lengths(float("nan"), 4096), "average must be a number"),
        (lambda: Lengths(-1, 4096), "average must be a number"),
        (lambda: rollouts.expected_maximum([], 4), "at least one length"),
        (lambda: rollouts.expected_maximum([1], 0), "whole number from 1"),
        (lambda: Lengths(9, 99, prompt=-1), "prompt must be a number"),
    ],
)
def test_a_mistake_is_one_sentence(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()  # type: ignore[operator]
