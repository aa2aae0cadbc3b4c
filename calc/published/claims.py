"""Claims of performance, read from a sentence, a benchmark's result or a row of a table.

What is read are the conditions of `data/published/README.md`, by the same names, and figures by the
names of `FIGURES`. Nothing is guessed: what is not said is left out, and `checking` takes for it
whatever makes the claim easiest to keep.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os.path import isfile
from pathlib import Path
from statistics import median
from typing import Any

from calc.catalog import hardware, machines, models, software
from calc.core.arguments import scale_of
from calc.core.errors import InputError, abbreviated
from calc.core.files import parse_json, read_text
from calc.core.units import quantity
from calc.published import conditions, logs
from calc.published.reading import MOST, NUMBERS, TEXTS, WORDS, Row, check_condition
from calc.published.serving_rows import PREFILL
from calc.steps.curves import traffic

SAID = {*NUMBERS, *TEXTS}
ONE_EACH = {*WORDS["results"], *(key for keys in WORDS["columns"].values() for key in keys)}
"""Names of results that stand for one value, and for no object."""
FIGURES = WORDS["figures"]  # by name: what it is, and its unit
LONGEST, LONGEST_NAME = 2000, 8  # characters of a sentence, and words of a name
FILES = (".json", ".jsonl", ".csv", ".txt", ".log")
PASTED = "the text"
TIMES = ("ttft", "tpot", "step", "time")  # which are the better the less they are
TOOLS = (
    "nccl-tests, llama-bench, vLLM's and SGLang's benchmarks, genai-perf, aiperf, guidellm,"
    " trtllm-bench, servers of themselves, Megatron-LM, NeMo and torchtitan"
)
OF_DEVICES = {"flops", "bandwidth"}  # alone, which need no model
OF_TRAINING = ("tokens", "flops", "mfu", "step")
OF_MESSAGES = {"busbw", "time"}
SCALE = {"k": 1e3, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
SCALE |= {"M": 1e6, "B": 1e9, "T": 1e12, "P": 1e15, "G": 1e9, "K": 1e3, "": 1.0}
NUMBER = r"(\d+(?:\.\d+)?)\s?((?-i:[kKMBT])(?![A-Za-z])|thousand|million|billion|trillion)?"
NEGATIVE = re.compile(r"(?:^|[\s=:(])[-\u2212]$")  # what stands before a number that is
SECOND = r"(?:/|\bper\b|\ba\b)\s*(?:s|sec|second)\b"
PATTERNS = {  # of figures in a clause
    "rate": rf"{NUMBER}[\s-]*(?:\w+\s+)?(?:tokens?|toks?|t)\s*{SECOND}|{NUMBER}\s*tps\b",
    "requests": rf"{NUMBER}\s*(?:requests?|queries|req|samples?)\s*{SECOND}",
    "mfu": rf"{NUMBER}\s*%\s*MFU|MFU\D{{0,12}}{NUMBER}\s*%",
    "flops": rf"{NUMBER}\s*(?-i:([GTP]))(?:FL)?OPS?(?:{SECOND}|ps\b|\b)",
    "busbw": rf"{NUMBER}\s*(?-i:([GTM])(B|b(?:it)?))(?:\s*{SECOND}|ps\b)",
    "time": rf"{NUMBER}\s*(ms|[µμu]s|seconds?|s|minutes?|min|hours?|h|days?)\b",
}
LINKS = r"link|pcie|bus|network|infiniband|ethernet|all|reduce|nccl"
ALGBW = r"\balgbw\b|\balgo(?:rithm)?[\s-]*(?:bw|bandwidth)"
COUNTS = {"one": "1", "single": "1", "two": "2", "four": "4", "eight": "8"}
OF_ONE = r"(?:/|\bper\b|\beach\b(?: of \d+)?|\ba\b)\s*(?:{})s?\b"
DEVICES, USERS = "gpu|device|chip|accelerator|card|tpu", "user|client|stream|request"
KINDS = {  # of tokens a second, by words of their clause
    "total": r"\btotal|combined|in(?:put)?\s*\+\s*out",
    "input": r"\binput\b|\bprompt|prefill",
}
LENGTHS = (
    r"\b(?:in|out)puts?(?: len\w*)?\W{0,3}\d+|\d+(?: tokens?)?[ -](?:in|out)puts?\b"
    r"|\bprompts? of \d+"
)
"""Lengths of prompts and answers, which are not what a rate beside them counts."""
COUNTED = {  # conditions, and the words beside their numbers
    "micro_batch": r"micro[- ]?batch(?:es)?(?:\s+(?:size|of))?|mbs(?![a-z])",
    "input_len": r"(?:prompts?|inputs?)(?:\s+len(?:gth)?\b)?|isl|in\b",
    "output_len": r"(?:outputs?|generated|answers?|completions?)(?:\s+len(?:gth)?\b)?|osl|out\b",
    "batch": r"users?|clients?|concurrency|(?:concurrent|simultaneous)(?:ly|\s+[a-z]+)?"
    r"|(?:global\s+)?batch(?:\s+size)?|(?:gbs|bs)(?![a-z])|max[-_]num[-_]seqs|sequences"
    r"|req(?:uest)?s?\b|streams?|sessions",
    "seq_len": r"(?:sequence|context)\s+length|seq(?:_?len)?(?![a-z])|context|length",
}
TRAINS = (
    r"lora|train|fine-?tun|\bfsdp|\bzero-?[123]\b|\bnemo\b|torchtitan|megatron|maxtext"
    r"|\bglobal[- ]batch|\bgbs\b|\bgbs\d|recompute"
)
"""Words of training, and of programs that do nothing else."""
TESTS = r"(?<![\w-])(?P<kind>pp|tg) ?(?P<tokens>\d{2,})(?: ?@ ?d?(?P<depth>\d+))?(?!\w)(?:\s*:)?"
"""Tests as llama-bench calls them: a prompt of so many tokens, or so many written behind others."""
NETWORK = r"infiniband|ib\b|roce|ethernet|efa|slingshot|nics?\b|adapters?|hcas?\b|connectx\S*"
PORTS = rf"(?:\d+\s*[x×]\s*)?\d+(?:\.\d+)?\s*(?:Gb(?:it)?(?:/s|ps)?|GB/s)\s*(?:{NETWORK})"
"""What carries messages from one server to others, which is no figure that is claimed."""
OF_LLAMA_CPP = r"\b(?:ollama|lm ?studio|llama-server|llama-cli|koboldcpp|llamafile)\b"
"""Programs that run models by llama.cpp."""
SMALLEST_OF = {"q2": "q2_k", "q3": "q3_k_s", "q4": "q4_0", "q5": "q5_0", "q6": "q6_k", "q8": "q8_0"}
"""The format of llama.cpp of fewest bits of those that people call so."""
CLAUSES = r"[,;:]\s|\band\b|\bat\b(?! (?:once|a time)\b)"
LABEL = (
    r"\b(speed|rate|throughput|ttft|tpot|itl|latency|(?:eval(?:uation)?|processing|generation|prefill"
    r"|decode|decoding))\s*:\s+(?=[~<>\d])"
)
REQUESTS = r"(?:users?|clients?|req(?:uest)?s?|streams?|sessions)\b(?!\s*/)"
AT_ONCE = r"\s*(?:at (?:once|a time)|concurrent|simultaneous|in parallel)"
NODES = r"nodes?|servers?|hosts?|machines?"
FORMAT = (
    r"nvfp4|nf4|mxfp[468]|fp(?:4|8|16|32)|float(?:8|16|32)"
    r"|(?:awq|gptq)(?:[- ](?:u?int[48]|[48][- ]?bits?))?|w4a16|w8a8|i?q\d_\w+|q[2-68]\b"
    r"|[uw]?int[48]|bfloat16|b?f16|\d+(?:\.\d+)?[- ]?bits?"
)
VENDORS = r"(?:(?:nvidia|amd|instinct|google|intel|apple|geforce|dgx|hgx)[\s-]+)*"
DRAFTS = r"specul|draft|\bmtp\b|eagle|medusa|lookahead"
PREFIXES = r"prefix(?:[- ]cach\w+)?|cache hit|cached (?:prompt|input)|\bpp ?\d+ ?@"
OFFLOADS = (
    r"(?:cpu )?off-?load|(?:host|cpu|system|unified|main) (?:memory|ram)|zero-infinity"
    r"|n?-?c(?:pu-)?moe\b(?:[ =]\d+)?|override-tensor|experts (?:on|in) (?:the )?cpu"
)
GLUE = re.compile(  # words that say nothing by themselves, or that `_figures` looks for
    rf"\b(?:{DEVICES}|{USERS}|prompts?|input|prefill|out(?:put)?|in|total|combined|together|aggregate"
    r"|t(?:tft|pot)|itl|inter-?token|first|time|tokens?|steps?|iterations?|per|each|every|a|an|one"
    r"|the|to|of|on|at|by|for|from|with|and|or|as|is|are|was|we|it|our|i|up|about|over|across|via"
    r"|only|just|once|single|around|after|gets?|got|does|makes?|takes?|reach(?:es|ed)?|achiev(?:es?|ed)|has|have|had"
    r"|reads?|writ(?:es?|ten|ing)|generat(?:es?|ed|ing|ion)|decod(?:es?|ed|ing)|runs?|running"
    r"|serv(?:es?|ed|ing)|measured|claimed|throughput|speed|rate|latency|inference|performance"
    r"|mean|average|tok|s|max(?:imum)?|busbw|bandwidth|bus|nodes?|servers?|machines?|size"
    r"|weights?|model|tensor|cores?|speculative|decoding|mfu|pretrain\w*|train\w*|fine-?tun\w*"
    rf"|lora|fsdp|kv|caches?|gemm|matmul|memory|hbm|dense|peak)s?\b|\S*(?:{DRAFTS}|{PREFIXES}|{OFFLOADS})\w*",
    re.I,
)


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim: the conditions that are said, and figures in the units of `FIGURES`."""

    row: Row
    drafts: bool = False
    """Whether it says that tokens are drafted."""
    reuses: bool = False
    """Whether it says that prompts come from a cache."""
    offloads: bool = False
    """Whether it says that weights lie in a host's memory."""
    ignored: tuple[str, ...] = ()
    """What of a sentence was not understood."""

    @property
    def figures(self) -> dict[str, float]:
        """The figures that are claimed, by the names of `FIGURES`."""
        return self.row.measured

    @property
    def helped(self) -> bool:
        """True where drafts, a cache or the memory of a host help it, as they help no row."""
        return self.drafts or self.reuses or self.offloads


