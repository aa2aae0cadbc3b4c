"""Times per token of aiconfigurator for closed loops, beside ours, in one run.

    python -m benchmarks.peer_loops PYTHON [--every 12] [--record]

PYTHON is the interpreter of an environment that holds aiconfigurator 0.12.0. The questions are
published closed loops whose servers read and write, every twelfth of those for which `calc` expects
a time, but for the machine to which calc fitted a program's own times. They are aiconfigurator's
own validation data. It is asked as its command `estimate` is, in mode agg and of its newest tables,
with the lengths, clients, layout and formats by which calc reads the row; what a format leaves open
it infers from the model.
`--record` writes what the book quotes, ours aside, which is computed anew wherever it is quoted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from calc import published
from calc.core.formatting import columns
from calc.core.records import DATA
from calc.published import Comparison, closed_loops
from calc.published.closed_loops import mean_lengths
from calc.published.kernel_tables import error_of
from experiments.tables import write_rows

FILE = DATA / "measured" / "peer_loops.csv"
MODELS = {  # by our name and format, then by our name alone
    ("deepseek-v3", "nvfp4"): "nvidia/DeepSeek-V3.1-NVFP4",
    ("kimi-k2-5", "nvfp4"): "nvidia/Kimi-K2.5-NVFP4",
    ("qwen-3-235b-a22b", "fp8"): "Qwen/Qwen3-235B-A22B-FP8",
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "kimi-k2-5": "moonshotai/Kimi-K2.5",
    "llama-3-1-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3-1-8b": "meta-llama/Meta-Llama-3.1-8B",
    "qwen-3-235b-a22b": "Qwen/Qwen3-235B-A22B",
    "qwen-3-32b": "Qwen/Qwen3-32B",
}
SYSTEMS = {
    "dgx-b200": "b200_sxm",
    "dgx-h100": "h100_sxm",
    "dgx-h200": "h200_sxm",
    "gb200-nvl72": "gb200",
}
BACKENDS = {"tensorrt-llm": "trtllm", "sglang": "sglang", "vllm": "vllm"}
MXFP4 = {  # TensorRT-LLM's tables of gpt-oss's experts, where nothing is inferred that it has
    "dgx-b200": "w4a8_mxfp4_mxfp8_trtllm",
    "gb200-nvl72": "w4a8_mxfp4_mxfp8_trtllm",
    "dgx-h100": "w4a16_mxfp4_cutlass",
    "dgx-h200": "w4a16_mxfp4_cutlass",
}
# Reads a question a line, and prints the seconds of a token, or why there are none.
PROGRAM = """
import json, logging, sys, warnings
logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
from aiconfigurator.cli.api import cli_estimate
for line in sys.stdin:
    try:
        answer = {"tpot": cli_estimate(**json.loads(line)).tpot / 1e3}
    except Exception as error:
        answer = {"why": f"{type(error).__name__}: {error}"}
    print("ANSWER " + json.dumps(answer), flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="The same closed loops to aiconfigurator.")
    parser.add_argument("python", help="the interpreter of an environment that holds it")
    parser.add_argument("--every", type=int, default=12, metavar="N", help="ask of each Nth row")
    parser.add_argument("--record", action="store_true", help="write what the book quotes")
    options = parser.parse_args()
    comparisons = [each for each in expected()[:: options.every] if not each.fitted]
    answers = list(ask(options.python, comparisons))
    both = [
        (comparison, answer["tpot"])
        for comparison, answer in zip(comparisons, answers, strict=True)
        if "tpot" in answer
    ]
    lines = [("rows", "planner", "median error", "signed")]
    for name, errors in (
        ("calc", [comparison.error or 0.0 for comparison, _ in both]),
        ("aiconfigurator", [comparison.measured / tpot - 1 for comparison, tpot in both]),
    ):
        error = error_of(errors)
        lines.append((str(len(errors)), name, f"{error.median:.1%}", f"{error.signed:+.1%}"))
    print("\n".join(columns(lines)))
    for why in sorted({answer["why"][:90] for answer in answers if "why" in answer}):
        print("no answer:", why)
    if options.record:
        rows = [
            (comparison.row.id, f"{tpot:.4g}" if (tpot := answer.get("tpot")) else "")
            for comparison, answer in zip(comparisons, answers, strict=True)
        ]
        write_rows(FILE, ("row", "tpot"), rows)


def expected() -> list[Comparison]:
    """The loops whose servers read and write and for which there is an expectation, as compared."""
    together = [row for row in closed_loops.rows() if row["mode"] == "agg"]
    return [
        comparison for comparison in published.compare(together) if comparison.error is not None
    ]


def ask(python: str, comparisons: Sequence[Comparison]) -> Iterator[dict[str, Any]]:
    """An answer to each, of one process, since its tables take seconds to load."""
    questions = "\n".join(json.dumps(question(comparison)) for comparison in comparisons)
    done = subprocess.run(
        [python, "-c", PROGRAM], input=questions, capture_output=True, text=True, check=True
    )
    for line in done.stdout.splitlines():
        if line.startswith("ANSWER "):
            yield json.loads(line.removeprefix("ANSWER "))


def question(comparison: Comparison) -> dict[str, Any]:
    """The arguments of its `cli_estimate`."""
    row = comparison.row
    job, load = closed_loops.job_of(row), closed_loops.load_of(row)
    prompt, answer = map(round, mean_lengths(row))
    copies, slices = int(job.layout.data), int(job.layout.tensor)
    form, name = str(row["format"]), str(row["model"])
    backend = BACKENDS[comparison.software]
    asked: dict[str, Any] = {
        "model_path": MODELS.get((name, form)) or MODELS[name],
        "system_name": SYSTEMS[job.machine.key],
        "mode": "agg",
        "backend_name": backend,
        "isl": prompt,
        "osl": answer,
        "batch_size": max(1, round(float(load.writing) / copies)),
        "tp_size": slices,
        "attention_dp_size": copies,
    }
    if comparison.mixture:
        experts = min(int(row["experts"] or 1), copies * slices)
        asked |= {"moe_ep_size": experts, "moe_tp_size": copies * slices // experts}
        if form == "mxfp4" and backend == "trtllm":
            asked["moe_quant_mode"] = MXFP4[job.machine.key]
    elif form in ("fp8", "nvfp4"):
        asked["gemm_quant_mode"] = form
        if backend == "trtllm":  # whose caches calc reads as FP8 beside small weights
            asked |= {"kvcache_quant_mode": "fp8", "fmha_quant_mode": "fp8"}
    return asked


if __name__ == "__main__":
    main()
