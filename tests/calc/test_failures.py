"""Checkpoints and failures, and the fit of losses, against what others have published."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize_scalar

from calc import InputError, failures, quantity, runs, training

# Size, operations and tokens of models that are best for them [Hoffmann et al. 2022, table 3]; all
# rows as four accounts of the paper print them.
CHINCHILLA = [
    (400e6, 1.92e19, 8.0e9),
    (1e9, 1.21e20, 20.2e9),
    (10e9, 1.23e22, 205.1e9),
    (67e9, 5.76e23, 1.5e12),
    (175e9, 3.85e24, 3.7e12),
    (280e9, 9.90e24, 5.9e12),
    (520e9, 3.43e25, 11.0e12),
    (1e12, 1.27e26, 21.2e12),
    (10e12, 1.30e28, 216.2e12),
]


@pytest.mark.parametrize(("parameters", "operations", "tokens"), CHINCHILLA)
def test_compute_optimal_models_of_the_paper(
    parameters: float, operations: float, tokens: float
) -> None:
    """Twenty tokens a parameter, rounded from up to 22."""
    by_law = training.compute_optimal_tokens(parameters).m_as("token")
    assert by_law == pytest.approx(tokens, rel=0.12)
    size = training.compute_optimal_parameters(quantity(operations, "FLOP"))
    assert size.m_as("param") == pytest.approx(parameters, rel=0.06)


def test_chinchilla_beats_gopher_for_the_same_operations() -> None:
    """280 billion parameters and 300 billion tokens: Gopher's loss by the paper's fit is higher."""
    gopher = training.pretraining_loss("280B param", "300B token")
    chinchilla = training.pretraining_loss("70B param", "1.4T token")
    assert (gopher - chinchilla).magnitude == pytest.approx(0.0566, abs=0.001)
    assert chinchilla > quantity(1.69, "")


@pytest.mark.parametrize(
    "fit", [(1.69, 406.4, 0.34, 410.7, 0.28), (1.8172, 482.01, 0.3478, 2085.43, 0.3658)]
)
def test_least_work_for_a_loss_is_the_best_of_all_sizes(fit: tuple[float, ...]) -> None:
    """Searches over all models that reach the loss of 8B on 15T agree, in fits of two papers."""
    irreducible, by_size, alpha, by_tokens, beta = fit
    above = by_size / 8.03e9**alpha + by_tokens / 15e12**beta
    sizes = np.geomspace(8e9, 1e12, 200_001)
    left = above - by_size / sizes**alpha
    best = int(np.argmin(sizes * (by_tokens / left) ** (1 / beta)))
    size = training.least_work_parameters(above, by_size, alpha, beta)
    tokens = training.least_work_tokens(above, by_tokens, beta, alpha)
    assert size.m_as("param") == pytest.approx(sizes[best], rel=1e-3)
    assert tokens.m_as("token") == pytest.approx((by_tokens / left[best]) ** (1 / beta), rel=1e-3)
    loss = training.pretraining_loss(size, tokens, irreducible, by_size, alpha, by_tokens, beta)
    assert loss.magnitude == pytest.approx(irreducible + above)


@pytest.mark.parametrize(("failures", "minutes"), [("24 h", 117), ("6 h", 57), ("15 min", 9.1)])
def test_intervals_that_daly_published(failures: str, minutes: float) -> None:
    """Checkpoints of 5 min [Daly 2006, figures 3 to 5]."""
    interval = training.checkpoint_interval("5 min", failures).m_as("min")
    assert interval == pytest.approx(minutes, rel=0.006)


@given(st.floats(0.001, 0.3), st.floats(0, 1))
def test_the_interval_is_the_best_one(checkpoint: float, restart: float) -> None:
    """Held against a numerical search; in hours, a failure every hour."""

    def lost(interval: float) -> float:
        times = [quantity(each, "h") for each in (interval, checkpoint, restart, 1)]
        return 1 - training.goodput(*times).magnitude

    best = minimize_scalar(lost, bounds=(1e-4, 5), method="bounded").x
    by_law = training.checkpoint_interval(quantity(checkpoint, "h"), "1 h").m_as("h")
    assert by_law == pytest.approx(best, rel=0.02)


def test_first_order_where_failures_are_rare() -> None:
    rare = training.checkpoint_interval("1 s", "1000 day")
    assert rare / training.checkpoint_interval_first_order("1 s", "1000 day") == pytest.approx(
        1, abs=1e-3
    )
    assert training.checkpoint_interval("3 h", "1 h") == quantity("1 h")


def test_llama_3_lost_little_time_to_a_failure() -> None:
    """419 unexpected interruptions in 54 days and over 90 % of the time effective: that leaves less
    than 19 minutes for each, so checkpoints of seconds and restarts of ten minutes fit, and
    restarts of half an hour do not."""
    run = runs.get("llama-3-1-405b")
    between = run.observed_time / run.interruptions
    interval = training.checkpoint_interval("10 s", between)
    effective = run.effective_time
    assert training.goodput(interval, "10 s", "10 min", between) > effective
    assert training.goodput(interval, "10 s", "30 min", between) < effective


def test_the_slowest_of_many_as_simulated() -> None:
    draw = np.random.default_rng(20261122)
    for devices in (1, 8, 512):
        worst = draw.normal(1.0, 0.05, (4000, devices)).max(axis=1)
        expected = failures.slowest("1 s", "50 ms", devices).m_as("s")
        assert expected == pytest.approx(worst.mean(), abs=4 * worst.std() / 4000**0.5)
    assert failures.slowest("1 s", "50 ms", 1).m_as("s") == pytest.approx(1, abs=1e-9)


def test_spares_as_simulated() -> None:
    draw = np.random.default_rng(20261122)
    mean = 16384 * 3 / (6 * 365.2425)
    under_repair = draw.poisson(mean, 400_000)
    spares = failures.spares_needed(16384, "6 year", "3 day")
    assert (under_repair > spares).mean() < 0.01 < (under_repair > spares - 1).mean()


def test_what_a_group_shares_adds_its_failures() -> None:
    alone = training.time_between_failures("6 year", 1024)
    never = failures.time_between_interruptions("6 year", 1024, "1e12 year", 64)
    assert never.m_as("h") == pytest.approx(alone.m_as("h"), rel=1e-9)
    draw = np.random.default_rng(20261122)  # first of 1024 devices and of 16 groups
    first = np.minimum(
        draw.exponential(6, (3000, 1024)).min(axis=1), draw.exponential(2, (3000, 16)).min(axis=1)
    )
    interval = failures.time_between_interruptions("6 year", 1024, "2 year", 64).m_as("year")
    assert interval == pytest.approx(first.mean(), rel=0.08)


def test_rates_of_two_fleets_agree_within_a_factor_of_two() -> None:
    """All interruptions of 16 384 H100s, and the failed GPUs of 504 B200s [lablup2026detection]."""
    run = runs.get("llama-3-1-405b")
    of_an_h100 = (run.observed_time / run.interruptions * run.devices).m_as("year")
    of_a_b200 = 504 * 55 / 10 / 365.2425
    assert 0.5 < of_a_b200 / of_an_h100 < 2


def test_mistakes_of_failures_are_one_sentence() -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        failures.spares_needed(8, "1 year", "1 day", 1.5)
    with pytest.raises(InputError, match="more than can be spared"):
        failures.spares_needed(10**9, "1 s", "1 year")
    with pytest.raises(InputError, match="whole number from 1"):
        failures.slowest("1 s", "1 ms", 0)
    with pytest.raises(InputError, match="must be a number"):
        failures.slowest("1 s", "-1 ms", 4)
