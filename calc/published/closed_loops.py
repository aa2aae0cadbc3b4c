"""Published closed loops: so many clients, each of whom asks again as soon as an answer is whole.

The rows are those of `data/published/closed_loops.csv`, with the mean time of a token after the
first. Servers either read prompts between the tokens that they write (mode agg), or read them
elsewhere (mode disagg). What a row leaves open is read by one rule for all:

- a measurement that several of the source's files list is one row, the fullest;
- clients of InferenceX draw lengths from 0.8 of those that are named on, nine tenths in the mean,
  and all others send what is named;
- "agg" on more than eight devices of a GB200 is read as not saying how it is served;
- a row of servers apart that does not say how many there are has its conditions incomplete;
- a row of a day on which its source ran that server with drafts alone has `drafts`, and since it
  does not say how many tokens are drafted its conditions are incomplete too;
- an engine lets clients wait whose caches its memory has no room for, and may let others: no
  program beats the bound of a client's whole cycle, from which the measured time to first token is
  taken, nor that of one sequence;
- caches have the format that the script of its server names, else what its program usually keeps
  beside such weights.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from calc.catalog import machines, models, software as programs
from calc.core.errors import InputError
from calc.core.records import read_rows
from calc.published.prediction import Comparison, if_measured
from calc.published.reading import FOLDER, Row, UnusableRowError
from calc.published.serving_rows import (
    bound,
    held_at_once,
    least_parts,
    steady_parts,
    steady_state,
    with_smallest_caches,
)
from calc.steps.job import Formats, Job, Layout, Tokens

FILE = FOLDER / "closed_loops.csv"
SOURCE = "nvidia-aiconfigurator"
ELSEWHERE = FOLDER / "loops_elsewhere.csv"
SOURCE_ELSEWHERE = "inferencex-app"
OF_INFERENCEX = {(1024, 1024), (1024, 8192), (8192, 1024)}  # its lengths
DOMAIN = 8
GROUP = "closed_loop"
CAMPAIGN = 10  # letters of a name, which say in which campaign of measurements a row was taken
DTYPES = {"fp8": "fp8", "nvfp4": "fp4", "mxfp4": "fp4", "bf16": "bf16", "int4": "bf16"}
ONE = (  # what lines of one measurement have in common
    *("machine", "model", "format", "software", "version", "day", "mode"),
    *("input", "output", "clients", "ttft_ms", "tpot_ms"),
)


@cache
def rows() -> tuple[Row, ...]:
    """Every measurement, once, with the time of a token in seconds.

    >>> first = rows()[0]
    >>> first["model"], first.measured["tpot"]
    ('deepseek-v3', 0.024497)
    """
    measurements: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for line in read_rows(FILE):
        measurements.setdefault(tuple(line[name] for name in ONE), []).append(line)
    return tuple(_row(max(listed, key=_says)) for listed in measurements.values())


@cache
def elsewhere() -> tuple[Row, ...]:
    """Closed loops on AMD's devices, a TPU and a Gaudi: they judge, and make no interval.

    >>> sorted({row["machine"] for row in elsewhere()})
    ['gaudi3-8', 'mi300x-8', 'mi325x-8', 'mi355x-8', 'tpu-v7-cube']
    """
    return tuple(_row(line, SOURCE_ELSEWHERE) for line in read_rows(ELSEWHERE))


def _says(line: dict[str, str]) -> tuple[int, int]:
    """Return how many fields a line fills; degrees counted over too many devices come last."""
    return sum(map(bool, line.values())), -int(line["tensor"] or 1) * int(line["data"] or 1)


def _row(line: dict[str, str], source: str = SOURCE) -> Row:
    # Where no first token is stated, none waits for it: the bound is the larger for that.
    measured = {name: float(line[f"{name}_ms"] or 0) / 1e3 for name in ("ttft", "tpot")}
    software = f"{line['software']} {line['version']}".strip()
    numbers = ("input", "output", "clients", "servers", "tensor", "data", "experts", "readers")
    readers = ("readers_tensor", "readers_data", "readers_experts")
    conditions = {
        **line,
        **{name: int(line[name]) for name in (*numbers, *readers) if line[name]},
        "device": line["machine"],
        "software": software,
        "source_key": source,
        "dtype_weights": line["format"],
    }
    return Row(GROUP, line["id"], conditions, measured)


def predict(row: Row) -> Comparison:
    """A row beside its prediction.

    >>> print(f"{predict(rows()[40]).error:.2f}")
    0.23
    """
    job, load = job_of(row), load_of(row)
    measured = row.measured["tpot"]
    waiting = row.measured["ttft"] / mean_lengths(row)[1]
    alone = Tokens(job.layout.data, load.context)
    least = job if row["kv"] else with_smallest_caches(job)
    lower = max(bound(least, load) - waiting, bound(least, alone))

    running = _running(row, job)

    def parts() -> tuple[dict[str, float], float]:
        return steady_parts(job, running)

    prediction = if_measured(lower, parts)
    prediction = replace(prediction, filled=steady_state(job, running)[2])
    mixture = job.model.experts is not None
    return Comparison(row, job.machine.key, job.software.key, measured, prediction, mixture=mixture)


def mean_lengths(row: Row) -> tuple[float, float]:
    """Tokens of a prompt and of an answer.

    >>> mean_lengths(rows()[0])
    (921.6, 7372.8)
    """
    share = (1 + shortest(row)) / 2
    return share * row["input"], share * row["output"]


def shortest(row: Row) -> float:
    """The share of a named length from which on clients of its benchmark draw theirs.

    >>> shortest(rows()[0])
    0.8
    """
    return 0.8 if of_inferencex(row) else 1.0


def of_inferencex(row: Row) -> bool:
    """Return whether a row is of InferenceX, whose results, unlike aiconfigurator's, have a day."""
    return bool(row["day"]) and (row["input"], row["output"]) in OF_INFERENCEX


