"""Search data of the site beside its sections: values of the data, terms and names.

`press/writing/search_index.py` says what each list is. Subjects and places come from the data;
words by which a section or a field is asked for are told here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import calc
from calc import communication, constants, formats, hardware, machines, models, runs, training
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.core.synonyms import SYNONYMS
from calc.core.units import Quantity
from calc.derivations.numbers_to_know import AnchorBandwidths
from calc.derivations.places import anchor, kind_of, page_of
from calc.derivations.quoting import show
from calc.derivations.sources import mark
from figures import live
from tools.pages import ROOT
from tools.pages.catalog import also, things
from tools.pages.facts import Fact, asked_of, of_model, value as value_of

GLOSSARY = "backmatter/glossary.qmd"
SOURCES = "backmatter/sources.qmd"
TERM = re.compile(r"^\[(.+?)\]\(\.\./(.+?)\)\n:   (.+)$", re.MULTILINE)
MARKUP = re.compile(r"\[([^\]]*)\]\([^)]*\)|\$([^$]*)\$|[*`]")
GROUPS = {
    "Glossary": [GLOSSARY],
    "Devices and models": [f"reference/{kind}/" for kind in ("devices", "machines", "models")],
    "Library": ["reference/calc/", "backmatter/sources", "reference/changes", "references"],
}
WORDS = {  # by which a section is looked for, too
    "chapters/symptoms.qmd": "slow bottleneck troubleshooting profiling counters",
    "chapters/decisions.qmd": "which parallelism threshold buy or rent",
    "chapters/training-time.qmd": "6ND 6 N D training FLOPs days",
    "chapters/roofline.qmd": "memory-bound compute-bound roofline model",
    "chapters/serving.qmd": "LLM inference serving throughput latency",
    "chapters/collectives.qmd": "NCCL collectives cost of an all-reduce",
    "chapters/collectives.qmd#sec-measured-collectives": "all-reduce time",
    "chapters/collectives.qmd#sec-ring": "ring all-reduce formula equation cost",
    "chapters/attention.qmd#sec-fusion-bound": "flash attention FlashAttention",
    "chapters/fine-tuning.qmd": "LoRA QLoRA finetune one GPU card",
    "chapters/roofline.qmd#sec-two-roofs": "roofline formula equation",
    "chapters/training-time.qmd#sec-compute-optimal": "Chinchilla tokens per parameter",
    "chapters/littles-law.qmd#sec-arrivals-times-waiting": "littles law L = λ W",
    "chapters/number-formats.qmd#sec-range-wall": "bf16 vs fp16 against range overflow BF16 FP16",
    "chapters/training-at-scale.qmd#sec-device-memory": "ZeRO stage 3 ZeRO-3 zero stage FSDP",
    "chapters/training-at-scale.qmd#sec-designing-a-run": "how many GPUs to train 70B, devices",
    "chapters/training-at-scale.qmd#sec-run-keeps-dying": "MTBF checkpoint size, failures",
    "chapters/training-time.qmd#sec-operations-over-rate": (
        "time to train, how long, Llama 70B, MFU of the FP8 peak, DeepSeek V3"
    ),
    "chapters/transformer-arithmetic.qmd#sec-activations": "gradient checkpointing memory",
    "chapters/service-under-load.qmd#sec-queues": (
        "M/M/1 waiting time p99 p95 p90 tail latency percentile"
    ),
    "chapters/quantization.qmd#sec-which-quantization": "KV cache quantization",
    "chapters/memory-hierarchy.qmd#sec-memories": "NUMA sockets",
    "chapters/cost-and-carbon.qmd#sec-own-or-api": "cheaper to self-host than an API",
    "chapters/cost-and-carbon.qmd#sec-energy-of-an-answer": "tokens per watt joule efficiency",
    "chapters/cost-and-carbon.qmd#sec-carbon": "carbon of training CO2 emissions carbon training",
    "chapters/drafts-and-pools.qmd#sec-drafts-here": "speculative decoding help worth it",
    "chapters/transformer-arithmetic.qmd#sec-cache-room": (
        "KV cache size, concurrent requests gpu_memory_utilization"
    ),
    "chapters/roofline.qmd#sec-launch": "CUDA graph node kernel launch overhead",
    "chapters/serving.qmd#sec-larger-than-its-gpu": (
        "experts in host memory on an SSD, n-cpu-moe offload layers to the CPU, RAM"
    ),
    "chapters/service-under-load.qmd#sec-prefixes": (
        "coding agents a node, sub-agents, how many agents, prefix cache hits"
    ),
    "chapters/fine-tuning.qmd#sec-rollouts": "post-training RLHF GRPO PPO, a step of RL",
    "chapters/other-networks.qmd#sec-video": "video generation seconds frames, Wan",
    "chapters/other-networks.qmd#sec-diffusion": "image generation steps, text encoder, VAE",
    "chapters/cost-and-carbon.qmd#sec-joules": "power cap, power limit of a GPU, watts",
    "backmatter/command-line.qmd": (
        "Kubernetes manifests KServe Dynamo llm-d Helm deployment, assert a plan's limits in CI"
    ),
}
RUNS = {"device_time": " GPU hours", "work": " compute FLOPs"}  # what else each is called
KINDS = {  # of a constant, by the beginning of its key
    "bandwidth": "bandwidth",
    "cycles": "latency",
    "energy": "energy",
    "latency": "latency",
    "power": "power",
    "price": "price",
    "size": "size",
}
ASKED = {  # of constants, what readers call them
    "latency_eager_operator_least": "kernel launch overhead",
    "latency_eager_operator_most": "kernel launch overhead",
}
SERVED = ("llama-3-1-8b", "qwen-3-32b", "llama-3-3-70b", "gpt-oss-120b")
ON = ("h100", "h200", "b200", "mi300x")
SERVED_BATCH = 64  # with prompts of a thousand tokens, and answers of half as many
# What a size without a family means, after one of these words: "a 70B on eight H100s".
SIZES = {"8b": "llama-3-1-8b", "32b": "qwen-3-32b", "70b": "llama-3-1-70b", "405b": "llama-3-405b"}
BEFORE_SIZES = ("a", "an", "the", "of")
CARD = re.compile(r"rtx-(\d{4}(?:-ti)?)$")  # which people name by its number alone
# Planners of the workbench: what asks for each, all of whose words a question holds; names that
# fill an input, of which the first must be there; after which words a number fills one, with its
# unit; and what is so whoever asks.
PLACE = {"model": "model", "machine": "machine"}
RATE = ("a second", "per second", "second", "s", "per s")
DEVICES = ("", "gpu", "gpus", "device", "tpu", "tpus", "card", "accelerator")
CONTEXT = ("", "context", "token")
PLANNERS: tuple[
    tuple[str, tuple[str, ...], dict[str, str], dict[str, Any], dict[str, str]], ...
] = (
    (
        "memory",
        (
            *("fit", "can run", "enough memory", "memory to serve", "much memory", "much vram"),
            *("longest context", "max context", "kv cache context"),
        ),
        PLACE,
        {"sequences": ("", "user", "request", "sequence"), "context": CONTEXT},
        {"recipe": "serving"},
    ),
    ("memory", ("memory to train", "fit train", "fit training"), PLACE, {}, {}),
    (
        "training",
        ("train", "pretrain", "training time"),
        PLACE,
        {"devices": DEVICES, "tokens": ("token", "token")},
        {},
    ),
    (
        "service",
        (
            *("serve", "serving", "cost of inference", "many users", "requests second"),
            *("requests s", "cheapest"),
        ),
        PLACE,
        {
            "rate": ("request/s", *(f"requests {each}" for each in RATE)),
            "prompt": ("", "token prompt", "tokens prompt", "prompt"),
            "generated": ("", "token answer", "tokens answer", "answer", "output"),
        },
        {},
    ),
    (
        "decode",
        ("batch", "throughput", "how fast"),
        PLACE,
        {"devices": DEVICES, "context": CONTEXT},
        {},
    ),
    ("checkpoints", ("often checkpoint", "checkpoint every"), {}, {"devices": DEVICES}, {}),
    ("cost", ("rent buy", "rent own", "lease buy"), {}, {}, {}),
)
# Terms that everyday words are, too: no card could say which is meant.
IN_EVERY_SENSE = (
    *("attention", "bias", "bucket", "budget", "cache", "calibration", "code", "collective"),
    *("combine", "head", "kernel", "parameter", "promotion", "recipe", "register", "ring"),
    *("sweep", "tree", "wave", "window"),
)


def data() -> dict[str, str]:
    """The file that `_quarto.yml` names, one row a line."""
    tables = {
        "groups": GROUPS,
        "left-out": [GLOSSARY],
        "entries": [*_terms(), *_names()],
        "answers": [*_answers()],
        "cards": [*_cards()],
        "words": WORDS,
        "synonyms": SYNONYMS,
        "units": [*_units()],
        "names": _choices(),
        "planners": [*_planners()],
    }
    parts = (f"{json.dumps(name)}: {_lines(rows)}" for name, rows in tables.items())
    return {"reference/search.json": "{\n" + ",\n".join(parts) + "\n}\n"}


def _choices() -> dict[str, dict[str, str]]:
    """Names of models and machines, by which a question fills a planner in.

    A machine is named by its device, too: the first one of each. Of models that a family and a size
    name, the last of the data is meant.
    """
    named: dict[str, str] = {}
    for key in models.names():
        family, *_, size = key.split("-")
        named[f"{family} {size}"] = key
    for key in models.names():
        named |= {name: key for name in models.also(key) if "/" not in name and name not in named}
    for key in models.names():
        named |= dict.fromkeys((key, models.get(key).name), key)
    for size, key in SIZES.items():
        named |= dict.fromkeys((f"{before} {size}" for before in BEFORE_SIZES), key)
    boxes: dict[str, str] = {}
    for key in machines.names():
        machine = machines.get(key)
        card = CARD.match(machine.device.key)
        for name in (key, machine.name, machine.device.key, *(card.groups() if card else ())):
            boxes.setdefault(name, key)
    return {"model": named, "machine": boxes}


def _planners() -> Iterator[dict[str, Any]]:
    for name, asked, names, numbers, always in PLANNERS:
        row = {"live": name, "title": live.get(name).title, "href": "workbench.qmd"}
        yield row | {"asked": asked, "names": names, "numbers": numbers, "always": always}


def _units() -> Iterator[str]:
    """Every unit and prefix that arithmetic is written with; a prefix ends in `-`."""
    lines = (ROOT / "calc/core/units.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        name, *others = line.partition("#")[0].split(" = ")
        words = (word.strip() for word in (name, *others[1:]))
        yield from dict.fromkeys(word for word in words if word)


def _lines(rows: Any) -> str:
    if not isinstance(rows, list) or not isinstance(rows[0], dict):
        return json.dumps(rows, ensure_ascii=False, indent=1)
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"


def _terms() -> Iterator[dict[str, str]]:
    for term, href, meaning in TERM.findall((ROOT / GLOSSARY).read_text(encoding="utf-8")):
        text = MARKUP.sub(lambda found: found[1] or found[2] or "", meaning)
        yield {"group": "Glossary", "title": term, "text": text, "href": href}


def _cards() -> Iterator[dict[str, str]]:
    """Terms as they stand in a sentence, by their short names too, devices and models."""
    for term in _terms():
        card = {"text": term["text"], "href": term["href"]}
        long, _, short = term["title"].partition(" (")
        for name in (long, short.removesuffix(")")):
            if name and name not in IN_EVERY_SENSE and "," not in name:
                yield {"title": name, **card}
    for key in hardware.names():
        device = hardware.get(key)
        match = re.search(rf"\b{key.replace('-', '[ -]')}\b", device.name, re.IGNORECASE)
        if match:
            yield {"title": match[0], "text": _told(device), "href": f"{page_of(device)}.qmd"}
    for key in models.names():
        model = models.get(key)
        rows = (f"{fact.title} {fact.value}" for fact in of_model(model))
        text = f"{'; '.join(rows)}."
        yield {"title": model.name, "text": text, "href": f"{page_of(model)}.qmd"}


def _told(device: Accelerator) -> str:
    """Return a sentence of a device's rates and records, which most sentences about it are on."""
    rates = {dtype: record for dtype, record in device.peaks["peak"].items() if record.published}
    facts_told = {
        f"{dtype.upper()}, dense": rates[dtype] for dtype in ("bf16", "fp8") if dtype in rates
    }
    facts_told |= {hardware.FIELDS[name]: record for name, record in device.records.items()}
    facts = (
        f"{title} {value_of(record)}" for title, record in facts_told.items() if record.published
    )
    return f"{device.name}: {'; '.join(facts)}."


