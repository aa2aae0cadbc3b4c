"""Results as tools print and write them: blocks, tables and logs in text, as rows of fields.

Each reader knows a tool by what it prints itself, and gives what stands there by the names that
results in JSON have, so that `claims` reads one kind of fields. What text leaves out, the devices
of most, is said beside it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
GIB = 2.0**30  # bytes
MIXED = 15.0
"""Bits of a parameter below which a file that is called F16 has matrices of fewer."""
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
        pairs = [(re.sub(r"\s+", " ", label.strip()).lower(), value) for label, _, value in lines]
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
        if "sut name" in words:  # of MLPerf, whose folders name the system and the model
            rates = (said.get(name) for name in ("output_throughput", "request_throughput"))
            tokens, requests = rates
            said |= {"output_len": tokens / requests} if tokens and requests else {}
        yield said, _folders(path) if "scenario" in words else ""


def _folders(path: Path | str) -> str:
    """The folders in which MLPerf keeps a summary, of system, model and scenario; "" elsewhere."""
    parts = Path(path).resolve().parts
    kept = parts[-3:-2] == ("performance",)
    return " ".join(parts[-7:-3]).replace("_", " ") if kept else ""


def _has_figure(said: Mapping[str, Any]) -> bool:
    return not WORDS["results"].keys().isdisjoint(said)


def _vllm_lines(text: str, path: Path | str) -> Iterator[Found]:
    """The one line of vLLM's throughput benchmark, and of its latency benchmark."""
    pattern = rf"Throughput: ({NUMBER}) requests/s(?:, ({NUMBER}) (?:total )?tokens/s)?"
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
    return _of_metrics(rows)


def _of_metrics(rows: Iterable[Sequence[str]]) -> Result:
    said: Result = {}
    for row in filter(None, rows):
        name = WORDS["metrics"].get(row[0].strip().lower())
        if name is not None and len(row) == 1:
            raise InputError(f"a table of metrics has no value of {row[0].strip()}: was it cut?")
        if name is not None:
            said[name] = _value(row[1]) if _is_number(row[1]) else row[1]
    return said


def _boxes(text: str, path: Path | str) -> Iterator[Found]:
    """Yield the metrics of each box that genai-perf or aiperf draws in a terminal."""
    tables: list[list[list[str]]] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]
        if len(cells) > 1 and cells[1] == "avg":
            tables.append([])
        elif tables and len(cells) > 1 and cells[1]:
            tables[-1].append(cells)
        elif tables and tables[-1] and len(cells) > 1:  # a label that takes several lines
            tables[-1][-1][0] += f" {cells[0]}"
    for table in tables:
        if _has_figure(said := _of_metrics(table)):
            yield said, ""


def _guidellm(text: str, path: Path | str) -> Iterator[Found]:
    """The tables that guidellm prints, which have a row for each of its benchmarks."""
    runs: list[list[Result]] = []
    for titles, rows in _ruled(text):
        names = {column: LABELS.get(title) for column, title in enumerate(titles)}
        benchmarks: list[Result] = [
            {name: _value(row[column]) for column, name in names.items() if name is not None}
            for row in rows
            if all(_is_number(row[column]) for column, name in names.items() if name is not None)
        ]
        if not benchmarks or not benchmarks[0]:
            continue
        for row in benchmarks:
            if "max_concurrency" in row:  # a mean, of a server that also waits
                row["max_concurrency"] = max(row["max_concurrency"], 1.0)
        last = runs[-1] if runs else []
        if len(last) == len(benchmarks) and last[0].keys().isdisjoint(benchmarks[0]):
            runs[-1] = [one | other for one, other in zip(last, benchmarks, strict=True)]
        else:
            runs.append(benchmarks)
    yield from ((said, "") for run in runs for said in run if _has_figure(said))


