"""Claims of the chapter "Decision tables": thresholds, and what published rows say of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from statistics import median, quantiles

import calc
from calc import (
    communication,
    constants,
    context_parallelism,
    cost,
    inference,
    published,
    software,
    speculation,
    transformer,
)
from calc.catalog import intervals
from calc.catalog.machines import Machine
from calc.core.errors import InputError
from calc.core.units import Quantity, quantity
from calc.derivations import examples
from calc.derivations.bases import ExchangeRatio, HalfBandwidth, HidingTokens, Rent, TensorLimit
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.ledger import Claims
from calc.derivations.quoting import DASH, Quoted, Row, Rows, show
from calc.derivations.traces import number, whole
from calc.planning.estimate import Estimate
from calc.published import closed_loops, comparing, conditions
from calc.steps import curves, kernels
from calc.steps.job import Formats, Job, Layout, Tokens

NAMES = {
    "dgx-h100": "DGX H100",
    "dgx-h200": "DGX H200",
    "dgx-b200": "DGX B200",
    "gb300-nvl72": "GB300 NVL72",
    "mi355x-8": "MI355X, 8",
    "tpu-v7-pod": "TPU v7",
}


def rounded(value: Quantity | float | None, digits: int = 2) -> Quoted:
    """Return a value that is no surer than that; a dash where it is not known."""
    return Quoted(DASH) if value is None else show(value, digits=digits)


def span(values: Iterable[float]) -> Quoted:
    """The least and the most of several ratios."""
    ends = sorted(values)
    return Quoted(f"{show(ends[0], digits=2)}–{show(ends[-1], digits=2)}")


class HowFarOff(Claims):
    """Published rows like those that the tables expect lie for 80 % within these bounds."""

    _serving = intervals.interval_of("serving", "vllm", mixture=False)
    serving_rows = _serving.rows | by_hand("315", "intervals.csv, serving of dense models by vLLM")
    shorter = quantity(100 * (1 - _serving.low), "%") | by_hand("1 - 0.813")
    longer = quantity(100 * (_serving.high - 1), "%") | by_hand("1.095 - 1")
    _long = curves.spreads()[-1]
    sooner = quantity(100 * (1 - _long.low), "%") | by_hand("1 - 0.836")
    later = quantity(100 * (_long.high - 1), "%") | by_hand("1.296 - 1")


class CutsThatHide(Claims):
    """A cut of the work pays if its messages hide: from some tokens on, or up to some devices."""

    dense, mixture = examples.DENSE, examples.MIXTURE
    devices = 512

    total_per_active = (mixture.parameters / mixture.active_parameters).to("") | by_hand(
        "671.03e9 / 37.55e9"
    )

    @classmethod
    def limits(cls, machine: Machine) -> tuple[Quantity | None, ...]:
        """Limits of TP among the devices of a server, and of two."""
        counts = TensorLimit.inside, TensorLimit.across
        return tuple(TensorLimit.planned(machine, count) for count in counts)

    @classmethod
    def exchanges(cls, machine: Machine) -> tuple[Quantity | None, ...]:
        """Ratios of an exchange of experts inside the domain, and across domains."""
        inside = ExchangeRatio.within(machine)
        across = ExchangeRatio.across
        beyond = ExchangeRatio.planned(machine, across) if machine.domain < across else None
        return ExchangeRatio.planned(machine, inside), beyond

    @classmethod
    @row_by_hand(
        "DGX H200 | 1500 tokens | 2600 tokens | 47 000 tokens | 23 / 19 | 0.26 / 1.2 | 3200"
    )
    def rows(cls) -> Rows:
        """Machine; DP or FSDP inside and across, and of a mixture; limits of TP, EP and CP."""
        lines: list[Row] = []
        for machine in examples.MACHINES:
            across = machine.ports if machine.publishes("ports") else machine.bandwidth
            outside = HidingTokens.planned(machine, cls.devices)
            slices = (
                str(whole(most)) if most is not None else DASH for most in cls.limits(machine)
            )
            exchanges = (str(rounded(ratio)) for ratio in cls.exchanges(machine))
            lines.append(
                (
                    NAMES[machine.key],
                    rounded(HidingTokens.planned(machine, 8)),
                    rounded(outside),
                    rounded(outside and outside * cls.total_per_active),
                    Quoted(" / ".join(slices)),
                    Quoted(" / ".join(exchanges)),
                    rounded(cls.ring(machine, across)),
                )
            )
        return lines

    @classmethod
    def ring(cls, machine: Machine, bandwidth: Quantity) -> Quantity:
        """Tokens of a device from which ring attention hides keys and values, under a mask."""
        share = cls.dense.heads / cls.dense.kv_heads
        rate = machine.likely("attention", "forward")
        return 2 * context_parallelism.ring_block(rate, bandwidth, share)


class PublishedCuts(Claims):
    """Published training runs are cut in these ways, and reach these shares of the bound."""

    devices = ("h100", "b200", "b300", "gb200", "gb300")

    @classmethod
    def shares(cls, device: str, mixture: bool, dtype: str) -> list[published.Comparison]:
        """Rows of a device, a kind of model and a format."""
        return [
            row
            for row in comparing.compared("training")
            if row.share_of_bound
            and calc.machines.get(row.machine).device.key == device
            and row.mixture == mixture
            and conditions.format_of(row.row["dtype"]) == dtype
        ]

    @classmethod
    def reached(cls, device: str, mixture: bool, dtype: str) -> Quoted:
        """The middle half of their shares of the bound."""
        shares = [row.share_of_bound or 0 for row in cls.shares(device, mixture, dtype)]
        low, _, high = quantiles(shares, n=4)
        ends = (str(show(100 * share, digits=2)) for share in (low, high))
        return Quoted(f"{'–'.join(ends)}%")

    @classmethod
    @row_by_hand("mixture | B300, FP8 | 12 | 12 of 12 | 1 / 4 / 8 | 16–22%")
    def rows(cls) -> Rows:
        """Device and kind; rows; how many have TP 1; usual degrees; share of the bound."""
        lines: list[Row] = []
        for mixture in (False, True):
            for device in cls.devices:
                for dtype in ("bf16", "fp8"):
                    alike = cls.shares(device, mixture, dtype)
                    stated = [cuts for row in alike if (cuts := conditions.layout(row.row))]
                    if len(alike) < 5:
                        continue
                    degrees = [
                        [cuts.get(name, 1) for cuts in stated] for name in ("TP", "PP", "EP")
                    ]
                    usual = (str(whole(median(cut))) for cut in degrees if cut)
                    lines.append(
                        (
                            "mixture" if mixture else "dense",
                            f"{device.upper()}, {dtype.upper()}",
                            len(alike),
                            Quoted(f"{degrees[0].count(1)} of {len(stated)}"),
                            Quoted(" / ".join(usual) or DASH),
                            cls.reached(device, mixture, dtype),
                        )
                    )
        return lines


class PrecisionByBatch(Claims):
    """Fewer bits gain in decode, by batch and device."""

    model = examples.DENSE
    devices = 4
    load = examples.CHAT
    batches = (1, 16, 64, 256)
    formats = (
        ("dgx-h200", "FP8", {"weights": "1 byte", "dtype": "fp8"}),
        ("dgx-h200", "INT4 weights", {"weights": "w4a16"}),
        ("dgx-b200", "FP8", {"weights": "1 byte", "dtype": "fp8"}),
        ("dgx-b200", "NVFP4", {"weights": "4.5 bit", "dtype": "fp4"}),
        ("gb300-nvl72", "FP8", {"weights": "1 byte", "dtype": "fp8"}),
        ("gb300-nvl72", "NVFP4", {"weights": "4.5 bit", "dtype": "fp4"}),
        ("mi355x-8", "FP8", {"weights": "1 byte", "dtype": "fp8"}),
        ("mi355x-8", "MXFP4", {"weights": "4.25 bit", "dtype": "fp4"}),
        ("tpu-v7-pod", "FP8", {"weights": "1 byte", "dtype": "fp8"}),
    )

    @classmethod
    def planned(cls, machine: str, batch: int, options: dict[str, str]) -> Estimate:
        """Return the plan of the dense model under the load of a chat."""
        return calc.plan(
            cls.model,
            machine,
            batch=batch,
            devices=cls.devices,
            prompt=cls.load.prompt,
            generated=cls.load.generated,
            weights=options.get("weights"),
            dtype=options.get("dtype"),
        )

    @classmethod
    def gain(cls, machine: str, batch: int, options: dict[str, str]) -> Quoted:
        """Return how many times sooner fewer bits write a token; marked where that is undecided."""
        times, ends = [], []
        for each in ({}, options):
            plan = cls.planned(machine, batch, each)
            assert plan.expected is not None
            assert plan.expected.time_per_token is not None
            times.append(plan.expected.time_per_token)
            ends.append(plan.interval("time_per_token"))
        ratio = rounded((times[0] / times[1]).m_as(""))
        return Quoted(f"{ratio}{UNDECIDED}") if overlap(*ends) else ratio

    @classmethod
    @row_by_hand("DGX H200 | INT4 weights | 43 | 1.6 | 1.1? | 0.97? | 0.83?")
    def rows(cls) -> Rows:
        """Machine, format, rows up to which weights bind, and the gain over BF16 by batch."""
        lines: list[Row] = []
        for key, name, options in cls.formats:
            machine = calc.machines.get(key)
            size = calc.formats.element_size("weights", options["weights"])
            rate = machine.likely("gemm", options.get("dtype", "bf16"))
            filled = (rate * size / (2 * machine.device.memory_bandwidth)).m_as("FLOP")
            gains = (cls.gain(key, batch, options) for batch in cls.batches)
            lines.append((NAMES[key], name, rounded(filled), *gains))
        return lines


UNDECIDED = "?"
"""Behind a gain that is smaller than the intervals of both times."""


@deferred
def count_decided() -> int:
    """Return how many of the gains of `PrecisionByBatch` carry no question mark."""
    gains = (str(gain) for row in PrecisionByBatch.rows() for gain in row[3:])
    return sum(not gain.endswith(UNDECIDED) for gain in gains)


class DecidedGains(Claims):
    """Hardly a gain that is expected of fewer bits exceeds the intervals of its times."""

    gains = len(PrecisionByBatch.formats) * len(PrecisionByBatch.batches) | by_hand("9 * 4")
    decided = count_decided() | by_hand("8")


def overlap(one: tuple[Quantity, Quantity] | None, other: tuple[Quantity, Quantity] | None) -> bool:
    """Return whether two intervals have a time in common, as far as both are known.

    >>> from calc import quantity
    >>> short, long = (tuple(quantity(end, "ms") for end in ends) for ends in ((1, 3), (2, 4)))
    >>> overlap(short, long), overlap(short, None)
    (True, True)
    """
    return one is None or other is None or (one[0] <= other[1] and other[0] <= one[1])


TRAINED = (("bf16", "fp8"), ("fp8", "fp4"))


@cache
def trained_pairs() -> dict[tuple[str, str, str], list[float]]:
    """Throughput of published training in fewer bits over that in more, alike in all else."""
    alike: dict[tuple[object, ...], dict[str, float]] = defaultdict(dict)
    for row in published.rows("training"):
        try:
            device, model = conditions.machine(row).device.key, conditions.model(row).key
        except InputError:
            continue
        cut = tuple(sorted(conditions.layout(row).items()))
        rates = (row.measured.get(name) for name in ("tokens_per_s_per_gpu", "tokens_per_s"))
        rate, dtype = next(filter(None, rates), None), conditions.format_of(row["dtype"])
        if rate and dtype:
            asked = (row["num_devices"], row["seq_len"])
            alike[(device, model, row.source, cut, *asked)].setdefault(dtype, rate)
    pairs: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for key, by_format in alike.items():
        for more, fewer in TRAINED:
            if more in by_format and fewer in by_format:
                pairs[str(key[0]), more, fewer].append(by_format[fewer] / by_format[more])
    return pairs


@cache
def served() -> list[tuple[published.Row, float]]:
    """Closed loops with the tokens that a device writes in a second."""
    loops = []
    for row in closed_loops.rows():
        try:
            devices = closed_loops.job_of(row).layout.devices
            if row["mode"] == "disagg":
                readers = closed_loops.job_of(row, "readers_").layout.devices
                devices = devices * row["servers"] + readers * row["readers"]
        except InputError:  # what the source does not say
            continue
        _, answer = closed_loops.mean_lengths(row)
        whole = row.measured["ttft"] + answer * row.measured["tpot"]
        loops.append((row, number(row["clients"] * answer / whole / devices)))
    return loops


def program(row: published.Row) -> str:
    """Return the program that served, without its version."""
    return str(row["software"]).split()[0]


def ratios(field: str, first: str, second: str) -> dict[tuple[str, str], list[float]]:
    """Tokens a device of the second over those of the first, in loops alike in all else."""
    fixed = ("input", "output", "clients", "tensor", "data", "format", "software")
    alike: dict[tuple[object, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row, rate in served():
        fixed_values = {name: program(row) if name == "software" else row[name] for name in fixed}
        value = fixed_values.pop(field)
        if row["mode"] == "agg":
            alike[(row["machine"], row["model"], *fixed_values.values())][value].append(rate)
    by_setting: dict[tuple[str, str], list[float]] = defaultdict(list)
    for key, by_value in alike.items():
        if by_value.get(first) and by_value.get(second):
            machine, model = str(key[0]), str(key[1])
            by_setting[machine, model].append(median(by_value[second]) / median(by_value[first]))
    return by_setting


def measured_row(machine: str, model: str, what: str, values: list[float]) -> Row:
    """The middle and the ends of measured ratios."""
    name = calc.models.get(model).name
    return NAMES[machine], name, what, rounded(median(values)), span(values), len(values)


class MeasuredFormats(Claims):
    """Fewer bits gained this much in measurements."""

    @staticmethod
    @row_by_hand("DGX B200 | DeepSeek-V3 | NVFP4 over FP8 | 1.3 | 0.69–1.7 | 33")
    def rows() -> Rows:
        """Training, then serving."""
        trained: list[Row] = [
            (
                f"training, {device.upper()}",
                "several",
                f"{fewer.upper()} over {more.upper()}",
                rounded(median(values)),
                span(values),
                len(values),
            )
            for (device, more, fewer), values in sorted(trained_pairs().items())
            if len(values) >= 5
        ]
        written = [
            measured_row(machine, model, "NVFP4 over FP8", values)
            for (machine, model), values in sorted(ratios("format", "fp8", "nvfp4").items())
            if len(values) >= 5
        ]
        return [*trained, *written]


class MeasuredSoftware(Claims):
    """Engines were this far apart, alike in all else."""

    pairs = (("tensorrt-llm", "vllm"), ("sglang", "vllm"), ("sglang", "tensorrt-llm"))

    @classmethod
    @row_by_hand("DGX B200 | gpt-oss-120b | vLLM over TensorRT-LLM | 0.87 | 0.68–1.1 | 64")
    def rows(cls) -> Rows:
        """Machine, model, which over which, and the ratios."""
        return [
            measured_row(
                machine,
                model,
                f"{software.get(second).name} over {software.get(first).name}",
                values,
            )
            for first, second in cls.pairs
            for (machine, model), values in sorted(ratios("software", first, second).items())
            if len(values) >= 5
        ]


class MeasuredPools(Claims):
    """Servers apart over servers that do all, each at its best, by the limit on a token."""

    limits = (
        quantity("20 ms"),
        quantity("30 ms"),
        quantity("50 ms"),
        quantity("100 ms"),
    ) | row_by_hand("DGX B200 | DeepSeek-V3, NVFP4 | 1024 + 1024 | 1.1 | 3.1 | 3.3 | 3.3")

    @classmethod
    def best(cls, limit: float) -> dict[tuple[str, ...], dict[str, float]]:
        """Most tokens of a device within the limit, by what is served and how."""
        most: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
        for row, rate in served():
            if row.measured["tpot"] <= limit:
                names = ("machine", "model", "format", "input", "output")
                modes = most[tuple(str(row[name]) for name in names)]
                modes[row["mode"]] = max(modes.get(row["mode"], 0), rate)
        return most

    @classmethod
    def rows(cls) -> Rows:
        """Machine, model, format and lengths; the ratio at each limit."""
        by_limit = [cls.best(limit.m_as("s")) for limit in cls.limits]
        keys = [key for key, modes in by_limit[-1].items() if len(modes) == 2]
        lines: list[Row] = []
        for key in sorted(keys):
            machine, model, form, prompt, answer = key
            cells = (
                rounded(modes["disagg"] / modes["agg"] if len(modes) == 2 else None)
                for modes in (best.get(key, {}) for best in by_limit)
            )
            name = f"{calc.models.get(model).name}, {form.upper()}"
            lines.append((NAMES[machine], name, Quoted(f"{prompt} + {answer}"), *cells))
        return lines


class CachesOrWeights(Claims):
    """From how many tokens in flight caches outweigh weights, and what shorter caches gain."""

    models = (
        (examples.DENSE, "1 byte"),
        (examples.MIXTURE, "1 byte"),
        (examples.HYBRID, "2 byte"),
        (examples.HAND, "2 byte"),
    )
    gain = 1.25  # from which it is worth a test of quality

    @classmethod
    def thresholds(cls) -> Iterator[tuple[str, Quantity, Quantity, Quantity, Quantity]]:
        """Model, bytes of weights and of a cached token, and tokens that gain and outweigh."""
        # (W + C) / (W + C / 2) is g where C = W (g - 1) / (1 - g / 2)
        share = (cls.gain - 1) / (1 - cls.gain / 2)
        for model, size in cls.models:
            weights = inference.weight_memory(model, size)
            token = transformer.kv_cache_per_token(model)
            yield model.name, weights, token, share * weights / token, weights / token

    @classmethod
    @row_by_hand("DeepSeek-V3 | 670 GB | 70.3 kB/token | 6.4 million tokens | 9.5 million tokens")
    def rows(cls) -> Rows:
        """Return the rows as a table prints them."""
        return [
            (
                name,
                rounded(weights.to("GB")),
                rounded(token.to("kB/token"), 3),
                rounded(gains.to("token")),
                rounded(outweighs.to("token")),
            )
            for name, weights, token, gains, outweighs in cls.thresholds()
        ]


class GraphOrNot(Claims):
    """A launch may cost the host so much before the device waits for it."""

    steps = (
        (examples.HAND, "dgx-h200", 1, "bf16", "2 byte"),
        (examples.HYBRID, "dgx-h200", 1, "bf16", "2 byte"),
        (examples.DENSE, "dgx-h200", 4, "fp8", "1 byte"),
        (examples.DENSE, "dgx-b200", 4, "fp8", "1 byte"),
        (examples.MIXTURE, "dgx-b200", 8, "fp8", "1 byte"),
    )
    batches = (1, 64)
    context = 1536

    @classmethod
    @row_by_hand("Llama 3 8B | 1 of a DGX H200 | 290 | 11 µs | 20 µs")
    def rows(cls) -> Rows:
        """Model, devices, launches of a step, and time of a launch by batch."""
        lines: list[Row] = []
        for model, key, devices, dtype, size in cls.steps:
            job = Job(
                model,
                calc.machines.get(key),
                Layout(tensor=devices),
                Formats(dtype, quantity(size), quantity("2 byte")),
            )
            load = Tokens(writing=1, context=cls.context)
            launches = sum(kernel.launches for kernel in kernels.step(job, load))
            sizes = {"dtype": dtype, "weight_size": size}
            steps = (
                inference.decode(model, job.machine, cls.context, batch, devices, **sizes)
                for batch in cls.batches
            )
            each = (rounded((step.lower / launches).to("µs")) for step in steps)
            lines.append((model.name, f"{devices} of a {NAMES[key]}", rounded(launches), *each))
        return lines


class Buckets(Claims):
    """Below which size a collective mostly starts, and above which it mostly sends."""

    smallest = quantity("64 kB")
    largest = HalfBandwidth.largest
    most = quantity(80, "%")

    @classmethod
    @row_by_hand("DGX B200 | 8 | 53 µs | 75 MB | 440 MB")
    def rows(cls) -> Rows:
        """Machine, devices, the smallest array's time, and the sizes of half and of most."""
        lines: list[Row] = []
        for machine in examples.MACHINES:
            for devices in (8, 512):
                half = HalfBandwidth.planned(machine, devices)
                most = HalfBandwidth.planned(machine, devices, cls.most.m_as(""))
                if half is not None and most is not None:
                    start = communication.time("all_reduce", cls.smallest, devices, machine).needed
                    cells = (rounded(start.to("µs")), rounded(half), rounded(most))
                    lines.append((NAMES[machine.key], devices, *cells))
        return lines


