"""Claims of the chapter "Amdahl and Gustafson"."""

from __future__ import annotations

from calc import constants, published, scaling
from calc.core.units import Quantity, quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows
from calc.derivations.traces import whole


class FixedWork(Claims):
    """A job that is 5 % serial gains 5.93 from 8 processors, and never more than 20."""

    serial = quantity(5, "%")
    processors = 8
    many = 64

    speedup = scaling.amdahl(serial, processors) | by_hand("1 / (0.05 + 0.95 / 8)")
    efficiency = speedup / processors | by_hand("5.926 / 8")
    limit = scaling.amdahl_limit(serial) | by_hand("1/0.05")
    half_way = ((1 - serial) / serial).to("") | by_hand("0.95 / 0.05")
    many_speedup = scaling.amdahl(serial, many) | by_hand("1 / (0.05 + 0.95 / 64)")


class FixedTime(Claims):
    """A problem that grows with the machine keeps its speedup growing."""

    serial = FixedWork.serial
    many = 1000

    many_speedup = scaling.gustafson(serial, many) | by_hand("1000 - 0.05 * 999")
    numbers = (8, 64, 256, 1000)

    @classmethod
    @row_by_hand("8 | 5.926 | 74.07% | 7.65 | 95.62%")
    def row(cls, number: int) -> tuple[int, Quantity, Quantity, Quantity, Quantity]:
        """Both laws for so many processors: speedup, and its share of the number."""
        fixed, scaled = scaling.amdahl(cls.serial, number), scaling.gustafson(cls.serial, number)
        return number, fixed, (fixed / number).to("%"), scaled, (scaled / number).to("%")


class OneRun(Claims):
    """One run has two serial fractions, and with each its own law gives the same speedup."""

    processors = FixedWork.processors
    of_parallel_run = quantity(5, "%")

    scaled = scaling.gustafson(of_parallel_run, processors) | by_hand("8 - 0.05 * 7")
    converted = scaling.serial_fraction_of_serial_run(of_parallel_run, processors) | by_hand(
        "0.05 / (0.05 + 0.95 * 8)"
    )


class Sandia(Claims):
    """The speedups that Gustafson reports contradict Amdahl only if the fractions are mixed up."""

    processors = constants.count_processors_sandia
    flow = constants.speedup_sandia_flow
    runs = (
        ("Stress in a beam", constants.speedup_sandia_beam),
        ("Surface wave", constants.speedup_sandia_wave),
        ("Unstable flow", flow),
    )

    flow_of_serial_run = scaling.serial_fraction(flow, processors) | by_hand(
        "(1024 / 1016 - 1) / 1023"
    )
    flow_of_parallel_run = scaling.serial_fraction_of_parallel_run(
        flow_of_serial_run, processors
    ) | by_hand("(1024 - 1016)/1023")
    mixed_up = scaling.amdahl(flow_of_parallel_run, processors) | by_hand(
        "1024 / (1 + 1023 * 8 / 1023)"
    )

    @classmethod
    @row_by_hand("Surface wave | 1020 | 0.3910% | 0.0003833%")
    def row(cls, name: str, speedup: Quantity) -> tuple[str, Quantity, Quantity, Quantity]:
        """The two serial fractions behind a reported speedup."""
        of_serial = scaling.serial_fraction(speedup, cls.processors)
        of_parallel = scaling.serial_fraction_of_parallel_run(of_serial, cls.processors)
        return name, speedup, of_parallel.to("%"), of_serial.to("%")


class PartOfStep(Claims):
    """Making a part of a step faster gains no more than the part was."""

    share = quantity(30, "%")
    usual = quantity(20, "%")
    shares = (quantity(5, "%"), usual, quantity(50, "%"), quantity(80, "%"))
    some = 2
    much = 10

    usual_most = (scaling.amdahl_limit(1 - usual) - 1).to("%") | by_hand("1 / 0.8 - 1")
    most = scaling.amdahl_limit(1 - share) | by_hand("1/0.7")

    @classmethod
    @row_by_hand("50% | 1.33 | 1.82 | 2")
    def row(cls, share: Quantity) -> tuple[Quantity, Quantity, Quantity, Quantity]:
        """Gain of the whole step when a part of that share becomes faster, much faster, free."""
        rest = 1 - share
        little, more = scaling.amdahl(rest, cls.some), scaling.amdahl(rest, cls.much)
        return share, little, more, scaling.amdahl_limit(rest)


class MeasuredTraining(Claims):
    """Llama 3.1 405B on four times the H100s, by MLPerf: what they gain with a larger batch."""

    few, many = published.row("mlperf-405b-2"), published.row("mlperf-405b-5")
    few_devices = whole(few["num_devices"])
    many_devices = whole(many["num_devices"])
    times = many_devices // few_devices | by_hand("8192 / 2048")
    speedup = many.measured["tokens_per_s"] / few.measured["tokens_per_s"]
    fraction = scaling.serial_fraction(speedup, times) | by_hand("(4/3.655362 - 1)/3")
    few_microbatches = whole(few["micro_batches"]) | by_hand("1152 / (2048 / (8 * 8 * 2))")
    many_microbatches = whole(many["micro_batches"]) | by_hand("1536 / 64")