def _ruled(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield tables with titles of several lines above a rule, the titles of a column joined."""
    heads: list[list[str]] = []
    rows: list[list[str]] | None = None
    for line in (*(line.strip() for line in text.splitlines()), ""):
        if "|" not in line or re.fullmatch(r"[|=]+", line):
            if heads and rows:
                width = len(heads[-1])
                lines = [_spread(head) for head in heads if len(head) == width]
                titles = (" ".join(filter(None, parts)) for parts in zip(*lines, strict=True))
                yield (
                    [title.lower() for title in titles],
                    [row for row in rows if len(row) == width],
                )
            heads, rows = [], None
        elif re.fullmatch(r"[|-]+", line):
            rows = []
        else:
            cells = [cell.strip() for cell in line.split("|")]
            (heads if rows is None else rows).append(cells[1:-1] if line[0] == "|" else cells)


def _spread(cells: Sequence[str]) -> list[str]:
    """The titles of a line, each above all the columns that it spans."""
    titles: list[str] = []
    for cell in cells:
        titles.append(cell or (titles[-1] if titles else ""))
    return titles


# --- what engines say themselves ---


def _steps_of_engines(text: str, path: Path | str) -> Iterator[Found]:
    """The pace that vLLM's and SGLang's logs give every few seconds, by requests at once.

    A line counts where the one before had as many requests: of others it is of no number of them.
    """
    for pattern in (
        rf"Avg generation throughput: (?P<rate>{NUMBER}) tokens/s, Running: (?P<users>\d+) reqs",
        rf"Decode batch\b.*?#running-req: (?P<users>\d+),.*?gen throughput \(token/s\): "
        rf"(?P<rate>{NUMBER})",
    ):
        paces: dict[int, list[float]] = {}
        before = None
        for match in re.finditer(pattern, text):
            users, rate = int(match["users"]), _value(match["rate"])
            if users and rate and users == before:
                paces.setdefault(users, []).append(rate / users)
            before = users
        for users, rates in paces.items():
            yield {"batch": users, "decode_tokens_per_s_per_user": median(rates)}, ""


def _timings(text: str, path: Path | str) -> Iterator[Found]:
    """Yield the pace of a prompt and of an answer, as llama.cpp and Ollama print them after it."""
    pace = rf"(?P<tokens>\d+) (?:tokens|runs) *\(.*?(?P<rate>{NUMBER}) tokens per second\)"
    count = rf"count: +(?P<tokens>\d+) token.*\n.*duration: .*\n.*rate: +(?P<rate>{NUMBER}) tok"
    for rest in (rf" time = .*?/ +{pace}", rf" {count}"):
        for match in re.finditer(rf"(?m)\b(?P<prompt>prompt )?eval{rest}", text):
            kind = ("input_len", "input_tokens_per_s")
            if match["prompt"] is None:
                kind = ("output_len", "decode_tokens_per_s")
            values = (int(match["tokens"]), _value(match["rate"]))
            yield {"batch": 1, **dict(zip(kind, values, strict=True))}, ""


def one_batch(row: Mapping[str, Any]) -> Result:
    """A row of SGLang's benchmark of one batch: the pace of its prompts, and of a token after."""
    said = {name: value for name, value in row.items() if not name.endswith("throughput")}
    said["input_tokens_per_s"] = row.get("prefill_throughput")
    pace, batch = row.get("median_decode_throughput"), row.get("batch_size")
    if isinstance(pace, int | float) and isinstance(batch, int | float) and batch:
        said["decode_tokens_per_s_per_user"] = pace / batch
    return said


def _one_batches(text: str, path: Path | str) -> Iterator[Found]:
    """Yield what SGLang's benchmark of one batch prints of each, without that which warms it up.

    Sequences, and the tokens of each, are the times multiplied by the paces beside them.
    """
    times = rf"latency: +({NUMBER}) s, (?:median )?throughput: +({NUMBER}) token/s"
    first, *parts = re.split(r"(?m)^(Warmup|Benchmark) \.\.\.", text)
    warm = (part for name, part in zip(parts[::2], parts[1::2], strict=True) if name != "Warmup")
    for block in re.split(r"(?=\bPrefill\. latency)", "".join([first, *warm])):
        read, written, total = (
            [_value(each) for each in pair.groups()] if pair is not None else None
            for pair in (
                re.search(rf"{what}{times}", block)
                for what in (r"Prefill\. +", r"Decode\. +median ", r"Total\. +")
            )
        )
        if read is None or total is None:
            continue
        row: Result = {"prefill_throughput": read[1]}
        batch = re.search(r"Decode \d+\. Batch size: (\d+)", block)
        if written is not None:
            sequences = int(batch[1]) if batch else round(written[0] * written[1])
            prompt, answer = (round(time * pace / sequences) for time, pace in (read, total))
            row |= {"batch_size": sequences, "median_decode_throughput": written[1]}
            row |= {"input_len": prompt, "output_len": answer - prompt}
        yield one_batch(row), ""


def _is_number(cell: str) -> bool:
    return re.fullmatch(NUMBER, cell, re.ASCII) is not None


# --- llama-bench ---


def bench(row: Mapping[str, Any]) -> Result:
    """A row of llama-bench by the names of results: a prompt that is read, or tokens written.

    Its tables are found in a text by `_llama_bench`, its JSON and CSV by `claims.load`.

    >>> found = bench({"model_type": "llama 8B Q4_0", "n_prompt": 512, "n_gen": 0, "avg_ts": 3e3,
    ...                "gpu_info": "NVIDIA GeForce RTX 4090"})
    >>> found["model"], found["input_tokens_per_s"], found["input_len"]
    ('llama 8B Q4_0', 3000.0, 512)
    """
    file = row.get("model_filename")
    prompt, answer, depth = (_counted(row.get(name)) for name in ("n_prompt", "n_gen", "n_depth"))
    name = Path(str(file)).name.removesuffix(".gguf") if file else row.get("model_type")
    devices = [part.strip() for part in re.split(r",\s*", str(row.get("gpu_info") or ""))]
    build = f" build {row['build_number']}" if row.get("build_number") else ""
    said: Result = {"model": name, "software": f"llama.cpp{build}", "batch": 1}
    said["avg_ts"] = row.get("avg_ts")
    if devices[0] and len({*devices}) == 1:
        said |= {"device": devices[0], "num_devices": len(devices)}
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


def _counted(value: Any) -> Any:
    """A count of tokens, which a table of text has as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _llama_bench(text: str, path: Path | str) -> Iterator[Found]:
    """The table that llama-bench prints, with the devices that it names above."""
    devices = next(filter(None, (re.findall(words, text) for words in DEVICE_LINES)), [])
    build = re.search(r"(?m)^build: \w+ \((\d+)\)", text)
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
                result |= {"build_number": build[1]} if build else {}
                yield bench(result | {names[kind[1]]: int(kind[2])}), ""


DEVICE_LINES = (  # by llama.cpp's backend: CUDA and ROCm, Vulkan, Metal
    r"(?m)^[ \t]*Device \d+: ([^,\n]+),",
    r"(?m)\bggml_vulkan: \d+ = ([^|(\n]*[^|(\s])",
    r"(?m)\bGPU name: +(\S.*?)[ \t]*$",
)


def _with_size(row: Mapping[str, str]) -> str:
    """The model and the format of a row: its family's word, and its size to three digits."""
    words = re.sub(r" - (\w)\w+$", r"_\1", row["model"].removesuffix(" MoE"))
    family, *others = words.split(" ")
    size = re.match(NUMBER, row.get("params", ""))
    held = re.match(rf"({NUMBER}) GiB", row.get("size", ""))
    if size and held and others[-1:] == ["F16"]:  # as its first matrix is, and not all others
        bits = _value(held[1]) * 8 * GIB / (_value(size[0]) * 1e9)
        others[-1] = f"{bits:.2f} bit" if bits < MIXED else "F16"
    named = _of_size(family.removesuffix("moe"), float(size[0])) if size else None
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
        rf"^\s*(?:\[\d+\])?\s*(\d+)\s+\d+\s+\w+\s+(?:\w+\s+)?(?:-?\d+)(?:\[\d+\])?\s+({NUMBER})\s+({NUMBER})"
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
    """Yield the medians of what a log of Megatron-LM, Megatron Bridge, NeMo or torchtitan prints of
    its steps, without those in which it warms up."""
    medians: Result = {}
    for patterns in (STEPS_OF_MEGATRON, STEPS_OF_BRIDGE, STEPS_OF_NEMO, STEPS_OF_TITAN):
        first_field = next(iter(patterns.values()))[0]
        steps = [
            {
                name: _value(match[1]) * scale
                for name, (pattern, scale) in patterns.items()
                if (match := re.search(rf"{pattern}\s*({NUMBER})", line[0]))
            }
            for line in re.finditer(rf"(?m)^.*{first_field}\s*{NUMBER}.*$", text)
        ]
        warm = steps[1:] if len(steps) >= WARMED else steps
        names = dict.fromkeys(name for step in warm for name in step)
        medians |= {
            name: median(step[name] for step in warm if name in step)
            for name in names
            if name not in medians
        }
    if medians:
        yield medians, ""


STEPS_OF_MEGATRON = {
    "step_s": (r"elapsed time per iteration \(ms\):", 1e-3),
    "model_tflops_per_gpu": (r"throughput per GPU \(TFLOP/s/GPU\):", 1.0),
    "global_batch_seqs": (r"global batch size:", 1.0),
}
STEPS_OF_BRIDGE = {
    "model_tflops_per_gpu": (r"GPU utilization:", 1.0),
    "step_s": (r"Step Time ?:", 1.0),
}
STEPS_OF_NEMO = {
    "step_s": (r"train_step_timing in s[:=]", 1.0),
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
    _boxes,
    _guidellm,
    _blocks,
    _vllm_lines,
    _one_batches,
    _steps_of_engines,
    _timings,
)
