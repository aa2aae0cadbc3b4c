"""Claims of the chapter "Cost and carbon"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any, ClassVar

from calc import (
    break_even,
    compare,
    constants,
    cost,
    device_power,
    energy,
    hardware,
    inference,
    machines,
    models,
    published,
    quantity,
    runs,
    serving,
    transformer,
)
from calc.core.units import Quantity, QuantityLike
from calc.derivations.bases import Rent
from calc.derivations.by_hand import by_hand, no_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.examples import CHAT, DENSE
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows, show
from calc.derivations.traces import whole
from calc.planning import Plan, plan
from calc.planning.passes import Expectation
from calc.published import closed_loops, conditions, power_rows
from calc.steps.expectation import Step


def _year(fact: Quantity) -> int:
    assert fact.provenance is not None
    assert fact.provenance.year is not None
    return fact.provenance.year


class RunPrice(Claims):
    """A run costs its device-hours, and electricity is a small part of that."""

    hours = quantity("2.788e6 h")
    rent = constants.price_h800
    rent_today = Rent.published_h100 | by_hand("2.95 USD/h")
    rent_b200 = Rent.published_b200 | by_hand("6 USD/h")
    electricity = constants.price_electricity_us_industry
    pue = constants.pue_average
    server = constants.power_dgx_h100
    gpus = 8

    rent_year = str(_year(rent)) | by_hand("2024", "DeepSeek-AI, December 2024")
    rent_today_year = str(_year(rent_today)) | by_hand("2026", "the date of the survey")
    electricity_year = str(_year(electricity) - 1) | by_hand(
        "2024 - 1", "the table that the agency published in March 2024"
    )  # the year that its source looks back on
    price = cost.run_cost(1, hours, rent) | by_hand(
        "2.788e6 h * 2 USD/h", "2.788 million hours times 2; 5.576M in DeepSeek-AI 2024"
    )
    power = (server / gpus).to("kW") | by_hand(
        "10.2 kW / 8"
    )  # of a GPU with its part of the server
    over_board = (power / hardware.get("h100").tdp).to("") | by_hand("10.2 / 5.6")
    powered = cost.price_of_ownership("0 USD", "1 year", power, electricity).to("USD/h") | by_hand(
        "1.275 * 1.54 * 0.0806 USD/h"
    )
    share = (powered / rent).to("%") | by_hand("0.1582581 / 2")


class TokenPrice(Claims):
    """A GPU writes a token for 24 times less once it writes for as many as it holds."""

    model = models.get("llama-3-8b")
    device = hardware.get("h100")
    rent = constants.price_h800
    context = 4096
    contexts = (1024, 4096, 8192)

    most = inference.largest_batch(model, device, context)
    alone = inference.decode(model, device, context)
    together = inference.decode(model, device, context, most)
    reading = inference.prefill(model, device, context)

    price_alone = cost.cost_per_token(1, rent, alone.throughput).to("USD/Mtoken") | by_hand(
        "(2 * 7504658432 + 4096 * 131072) * 1 byte / 3.35 TB/s * 2 USD/h / 1 token"
    )
    price_together = cost.cost_per_token(1, rent, together.throughput).to("USD/Mtoken") | by_hand(
        "(2 * 7504658432 + 130 * 4096 * 131072) * 1 byte / 3.35 TB/s * 2 USD/h / 130 token"
    )
    cheaper = (price_alone / price_together).to("") | by_hand("130 * 15.54619 / 84.80252")
    time_alone = alone.lower.to("ms")
    slower = (together.lower / alone.lower).to("") | by_hand("84.80252 / 15.54619")
    # A prefill's throughput counts answers; its tokens are those that it reads.
    rate_read = serving.tokens_per_second(context, reading.lower)
    price_read = cost.cost_per_token(1, rent, rate_read).to("USD/Mtoken") | by_hand(
        "(4096 * (2 * (7504658432 - 128256 * 4096) + 4 * 2048.5 * 32 * 32 * "
        "128) + 2 * 128256 * 4096) * 1 FLOP / 989 TFLOP/s * 2 USD/h / 4096 "
        "token"
    )
    apart = (price_together / price_read).to("") | by_hand("0.1081803 / 0.0084445")
    # However large the batch, each token waits for its own cache.
    cache = transformer.kv_cache_per_token(model) * quantity("4096 token")
    cache_read = (cache / device.memory_bandwidth).to("ms") | by_hand("(4096 * 131072 / 3.35e9) ms")
    floor = cost.cost_per_token(1, rent, serving.tokens_per_second(1, cache_read)).to(
        "USD/Mtoken"
    ) | by_hand("4096 * 131072 byte / 3.35 TB/s * 2 USD/h / 1 token")
    cache_share = (floor / price_together).to("%") | by_hand("0.0890333 / 0.1081803")
    # A memory that is full of weights and caches is read once for each token.
    whole_memory = (device.memory_capacity / device.memory_bandwidth).to("ms") | by_hand(
        "(80 * 2**30 / 3.35e9) ms"
    )

    @classmethod
    def price(cls, context: int, sequences: QuantityLike) -> tuple[Quantity, Quantity]:
        """Dollars for a million written tokens, and the time between two of an answer."""
        step = inference.decode(cls.model, cls.device, context, sequences)
        return cost.cost_per_token(1, cls.rent, step.throughput).to("USD/Mtoken"), step.lower


class JoulesOf(Claims):
    """Energies of one bit from memory and of one operation, none of them an H100's own."""

    board = hardware.get("h100").tdp
    dram = constants.energy_hbm2_bit
    multiply = constants.energy_7nm_bf16_multiply
    add = constants.energy_7nm_fp32_add

    # From a cell of the memory to an arithmetic unit, all told.
    way = (
        constants.energy_a100_hbm_bit + constants.energy_a100_l2_bit + constants.energy_a100_l1_bit
        | by_hand("(13.11 + 4.71 + 1.59) pJ/bit")
    )
    operation = ((multiply + add) / quantity("2 FLOP")).to("pJ/FLOP")