def _names() -> Iterator[dict[str, str]]:
    """Devices, machines and models, which have pages of their own."""
    for thing in chain.from_iterable(things().values()):
        words = " ".join((thing.key, *also(thing)))
        text = f"{kind_of(thing).removesuffix('s').capitalize()}: all that is known of it."
        row = {"group": "Devices and models", "title": thing.name, "text": text, "words": words}
        yield row | {"href": f"{page_of(thing)}.qmd"}


def _answers() -> Iterator[dict[str, Any]]:
    for thing in chain.from_iterable(things().values()):
        # Not what others call a task, as "Llama 2 70B LoRA".
        others = (name for name in also(thing) if not name.startswith(f"{thing.name} "))
        names = " ".join((thing.key, *others))
        yield _about(thing.name, names, f"{page_of(thing)}.qmd", asked_of(thing))
    for key in runs.names():
        run = runs.get(key)
        rows = (
            Fact.of(runs.TITLES[name], record, f"training run{RUNS.get(name, '')}")
            for name, record in run.records.items()
        )
        yield _about(run.name, key, f"backmatter/sources-models.qmd#{key}", rows)
    for key in constants.names():
        value = constants.get(key)
        title = value.provenance.title if value.provenance else key
        href = f"{SOURCES}#{anchor(key)}"
        yield _about(title, ASKED.get(key, ""), href, [_of_constant(key, title, value)])
    for key in formats.names():
        form = formats.get(key)
        href = "chapters/formats-and-rates.qmd#sec-bits-and-scales"
        yield _about(form.name, key, href, _of_format(form))
    for key in training.RECIPES:
        recipe = training.recipe(key)
        row = Fact.computed("bytes of a parameter", recipe.bytes_per_parameter, "memory optimizer")
        yield _about(key.replace("-", " "), key, "chapters/fine-tuning.qmd", [row])
    coded = Fact.computed("bandwidth", AnchorBandwidths.pcie_coded, "PCI Express 5.0", 4)
    href = "chapters/numbers-to-know.qmd#sec-bandwidth"
    yield _about("PCIe Gen5 x16, each way, after coding", "pcie gen5 pcie5", href, [coded])
    for machine in map(machines.get, ("dgx-h100", "dgx-b200", "gb200-nvl72")):
        href = "chapters/collectives.qmd#sec-measured-collectives"
        for name in ("all-reduce", "all-gather", "all-to-all"):
            yield _about(machine.name, name, href, _of_collective(name, machine))
    yield from (_of_plan(model, device) for model in SERVED for device in ON)


