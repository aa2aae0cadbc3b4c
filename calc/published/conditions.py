"""What the words of a published row mean: its machine, its model, its format and its layout.

A name is read by the table below, the same for all rows of all groups, before anything is
predicted. What no entry reads is not guessed: the row is listed with the name that is not known.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from calc.catalog import hardware, machines, models
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.errors import InputError
from calc.published.prediction import UnusableRowError
from calc.published.reading import Row

# A device is that of the first pattern found in its name, written in small letters.
DEVICES = (
    (r"gb300", "gb300"),
    (r"gb200", "gb200"),
    (r"gh200", "gh200"),
    (r"b300", "b300"),
    (r"b200", "b200"),
    (r"h200[- ]nvl", "h200-nvl"),
    (r"h200", "h200"),
    (r"h800", "h100"),  # the same chip, with fewer links
    (r"h100 nvl", "h100-nvl"),  # of which there are no data, so that its rows are listed
    (r"h100.*pcie", "h100-pcie"),
    (r"h100", "h100"),
    (r"a100.*pcie", "a100-pcie"),
    (r"a100.*40 ?gb", "a100-40gb"),
    (r"a100", "a100"),
    (r"v100", "v100"),
    (r"l40s", "l40s"),
    (r"l40", "l40"),
    (r"a40\b", "a40"),
    (r"rtx a6000", "rtx-a6000"),
    (r"rtx (pro 6000|6000 pro)", "rtx-pro-6000"),
    (r"(rtx )?(\d000) ada", r"rtx-\2-ada"),
    (r"\b(30[678]0|3090|40[678]0|4090|50[678]0|5090)( ti)?( super)?\b", r"rtx-\1\2\3"),
    (r"\b(a10g?|a30|h20|t4|l4)\b", r"\1"),
    (r"mi300a", "mi300a"),
    (r"ryzen ai max\+ 395|framework mainboard", "ryzen-ai-max-395"),  # which that board has
    (r"mi(\d{3}x?)", r"mi\1"),
    (r"tpu ?v?7x?", "tpu-v7"),
    (r"tpu (v\d\w?)", r"tpu-\1"),
    (r"gaudi ?(\d)", r"gaudi\1"),
    (r"(gb10|dgx spark)", "gb10"),
    (r"orin nx", "jetson-orin-nx"),
    (r"orin nano", "jetson-orin-nano"),
    (r"apple (m\d(?: pro| max| ultra)?)", r"apple-\1"),
    (r"\b(m\d(?: pro| max| ultra)?)\b", r"apple-\1"),
)
# A machine of a cloud, where the words of the device or of the system name one. What rows of one
# device measure does not depend on its network, so that only rows of several machines are asked.
CLOUDS = (
    (r"\bp4de\b", "aws-p4de"),
    (r"\bp4d\b", "aws-p4d"),
    (r"\bp5en\b", "aws-p5en"),
    (r"\bp5e\b", "aws-p5e"),
    (r"\bp5\b", "aws-p5"),
    (r"\bp6-b200\b", "aws-p6-b200"),
    (r"\ba2[- ]?ultra(gpu)?\b", "gcp-a2-ultra"),
    (r"\ba3[- ]?mega(gpu)?\b", "gcp-a3-mega"),
    (r"\ba3[- ]?ultra(gpu)?\b", "gcp-a3-ultra"),
    (r"\ba3[- ]?high(gpu)?\b", "gcp-a3-high"),
    (r"\ba4(-highgpu)?\b", "gcp-a4"),
    (r"\bndm a100 v4\b", "azure-ndm-a100-v4"),
    (r"\bnd h100 v5\b", "azure-nd-h100-v5"),
    (r"\bnd h200 v5\b", "azure-nd-h200-v5"),
    (r"\bnd gb200 v6\b", "azure-nd-gb200-v6"),
)
FORMATS = (  # in which products are computed; the first pattern that is found
    (r"nvfp4|mxfp4|\bfp4\b", "fp4"),
    (r"weight[- ]only|int4|q\d_|group", "bf16"),
    (r"fp8|float8", "fp8"),
    (r"fp6", "fp6"),
    (r"int8", "int8"),
    (r"bf16|bfloat16", "bf16"),
    (r"fp16|float16|f16", "fp16"),
    (r"fp32|float32", "fp32"),
    (r"fp64|float64", "fp64"),
)


def machine(row: Row) -> Machine:
    """The machine that a row's device stands in: of rows across machines, the cloud's own."""
    text = row.device.lower()
    usual, count = _usual(row, text), row.number("num_devices") or 0
    if count <= usual.domain:
        return usual
    text = f"{text} {row['system'] or ''}".lower().replace("_", " ")
    clouds = (machines.get(key) for pattern, key in CLOUDS if re.search(pattern, text))
    same = (cloud for cloud in clouds if cloud.device.key == usual.device.key)
    if not usual.publishes("ports"):  # a larger one of the same device, where there is one
        wider = map(machines.get, machines.with_several(usual.device.key))
        usual = next((wide for wide in wider if wide.domain >= count), usual)
    return next(same, usual)


def _usual(row: Row, text: str) -> Machine:
    """The machine that the device usually stands in."""
    if not (key := device_key(text)):
        raise UnusableRowError(f"the device {row.device!r} is not known")
    try:
        return _machine(key)
    except InputError:
        raise UnusableRowError(f"the device {row.device!r} has no data here") from None


def device_key(text: str) -> str:
    """The key of the device that a text in small letters names; "" where it names none.

    >>> device_key("nvidia h100 80 gb")
    'h100'
    """
    for pattern, key in DEVICES:
        if match := re.search(pattern, text):
            return match.expand(key).replace(" ", "-")
    return ""


@cache
def _machine(key: str) -> Machine:
    return machines.of(hardware.get(key))


def devices(row: Row) -> int:
    """How many devices worked."""
    count = row.number("num_devices")
    if count is None:
        raise UnusableRowError("the number of its devices is not stated")
    return int(count)


def model(row: Row) -> Transformer:
    """The transformer of a row, by its shape, or its name without what a checkpoint adds to it."""
    layers, width, heads = (row.number(name) for name in ("layers", "hidden", "heads"))
    if layers and width and heads:  # a GPT of a size that has no name
        return models.from_shape(
            layers,
            width,
            heads,
            gated=False,
            norm="layer",
            output="tied",
            feed_forward_width=4 * width,
            vocabulary=row.number("vocab") or 51200,
            context=row.number("seq_len") or 2048,
            name=str(row["model"]),
        )
    if row["model"] is None:
        raise UnusableRowError("its model is not stated")
    named = _model(str(row["model"]))
    return replace(named, layers=int(layers)) if layers else named


@cache
def _model(name: str) -> Transformer:
    words = re.sub(r"\((\d+B)\)", r"\1", name).split("(")[0].split("/")[-1].strip()
    for suffix in SUFFIXES:
        words = re.sub(suffix, "", words, flags=re.IGNORECASE).strip(" -_")
    try:
        known = models.get(words)
    except InputError:
        raise UnusableRowError(f"the model {name!r} is not known") from None
    if not isinstance(known, Transformer):
        raise UnusableRowError(f"the model {name!r} is no transformer")
    return known


SUFFIXES = (
    r"[- ]?(instruct|chat|hf|it)(-\d{4})?(-fp8)?$",
    r"-fp8$",
    r"-(2507|0528)$",
    r"-?maxtext$",
    r"-99(\.9)?$",
    r" (bf16|fp8)$",
    r"^pretrain_|^finetune_",
)


def dtype(row: Row) -> str | None:
    """The format that products are computed in; None where the source does not say."""
    text, known = row["dtype"], format_of(row["dtype"])
    if known is None and text is not None and not str(text).startswith("not "):
        raise UnusableRowError(f"the format {text!r} of its dtype is not known")
    return known


def format_of(text: object) -> str | None:
    """The format that a source's words mean.

    >>> format_of("float8 (linear) + bf16"), format_of("amp_bf16"), format_of("not stated")
    ('fp8', 'bf16', None)
    """
    for pattern, known in FORMATS:
        if re.search(pattern, str(text).lower()):
            return known
    return None


def layout(row: Row) -> dict[str, int]:
    """The degrees of parallelism that a row states: TP, PP, CP, EP, DP, VP, FSDP and others.

    DEP is attention in DP beside experts in EP, each of that degree. A degree that counts the cores
    of chips is that of the chips.

    >>> layout(Row("training", "", {"parallelism": "TP=4, PP=4, CP=2, VP=5, MBS=1, GA=64"}, {}))
    {'TP': 4, 'PP': 4, 'CP': 2, 'VP': 5, 'MBS': 1, 'GA': 64}
    >>> layout(Row("serving", "", {"parallelism": "DEP8,PP2"}, {}))
    {'DP': 8, 'EP': 8, 'PP': 2}
    >>> cores = {"parallelism": "TP8 over 4 chips (8 cores)", "num_devices": 4}
    >>> layout(Row("serving", "", cores, {}))
    {'TP': 4}
    """
    degrees: dict[str, int] = {}
    for name, number in re.findall(DEGREES, str(row["parallelism"]).upper()):
        if int(number) < 1 and name != "FSDP":  # which nought turns off
            raise UnusableRowError(f"its parallelism states {name}{number}; a degree is 1 or more")
        degrees |= dict.fromkeys(("DP", "EP") if name == "DEP" else (name,), int(number))
    if "TP" in degrees and (cores := re.search(CORES, str(row["parallelism"]))):
        degrees["TP"] = degrees["TP"] * devices(row) // int(cores[1])
    return degrees


CORES = r"(\d+) cores"
DEGREES = r"\b(FSDP|DEP|TP|PP|CP|EP|DP|VP|MBS|GA)[ =]?(\d+)"