@dataclass(frozen=True)
class Joules:
    """Energy of one token by its parts, of what the board takes in its time at most."""

    total: Quantity
    memory: Quantity
    way: Quantity
    arithmetic: Quantity

    @property
    def rest(self) -> Quantity:
        """Return the energy that neither explains: registers, control, leakage."""
        return self.total - self.memory - self.way - self.arithmetic

    @property
    def floor(self) -> Quantity:
        """Return the energy that only fewer bytes or operations, or better parts, can save."""
        return self.memory + self.arithmetic


def joules(step: Step, tokens: Quantity | float) -> Joules:
    """Return the energy of each of so many tokens that a pass reads or writes."""
    count = quantity(1, "token") * tokens
    cells = energy.movement_energy(step.traffic, JoulesOf.dram) / count
    moved = energy.movement_energy(step.traffic, JoulesOf.way) / count
    arithmetic = energy.arithmetic_energy(step.operations, JoulesOf.operation) / count
    return Joules(
        cost.energy_per_token(1, JoulesOf.board, count / step.lower),
        cells.to("J/token"),
        (moved - cells).to("J/token"),
        arithmetic.to("J/token"),
    )


class TokenJoules(Claims):
    """A token alone costs 24 times the joules of one in company; arithmetic is next to nothing."""

    alone = joules(TokenPrice.alone, 1)
    together = joules(TokenPrice.together, TokenPrice.most)
    read = joules(TokenPrice.reading, TokenPrice.context)
    of_alone = alone.total | by_hand(
        "700 W * (2 * 7504658432 + 4096 * 131072) * 1 byte / 3.35 TB/s / 1 token"
    )
    of_together = together.total | by_hand(
        "700 W * (2 * 7504658432 + 130 * 4096 * 131072) * 1 byte / 3.35 TB/s / 130 token"
    )
    floor_alone = alone.floor | by_hand(
        "(15.54619e9 * 8 * 3.97e-12 + 17.15680e9 * 0.295e-12) J/token"
    )
    over_floor_alone = (alone.total / alone.floor).to("") | by_hand("3.248457 / 0.4988082")
    arithmetic_read = (read.arithmetic / read.total).to("%") | by_hand("989e12 * 0.295e-12 / 700")
    moved_alone = ((alone.memory + alone.way) / alone.total).to("%") | by_hand("520.188 / 700")
    # At the meter: with the rest of the server, and cooling.
    token = quantity("1 token")
    at_the_meter = cost.facility_energy(
        of_together * token * RunPrice.over_board
    ) / token | by_hand("(0.1363072 * 10.2 / 5.6 * 1.54) J/token")


