"""Self-host or API: bills by hand, and the load from which devices cost less."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from calc.catalog import apis, models
from calc.core.errors import InputError
from calc.core.units import quantity
from calc.planning import BreakEven, break_even
from tests.calc.command import Command

SECOND = {  # typed once more from the tables of prices: read, cached and written, USD/Mtoken
    "groq-gpt-oss-120b": (0.15, 0.075, 0.60),
    "moonshot-kimi-k2-6": (0.95, 0.16, 4.0),
    "together-glm-5-2": (1.40, 0.26, 4.40),
    "openai-gpt-5-5": (5.0, 0.50, 30.0),
    "anthropic-claude-sonnet-4-6": (3.0, 0.30, 15.0),
    "google-gemini-3-1-pro": (2.0, 0.20, 12.0),
    "deepseek-v4-pro": (1.32, 0.044, 3.96),
    "cerebras-llama-3-3-70b": (0.85, 0.85, 1.20),
}


@pytest.fixture(scope="module")
def answer() -> BreakEven:
    asked = {"price": "2.5 USD/hour", "prompt": 2000, "generated": 500, "hit_rate": 0.5}
    return break_even("gpt-oss-120b", "h100", **asked)  # type: ignore[arg-type]


def test_prices_are_typed_as_they_were_read() -> None:
    assert len(apis.names()) >= 25
    for key, prices in SECOND.items():
        api = apis.get(key)
        read = api.read, api.cached, api.written
        assert tuple(price.m_as("USD/Mtoken") for price in read) == pytest.approx(prices), key
    for key in apis.names():
        api = apis.get(key)
        assert api.cached <= api.read <= api.written, key
        assert not api.model or models.get(api.model).key == api.model
    with pytest.raises(InputError, match="there is no price of an API 'gpt-9'"):
        apis.get("gpt-9")


def test_a_bill_is_that_of_its_tokens(answer: BreakEven) -> None:
    bill = answer.bill(apis.get("groq-gpt-oss-120b")).m_as("USD/request")
    prompt, cached, written = (answer.plan.service.demand.prompt, 0.5, 500)
    by_hand = prompt * (0.5 * 0.15 + cached * 0.075) / 1e6 + written * 0.6 / 1e6
    assert bill == pytest.approx(by_hand, rel=0.01)  # drawn lengths have their means nearly


def test_devices_cost_as_much_at_the_load_that_is_named(answer: BreakEven) -> None:
    for offer in answer.offers:
        load_and_pool = answer.load(offer)
        assert load_and_pool is not None
        load, pool = load_and_pool
        paid = 2.5 / 3600 * pool.size
        assert (load * answer.bill(offer)).m_as("USD/s") == pytest.approx(paid)
        assert load.m_as("request/s") <= pool.most


def test_what_is_never_cheaper_is_said_and_an_interval_is_around_it() -> None:
    asked = {"price": "2.5 USD/hour", "prompt": 2000, "generated": 500}
    dear = break_even("llama-3-1-8b", "h100", **asked)  # type: ignore[arg-type]
    novita = dear.offers[0]
    assert dear.load(novita) is None
    expected, low, high = dear.cheapest
    assert low < expected < high
    assert dear.bill(novita) < expected
    row = dear.rows()[0]
    assert (row["load"], row["load_if_slow"]) == (None, None)
    assert (row["load_if_fast"] is not None) == (dear.bill(novita) >= low)
    assert "never" in dear.text()


def test_a_model_without_prices_is_one_sentence() -> None:
    asked = {"price": "2.5 USD/hour", "prompt": 200, "generated": 50}
    with pytest.raises(InputError, match="no price of an API of Llama 3 8B is in the data: name"):
        break_even("llama-3-8b", "h100", **asked)  # type: ignore[arg-type]


def test_the_command_line_compares_with_named_prices(command: Command) -> None:
    options = ["--price=2.5 USD/hour", "--prompt=2000", "--generated=500"]
    named = "--api=openai-gpt-5-4-mini, groq-gpt-oss-20b"
    rows = command.facts("break-even", "gpt-oss-20b", "h100", *options, named)["rows"]
    assert [row["provider"] for row in rows] == ["OpenAI", "Groq"]
    assert rows[0]["load"]["value"] < rows[1]["load"]["value"]


def test_copies_of_every_size_take_a_load_together(answer: BreakEven) -> None:
    """The fewest devices are those of the best of all hands of up to three copies."""
    hands = [
        (sum(pool.size for pool in hand), sum(pool.most for pool in hand))
        for count in (1, 2, 3)
        for hand in combinations_with_replacement(answer.pools, count)
    ]
    for load in (0.2, 1.0, 5.0, 13.0, 40.0):
        for factor in answer.factors:
            fewest = min(size for size, taken in hands if factor * taken >= load)
            assert answer.devices(quantity(load, "request/s"), factor) == fewest, (load, factor)
    assert answer.devices("0 request/s") == 0


def test_a_copy_of_several_devices_is_the_least_and_what_has_no_count_is_refused() -> None:
    large = break_even("llama-3-3-70b", "h100", price="2.5 USD/hour", prompt=2000, generated=500)
    least = min(pool.size for pool in large.pools)
    assert least > 1
    assert large.devices("1 request/day") == least
    with pytest.raises(InputError, match="load"):
        large.devices("-1 request/s")
    with pytest.raises(InputError, match="factor"):
        large.devices("1 request/s", factor=0)
