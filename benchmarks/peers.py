"""Answers of other planners to published rows: their errors and times beside ours, in one run.

    python -m benchmarks.peers [--record] [--systems FOLDER] [PEER=PYTHON …]

PEER is llm-analysis 0.2.2, mlsysim 0.3.0, aiconfigurator 0.12.0 or calculon 0.1.0, and PYTHON the
interpreter of an environment that holds it; a peer without one is left out. FOLDER is `systems` of
Calculon's repository, which its package does not hold. The questions are
published rows that state their lengths, batches and layouts. Each peer has its own defaults of
efficiency, which is what a first answer of it is; none is told the result. The seconds are those
of processors in a fresh process, import and answer. `--record` writes the table of the book, in
which a peer that is left out keeps its answers, with their date.

Vidur answers none of them: its kernels of a device are profiled, and downloaded when it runs.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import resource
import subprocess
import sys
from typing import Any

from calc import published
from calc.catalog.models import Transformer
from calc.core.formatting import columns
from calc.core.records import DATA
from calc.published import conditions
from calc.published.reading import Row
from experiments.tables import write_rows

FILE = DATA / "measured" / "peers.csv"
SERVING = ("gpt-fast-6", "trtllm-0.6.1-6")
UNSTATED_ANSWER = 200  # tokens, where a row of one user states none
TRAINING = ("llm-foundry-82", "dgxc-25.02-nemotron4-15b-3")
CALC = """
from calc import published
found = published.comparing.predict(published.row(asked["row"]))
print(json.dumps(asked["rate"] * found.measured / found.prediction.expected))
"""

# Each prints tokens in a second of one device. An MLP of three matrices is told as one of two.
LLM_ANALYSIS = """
import logging
logging.disable(logging.CRITICAL)
from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
from llm_analysis.config import (
    ModelConfig, ParallelismConfig, get_dtype_config_by_name, get_gpu_config_by_name)
wide = round(asked["mlp"] / 2 / asked["width"]) * asked["width"]
model = ModelConfig(
    name="asked", num_layers=asked["layers"], n_head=asked["heads"], hidden_dim=asked["width"],
    num_key_value_heads=asked["kv_heads"], vocab_size=asked["vocabulary"], max_seq_len=8192,
    ffn_embed_dim=wide, model_type="llama")
gpu = get_gpu_config_by_name(asked["device"] + "-sxm-80gb")
if asked["group"] == "serving":
    form = get_dtype_config_by_name("w8a8e16" if asked["fp8"] else "w16a16e16")
    found = LLMAnalysis(model, gpu, form, ParallelismConfig()).inference(
        batch_size_per_gpu=asked["batch"], seq_len=asked["prompt"],
        num_tokens_to_generate=asked["generated"])
    print(json.dumps(asked["batch"] * asked["generated"] / found["total_latency"]))
else:
    cut = ParallelismConfig(tp_size=asked["TP"], pp_size=1, dp_size=asked["DP"])
    form = get_dtype_config_by_name("w16a16e16")
    again = ActivationRecomputation.FULL if asked["recomputed"] else ActivationRecomputation.NONE
    found = LLMAnalysis(model, gpu, form, cut).training(
        batch_size_per_gpu=asked["microbatch"], gradient_accumulation_steps=asked["microbatches"],
        seq_len=asked["length"], activation_recomputation=again,
        ds_zero=DSZeRO.STAGE_3 if asked["FSDP"] else DSZeRO.STAGE_1)
    print(json.dumps(asked["tokens"] / found["latency_per_iter"] / asked["devices"]))
"""
MLSYSIM = """
import mlsysim
from mlsysim.core.units import Q_
from mlsysim.engine.solvers.distributed import DistributedModel
from mlsysim.engine.solvers.serving import ServingModel
from mlsysim.models.types import TransformerWorkload
from mlsysim.systems.types import Fleet
model = TransformerWorkload(
    name="asked", architecture="Transformer", parameters=Q_(asked["parameters"], "param"),
    layers=asked["layers"], hidden_dim=asked["width"], heads=asked["heads"],
    kv_heads=asked["kv_heads"], inference_flops=Q_(2 * asked["parameters"], "flop"))