@deferred
def of_metered(name: str, sum_up: Callable[[Iterable[float]], float]) -> Quantity:
    """Sum up a share or an error of all loads whose devices were metered, in whole per cents."""
    values = [getattr(draw, name) for draw in power_rows.draws() if draw.of == power_rows.DEVICES]
    return quantity(round(100 * sum_up(values)), "%")


@deferred
def loads_metered() -> int:
    """Count the loads whose devices were metered."""
    return sum(draw.of == power_rows.DEVICES for draw in power_rows.draws())


class PowerAtWork(Claims):
    """GPUs that write tokens draw less than their design power, and most of that at any load."""

    loads = loads_metered() | by_hand("72 + 67")
    least = of_metered("share", min) | no_hand("43 %", "the least of metered loads")
    most = of_metered("share", max) | no_hand("99 %", "the most of metered loads")
    usual = of_metered("share", median) | no_hand("77 %", "median over metered loads")
    at_any_load = constants.coefficient_power_at_work.to("%") | by_hand("55 %")
    error = of_metered("error", lambda errors: median(map(abs, errors))) | no_hand(
        "10 %", "median over metered loads"
    )
    low = constants.coefficient_power_low
    high = constants.coefficient_power_high
    _idle = device_power.idle(machines.get("dgx-h100"))
    assert _idle is not None
    idle = _idle.device | by_hand("700 W * 45 / 400")
    rated = constants.power_dgx_h100
    seen = constants.power_hgx_h100_most
    _at_work = device_power.at_work(machines.get("dgx-h100"), 0.0, 0.0)
    assert _at_work is not None
    of_the_rest = (_at_work.rest / (rated / 8 - hardware.get("h100").tdp)).to("%") | by_hand(
        "(8.4 - 8 * 0.7) / (10.2 - 8 * 0.7)"
    )


@dataclass(frozen=True)
class MeteredToken:
    """The energy of a written token on devices that were metered."""

    devices: int
    device: str
    batch: float
    power: Quantity
    rate: Quantity

    @property
    def joules(self) -> Quantity:
        """Return the energy that all devices drew for a token."""
        return (self.devices * self.power / self.rate).to("J/token")


def metered_token(row: str) -> MeteredToken:
    """Return what devices drew for a token in a published load of this id."""
    draw = next(each for each in power_rows.draws() if each.row.id == row)
    rate = quantity(draw.row.measured["output_tokens_per_s"], "token/s")
    batch = draw.row.number("batch")
    assert batch is not None
    devices = conditions.devices(draw.row)
    return MeteredToken(devices, draw.device.key.upper(), round(batch), draw.power, rate)


@deferred
def joules_metered(row: str) -> Quantity:
    """Return the energy of a token in a published load of this id."""
    joules: Quantity = metered_token(row).joules
    return joules


class MeasuredJoules(Claims):
    """A fuller batch saves far more of a token's energy than the newer of two GPUs."""

    loads = (
        "mlenergy-32",
        "mlenergy-34",
        "mlenergy-42",
        "mlenergy-22",
        "mlenergy-24",
        "mlenergy-28",
    )
    few = joules_metered("mlenergy-32") | by_hand(
        "1803.806 W / (862.648 token/s)", "2.0910 in ML.ENERGY's table"
    )
    _some = joules_metered("mlenergy-34")
    many = joules_metered("mlenergy-42") | by_hand("2547.518 W / (6827.208 token/s)")
    _some_newer = joules_metered("mlenergy-24")
    by_batch = (few / many).to("") | by_hand("2.09101 / 0.373142")
    by_device = (_some / _some_newer).to("") | by_hand("0.797249 / 0.697076")

    @classmethod
    @row_by_hand("4 H100 | 16 | 451 W | 863 | = 1803.806 / 862.648")
    def rows(cls) -> Rows:
        """Devices, sequences of a batch, watts of a device, tokens of all, joules of a token."""
        return [
            (
                f"{each.devices} {each.device}",
                each.batch,
                each.power,
                each.rate.m_as("token/s"),
                each.joules.m_as("J/token"),
            )
            for each in map(metered_token, cls.loads)
        ]