class DraftsOrNot(Claims):
    """A trained head gains by batch and context."""

    model, machine, devices = examples.DENSE, "dgx-h200", 8
    drafted = 3
    acceptance = quantity(70, "%")
    batches = (1, 32, 128, 512)
    contexts = (1024, 8192, 32768)

    tokens = speculation.speculative_tokens(acceptance, drafted)

    @classmethod
    def gain(cls, batch: int, context: int) -> Quoted:
        """At the roofs that kernels were measured to reach; a head costs one layer of the model."""
        machine = calc.machines.get(cls.machine)
        weights = inference.weight_memory(cls.model, "1 byte")
        cached = batch * quantity(context, "token") * transformer.kv_cache_per_token(cls.model)
        if weights + cached > cls.devices * machine.device.memory_capacity:
            return rounded(None)
        memory = (weights + cached) / (cls.devices * machine.memory_reached)
        work = 2 * cls.model.multiplied_parameters.m_as("param") * batch
        compute = quantity(work, "FLOP") / (cls.devices * machine.likely("gemm", "fp8"))
        plain, check = max(memory, compute), max(memory, (cls.drafted + 1) * compute)
        head = cls.drafted * plain / cls.model.layers
        return rounded((cls.tokens * plain / (check + head)).m_as(""))

    @classmethod
    @row_by_hand("8192 tokens | 2.4 | 2.4 | 2.4 | –")
    def rows(cls) -> Rows:
        """Context, and the gain by batch."""
        return [
            (show(quantity(context, "token")), *(cls.gain(batch, context) for batch in cls.batches))
            for context in cls.contexts
        ]


