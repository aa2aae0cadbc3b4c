"""Ids of checkpoints as people paste them: the model of each, and the format that it says."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from calc.core.records import DATA, read_toml

FORMATS = re.compile(
    r"(?<=[-_. ])(awq|gptq|fp8(?:-dynamic|-block)?|nvfp4|fp4|mxfp[48]|nf4|w\da\d+|int[48]|bnb-4bit"
    r"|[48]bit|i?q\d_\w+|gguf)(?=$|[-_. ])",
    re.IGNORECASE,
)
MEANT = {"4bit": "w4a16", "8bit": "int8", "fp4": "nvfp4"}
"""Names of checkpoints that a number of bits alone says, and NVIDIA's first name of NVFP4."""


class Id(NamedTuple):
    """A name without what a checkpoint adds to that of its model, and its format, "" for none."""

    model: str
    form: str


@cache
def read(name: str) -> Id:
    """Return the model of an id, and the last format that it names.

    >>> read("Qwen/Qwen3-14B-AWQ"), read("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8").model
    (Id(model='Qwen3-14B', form='awq'), 'Qwen3-30B-A3B')
    >>> read("mistralai/Ministral-3-8B-Reasoning-2512").model
    'Ministral-3-8B'
    """
    words = re.sub(r"\((\d+B)\)", r"\1", name).split("(")[0].split("/")[-1].strip()
    endings = [each.lower() for each in FORMATS.findall(words)]
    for ends in _ends():
        words = re.sub(ends, "", words, flags=re.IGNORECASE).strip(" -_")
    form = endings[-1] if endings else ""
    return Id(words, MEANT.get(form, form))


@cache
def _ends() -> list[str]:
    """Return patterns of what a checkpoint's name adds to its model's."""
    ends: list[str] = read_toml(DATA / "published" / "words.toml")["checkpoints"]["ends"]
    return ends
