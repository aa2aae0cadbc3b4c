"""Published serving: tokens of prompts and of answers, from one user to the largest throughput.

The time is that of one written token of one sequence batch after the other: a step's time over what
it writes. In steady state a step carries its share of prompts, as many tokens as prompts are longer
than answers. Conditions that a row leaves out are taken as this module's constants say, for all
rows alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from calc import formats
from calc.catalog.machines import NotMeasured
from calc.catalog.models.weights import Weights, unless_said
from calc.catalog.software import software_of
from calc.core.elementwise import minimum
from calc.core.errors import abbreviated
from calc.core.units import quantity
from calc.laws.queueing import single_server_wait
from calc.published import conditions, datasets
from calc.published.datasets import DataSet
from calc.published.prediction import Comparison, if_measured
from calc.published.reading import WORDS, Row, UnusableRowError
from calc.steps import device_memory
from calc.steps.expectation import NOT_SUSTAINED, serving_pass
from calc.steps.job import Formats, Job, Layout, Tokens
from calc.steps.timing import bounds

UNSTATED_PROMPT = 400  # tokens where a data set is named and no length; never above the answer
UNSTATED_CONTEXT = 512  # where one user's lengths are not stated
DEFAULT_BATCH = 2048  # sequences at most, where a row is of the largest throughput
FULL_EXPERTS = 0.73
"""Share of its kernels' rates that a mixture keeps at the largest batch that fits, where slices do
not share each expert; fitted to 14 such rows of TensorRT-LLM 1.1 on H200s, judged by all others."""
BEGUN_WITH = "mlperf-inference-v4.1"
"""The source whose logs name the format that weights began with, FP16, where NVIDIA ran FP8."""
LABEL, MXFP4 = "column label", "mxfp4"
"""Heads of columns name a format for models that are released in another, which engines run as
they are [tensorrt-llm-gpt-oss]."""
MLPERF = "mlperf-inference"
"""How sources begin whose submitters quantise what they are handed in 16 bits themselves."""
BYTE = 8  # bits
FOUR_BITS = {"llama-cpp": "", "llama-cpp-2024-05": "", "tensorrt-llm": "fp4"}
"""Programs that keep caches in four bits and scales, on devices that compute in a format."""
CHUNK = 8192  # tokens of prompts that a step reads at most
MOST_WEIGHTS = 0.7  # of a device's memory, in published servers of MLPerf
KEPT = 0.99  # of the requests of a server's run, which is else no result
BEYOND_99 = 2.326  # standard deviations over the mean that one of a hundred is beyond
CLOSE = 1.02  # ratio of two numbers of sequences between which none is looked for
FASTER = ("fp4", "fp8")  # formats whose peak bounds a row whose weights are in them
NO_LENGTHS = "the lengths of its prompts and answers are not stated"
ONE_USER = re.compile(r"decode_tokens_per_s(_per_user)?$")
PREFILL = re.compile(r"prefill_tokens_per_s(_(\d+)_prompt)?$")
FIRST = "time_to_first_token"  # of a prompt alone: the time to read it
RATES = ("output_tokens_per_s", "tokens_per_s")
RATES_OF_ONE = ("output_tokens_per_s_per_gpu", "output_tokens_per_s_per_chip")


@dataclass(frozen=True)
class Served:
    """A row's job, and the fastest format that its weights may be computed in."""

    job: Job
    fastest: str
    layout_is_stated: bool
    cache_is_stated: bool = True

    def lower(self, load: Tokens) -> float:
        """Seconds that a step takes at least, whichever format its products are in."""
        return float(max(least_parts(self.easiest(load), load).values()))

    def easiest(self, load: Tokens) -> Job:
        """The job in the fastest format that its weights may be computed in, and in the smallest
        that its caches may have.

        Where the row does not say how its model is cut, messages are left out, since another cut
        may send less: all devices together are then one that reads each weight once.
        """
        job = self.job if self.cache_is_stated else with_smallest_caches(self.job)
        job = job.with_context(load.longest)
        if not self.layout_is_stated or job.layout.devices > job.measured_on.most_joined:
            job = replace(job, machine=job.device)
        if not self.layout_is_stated:
            job = replace(job, layout=Layout(tensor=job.layout.devices))
        return replace(job, formats=replace(job.formats, dtype=self.fastest))


