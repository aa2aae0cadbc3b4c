"""Questions, drawn by class, and the doors at which they are asked.

A question is a frozen record. A door is a function of it that returns what it says by the names of
quantities, in base units; where it has no answer to such a question it returns nothing, and it may
refuse. Whatever several doors name must agree: `differences` compares.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import calc
from calc import InputError, hardware, inference, machines, models, quantity
from calc.commands import main
from calc.core.units import Quantity
from calc.steps import communication, curves, device_memory, finetuning, layouts
from calc.steps.job import Batch, Formats, Job, Layout, Tokens
from figures.live import all_reduce_live, decode_live, memory_live, training_live
from tests.calc import test_logs
from tests.calc.flatly import flatly

COUNTS = ("devices", "batch", "copies", "experts", "stages")
POINTS = 21  # of an answer, at which a mean is held to steps
UNLINKED = re.compile("the data have no (link|port) of .* to others")
NEARLY = 0.01  # a mean of steps at points against one that knows where it bends


class Value(NamedTuple):
    """A number, and by how much of itself it may be off: by its digits where it was printed."""

    number: float
    off: float = 1e-9

    def agrees(self, other: Value) -> bool:
        return math.isclose(self.number, other.number, rel_tol=self.off + other.off, abs_tol=1e-15)


Answer = dict[str, Value]


@dataclass(frozen=True)
class Serving:
    """A model that serves a batch on devices that share each matrix."""

    model: str
    place: str
    devices: int
    batch: int
    prompt: int
    generated: int
    weights: str | None = None
    kv: str = "bf16"
    dtype: str | None = None
    software: str | None = None
    price: str = "2 USD/hour"
    copies: int = 1
    experts: int = 1
    stages: int = 1
    host: str | None = None

    @property
    def tensor(self) -> int:
        return self.devices // (self.copies * self.stages)

    @property
    def context(self) -> int:
        return self.prompt + self.generated

    @property
    def asked(self) -> dict[str, Any]:
        """Arguments by which `calc.plan` is asked."""
        names = ["devices", "batch", "prompt", "generated", "kv", "price"]
        said = {name: getattr(self, name) for name in ("weights", "dtype", "software", "host")}
        said = {name: value for name, value in said.items() if value is not None}
        cut = {name: getattr(self, name) for name in ("copies", "experts", "stages")}
        cut = {name: count for name, count in cut.items() if count > 1}
        return {name: getattr(self, name) for name in names} | said | cut

    @property
    def job(self) -> Job | None:
        """The job, where nothing is left open that a planner chooses."""
        if self.weights is None or self.dtype is None or self.software is None:
            return None
        software = None if self.software == "none" else self.software
        layout = Layout(self.copies, self.tensor, self.stages, experts=self.experts)
        formats = Formats(self.dtype, self.weights, self.kv)
        return Job.of(self.model, self.place, layout, formats, software)


@dataclass(frozen=True)
class Training:
    """A step of training in one layout."""

    model: str
    place: str
    data: int
    tensor: int
    pipeline: int
    sharding: int
    microbatches: int
    length: int
    recomputation: str

    @property
    def devices(self) -> int:
        return self.data * self.tensor * self.pipeline

    @property
    def sequences(self) -> int:
        return self.data * self.microbatches

    @property
    def layout(self) -> Layout:
        return Layout(
            data=self.data,
            tensor=self.tensor,
            pipeline=self.pipeline,
            microbatches=self.microbatches,
            sharding=self.sharding,
        )

    @property
    def asked(self) -> dict[str, Any]:
        """Arguments by which `calc.plan_training` is asked."""
        degrees = {"CP": 1, "EP": 1, "VP": 1, "ZeRO": self.sharding}
        degrees |= {"DP": self.data, "TP": self.tensor, "PP": self.pipeline}
        return {
            "tokens": "1B",
            "sequences": self.sequences,
            "length": self.length,
            "devices": self.devices,
            "recomputation": self.recomputation,
            "layout": ",".join(f"{name}={degree}" for name, degree in degrees.items()),
        }


@dataclass(frozen=True)
class Message:
    """Question for the time of a collective: operation, size, devices and place."""

    operation: str
    size: int
    devices: int
    place: str


Question = Serving | Training | Message


# ---- What doors say, in numbers


def number(value: Any, unit: str, off: float = 1e-9) -> Value:
    """A quantity, one of JSON, or a plain number."""
    if isinstance(value, Mapping):
        value = quantity(value["value"], value["unit"])
    return Value(float(value.m_as(unit) if isinstance(value, Quantity) else value), off)


def printed(text: str, unit: str) -> Value:
    """Return the value that a table prints, with what its digits leave open."""
    value = quantity(re.sub(r" of .*", "", text))
    digits = re.match(r"[\d.]+", text)
    assert digits, text
    last = 0.1 ** len(digits[0].partition(".")[2])
    return number(value, unit, 0.51 * last / (float(digits[0]) or 1.0))


def expected_of(step: Any) -> Quantity | None:
    """Return the expected time of a step; None where a rate is missing."""
    expected = step.expected
    if expected is None or isinstance(expected, str) or expected.__class__.__name__ == "Missing":
        return None
    total = getattr(expected, "total", expected)
    assert isinstance(total, Quantity)
    return total


def of_step(step: Any, name: str, off: float = 1e-9) -> Answer:
    answer = {
        f"{name}, least": number(step.lower, "s", off),
        f"{name}, most": number(step.upper, "s", off),
    }
    if (expected := expected_of(step)) is not None:
        answer[f"{name}, expected"] = number(expected, "s", off)
    return answer


def run(*words: object) -> str:
    """Return the text that a command prints; what it refuses is refused here."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(word) for word in words])
    if status and not out.getvalue():  # an answer that says what does not fit is one
        raise InputError(err.getvalue().removeprefix("calc: ").strip())
    return out.getvalue()