def read(claim: str | Mapping[str, Any], about: str = "") -> Claim:
    """Return what a sentence, a row or a result claims; `about` says what it leaves out.

    >>> claim = read("Llama 3.1 70B on 4 H100: 5 000 token/s at 64 users")
    >>> claim.figures, claim.row["batch"], claim.row["num_devices"]
    ({'output': 5000.0}, 64.0, 4)
    """
    if isinstance(claim, str) and len(claim) > LONGEST:
        raise InputError(f"a claim has up to {LONGEST} characters; got {len(claim)}")
    if isinstance(claim, str):
        said, figures, ignored = _of_text(f"{claim}; {about}" if about else claim)
        text = f"{claim} {about}"
    else:
        text, (beside, _, ignored) = about, _beside(about)
        said, figures = of_result(claim, beside)
    training = any(name in OF_TRAINING for name in figures)
    sends = said.get("collective") or OF_MESSAGES & figures.keys()
    group = "collective" if sends else "training" if training else "serving"
    if figures and "model" not in said and figures.keys() <= OF_DEVICES:
        group = "kernel"
        said.setdefault("num_devices", 1)
    if training and "batch" in said:
        said["global_batch_seqs"] = said.pop("batch")
    if (training or group == "kernel") and "dtype" not in said and "dtype_weights" in said:
        said["dtype"] = said.pop("dtype_weights")
    if odd := [name for name, value in figures.items() if not 0 < value < MOST]:
        raise InputError(f"{FIGURES[odd[0]][0]} must be positive; got {figures[odd[0]]:g}")
    _check(said, figures, group, claim)
    said = {"id": "the claim", "software": "", "source_key": ""} | said
    row = Row(group, "the claim", said, figures)
    return Claim(row, *_ways(text), ignored)


