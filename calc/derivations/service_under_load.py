"""Claims of the chapter "A service under load".

Plans and simulations take seconds: they are recorded by `python -m experiments.record_services`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any, ClassVar

from calc import caches, device_memory, machines, published, queueing, transformer
from calc.catalog.models import Transformer
from calc.core.units import Quantity, quantity
from calc.derivations import recorded
from calc.derivations.bases import Rent
from calc.derivations.by_hand import by_hand, counted, no_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.examples import AGENT, CHAT, DENSE, MIXTURE, REASONING, SUMMARY, Agent, Load
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows, between
from calc.derivations.serving_chapter import OneNode
from calc.derivations.traces import number, whole
from calc.planning import plan
from calc.planning.passes import Expectation
from calc.published import conditions

RECORDED = recorded.settings("services.toml")
SERVER = machines.get("dgx-h100")


def busiest(servers: int, wait: float) -> float:
    """The utilisation at which a hundredth of requests wait so many service times, by halving."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        tail = queueing.waiting_tail("1 s", middle, servers, "1%").m_as("s")
        low, high = (middle, high) if tail < wait else (low, middle)
    return low


class PromptQueue(Claims):
    """Prompts are read one after another: at 95 % the first token waits a hundred times as long."""

    service = OneNode.first
    calm = quantity("80%")
    busy = quantity("95%")
    beyond = quantity("1%")
    limit = 5 | by_hand("5")
    some_servers = 4
    many_servers = 16
    servers = (1, some_servers, many_servers)

    one_in = 1 / beyond | by_hand("1 / 1 %")
    more_load = (busy / calm - 1).to("%") | by_hand("0.95 / 0.8 - 1")
    calm_mean = queueing.single_server_time(service, calm).to("ms") | by_hand("(26.96892 / 0.2) ms")
    busy_mean = queueing.single_server_time(service, busy).to("ms") | by_hand(
        "(26.96892 / 0.05) ms"
    )
    busy_tail = queueing.single_server_tail(service, busy, beyond).to("s") | by_hand(
        "{OneNode.first} * ln(100) / 0.05"
    )
    worse = (busy_mean / calm_mean).to("") | by_hand("0.2 / 0.05")
    alike = queueing.single_server_wait(service, busy, 0).to("ms") | by_hand(
        "0.95 * {OneNode.first} / (2 * 0.05)"
    )
    mixed = queueing.single_server_wait(service, busy, 2).to("ms") | by_hand(
        "5 * 0.95 * {OneNode.first} / (2 * 0.05)"
    )
    wait_one = (queueing.waiting_tail(service, busy, 1, beyond) / service).to("") | by_hand(
        "ln(95) / 0.05"
    )
    wait_sixteen = (queueing.waiting_tail(service, busy, many_servers, beyond) / service).to(
        ""
    ) | by_hand("ln(100 * 0.7801925) / (16 * 0.05)")


class Slots(Claims):
    """One step serves all slots: answers slow down long before no slot is free."""

    slots = OneNode.largest | by_hand("floor((8 * 80 * 2**30 - 2 * 70553706496) / (2048 * 327680))")
    calm = quantity("80%")
    busy = quantity("95%")
    fullest = quantity("99%")
    loads = (calm, busy, quantity("98%"), fullest)
    hardly_any = quantity("0.1%")

    # The step's lower bound is a straight line of the batch up to the largest.
    written = (OneNode.answer_full - OneNode.answer_alone) / (slots - 1)
    own_time = (OneNode.first + written).to("ms") | by_hand(
        "{OneNode.first} + 512 * 2048 * 327680 byte / (8 * 3.35 TB/s)"
    )
    shared_time = (OneNode.answer_alone - written).to("s") | by_hand(
        "512 * 2 * 69501714432 byte / (8 * 3.35 TB/s)"
    )
    alone = shared_time + own_time
    prompt_share = (OneNode.first / own_time).to("%") | by_hand("26.96892 / 39.78972")
    busy_rate = busy * OneNode.both_rate
    busy_time = queueing.batch_time(busy, slots, shared_time, own_time)
    busy_slowdown = (busy_time / alone).to("") | by_hand(
        "1 / (1 - 0.95 * {own_time} / ({OneNode.first} + 16.0872 ms))"
    )
    _requests = slots * quantity("1 request")
    free = (1 - busy_rate * busy_time / _requests).to("%") | by_hand("1 - 487.1887 / 813")

    @classmethod
    @row_by_hand("98% | 22.8 requests/s | 650 | 28.6 s | 3.66% | 78.8 ms")
    def row(cls, load: Quantity) -> tuple[Quantity | None, ...]:
        """Load, arrivals, requests in the batch, time of an answer, who waits and how long."""
        chain = (load, cls.slots, cls.shared_time, cls.own_time)
        rate, time = load * OneNode.both_rate, queueing.batch_time(*chain)
        present = queueing.requests_in_flight(rate, time).m_as("request")
        waiting = queueing.batch_waiting_probability(*chain).to("%")
        wait = queueing.batch_waiting_time(*chain).to("ms")
        waited = (waiting, wait) if waiting > cls.hardly_any else (None, None)
        return load.to("%"), rate.to("request/s"), quantity(present, ""), time, *waited


