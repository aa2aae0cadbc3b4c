"""Results as tools print and write them: blocks, tables and logs in text, as rows of fields.

Each reader knows a tool by what it prints itself, and gives what stands there by the names that
results in JSON have, so that `claims` reads one kind of fields. What text leaves out, the devices
of most, is said beside it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from calc.catalog import models
from calc.core.errors import InputError
from calc.core.names import squeezed
from calc.published.collective_rows import OPERATIONS
from calc.published.reading import WORDS

Result = dict[str, Any]
Found = tuple[Result, str]
"""The fields of a result, and what its place or its machine says beside it, in words."""
LABELS: Mapping[str, str] = WORDS["labels"]
NUMBER = r"[\d,]+(?:\.\d+)?(?:[eE][+-]?\d+)?"
NUMERIC = r"[-+.]?\d|[-+]?(?:nan|inf)"
"""How a word begins that is meant as a number: what is none is refused where it is read."""
ROUNDED = 0.006
"""Billions of parameters by which a size of two decimals may be off."""
LARGEST_MB = 32
WARMED = 3
"""Steps of training from which on the first is left out, which compiles and loads."""


def read(text: str, path: Path | str) -> list[Found]:
    """The results of a text, each with what is said beside it; none where no tool is known.

    >>> read("Throughput: 32.4 requests/s, 14029.4 total tokens/s", "a.txt")
    [({'request_throughput': 32.4, 'total_token_throughput': 14029.4}, '')]
    """
    if len(text) > LARGEST_MB * 1e6:
        raise InputError(f"{path}: is too long; a log may have {LARGEST_MB} MB")
    for tool in TOOLS:
        if results := list(tool(text, path)):
            return results
    return []


def _value(text: str) -> float:
    return float(text.replace(",", ""))


# --- servers ---


def _blocks(text: str, path: Path | str) -> Iterator[Found]:
    """Lines of a label and a number, of vLLM, SGLang, TensorRT-LLM and their like."""
    for block in re.split(r"(?m)^=+ .*?Benchmark Result.*$|^=+ *\w+ BACKEND *$", text):
        lines = (line.strip(" |=\t").partition(":") for line in block.splitlines())
        pairs = [(re.sub(r"\s+", " ", label).lower(), value) for label, _, value in lines]
        said: Result = {}
        for label, value in pairs:
            name, word = LABELS.get(label), value.strip()
            if name is not None and name not in said and re.match(NUMERIC, word, re.I):
                said[name] = _value(word) if re.fullmatch(NUMBER, word, re.ASCII) else word
        if not _has_figure(said):
            continue
        words = {label: value.strip() for label, value in reversed(pairs)}
        for label, name in (("quantization", "dtype_weights"), ("kv cache dtype", "dtype_kv")):
            if (form := words.get(label, "None")) not in ("None", ""):
                said[name] = form
        degrees = [words.get(f"{name} size", "1") for name in ("tp", "pp")]
        if "tp size" in words and all(map(str.isdigit, degrees)):
            said["num_devices"] = int(degrees[0]) * int(degrees[1])
            said["parallelism"] = f"TP{degrees[0]}, PP{degrees[1]}"
        if (model := words.get("model")) is not None:
            said["model"] = model
        yield said, ""


def _has_figure(said: Mapping[str, Any]) -> bool:
    return not WORDS["results"].keys().isdisjoint(said)


def _vllm_lines(text: str, path: Path | str) -> Iterator[Found]:
    """The one line of vLLM's throughput benchmark, and of its latency benchmark."""
    pattern = rf"Throughput: ({NUMBER}) requests/s, ({NUMBER}) (?:total )?tokens/s"
    for match in re.finditer(rf"{pattern}(?:, ({NUMBER}) output tokens/s)?", text):
        named = ("request_throughput", "total_token_throughput", "output_throughput")
        values = zip(named, match.groups(), strict=True)
        yield {name: _value(value) for name, value in values if value is not None}, ""
    for match in re.finditer(rf"Avg latency: ({NUMBER}) seconds", text):
        yield {"avg_latency": _value(match[1])}, ""