name = asked["device"].upper()
if asked["group"] == "serving":
    def served(length):
        return ServingModel().solve(
            model, getattr(mlsysim.Hardware.Cloud, name), seq_len=length,
            batch_size=asked["batch"], precision="fp8" if asked["fp8"] else "fp16")
    first = served(asked["prompt"]).ttft.m_as("s")
    each = served(asked["prompt"] + asked["generated"] // 2).itl.m_as("s")
    print(json.dumps(asked["batch"] * asked["generated"] / (first + asked["generated"] * each)))
else:
    fabrics = {"A100": "InfiniBand_HDR", "H100": "InfiniBand_NDR"}
    fleet = Fleet(
        name="asked", node=getattr(mlsysim.Systems.Nodes, "DGX_" + name),
        count=asked["devices"] // 8, fabric=getattr(mlsysim.Systems.Fabrics, fabrics[name]))
    found = DistributedModel().solve(
        model, fleet, batch_size=asked["sequences"], tp_size=asked["TP"],
        zero_stage=3 if asked["FSDP"] else 1, activation_recomputation=asked["recomputed"],
        gradient_accumulation_steps=asked["microbatches"], seq_len=asked["length"])
    seconds = found.step_latency_total.m_as("s")
    print(json.dumps(asked["tokens"] / seconds / asked["devices"]))
"""
AICONFIGURATOR = """
import pathlib, re, subprocess, sys, tempfile
config = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
    "hidden_size": asked["width"], "intermediate_size": asked["mlp"] // 3,
    "num_attention_heads": asked["heads"], "num_key_value_heads": asked["kv_heads"],
    "num_hidden_layers": asked["layers"], "vocab_size": asked["vocabulary"],
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16"}
form = "fp8" if asked["fp8"] else "bfloat16"
with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
    told = subprocess.run(
        [str(pathlib.Path(sys.executable).parent / "aiconfigurator"), "cli", "estimate",
         "--model-path", folder, "--system", asked["device"] + "_sxm", "--backend", "trtllm",
         "--estimate-mode", "static", "--tp-size", "1", "--isl", str(asked["prompt"]),
         "--osl", str(asked["generated"]), "--batch-size", str(asked["batch"]),
         "--gemm-quant-mode", form, "--kvcache-quant-mode", form],
        capture_output=True, text=True, check=True)
print(json.dumps(float(re.search(r"tokens/s/gpu: +([0-9.,]+)", told.stdout)[1].replace(",", ""))))
"""
CALCULON = """
import logging, calculon
from calculon import System
from calculon.llm import Llm
systems = {"a100": "a100_80g", "h100": "h100_80g_nvl8"}
file = asked["systems"] + "/" + systems[asked["device"]] + ".json"
system = System(calculon.io.read_json_file(file))
model = Llm(Llm.Application(dict(
    hidden=asked["width"], feedforward=asked["mlp"] // 2, seq_size=asked["length"],
    attn_heads=asked["heads"], attn_size=asked["width"] // asked["heads"],
    num_blocks=asked["layers"])), logging.getLogger())
model.compile(system, Llm.Execution.from_json(dict(
    num_procs=asked["devices"], tensor_par=asked["TP"], pipeline_par=1, data_par=asked["DP"],
    tensor_par_net=0, pipeline_par_net=0,
    data_par_net=int(asked["devices"] > 8), batch_size=asked["sequences"],
    microbatch_size=asked["microbatch"], datatype="float16", fused_activation=True,
    attention_type="multihead", activation_recompute="full" if asked["recomputed"] else "attn_only",
    pipeline_interleaving=1, optimizer_sharding=True, tensor_par_comm_type="rs_ag",
    tensor_par_overlap="none", seq_par_ag_redo=False, data_par_overlap=False,
    weight_offload=False, activations_offload=False, optimizer_offload=False, training=True)))
model.run(system)
print(json.dumps(asked["tokens"] / model.get_total_time() / asked["devices"]))
"""
PEERS = {  # what each is asked: its version, its program, and which rows it has no answer to
    "llm-analysis": ("0.2.2", LLM_ANALYSIS, {}),
    "mlsysim": ("0.3.0", MLSYSIM, {}),
    "aiconfigurator": ("0.12.0", AICONFIGURATOR, dict.fromkeys(TRAINING, "serving alone")),
    "calculon": ("0.1.0", CALCULON, dict.fromkeys(SERVING, "training alone")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="The same questions to other planners.")
    parser.add_argument("peers", nargs="*", metavar="PEER=PYTHON", help="whom to ask, and where")
    parser.add_argument("--systems", metavar="FOLDER", help="Calculon's systems")
    parser.add_argument("--record", action="store_true", help="write the table of the answers")
    options = parser.parse_args()
    interpreters = dict(peer.partition("=")[::2] for peer in options.peers)
    for name in interpreters.keys() - PEERS:
        parser.error(f"no peer {name}: known are {', '.join(PEERS)}")
    rows = [row for row in published.rows() if row.id in SERVING + TRAINING]
    results: list[tuple[Any, ...]] = []
    for row in rows:
        ours = ask(sys.executable, CALC, row)
        results.append((row.id, "calc", "", rate(row), *ours, ""))
        for name, (version, program, silent) in PEERS.items():
            if name not in interpreters:
                continue
            answer = (
                ("", "")
                if row.id in silent
                else ask(interpreters[name], program, row, options.systems)
            )
            results.append((row.id, name, version, rate(row), *answer, silent.get(row.id, "")))
    for name in PEERS.keys() - interpreters:
        print(f"{name} is left out: give {name}=PYTHON, the interpreter of where it is installed")
    lines = [("row", "planner", "measured", "predicted", "error", "seconds", "times ours")]
    for row_id, name, version, measured, predicted, seconds, why in results:
        [ours] = [answer[5] for answer in results if answer[:2] == (row_id, "calc")]
        is_number = isinstance(predicted, float)
        lines.append(
            (
                str(row_id),
                f"{name} {version}".strip(),
                f"{measured:.4g}",
                f"{predicted:.4g}" if is_number else str(why or predicted),
                f"{predicted / measured - 1:+.0%}" if is_number else "",
                f"{seconds:.2f}" if is_number else "",
                f"{seconds / ours:.1f}" if is_number else "",
            )
        )
    print("\n".join(columns(lines)))
    if options.record:
        names = ("row", "planner", "version", "measured", "predicted", "seconds", "why_not", "date")
        today = datetime.date.today().isoformat()
        fresh: list[tuple[Any, ...]] = [(*_plain(answer), today) for answer in results]
        with FILE.open(newline="", encoding="utf-8") as file:
            kept = [
                line for line in csv.reader(file) if line[1] in PEERS.keys() - interpreters.keys()
            ]
        fresh += map(tuple, kept)
        places, planners = [row.id for row in rows], ["calc", *PEERS]
        fresh.sort(key=lambda line: (places.index(line[0]), planners.index(line[1])))
        write_rows(FILE, names, fresh)


def _plain(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """An answer to four digits; why there is none stands in a column of its own."""
    *named, measured, predicted, seconds, why = result
    if isinstance(predicted, float):
        return (*named, f"{measured:.4g}", f"{predicted:.4g}", f"{seconds:.2f}", why)
    return (*named, f"{measured:.4g}", "", "", why or predicted)


def rate(row: Row) -> float:
    """Tokens in a second of one device, as published."""
    for name in ("tokens_per_s_per_gpu", "output_tokens_per_s_per_gpu"):
        if name in row.measured:
            return row.measured[name]
    whole = row.measured.get("tokens_per_s", row.measured.get("decode_tokens_per_s", 0.0))
    return whole / conditions.devices(row)


def question(row: Row) -> dict[str, Any]:
    """Return the conditions that a row states, in plain numbers."""
    model, device = conditions.model(row), conditions.machine(row).device.key
    asked = shape(model) | {"row": row.id, "group": row.group, "rate": rate(row)}
    asked |= {"device": device, "devices": conditions.devices(row)}
    if row.group == "serving":
        asked["fp8"] = conditions.format_of(row["dtype_weights"]) == "fp8"
        prompt, answer = row.number("input_len"), row.number("output_len")
        asked |= {"prompt": int(prompt or 1), "generated": int(answer or UNSTATED_ANSWER)}
        return asked | {"batch": int(row.number("batch") or 1)}
    layout = conditions.layout(row)
    tensor, sequences = layout.get("TP", 1), int(row.number("global_batch_seqs") or 0)
    copies = asked["devices"] // tensor
    microbatch = int(row.number("micro_batch") or layout["MBS"])
    length = int(row.number("seq_len") or 0)
    return asked | {
        "TP": tensor,
        "DP": copies,
        "FSDP": "FSDP" in str(row["parallelism"]),
        "recomputed": str(row["activation_checkpointing"]) == "True",
        "sequences": sequences,
        "microbatch": microbatch,
        "microbatches": sequences // (copies * microbatch),
        "length": length,
        "tokens": sequences * length,
    }


def shape(model: Transformer) -> dict[str, Any]:
    """The shape of a model, in plain numbers; an MLP counts as its matrices together."""
    layers = float(model.layers)
    mlp = sum(matrix.parameters for matrix in model.matrices if matrix.part == "feed-forward")
    width = model.width
    counts = {name: getattr(model, name) for name in ("layers", "heads", "kv_heads")}
    return counts | {
        "width": width,
        "vocabulary": model.vocabulary or 0,
        "parameters": float(model.parameters.m_as("param")),
        "mlp": round(mlp / layers / width),
    }


def ask(python: str, program: str, row: Row, systems: str | None = None) -> tuple[Any, Any]:
    """An answer and the seconds of a fresh process, or the last line of why there is none."""
    asked = question(row) | {"systems": systems}
    code = f"import json\nasked = json.loads({json.dumps(json.dumps(asked))})\n{program}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode:
        return done.stderr.strip().splitlines()[-1].rpartition("Error: ")[2], ""
    return float(done.stdout.strip().splitlines()[-1]), seconds


if __name__ == "__main__":
    main()
