"""Claims of the chapter "Expert traffic"."""

from __future__ import annotations

from calc import (
    communication,
    constants,
    curves,
    experts,
    machines,
    models,
    parallelism,
    published,
    training,
)
from calc.catalog.machines import Machine
from calc.core.units import Quantity, quantity
from calc.derivations.bases import ExchangeRatio
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.collectives_chapter import OnTorus
from calc.derivations.deferred import deferred
from calc.derivations.designing_runs import cuts, rates
from calc.derivations.examples import MIXTURE
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Cell, Row, Rows

FP8, BF16 = quantity("1 byte"), quantity("2 byte")


class TokenBytes(Claims):
    """A token's vector goes to k experts and k results come back, in every layer."""

    models = tuple(
        models.get(key) for key in ("deepseek-v3", "kimi-k2.5", "qwen3-235b-a22b", "gpt-oss-120b")
    )
    width = MIXTURE.width
    chosen = MIXTURE.active_experts
    experts = MIXTURE.experts | by_hand("256", "an input: the model's configuration")

    there = (chosen * width * FP8).to("kB")
    back = (chosen * width * BF16).to("kB")
    both = there + back | by_hand("8 * 7168 * 3 bytes")

    @classmethod
    @row_by_hand("gpt-oss-120b | 4 of 128 | 2880 | 2880 | 11.52 kB | 23.04 kB")
    def rows(cls) -> Rows:
        """Each mixture: experts, width, bytes of a token in a layer there and back."""
        return [
            (
                model.name,
                f"{model.active_experts} of {model.experts}",
                model.width,
                model.expert_width,
                (model.active_experts * model.width * FP8).to("kB"),
                (model.active_experts * model.width * BF16).to("kB"),
            )
            for model in cls.models
        ]


class OnceToEachServer(Claims):
    """Experts of one server need a token once, if NVLink passes it on."""

    servers = 8
    limit = 4

    reached = experts.devices_reached(TokenBytes.chosen, servers) | by_hand("8 * (1 - (7/8)**8)")
    saved = (1 - limit / reached).to("%") | by_hand("1 - 4 / 5.251128")


class TwoFabrics(Claims):
    """An exchange among 64 GPUs takes less in a rack than among servers."""

    devices = 64
    few = 128
    many = 4096
    machines = tuple(machines.get(key) for key in ("dgx-h200", "dgx-b200", "gb300-nvl72"))

    @classmethod
    def exchanges(cls, machine: Machine, tokens: int) -> tuple[Quantity, Quantity]:
        """Least and expected time of dispatch in FP8 and combine in BF16, one after the other."""
        sizes = (
            communication.expert_exchange(machine, tokens * each, cls.devices)
            for each in (TokenBytes.there, TokenBytes.back)
        )
        least, expected = (sum(times) for times in zip(*sizes, strict=True))
        return least, expected

    @classmethod
    def layer(cls, machine: Machine, tokens: int) -> Quantity:
        """Arithmetic of a layer's forward pass at the best FP8 GEMM measured."""
        work = training.inference_flops(MIXTURE.active_parameters) * tokens / MIXTURE.layers
        time: Quantity = work / machine.likely("gemm", "fp8")
        return time.to("ms")

    @classmethod
    @row_by_hand("NVIDIA GB300 NVL72 | 128 | 24 µs | 110 µs | 47 µs")
    def rows(cls) -> Rows:
        """Machine, tokens, both exchanges at least and expected, and the layer's arithmetic."""
        rows: list[Row] = []
        for machine in cls.machines:
            for tokens in (cls.few, cls.many):
                least, expected = cls.exchanges(machine, tokens)
                name = machine.name.partition(",")[0]
                arithmetic = cls.layer(machine, tokens).to("µs")
                rows.append((name, tokens, least.to("µs"), expected.to("µs"), arithmetic))
        return rows


class OpeningLayer(Claims):
    """On servers a layer's exchange takes several times its arithmetic, in a rack less than it."""

    servers, _, rack = TwoFabrics.machines

    by_servers = TwoFabrics.exchanges(servers, TwoFabrics.many)[0].to("ms") | by_hand(
        "56/64 * 4096 * 172032 byte / 50 GB/s"
    )
    arithmetic = TwoFabrics.layer(servers, TwoFabrics.many) | by_hand(
        "2 * 37.5525e9 * 4096 FLOP / 61 / 1453.4 TFLOP/s"
    )
    by_rack = TwoFabrics.exchanges(rack, TwoFabrics.many)[0].to("ms") | by_hand(
        "63/64 * 4096 * 172032 byte / 900 GB/s"
    )
    arithmetic_of_rack = TwoFabrics.layer(rack, TwoFabrics.many) | by_hand(
        "2 * 37.5525e9 * 4096 FLOP / 61 / 3353 TFLOP/s"
    )