def options(asked: Mapping[str, Any]) -> list[str]:
    """Return the options in words of a shell."""
    return [
        word
        for name, value in asked.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


# ---- Doors of serving


TIMES = {
    "time_to_first_token": ("first token", "s"),
    "time_per_token": ("each token", "s"),
    "answer_time": ("whole answer", "s"),
    "throughput": ("throughput", "token/s"),
    "cost_per_token": ("cost", "USD/token"),
    "device_energy_per_token": ("energy of devices", "J/token"),
    "energy_per_token": ("energy", "J/token"),
}
ENDS = {"lower": "least", "upper": "most"}


def of_row(row: Mapping[str, Any]) -> Answer:
    """A row of a plan as JSON has it."""
    answer = {
        "weights": number(row["weight_memory"], "byte"),
        "largest batch": number(row["largest_batch"], ""),
        "fits": Value(float(row["fits"])),
    }
    if not row["fits"]:
        return answer
    for name, (title, unit) in TIMES.items():
        for end, word in ENDS.items():
            if row[name] is not None:
                answer[f"{title}, {word}"] = number(row[name][end], unit)
        if row["expected"] is not None and row["expected"].get(name) is not None:
            answer[f"{title}, expected"] = number(row["expected"][name], unit)
    passed = (row["expected"] or {}).get("writing") or {}
    if "tensor" in passed:
        answer["sums of a token"] = number(passed["tensor"], "s")
    return answer


def plan(asked: Serving) -> Answer:
    [point] = calc.plan(asked.model, asked.place, **asked.asked).points
    bounds = {
        name: value._asdict()
        for name, value in point.items()
        if name in TIMES and value is not None
    }
    return of_row(point | dict.fromkeys(TIMES) | bounds)


def plan_of_json(asked: Serving) -> Answer:
    words = options(asked.asked)
    [row] = json.loads(run("plan", asked.model, asked.place, *words, "--json"))["rows"]
    return of_row(row)


def plan_among_others(asked: Serving) -> Answer:
    """Return the plan of a question as a point of an array."""
    beside = asked.asked | {"batch": [1, asked.batch]}
    _, point = calc.plan(asked.model, asked.place, **beside).points
    bounds = {
        name: value._asdict()
        for name, value in point.items()
        if name in TIMES and value is not None
    }
    return of_row(point | dict.fromkeys(TIMES) | bounds)


def plan_of_text(asked: Serving) -> Answer:
    """The printed table: bounds are those from which times are, and up to which rates are."""
    text = run("plan", asked.model, asked.place, *options(asked.asked), "--explain")
    table = text.split("\n\n")[1]
    answer = {}
    for line in table.splitlines():
        title, *cells = re.split(r"  +", line.strip())
        cells = [cell for cell in cells if re.match(r"[\d.]", cell)]
        if title == "weights":
            answer["weights"] = printed(cells[0], "byte")
        if title == "batch that fits":
            answer["largest batch"] = printed(cells[0], "")
        for name, unit in TIMES.values():
            if title == name and " to " not in cells[0]:
                end = "most" if name == "throughput" else "least"
                answer[f"{name}, {end}"] = printed(cells[0], unit)
                if len(cells) > 1 and " to " not in cells[1]:
                    answer[f"{name}, expected"] = printed(cells[1], unit)
    return answer


def fit(asked: Serving) -> Answer:
    if asked.copies > 1 or asked.experts > 1:
        return {}
    said = {"tensor": asked.tensor, "stages": asked.stages}
    said |= {"context": asked.context, "kv": asked.kv}
    said |= {} if asked.weights is None else {"weights": asked.weights}
    fitted = device_memory.fit(asked.model, asked.place, asked.software, **said)
    return {
        "weights": number(fitted.parts[0].memory, "byte"),
        "largest batch": Value(fitted.largest_batch),
        "fits": Value(float(fitted.largest_batch >= asked.batch)),
        "tokens": Value(fitted.tokens),
        "tokens of whole sequences": Value(fitted.sequences * asked.context, 1e-5),
    }


def fit_of_json(asked: Serving) -> Answer:
    if asked.copies > 1 or asked.experts > 1:
        return {}
    said = {"tensor": asked.tensor, "stages": asked.stages}
    said |= {"context": asked.context, "kv": asked.kv}
    said |= {
        name: value
        for name in ("weights", "software")
        if (value := getattr(asked, name)) is not None
    }
    facts = json.loads(run("fit", asked.model, asked.place, *options(said), "--json"))
    return {
        "weights": number(facts["parts"][0]["memory"], "byte"),
        "tokens": Value(facts["tokens"]),
    }


def steps(asked: Serving) -> Answer:
    """`calc.step`, of the prompts and at points of the answer."""
    if (job := asked.job) is None:
        return {}
    read = Tokens(reading=float(asked.batch * asked.prompt), prompt=float(asked.prompt))
    answer = of_step(calc.step(job, read), "first token")
    contexts = [asked.prompt + asked.generated * point / (POINTS - 1) for point in range(POINTS)]
    weights = [0.5 if point in (0, POINTS - 1) else 1.0 for point in range(POINTS)]
    lower: dict[str, float] = {}
    expected: float | None = 0.0
    for share, context in zip(weights, contexts, strict=True):
        step = calc.step(job, Tokens(writing=float(asked.batch), context=context))
        for name, part in step.parts.items():
            lower[name] = lower.get(name, 0.0) + share * part.m_as("s") / (POINTS - 1)
        time = expected_of(step)
        if expected is not None:
            each = None if time is None else share * time.m_as("s") / (POINTS - 1)
            expected = None if each is None else expected + each
    answer["each token, least"] = Value(max(lower.values()), NEARLY / 10)
    answer["each token, most"] = Value(sum(lower.values()), NEARLY / 10)
    if expected is not None:
        answer["each token, expected"] = Value(expected, NEARLY)
    return answer


def sums(asked: Serving) -> Answer:
    """The sums of a decode step as messages of a size, of which each block has one."""
    job = asked.job
    whole = asked.devices > 1 == asked.copies * asked.stages
    if job is None or not whole or job.model.layers_with("experts"):
        return {}
    size = quantity(2 * job.model.width * asked.batch, "byte")
    program = None if asked.software == "none" else asked.software
    time = communication.time("all_reduce", size, asked.devices, asked.place, program)
    if time.expected is None:
        return {}
    return {"sums of a token": number(time.expected * job.sums, "s")}


def old_laws(asked: Serving) -> Answer:
    """`calc.inference`, whose steps are of no software, on devices that share out no experts."""
    if asked.job is None or asked.software != "none":
        return {}
    if asked.copies * asked.stages * asked.experts > 1:
        return {}
    machine, model = machines.of(asked.place), models.get(asked.model)
    sizes = asked.dtype, asked.weights, asked.kv
    of_prompts = inference.prefill(model, machine, asked.prompt, asked.batch, asked.devices, *sizes)
    most = inference.largest_batch(model, machine, asked.context, asked.devices, *sizes[1:])
    return of_step(of_prompts, "first token") | {"largest batch": Value(float(most.magnitude))}


def live_memory(asked: Serving) -> Answer:
    """The live figure of what fits, whose settings are those of a plan that is told the formats."""
    if asked.place not in machines.names() or asked.weights is None or asked.software is not None:
        return {}
    if asked.weights not in memory_live.FORMATS or asked.kv not in memory_live.FORMATS:
        return {}
    if asked.copies * asked.stages > 1:
        return {}
    shown = memory_live.answer(
        asked.model,
        asked.place,
        memory_live.SERVING,
        asked.weights,
        asked.kv,
        asked.context,
        asked.batch,
    )
    held = [
        size
        for part, count, size in shown.rows
        if part == "weights" and count == str(asked.devices)
    ]
    return {"weights": Value(float(held[0]) * 1e9)} if held else {}


def compared(asked: Serving) -> Iterator[tuple[Serving, Answer]]:
    """Yield what `compare` chose of this model and machine: its own question, and its answer."""
    said = {
        name: value
        for name, value in asked.asked.items()
        if name not in ("devices", "batch", "price")
    }
    comparison = calc.compare(asked.model, asked.place, price=asked.price, **said)
    if not comparison.planned:
        return
    [row] = json.loads(comparison.json())["rows"]
    counts = {name: int(row[name]) for name in COUNTS}
    yield replace(asked, **counts), of_row(row)


def live_decode(asked: Serving) -> Iterator[tuple[Serving, Answer]]:
    """Yield what the live figure of decode shows at its largest batch."""
    machine = asked.place
    if machine not in machines.names() or asked.weights not in decode_live.FORMATS[1:]:
        return
    if asked.kv not in decode_live.FORMATS[1:] or asked.stages > 1:
        return
    shown = decode_live.answer(
        asked.model, machine, asked.devices, asked.context, asked.weights, asked.kv
    ).facts
    dtype = machines.get(machine).device.usual_dtype
    most = int(shown["Largest batch"])
    chosen = replace(asked, batch=most, software="none", dtype=dtype)
    job = chosen.job
    assert job is not None
    at_the_end = calc.step(job, Tokens(writing=float(most), context=float(asked.context)))
    ours = of_step(at_the_end, "a step")
    assert printed(shown["At least"], "s").agrees(ours["a step, least"]), (shown, ours)
    if "a step, expected" in ours:
        said = printed(shown["Expected of a token then"], "s")
        assert said.agrees(ours["a step, expected"]), (shown, ours)
    yield chosen, {"largest batch": Value(float(most))}


def service(asked: Serving) -> Iterator[tuple[Serving, Answer]]:
    """Yield a service plan's steps and memory of its copies, as a question and its answer."""
    said = {name: value for name, value in asked.asked.items() if name not in COUNTS}
    said |= {"rate": 0.01, "ttft": "1000 s", "tpot": "100 s", "requests": 100, "pools": "mixed"}
    planned = flatly(calc.plan_service, asked.model, asked.place, **said)
    [pool] = planned.design.pools
    group = pool.group
    shared = {"copies": int(group.data), "experts": int(group.experts)}
    shared |= {"stages": int(group.pipeline)}
    chosen = replace(asked, devices=pool.size, **shared)
    batch = min(asked.batch, pool.replica.slots, pool.replica.steps.most_sequences)
    middle = asked.prompt + asked.generated / 2
    time = float(pool.replica.steps.time(batch, batch * middle))
    if pool.answers.parts is not None and (job := pool.answers.asked):
        step = calc.step(job, Tokens(writing=float(batch * group.data), context=middle))
        expected = expected_of(step)
        assert expected is not None
        assert Value(time, 0.03).agrees(number(expected, "s")), (time, str(expected), batch)
    held = Value(pool.replica.memory, 1e-3)  # of sequences of the mean length
    yield replace(chosen, batch=batch * group.data), {"tokens of whole sequences": held}


SERVING: tuple[Callable[[Serving], Answer], ...] = (
    plan,
    plan_of_json,
    plan_among_others,
    plan_of_text,
    fit,
    fit_of_json,
    steps,
    sums,
    old_laws,
    live_memory,
)
CHOOSING: tuple[Callable[[Serving], Iterator[tuple[Serving, Answer]]], ...] = (
    compared,
    live_decode,
    service,
)


# ---- Doors of training


def step_of_training(asked: Training) -> Answer:
    job = Job.of(asked.model, asked.place, asked.layout)
    return of_step(calc.step(job, Batch(asked.length, 1, asked.recomputation)), "step")


def memory_of_training(asked: Training) -> Answer:
    held = layouts.memory_per_device(
        asked.model, asked.layout, asked.length, 1, asked.recomputation
    )
    return {"memory": number(held.total, "byte")}


def planned_training(asked: Training) -> Answer:
    planned = flatly(calc.plan_training, asked.model, asked.place, **asked.asked)
    return of_training(json.loads(planned.json()))


def planned_training_of_json(asked: Training) -> Answer:
    words = options(asked.asked)
    return of_training(json.loads(run("plan-training", asked.model, asked.place, *words, "--json")))


def of_training(facts: Mapping[str, Any]) -> Answer:
    """The best layout, where its microbatches and who shares states are those of the question."""
    best, step = facts["rows"][0], facts["step"]
    if best["sequences"] != 1 or best["sharing"] not in (None, best["data"]):
        return {}
    assert [best[name] for name in ("lower", "upper", "expected")] == [
        step[name] for name in ("lower", "upper", "expected")
    ]
    answer = {
        "step, least": number(best["lower"], "s"),
        "step, most": number(best["upper"], "s"),
        "memory": number(best["memory"], "byte"),
    }
    if best["expected"] is not None:
        answer["step, expected"] = number(best["expected"], "s")
    return answer


def live_training(asked: Training) -> Answer:
    if asked.place not in machines.names():
        return {}
    said = training_live.answer(
        asked.model,
        asked.place,
        asked.devices,
        quantity("1B token"),
        asked.sequences,
        asked.length,
        asked.tensor,
        asked.pipeline,
        str(asked.sharding),
        1,
        asked.recomputation,
    ).facts
    least, most = said["A step by its bounds"].split(" to ")
    held = said["Memory of a device"].partition(" of ")[0]
    answer = {
        "step, least": printed(least, "s"),
        "step, most": printed(most, "s"),
        "memory": printed(held, "byte"),
    }
    if re.match(r"[\d.]+ \w*s$", said["Expected of a step"]):
        answer["step, expected"] = printed(said["Expected of a step"], "s")
    return answer


TRAINING: tuple[Callable[[Training], Answer], ...] = (
    step_of_training,
    memory_of_training,
    planned_training,
    planned_training_of_json,
    live_training,
)


# ---- Doors of messages


def time_of_message(asked: Message) -> Answer:
    collective = communication.time(
        asked.operation, quantity(asked.size, "byte"), asked.devices, asked.place
    )
    answer = {"message, least": number(collective.lower, "s")}
    if collective.expected is not None:
        answer["message, expected"] = number(collective.expected, "s")
    return answer


def message_of_json(asked: Message) -> Answer:
    words = asked.operation.replace("_", "-"), f"{asked.size} byte", asked.place
    facts = json.loads(run("collective", *words, "--devices", asked.devices, "--json"))
    answer = {"message, least": number(facts["lower"], "s")}
    if facts["expected"] is not None:
        answer["message, expected"] = number(facts["expected"], "s")
    return answer


def message_of_text(asked: Message) -> Answer:
    words = asked.operation.replace("_", "-"), f"{asked.size} byte", asked.place
    text = run("collective", *words, "--devices", asked.devices)
    answer = {}
    for title, name in (("at least", "least"), ("expected", "expected")):
        if line := re.search(rf"^ *{title}  +([\d.]+ \S+)", text, re.M):
            answer[f"message, {name}"] = printed(line[1], "s")
    return answer


def live_message(asked: Message) -> Answer:
    if asked.place not in machines.names():
        return {}
    shown = all_reduce_live.answer(
        asked.place, asked.devices, asked.operation, quantity(asked.size, "byte")
    ).facts
    answer = {"message, least": printed(shown["At least"].partition(", by")[0], "s")}
    if re.match(r"[\d.]+ \w*s$", shown["Expected"]):
        answer["message, expected"] = printed(shown["Expected"], "s")
    return answer


MESSAGES: tuple[Callable[[Message], Answer], ...] = (
    time_of_message,
    message_of_json,
    message_of_text,
    live_message,
)


# ---- Answers that differ


def ask(asked: Any) -> dict[str, Answer | str]:
    """Return the answer of each door, or the sentence in which it refuses."""
    doors: tuple[Callable[[Any], Answer], ...]
    doors = {Serving: SERVING, Training: TRAINING, Message: MESSAGES}[type(asked)]
    answers: dict[str, Answer | str] = {}
    for door in doors:
        try:
            answers[door.__name__] = door(asked)
        except InputError as error:
            answers[door.__name__] = str(error)
    return answers


def differences(answers: Mapping[str, Answer | str]) -> list[str]:
    """The quantities on which doors differ, with what each of them says.

    Where a plan, or what is fitted, finds no link between devices none has an answer.
    """
    said: dict[str, dict[str, Value]] = {}
    faults = []
    refusals = (answer for door, answer in answers.items() if door in ("plan", "fit"))
    unlinked = [faults for faults in refusals if isinstance(faults, str) and UNLINKED.match(faults)]
    for door, answer in answers.items():
        if not isinstance(answer, str):
            for name, value in answer.items():
                said.setdefault(name, {})[door] = value
            faults += [f"{door} has an answer: {refused}" for refused in unlinked if answer]
    for name, by in said.items():
        sharpest = min(by.values(), key=lambda value: value.off)
        if not all(value.agrees(sharpest) for value in by.values()):
            values = ", ".join(f"{door} {value.number:.6g}" for door, value in by.items())
            faults.append(f"{name}: {values}")
    return faults


# ---- Drawn questions


KINDS = (
    *("dense", "experts", "window", "latent", "sparse", "linear", "state", "convolution"),
    "quantised",
)
PLACES: dict[str, tuple[str, ...]] = {
    "NVIDIA of a data centre": (
        *("dgx-h100", "dgx-h200", "dgx-b200", "hgx-b300", "dgx-a100", "gb200-nvl72", "gh200-1"),
        *("aws-p5", "gcp-a3-mega", "l40s-8", "rtx-pro-6000-8", "h100", "h200", "a100-40gb", "l4"),
        *("h20", "a30", "v100-1", "a10"),
    ),
    "AMD": ("mi300x-8", "mi325x-8", "mi355x-8", "mi250x", "mi300x", "mi210"),
    "TPU and the like": (
        *("tpu-v5e-pod", "tpu-v5p-pod", "tpu-v6e-pod", "tpu-v7-pod", "trn2", "gaudi3-8", "gaudi2"),
    ),
    "consumer": (
        *("rtx-4090-1", "rtx-4090-8", "rtx-5090-2", "rtx-3090-1", "rtx-3060", "rtx-5090"),
        *("arc-b580", "dgx-spark", "rtx-a6000"),
    ),
    "Mac": ("apple-m4-max-1", "apple-m2-ultra-1", "apple-m3-ultra-1", "apple-m4", "apple-m3-pro"),
    "CPU": ("ryzen-ai-max-395-1", "xeon-8480", "ryzen-7840u"),
}
WEIGHTS = (None, "released", "bf16", "fp8", "int8", "int4", "mxfp4", "nvfp4", "w4a16", "4.5 bit")
KV = ("bf16", "bf16", "fp8", "int8")
SOFTWARE = (None, None, "none", "vllm", "sglang")


def kind_of(model: str) -> set[str]:
    """The classes to which a model belongs."""
    network = models.get(model)
    if not isinstance(network, models.Transformer) or network.vocabulary is None:
        return set()
    if network.output not in ("own", "tied"):
        return set()  # which writes nothing
    kinds = {kind for kind in KINDS[1:-1] if network.layers_with(kind)}
    if network.released and len({*network.released.formats.values()} - {"bf16"}):
        kinds.add("quantised")
    return kinds or {"dense"}


def by_kind() -> dict[str, list[str]]:
    return {kind: [key for key in models.names() if kind in kind_of(key)] for kind in KINDS}


def serving(count: int, seed: str) -> Iterator[Serving]:
    """Questions in which every kind of model meets every kind of place, a quarter in stages."""
    chance, shapes = random.Random(seed), by_kind()
    staged = random.Random(f"{seed} stages")
    for turn in range(count):
        kind = KINDS[turn % len(KINDS)]
        places = list(PLACES.values())[(turn + turn // len(KINDS)) % len(PLACES)]
        model, machine_key = chance.choice(shapes[kind]), chance.choice(places)
        network, machine = models.get(model), machines.of(machine_key)
        weights = chance.choice(WEIGHTS)
        bits = 4.5 if weights and "4" in weights else 9 if weights in ("fp8", "int8") else 16
        need = network.parameters.m_as("param") * bits / 8
        room = machine.device.memory_capacity.m_as("byte") * 0.85
        tensor = 1
        while tensor * room < need and tensor < machine.domain:
            tensor *= 2
        if chance.random() < 0.5:
            tensor = chance.choice([1, 2, 4, 8])
        longest = network.context
        prompt = int(min(longest / 2, 10 ** chance.uniform(1.5, 4.3)))
        generated = int(min(longest / 3, 10 ** chance.uniform(1, 3.3)))
        fixed = chance.random() < 0.6  # all is said that a step is asked with
        software = chance.choice(SOFTWARE)
        stages = staged.choice([1] * 9 + [2, 3, 4])
        yield Serving(
            model,
            machine_key,
            tensor * stages,
            int(2 ** chance.uniform(0, 8)),
            prompt,
            generated,
            (weights or "bf16") if fixed else weights,
            chance.choice(KV),
            machine.device.usual_dtype if fixed else None,
            (software or "none") if fixed else software,
            stages=stages,
        )


HOSTS = ("{} GB DDR5-{}", "{} GB DDR5-{} x8", "{} GB at 80 GB/s", "{}GB DDR5-{} x4")
DISKS = (
    "",
    ", {} GB/s SSD",
    " 2 TB SSD {} GB/s",
    ", SSD at {} GB/s",
    " with 1 TB {} GB/s NVMe SSD",
)


def hosted(count: int, seed: str) -> Iterator[Serving]:
    """Questions of models that a card leaves in part to its host, and of some that it holds."""
    chance, shapes = random.Random(seed), by_kind()
    for turn in range(count):
        model = chance.choice(shapes[chance.choice(["experts", "experts", "quantised", "dense"])])
        memory = HOSTS[turn % len(HOSTS)].format(chance.choice([32, 96, 256]), 5600)
        disk = DISKS[turn % len(DISKS)].format(chance.choice([3.5, 7]))
        weights = chance.choice([None, "q4_k_m", "int4", "released"])
        prompt, generated = chance.choice([64, 1000, 4000]), chance.choice([16, 300])
        card = chance.choice(["rtx-4090", "rtx-3060", "rtx-5090", "rx-7900-xtx", "a10"])
        software = chance.choice([None, "llama.cpp"])
        written = {"weights": weights, "software": software, "host": memory + disk}
        yield Serving(model, card, 1, 1, prompt, generated, **written)


@dataclass(frozen=True)
class Log:
    """A tool's text in a file of that name, with what is said and was read beside it."""

    name: str
    text: str
    about: str
    states: str


def logged(count: int, seed: str) -> Iterator[Log]:
    """Texts of each tool, said of some model on some devices, and readings of these."""
    chance = random.Random(seed)
    forms = [text for text, _ in test_logs.READ.values()]
    forms += [test_logs.LLAMA_BENCH, test_logs.LLAMA_VULKAN, test_logs.GENAI_PERF]
    forms += [json.dumps(test_logs.AIPERF), json.dumps(test_logs.GUIDELLM)]
    states = (test_logs.TABLE, test_logs.DMON, test_logs.OUTLINE, test_logs.AMD_JSON)
    for turn in range(count):
        text = forms[turn % len(forms)]
        model = chance.choice(["Llama 3.1 8B", "Qwen3 30B A3B", "gpt-oss-120b", "DeepSeek R1"])
        count_of = chance.choice([1, 2, 8])
        where = f"on {count_of} {chance.choice(['h100', 'mi300x', 'rtx-5090', 'gb200', 'a100'])}"
        said = ["1000 in, 200 out", f"batch {chance.choice([1, 64])}"]
        if text is test_logs.READ["rccl-tests"][0]:
            said = ["all-reduce"]
        elif "TFLOP" in text or "tflop" in text or "train_step" in text:
            said = ["seq 4096", "batch 64"]
        about = ", ".join([f"{model} {where}" if chance.random() < 0.9 else where, *said])
        name = chance.choice(["run.log", "run.txt", "bench.md", "output"])
        yield Log(name, text, about, chance.choice(["", *states]))


def trainings(count: int, seed: str) -> Iterator[Training]:
    chance, shapes = random.Random(seed), by_kind()
    places = [key for key in machines.names() if machines.get(key).domain > 1]
    for turn in range(count):
        model, machine_key = chance.choice(shapes[KINDS[turn % len(KINDS)]]), chance.choice(places)
        if turn % 4:  # most fit
            shape = [key for key in models.names() if "dense" in kind_of(key)]
            model = chance.choice([k for k in shape if models.get(k).parameters.m < 4e9])
        network, machine = models.get(model), machines.get(machine_key)
        # Of those that fit, slices divide the heads.
        slices = [each for each in (1, 2, 4, 8) if turn % 4 == 0 or network.heads % each == 0]
        tensor = chance.choice(slices)
        pipeline = chance.choice([1, 1, 2, 4])
        most = max(int(min(machine.most_joined, 64)) // (tensor * pipeline), 1)
        yield Training(
            model,
            machine_key,
            chance.choice([each for each in (1, 2, 4, 8, 16) if each <= most]),
            tensor,
            pipeline,
            chance.choice([0, 1] if pipeline > 1 else [0, 1, 2, 3]),
            # Planners join no sequences of one, or of an odd number but all of them.
            chance.choice([1, 2 * pipeline, 2 * pipeline + 1]),
            int(min(network.context, chance.choice([512, 2048, 4096, 8192]))),
            chance.choice(["none", "selective", "full"]),
        )


def messages(count: int, seed: str) -> Iterator[Message]:
    chance = random.Random(seed)
    places = [*machines.names(), *hardware.names()]
    for _ in range(count):
        machine_key = chance.choice(places)
        domain = machines.of(machine_key).domain
        devices = chance.choice([domain, 2, 4, 8, 2 * domain])
        yield Message(
            chance.choice(list(curves.OPERATIONS)),
            int(10 ** chance.uniform(3, 9.5)),
            devices,
            machine_key,
        )


def tuned(model: str, length: int, method: str) -> tuple[Quantity, Quantity]:
    """The memory of fine-tuning by its own door, and by that of plans."""
    trained = finetuning.Adapters(method)
    alone = finetuning.memory(model, trained, Batch(length, recomputation="full"))
    planned = flatly(
        calc.plan_training,
        model,
        "dgx-b200",
        tokens="1B",
        sequences=1,
        length=length,
        devices=1,
        fine_tune=method,
        recomputation="full",
        layout="TP=1,PP=1,CP=1,EP=1,VP=1,DP=1,ZeRO=0",
    )
    return alone.total, planned.memory.total