@lru_cache(maxsize=64)
def _ways(text: str) -> tuple[bool, bool, bool]:
    """Return whether a text says that tokens are drafted, prompts cached, weights on a host."""
    drafts, reuses, offloads = (
        bool(re.search(words, text, re.I)) for words in (DRAFTS, PREFIXES, OFFLOADS)
    )
    return drafts, reuses, offloads


@lru_cache(maxsize=64)
def _beside(about: str) -> tuple[dict[str, Any], dict[str, float], tuple[str, ...]]:
    """Return what is said beside each row of a table: remembered, and not changed."""
    return _of_text(about)


def of_result(
    result: Mapping[str, Any], beside: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, float]]:
    """The conditions and the figures of a row, or of a benchmark's result file.

    >>> of_result({"max_concurrency": 8, "mean_ttft_ms": 200, "mean_tpot_ms": 12})
    ({'batch': 8.0}, {'ttft': 0.2, 'tpot': 0.012})
    """
    conditions: dict[str, Any] = {}
    for name, value in _flat(result):
        if name in conditions:
            raise InputError(f"{name} is there twice")
        if value not in ("", None):
            conditions[name] = value
    return _of_table(conditions, beside or {})


def _check(said: Mapping[str, Any], figures: Mapping[str, float], group: str, text: Any) -> None:
    """Refuse what is no claim that can be checked, with what was understood of it."""
    needed = {"device": "a device", "num_devices": "how many devices"}
    of_group = {"collective": {"collective": "which collective"}, "kernel": {}}
    needed |= of_group.get(group, {"model": "a model"})
    missing = [what for name, what in needed.items() if name not in said]
    if not figures:
        missing.append("a figure, such as token/s, TTFT, TPOT, MFU or a time")
    if missing:
        if "device" not in said and isinstance(text, str):
            unknown = re.findall(r"\b[A-Za-z]+-?\d{2,}\w*", _take_words(_take_model(text, {}), {}))
            missing[0] += f" ({' or '.join(unknown)} is none of the data)" if unknown else ""
        parts = (
            f"{name.replace('_', ' ')} " + abbreviated(value).strip("'")
            for name, value in (*said.items(), *figures.items())
        )
        understood = ", ".join(parts) or "nothing"
        raise InputError(
            f"the claim {abbreviated(text)} cannot be checked: {' and '.join(missing)} is not"
            f" said; understood was {understood}"
        )


# --- sentences ---


