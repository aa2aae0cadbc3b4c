"""Times per token of other planners for closed loops, beside ours, in one run.

    python -m benchmarks.peer_loops [--every 12] [--record] PEER=WHERE …

PEER is aiconfigurator 0.12.0, mlsysim 0.3.0 or blis at f90a1e3; WHERE is the interpreter of an
environment that holds it, of BLIS its program in the folder of its repository. The questions are
published closed loops whose servers read and write, every twelfth of those for which `calc` expects
a time, but for the machine to which calc fitted a program's own times. They are aiconfigurator's
own validation data. Each is told the lengths, clients, layout and formats by which calc reads the
row, and has its own defaults for all else; of its rows that it cannot be told there is the reason.
aiconfigurator is asked as its command `estimate` is, in mode agg and of its newest tables; what a
format leaves open it infers from the model. mlsysim knows a batch on one device. BLIS simulates the
same clients on an H100, as vLLM whatever the row's program.
`--record` writes what the book quotes of aiconfigurator, ours aside, which is computed anew
wherever it is quoted. None of them prints an interval.

AISimulate, its successor, and llm-optimizer answer none of them: neither can be installed from
packages, whose names hold a placeholder and another program.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import shape
from benchmarks.power import errors
from calc import published
from calc.catalog.models import Transformer
from calc.core.formatting import columns
from calc.core.records import DATA
from calc.published import Comparison, closed_loops
from calc.published.closed_loops import mean_lengths
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
# Each reads a question a line, and prints the seconds of a token, or why there are none.
READS = """
import json, logging, sys, warnings
logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
{imports}
for line in sys.stdin:
    try:
        asked = json.loads(line)
        answer = {{"tpot": {answer}}}
    except Exception as error:
        answer = {{"why": f"{{type(error).__name__}}: {{error}}"}}
    print("ANSWER " + json.dumps(answer), flush=True)
"""
AICONFIGURATOR = READS.format(
    imports="from aiconfigurator.cli.api import cli_estimate",
    answer="cli_estimate(**asked).tpot / 1e3",
)
MLSYSIM = READS.format(
    imports="""
import mlsysim
from mlsysim.core.units import Q_
from mlsysim.engine.solvers.serving import ServingModel
from mlsysim.models.types import TransformerWorkload
def token(shape, device, **load):
    model = TransformerWorkload(
        name="asked", architecture="Transformer", parameters=Q_(shape["parameters"], "param"),
        layers=shape["layers"], hidden_dim=shape["width"], heads=shape["heads"],
        kv_heads=shape["kv_heads"], inference_flops=Q_(2 * shape["parameters"], "flop"))
    return ServingModel().solve(model, getattr(mlsysim.Hardware.Cloud, device), **load)""",
    answer='token(**asked).itl.m_as("s")',
)


@dataclass(frozen=True)
class Peer:
    """Another planner: its version, what it is told of a row, and how it is asked."""

    version: str
    question: Callable[[Comparison], dict[str, Any]]
    answers: Callable[[str, Sequence[dict[str, Any]]], Iterator[dict[str, Any]]]


class UntoldError(Exception):
    """A planner cannot be told a row, for this reason."""


def main() -> None:
    parser = argparse.ArgumentParser(description="The same closed loops to other planners.")
    parser.add_argument("peers", nargs="+", metavar="PEER=WHERE", help="whom to ask, and where")
    parser.add_argument("--every", type=int, default=12, metavar="N", help="ask of each Nth row")
    parser.add_argument("--record", action="store_true", help="write what the book quotes")
    options = parser.parse_args()
    places = dict(peer.partition("=")[::2] for peer in options.peers)
    for name in places.keys() - PEERS:
        parser.error(f"no peer {name}: known are {', '.join(PEERS)}")
    if options.record and RECORDED not in places:
        parser.error(f"--record writes what {RECORDED} answers: give {RECORDED}=PYTHON")
    comparisons = [each for each in expected()[:: options.every] if not each.fitted]
    answers = {name: asked(PEERS[name], where, comparisons) for name, where in places.items()}
    print("\n".join(columns(table(comparisons, answers))))
    for name, of in answers.items():
        for why in sorted({answer["why"][:90] for answer in of if "why" in answer}):
            print(f"{name} has no answer:", why)
    if options.record:
        rows = [
            (comparison.row.id, f"{tpot:.4g}" if (tpot := answer.get("tpot")) else "")
            for comparison, answer in zip(comparisons, answers[RECORDED], strict=True)
        ]
        write_rows(FILE, ("row", "tpot"), rows)


def asked(peer: Peer, where: str, comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """An answer to each, or why there is none."""
    answers: list[dict[str, Any]] = [{} for _ in comparisons]
    questions = {}
    for index, comparison in enumerate(comparisons):
        try:
            questions[index] = peer.question(comparison)
        except UntoldError as error:
            answers[index] = {"why": str(error)}
    for index, answer in zip(questions, peer.answers(where, [*questions.values()]), strict=True):
        answers[index] = answer
    return answers


def table(
    comparisons: Sequence[Comparison], answers: dict[str, list[dict[str, Any]]]
) -> list[tuple[str, ...]]:
    """Return the errors of each peer by kinds of rows that it answers, and ours on the same."""
    lines: list[tuple[str, ...]] = [
        ("planner", "of", "rows", "signed", "median", "90th", "ours signed", "median", "90th")
    ]
    for name, of in answers.items():
        kinds: dict[str, list[tuple[float, float]]] = {}
        for comparison, answer in zip(comparisons, of, strict=True):
            if (tpot := answer.get("tpot")) is not None:
                both = comparison.measured / tpot, 1 + (comparison.error or 0.0)
                model = "mixtures" if comparison.mixture else "dense"
                for kind in ("all", f"{comparison.software}, {model}"):
                    kinds.setdefault(kind, []).append(both)
        for kind, factors in sorted(kinds.items()):
            theirs, ours = (errors(some) for some in zip(*factors, strict=True))
            lines.append((f"{name} {PEERS[name].version}", kind, *theirs, *ours[1:]))
    return lines


def expected() -> list[Comparison]:
    """The loops whose servers read and write and for which there is an expectation, as compared."""
    together = [row for row in closed_loops.rows() if row["mode"] == "agg"]
    return [
        comparison for comparison in published.compare(together) if comparison.error is not None
    ]


def ask(program: str) -> Callable[[str, Sequence[dict[str, Any]]], Iterator[dict[str, Any]]]:
    """Return what asks an interpreter, in one process, since tables take seconds to load."""

    def answers(python: str, questions: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        lines = "\n".join(map(json.dumps, questions))
        done = subprocess.run(
            [python, "-c", program], input=lines, capture_output=True, text=True, check=True
        )
        for line in done.stdout.splitlines():
            if line.startswith("ANSWER "):
                yield json.loads(line.removeprefix("ANSWER "))

    return answers


def estimate(comparison: Comparison) -> dict[str, Any]:
    """The arguments of aiconfigurator's `cli_estimate`."""
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