class BuyOrRent(Claims):
    """A bought device costs less than a rented one from some share of all hours on."""

    rent = Rent.published_h200
    power = calc.machines.get("dgx-h200").power / 8
    electricity = constants.price_electricity_us_industry
    pue = constants.pue_average
    space = quantity("1800 USD/(kW·year)") | by_hand("150 USD/(kW*month) * 12 month/year")
    interest = quantity("8 %/year")
    lifetimes = tuple(quantity(years, "year") for years in (3, 4, 5))
    purchases = tuple(quantity(price, "USD") for price in (30000, 40000, 50000))

    @classmethod
    def share(cls, purchase: Quantity, lifetime: Quantity) -> Quantity:
        """Return the share with electricity, space and interest on the half that is still owed."""
        plain = cost.price_of_ownership(purchase, lifetime, cls.power, cls.electricity, cls.pue)
        owed = purchase / 2 * cls.interest
        price = (plain + owed + cls.power * cls.space).to("USD/h")
        return cost.break_even_utilization(price, cls.rent).to("%")

    @classmethod
    @row_by_hand("40 000 USD | 61% | 50% | 43%")
    def rows(cls) -> Rows:
        """Purchase, and the share by lifetime."""
        return [
            (show(price), *(rounded(cls.share(price, lifetime)) for lifetime in cls.lifetimes))
            for price in cls.purchases
        ]
