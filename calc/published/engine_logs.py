"""An engine's own words about memory: each line of its log, beside what is expected of it.

vLLM, SGLang and llama.cpp print what weights, the largest step, graphs and caches take of a device,
and how many tokens that makes. What a log says of how it was started becomes the arguments of
`calc.device_memory.fit` that nobody gave.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from calc.catalog import machines
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.errors import InputError, abbreviated
from calc.core.files import read_text
from calc.core.report import Answer, Table
from calc.core.units import Quantity, quantity
from calc.steps import device_memory
from calc.steps.held_memory import Memory

NUMBER = r"([\d,]*\.?\d+)"
SIZE = rf"{NUMBER}\s*(GiB|GB|MiB|MB)"
LINES = (  # what a line says, whose it is, and how it is written
    ("found by programs", "vLLM", rf"total_gpu_memory \({SIZE}\)"),
    (
        "weights",
        "vLLM",
        rf"(?:Model loading took|Loading model weights took|model weights take) {SIZE}",
    ),
    ("outside of torch", "vLLM", rf"non_torch_memory takes {SIZE}"),
    ("largest step", "vLLM", rf"PyTorch activation peak memory takes {SIZE}"),
    (
        "keys and values",
        "vLLM",
        rf"(?:Available KV cache memory: |reserved for KV Cache is ){SIZE}",
    ),
    ("graphs", "vLLM", rf"Graph capturing finished in .*?took {SIZE}"),
    ("blocks", "vLLM", rf"# (?:GPU|cuda) blocks: {NUMBER}"),
    ("tokens", "vLLM", rf"GPU KV cache size: {NUMBER} tokens"),
    ("sequences", "vLLM", rf"Maximum concurrency for [\d,]+ tokens per request: {NUMBER}x"),
    ("most at once", "vLLM", rf"exceeds available Mamba cache blocks \({NUMBER}\)"),
    ("most at once", "SGLang", rf"max_total_num_tokens=\d+.*? max_running_requests={NUMBER}"),
    ("weights", "SGLang", rf"Load weight end\..*?mem usage={SIZE}"),
    ("tokens", "SGLang", rf"(?:#tokens: |max_total_num_tokens=){NUMBER}"),
    ("graphs", "SGLang", rf"Capture cuda graph end\..*?mem usage={SIZE}"),
    ("weights", "llama.cpp", rf"(?:CUDA|ROCm|Vulkan|Metal)\w* model buffer size\s*=\s*{SIZE}"),
    ("keys and values", "llama.cpp", rf"(?:CUDA|ROCm|Vulkan|Metal)\w* KV buffer size\s*=\s*{SIZE}"),
    (
        "largest step",
        "llama.cpp",
        rf"(?:CUDA|ROCm|Vulkan|Metal)\w* compute buffer size\s*=\s*{SIZE}",
    ),
)
STARTED = {  # arguments of `fit`, as logs write them
    "tensor": r"'?(?:tensor_parallel_size|tp_size)'?\s*[=:]\s*(\d+)",
    "stages": r"'?(?:pipeline_parallel_size|pp_size)'?\s*[=:]\s*(\d+)",
    "context": r"'?(?:max_model_len|max_seq_len|context_len|context_length)'?\s*[=:]\s*(\d+)",
    "utilization": (
        r"'?(?:gpu_memory_utilization|mem_fraction_static)'?\s*(?:[=:]\s*|\()(0?\.\d+|1\.0+)"
    ),
    "batched_tokens": r"'?(?:max_num_batched_tokens|chunked_prefill_size)'?\s*[=:]\s*(\d+)",
    "sequences": r"'?(?:max_num_seqs|max_running_requests)'?\s*[=:]\s*(\d+)",
}
VERSIONS = {
    "vLLM": r"(?:vLLM API server version|LLM engine \(v)\s*v?(\d+\.\d+)",
    "SGLang": r"sglang(?:_version)?\W+v?(\d+\.\d+\.\d+)",
}
SIZES = {"GB": "GiB", "MB": "MiB"}  # which programs print of what they divide by 1024
EXPLAINED = {
    "found by programs": "what the driver leaves of the device's memory",
    "weights": "the checkpoint as it is held, sliced by TP, with what kernels pad",
    "outside of torch": "contexts of CUDA and kernels, and buffers of links",
    "largest step": "activations of the largest step, or logits of its sequences",
    "keys and values": "the rest of the share, for caches",
    "graphs": "CUDA graphs, captured after the caches are taken unless the version counts them",
    "blocks": "the caches over the bytes of a block",
    "tokens": "the blocks times their tokens; of hybrids it depends on the longest sequence",
    "sequences": "the tokens over the longest sequence (maximum concurrency)",
    "most at once": "the most sequences that the engine starts with, or takes at once",
}


@dataclass(frozen=True)
class Line:
    """One figure of a log."""

    name: str
    value: Quantity
    number: int
    """The line of the file that it stands on."""


@dataclass(frozen=True)
class EngineLog:
    """The figures of a log, the engine that wrote it, and how that was started."""

    engine: str
    version: str
    lines: tuple[Line, ...]
    started: Mapping[str, Any]

    @property
    def software(self) -> str | None:
        """Return the engine with its version, as `fit` takes it."""
        if self.engine == "llama.cpp":
            return "llama.cpp"
        return f"{self.engine.lower()} {self.version}".strip() if self.engine else None


def read(path: Path | str) -> EngineLog:
    """Return what a log says of memory, refused where it says nothing."""
    text = read_text(path)
    lines: dict[str, Line] = {}
    engines: list[str] = []
    for number, words in enumerate(text.splitlines(), 1):
        for name, engine, pattern in LINES:
            if (match := re.search(pattern, words)) is None:
                continue
            amount = float(match[1].replace(",", ""))
            unit = SIZES.get(match[2], match[2]) if len(match.groups()) > 1 else ""
            value = quantity(amount, unit)
            if name in lines and engine == "llama.cpp":  # a buffer of each device, or of each kind
                value = lines[name].value + value
            lines[name] = Line(name, value.to("GiB") if unit else value, number)
            engines.append(engine)
    if not lines:
        raise InputError(
            f"{path}: no line on memory of vLLM, SGLang or llama.cpp was found in"
            f" {len(text.splitlines())} lines: what an engine prints from its start until it serves"
            " is needed"
        )
    engine = max(dict.fromkeys(engines), key=engines.count)
    version = re.search(VERSIONS.get(engine, "(?!)"), text)
    return EngineLog(
        engine, version[1] if version else "", tuple(lines.values()), dict(_started(text))
    )


def _started(text: str) -> Iterator[tuple[str, Any]]:
    for name, pattern in STARTED.items():
        if values := re.findall(pattern, text):
            yield name, float(values[-1]) if name == "utilization" else int(values[-1])


@dataclass(frozen=True, eq=False, repr=False)
class LogExplained(Answer):
    """A log's figures of memory, each with what it is and beside what is expected of it."""

    memory: Memory
    log: EngineLog

    def expected(self, name: str) -> Quantity | None:
        """Return what is expected of a line; None of what the data have no rule for."""
        memory = self.memory
        if name == "keys and values":
            return memory.left
        named: dict[str, Quantity] = {
            "found by programs": memory.visible,
            "blocks": quantity(memory.blocks, ""),
            "tokens": quantity(memory.tokens, ""),
            "sequences": quantity(memory.sequences, ""),
            "most at once": quantity(memory.most_sequences or 0, ""),
            **{part.name: part.memory for part in memory.parts},
        }
        value = named.get(name)
        return None if value is None or not value.magnitude else value

    def off(self, line: Line) -> float | None:
        """Return what is expected over what the log says, less one: endless if that is nothing."""
        value = self.expected(line.name)
        if value is not None and not line.value.magnitude:
            return math.inf
        return None if value is None else float((value / line.value).m_as("")) - 1

    @property
    def answer(self) -> str:
        names = [line.name for line in self.log.lines if self.off(line) is not None]
        far = [
            line
            for line in self.log.lines
            if (off := self.off(line)) is not None and abs(off) > 0.1
        ]
        job = self.memory.start.job
        on = f"{self.memory.called or job.model.name} on {job.device.name}"
        if not names:
            return f"{on}: {len(self.log.lines)} lines on memory, of which none is expected here"
        if not far:
            return f"{on}: all {len(names)} lines that can be compared are within 10%"
        worst = max(far, key=lambda line: abs(self.off(line) or 0))
        return (
            f"{on}: {len(names) - len(far)} of {len(names)} lines that can be compared are within"
            f" 10%; {worst.name} is {worst.value} where {self.expected(worst.name)} is expected"
        )

    @property
    def stands_on(self) -> str:
        engine = " ".join(filter(None, (self.log.engine, self.log.version)))
        return f"a log of {engine}, beside {self.memory.stands_on}"

    @property
    def chosen(self) -> Sequence[str]:
        texts = (f"{name.replace('_', ' ')} {value:g}" for name, value in self.log.started.items())
        return [f"by the log: {', '.join(texts)}"] if self.log.started else ()

    @property
    def caveats(self) -> Sequence[str]:
        return tuple(self._caveats())

    def _caveats(self) -> Iterator[str]:
        names = {line.name for line in self.log.lines}
        if "keys and values" not in names and "tokens" not in names:
            yield (
                "The log ends before caches are taken: what comes after its last line on memory is"
                " not in it."
            )
        if self.memory.over is not None:
            yield (
                f"All else is expected to take {self.memory.over} more than its room, so that"
                " nothing is left for keys and values."
            )

    @cached_property
    def tables(self) -> Sequence[Table]:
        rows: list[tuple[str, ...]] = [("line of the log", "says", "expected", "off", "what it is")]
        for line in self.log.lines:
            value, off = self.expected(line.name), self.off(line)
            error = "–"
            if off is not None and math.isfinite(off):
                error = f"{off:+.1%}".replace("-", "\N{MINUS SIGN}")
            expected = "–" if value is None else str(value)
            name = f"{line.number}: {line.name}"
            rows.append((name, str(line.value), expected, error, EXPLAINED[line.name]))
        return (Table(rows),)

    @cached_property
    def facts(self) -> Mapping[str, object]:
        job = self.memory.start.job
        return {
            "model": job.model.key or job.model.name,
            "device": job.device.key,
            **self.headline,
            "engine": self.log.engine,
            "version": self.log.version,
            "started": dict(self.log.started),
            "lines": [
                {
                    "name": line.name,
                    "line": line.number,
                    "log": line.value,
                    "expected": self.expected(line.name),
                    "what": EXPLAINED[line.name],
                }
                for line in self.log.lines
            ],
        }


def explain(
    model: Transformer | str,
    device: Machine | Accelerator | Path | str,
    path: Path | str,
    **asked: Any,
) -> LogExplained:
    """Return each line of an engine's log beside what `fit` says, started as the log says.

    Parameters
    ----------
    path
        the log, from the engine's start until it serves
    asked
        arguments of `calc.device_memory.fit`, which count before those of the log
    """
    log = read(path)
    started = {**log.started, "software": log.software}
    if log.engine == "llama.cpp":
        started = {"software": log.software}
    options = {name: value for name, value in asked.items() if value is not None}
    machine = machines.of(device)
    try:
        memory = device_memory.fit(model, machine, **(started | options))
    except InputError as error:
        raise InputError(f"{abbreviated(str(path))} was started as {started}: {error}") from None
    return LogExplained(memory, log).settled()