def _of_text(text: str) -> tuple[dict[str, Any], dict[str, float], tuple[str, ...]]:
    """The conditions and the figures of a sentence, and the words that were not understood."""
    plain = re.sub(r"(?<=\d)[,'\u202f\u00a0\u2009 ](?=\d{3}(?![\d.]*\w))", "", text)
    plain = re.sub(r"\((\d+[BM])\)", r"\1", plain)  # as in Llama 3 (70B)
    plain = re.sub(LABEL, r"\1 ", plain, flags=re.I)  # which says what the number behind it is
    plain = re.sub(r"\bv([56])e-(\d+)\b", r"\2 tpu-v\1e", plain, flags=re.I)  # a slice of so many
    plain = re.sub(r"(?<=\d)(\s*[gtp])(?=flops?)", lambda unit: unit[1].upper(), plain)
    plain = re.sub(
        r"\b(one|single|two|four|eight)\b(?! gpu of|\s+\d)",  # as some names of devices end
        lambda word: COUNTS[word[1].lower()],
        plain,
        flags=re.I,
    )
    said: dict[str, Any] = {}
    plain = _take_tests(plain, said)
    ports = [match[0] for match in re.finditer(PORTS, plain, re.I)]
    plain = re.sub(PORTS, " ", plain, flags=re.I)
    plain = _take_model(plain, said)
    plain = _take_device(plain, said)
    plain = _take_words(plain, said)
    figures: dict[str, float] = {}
    clauses = [_figures(part, said, figures) for part in re.split(CLAUSES, plain)]
    left = [_count(clause, said, "ttft" in figures) for clause in clauses]
    in_a_batch = said.pop("batch_tokens", None)
    if in_a_batch and said.get("seq_len"):
        said.setdefault("batch", in_a_batch / said["seq_len"])
    tokens, run = said.pop("trained", None), figures.pop("run", None)
    if tokens and run:
        figures["tokens"] = tokens / run
    apart = (re.split(r"[\s,;:()]{2,}", GLUE.sub("  ", f" {clause} ")) for clause in left)
    words = (word.strip(" .-/+=@") for part in (ports, *apart) for word in part)
    return said, figures, tuple(word for word in words if re.search(r"\w", word))


def _take_tests(text: str, said: dict[str, Any]) -> str:
    """Tests of llama-bench, of one stream each, in words for what their rates count."""
    for test in reversed([*re.finditer(TESTS, text)]):
        reads, tokens = test["kind"] == "pp", float(test["tokens"])
        before = float(test["depth"] or 0)
        said |= {"batch": 1.0, ("input_len" if reads else "output_len"): tokens}
        if before and not reads:
            said["input_len"] = before
        what = " prefill " if reads else " generation "
        text = f"{text[: test.start()]}{what}{text[test.end() :]}"
    if "batch" in said:
        said["software"] = "llama.cpp"  # whose tests they are, unless another is named
    return text


def _take_model(text: str, said: dict[str, Any]) -> str:
    """The longest row of words that names a model, cut out of the text but for its format."""
    for start, end in _rows_of_words(text):
        name = text[start:end].removesuffix(".")
        with_letters = re.search(r"[A-Za-z]{2}", name) and not name[0].isdigit()
        if with_letters and (model := _model_named(name)):
            said["model"] = model
            kept = " ".join(re.findall(rf"(?<![^\W_])(?:{FORMAT})\b", name, re.I))
            return f"{text[:start]} {kept} {text[end:]}"
    return text