class JoulesByBatch(Claims):
    """A fuller batch saves most of a token's energy, of a mixture more than of a dense model."""

    dense = (
        ("Llama 3.1 8B", "meta-llama/Llama-3.1-8B-Instruct", (("h100", 1), ("b200", 1))),
        ("Llama 3.1 70B", "meta-llama/Llama-3.1-70B-Instruct", (("h100", 4), ("b200", 2))),
        ("Llama 3.1 405B", "meta-llama/Llama-3.1-405B-Instruct-FP8", (("h100", 8), ("b200", 4))),
    )
    mixtures = (
        ("gpt-oss-120b", "openai/gpt-oss-120b", (("h100", 2), ("b200", 2))),
        ("Qwen3 235B-A22B", "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", (("h100", 4), ("b200", 2))),
        ("DeepSeek-V3.1", "deepseek-ai/DeepSeek-V3.1", (("b200", 8),)),
    )

    @staticmethod
    def curve(model: str, device: str, devices: int) -> tuple[Quantity, Quantity]:
        """Return batches, in order, and energies of a token, as metered at so many devices."""
        tokens = [
            metered_token(draw.row.id)
            for draw in power_rows.draws()
            if draw.of == power_rows.DEVICES
            and draw.row["model"] == model
            and (draw.device.key, conditions.devices(draw.row)) == (device, devices)
        ]
        tokens.sort(key=lambda each: each.batch)
        joules = [each.joules.m_as("J/token") for each in tokens]
        return quantity([each.batch for each in tokens], ""), quantity(joules, "J/token")

    # From the same batch to the same batch, on as many of the same GPUs.
    few = 8
    many = 192
    of_dense = (joules_metered("mlenergy-31") / joules_metered("mlenergy-37")).to("") | by_hand(
        "1765.428 / 469.6893 / (2293.081 / 4461.235)"
    )
    of_mixture = (joules_metered("mlenergy-198") / joules_metered("mlenergy-204")).to("") | by_hand(
        "2120.093 / 223.8423 / (2533.793 / 3015.553)"
    )
    dense_alone = joules_metered("mlenergy-31") | by_hand("1765.428 W / (469.6893 token/s)")
    mixture_alone = joules_metered("mlenergy-198") | by_hand("2120.093 W / (223.8423 token/s)")


class CarbonAccounts(Claims):
    """The equation gives what is reported with its authors' factors, and not with averages."""

    keys = ("bloom-176b", "llama-2-70b", "llama-3-1-405b")
    bloom = runs.get("bloom-176b")
    llama2 = runs.get("llama-2-70b")
    llama_pue = llama2.pue
    france = bloom.carbon_intensity
    world = constants.carbon_intensity_world
    llama3_reported = runs.get("llama-3-1-405b").carbon
    bloom_beside = quantity("14.6 t")
    bloom_making = quantity("11.2 t")

    bloom_whole = bloom.carbon + bloom_beside + bloom_making | by_hand(
        "(24.69 + 14.6 + 11.2) t", "50.5 in Luccioni et al. 2023"
    )
    bloom_times = (bloom_whole / bloom.carbon).to("") | by_hand("50.49 / 24.69")
    grid_ratio = (world / france).to("") | by_hand("458 / 57")

    @classmethod
    @row_by_hand("Llama 2 70B | 0.6881 | 1.1 | 385 | 291.4 | 291.4 | 1.000 | 1.67")
    def row(cls, key: str) -> Row:
        """A run's tonnes by its own factors, as reported, and by the averages of the world."""
        run = runs.get(key)
        used = energy.energy_of_run(run.device_power, run.device_time)
        stated = run if run.publishes("pue") else cls.llama2
        computed = cost.carbon(cost.facility_energy(used, stated.pue), stated.carbon_intensity)
        average = cost.carbon(cost.facility_energy(used))
        return (
            run.name,
            used.m_as("GWh"),
            stated.pue.magnitude,
            stated.carbon_intensity.m_as("g/kWh"),
            computed.m_as("t"),
            run.carbon.m_as("t"),
            (computed / run.carbon).m_as(""),
            show((average / run.carbon).m_as(""), digits=3),  # averages carry no more
        )