def metrics(text: str) -> Result | None:
    """The table of genai-perf and aiperf, whose rows are metrics; None of any other table.

    >>> metrics("Metric,avg,min\\nTime To First Token (ms),\\"1,146.31\\",249.48\\n")
    {'mean_ttft_ms': 1146.31}
    """
    if re.match(r"\s*metric,\s*avg\b", text, re.I) is None:
        return None
    try:
        rows = list(csv.reader(text.splitlines()))
    except csv.Error as error:
        raise InputError(f"a table of metrics is no CSV: {error}") from None
    said: Result = {}
    for row in filter(None, rows):
        name = WORDS["metrics"].get(row[0].strip().lower())
        if name is not None and len(row) == 1:
            raise InputError(f"a table of metrics has no value of {row[0].strip()}: was it cut?")
        if name is not None:
            said[name] = _value(row[1]) if _is_number(row[1]) else row[1]
    return said


def _is_number(cell: str) -> bool:
    return re.fullmatch(NUMBER, cell, re.ASCII) is not None


# --- llama-bench ---


def bench(row: Mapping[str, Any]) -> Result:
    """A row of llama-bench by the names of results: a prompt that is read, or tokens written.

    >>> found = bench({"model_type": "llama 8B Q4_0", "n_prompt": 512, "n_gen": 0, "avg_ts": 3e3,
    ...                "gpu_info": "NVIDIA GeForce RTX 4090"})
    >>> found["model"], found["input_tokens_per_s"], found["input_len"]
    ('llama 8B Q4_0', 3000.0, 512)
    """
    file, prompt, answer = row.get("model_filename"), row.get("n_prompt"), row.get("n_gen")
    name = Path(str(file)).name.removesuffix(".gguf") if file else row.get("model_type")
    devices = [part.strip() for part in re.split(r",\s*", str(row.get("gpu_info") or ""))]
    said: Result = {"model": name, "software": "llama.cpp", "batch": 1, "avg_ts": row.get("avg_ts")}
    if devices[0] and len({*devices}) == 1:
        said |= {"device": devices[0], "num_devices": len(devices)}
    depth = row.get("n_depth") or 0
    if not answer and prompt:
        said |= {"input_len": prompt, "input_tokens_per_s": said.pop("avg_ts")}
    elif answer and not prompt:
        said |= {"output_len": answer, "decode_tokens_per_s": said.pop("avg_ts")}
        said |= {"input_len": depth} if depth else {}
    else:
        raise InputError(
            "a row of llama-bench reads a prompt, n_prompt, or writes tokens, n_gen; one that does"
            " both has one rate of two things"
        )
    return said


def _llama_bench(text: str, path: Path | str) -> Iterator[Found]:
    """The table that llama-bench prints, with the devices that it names above."""
    devices = re.findall(r"(?m)^[ \t]*Device \d+: ([^,\n]+),", text)
    titles: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if {"model", "test", "t/s"} <= {*cells}:
            titles = cells
        elif titles and len(cells) == len(titles):
            row = dict(zip(titles, cells, strict=True))
            kind = re.match(r"(pp|tg) ?(\d+)(?: @ d(\d+))?$", row["test"])
            rate = re.match(NUMBER, row["t/s"])
            if kind and rate:
                names = {"pp": "n_prompt", "tg": "n_gen"}
                result: Result = {"model_type": _with_size(row), "gpu_info": ", ".join(devices)}
                result |= {"avg_ts": _value(rate[0]), "n_depth": int(kind[3] or 0)}
                yield bench(result | {names[kind[1]]: int(kind[2])}), ""