class FirstTokenPromise(Claims):
    """Problem 2: the rate at which 99 of 100 prompts wait no longer than half a second."""

    service = OneNode.first
    limit = quantity("500 ms")
    nodes = 4

    _multiple = (limit / service).m_as("")
    utilization = quantity(busiest(1, _multiple), "").to("%")
    rate = (utilization * OneNode.read_rate).to("request/s") | by_hand(
        "(1 - ln(100 * 0.766) * {OneNode.first} / 500 ms) / {OneNode.first} * 1 request"
    )
    apart = nodes * rate | by_hand("4 * {rate}")
    _utilization_together = quantity(busiest(4, _multiple), "")
    together = (_utilization_together * nodes * OneNode.read_rate).to("request/s") | by_hand(
        "(1 - ln(100 * 3.759**4 / 6 / 0.241 / (1 + 3.759 + 3.759**2 / 2 + "
        "3.759**3 / 6 + 3.759**4 / 6 / 0.241)) * {OneNode.first} / 2000 ms) * 4"
        " / {OneNode.first} * 1 request"
    )


class Prefixes(Claims):
    """A prefix cache finds more the larger it is, in a public trace of conversations."""

    per_token = transformer.kv_cache_per_token(OneNode.model)
    links = 8
    port = SERVER.ports.to("GB/s")
    rate_of_deepseek = quantity("73700 token/s")

    points = tuple(
        (number(row["tokens"]), number(row["hit_rate"])) for row in recorded.rows("prefix_hits.csv")
    )
    most = quantity(100 * points[-1][1], "%") | by_hand("0.3653")
    small = quantity(100 * points[2][0] / points[-1][0], "%") | by_hand("4.096 / 65.536")
    found_small = quantity(100 * points[2][1] / points[-1][1], "%") | by_hand("0.1776 / 0.3653")
    read_rate = (quantity(OneNode.prompt, "token") / OneNode.first).to("token/s")
    made = caches.cache_rate(per_token, read_rate).to("GB/s") | by_hand(
        "327680 * 1536 byte / {OneNode.first}"
    )
    carried = (links * port).to("GB/s") | by_hand("8 * 50 GB/s")


class AgentSession(Claims):
    """A session of the running example reads its own past at each turn, nearly all from a cache."""

    prompts = sum(
        AGENT.shared + turn * (AGENT.prompt + AGENT.generated) + AGENT.prompt
        for turn in range(AGENT.turns)
    )
    new = AGENT.shared + AGENT.turns * AGENT.prompt
    found = quantity(100 * (1 - new / prompts), "%") | by_hand(
        "1 - (9216 + 29 * 1024) / (30 * 9216 + 1280 * 29 * 30 / 2)"
    )
    gain = prompts / new | by_hand("833280 / 38912")
    turns = AGENT.turns | by_hand("30")
    context = quantity(AGENT.context, "token") | by_hand("(8192 + 30 * 1280) token")


AGENTS = "[@inferencex-agent-hits]"


class HitsByLoad(Claims):
    """Public sources say that prefix caches find more or less, by load."""

    cases = (
        ("chat, one hour of Kimi's service", "any size of cache", "36.5 %", "[@qin2025mooncake]"),
        ("chat and API, DeepSeek's service", "on disks", "56.3 %", "[@deepseek-open-infra-day6]"),
        ("coding agents, traces of May 2026", "contexts cut at 131 072", "66–70 %", AGENTS),
        ("coding agents, the same traces", "any size, a session", "86 %", AGENTS),
        ("coding agents, traces of April 2026", "any size, a session", "97 %", AGENTS),
        ("Claude Code, calls after the first", "the provider's", "85–97 %", "[@dynamo2026agentic]"),
    )

    @classmethod
    @row_by_hand("… | any size of cache | 36.5 %")
    def rows(cls) -> Rows:
        """Load and source, cache, share of the prompts' tokens that is found."""
        return [(f"{load} {source}", cache, hits) for load, cache, hits, source in cls.cases]