def _rows_of_words(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each row of words begins and ends, the longest rows first."""
    words = list(re.finditer(r"[^\s,;:()]+\)?", text))
    for size in range(min(LONGEST_NAME, len(words)), 0, -1):
        for first in range(len(words) - size + 1):
            start, end = words[first].start(), words[first + size - 1].end()
            row = text[start:end]
            yield start, end - (row.endswith(")") and "(" not in row)


def _model_named(name: str) -> str | None:
    """The key of the model that a name stands for, or a checkpoint's, if any."""
    if (key := models.key_of(name)) is not None:
        return key
    if "(" in name:  # whose words may be the format, and the device
        return None
    try:
        model = conditions.model(Row("serving", "", {"model": name}, {}))
    except InputError:
        return None
    return models.key_of(model.name)


def _take_device(text: str, said: dict[str, Any]) -> str:
    """The device with the number before or behind it, cut out of the text."""
    small = text.lower()
    for start, end in _rows_of_words(small):  # a machine by its own name, such as aws-p5
        name, devices = machines.counted(small[start:end])
        if (key := machines.key_of(name)) is not None and "-" in name:
            machine = machines.get(key)
            said |= {"device": machine.device.name, "num_devices": devices or machine.domain}
            return f"{text[:start]} {text[end:]}"
    if (span := _device_named(small)) is None:
        return text
    before = re.search(rf"(?:(?<![a-z]){machines.BEFORE})?({VENDORS})$", small[: span[0]])
    behind = re.match(
        rf"[^\s,;:]*(?:\s*(?:nvl\s?(\d+)|sxm\d?|pcie))?(?:{machines.BEHIND})?", small[span[1] :]
    )
    assert before is not None
    assert behind is not None
    if before[1] and NEGATIVE.search(small[: span[0] - len(before[0])].rstrip("(")):
        raise InputError(f"a number of devices is from 1 on; got -{before[1]}")
    end = span[1] + behind.end()
    said["device"] = small[slice(*span)]
    rest = f"{text[: span[0] - len(before[0])]} {text[end:]}"
    apart = re.search(rf"(\d+)\s*(?:{DEVICES})s?\b", rest, re.I)  # as in H100 … on 8 GPUs
    count = before[1] or behind[2] or (apart and apart[1])
    boxes = int(behind[1] or 0) or (8 if re.search("dgx|hgx", before[2]) else 1)
    if not re.search(r"\b(?:gcd|die)s?\b", small):
        boxes *= WORDS["packages"].get(said["device"], 1)
    if nodes := re.search(
        rf"\b(\d+)\s*(?:{NODES})\s*(?:of|with|[x×,]|at)?\s*$", rest[: span[0] - len(before[0])]
    ):
        boxes *= int(nodes[1])
        rest = rest.replace(nodes[0], " ", 1)
    elif each := re.search(
        rf"\b(\d+)\s*(?:{NODES})\b(?=.*\b(?:each|per|a)\s+(?:{NODES}))", rest, re.I
    ):
        boxes *= int(each[1])
        rest = rest.replace(each[0], " ", 1)
    if count or boxes > 1 or not behind[0].endswith("s"):
        said["num_devices"] = int(count or 1) * boxes
    return rest.replace(apart[0], " ") if apart else rest


def _device_named(text: str) -> tuple[int, int] | None:
    """Return where a device is named, as rows do or by a name of the data, as far as both go."""
    span = next((m.span() for p in WORDS["devices"] if (m := re.search(p, text))), None)
    for start, end in _rows_of_words(text):
        row = text[start:end]
        names = (machines.counted(each)[0] for each in (row, row.removesuffix("s")))
        if (name := next(filter(hardware.key_of, names), None)) is not None:
            start += row.index(name)
            end = start + len(name)
            if span and span[0] < end <= span[1]:
                return min(start, span[0]), span[1]
            return start, end
    return span


def _take_words(text: str, said: dict[str, Any]) -> str:
    """Formats, software, layout and collectives, by their words, cut out of the text."""
    formats = (
        ("dtype_kv", rf"(?:kv(?: cache)?s?\s*(?:in|:)?\s*({FORMAT})|({FORMAT})\s*kv(?: cache)?)"),
        ("dtype_weights", rf"\b({FORMAT})\b"),
    )
    for name, pattern in formats:
        if match := re.search(pattern, text, re.I):
            word = next(filter(None, match.groups()))
            said[name] = _weights_of(word)
            text = text.replace(match[0], " ")
    for pattern, operation in WORDS["operations"].items():
        if match := re.search(pattern, text, re.I):
            said["collective"], text = operation, text.replace(match[0], " ")
    if "collective" in said and (library := re.search(r"\b[nr]ccl\b(?:[- ]tests?\b)?", text, re.I)):
        said["software"], text = library[0], _without(text, library)
    if "collective" in said and (ring := re.search(r"\b(?:NCCL_ALGO=)?ring\b", text, re.I)):
        said["algorithm"], text = "ring", text.replace(ring[0], " ")
    size = re.search(r"([\d.]+)\s*((?:[kMG]i?)?B|byte)\b(?!/)", text)
    if size and "collective" in said:
        said["message_bytes"] = quantity(f"{size[1]} {size[2]}").m_as("byte")
        text = _without(text, size)
    if match := re.search(TRAINS, text, re.I):
        said["task"] = "lora" if match[0].lower() == "lora" else "train"
    if layout := re.findall(conditions.DEGREES, text.upper()):
        said["parallelism"] = ", ".join(f"{name}{degree}" for name, degree in layout)
        text = re.sub(conditions.DEGREES, " ", text, flags=re.I)
    text = re.sub(OF_LLAMA_CPP, "llama.cpp", text, flags=re.I)
    for key in software.names():
        if match := re.search(
            rf"\b{re.escape(software.get(key).name)}\b(?:\s*v?\d+(?:\.\d+)+)?", text, re.I
        ):
            said["software"] = match[0]
            text = text.replace(match[0], " ")
    return text


def _weights_of(word: str) -> str:
    """The format of weights that a word of a checkpoint's name means."""
    if re.match("awq|gptq", word, re.I):
        return "int8" if "8" in word else "int4"
    return ({"w4a16": "int4"} | SMALLEST_OF).get(word.lower(), word)


def _figures(clause: str, said: Mapping[str, Any], figures: dict[str, float]) -> str:
    """The figures of a clause; what is left of it."""
    small, devices = clause.lower(), float(said.get("num_devices", 1))
    for kind, pattern in PATTERNS.items():
        if not (match := re.search(pattern, clause, re.I)):
            continue
        number, *units = (part for part in match.groups() if part is not None)
        signed = -float(number) if NEGATIVE.search(clause[: match.start()]) else float(number)
        value = signed * next((SCALE[unit] for unit in units if unit in SCALE), 1.0)
        behind = small[match.start() :]
        each, of_user = (re.search(OF_ONE.format(who), behind) for who in (DEVICES, USERS))
        if kind == "time":
            value = quantity(signed, units[-1]).m_as("s")
            kind = _time_named(small, said)
        elif kind == "rate":
            counted = re.sub(LENGTHS, " ", small[: match.start()] + " ; " + small[match.end() :])
            said_of = f"{match[0].lower()} {counted}"
            kinds = (name for name, words in KINDS.items() if re.search(words, said_of))
            kind = "user" if of_user else next(kinds, "tokens" if "task" in said else "output")
            value *= devices if each else 1.0
        elif kind == "flops" and re.search("total|together|aggregate", small):
            value /= devices
        if kind == "busbw":
            value /= 8 if units[-1].startswith("b") else 1
        if kind == "busbw" and "collective" in said and re.search(ALGBW, small):
            value *= traffic(str(said["collective"]), int(devices)) if devices > 1 else 1.0
        if kind == "busbw" and "collective" not in said:
            of_memory = "model" not in said and not re.search(LINKS, small)
            kind = "bandwidth" if of_memory else ""
        if not kind:
            continue
        figures.setdefault(kind, value)
        clause = clause.replace(match[0], " ", 1)
    return clause


def _time_named(clause: str, said: Mapping[str, Any]) -> str:
    """Return the time that a clause speaks of."""
    if re.search(r"ttft|first token", clause):
        return "ttft"
    if re.search(r"tpot|itl|inter-?token|(?:per|each|a)\s*(?:output\s*)?token", clause):
        return "tpot"
    if re.search(r"\bsteps?\b|iteration", clause):
        return "step"
    if "collective" in said:
        return "time"
    return "run" if re.search(r"days?|hours?|\bh\b|min", clause) else ""


def _count(clause: str, said: dict[str, Any], has_prompt: bool) -> str:
    """Numbers and the words that say of what, which stand beside them, in either order.

    Tokens of nothing else are a prompt's, where the time to its first token is told. Returns what
    is left of the clause.
    """
    if pair := re.search(rf"{NUMBER}\s*(?:/|\+|→)\s*{NUMBER}", clause):
        said.setdefault("input_len", _scaled(pair[1], pair[2]))
        said.setdefault("output_len", _scaled(pair[3], pair[4]))
        clause = clause.replace(pair[0], " ")
    at_once = re.search(rf"(?<!\S){NUMBER}\s+{REQUESTS}", clause, re.I)
    if at_once is not None and "batch" not in said and _number(at_once) >= 1:
        said["batch"] = _number(at_once)
        clause = _without(clause, at_once)
    words = "|".join(f"(?P<{name}>\\b(?:{words}))" for name, words in COUNTED.items())
    waiting: re.Match[str] | None = None
    left = clause
    for match in re.finditer(rf"(?:{NUMBER}\s*-?\s*(?P<tokens>tokens?\b)?)|{words}", clause, re.I):
        is_number = match[1] is not None
        if is_number and match["tokens"] and _number(match) >= 1e9:
            said["trained"] = _number(match)
            left = _without(left, match)
            continue
        if waiting is None or (waiting[1] is not None) == is_number:
            waiting = match
            continue
        number, word = (match, waiting) if is_number else (waiting, match)
        name = word.lastgroup or ""
        name = "seq_len" if name == "batch" and "batch" in said else name
        if not is_number and word[0].lower() == "prompts" and not number["tokens"]:  # so many
            name = "batch" if re.match(AT_ONCE, clause[word.end() :], re.I) else ""
        elif not is_number and name == "batch" and number["tokens"]:
            name = "batch_tokens"
        minus = "-" if NEGATIVE.search(clause[: number.start()]) else ""
        if minus or _number(number) < 1:
            raise InputError(f"{word[0]}: a count is from 1 on; got {minus}{number[1]}")
        if name:
            said.setdefault(name, _number(number))
            left = _without(_without(left, match), waiting)
        waiting = None
    if waiting and waiting[1] and waiting["tokens"] and has_prompt and "input_len" not in said:
        said["input_len"] = _number(waiting)
        left = _without(left, waiting)
    return left


def _number(match: re.Match[str]) -> float:
    return _scaled(match[1], match[2])


def _scaled(digits: str, suffix: str | None) -> float:
    """A count with what stands behind it, which is no rate: 8k is 8 192."""
    number = float(digits)
    return number * (scale_of(number, "k") if suffix in ("k", "K") else SCALE[suffix or ""])


def _without(text: str, match: re.Match[str]) -> str:
    """A text of the same length without what was matched in it."""
    return text[: match.start()] + " " * len(match[0]) + text[match.end() :]


# --- tables ---


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """All values of an object, those of its parts by the names of both."""
    for key, value in table.items():
        name = f"{before}{key}"
        has_parts = isinstance(value, Mapping)
        if name in ONE_EACH:  # of some tools by parts of it, as time_to_first_token.avg
            has_parts = has_parts and any(f"{name}.{part}" in ONE_EACH for part in value)
        if not has_parts:
            yield name, value
        else:
            yield from _flat(value, f"{name}.")


def _field(table: Mapping[str, Any], name: str, least: float = 1 / MOST) -> float:
    """The number of that name, which a table of text has as text; what is none is refused."""
    value = table[name]
    plain = isinstance(value, int | float | str) and not isinstance(value, bool)
    try:
        number = float(value) if plain and "_" not in str(value) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not least <= number < MOST:
        need = "above 0" if least < 1 else f"from {least:g} on"
        if 0 < number < 1 / MOST or number >= MOST:
            need = f"between {1 / MOST:g} and {MOST:g}"
        raise InputError(
            f"{name} must be a number {need}; got {abbreviated(value)}", argument=name, given=value
        )
    return number


@lru_cache(maxsize=64)
def _model_of_both(named: str, beside: str) -> str:
    """Return the model said beside a file, which names it by a family and a size, or not at all.

    >>> _model_of_both("llama 8B Q4_K_M", "llama-3-1-8b")
    'llama-3-1-8b'
    """
    try:
        in_file = conditions.model(Row("serving", "", {"model": named}, {}))
    except InputError:
        return beside
    said = models.get(beside)
    if in_file.parameters != said.parameters:
        raise InputError(
            f"the file is of {abbreviated(named)}, and {said.name} was said beside it: which of"
            " them ran?"
        )
    return beside


def _of_table(
    table: Mapping[str, Any], beside: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, float]]:
    """The conditions and figures of a row by the names of its columns; others are said beside."""
    said = {name: value for name, value in table.items() if name in SAID}
    for name, keys in WORDS["columns"].items():
        for key in keys:
            if key in table and key not in said:  # of a benchmark, which has no words for a number
                said[name] = _field(table, key, 1.0) if name in NUMBERS else table[key]
    said = {name: value for name, value in said.items() if str(value)[:4] != "not "}
    for name, value in said.items():
        if isinstance(value, str) and name in NUMBERS and re.fullmatch(r"[-+.,\d]+", value):
            said[name] = _field(said, name, 1.0)  # which a table of text has as text
        if name == "num_devices" and isinstance(said[name], float) and said[name].is_integer():
            said[name] = int(said[name])
        check_condition(said, name, "the claim")
    if (name := said.get("model")) and "dtype_weights" not in said:
        ends = re.findall(rf"(?<=[-_ .])(?:{FORMAT})(?![a-z])", str(name), re.I)
        said |= {"dtype_weights": _weights_of(ends[-1])} if ends else {}
    if said.get("model") and "model" in beside:
        said["model"] = _model_of_both(str(said["model"]), beside["model"])
    said = {**beside, **said}
    if "num_devices" not in said and {"per_node", "nodes"} <= table.keys():
        said["num_devices"] = int(_field(table, "per_node", 1.0) * _field(table, "nodes", 1.0))
    if "completed" in table:  # of a server's benchmark
        requests = _field(table, "completed", 1.0)
        for name in ("input", "output"):
            if (tokens := f"total_{name}_tokens") in table:
                said[f"{name}_len"] = _field(table, tokens) / requests
    if (benchmark := WORDS["benchmarks"].get(str(said.get("model")))) is not None:
        said["model"], said["task"] = benchmark[0], benchmark[2]
        said.setdefault("seq_len", benchmark[1])
    return said, dict(_measured(table, said))


