"""Comparisons: against plans one by one, fronts by brute force, prices that level, refusals."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest

from calc import InputError, compare, device_memory, plan
from calc.catalog.intervals import MEASURED, PEAKS
from calc.planning.choice import EXPECTED, UPPER
from calc.planning.comparing.comparison import Comparison
from calc.planning.drawing import INK, write_drawing
from tests.calc.command import Command
from tests.calc.unexpected import IN_FP8, NO_RATE, UNEXPECTED

ASKED: dict[str, Any] = {"prompt": 1000, "generated": 200}
BATCHES = numpy.arange(1, 800)
BOUNDED = ASKED | IN_FP8
PRICES = {"dgx-h100": "3 USD/hour", UNEXPECTED: "2 USD/hour"}


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare("llama-3-70b", ["dgx-h100", "dgx-h200", "t4"], **ASKED, price="3 USD/hour")


@pytest.fixture(scope="module")
def mixed() -> Comparison:
    """Nothing is expected of one of them, so that the bounds of both are compared."""
    return compare("llama-3-70b", list(PRICES), **BOUNDED, price=PRICES)


def test_each_entry_is_the_plan_of_its_devices_and_batch(comparison: Comparison) -> None:
    for entry in comparison.planned:
        mine = comparison.plan_of(entry)
        same = plan(
            "llama-3-70b",
            entry.machine,
            batch=mine.batch,
            devices=mine.devices,
            price="3 USD/hour",
            **ASKED,
        )
        assert same.expected is not None
        assert comparison.value(mine, "cost_per_token") == same.expected.cost_per_token
        assert mine.time_per_token == same.time_per_token


def test_each_machine_has_the_cheapest_of_its_layouts_and_batches(comparison: Comparison) -> None:
    """No number of devices of one domain, and no batch that doubles, costs less."""
    for entry in comparison.planned:
        mine = comparison.value(comparison.plan_of(entry), "cost_per_token")
        for count in (1, 2, 4, 8):
            one = plan("llama-3-70b", entry.machine, devices=count, batch=1, **ASKED)
            batches = [2**power for power in range(10) if 2**power <= one.largest_batch.magnitude]
            if batches:
                every = plan(
                    "llama-3-70b",
                    entry.machine,
                    devices=count,
                    batch=batches,
                    price="3 USD/hour",
                    **ASKED,
                )
                assert every.expected is not None
                assert (
                    mine.m_as("USD/token") <= every.expected.cost_per_token.m_as("USD/token").min()
                )


def test_both_of_two_are_printed() -> None:
    """However long what stands above them is, and how wide their table."""
    beside = compare("phi-4-mini", ["rtx-a5000", "rtx-4080"], **ASKED, weights="fp8")
    printed = str(beside)
    assert all(f"\n{rank}  rtx-" in printed for rank in (1, 2))
    assert len(printed.splitlines()) <= 20


def test_two_h100_and_two_h200_are_two_each() -> None:
    """Said devices are taken: with two each, a token costs nearly the same on both."""
    pair = compare(
        "llama-3-70b", ["dgx-h100", "dgx-h200"], **ASKED, price="3 USD/hour", devices=2, by="cost"
    )
    assert [pair.plan_of(entry).devices for entry in pair.entries] == [2, 2]
    mixed = compare("llama-3-70b", ["dgx-h100", "dgx-h200"], **ASKED, devices={"dgx-h100": 8})
    held = {entry.machine.key: mixed.plan_of(entry).devices for entry in mixed.entries}
    assert held["dgx-h100"] == 8


def test_a_mixture_shares_out_its_experts_where_that_is_better() -> None:
    asked: dict[str, Any] = {"tpot": "50 ms", "devices": 8}
    both = compare("deepseek-r1", ["dgx-b200", "dgx-h200"], **ASKED, **asked)
    for entry in both.entries:
        mine = both.plan_of(entry)
        assert mine.devices == 8
        assert mine.expected is not None
        assert mine.expected.time_per_token.m_as("ms") <= 50
        cut = plan("deepseek-r1", entry.machine, devices=8, batch=mine.batch, **ASKED)
        assert mine.copies > 1
        if cut.expected is None:  # copies of its caches do not fit
            assert not cut.fits
            continue
        assert mine.expected.throughput > cut.expected.throughput


def test_users_are_compared_as_they_are_planned() -> None:
    many = compare("llama-3-70b", "dgx-h100", **ASKED, users=32, devices=8, by="tpot")
    best = many.best
    assert best.expected is not None
    for tensor, copies in ((8, 1), (4, 2), (2, 4)):
        one = plan("llama-3-70b", "h100", users=32, tensor=tensor, copies=copies, **ASKED).expected
        assert one is not None
        assert best.expected.time_per_token <= one.time_per_token


def test_a_layout_that_nothing_allows_says_which_are() -> None:
    with pytest.raises(InputError, match=r"allow no layout with tensor=3; .* TP1, TP2, TP4, TP8"):
        compare("llama-3-70b", "dgx-h100", **ASKED, tensor=3)


@pytest.mark.parametrize(
    ("tpot", "ttft"), [(40.0, 4000.0), (12.0, 9000.0), (30.0, 300.0), (5.0, 100.0), (3.0, 50.0)]
)
def test_the_best_batch_is_the_largest_that_keeps_the_limits(tpot: float, ttft: float) -> None:
    """Bounds, which rise with the batch, decide as every batch planned at once would."""
    limits = {"tpot": f"{tpot} ms", "ttft": f"{ttft} ms"}
    [entry] = compare("llama-3-70b", UNEXPECTED, **BOUNDED, **limits).entries
    best: dict[int, tuple[float, int]] = {}
    for count in (1, 2, 4, 8, 16, 32, 64):
        every = plan("llama-3-70b", UNEXPECTED, batch=BATCHES, devices=count, **BOUNDED)
        kept = (
            every.fits
            & (every.time_per_token.upper.m_as("ms") <= tpot)
            & (every.time_to_first_token.upper.m_as("ms") <= ttft)
        )
        if kept.any():
            taken = count / every.throughput.lower.m_as("token/s")[kept]
            best[count] = float(taken.min()), int(BATCHES[kept][taken.argmin()])
    if not best:
        assert entry.reason.startswith("cannot keep")
        return
    count = min(best, key=lambda devices: best[devices])
    assert (entry.curve[-1].devices, entry.curve[-1].batch) == (count, best[count][1])


def test_what_does_not_fit_says_by_how_much(comparison: Comparison) -> None:
    """The refusal says what `fit` says of the same start, beside caches of 1 200 tokens."""
    last = comparison.entries[-1]
    memory = device_memory.fit("llama-3-70b", "t4", context=1200, tensor=4, stages=2)
    assert memory.lacks is not None
    lacking = f"{memory.lacks.missing.m_as('GiB'):.4g} GiB"
    assert last.machine.key == "t4"
    assert last.reason == (
        f"does not fit: {lacking} too little on each of 8 devices as TP4 PP2, where vLLM may use"
        f" {memory.room}"
    )
    assert comparison.rows()[-1]["rank"] is None
    assert last.reason in " ".join(str(comparison).split())
    with pytest.raises(InputError, match="Llama 3 70B on NVIDIA T4 does not fit"):
        comparison.plan_of(last)


def test_a_limit_that_nothing_keeps_says_the_best_that_can_be_had() -> None:
    [entry] = compare("llama-3-70b", "dgx-h100", **ASKED, tpot="3 ms").entries
    times = {}
    for count in (2, 4, 8, 16, 32, 64):
        one = plan("llama-3-70b", "dgx-h100", devices=count, **ASKED).expected
        assert one is not None
        times[count] = one.time_per_token.to("ms")
    least = min(times, key=lambda each: times[each])
    assert entry.reason == (
        f"cannot keep tpot of 3 ms: tpot is {times[least]} at least, on {least} devices"
    )


def test_the_front_by_brute_force(mixed: Comparison) -> None:
    points = [(each, plan) for each in mixed.planned for plan in each.curve]
    for entry, one in points:
        beaten = any(
            mixed.price(other) <= mixed.price(one)
            and mixed.latency(other) <= mixed.latency(one)
            and other is not one
            for _, other in points
        )
        assert (one in mixed.front.get(entry, ())) is not beaten


def test_ranks_fall_in_what_is_asked_for() -> None:
    places = [*PRICES, "gb200-nvl72"]
    for by, name, sign in (("cost", "cost_per_token", 1), ("throughput", "throughput", -1)):
        asked = compare("llama-3-70b", places, **BOUNDED, price="3 USD/h", by=by)
        values = [sign * asked.value(asked.plan_of(each), name) for each in asked.planned]
        assert all(one <= next_ for one, next_ in pairwise(values))


def test_what_has_no_price_stands_behind_and_says_so() -> None:
    asked = compare("llama-3-70b", ["gb200-nvl72", *PRICES], **BOUNDED, price=PRICES)
    assert [each.machine.key for each in asked.entries][-1] == "gb200-nvl72"
    assert any(each.startswith("NVIDIA GB200 NVL72: no cost is known") for each in asked.caveats)
    assert asked.by == "cost"
    assert compare("llama-3-8b", "h100", **ASKED).by == "energy"


def test_a_bound_is_never_held_against_an_expectation(
    comparison: Comparison, mixed: Comparison
) -> None:
    assert (comparison.basis, mixed.basis) == (EXPECTED, UPPER)
    assert any(
        each.startswith("FP8 alone, 64: BOUND ONLY") and NO_RATE in each for each in mixed.caveats
    )
    both = compare("llama-3-70b", ["dgx-h100", "mi300x-8"], **ASKED)
    assert any("Energies are not of one kind" in each for each in both.caveats)
    assert {row[2] for row in mixed.tables[0].rows[1:]} == {MEASURED, PEAKS}


def test_limits_are_kept_by_what_is_expected_wherever_it_is() -> None:
    """Beside a machine of which nothing is expected, the others keep theirs as alone."""
    asked = BOUNDED | {"tpot": "40 ms", "price": "3 USD/hour"}
    mixed = compare("llama-3-70b", ["dgx-h100", UNEXPECTED], **asked)
    alone = compare("llama-3-70b", "dgx-h100", **asked)
    [entry] = (each for each in mixed.entries if each.machine.key == "dgx-h100")
    assert mixed.plan_of(entry).batch == alone.best.batch
    assert alone.best.expected is not None
    assert alone.best.expected.time_per_token.m_as("ms") <= 40
    assert mixed.basis == UPPER


def test_ranks_that_intervals_cannot_tell_apart_say_so() -> None:
    asked = compare("llama-3-70b", ["dgx-h100", "dgx-h200"], **ASKED, software="vllm")
    one, other = (asked.plan_of(each).interval("energy_per_token") for each in asked.entries)
    assert one is not None
    assert other is not None
    overlap = one[0] <= other[1] and other[0] <= one[1]
    assert overlap == any("Ranks 1 and 2 lie within" in each for each in asked.caveats)


def test_the_price_that_levels_levels(mixed: Comparison) -> None:
    sentence = next(each for each in mixed.what_would_change if each.startswith("At "))
    price = sentence.removeprefix("At ").split(" a device")[0]
    second = mixed.entries[1].machine  # which costs more
    assert f"{second.name} costs as much" in sentence
    key = next(key for key in PRICES if key.endswith(second.key))
    level = compare("llama-3-70b", list(PRICES), **BOUNDED, price=PRICES | {key: price})
    one, other = (level.value(level.plan_of(each), "cost_per_token") for each in level.entries)
    assert (one / other).m_as("") == pytest.approx(1, rel=1e-3)


def test_models_side_by_side() -> None:
    asked = compare(["llama-3-70b", "qwen-3-32b"], "dgx-h100", **ASKED, price="3 USD/hour")
    assert [row["model"] for row in asked.rows()] == ["qwen-3-32b", "llama-3-70b"]
    assert asked.answer.startswith("Qwen3 32B is first by cost, ")
    assert asked.answer.endswith(": 1000 + 200 tokens")
    assert "<table" in asked._repr_html_()


@pytest.mark.parametrize(
    ("models", "machines", "change", "sentence"),
    [
        ("llama-3-70b", [], {}, "a model and a machine at least; got an empty list"),
        ("llama-3-70b", 3, {}, "compare(): what is compared must be a list; got 3"),
        ("llama-3-70b", "h100", {"tpot": "3 GB"}, "tpot must be one positive quantity in s"),
        ("llama-3-70b", "h100", {"ttft": 0}, "ttft must be one positive quantity in s"),
        ("llama-3-70b", "h100", {"by": "cost"}, "goes by what devices cost, of which"),
        ("llama-3-70b", "h100", {"by": "beauty"}, "compare(): by must be one of cost, energy"),
        ("llama-3-70b", "h100", {"price": {"t4": "1 USD/h"}}, "one of t4, which is not compared"),
        ("llama-3-70b", "h100", {"prompt": 10**6}, "Llama 3 70B reads at most 8192 tokens"),
        ("llama-3-70b", ["h100", "t4"], {"weights": "int3.3"}, "weights"),
    ],
)
def test_bad_input(models: Any, machines: Any, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        compare(models, machines, **(ASKED | change))
    assert sentence in str(refused.value)


def test_a_drawing_has_the_ink_of_its_page(comparison: Comparison, tmp_path: Path) -> None:
    write_drawing(comparison.draw(), tmp_path / "front.svg")
    text = (tmp_path / "front.svg").read_text()
    assert INK not in text.replace("svg { color: #1f2328;", "")
    assert "prefers-color-scheme: dark" in text
    words = {each.text for each in ElementTree.fromstring(text).iter() if each.text}
    assert {"NVIDIA DGX H100", "Time per token (ms)", "Cost (USD/Mtoken)"} <= words
    again = tmp_path / "again.svg"
    write_drawing(comparison.draw(), again)
    assert again.read_text() == text
    write_drawing(comparison.draw(), tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match=r"ends in \.svg or \.png; got front\.gif"):
        write_drawing(comparison.draw(), "front.gif")


def test_the_command(command: Command, tmp_path: Path) -> None:
    drawn = tmp_path / "front.svg"
    line = (
        "compare llama-3-70b --machines dgx-h100,t4 --prompt 1000 --generated 200"
        f" --price 'dgx-h100=3 USD/hour' --draw {drawn}"
    )
    printed = command.prints(line)
    assert " GiB too little on each of 8 devices" in printed
    assert "Assumed:" not in printed
    assert drawn.exists()
    first, last = command.facts(line)["rows"]
    assert (first["rank"], first["machine"], first["devices"], last["rank"]) == (
        1,
        "dgx-h100",
        4,
        None,
    )
    listed = command.rows(line)
    assert [row["machine"] for row in listed] == ["dgx-h100", "t4"]
    assert "ends in .svg or .png" in command.refuses(
        "compare llama-3-70b --machines h100 --prompt 1 --generated 1 --draw x.gif"
    )


def test_users_leave_out_layouts_that_hold_no_sequence() -> None:
    """A device of 80 GB holds none of 70B in 16 bits, and is no candidate."""
    [entry] = compare("llama-3-70b", "h100", users=2, prompt=100, generated=20).entries
    [chosen] = entry.curve
    assert chosen.fits
    assert chosen.devices > 1


def test_a_grid_is_compared_as_it_is_planned() -> None:
    asked = ASKED | {"grid": "france"}
    compared = compare("llama-3-8b", "h100", **asked)
    head, row, *_ = compared.tables[0].rows
    assert "carbon (g/Mtoken)" in head
    best = compared.best
    same = plan("llama-3-8b", "h100", batch=best.batch, devices=best.devices, **asked)
    assert same.expected is not None
    cell = row[head.index("carbon (g/Mtoken)")].split()[0]
    expected = same.expected.carbon_per_token
    assert expected is not None
    assert float(cell) == pytest.approx(expected.m_as("g/Mtoken"), rel=0.01)


def test_versions_of_a_program_are_compared_by_their_names() -> None:
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "devices": 1}
    compared = compare("llama-3-8b", "h100", software="vllm 0.19, vllm 0.24", **asked)
    assert {entry.software for entry in compared.entries} == {"vLLM 0.19", "vLLM 0.24"}
    assert "vLLM 0.19" in str(compared)
    for entry in compared.entries:
        alone = compare("llama-3-8b", "h100", software=entry.software, **asked)
        [other] = alone.entries
        assert other.software == ""
        assert compared.plans[entry].batch == alone.plans[other].batch
        assert compared.plans[entry].likely("time_per_token") == (
            alone.plans[other].likely("time_per_token")
        )


def test_a_comparison_of_which_nothing_is_planned_fails(command: Command) -> None:
    asked = "--prompt 1000 --generated 100"
    printed = command.prints(f"compare deepseek-v3 --machines rtx-4090-1 {asked}", status=1)
    assert "none of them is planned" in printed
    assert compare("llama-3-8b", ["h100"], **ASKED).status == 0


def test_versions_that_nobody_measured_are_named() -> None:
    """Two of them are expected alike: whose kernels count for both is said of each."""
    later = compare("llama-3-8b", "h100", software="vllm 0.25, vllm 0.26", devices=1, **ASKED)
    for version in ("0.25", "0.26"):
        [told] = [each for each in later.caveats if each.startswith(f"vLLM {version}: ")]
        assert told.endswith("of which no kernel was measured: those of vLLM 0.24.0.")
    known = compare("llama-3-8b", "h100", software="vllm 0.19, vllm 0.24", devices=1, **ASKED)
    assert not any("no kernel" in each for each in known.caveats)