def expectation(model: Transformer, **asked: Any) -> Expectation:
    """Return the expectation of vLLM on eight H200s."""
    planned = plan(model, "dgx-h200", devices=8, software="vllm", **asked)
    assert planned.expected is not None
    return planned.expected


class Tiers(Claims):
    """A session of an agent may wait in several places, and comes back sooner from some."""

    devices = 8
    host = quantity("2 TB")  # of a server with eight H200s: an input
    link = quantity("64 GB/s")  # PCIe Gen5 of each GPU, one way
    host_rate = devices * link
    disk = quantity("30 TB")  # of its SSDs: an input
    disk_rate = quantity("50 GB/s")  # of eight of them: an input

    @classmethod
    def row(cls, model: Transformer, cut: str, links: int, **asked: Any) -> Row:
        """Model and cut, bytes of a session, how many memory, host and disks hold, and ways back.

        Keys and values that are cut by heads come by as many links as there are GPUs; of latents
        each GPU that holds them needs all. The last way is that vLLM reads the session anew.
        """
        session = (transformer.kv_cache_per_token(model) * AgentSession.context).to("GB")
        batch = asked.get("copies", 1)
        asked |= {"prompt": AGENT.context, "generated": 1, "batch": batch, "devices": cls.devices}
        planned = plan(model, "dgx-h200", software="vllm", **asked)
        assert planned.expected is not None
        return (
            f"{model.name}, {cut}",
            session,
            whole(planned.largest_batch),
            whole((cls.host / session).m_as("")),
            whole((cls.disk / session).m_as("")),
            (session / (links * cls.link)).to("ms"),
            (session / cls.disk_rate).to("ms"),
            planned.expected.time_to_first_token.to("s"),
        )

    @classmethod
    @row_by_hand("DeepSeek-V3, TP 8 | 3.3 GB | 13 | 610 | 9162 | 51 ms | 65 ms | 5 s")
    def rows(cls) -> Rows:
        """The dense example in BF16 and the mixture in FP8, whose attention is cut in two ways."""
        fp8: dict[str, Any] = {"weights": "1 byte", "dtype": "fp8"}
        return [
            cls.row(DENSE, "TP 8", cls.devices),
            cls.row(MIXTURE, "TP 8", 1, **fp8),
            cls.row(MIXTURE, "DP 8 of attention", 1, **fp8, copies=8, experts=8),
        ]


@cache
def replayed(sessions: int) -> tuple[float, float]:
    """Seconds of a token as expected of so many sessions, and how many keep their prefixes."""
    requests = AgentReplay.requests
    total = 1024 * sum(size * count for size, count in requests.items())
    context = round(total / sum(requests.values()))
    started: dict[str, Any] = {"software": "sglang", "weights": "nvfp4", "kv": "fp8", "tensor": 8}
    planned = plan(
        "glm-5-2", "b300", batch=sessions, prompt=context, generated=AgentReplay.answer, **started
    )
    assert planned.expected is not None
    held = device_memory.fit("glm-5-2", "b300", utilization=0.85, context=context, **started)
    token = planned.expected.time_per_token.m_as("s")
    return float(token), held.sequences / (1 + AgentReplay.beside)


class AgentReplay(Claims):
    """Recorded sessions of coding agents, played back, are served a little slower than expected."""

    paces: ClassVar = {1: 137.3, 2: 123.2, 4: 104.6, 8: 87.8}
    """Tokens a second of a user, in the median, by sessions at once [inferencex-agentx]."""
    requests: ClassVar = {32: 13624, 96: 30622, 192: 34509, 384: 23189, 768: 10882, 1024: 428}
    """Requests by the middle of their class of contexts, in Ki tokens [inferencex-agent-hits]."""
    beside = 27504 / 85750  # requests of sub-agents for one of the main agent, in the same issue
    answer = 700  # tokens, an input
    few, many = 1, 8  # sessions at once, of the paces
    devices = 8  # B300s that served them
    lost = 16  # sessions at once of which 39 % of prompts were found, of 8 still 97 %

    _slower = deferred(sorted)(1 - replayed(count)[0] * pace for count, pace in paces.items())
    least = quantity(100 * _slower[0], "%") | by_hand("1 - 137.3 * 6.920367e-3")
    most = quantity(100 * _slower[-1], "%") | by_hand("1 - 104.6 * 7.935013e-3")
    kept = deferred(round)(deferred(replayed)(many)[1]) | no_hand(
        "12", "what SGLang leaves for latents on eight B300s, part by part"
    )


