"""From a plan to the commands that start it: options of an engine's version, from its data."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from calc import formats
from calc.catalog import models
from calc.catalog.engines import Starting
from calc.catalog.models.weights import RELEASED, UNSTATED, Weights
from calc.core.elementwise import largest
from calc.core.errors import InputError
from calc.core.report import Reported, values
from calc.core.units import quantity
from calc.planning.service.asked import Service
from calc.planning.service.design import Design, Pool
from calc.steps import device_memory

UNNAMED = "MODEL"  # stands for a path where no name on the hub of Hugging Face is known
TUNED = ("-instruct", "-chat", "-it")  # how the name of a model that answers goes on
SIXTEEN_BITS = quantity(2, "byte")


class Router(NamedTuple):
    """A program before two pools: its package, its start, and the port of their servers."""

    package: str
    start: str
    port: int
    """On which a server of the engine listens where nothing is set."""

    def before(self, servers: Iterable[tuple[Pool, str]]) -> str:
        """Return its start with the hosts and ports of servers, each as its pool does."""
        told = (f"--{pool.does} http://{address}" for pool, address in servers)
        return " ".join([self.start, *told])


ROUTERS = {
    "vLLM": Router("vllm-router", "vllm-router --vllm-pd-disaggregation", 8000),
    "SGLang": Router(
        "sglang-router", "python3 -m sglang_router.launch_router --pd-disaggregation", 30000
    ),
}
ADDRESSES = {"vLLM": "VLLM_NIXL_SIDE_CHANNEL_HOST"}
"""Variables by which servers of a pool tell those of the other where their caches are."""


@dataclass(frozen=True, eq=False, repr=False)
class Deployment(Reported):
    """The commands that start a plan's servers, a line each; `print` gives a script of a shell."""

    design: Design
    answer: str
    """The sentence that answers with this design."""
    given: Mapping[str, object]
    engine: Starting

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.lines  # refuses what has no option

    @property
    def service(self) -> Service:
        return self.design.pools[0].service

    @cached_property
    def lines(self) -> list[str]:
        """The script: what is planned and what is to be known as comments, and the commands."""
        options = f"options of {self.engine.name} {self.engine.version}"
        planned = f"{self.answer}; planned with {self.service.setup.software.title()}, {options}"
        servers = (line for pool in self.design.pools for line in self._of(pool))
        return [f"# {planned}", *servers, *self._router()]

    @property
    def commands(self) -> list[str]:
        return [line for line in self.lines if not line.startswith("#")]

    @property
    def title(self) -> list[str]:
        return self.lines

    @cached_property
    def facts(self) -> dict[str, object]:
        engine = self.engine
        return {
            "engine": engine.name,
            **values(engine, "version read_in"),
            "commands": self.commands,
            "comments": [line[2:] for line in self.lines if line.startswith("#")],
        }

    def _copies(self, pool: Pool) -> tuple[str, int]:
        """Return the option for copies in one server, "" for none, and how many a host has."""
        setup, group = self.service.setup, pool.group
        name = "copies_dense" if setup.model.experts is None else "copies"
        option = next((each for each in (name, "copies") if each in self.engine.options), "")
        if _shares(pool):
            return option, 1
        return option, min(pool.count, max(1, setup.machine.hosted.domain // int(group.devices)))

    def _servers(self, pool: Pool) -> int:
        """Return how many servers have all copies of a pool's model."""
        option, here = self._copies(pool)
        return math.ceil(pool.count / here) if option else pool.count

    def command(self, pool: Pool) -> str:
        """Return the command that starts one copy of a pool's model."""
        *_, command = self._of(pool, alone=True)
        return command

    def _router(self) -> Iterator[str]:
        """Yield what starts the router before two pools, whose servers have hosts of their own."""
        pools, router = self.design.pools, ROUTERS.get(self.engine.name)
        if len(pools) == 1 or router is None:
            return
        if (variable := ADDRESSES.get(self.engine.name)) is not None:
            yield f"# each of these with {variable} set to the address of its host"
        yield f"# the router before both, of the package {router.package}; put addresses in:"
        servers = (
            (pool, f"{pool.does.upper()}-{number}:{router.port}")
            for pool in pools
            for number in range(self._servers(pool))
        )
        yield f"{router.before(servers)} --port {router.port + 1}"

    def _of(self, pool: Pool, alone: bool = False) -> Iterator[str]:
        service, setup, engine = self.service, self.service.setup, self.engine
        memory = device_memory.of(pool.answers.job, int(largest(setup.context)))
        share, visible = memory.start.utilization, memory.visible
        kept = ((memory.room - memory.caches) / visible).m_as("")
        longest = int((service.trace.prompts + service.trace.answers).max())
        group = pool.group
        shared = _shares(pool)
        copies, here = self._copies(pool)
        here = 1 if alone else here
        values: dict[str, object] = {
            "model": hub_name(setup.model.key, self.given.get("model")),
            "tensor": group.tensor,
            "stages": group.pipeline,
            "experts": group.experts,
            "copies": group.data if shared else here,
            "devices": group.devices,
            "share": f"{share:.3g}",
            "free": f"{(share - kept) / (1 - kept):.2f}",
            # Each writes a token a step.
            "sequences": min(pool.replica.slots, pool.replica.at_most),
            "tokens": pool.replica.chunk,
            "length": min(setup.model.context, longest),
        }
        if shared:
            engine.has("attention", "copies of attention that share experts out (DP and EP)")
        cut = "attention" if shared else "tensor"
        options = ["command", cut, "memory", "sequences", "tokens", "length"]
        if group.pipeline > 1:
            engine.has("stages", "stages that share out the layers (PP)")
            options.append("stages")
        if group.experts > 1:
            options.append("experts")
        if copies and here > 1:
            options.append(copies)
        yield from self._weights(options)
        if setup.job.formats.kv < SIXTEEN_BITS:
            name = formats.key_of(setup.kv) if isinstance(setup.kv, str) else None
            if name != "fp8-e4m3":
                raise InputError(f"{engine.name}: its servers keep keys and values in FP8 or BF16")
            engine.has("kv_fp8", "the format of keys and values on its command line: take kv=bf16")
            options.append("kv_fp8")
        if service.draft is not None:
            engine.has("draft", "a model that drafts")
            options.append("draft")
            drafting = hub_name(service.draft.model.key, self.given.get("draft"))
            values |= {"draft": drafting, "drafted": service.drafted}
            values["checked"] = service.drafted + 1
        if pool.does != "both":
            engine.has(pool.does, "two pools on its command line: take pools=mixed")
            options.append(pool.does)
        if values["model"] == UNNAMED:
            yield f"# put the path of {setup.model.name} in the place of {UNNAMED}"
        at_once = here if copies else 1
        if (times := math.ceil(pool.count / at_once)) > 1:
            last = pool.count - at_once * (times - 1)
            fewer = f", the last with {last} copies" if last < at_once else ""
            yield f"# {times} times{fewer}, each on devices of its own, behind a router:"
        yield shlex.join([word for name in options for word in engine.words(name, values)])

    def _weights(self, options: list[str]) -> Iterator[str]:
        """An option that makes small weights, or what has to be done to have them."""
        setup = self.service.setup
        name = formats.key_of(setup.weights) if isinstance(setup.weights, str) else None
        released = setup.model.released
        in_16_bits = Weights.of(setup.model, UNSTATED).memory
        large = released is None or Weights.of(setup.model, RELEASED).memory == in_16_bits
        is_released = released is not None and setup.kept.given == released.formats
        if is_released or (name == UNSTATED and large):
            return
        if name == "fp8-e4m3" and large and "weights_fp8" in self.engine.options:
            options.append("weights_fp8")
        else:
            yield f"# take a checkpoint of {setup.model.name} with {setup.weights_told}"


def _shares(pool: Pool) -> bool:
    """Return whether copies of attention share out experts, which one server does."""
    return bool(pool.group.experts > 1 and pool.group.data > 1)


def hub_name(key: str, asked: object) -> str:
    """Return what a model is called on the hub of Hugging Face: as asked for, or by the data.

    >>> hub_name("llama-3-1-8b", None), hub_name("mpt-7b", None)
    ('meta-llama/Llama-3.1-8B-Instruct', 'MODEL')
    """
    if isinstance(asked, str) and asked.count("/") == 1 and not asked.endswith(".json"):
        return asked
    also = models.also(key) if key in models.names() else ()
    names = [name for name in also if name.count("/") == 1]
    tuned = [name for name in names if name.lower() in {names[0].lower() + end for end in TUNED}]
    return [*tuned, *names, UNNAMED][0]