def job_of(row: Row, of: str = "") -> Job:
    """Return what the servers of a row run; those that only read where `of` is "readers_".

    >>> str(job_of(rows()[0], "readers_").layout.data)
    '8'
    """
    machine, model = machines.get(row["machine"]), models.get(row["model"])
    name, apart = str(row["format"]), row["mode"] == "disagg"
    if apart and not row["servers"]:
        raise UnusableRowError("how many servers write is not stated")
    if row["drafts"]:
        raise UnusableRowError("how many tokens its own head drafts is not stated")
    dtype = DTYPES[name] if DTYPES[name] in machine.device.dtypes else "bf16"
    copies, slices = (int(row[f"{of}{name}"] or 1) for name in ("data", "tensor"))
    if not apart and machine.key.startswith("gb") and max(copies, slices) > DOMAIN:
        raise UnusableRowError("how more than eight devices of a rack serve together is not stated")
    experts = copies if copies > 1 else int(row[f"{of}experts"] or 1)
    software = programs.get(str(row["software"]))
    kept = row["kv"] or (software.kv if dtype != "bf16" else "bf16")
    sizes = Formats(dtype, name, kept)
    job = Job(model, machine, Layout(copies, slices, experts=experts), sizes, software)
    room = job.device.memory_capacity.m_as("byte") * job.layout.devices
    if job.weight_memory.m_as("byte") > room:
        raise UnusableRowError("its weights do not fit into the memory of the devices it states")
    return job


def load_of(row: Row) -> Tokens:
    """The average step: all clients' sequences write, beside their share of prompts."""
    prompt, answer = mean_lengths(row)
    writing = row["clients"] / (row["servers"] or 1)
    context = prompt + answer / 2
    if row["mode"] == "disagg":
        return Tokens(writing, context)
    return Tokens(writing, context, writing * prompt / answer, prompt)


REACHABLE = 0.85
"""The share of what the best kernels reach beyond which no whole server is taken to work."""


def is_reachable(row: Row) -> bool:
    """Return whether a server need not be faster than the best kernels let it.

    A client's cycle is its first token and all after it, in which the server does the products of
    its prompt and its answer and reads weights and caches. What would need more than REACHABLE of
    the measured rates has done less: it found prompts in a cache, or counted its tokens otherwise.

    >>> sum(not is_reachable(row) for row in rows() if row["model"] == "llama-3-1-8b")
    6
    """
    try:
        job, load = job_of(row), load_of(row)
    except InputError:
        return True
    machine, dtype = job.measured_on, job.formats.dtype
    cycle = row.measured["tpot"]
    if row["mode"] != "disagg":
        cycle += row.measured["ttft"] / mean_lengths(row)[1]
    parts, device = least_parts(job, load), machine.device
    products = machine.likely("gemm", dtype) / device.peak(dtype)
    memory = machine.memory_reached / device.memory_bandwidth
    least = max(parts["compute"] / products.m_as(""), parts["memory"] / memory.m_as(""))
    return bool(least <= REACHABLE * cycle)


