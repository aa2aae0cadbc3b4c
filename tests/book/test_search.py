"""Forty questions that readers put to the search box, each with what must be its first answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import parse_qsl

from playwright.sync_api import BrowserContext

from figures import live
from tests.in_browser import open_file
from tools.pages import ROOT, search

PLANNED = {  # a question, and the inputs with which its planner opens
    "does llama 3.1 70b fit on h100": (
        "memory&recipe=serving&model=llama-3-1-70b&machine=dgx-h100"
    ),
    "will deepseek-v3 fit on h200s with 16 users": (
        "memory&recipe=serving&model=deepseek-v3&machine=dgx-h200&sequences=16"
    ),
    "Does Mixtral 8x7B fit on an RTX 4090?": (
        "memory&recipe=serving&model=mixtral-8x7b&machine=rtx-4090-1"
    ),
    "train llama 3 8b on 512 h100s": ("training&model=llama-3-8b&machine=dgx-h100&devices=512"),
    "how long to train llama 3.1 405b on 1,024 h100 with 15T tokens": (
        "training&model=llama-3-405b&machine=dgx-h100&devices=1024&tokens=15T+token"
    ),
    "serve llama 3.1 70b on b200": "service&model=llama-3-1-70b&machine=dgx-b200",
    "cost of inference for llama 3.1 8b on dgx-h200": (
        "service&model=llama-3-1-8b&machine=dgx-h200"
    ),
    "batch of llama 3 8b on h200 with 8k context": (
        "decode&model=llama-3-8b&machine=dgx-h200&context=8000"
    ),
    "can i run deepseek v3 on 8 h200": "memory&recipe=serving&model=deepseek-v3&machine=dgx-h200",
    "max context of qwen3 32b on a 4090": (
        "memory&recipe=serving&model=qwen-3-32b&machine=rtx-4090-1"
    ),
    "how fast is llama 3.1 8b on a 4090": "decode&model=llama-3-1-8b&machine=rtx-4090-1",
    "how long does it take to train a 8b model on 64 h100": (
        "training&model=llama-3-1-8b&machine=dgx-h100&devices=64"
    ),
    "how many users can a 70b on h200 serve": "service&model=llama-3-1-70b&machine=dgx-h200",
    "how much vram for llama 3.1 8b": "memory&recipe=serving&model=llama-3-1-8b",
    "how often to checkpoint on 1024 gpus": "checkpoints&devices=1024",
    "rent or buy a gpu": "cost",
    # as they are typed
    "will llama 70b fit on 2 h100": "memory&recipe=serving&model=llama-3-1-70b&machine=dgx-h100",
    "kv cache for 128k context of llama 3.1 70b": (
        "memory&recipe=serving&model=llama-3-1-70b&context=128000"
    ),
    "cheapest gpu for 30 requests a second of 70b": (
        "service&model=llama-3-1-70b&rate=30+request%2Fs"
    ),
    "serve a 8b on h200 at 100 requests/s with 2000 token prompts": (
        "service&model=llama-3-1-8b&machine=dgx-h200&rate=100+request%2Fs&prompt=2000"
    ),
}
GOLDEN = {  # what is typed, the beginning of the first hit's address, and words of it
    # a value of the data
    "h100 memory bandwidth": ("reference/devices/h100.html#h100-", "3.35 TB/s"),
    "HBM latency of an H100": ("backmatter/sources.html#latency-", "ns"),
    "fp32 vector peak of an A100": ("reference/devices/a100.html#a100-", "19.5 TFLOP/s"),
    "nvlink b200": ("reference/devices/b200.html#b200-", "900 GB/s"),
    "llama 3 70b kv": ("reference/models/llama-3-70b.html#llama-3-70b", "328 kB"),
    "pcie 6": ("backmatter/sources.html#bandwidth-pcie6-x16", "GB/s"),
    "h200 capacity": ("reference/devices/h200.html#h200-", "141 GB"),
    "b200 fp4 tflops": ("reference/devices/b200.html#b200-", "PFLOP/s"),
    "mi300x tdp": ("reference/devices/mi300x.html#mi300x-", "750 W"),
    "tpu v5p bandwidth": ("reference/devices/tpu-v5p.html#tpu-v5p-", "TB/s"),
    "deepseek-v3 active parameters": ("reference/models/deepseek-v3.html#deepseek-v3", "37"),
    "mixtral 8x7b params": ("reference/models/mixtral-8x7b.html#mixtral-8x7b", "46.7"),
    "dgx h100 power": ("reference/machines/dgx-h100.html#dgx-h100", "10.2 kW"),
    "h100 ridge point": ("reference/devices/h100.html#h100-", "FLOP/byte"),
    "L2 of an MI300X": ("reference/devices/mi300x.html#mi300x-", "4 MiB of L2 cache each"),
    "rtx 4090 vram": ("reference/devices/rtx-4090.html#rtx-4090-", "24 GiB"),
    # a term
    "ttft": ("chapters/serving.html", "time to first token"),
    "TPOT": ("chapters/serving.html", "time per output token"),
    "mfu": ("chapters/", "model FLOP utilisation"),
    "warp": ("chapters/", "warp"),
    "SM": ("chapters/", "streaming multiprocessor"),
    "rdma": ("chapters/", "RDMA"),
    "bisection bandwidth": ("chapters/", "bisection bandwidth"),
    "MLA": ("chapters/attention.html", "latent attention"),
    "roofline": ("chapters/roofline.html", "roofline"),
    "GEMM": ("chapters/", "GEMM"),
    "allreduce": ("chapters/collectives.html", "all-reduce"),
    "quantization": ("chapters/", "quantisation"),
    "pipeline bubble": ("chapters/training-at-scale.html", "pipeline bubble"),
    "utilization": ("chapters/", "utilisation"),
    # a section of the book
    "6ND": ("chapters/training-time.html", ""),
    "cost of an all-reduce": ("chapters/collectives.html#sec-ring", "ring"),
    "all-reduce time": ("chapters/collectives.html", "µs"),
    "why is decode memory-bound": ("", "memory-bound"),
    "checkpoint interval": ("chapters/training-at-scale.html", ""),
    "continuous batching": ("chapters/serving.html", "continuous batching"),
    "nccl": ("chapters/collectives.html", ""),
    "fine-tuning on one gpu": ("chapters/fine-tuning.html", ""),
    "carbon": ("chapters/cost-and-carbon.html", "carbon"),
    "littles law": ("chapters/littles-law.html#sec-arrivals", ""),
    "zero stage 3": ("chapters/training-at-scale.html#sec-device-memory", ""),
    "carbon training": ("chapters/cost-and-carbon.html#sec-carbon", ""),
    "is it cheaper to self host llama 70b or use an api": (
        "chapters/cost-and-carbon.html#sec-own-or-api",
        "",
    ),
    "gptq": ("chapters/quantization.html#sec-compensation", ""),
    "bf16 vs fp16": ("chapters/number-formats.html", ""),
    "how many gpus to train 70b": ("chapters/training-at-scale.html", ""),
    "is it cheaper to self host gpt-oss-120b or use the api": (
        "chapters/cost-and-carbon.html#sec-own-or-api",
        "",
    ),
    "does speculative decoding help for llama 70b on h200": ("chapters/drafts-and-pools.html", ""),
    # a value in other words, of a format, a recipe, a collective, a plan
    "a100 bw": ("reference/devices/a100.html#a100-", "2.039 TB/s"),
    "a100 l2 size": ("reference/devices/a100.html#a100-", "40 MiB"),
    "kv cache llama 70b": ("reference/models/llama-3-1-70b.html#llama-3-1-70b", "328 kB"),
    "llama 3 8b width": ("reference/models/llama-3-8b.html#llama-3-8b", "4096"),
    "gb200 nvlink domain": ("reference/machines/gb200-nvl72.html#gb200-nvl72", "72"),
    "all-reduce 1 gb h100": ("chapters/collectives.html", "3.78 ms"),
    "e4m3 largest": ("chapters/formats-and-rates.html#", "448"),
    "nvfp4 bits": ("chapters/formats-and-rates.html#", "4.5"),
    "v6e ridge int8": ("reference/devices/tpu-v6e.html#tpu-v6e-", "1120"),
    "adam 8bit bytes": ("chapters/fine-tuning.html", "6.03"),
    "tokens per second h100 8b": ("chapters/cost-and-carbon.html", "token"),
    # found by trying what no test asked
    "pcie gen5": ("chapters/numbers-to-know.html#sec-bandwidth", "63.02 GB/s"),
    "h100 sm count": ("reference/devices/h100.html#h100-units", "132"),
    "tensor parallel": ("chapters/training-at-scale.html", "tensor parallelism"),
    "all-to-all time": ("chapters/collectives.html", "all-to-all of"),
    "lora memory": ("chapters/fine-tuning.html", ""),
    "gradient checkpointing": ("chapters/transformer-arithmetic.html#sec-activations", ""),
    "roofline h100 fp8": ("reference/devices/h100.html#h100-ridge-fp8", "591"),
    "tokens per watt": ("chapters/cost-and-carbon.html#sec-energy-of-an-answer", ""),
    "p99 latency": ("chapters/service-under-load.html#sec-queues", ""),
    "mtbf": ("chapters/training-at-scale.html#sec-run-keeps-dying", ""),
    "llama 70b tpot h100": ("chapters/cost-and-carbon.html#sec-one-call", "ms"),
    "llama 70b ttft h100": ("chapters/cost-and-carbon.html#sec-one-call", "s"),
    "gb200 nvl72 all-reduce 1 gb": ("chapters/collectives.html#", "72 devices"),
    "ethernet 400g": ("backmatter/sources.html#bandwidth-ethernet-400", "400 Gbit/s"),
    "ring allreduce formula": ("chapters/collectives.html#sec-ring", ""),
    "mfu deepseek v3 fp8": ("chapters/training-time.html#sec-operations-over-rate", ""),
    # found by readers who knew nothing of the book
    "llama 405b mfu": ("backmatter/sources-models.html#llama-3-1-405b", "41%"),
    "mxfp4 block size": ("chapters/formats-and-rates.html#", "32"),
    "bf16 epsilon": ("chapters/formats-and-rates.html#", "0.00781"),
    "h100 number of SMs": ("reference/devices/h100.html#h100-units", "132"),
    "global memory latency": ("backmatter/sources.html#cycles-", "cycles"),
    "kernel launch overhead": ("backmatter/sources.html#latency-eager-operator", "5 µs"),
    "gpt-3 training flops": ("backmatter/sources-models.html#gpt-3-175b", "FLOP"),
    "ring all-reduce cost": ("chapters/collectives.html#sec-ring", ""),
    "chinchilla tokens per parameter": ("chapters/training-time.html#sec-compute-optimal", ""),
    "roofline formula": ("chapters/roofline.html#sec-two-roofs", ""),
    "M/M/1 waiting time": ("chapters/service-under-load.html#sec-queues", ""),
    # what looks like arithmetic and is none
    "8-bit adam": ("chapters/fine-tuning.html", "moments"),
    "4-bit quantization": ("chapters/quantization.html", ""),
    "10 GB / 2 GB/s": ("workbench.html#compute", ""),
    # a question that a planner answers
    **{asked: (f"workbench.html#live={at}", "filled in") for asked, at in PLANNED.items()},
    # a name, misspelt words, a law
    "roofline.attainable": ("reference/calc/roofline.html#calc-roofline-attainable", "attainable"),
    "kv_cache_per_token": ("reference/calc/transformer.html", "kv_cache_per_token"),
    "rooflin modle": ("chapters/roofline.html", ""),
    "ring_all_reduce": ("reference/calc/collectives.html", "ring_all_reduce"),
}


ASKED = {  # questions of planning, and the section by whose words each is found
    "experts on an ssd": "chapters/serving.qmd#sec-larger-than-its-gpu",
    "how many coding agents a node": "chapters/service-under-load.qmd#sec-prefixes",
    "speculative decoding worth it": "chapters/drafts-and-pools.qmd#sec-drafts-here",
    "power cap of a gpu": "chapters/cost-and-carbon.qmd#sec-joules",
    "grpo step": "chapters/fine-tuning.qmd#sec-rollouts",
    "seconds of video generation": "chapters/other-networks.qmd#sec-video",
    "kubernetes deployment": "backmatter/command-line.qmd",
    "limits of a plan in ci": "backmatter/command-line.qmd",
}


def test_questions_of_planning_have_words_and_sections() -> None:
    for question, place in ASKED.items():
        page, _, section = place.partition("#")
        assert not section or f"{{#{section}" in (ROOT / page).read_text(encoding="utf-8")
        words = re.findall(r"[a-z]+", search.WORDS[place].lower())
        missing = {*question.split()} - {*words, "of", "the"}
        assert not missing or missing <= {"a", "plan"}, question


def test_planners_take_what_questions_fill_in() -> None:
    assert len(PLANNED) >= 10
    refused = {}
    for asked, filled in PLANNED.items():
        (name, *_), *state = parse_qsl(f"{filled.replace('&', '=&', 1)}", keep_blank_values=True)
        answer = json.loads(live.answer(name, json.dumps(dict(state))))
        if "errors" in answer:
            refused[asked] = answer["errors"]
    assert refused == {}


def test_planners_have_the_inputs_that_questions_fill() -> None:
    names = search._choices()
    for planner in search._planners():
        inputs = {each.name: each for each in live.get(planner["live"]).inputs}
        filled = {**planner["names"], **planner["numbers"], **planner["always"]}
        assert filled.keys() <= inputs.keys(), planner
        for name, kind in planner["names"].items():
            assert {*names[kind].values()} <= {*inputs[name].words}, (planner["live"], name)


def test_each_question_has_its_answer_first(context: BrowserContext, book: Path) -> None:
    page = open_file(context.new_page(), book / "index.html")
    page.keyboard.press("/")
    box = page.get_by_role("combobox")
    first = page.locator("#search-results").get_by_role("option").first
    wrong = {}
    for query, (address, words) in GOLDEN.items():
        box.fill("")
        box.fill(query)
        first.wait_for()
        href = str(first.evaluate("a => a.href")).removeprefix(f"{book.as_uri()}/")
        text = " ".join(str(first.text_content()).replace("\N{NO-BREAK SPACE}", " ").split())
        if not href.startswith(address) or words.lower() not in text.lower():
            wrong[query] = f"{href}: {text[:100]}"
    assert len(GOLDEN) >= 40
    assert wrong == {}


def test_arithmetic_is_offered_to_the_workbench(context: BrowserContext, book: Path) -> None:
    page = open_file(context.new_page(), book / "chapters" / "roofline.html")
    page.keyboard.press("/")
    page.keyboard.type("140 GB / (3.35 TB/s)")
    first = page.locator("#search-results").get_by_role("option").first
    first.wait_for()
    assert "workbench.html#compute=" in str(first.evaluate("a => a.href"))


def test_words_that_were_found_are_marked_where_they_are(
    context: BrowserContext, book: Path
) -> None:
    page = open_file(context.new_page(), book / "index.html")
    page.keyboard.press("/")
    page.keyboard.type("ridge point of a device")
    page.locator("[role=option][href*='chapters/']").first.click()
    page.wait_for_url("**/chapters/**")
    marked = "CSS.highlights.get('found')?.size ?? 0"
    page.wait_for_function(f"({marked}) > 0")
    page.keyboard.press("Escape")
    assert page.evaluate(marked) == 0