class PublishedScaling(Claims):
    """Published runs on more and more devices: one serial fraction predicts them, agreement not."""

    families = (
        ("Llama 3.1 405B", ("mlperf-405b-2", "mlperf-405b-4", "mlperf-405b-5")),
        ("DeepSeek-V3", tuple(f"mlperf-deepseek-v3-{count}" for count in (512, 2048, 8192))),
    )

    @staticmethod
    def speedups(ids: tuple[str, ...]) -> list[tuple[int, int, float, float]]:
        """Devices, sequences, devices over the fewest, and tokens a second over theirs."""
        runs = [published.row(id_) for id_ in ids]
        rates = [row.measured["tokens_per_s_per_gpu"] for row in runs]
        counts = [whole(row["num_devices"]) for row in runs]
        return [
            (count, whole(row["global_batch_seqs"]), count / counts[0], more * rate / rates[0])
            for row, rate, count in zip(runs, rates, counts, strict=True)
            for more in [count / counts[0]]
        ]

    @classmethod
    @row_by_hand("DeepSeek-V3 | 2048 | 15 360 | 3.38 | 6.09% | 3.51 | 3.86")
    def rows(cls) -> Rows:
        """Each run, its serial fraction, and what the largest implies of the others."""
        rows: list[Row] = []
        for name, ids in cls.families:
            runs = cls.speedups(ids)
            rows.append((name, *runs[0][:2], 1, None, None, None))
            _, _, most, gained = runs[-1]
            serial = scaling.serial_fraction(gained, most)
            coherency = (most / gained - 1) / (most * (most - 1))
            for devices, sequences, more, speedup in runs[1:]:
                fraction = scaling.serial_fraction(speedup, more).to("%")
                one = scaling.amdahl(serial, more)
                agreeing = scaling.universal_scalability(more, 0, coherency)
                rows.append((name, devices, sequences, speedup, fraction, one, agreeing))
        return rows

    runs = speedups(families[1][1])
    fewest, middle, most = (devices for devices, *_ in runs)
    fewest |= by_hand("512", "an input: @mlperf-training-v6.0")
    middle |= by_hand("2048", "an input: @mlperf-training-v6.0")
    most |= by_hand("8192", "an input: @mlperf-training-v6.0")
    times = most // fewest | by_hand("8192 / 512")
    middle_speedup, speedup = (gained for *_, gained in runs[1:])
    middle_speedup |= by_hand("4 * 3368 / 3983")
    speedup |= by_hand("16 * 2344 / 3983")
    fraction = scaling.serial_fraction(speedup, times) | by_hand("(16/9.416018 - 1)/15")
    middle_fraction = scaling.serial_fraction(middle_speedup, middle / fewest) | by_hand(
        "(4 / 3.382375 - 1) / 3"
    )
    limit = scaling.amdahl_limit(fraction) | by_hand("1 / 0.04661568")
    by_fraction = scaling.amdahl(fraction, middle / fewest) | by_hand("4/(1 + 3 * 0.04661568)")
    coherency = (times / speedup - 1) / (times * (times - 1))
    by_agreement = scaling.universal_scalability(middle / fewest, 0, coherency) | by_hand(
        "4/(1 + 12 * 0.002913467)"
    )
    turning = fewest * scaling.most_useful_processors(0, coherency) | by_hand(
        "512 / sqrt(0.002913467)"
    )


class TenPercentSerial(Claims):
    """10 % serial: at most 10 times as fast, or 230.5 times the work on 256 processors."""

    serial = quantity(10, "%")
    processors = 256

    limit = scaling.amdahl_limit(serial) | by_hand("1/0.1")
    scaled = scaling.gustafson(serial, processors) | by_hand("256 - 0.1 * 255")


class DoubledCluster(Claims):
    """A step that its profile calls 5 % serial gains less than twofold from twice the cluster."""

    processors = 64
    doubled = 128
    of_parallel_run = quantity(5, "%")

    of_serial_run = scaling.serial_fraction_of_serial_run(of_parallel_run, processors) | by_hand(
        "0.05 / (0.05 + 0.95 * 64)"
    )
    speedup = scaling.amdahl(of_serial_run, processors)
    doubled_speedup = scaling.amdahl(of_serial_run, doubled)
    gain = doubled_speedup / speedup | by_hand("1 / (0.05 + 0.95 / 2)")
    mixed_up_gain = scaling.amdahl(of_parallel_run, doubled) / scaling.amdahl(
        of_parallel_run, processors
    ) | by_hand("(0.05 + 0.95 / 64) / (0.05 + 0.95 / 128)")


class LoaderOrDevices(Claims):
    """Halving the serial part beats doubling the machine."""

    processors = 64
    serial = quantity(5, "%")

    now = scaling.amdahl(serial, processors) | by_hand("64/4.15")
    doubled = scaling.amdahl(serial, 2 * processors) | by_hand("128 / (6.4 + 0.95)")
    doubled_gain = doubled / now | by_hand("8.3/7.35")
    serial_share = scaling.serial_fraction_of_parallel_run(serial, processors)
    halved_gain = scaling.amdahl(1 - serial_share, 2) | by_hand("4.15/2.55")
    halved = now * halved_gain | by_hand("64 / (1.6 + 0.95)")


class Sketch(Claims):
    """A serial part of 25 % on 4 processors means less time, or more work."""

    serial = quantity(25, "%") | by_hand("25 %")
    processors = 4 | by_hand("4")
    serials = (quantity(1, "%"), FixedWork.serial, serial)  # of the figure's curves

    fixed_work_time = 1 / scaling.amdahl(serial, processors)
    fixed_work_speedup = scaling.amdahl(serial, processors)
    fixed_time_speedup = scaling.gustafson(serial, processors)