class RentOrBuy(Claims):
    """Owning pays above the share of hours at which its price is the rent."""

    purchase = quantity("40000 USD")
    lifetime = quantity("4 year")
    short = quantity("3 year")
    long = quantity("5 year")
    lifetimes = (short, lifetime, long)
    rent = constants.price_h800
    electricity = constants.price_electricity_us_industry

    price = cost.price_of_ownership(purchase, lifetime, RunPrice.power, electricity).to(
        "USD/h"
    ) | by_hand("10000 USD / 8766 h + {RunPrice.powered}")
    utilization = cost.break_even_utilization(price, rent).to("%") | by_hand("1.29903 / 2")
    # What the equation leaves out: half of the purchase is tied up on average, and space is rented.
    interest = quantity("8 %/year")
    space = quantity("1800 USD/(kW·year)")
    tied = (purchase / 2 * interest).to("USD/h")
    housed = (RunPrice.power * space).to("USD/h")
    price_all = price + tied + housed | by_hand(
        "{price} + 1600 USD / 8766 h + 1.275 * 1800 USD / 8766 h"
    )
    utilization_all = cost.break_even_utilization(price_all, rent).to("%") | by_hand("1.7434 / 2")
    price_short = cost.price_of_ownership(purchase, short, RunPrice.power, electricity)


@dataclass(frozen=True)
class Paced:
    """One published loop: how fast a client reads, and what a written token costs and takes."""

    row: published.Row
    rent: Quantity

    @property
    def rate(self) -> Quantity:
        """Tokens that all clients are written in a second, their prompts read in between."""
        written = closed_loops.mean_lengths(self.row)[1]
        cycle = self.row.measured["ttft"] + (written - 1) * self.row.measured["tpot"]
        return quantity(self.row["clients"] * written / cycle, "token/s")

    @property
    def price(self) -> Quantity:
        """Return the cost of a written token, with the reading of its prompt."""
        return cost.cost_per_token(self.row["tensor"], self.rent, self.rate).to("USD/Mtoken")

    @property
    def energy(self) -> Quantity:
        """Return the energy that an answer takes of servers at full power."""
        of_a_token = cost.energy_per_token(self.row["tensor"], RunPrice.power, self.rate)
        return (of_a_token * quantity(closed_loops.mean_lengths(self.row)[1], "token")).to("W*h")


class Interactivity(Claims):
    """A faster token costs more, and which device is the cheapest depends on the pace."""

    tokens = CHAT.prompt | by_hand("1024")
    paces = (20, 50, 100)
    cases = (
        ("H200, FP8", "dgx-h200", "fp8", Rent.published_h200),
        ("B200, FP8", "dgx-b200", "fp8", Rent.published_b200),
        ("B200, NVFP4", "dgx-b200", "nvfp4", Rent.published_b200),
    )
    loops = deferred(tuple)(
        row
        for row in deferred(closed_loops.rows)()
        if (row["model"], row["software"], row["mode"]) == (DENSE.key, "tensorrt-llm", "agg")
        and row["input"] == row["output"] == CHAT.prompt
    )

    @classmethod
    def cheapest(cls, machine: str, dtype: str, rent: Quantity, pace: float) -> Paced | None:
        """The cheapest loop whose clients see at least that pace."""
        paced = [
            Paced(row, rent)
            for row in cls.loops
            if (row["machine"], row["format"]) == (machine, dtype)
            and row.measured["tpot"] * pace <= 1
        ]
        return min(paced, key=lambda loop: loop.price.m, default=None)

    @classmethod
    @row_by_hand("H200, FP8 | ≈ 3.5 USD/h | 0.36 USD/Mtoken | 0.6 USD/Mtoken | 2.2 USD/Mtoken")
    def rows(cls) -> Rows:
        """Price at each pace, by device and format."""
        return [
            (
                title,
                rent,
                *(
                    loop.price if (loop := cls.cheapest(machine, dtype, rent, pace)) else None
                    for pace in cls.paces
                ),
            )
            for title, machine, dtype, rent in cls.cases
        ]