def with_smallest_caches(job: Job) -> Job:
    """Return the job with caches in the fewest bits that its program can keep them in.

    >>> print(with_smallest_caches(Job.of("llama-3-8b", "h100", software="vllm")).formats.kv)
    1 byte
    """
    needed = FOUR_BITS.get(job.software.key)
    four = needed is not None and needed in ("", *job.measured_on.device.dtypes)
    kept, smallest = (
        formats.cache_size("kv", size) for size in (job.formats.kv, "4.5 bit" if four else "fp8")
    )
    return replace(job, formats=replace(job.formats, kv=minimum(kept, smallest)))


def predict(row: Row) -> Comparison:
    """A row beside its prediction."""
    served = served_of(row)
    job = served.job
    measured, load, per_step = _measured(row, served)
    lower = served.lower(load) / per_step

    filled: list[str] = []

    def parts() -> Timed:
        options = _options(row, served, load, per_step)
        timed = [_parts(row, *option) for option in options]
        best = min(timed, key=_total)
        taken, steady, _ = options[timed.index(best)]
        filled.extend(steady_state(taken, steady)[2])
        if datasets.data_set_of(row) is not None:
            filled.append("lengths are the means of its data set")
        cut = f"DP{taken.layout.data} TP{taken.layout.tensor}"
        if not served.layout_is_stated and taken.layout in _published(row, job):
            filled.append(f"the layout is one that submitters published, {cut}")
        elif len(options) > 1:
            filled.append(f"the layout is the fastest that fits, {cut}")
        return best

    prediction = replace(if_measured(lower, parts), filled=tuple(filled))
    mixture = job.model.experts is not None
    return Comparison(row, job.machine.key, job.software.key, measured, prediction, mixture=mixture)


Timed = tuple[dict[str, float], float]
"""Seconds of each part of a token, and what is hidden of them."""


def _total(timed: Timed) -> float:
    parts, hidden = timed
    return sum(parts.values()) - hidden


def _options(
    row: Row, served: Served, load: Tokens, counted: float
) -> list[tuple[Job, Tokens, float]]:
    """The jobs that a row may be, their loads, and what these count, of open layouts all that fit.

    Lengths that it leaves open are the means of the data set that it names; layouts are those that
    submitters published of its benchmark, where one fits.
    """
    job, data = served.job, datasets.data_set_of(row)
    if data is None and not load.reading and load.context == 1.0:
        raise NotMeasured(NO_LENGTHS)
    if served.layout_is_stated:
        _check_layout(row, job, load)
        return [(job, load, counted)]

    def those_that_fit(layouts: Iterable[Layout]) -> Iterator[tuple[Job, Tokens, float]]:
        for layout in layouts:
            one = replace(job, layout=layout)
            try:
                share = load if data is None else _load_of(row, one, data)
            except UnusableRowError:
                continue
            if share.writing + share.prompts >= layout.data:
                yield one, share, counted if data is None else float(share.writing) / data.beams

    options = list(those_that_fit(_published(row, job)))
    options = options or list(those_that_fit(_layouts(job, load)))
    if not options:
        raise NotMeasured("no layout that its row leaves open has a place for its weights")
    return options


def _published(row: Row, job: Job) -> tuple[Layout, ...]:
    """The layouts in which submitters published servers of the data set that a row names.

    They hold for devices that weights fill no more than they do in any of those servers.
    """
    if datasets.data_set_of(row) is None:
        return ()
    published = datasets.layouts(str(row["model"]), int(job.layout.devices))
    return tuple(
        one for one in published if weights_share(replace(job, layout=one)) <= MOST_WEIGHTS
    )


def weights_share(job: Job) -> float:
    """The share of a device's memory that weights take."""
    memory = device_memory.of(job, 1)
    return float((memory.parts[0].memory / memory.visible).m_as(""))