SERVER = (  # what loops of one server have in common
    *("machine", "model", "format", "software", "mode", "tensor", "data", "experts"),
    *("readers_tensor", "readers_data", "readers_experts"),
)


def finds_prompts(row: Row) -> bool:
    """Return whether a row's server is taken to find prompts in a cache, whatever its error.

    Reuse is of a server and of the prompts that its clients draw: a server of one campaign of which
    one loop is out of reach without it has it in its other loops too, where it shows less.

    >>> [row] = [row for row in rows() if row.id.endswith("vllm_agg_8000x100_c16_tp1_epnone_12")]
    >>> is_reachable(row), finds_prompts(row)
    (True, True)
    """
    return _server(row) in _servers_with_reuse()


@cache
def _servers_with_reuse() -> frozenset[tuple[object, ...]]:
    return frozenset(_server(row) for row in rows() if not is_reachable(row))


def _server(row: Row) -> tuple[object, ...]:
    return (row.id[:CAMPAIGN], *(row[name] for name in SERVER))


CLIENTS = "machine", "model", "clients", "mode"
"""What loops of one client program on one machine have in common, beside what they ask."""


def holds_streams_back(row: Row) -> bool:
    """Return whether a row's clients are taken to get tokens late, then several at once.

    Their first tokens are late and all others early, so that neither is the server's time. So many
    clients of a campaign do so on a machine if the tokens of one loop are out of reach otherwise,
    while its whole cycle is not.

    >>> [row] = [row for row in rows() if row.id.endswith("agg_1024x1024_c512_tp8_ep1_1134")]
    >>> tokens_are_reachable(row), holds_streams_back(row)
    (True, True)
    """
    return _clients(row) in _clients_held_back()


def tokens_are_reachable(row: Row) -> bool:
    """Return whether those who write at once can get their tokens as fast as a row says.

    By Little's law those write who are not waiting for a first token. A step reads weights and
    their caches, at REACHABLE of the memory's measured rate at most.

    >>> sum(not tokens_are_reachable(row) for row in rows())
    10
    """
    if row["mode"] == "disagg":
        return True
    try:
        job, (prompt, answer) = job_of(row), mean_lengths(row)
    except InputError:
        return True
    writes = row.measured["tpot"] * answer
    writing = row["clients"] * writes / (row.measured["ttft"] + writes)
    load = Tokens(max(writing, job.layout.data), prompt + answer / 2)
    reached = job.measured_on.memory_reached / job.device.memory_bandwidth
    least = least_parts(job, load)["memory"] / reached.m_as("")
    return bool(least <= REACHABLE * row.measured["tpot"])


@cache
def _clients_held_back() -> frozenset[tuple[object, ...]]:
    late = (row for row in rows() if is_reachable(row) and not tokens_are_reachable(row))
    return frozenset(map(_clients, late))


def _clients(row: Row) -> tuple[object, ...]:
    program = str(row["software"]).partition(" ")[0]
    return (row.id[:CAMPAIGN], program, *(row[name] for name in CLIENTS))


def tells(row: Row) -> bool:
    """Return whether a row tells how far off expectations are: no other physics explains it.

    >>> sum(not tells(row) for row in rows())
    40
    """
    return not finds_prompts(row) and not holds_streams_back(row)


def _running(row: Row, job: Job) -> Tokens:
    """The step of those clients whose caches fit; of all where a program's own share holds none.

    >>> name = "h200_sxm_trtllm_fp8_agg_8192x1024_c128_tp1_ep1_870"
    >>> [row] = [row for row in rows() if row.id.endswith(name)]
    >>> row["clients"], _running(row, job_of(row)).writing
    (128, 49)
    """
    load = load_of(row)
    fits = held_at_once(job, *mean_lengths(row)) or load.writing
    writing = min(load.writing, fits)
    return replace(load, writing=writing, reading=load.reading * (writing / load.writing))