def _about(subject: str, names: str, href: str, facts: Iterable[Fact]) -> dict[str, Any]:
    """A subject with what is known of it, each fact in its own row where it has a whole page."""
    whole = "#" not in href
    values = [
        (fact.title, fact.value, fact.digest, fact.words, fact.row if whole else "")
        for fact in facts
        if fact.value
    ]
    return {"subject": subject, "names": names, "href": href, "values": values}


def _of_format(form: formats.Format) -> Iterator[Fact]:
    """Yield the facts of a format: bits of a value, its range, and values that share a scale."""
    yield Fact.computed("bits of a value, with its scales", form.bits, "size weight", 4)
    if isinstance(form, formats.Float):
        yield Fact.computed("largest value", form.max, "max range", 5)
        yield Fact.computed("smallest normal value", form.smallest_normal, "min range")
        yield Fact.computed("distance from 1 to the next value", form.epsilon, "epsilon")
    if isinstance(form, formats.Block | formats.TwoLevelBlock):
        yield Fact.computed("values that share a scale", form.block_size, "block size group")
        yield Fact("format of a scale", form.scale.name, "block")


def _of_plan(model: str, device: str) -> dict[str, Any]:
    """Return the expected throughput and times of one server of usual load, from `calc plan`."""
    plan = calc.plan(model, device, batch=SERVED_BATCH, prompt=1000, generated=500)
    subject = f"{plan.model.name} on {plan.devices} {hardware.get(device).name}"
    batch = f"batch {SERVED_BATCH}"
    load = f"--{batch} --prompt 1000 --generated 500"
    note = f"computed by: calc plan {model} {device} {load}"
    assert plan.expected  # of devices whose rates were measured
    rows = [
        Fact(f"expected {title}, {batch}", str(show(value, digits=2)), words, digest=note)
        for title, words, value in (
            ("throughput", "tokens per second speed tok/s tps", plan.expected.throughput),
            ("time of an output token", "TPOT ITL latency per", plan.expected.time_per_token),
            ("time to first tokens", "TTFT prefill the", plan.expected.time_to_first_token),
        )
    ]
    names = f"{model} {device} {' '.join(models.also(model))}"
    return _about(subject, names, "chapters/cost-and-carbon.qmd#sec-one-call", rows)


def _of_collective(name: str, machine: Machine) -> Iterator[Fact]:
    """Yield the times of a collective among the devices of one box, at usual sizes."""
    for size in ("1 MB", "16 MB", "1 GB"):
        time = communication.time(name.replace("-", "_"), size, machine.domain, machine).expected
        assert time is not None  # of a machine whose collectives were measured
        title = f"{name} of {size}, {machine.domain} devices"
        yield Fact.computed(title, time, f"collective NCCL time {name.replace('-', '')}")


def _of_constant(key: str, title: str, value: Quantity) -> Fact:
    about = value.provenance
    assert about is not None  # a constant is read from its file
    kind = KINDS.get(key.split("_")[0], "")
    digest = f"{about.kind}, checked {about.checked}"
    unit = " cycles" if key.startswith("cycles") and value.unitless else ""
    text = f"{mark(about)}{show(value)}{unit}"
    return Fact("" if kind in title.lower() else kind, text, digest=digest)