def _layouts(job: Job, load: Tokens) -> Iterator[Layout]:
    """Copies times slices, of a mixture also copies that share out its experts."""
    devices, domain = int(job.layout.devices), job.measured_on.domain
    for copies in range(1, devices + 1):
        if devices % copies == 0 and devices // copies <= domain:
            yield Layout(copies, devices // copies)
            if job.model.experts is not None and 1 < copies <= domain:
                yield Layout(copies, devices // copies, experts=copies)


def _load_of(row: Row, job: Job, data: DataSet) -> Tokens:
    """Return the requests of a data set that memory holds, of a server those that keep its limits.

    A result of a server is one where 99 of 100 requests kept its limits. They come at random, so
    that at one time in a hundred as many write as a Poisson number reaches: these have a place in
    memory, and their tokens keep their limit. Prompts wait for one another, and keep theirs.
    """
    copies = float(job.layout.data)
    most = _drawn(job, data, DEFAULT_BATCH * int(job.layout.devices))
    if (limits := data.limits.get(str(row["scenario"]))) is None:
        return most
    to_first, to_next = limits

    def keeps(most: float) -> bool:
        load = _drawn(job, data, copies * _usual(most))
        busy = replace(load, writing=copies * data.beams * most)
        kept = _total(steady_parts(job, busy)) <= to_next
        return kept and _first_token(job, load, data) <= to_first

    low, high = 1.0, float(most.writing) / copies / data.beams
    if keeps(high):
        low = high
    while high > CLOSE * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return _drawn(job, data, copies * _usual(low))


def _drawn(job: Job, data: DataSet, batch: float) -> Tokens:
    """Return requests of a data set, of which each is under way for as long as its answer is long.

    Those under way are therefore longer than the mean. Submitters let as many run as memory holds
    at the moment.
    """
    prompt, answer = data.prompt or UNSTATED_PROMPT, data.answer
    written = answer * (1 + data.answer_spread**2) / 2
    fits = _fit(job, prompt + data.beams * written, shared=True)
    if fits < 1:
        raise UnusableRowError("its weights and one sequence do not fit into its devices' memory")
    batch = min(batch, float(fits))
    return Tokens(data.beams * batch, prompt + written, batch * prompt / answer, prompt)


def _usual(most: float) -> float:
    """Sequences that write in the mean, where a Poisson number is at most so many in 99 of 100.

    >>> round(_usual(100), 1)
    79.3
    """
    return max(1.0, (math.sqrt(most + (BEYOND_99 / 2) ** 2) - BEYOND_99 / 2) ** 2)


def _first_token(job: Job, load: Tokens, data: DataSet) -> float:
    """Seconds within which 99 of 100 requests have their first token.

    The prompts of a copy are a queue, and one is served for its share of a step that reads as much
    as steps can, beside all that write; waits are exponential, with the mean of Pollaczek and
    Khinchine.
    """
    copies = float(job.layout.data)
    full = replace(load, reading=copies * CHUNK, prompt=min(load.prompt, CHUNK))
    step = _total(serving_pass(job, full).seconds())
    usual = _total(steady_parts(job, load))
    served = step * float(load.prompt) / CHUNK
    busy = served * float(load.writing) / data.beams / copies / (data.answer * usual)
    if busy >= 1:
        return math.inf
    wait = float(single_server_wait(quantity(served, "s"), busy, data.prompt_spread).m_as("s"))
    return max(served, usual) + wait / busy * max(0.0, math.log(busy / (1 - KEPT)))


def _parts(row: Row, job: Job, load: Tokens, counted: float) -> Timed:
    steady, hidden = steady_parts(job, load)
    parts = {**steady}
    if job.model.experts is not None and row.number("batch") is None and job.layout.tensor == 1:
        parts[NOT_SUSTAINED] = (1 / FULL_EXPERTS - 1) * sum(parts.values())
    return {name: time / counted for name, time in parts.items()}, hidden / counted


def bound(job: Job, load: Tokens) -> float:
    """Seconds that the average step of steady state takes at least."""
    return float(max(least_parts(job, load).values()))


def least_parts(job: Job, load: Tokens) -> dict[str, Any]:
    """Seconds of each part of that step, of which the longest is its bound.

    Of a mixture's experts those count that written tokens wake: prompts may be read in few steps
    together, so that what they wake is read as seldom.
    """
    parts = bounds(job, load).parts
    if load.writes and load.reads:
        parts = {**parts, "memory": bounds(job, replace(load, reading=0.0)).parts["memory"]}
    return {name: time.m_as("s") for name, time in parts.items()}


def steady_parts(job: Job, load: Tokens) -> Timed:
    """The parts of the average step of steady state in seconds, and what is hidden of them."""
    return steady_state(job, load)[:2]


@lru_cache(maxsize=2**12)
def steady_state(job: Job, load: Tokens) -> tuple[dict[str, float], float, tuple[str, ...]]:
    """Return the parts of its average step, what is hidden of them, and what was filled in.

    Kept, since rows of one server, and layouts that a row leaves open, ask for the same again.

    Prompts are read in pieces as long as engines make them, each beside the tokens that are written
    in that step; all other steps write alone.
    """
    if not load.reading or not load.writing:
        alone = serving_pass(job, load)
        return *alone.seconds(), alone.filled
    piece = float(min(load.prompt, CHUNK) * job.layout.data * job.layout.pipeline)
    share = float(min(load.reading / piece, 1.0))
    both = replace(load, reading=load.reading / share, prompt=min(load.prompt, CHUNK))
    reading = serving_pass(job, both)
    reads, hidden = reading.seconds()
    writes, hidden_writing = serving_pass(job, replace(load, reading=0.0)).seconds()
    parts = {
        name: share * time + (1 - share) * writes.get(name, 0.0) for name, time in reads.items()
    }
    return parts, share * hidden + (1 - share) * hidden_writing, reading.filled


def served_of(row: Row) -> Served:
    """A row's job, in the formats and the layout that it states."""
    machine, model = conditions.machine(row), conditions.model(row)
    software = software_of(row.software)
    text = str(row["dtype_weights"]).lower()
    if row["source_key"] == BEGUN_WITH and (not row.software or "tensorrt" in row.software.lower()):
        text = "fp8"
    quantised = str(row["source_key"]).startswith(MLPERF)  # by submitters, what is in 16 bits
    unclear = LABEL in text or (quantised and "fp4" in text)
    if unclear and model.released and MXFP4 in model.released.formats.values():
        text = MXFP4
    if text == MXFP4 and unless_said(model, software) == software.mxfp4:
        text = software.mxfp4  # a file of its own, which people call so
    matches = ((re.search(pattern, text), name) for pattern, name in WORDS["weights"].items())
    name = next((match.expand(name) for match, name in matches if match), None)
    if row["dtype_weights"] is None:
        raise UnusableRowError("its dtype_weights, the format of its weights, is not stated")
    if name is None:
        raise UnusableRowError(f"the format of its weights is not stated: {abbreviated(text)}")
    if name in model.released_in and quantised:
        name = "fp8-static"
    smallest = min(size.m_as("bit") for size in Weights.of(model, name).sizes.values())
    small = round(smallest) <= BYTE  # without its share of a scale
    dtype = conditions.format_of(text) or "bf16"
    device = machine.device
    if dtype not in device.dtypes:
        dtype = "bf16" if "bf16" in device.dtypes else device.usual_dtype
    faster = [name for name in FASTER if small and name in device.dtypes]
    fastest = max(*faster, dtype, key=device.peak) if faster else dtype
    kv = conditions.cache_of(row["dtype_kv"]) or (software.kv if small else "bf16")
    stated, devices = conditions.layout(row), conditions.devices(row)
    replicas, stages = stated.get("DP", 1), stated.get("PP", 1)
    shares = min(stated.get("EP", 1), devices)  # of experts; `_check_layout` tells of more
    slices = max(1, devices // (replicas * stages))
    layout = Layout(replicas, slices, stages, experts=shares)
    in_turn = "layer split" in str(row["parallelism"])
    if in_turn:  # one device after another has its layers' turn
        layout = Layout(pipeline=devices)
    sizes = Formats(dtype, name, kv)
    job = Job(model, machine, layout, sizes, software)
    cut_is_stated = in_turn or not stated.keys().isdisjoint(("TP", "DP", "EP", "PP"))
    return Served(job, fastest, cut_is_stated, conditions.cache_of(row["dtype_kv"]) is not None)


def _check_layout(row: Row, job: Job, load: Tokens) -> None:
    """Refuse a layout that contradicts the number of devices, or of sequences."""
    layout, devices, replicas = conditions.layout(row), conditions.devices(row), job.layout.data
    stages = job.layout.pipeline
    whole = layout.get("TP", devices // (replicas * stages)) * replicas
    stated = max(whole, layout.get("EP", 1)) * stages
    if stated != devices:
        raise NotMeasured(f"its layout makes {stated} devices, and {devices} are stated")
    sequences = load.writing + load.prompts
    if sequences < replicas:
        raise NotMeasured(
            f"its layout has {replicas} replicas, and {sequences:.3g} sequences run at once"
        )


def _measured(row: Row, served: Served) -> tuple[float, Tokens, float]:
    """Seconds for each token, the step that writes or reads them, and how many these are."""
    for name, value in row.measured.items():
        if match := PREFILL.fullmatch(name):
            length = float(match[2] or row.number("input_len") or 0.0)
            return 1 / value, Tokens(0.0, 0.0, length, length), length
    for name, value in row.measured.items():
        if ONE_USER.fullmatch(name):
            prompt, answer = row.number("input_len"), row.number("output_len")
            context = UNSTATED_CONTEXT if prompt is None else prompt + (answer or 0.0) / 2
            return 1 / value, Tokens(row.number("batch") or 1.0, context), 1.0
    prompt, first = row.number("input_len"), row.measured.get(FIRST)
    if prompt and first and row.number("batch") == 1:
        return first / prompt, Tokens(0.0, 0.0, prompt, prompt), prompt
    rate = next((row.measured[name] for name in RATES if name in row.measured), None)
    if rate is None:
        of_one = next((row.measured[name] for name in RATES_OF_ONE if name in row.measured), None)
        rate = None if of_one is None else of_one * conditions.devices(row)
    if rate is None:
        raise UnusableRowError("it gives no rate of written tokens whose definition is clear")
    load = load_of(row, served)
    return 1 / rate, load, float(load.writing)


def load_of(row: Row, served: Served) -> Tokens:
    """The mixed step of steady state: a batch that writes, and its share of prompts."""
    job, answer, devices = served.job, row.number("output_len"), conditions.devices(row)
    if answer is None:  # the bound holds of prompts and answers as short as can be
        return Tokens(row.number("batch") or DEFAULT_BATCH * devices, 1.0)
    prompt = row.number("input_len") or min(UNSTATED_PROMPT, answer)
    batch = row.number("batch")
    if batch is None:
        if "max" not in str(row["batch"]) and "concurrency" not in str(row["batch"]):
            raise UnusableRowError("its batch is not stated")
        if match := re.search(r"concurrency (\d+)", str(row["batch"])):
            batch = float(match[1])
    return _mixed(job, batch or DEFAULT_BATCH * devices, prompt, answer, row.number("max_num_seqs"))


def _mixed(
    job: Job, batch: float, prompt: float, answer: float, most: float | None = None
) -> Tokens:
    """A batch that writes beside its share of prompts, of as many sequences as memory holds.

    An engine that is told how many it takes at most leaves more of its memory to caches.

    Rows do not say whether devices have copies of caches or share them out, which holds more.
    """
    length = device_memory.held(prompt, answer, job.software.reserves > 0)
    fits = _fit(job, length, shared=True, most=most)
    if fits < 1:
        raise UnusableRowError("its weights and one sequence do not fit into its devices' memory")
    batch = min(batch, float(fits))
    return Tokens(batch, prompt + answer / 2, batch * prompt / answer, prompt)


def held_at_once(job: Job, prompt: float, answer: float) -> int:
    """Return how many sequences the devices of a job hold, each at its mean length.

    Of a program that reserves, each has the place of its whole answer from its start.

    >>> job = Job.of("llama-3-70b", "dgx-h100", Layout(tensor=4), software="vllm")
    >>> held_at_once(job, 8192, 1024)
    52
    """
    return _fit(job, device_memory.held(prompt, answer, job.software.reserves > 0), shared=False)


def _fit(job: Job, length: float, shared: bool, most: float | None = None) -> int:
    """Return how many sequences of a mean length the devices hold, of a server of so many."""
    sequences = None if most is None else int(most)
    memory = device_memory.of(job, math.ceil(length), shared=shared, sequences=sequences)
    return int(memory.batch_of(length))