class EnergyOfAnAnswer(Claims):
    """Counted at full power, an answer of a 70B takes about what Google counts for a prompt."""

    google = quantity("0.24 W*h")
    accelerators = quantity(58, "%")
    host = quantity(25, "%")
    idle = quantity(10, "%")
    building = quantity(8, "%")
    pace = 50

    loop = Interactivity.cheapest("dgx-h200", "fp8", Rent.published_h200, pace)
    assert loop is not None
    clients = loop.row["clients"] | by_hand("64", "of the row in closed_loops.csv")
    devices = loop.row["tensor"] | by_hand("2", "of the row in closed_loops.csv")
    written = closed_loops.mean_lengths(loop.row)[1] | by_hand("0.9 * 1024")
    servers = loop.energy | by_hand("2 * 1275 W * (0.8106 s + 920.6 * 0.018992 s) / 64")
    at_the_meter = cost.facility_energy(servers).to("W*h") | by_hand("1.54 * {servers}")


class PriceOfARequest(Claims):
    """Problem 3: a prompt ten times as long as its answer costs as much."""

    prompt = 3000
    answer = 300
    requests = 1_000_000
    model = TokenPrice.model
    device = TokenPrice.device

    context = prompt + answer // 2  # on average
    most = inference.largest_batch(model, device, prompt + answer)
    writing = inference.decode(model, device, context, most)
    price_written = cost.cost_per_token(1, TokenPrice.rent, writing.throughput)
    reading = inference.prefill(model, device, prompt)
    of_prompt = (cost.run_cost(1, reading.lower, TokenPrice.rent) * requests).to("USD")
    of_answer = (price_written * quantity(answer, "token") * requests).to("USD")
    together = of_prompt + of_answer | by_hand(
        "1e6 * ((3000 * (2 * 6979321856 + 4 * 1500.5 * 131072) + 2 * 128256 * "
        "4096) * 1 FLOP / 989 TFLOP/s + 300 / 161 * (2 * 7504658432 + 161 * "
        "3150 * 131072) * 1 byte / 3.35 TB/s) * 2 USD/h"
    )
    prompt_share = (of_prompt / together).to("%") | by_hand("24.84949 / 50.02871")
    tokens_ratio = prompt // answer | by_hand("3000 / 300")
    price_ratio = (of_prompt / prompt / (of_answer / answer)).to("%") | by_hand(
        "(3000 * (2 * 6979321856 + 4 * 1500.5 * 131072) + 2 * 128256 * 4096) / "
        "989e12 / 3000 / ((2 * 7504658432 + 161 * 3150 * 131072) / 3.35e12 / "
        "161)"
    )


class BaseLoad(Claims):
    """Problem 5: buy what is always wanted, rent what is wanted by day."""

    by_day = 60
    by_night = 15
    day = quantity("10 h")
    night = quantity("14 h")

    wanted = by_day * day + by_night * night
    utilization = (wanted / (by_day * quantity("24 h"))).to("%") | by_hand(
        "(60 * 10 + 15 * 14) / 1440"
    )
    all_rented = cost.run_cost(1, wanted, RentOrBuy.rent) | by_hand("810 * 2 USD")
    all_owned = cost.run_cost(by_day, "24 h", RentOrBuy.price) | by_hand("1440 * 1.29903 USD")
    peak_rented = cost.run_cost(by_day - by_night, day, RentOrBuy.rent)
    mixed = cost.run_cost(by_night, "24 h", RentOrBuy.price) + peak_rented | by_hand(
        "360 h * {RentOrBuy.price} + 450 h * 2 USD/h"
    )
    saved = (1 - mixed / all_rented).to("%") | by_hand("1 - 1367.65 / 1620")
    peak_share = (day / quantity("24 h")).to("%") | by_hand("10 / 24")