def one_device(comparison: Comparison) -> dict[str, Any]:
    """A batch of one device at its mean length, as mlsysim's model of serving takes it."""
    row = comparison.row
    job, load = closed_loops.job_of(row), closed_loops.load_of(row)
    if job.layout.devices > 1:
        raise UntoldError("it knows one device")
    prompt, answer = mean_lengths(row)
    if (precision := {"bf16": "fp16", "fp8": "fp8"}.get(str(row["format"]))) is None:
        raise UntoldError(f"it has no {row['format']}")
    return {
        "shape": shape(job.model),
        "device": job.measured_on.device.key.upper(),
        "seq_len": round(prompt + answer / 2),
        "batch_size": max(1, round(float(load.writing))),
        "precision": precision,
    }


def clients(comparison: Comparison) -> dict[str, Any]:
    """The options of BLIS's `run`, and the shape that its `config.json` gets."""
    row = comparison.row
    job = closed_loops.job_of(row)
    prompt, answer = map(round, mean_lengths(row))
    form = str(row["format"])
    if job.measured_on.device.key != "h100":
        raise UntoldError(f"it has no {job.measured_on.device.key}")
    if form not in ("bf16", "fp8"):
        raise UntoldError(f"it has no {form}")
    if job.layout.data > 1:
        raise UntoldError("it has no copies of attention of such a model")
    count = int(row.number("clients") or 1)
    lengths = {
        f"{which}-tokens{end}": value
        for which, tokens in (("prompt", prompt), ("output", answer))
        for end, value in (("", tokens), ("-stdev", 0), ("-min", tokens), ("-max", tokens))
    }
    options = {"hardware": "H100", "tp": int(job.layout.tensor), "concurrency": count}
    options |= {"num-requests": 10 * count, "timeout": -1, **lengths}
    return {"options": options, "config": config(job.model, form)}


def config(model: Transformer, form: str) -> dict[str, Any]:
    """A model as a `config.json` of Hugging Face has it."""
    numbers = shape(model)
    names: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_act": "silu",
        "hidden_size": numbers["width"],
        "num_hidden_layers": numbers["layers"],
        "num_attention_heads": numbers["heads"],
        "num_key_value_heads": numbers["kv_heads"],
        "head_dim": int(model.head_width),
        "intermediate_size": int(model.feed_forward_width or model.expert_width or 0),
        "vocab_size": numbers["vocabulary"],
        "max_position_embeddings": int(model.context or 0),
        "torch_dtype": "bfloat16",
    }
    if model.experts is not None:
        names |= {
            "num_local_experts": int(model.experts),
            "num_experts_per_tok": int(model.active_experts or 1),
            "moe_intermediate_size": int(model.expert_width or 0),
        }
    return names | ({"quantization_config": {"quant_method": "fp8"}} if form == "fp8" else {})


def simulated(program: str, questions: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Answers of BLIS: the mean time between the tokens of an answer."""
    for asked_of in questions:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps(asked_of["config"]))
            command = [program, "run", "--model", "asked", "--model-config-folder", folder]
            for name, value in asked_of["options"].items():
                command += [f"--{name}", str(value)]
            done = subprocess.run(command, cwd=Path(program).parent, capture_output=True, text=True)
        if found := re.search(r'"itl_mean_ms": ([0-9.]+)', done.stdout):
            yield {"tpot": float(found[1]) / 1e3}
        else:
            last = (done.stderr or done.stdout).strip().rpartition("\n")[2]
            panic = re.search(r"^panic: .*?([^:]*)$", done.stderr, re.MULTILINE)
            yield {"why": panic[1].strip() if panic else last}


PEERS = {
    "aiconfigurator": Peer("0.12.0", estimate, ask(AICONFIGURATOR)),
    "mlsysim": Peer("0.3.0", one_device, ask(MLSYSIM)),
    "blis": Peer("f90a1e3", clients, simulated),
}
RECORDED = "aiconfigurator"


if __name__ == "__main__":
    main()