class AgentServer(Claims):
    """Eight H200s that write for agents: by model and cut, what a token takes and costs."""

    rent = Rent.published_h200
    devices = Tiers.devices
    few, many = 13, 80  # sessions of the mixture that fit by TP, and by DP of attention
    dense_most = 56  # sessions of the dense model that fit

    @classmethod
    def row(cls, model: Transformer, cut: str, sessions: int, **asked: Any) -> Row:
        """Model, cut, sessions, a token as expected and its interval, and its price."""
        asked |= {"prompt": AGENT.context, "generated": AGENT.generated, "batch": sessions}
        planned = plan(model, "dgx-h200", devices=cls.devices, software="vllm", **asked)
        around = planned.interval("time_per_token")
        assert planned.expected is not None
        assert around is not None
        token = planned.expected.time_per_token.to("ms")
        price, low, high = (cls.price(time, sessions) for time in (token, *around))
        return model.name, cut, sessions, token, price, between(low, high, 2)

    @classmethod
    def price(cls, token: Quantity, sessions: int) -> Quantity:
        """Rent of the server over the tokens that its sessions write."""
        price: Quantity = cls.devices * cls.rent * token / quantity(sessions, "token")
        return price.to("USD/Mtoken")

    @classmethod
    @row_by_hand("DeepSeek-V3 | TP 8 | 13 | 27 ms | 16 USD/Mtoken | …")
    def rows(cls) -> Rows:
        """The dense model, and the mixture by both cuts of its attention."""
        fp8: dict[str, Any] = {"weights": "1 byte", "dtype": "fp8"}
        apart = {**fp8, "copies": cls.devices, "experts": cls.devices}
        return [
            cls.row(DENSE, "TP 8", cls.few),
            cls.row(DENSE, "TP 8", cls.dense_most),
            cls.row(MIXTURE, "TP 8", cls.few, **fp8),
            cls.row(MIXTURE, "DP 8 of attention", cls.few, **apart),
            cls.row(MIXTURE, "DP 8 of attention", cls.dense_most, **apart),
            cls.row(MIXTURE, "DP 8 of attention", cls.many, **apart),
        ]


class ByLoad(Claims):
    """A server with 64 requests at work differs by what they ask."""

    batch = 64

    @classmethod
    def row(cls, load: Load) -> Row:
        """Load, lengths, an answer's time, requests a second, prompt's share of the time."""
        past = cls.past(load)
        reading, writing = (
            expectation(DENSE, prompt=load.prompt + hits, generated=load.generated, batch=cls.batch)
            for hits in (0, past)
        )
        read = reading.time_to_first_token
        answer = (load.generated * writing.time_per_token).to("s")
        rate = quantity(cls.batch, "request") / (read + answer)
        return (
            load.name,
            quantity(load.prompt + past, "token"),
            quantity(load.generated, "token"),
            writing.time_per_token.to("ms"),
            (read + answer).to("s"),
            rate.to("request/s"),
            (read / (read + answer)).to("%"),
        )

    @staticmethod
    def past(load: Load) -> int:
        """Tokens that a session's average turn finds in a cache."""
        if not isinstance(load, Agent):
            return 0
        return load.shared + load.turns // 2 * (load.prompt + load.generated)

    @classmethod
    @row_by_hand("reasoning | 1000 tokens | 8200 tokens | 13 ms | 110 s | 0.59 requests/s | 2.1%")
    def rows(cls) -> Rows:
        """Each of the book's loads."""
        return [cls.row(load) for load in (CHAT, REASONING, SUMMARY, AGENT)]