class OwnOrApi(Claims):
    """A device of one's own costs less than an API from some load on, by provider."""

    rent = Rent.published_h100
    prompt = CHAT.prompt | by_hand("1024")
    # Those of a call that names none.
    ttft = quantity("2 s")
    tpot = quantity("50 ms")
    kept_by = quantity(95, "%")
    found = deferred(break_even)(
        "gpt-oss-120b",
        "h100",
        price=rent,
        prompt=CHAT.prompt,
        generated=CHAT.generated,
        ttft=ttft,
        tpot=tpot,
        percentile=kept_by.m_as("%"),
    )
    _offers = deferred(sorted)(found.offers, key=found.bill)
    dearest, cheapest = _offers[-1], _offers[0]
    _low, _high = found.loads(_offers[-1]), found.loads(_offers[0])
    count = deferred(len)(_offers) | by_hand(
        "5", "an input: providers of the model in the tables read"
    )
    from_dearest = _low[0] | no_hand("0.7274909 request/s", "an expectation of a plan")
    from_dearest_at_most = deferred(max)(load for load in _low if load) | no_hand(
        "1.4549797 request/s", "an interval of a plan"
    )
    from_cheapest = _high[0] | no_hand("5.3349352 request/s", "an expectation of a plan")
    from_cheapest_at_most = deferred(max)(load for load in _high if load) | no_hand(
        "5.3349352 request/s", "an interval of a plan"
    )
    answered = quantity("1000 request")
    full = (found.cheapest[0] * answered).to("USD") | no_hand(
        "0.096984641 USD", "an expectation of a plan"
    )
    bill = (found.bill(_offers[0]) * answered).to("USD") | by_hand(
        "1024 * 0.05e-6 * 1000 * 1 USD + 1024 * 0.25e-6 * 1000 * 1 USD"
    )
    # By the hour, at the highest load of a day: devices are paid for it, an API for the mean.
    peak = quantity("20 request/s")
    devices = found.devices(peak) | by_hand(
        "4 * ceil(20 / 28.37109)", "requests a second that a copy on four devices takes"
    )
    devices_if_slow = found.devices(peak, found.factors[1]) | by_hand(
        "4 + 2 * ceil((20 / 0.6293266 - 28.37109) / 10.4375)",
        "at the slow end of the interval, four and as many twos as it takes",
    )
    own = (devices * rent).to("USD/h") | by_hand("4 * 2.95 USD/h")
    hired = (found.bill(_offers[0]) * peak).to("USD/h") | by_hand("20 * 0.3072 * 3.6 * 1 USD/h")
    share = (own / hired).to("%") | by_hand("11.8 / 22.1184")
    share_of_dearest = (own / (found.bill(_offers[-1]) * peak)).to("%") | by_hand(
        "11.8 / (20 * 1.1264 * 3.6)"
    )


