"""Frozen records that planners are asked in, each field with its meaning.

In a shell and in a file each field is an option by itself (`calc.core.nouns`); whoever plans reads
and checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from calc.catalog.models import Transformer
from calc.catalog.models.weights import UNSTATED
from calc.core.law import AT_LEAST_ONE, FRACTION
from calc.core.nouns import Noun
from calc.core.units import QuantityLike


@dataclass(frozen=True)
class Load(Noun):
    """Requests that a service is asked for: they come at random, or as a trace has them.

    Parameters
    ----------
    rate
        requests a second; that of the trace where it is left out, or of so many `agents`
    prompt
        tokens that a request reads, on average
    generated
        tokens that a request writes, on average
    agents
        coding agents or people at work at once, in place of a rate: each has a session of several
        `turns`, with `think` from one to the next, tools included
    subagents
        sessions that each of them has beside its own at the same time, on average, which begin with
        what all share
    prompt_spread
        standard deviation of the lengths of prompts over their mean
    generated_spread
        standard deviation of the lengths of answers over their mean
    trace
        a file of requests in place of lengths: .csv or .parquet with the columns arrival (seconds,
        or dates), prompt and generated (tokens), or a .jsonl as Mooncake's, with hash_ids of the
        blocks of prompts
    hit_rate
        share of each prompt that a prefix cache holds; where it is left out, none, or what sessions
        and the hashes of a trace make of the memory that is there
    turns
        of a session on average, each of which reads all that was said before `prompt`
    think
        from a turn of a session to the next one, on average
    shared
        tokens that all sessions begin with
    requests
        requests of a simulation, or more where batches are large
    seed
        of what is drawn

    Examples
    --------
    >>> Load(rate="10 request/s", prompt=1000, generated=200).turns
    1.0
    """

    rate: Annotated[QuantityLike | None, "request/s"] = None
    prompt: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None
    generated: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None
    agents: float | None = None
    subagents: float = 0.0
    prompt_spread: float = 1.0
    generated_spread: float = 1.0
    trace: Path | str | None = None
    hit_rate: Annotated[QuantityLike | None, "", FRACTION] = None
    turns: float = 1.0
    think: Annotated[QuantityLike, "s"] = "30 s"
    shared: int = 0
    requests: int = 3000
    seed: int = 0


@dataclass(frozen=True)
class Limits(Noun):
    """Times that requests of a service must keep.

    Parameters
    ----------
    ttft
        the longest time to first token, "1 s"
    tpot
        the longest time of each token after it, "50 ms" or "20 token/s", the mean of an answer
    percentile
        of the requests that must keep each limit, in per cent
    """

    ttft: Annotated[QuantityLike, "s"]
    tpot: Annotated[QuantityLike, "s"]
    percentile: float = 99


@dataclass(frozen=True)
class Server(Noun):
    """A way to serve a model: in which formats, by which program, up to which length.

    Parameters
    ----------
    weights
        what checkpoints of a name hold, "fp8", "awq" or "q4_k_m", or the size of every parameter,
        "4.5 bit"; "released" where it is left out and the data say in what, or else bf16
    kv
        format of keys and values, or the size of one
    dtype
        what products are computed in; where it is left out and the device has it, what the released
        weights are made for, or bf16
    software
        what serves, "sglang" or "vllm 0.19"; where it is left out, the newest vLLM that was
        measured on the device (on a Mac llama.cpp); "none" leaves out a program's own time
    context
        the most tokens that the model reads, where that is not the published number
    """

    weights: Annotated[QuantityLike | None, "byte"] = None
    kv: Annotated[QuantityLike, "byte"] = UNSTATED
    dtype: str | None = None
    software: str | None = None
    context: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None


@dataclass(frozen=True)
class Draft(Noun):
    """A small model that drafts tokens, which the large one checks.

    Parameters
    ----------
    draft
        the small model, with `acceptance`
    acceptance
        probability that a drafted token is accepted
    drafted
        tokens that it drafts for each pass of the model
    """

    draft: Transformer | str
    acceptance: Annotated[QuantityLike, "", FRACTION]
    drafted: int = 4


@dataclass(frozen=True)
class Tiers(Noun):
    """Places of the caches of prefixes beside the memory of devices, and who is sent where.

    Parameters
    ----------
    host_cache
        memory of the host for prefixes, of a device's share: "256 GB"
    disk
        space of disks for prefixes, of a device's share: "3.84 TB"
    routing
        prefix, to the replica that has most of a prompt unless it is too busy, or turns
    """

    host_cache: Annotated[QuantityLike | None, "byte"] = None
    disk: Annotated[QuantityLike | None, "byte"] = None
    routing: str = "prefix"


@dataclass(frozen=True)
class Prices(Noun):
    """The cost of devices, what their building takes besides, and whose electricity that is.

    Parameters
    ----------
    price
        of a device, "3 USD/hour", or of that of each machine by its key; without it, no cost
    pue
        energy of the building over that of its machines, 1.2; where it is left out, that of the
        machines alone, or, of a training run, the average of data centres
    grid
        whose electricity it takes, "france", or what that emits, "57 g/kWh"; where it is left out,
        emissions are left out, or, of a training run, the world's average is taken
    """

    price: Annotated[QuantityLike | Mapping[str, QuantityLike] | None, "USD/s"] = None
    pue: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None
    grid: QuantityLike | None = None


@dataclass(frozen=True)
class Training(Noun):
    """A training run: on how many tokens, in which steps, and what of a model it trains.

    Parameters
    ----------
    tokens
        of the whole run, "15T" or "15e12 token"
    sequences
        of a step, on all devices together: 2048, or "16M token"
    length
        tokens of a sequence
    dtype
        what products are computed in
    recipe
        what is stored for each parameter, of `calc.training.RECIPES`; where it is left out, as the
        software does: Megatron keeps gradients in FP32, 18 bytes in all
    fine_tune
        lora or qlora, where adapters alone are trained, in FP32, beside frozen weights
    rank
        of these adapters, which all matrices of the layers get
    context
        the most tokens that the model reads, where that is not the published number, as of a run
        that extends it
    """

    tokens: Annotated[QuantityLike, "token"]
    sequences: QuantityLike
    length: Annotated[QuantityLike, "", AT_LEAST_ONE]
    dtype: str = "bf16"
    recipe: str | None = None
    fine_tune: str | None = None
    rank: int = 16
    context: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None


@dataclass(frozen=True)
class Search(Noun):
    """Layouts of a training run that are looked at.

    Parameters
    ----------
    layout
        degrees that are fixed, "TP=8,PP=1" or in Python {"TP": 8}, of DP, TP, PP, CP, EP, VP and
        ZeRO; or "published", which leaves out what no published row has done
    recomputation
        none, selective, alternate or full; the best of them where it is left out, without
        alternate, which few programs have
    schedule
        of a pipeline: "1f1b", interleaved with thin stages, or one without most of the bubble,
        "zb-h1" or "zb-v", which not all software has
    usable
        share of a device's memory for states and activations
    """

    layout: Mapping[str, int] | str | None = None
    recomputation: str | None = None
    schedule: str = "1f1b"
    usable: float = 0.9


@dataclass(frozen=True)
class Failures(Noun):
    """Stops of a training run, and how it goes on.

    Parameters
    ----------
    device_time_between_failures
        mean time between failures of one device, with its share of all that stops a run; that of
        Llama 3 405B where it is left out
    storage_bandwidth
        to which checkpoints are written, of each device; as there
    restart_time
        from a failure to the next step
    """

    device_time_between_failures: Annotated[QuantityLike | None, "s"] = None
    storage_bandwidth: Annotated[QuantityLike | None, "byte/s"] = None
    restart_time: Annotated[QuantityLike, "s"] = "10 min"