def _measured(table: Mapping[str, Any], said: dict[str, Any]) -> Iterator[tuple[str, float]]:
    parts = table.get("measured", [])
    tables = (
        [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    )
    if not isinstance(parts, list) or len(tables) < len(parts):
        raise InputError(f"measured must be a list of tables; got {abbreviated(parts)}")
    listed = {str(part.get("name")): part.get("value") for part in tables}
    named = {**table, **listed}
    trains = "seq_len" in said or "global_batch_seqs" in said
    devices = said.get("num_devices", math.nan)
    for key, (name, scale) in WORDS["results"].items():
        if key in named:
            name = "tokens" if name == "output" and trains else name
            if name == "tpot" and said.get("output_len") == 1:
                if named[key] in (0, None):
                    continue
                raise InputError(
                    f"{key} is of tokens after the first, of which an answer of 1 token has none;"
                    f" got {abbreviated(named[key])}"
                )
            yield name, _field(named, key) * (devices if scale == "each" else scale)
    for key in listed:
        if prefill := PREFILL.fullmatch(key):
            said |= {"input_len": float(prefill[2])} if prefill[2] else {}
            yield "input", _field(listed, key)
    if "avg_latency" in table:  # of whole answers, which a batch writes together
        if not {"batch", "output_len"} <= said.keys():
            raise InputError(
                "avg_latency is of a batch and its answers, which are not said: say them beside it,"
                ' as in "batch 8, 32 in, 128 out"'
            )
        yield "output", said["batch"] * said["output_len"] / _field(table, "avg_latency")
    if "throughput_median" in table and "seq_len" in said:  # of samples
        yield "tokens", _field(table, "throughput_median") * said["seq_len"]
    if table.get("units") == "Tokens/s":
        yield "output", _field(table, "result")
        if {"tokens_per_s", "samples_per_s"} <= table.keys():
            said["output_len"] = _field(table, "tokens_per_s") / _field(table, "samples_per_s")
    if table.get("units") in ("Samples/s", "Queries/s"):
        yield "requests", _field(table, "result")


# --- files ---


def load(path: Path | str) -> list[tuple[dict[str, Any], str]]:
    """The claims of a file, each with what the file or its place says beside it.

    A benchmark's result is a JSON object, a table of results CSV, and other text what a tool of
    `logs` prints, or a log of MLPerf: a summary of inference, whose folders name system and model,
    or one of training.
    """
    if results := _results(read_text(path), path):
        return results
    raise InputError(
        f"{path}: no result of a known benchmark: a server's .json or .jsonl, a .csv of results,"
        f" what {TOOLS} print, or a log of MLPerf with samples or tokens per second or :::MLLOG"
    )


def is_file(claim: str) -> bool:
    """Return whether a claim is the name of a file, and no sentence."""
    named = len(claim) < LONGEST and "\n" not in claim
    return named and (Path(claim).suffix in FILES or isfile(claim))


def pasted(claim: str) -> list[tuple[dict[str, Any], str]]:
    """The claims of what a tool printed, where that was given itself; none of a sentence.

    >>> pasted('{"mean_tpot_ms": 20}\\n')
    [({'mean_tpot_ms': 20}, '')]
    """
    results = _results(claim, PASTED)
    if results and "\n" not in claim.strip() and not _is_json(claim):
        said, figures, _ = _of_text(claim)  # a line of a log names neither
        return [] if figures and {"model", "device"} & said.keys() else results
    return results


def _results(text: str, path: Path | str) -> list[tuple[dict[str, Any], str]]:
    """The claims of a text, as `load` returns them; none where no tool is known."""
    if Path(path).suffix in (".json", ".jsonl") or _is_json(text):
        return [(result, "") for result in results_of(text, path)]
    if (result := logs.metrics(text)) is not None:
        return [(result, "")]
    if Path(path).suffix == ".csv" or _is_table(text):
        return [(row, "") for row in _rows_of(text, path)]
    if results := logs.read(text, path):
        return results
    events = re.findall(r":::MLLOG (\{.*\})", text)
    return [_of_training_log(events)] if events else []


def _is_json(text: str) -> bool:
    return re.match(r"\s*(\[\s*)?\{", text) is not None


def _is_table(text: str) -> bool:
    """Return whether a text begins with titles of CSV, of which one is a figure's."""
    titles = [title.strip('" ') for title in text.partition("\n")[0].split(",")]
    known = ONE_EACH | {"avg_ts", "median_decode_throughput"}
    return len(titles) > 1 and not known.isdisjoint(titles)


def results_of(text: str, path: Path | str) -> list[dict[str, Any]]:
    """The results of benchmarks in a JSON text, or in one on each line: an object each.

    >>> results_of('{"benchmarks": [{"completed": 8}]}', "run.json")  # of guidellm
    [{'completed': 8}]
    """
    endless = r'("request_rate"\s*:\s*)Infinity\b'  # of clients that wait for nothing
    text = re.sub(endless, r'\1"inf"', text)
    lines = [(line, part) for line, part in enumerate(text.split("\n"), 1) if part.strip()]
    alike = len(lines) > 1 and all(part.startswith("{") for _, part in lines)
    in_lines = alike and lines[0][1].rstrip().endswith("}")
    documents = [
        parse_json(part, path, line=line) for line, part in (lines if in_lines else [(1, text)])
    ]
    results: list[Any] = []
    for document in documents:
        several = document.get("benchmarks", [document]) if isinstance(document, dict) else document
        results += several if isinstance(several, list) else [several]
    if not results or not all(isinstance(result, dict) for result in results):
        raise InputError(
            f"{path}: a benchmark's result is one JSON object; got {abbreviated(text)}"
        )
    return list(map(_named, results))


def _named(result: dict[str, Any]) -> dict[str, Any]:
    """A result by the names of others, where its tool has its own."""
    if "avg_ts" in result:
        return logs.bench(result)
    return logs.one_batch(result) if "median_decode_throughput" in result else result


def _rows_of(text: str, path: Path | str) -> list[dict[str, Any]]:
    """The rows of a table, each with a cell for each of its titles."""
    try:
        reader = csv.DictReader(text.splitlines(), restkey="")
        titles, rows = reader.fieldnames or [], list(reader)
    except csv.Error as error:
        raise InputError(f"{path}: is no CSV: {error}") from None
    if twice := [title for line, title in enumerate(titles) if title and title in titles[:line]]:
        raise InputError(f"{path}: the column {abbreviated(twice[0])} is there twice")
    for line, row in enumerate(rows, 2):
        if "" in row and "" not in titles:
            raise InputError(f"{path}, row {line}: has more cells than the table has titles")
    return list(map(_named, rows))


def _of_training_log(events: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Return what a log of MLPerf Training states, with the median of its samples a second."""
    values: dict[str, list[Any]] = {}
    for event in (parse_json(text, "an event of the log") for text in events):
        values.setdefault(str(event.get("key")), []).append(event.get("value"))
    stated = {"submission_benchmark": "model", "global_batch_size": "global_batch"}
    result = {name: values[key][-1] for key, name in stated.items() if key in values}
    tracked = [part for part in values.get("tracked_stats", ()) if isinstance(part, dict)]
    paces = [_field(part, "throughput") for part in tracked if "throughput" in part]
    if paces:
        result["throughput_median"] = median(paces)
    return result, str(values.get("submission_platform", [""])[-1])