def _with_size(row: Mapping[str, str]) -> str:
    """The model and the format of a row: its family's word, and its size to three digits."""
    words = re.sub(r" - (\w)\w+$", r"_\1", row["model"])
    family, *others = words.split(" ")
    size = re.match(NUMBER, row.get("params", ""))
    named = _of_size(family, float(size[0])) if size else None
    return " ".join((named, *others[1:])) if named else words


@cache
def _of_size(family: str, billions: float) -> str | None:
    """The first model of a family with so many billions of parameters, of those that are alike."""
    alike = (key for key in models.names() if squeezed(family) in squeezed(key))
    sizes = ((key, models.get(key).parameters.m_as("param") / 1e9) for key in alike)
    return next((key for key, size in sizes if abs(size - billions) < ROUNDED), None)


# --- collectives ---


def _nccl(text: str, path: Path | str) -> Iterator[Found]:
    """Rows of nccl-tests and rccl-tests: sizes, and times out of place."""
    row = re.compile(
        rf"^\s*(?:\[\d+\])?\s*(\d+)\s+\d+\s+\w+\s+(?:\w+\s+)?(?:-?\d+)\s+({NUMBER})\s+({NUMBER})"
        rf"\s+({NUMBER})\s+(?:\d+|N/A|{NUMBER})"
    )
    matches = [match for line in text.splitlines() if (match := row.match(line))]
    if not matches:
        return
    operation = next(
        (
            name
            for name in OPERATIONS
            if re.search(rf"\b{name}_perf\b|starting: {name}", f"{path}\n{text}")
        ),
        None,
    )
    ranks = re.findall(r"(?m)^#?[ \t]+Rank[ \t]+\d+ .*?device[ \t]+\d+ \[\S+\] (.+?)[ \t]*$", text)
    said: Result = {"software": "nccl-tests"}
    if operation is not None:
        said["collective"] = operation
    if ranks and len({*ranks}) == 1:
        said |= {"device": ranks[0], "num_devices": len(ranks)}
    for match in matches:
        if _value(match[4]) > 0:
            times = {"time_us": _value(match[2]), "busbw_gb_s": _value(match[4])}
            yield {**said, "message_bytes": int(match[1]), **times}, ""


# --- training ---


def _training(text: str, path: Path | str) -> Iterator[Found]:
    """Steps of Megatron-LM, NeMo and torchtitan, each field by the median of its steps."""
    for patterns in (STEPS_OF_MEGATRON, STEPS_OF_NEMO, STEPS_OF_TITAN):
        first = next(iter(patterns.values()))[0]
        steps = [
            {
                name: _value(match[1]) * scale
                for name, (words, scale) in patterns.items()
                if (match := re.search(rf"{words}\s*({NUMBER})", line[0]))
            }
            for line in re.finditer(rf"(?m)^.*{first}\s*{NUMBER}.*$", text)
        ]
        warm = steps[1:] if len(steps) >= WARMED else steps
        if warm:
            names = dict.fromkeys(name for step in warm for name in step)
            yield {name: median(step[name] for step in warm if name in step) for name in names}, ""


STEPS_OF_MEGATRON = {
    "step_s": (r"elapsed time per iteration \(ms\):", 1e-3),
    "model_tflops_per_gpu": (r"throughput per GPU \(TFLOP/s/GPU\):", 1.0),
    "global_batch_seqs": (r"global batch size:", 1.0),
}
STEPS_OF_NEMO = {
    "step_s": (r"train_step_timing in s:", 1.0),
    "model_tflops_per_gpu": (r"TFLOPS_per_GPU:", 1.0),
    "global_batch_seqs": (r"global_batch_size:", 1.0),
}
STEPS_OF_TITAN = {
    "tokens_per_s_per_gpu": (r"\btps:", 1.0),
    "model_tflops_per_gpu": (r"\btflops:", 1.0),
    "mfu": (r"\bmfu:", 1.0),
}
TOOLS: tuple[Callable[[str, Path | str], Iterator[Found]], ...] = (
    _nccl,
    _llama_bench,
    _training,
    _blocks,
    _vllm_lines,
)
