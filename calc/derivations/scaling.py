"""What the chapter "Amdahl and Gustafson" quotes."""

from __future__ import annotations

from calc import constants, published, scaling
from calc.core.units import Quantity, quantity
from calc.derivations.quoting import Row, Rows


class FixedWork:
    """A job that is 5 % serial gains 5.93 from 8 processors, and never more than 20."""

    serial = quantity(5, "%")
    processors = 8
    many = 64

    speedup = scaling.amdahl(serial, processors)
    efficiency = speedup / processors
    limit = scaling.amdahl_limit(serial)
    half_way = ((1 - serial) / serial).to("")
    many_speedup = scaling.amdahl(serial, many)


class FixedTime:
    """A problem that grows with the machine keeps its speedup growing."""

    serial = FixedWork.serial
    many = 1000

    many_speedup = scaling.gustafson(serial, many)
    numbers = (8, 64, 256, 1000)

    @classmethod
    def row(cls, number: int) -> tuple[int, Quantity, Quantity, Quantity, Quantity]:
        """Both laws for so many processors: speedup, and its share of the number."""
        fixed, scaled = scaling.amdahl(cls.serial, number), scaling.gustafson(cls.serial, number)
        return number, fixed, (fixed / number).to("%"), scaled, (scaled / number).to("%")


class OneRun:
    """One run has two serial fractions, and with each its own law gives the same speedup."""

    processors = FixedWork.processors
    of_parallel_run = quantity(5, "%")

    scaled = scaling.gustafson(of_parallel_run, processors)
    converted = scaling.serial_fraction_of_serial_run(of_parallel_run, processors)


class Sandia:
    """The speedups that Gustafson reports contradict Amdahl only if the fractions are mixed up."""

    processors = constants.count_processors_sandia
    flow = constants.speedup_sandia_flow
    runs = (
        ("Stress in a beam", constants.speedup_sandia_beam),
        ("Surface wave", constants.speedup_sandia_wave),
        ("Unstable flow", flow),
    )

    flow_of_serial_run = scaling.serial_fraction(flow, processors)
    flow_of_parallel_run = scaling.serial_fraction_of_parallel_run(flow_of_serial_run, processors)
    mixed_up = scaling.amdahl(flow_of_parallel_run, processors)

    @classmethod
    def row(cls, name: str, speedup: Quantity) -> tuple[str, Quantity, Quantity, Quantity]:
        """The two serial fractions behind a reported speedup."""
        of_serial = scaling.serial_fraction(speedup, cls.processors)
        of_parallel = scaling.serial_fraction_of_parallel_run(of_serial, cls.processors)
        return name, speedup, of_parallel.to("%"), of_serial.to("%")


class PartOfStep:
    """Making a part of a step faster gains no more than the part was."""

    share = quantity(30, "%")
    usual = quantity(20, "%")
    shares = (quantity(5, "%"), usual, quantity(50, "%"), quantity(80, "%"))
    some = 2
    much = 10

    usual_most = (scaling.amdahl_limit(1 - usual) - 1).to("%")
    most = scaling.amdahl_limit(1 - share)

    @classmethod
    def row(cls, share: Quantity) -> tuple[Quantity, Quantity, Quantity, Quantity]:
        """Gain of the whole step when a part of that share becomes faster, much faster, free."""
        rest = 1 - share
        little, more = scaling.amdahl(rest, cls.some), scaling.amdahl(rest, cls.much)
        return share, little, more, scaling.amdahl_limit(rest)


class MeasuredTraining:
    """Llama 3.1 405B on four times the H100s, by MLPerf: what they gain with a larger batch."""

    few, many = published.row("mlperf-405b-2"), published.row("mlperf-405b-5")
    few_devices = int(few["num_devices"])
    many_devices = int(many["num_devices"])
    times = many_devices // few_devices
    speedup = many.measured["tokens_per_s"] / few.measured["tokens_per_s"]
    fraction = scaling.serial_fraction(speedup, times)
    few_microbatches = int(few["micro_batches"])
    many_microbatches = int(many["micro_batches"])


class PublishedScaling:
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
        counts = [int(row["num_devices"]) for row in runs]
        return [
            (count, int(row["global_batch_seqs"]), count / counts[0], more * rate / rates[0])
            for row, rate, count in zip(runs, rates, counts, strict=True)
            for more in [count / counts[0]]
        ]

    @classmethod
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
    times = most // fewest
    middle_speedup, speedup = (gained for *_, gained in runs[1:])
    fraction = scaling.serial_fraction(speedup, times)
    limit = scaling.amdahl_limit(fraction)
    by_fraction = scaling.amdahl(fraction, middle / fewest)
    coherency = (times / speedup - 1) / (times * (times - 1))
    by_agreement = scaling.universal_scalability(middle / fewest, 0, coherency)
    turning = fewest * scaling.most_useful_processors(0, coherency)


class TenPercentSerial:
    """10 % serial: at most 10 times as fast, or 230.5 times the work on 256 processors."""

    serial = quantity(10, "%")
    processors = 256

    limit = scaling.amdahl_limit(serial)
    scaled = scaling.gustafson(serial, processors)


class DoubledCluster:
    """What doubling a cluster brings to a step that its profile calls 5 % serial."""

    processors = 64
    doubled = 128
    of_parallel_run = quantity(5, "%")

    of_serial_run = scaling.serial_fraction_of_serial_run(of_parallel_run, processors)
    speedup = scaling.amdahl(of_serial_run, processors)
    doubled_speedup = scaling.amdahl(of_serial_run, doubled)
    gain = doubled_speedup / speedup
    mixed_up_gain = scaling.amdahl(of_parallel_run, doubled) / scaling.amdahl(
        of_parallel_run, processors
    )


class LoaderOrDevices:
    """Halving the serial part beats doubling the machine."""

    processors = 64
    serial = quantity(5, "%")

    now = scaling.amdahl(serial, processors)
    doubled = scaling.amdahl(serial, 2 * processors)
    doubled_gain = doubled / now
    serial_share = scaling.serial_fraction_of_parallel_run(serial, processors)
    halved_gain = scaling.amdahl(1 - serial_share, 2)
    halved = now * halved_gain


class Sketch:
    """The same 25 % serial part, on 4 processors: less time, or more work."""

    serial = quantity(25, "%")
    processors = 4
    serials = (quantity(1, "%"), FixedWork.serial, serial)  # of the figure's curves

    fixed_work_time = 1 / scaling.amdahl(serial, processors)
    fixed_work_speedup = scaling.amdahl(serial, processors)
    fixed_time_speedup = scaling.gustafson(serial, processors)