class ThreeFabrics(Claims):
    """One exchange of a layer on a switch, over rails, and on a torus of 64 devices."""

    _all = TwoFabrics.many * TokenBytes.both
    sent = (_all * (OnTorus.devices - 1) / OnTorus.devices).to("MB") | by_hand(
        "63/64 * 4096 * 172032 byte"
    )
    on_torus = (_all / OnTorus.exchange).to("ms") | by_hand("4096 * 172032 byte / 200 GB/s")


class WidthThatHides(Claims):
    """Wider experts hide their exchange; more tokens, more experts and a wider model do not."""

    width = MIXTURE.expert_width | by_hand("2048", "an input: the model's configuration")

    @classmethod
    def needed(cls, machine: Machine, devices: int, crossing: float) -> Quantity:
        """Width of an expert whose products take as long as its bytes over the slowest link."""
        within = devices <= machine.domain
        bandwidth = machine.bandwidth if within else machine.ports
        rate = machine.likely("gemm", "fp8")
        needed: Quantity = (crossing * (FP8 + BF16) * rate / (6 * bandwidth)).to("FLOP")
        return quantity(needed.m_as("FLOP"), "")

    @classmethod
    def row(cls, name: str, machine: Machine, devices: int, limit: float = 1) -> Row:
        """The domain, what crosses its slowest link, the width that hides it, and the ratios.

        A token may be sent once to each of a few servers, which is so large a part of its copies.
        """
        domains = max(1, devices // machine.domain)
        places = domains if domains > 1 else devices
        crossing = limit * (places - 1) / places
        ratios = (
            ExchangeRatio.published(machine, devices),
            ExchangeRatio.reached(machine, devices),
            ExchangeRatio.planned(machine, devices),
        )
        limited = (ratio and limit * ratio for ratio in ratios)
        share = quantity(100 * crossing, "%")
        return name, devices, share, cls.needed(machine, devices, crossing), *limited

    @classmethod
    @row_by_hand("8 × H200 and NDR | 64 | 88% | 13 000 | 4.8 | 3.9 | 1.2")
    def rows(cls) -> Rows:
        """Servers, with every copy by itself and once to each of a few, and a rack."""
        server, newer, rack = TwoFabrics.machines
        return [
            cls.row("8 × H200 and NDR", server, 64),
            cls.row("the same, once to each of 4 servers at most", server, 64, 4 / 8),
            cls.row("one server of 8 × H200", server, 8),
            cls.row("8 × B200 and NDR", newer, 64),
            cls.row("one server of 8 × B200", newer, 8),
            cls.row("GB300 NVL72", rack, 64),
        ]


def best(curve: str) -> Quantity:
    """The bus bandwidth that a measured curve reaches at most."""
    return quantity(max(curves.get(curve).bus_bandwidths), "byte/s").to("GB/s")


class MeasuredAllToAll(Claims):
    """An all-to-all keeps the rate of NVLink in a domain and falls to the port beyond it."""

    names = (
        ("8 H100, one server", "alltoall-8xh100-cnode3"),
        ("16 H100, two servers", "alltoall-16xh100-cnode3"),
        ("80 H100, ten servers", "alltoall-80xh100-cnode3"),
        ("8 B200, one server", "alltoall-8xb200-hgx-vultr"),
        ("64 GB300, one rack", "alltoall-64xgb300-oci"),
        ("128 GB300, two racks", "alltoall-128xgb300-oci"),
    )

    @classmethod
    @row_by_hand("64 GB300, one rack | 17.2 GB | 667 GB/s")
    def rows(cls) -> Rows:
        """Devices, the largest array, and the bus bandwidth reached at most."""
        return [
            (name, quantity(curves.get(key).sizes[-1], "byte").to("GB"), best(key))
            for name, key in cls.names
        ]

    rack = best("alltoall-64xgb300-oci") | by_hand("666.9335 GB/s")
    racks = best("alltoall-128xgb300-oci") | by_hand("47.66548 GB/s")


class Kernels(Claims):
    """Kernels made for experts' exchange, as their authors measured them."""

    port = machines.get("hgx-h800").ports
    first, later = "DeepEP V1, normal, 4096 tokens", "DeepEP V2, 8192 tokens"
    names = (
        (first, "deepep-v1-normal"),
        (first, "deepep-v1-normal-2"),
        (first, "deepep-v1-normal-3"),
        (first, "deepep-v1-normal-4"),
        (later, "deepep-v2-4"),
        (later, "deepep-v2"),
        (later, "deepep-v2-2"),
        (later, "deepep-v2-3"),
    )

    @classmethod
    @row_by_hand("DeepEP V2, 8192 tokens | 32 Hopper | the ports | 61 GB/s | 61 GB/s")
    def rows(cls) -> Rows:
        """Library, devices, the slowest of what it crosses, and bandwidth there and back."""
        rows: list[Row] = []
        for name, key in cls.names:
            row = published.row(key)
            reached = (row.measured[f"{way}_bandwidth"] for way in ("dispatch", "combine"))
            device = row.device.removeprefix("NVIDIA ").partition(" (")[0]
            rates = (quantity(rate, "GB/s") for rate in reached)
            crossed = "NVLink" if row["num_devices"] == 8 else "the ports"
            rows.append((name, f"{row['num_devices']} {device}", crossed, *rates))
        return rows

    @staticmethod
    @row_by_hand("16 | 118 µs | 117 µs | 1% | 195 µs | 191 µs | 2%")
    def low_latency(devices: int) -> Row:
        """Devices, published times of 128 tokens' dispatch and combine, and what is expected."""
        cells: list[Cell] = [devices]
        machine = machines.get("hgx-h800")
        [row] = [
            row
            for row in published.rows("collective")
            if row.id.startswith("deepep-v1-lowlat") and row.number("num_devices") == devices
        ]
        for way, each in (("dispatch", TokenBytes.there), ("combine", TokenBytes.back)):
            measured = quantity(row.measured[f"{way}_latency"], "us").to("µs")
            sent = TwoFabrics.few * each
            expected = communication.expert_exchange(machine, sent, devices)[1].to("µs")
            error = quantity(round((measured / expected - 1).m_as("%")), "%")
            cells += [measured, expected, error]
        return tuple(cells)

    devices = (8, 16, 32, 64, 128, 256)
    start_up = constants.latency_expert_exchange


class CombineAmongMany(Claims):
    """On more than 64 devices a combine takes longer than its bytes and a start."""

    error = max(Kernels.low_latency(count)[6] for count in (128, 256)) | by_hand(
        "floor((369 / (88 + 231.2) - 1) * 100 + 0.5) * 1 %"
    )


class TrainingRows(Claims):
    """Training pays for its exchanges by machine, in published rows of one model on four."""

    rows_of = ("mbridge-26.08", "mbridge-26.08-2", "mbridge-26.04.01-18", "mbridge-25.09-15")
    found = deferred(tuple)(published.predict(published.row(key)) for key in rows_of)
    _interval = found[0].interval
    low, high = (quantity(round(100 * (end - 1)), "%") for end in (_interval.low, _interval.high))
    high |= by_hand("(floor(100 * 1.246 - 100 + 0.5)) * 1 %")
    sooner_least = quantity(-100 * found[3].error, "%") | by_hand("1 - 984.80 / 1297")
    sooner_most = quantity(-100 * found[2].error, "%") | by_hand("1 - 2179.67 / 3328")
    low |= by_hand("(floor(100 * 0.857 - 100 + 0.5)) * 1 %", "intervals.csv, training of mixtures")

    @staticmethod
    def row(index: int) -> Row:
        """Devices, layout, rate measured and expected, error, and the exchanges' expected share."""
        row, prediction = TrainingRows.found[index].row, TrainingRows.found[index].prediction
        assert prediction is not None
        assert prediction.parts is not None
        assert prediction.expected is not None
        devices = f"{row['num_devices']} {row.device.removeprefix('DGX-')}"
        share = quantity(100 * prediction.parts["experts"] / prediction.expected, "%")
        return devices, " ".join(cuts(row)), *rates(TrainingRows.found[index]), share

    @classmethod
    @row_by_hand("256 GB300 | TP1 PP2 EP32 | 6300 tokens/s | 4700 tokens/s | −25% | 23%")
    def rows(cls) -> Rows:
        """Return all rows."""
        return [cls.row(index) for index in range(len(cls.found))]


class Balance(Claims):
    """Chance evens out with tokens; preference does not."""

    tokens = TwoFabrics.many
    devices = TwoFabrics.devices | by_hand("64")

    mean = tokens * devices * TokenBytes.chosen // TokenBytes.experts
    of_chance = (experts.fullest_load(mean, TokenBytes.experts) / mean - 1).to("%") | by_hand(
        "sqrt(2 * ln(256) / 8192)"
    )
    few_mean = TwoFabrics.few * devices * TokenBytes.chosen // TokenBytes.experts
    of_few = (experts.fullest_load(few_mean, TokenBytes.experts) / few_mean - 1).to("%") | by_hand(
        "sqrt(2 * ln(256) / 256)"
    )


class StepOfMixture(Claims):
    """Problem 2: what all layers of a step send, forward and backward."""

    tokens = TwoFabrics.many
    layers = 58
    passes = 2
    in_server = 8

    sent = (
        parallelism.expert_traffic(
            tokens, TokenBytes.width, TokenBytes.chosen, TwoFabrics.devices, FP8, BF16
        )
        * layers
        * passes
    ).to("GB") | by_hand("63/64 * 4096 * 172032 * 58 * 2 byte")
    by_port = (sent * (7 / 8) / (63 / 64) / TwoFabrics.machines[0].ports).to("s") | by_hand(
        "7/8 * 4096 * 172032 * 116 byte / 50 GB/s"
    )
    by_rack = (sent / TwoFabrics.machines[2].bandwidth).to("s") | by_hand("(80.46143 / 900) s")