class ColdStart(Claims):
    """A new replica reads its weights first."""

    weights = (MIXTURE.parameters * quantity("1 byte/param")).to("GB") | by_hand(
        "671026419200 * 1 byte"
    )
    link = quantity("25 GB/s")  # of storage: an input
    from_storage = (weights / link).to("s") | by_hand("(671.0264 / 25) s")
    from_host = (weights / Tiers.host_rate).to("s") | by_hand("671.0264 GB / (8 * 64 GB/s)")


class AskedService(Claims):
    """A service is asked for so many requests a second, and limits that 99 % of them keep."""

    rate = quantity("20 request/s")
    prompt = OneNode.prompt
    answer = OneNode.answer
    ttft = quantity("2 s")
    tpot = quantity("50 ms")
    percentile = quantity(99, "%")


MACHINES = ("dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200")


def devices_of(pools: list[dict[str, Any]]) -> int:
    """Devices of a design, in all its pools."""
    return sum(pool["devices"] for pool in pools)


def paid(machine: str) -> Quantity:
    """Device time of a written token by the best design on a machine."""
    design = RECORDED["machines"][machine]
    throughput = quantity(design["throughput"], "token/s")
    return (devices_of(design["pools"]) / throughput).to("h/Mtoken")


class DesignedService(Claims):
    """A service of Llama 3 70B within limits: machines, pools and what else saves devices."""

    devices = devices_of(RECORDED["machines"]["dgx-h100"]["pools"]) | by_hand(
        "7 * 2 + 2 * 4", "seven copies of TP2 and two of TP4 in the recorded plan"
    )
    # The best of each kind on H100s: replicas that do both, and two pools.
    mixed = devices_of(RECORDED["mixed"]["pools"]) | by_hand("6 * 4")
    reading, writing = (pool["devices"] for pool in RECORDED["apart"]["pools"])
    reading |= by_hand("7 * 2", "seven copies of TP2 in the recorded plan")
    writing |= by_hand("2 * 4", "two copies of TP4 in the recorded plan")
    apart = reading + writing | by_hand("14 + 8")
    writing_copies = RECORDED["apart"]["pools"][-1]["copies"] | by_hand("8 / 4")
    slack_tpot = quantity(RECORDED["apart"]["tpot"], "s").to("ms") | no_hand(
        "29.865287 ms", "simulation with a seed"
    )
    # Requests that are drawn longer than the model's context are cut to it.
    drawn_answer = quantity(RECORDED["drawn_answer"], "token") | no_hand(
        "509.214 token", "counted in a plan whose queues are simulated with a seed"
    )

    # Problem 6: what saves more, by hand and as planned.
    half_of_all = devices / 2 | by_hand("0.5 * 22")
    half_of_reading = devices - reading / 2 | by_hand("22 - 0.5 * 14")
    short_numbers = RECORDED["devices"]["fp8"] | no_hand(
        "20", "counted in a plan whose queues are simulated with a seed"
    )
    hits = quantity(50, "%")
    cached = RECORDED["devices"]["cached"] | no_hand(
        "12", "counted in a plan whose queues are simulated with a seed"
    )
    patient_tpot = quantity("100 ms")
    patient = RECORDED["devices"]["patient"] | no_hand(
        "20", "counted in a plan whose queues are simulated with a seed"
    )
    # Written by the pool that prefills; sending the cache counts towards the next token.
    late = quantity(RECORDED["machines"]["dgx-h200"]["ttft"], "s") | no_hand(
        "1.94881 s", "simulation with a seed"
    )

    @classmethod
    @row_by_hand("H100 | 22 | 7×TP2, 2×TP4 | 1.96 s | 29.9 ms | 0.6 h/Mtoken | 8")
    def row(cls, key: str) -> Row:
        """A machine: devices, their pools, both times as simulated, and what a token takes."""
        design = RECORDED["machines"][key]
        return (
            machines.get(key).device.key.upper(),
            devices_of(design["pools"]),
            ", ".join(f"{pool['copies']}×{pool['group']}" for pool in design["pools"]),
            quantity(design["ttft"], "s"),
            quantity(design["tpot"], "s").to("ms"),
            paid(key),
            design["least_devices"],
        )


def rate_of_most(design: str) -> Quantity:
    """The rate of requests at which a design keeps both limits for most of them, as simulated."""
    most = max(RECORDED["loads"][design], key=lambda load: load["simulated"])
    return quantity(most["rate"], "request/s")