class OneCall(Claims):
    """A plan on half of a server: what published rates bound, and what measured ones expect."""

    model = models.get("llama-3-70b")
    some = 4
    batch = 32
    prompt = 1000
    generated = 200
    rent = constants.price_h800
    software = "vllm"

    @classmethod
    def plan(cls, key: str = "h100", devices: int | None = None, weights: str = "BF16") -> Plan:
        """A service takes another time and price on other devices, or with other weights."""
        return plan(
            cls.model,
            hardware.get(key),
            batch=cls.batch,
            prompt=cls.prompt,
            generated=cls.generated,
            devices=devices,
            weights=weights,
            price=cls.rent,
            software=cls.software,
        )

    @classmethod
    @row_by_hand("TPOT | 11.2 ms | 12.6 ms | 17.6 ms | memory bandwidth")
    def rows(cls) -> Rows:
        """The answers of the plan, each with its bounds, what is expected and what binds."""
        plan = cls.plan(devices=cls.some)
        room = plan.device.memory_capacity
        rows: list[Row] = [
            ("Memory", plan.memory.to(str(room.units)), None, None, f"it fits in {room}")
        ]
        for title, name, binds in (
            ("TTFT", "time_to_first_token", plan.reading.bound),
            ("TPOT", "time_per_token", plan.binds),
            ("Answer", "answer_time", "–"),
            ("Throughput", "throughput", "–"),
            ("Price", "cost_per_token", "–"),
            ("Energy of devices", "device_energy_per_token", "–"),
            ("Energy", "energy_per_token", "–"),
        ):
            bounds = getattr(plan, name)
            bounds = reversed(bounds) if name == "throughput" else bounds  # the rate at its best
            rows.append((title, *bounds, getattr(plan.expected, name), binds))
        return rows

    @classmethod
    def expected(
        cls, devices: int | None = None, weights: str = "BF16", key: str = "h100"
    ) -> Expectation:
        """Return its expectation on devices of which all rates are measured."""
        expectation = cls.plan(key, devices, weights).expected
        assert expectation is not None
        return expectation


ANSWER = "the expected time of a whole answer as recorded"


class PartsOfAToken(Claims):
    """Half of a token is GEMMs; messages and the program itself are most of the rest."""

    writing = OneCall.expected(OneCall.some).passes["each token"]
    no_overlap = OneCall.plan(devices=OneCall.some).time_per_token.upper
    over_no_overlap = (writing.total / no_overlap).to("") | by_hand(
        "17.5779 / 12.5683", "ms of a token as recorded: expected, and at the bound"
    )


@deferred
def _by_machine(found: Any) -> dict[str, Any]:
    return {row["machine"]: row for row in found.rows()}


class FewestDevices(Claims):
    """Problem 6: the fewest devices that hold a model have the least room for requests."""

    limit = quantity("40 ms") | by_hand("40 ms")
    h100_price = quantity("2 USD/h") | by_hand("2 USD/h")
    h200_price = quantity("3 USD/h") | by_hand("3 USD/h")
    asked: ClassVar[dict[str, Any]] = {"prompt": 1000, "generated": 200, "software": "vllm"}
    prices: ClassVar[dict[str, Quantity]] = {"dgx-h100": h100_price, "dgx-h200": h200_price}
    pairs = deferred(compare)(
        "llama-3-70b", list(prices), tpot=limit, price=prices, devices=2, **asked
    )
    found = deferred(compare)("llama-3-70b", list(prices), tpot=limit, price=prices, **asked)
    of_two = _by_machine(pairs)
    of_best = _by_machine(found)
    h100, h200 = of_best["dgx-h100"], of_best["dgx-h200"]

    pair_cost = of_two["dgx-h100"]["expected"]["cost_per_token"] | by_hand(
        "2 * 2 USD/h * 6.6177557 s / ({pair_requests} * 200 token)", ANSWER
    )
    h200_pair_cost = of_two["dgx-h200"]["expected"]["cost_per_token"] | by_hand(
        "2 * 3 USD/h * 31.67606 s / (233 * 200 token)", ANSWER
    )
    pair_requests = whole(of_two["dgx-h100"]["batch"].magnitude) | no_hand(
        "11", "counted in the memory that an engine leaves, of which its own rule is a part"
    )
    devices = whole(h100["devices"].magnitude) | no_hand(
        "4", "chosen as the cheapest of four plans that the library expects"
    )
    requests = whole(h100["batch"].magnitude) | no_hand(
        "378", "the last batch for which a step that the library expects keeps the limit"
    )
    cost = h100["expected"]["cost_per_token"] | by_hand(
        "{devices} * 2 USD/h * 30.842836 s / ({requests} * 200 token)", ANSWER
    )
    pays = (h200_price * cost / h200["expected"]["cost_per_token"]).to("USD/h") | by_hand(
        "(3 * 0.9066089 / 1.132906) USD/h"
    )