class GoodputByLoad(Claims):
    """The service as two pools, and as replicas that do all, under other loads."""

    rates = (12, 14, 16, *range(18, 37))
    until = quantity("24 request/s")  # the last before either design is at its most

    copies = RECORDED["mixed"]["pools"][0]["copies"] | by_hand("24 / 4")
    most_of_pools = rate_of_most("pools") | by_hand("24 request/s", "as recorded")
    most_of_replicas = rate_of_most("replicas") | by_hand("30 request/s", "as recorded")
    pools: ClassVar[list[dict[str, float]]] = RECORDED["loads"]["pools"]
    replicas: ClassVar[list[dict[str, float]]] = RECORDED["loads"]["replicas"]


def kept(loads: list[dict[str, float]]) -> Quantity:
    """The share of requests that keeps both limits at the service's rate, as simulated."""
    rate = AskedService.rate.m_as("request/s")
    (load,) = (load for load in loads if load["rate"] == rate)
    return quantity(100 * load["simulated"] / rate, "%")


class KeptWithPools(Claims):
    """The two designs keep nearly all at the rate of the question; the closed form is near."""

    apart = kept(GoodputByLoad.pools) | by_hand(
        "19.806187 / 20", "the recorded simulation, with its seed"
    )
    mixed = kept(GoodputByLoad.replicas) | by_hand(
        "19.977778 / 20", "the recorded simulation, with its seed"
    )
    error = quantity(
        100
        * max(
            abs(load["closed_form"] / (load["simulated"] or 1) - 1)
            for load in (*GoodputByLoad.pools, *GoodputByLoad.replicas)
            if load["rate"] <= GoodputByLoad.until.m_as("request/s")
        ),
        "%",
    ) | by_hand("23.841904 / 23.351111 - 1", "the pools at 24 requests a second, as recorded")


class ServiceFrontier(Claims):
    """Below some limit on the time of a token each millisecond costs more than the last."""

    limits = quantity([16, 18, 20, 22, 25, 30, 35, 40, 50, 70, 100, 140, 200], "ms")
    tight = quantity("20 ms")

    @staticmethod
    def of(key: str) -> Quantity:
        """Device time of a written token by the limit on TPOT."""
        return quantity(RECORDED["machines"][key]["frontier"], "h/Mtoken")

    _of_h100s = of("dgx-h100")
    more_for_tight = (_of_h100s[limits == tight][0] / _of_h100s[limits == AskedService.tpot][0]).to(
        ""
    ) | by_hand("0.54598389 / 0.44066616", "device hours at 20 and at 50 ms, as recorded")


@dataclass(frozen=True)
class Goodput:
    """A published rate of written tokens beside the planner's, for each spread of lengths."""

    row: published.Row
    measured: float
    predicted: tuple[float, ...]

    @property
    def scenario(self) -> str:
        """Return which limits it keeps."""
        return str(self.row["scenario"])

    @property
    def errors(self) -> tuple[float, ...]:
        """Return how far each prediction is above what was measured, as a share of that."""
        return tuple(rate / self.measured - 1 for rate in self.predicted)


class PublishedGoodput(Claims):
    """MLPerf's rates within limits, beside what is planned for the same devices."""

    _rows = deferred(tuple)(
        Goodput(row, row.measured["output_tokens_per_s"], tuple(RECORDED["published"][row.id]))
        for row in deferred(published.rows)("serving")
        if row.id in RECORDED["published"]
    )
    count = deferred(len)(_rows) | counted("published goodput")
    error = quantity(
        100 * deferred(median)(abs(error) for row in _rows for error in row.errors), "%"
    ) | counted("median error of published goodput")

    _within = deferred(tuple)(row for row in _rows if row.scenario != "Offline")
    within = deferred(len)(_within) | counted("published goodput within limits")
    error_within = quantity(
        100 * deferred(median)(abs(error) for row in _within for error in row.errors), "%"
    ) | counted("median error within limits")

    @classmethod
    @row_by_hand("8 H200 | Offline | 35 000 tokens/s | −12% | −18%")
    def rows(cls) -> Rows:
        """Devices and scenario; the published rate; errors of the plan for either spread."""
        return [
            (
                f"{conditions.devices(goodput.row)}"
                f" {conditions.machine(goodput.row).device.key.upper()}",
                goodput.scenario,
                quantity(goodput.measured, "token/s"),
                *(quantity(round(100 * error), "%") for error in goodput.errors),
            )
            for goodput in cls._rows
        ]
