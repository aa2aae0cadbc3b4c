"""One question, one answer: drawn questions at every door that can answer, and in every way to ask.

`tests/doors.py` has the questions, by class of model, place, format and load, and the doors. The
seed is fixed; `BATTERY_SEED=7 pytest -m slow tests/test_doors.py` draws others.
"""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import calc
from calc import InputError, machines, models
from calc.catalog.models.model_files import model_of
from calc.commands import mcp as tools
from calc.core.report import Reported, plain
from calc.published.claims import PASTED
from calc.steps import device_memory
from tests import doors
from tests.calc.flatly import flatly
from tests.calc.odd_values import SEED
from tests.draws import by_night, draws
from tests.rows import each_row

ROOT = Path(__file__).parents[1]
MANY = {"serving": 240, "training": 60, "messages": 400}


def hold(questions: Iterable[Any]) -> Counter[str]:
    """Assert that no two doors differ; return how many questions each door has answered."""
    answered: Counter[str] = Counter()
    with each_row() as row:
        for question in questions:
            with row(question):
                answers = doors.ask(question)
                answered.update(
                    door for door, answer in answers.items() if isinstance(answer, dict) and answer
                )
                differ = doors.differences(answers)
                assert not differ, "\n".join(differ)
    return answered


@pytest.mark.slow
def test_serving_at_every_door() -> None:
    number = draws(MANY["serving"])
    answered = hold(doors.serving(number, f"{SEED} serving"))
    assert answered.keys() == {door.__name__ for door in doors.SERVING}
    assert answered["plan"] > number / 2


@pytest.mark.slow
def test_training_at_every_door() -> None:
    number = draws(MANY["training"])
    answered = hold(doors.trainings(number, f"{SEED} training"))
    assert answered.keys() == {door.__name__ for door in doors.TRAINING}
    assert answered["planned_training"] > number / 4


@pytest.mark.slow
def test_messages_at_every_door() -> None:
    answered = hold(doors.messages(draws(MANY["messages"]), f"{SEED} messages"))
    assert answered.keys() == {door.__name__ for door in doors.MESSAGES}


@pytest.mark.slow
@pytest.mark.parametrize("door", doors.CHOOSING, ids=lambda door: door.__name__)
def test_what_a_planner_chooses_is_what_the_others_say_of_it(door: Any) -> None:
    """Each choice of devices and batch makes a question, on which all other doors agree."""
    answered = 0
    with each_row() as row:
        for question in doors.serving(draws(144), f"{SEED} {door.__name__}"):
            with row(question):
                try:
                    chosen = list(door(question))
                except InputError:
                    continue
                for asked, answer in chosen:
                    answered += 1
                    differ = doors.differences({door.__name__: answer} | doors.ask(asked))
                    assert not differ, "\n".join([str(asked), *differ])
    assert answered > draws(6)


def test_a_few_questions_at_every_door() -> None:
    """A short draw of each of the three kinds is answered."""
    drawn = (
        *islice(doors.serving(40, "short"), 2),
        *islice(doors.trainings(4, "short"), 1),
        *islice(doors.messages(4, "short"), 2),
    )
    assert sum(hold(drawn).values()) > 20


@pytest.mark.parametrize("name", ["Devstral 2", "granite4.1:30b", "ibm-granite/granite-4.1-3b"])
def test_a_name_that_people_give_is_one_model_at_a_tool_and_a_command(name: str) -> None:
    asked = {"batch": 2, "prompt": 1000, "generated": 100}
    said = json.loads(doors.run("plan", name, "dgx-h100", *doors.options(asked), "--json"))
    tool = tools.plan(name, "dgx-h100", asked)
    assert {each: tool[each] for each in said} == said
    assert said["rows"][0]["model"] == models.get(name).key


def test_every_class_is_drawn() -> None:
    drawn = list(doors.serving(MANY["serving"], f"{SEED} serving"))
    assert set().union(*(doors.kind_of(question.model) for question in drawn)) == {*doors.KINDS}
    assert {question.weights for question in drawn} == {*doors.WEIGHTS}
    assert {question.software for question in drawn} == {*doors.SOFTWARE}
    assert sum(question.stages > 1 for question in drawn) > MANY["serving"] / 8
    for places in doors.PLACES.values():
        assert len({question.place for question in drawn} & {*places}) > 2


def test_doors_that_differ_are_told() -> None:
    """Differences count by the digits that are printed, and without them exactly."""
    exact, read = doors.Value(1.2345e-3), doors.printed("1.234 ms", "s")
    assert not doors.differences({"a": {"time": exact}, "b": {"time": read}})
    other = doors.printed("1.23 ms", "s")
    assert not doors.differences({"a": {"time": exact}, "b": {"time": other}, "c": {}})
    assert doors.differences({"a": {"time": exact}, "b": {"time": doors.Value(1.2346e-3)}})
    assert doors.differences({"a": {"time": exact}, "b": {"time": doors.printed("1.3 ms", "s")}})
    assert not doors.differences({"a": {"time": exact}, "b": "a refusal"})
    unlinked = "the data have no link of NVIDIA T4 to others: take one device"
    assert doors.differences({"a": {"time": exact}, "fit": unlinked})
    assert not doors.differences({"a": {}, "fit": unlinked})


# ---- One planner, in every way to ask it


PLANNERS: dict[str, Callable[..., Reported]] = {
    "plan": calc.plan,
    "fit": device_memory.fit,
    "compare": calc.compare,
    "plan-service": calc.plan_service,
    "plan-training": calc.plan_training,
}


def asked_of(planner: str, question: doors.Serving) -> dict[str, Any]:
    """The options of a planner, as a shell has them."""
    said = question.asked
    lengths = {name: said[name] for name in ("prompt", "generated")}
    if planner == "plan":
        return said
    if planner == "fit":
        kept = {name: said[name] for name in ("weights", "kv", "software") if name in said}
        cut = {"tensor": question.tensor, "stages": question.stages}
        return kept | cut | {"context": question.context}
    if planner == "compare":
        return lengths | {"price": question.price, "kv": question.kv}
    if planner == "plan-service":
        return lengths | {"rate": 0.5, "ttft": "100 s", "tpot": "10 s", "requests": 100}
    devices = max(int(min(machines.of(question.place).most_joined, 8)), 1)
    run = {"tokens": "1B", "sequences": 64, "length": 512, "devices": devices}
    return run | {"fine_tune": "qlora"}  # most fit


def facts(planner: str, model: Any, machine: Any, asked: dict[str, Any]) -> Any:
    """Return a planner's answer for programs, or the sentence in which it refuses."""
    try:
        return plain(flatly(PLANNERS[planner], model, machine, **asked).facts)
    except InputError as error:
        return without_spelling(str(error))


def without_spelling(sentence: str) -> str:
    """The words of a refusal, without the signs by which Python and a shell spell arguments."""
    return re.sub(r"[\W_]+", " ", sentence).strip()


def command(planner: str, question: doors.Serving, asked: dict[str, Any], *more: str) -> str:
    placed = [question.model, question.place]
    if planner == "compare":
        placed = [question.model, "--machines", question.place]
    return doors.run(planner, *placed, *doors.options(asked), *more)


def ways(planner: str, question: doors.Serving) -> dict[str, Any]:
    """Return the answers to one question in each way: its facts, or its refusal."""
    asked = asked_of(planner, question)
    model, machine = models.get(question.model), machines.of(question.place)
    by_way = {"python": facts(planner, question.model, question.place, asked)}
    try:
        by_way["json"] = json.loads(command(planner, question, asked, "--json"))
    except InputError as error:
        by_way["json"] = without_spelling(str(error))
    with ThreadPoolExecutor(4) as pool:
        same = [(planner, question.model, question.place, asked)] * 4
        for turn, answer in enumerate(pool.map(facts, *zip(*same, strict=True))):
            by_way[f"thread {turn}"] = answer
    for name, copied in (
        ("deep copies", copy.deepcopy),
        ("pickles", lambda entry: pickle.loads(pickle.dumps(entry))),
    ):
        by_way[name] = facts(planner, copied(model), copied(machine), copied(asked))
    if not isinstance(by_way["python"], str):
        answer = flatly(PLANNERS[planner], question.model, question.place, **asked)
        assert command(planner, question, asked) == f"{answer.text()}\n"
        by_way["a pickled answer"] = plain(pickle.loads(pickle.dumps(answer)).facts)
        by_way["a copied answer"] = plain(copy.deepcopy(answer).facts)
    tool = getattr(tools, planner.replace("-", "_"), None)
    if tool is not None:
        try:
            by_tool = tool(question.model, question.place, asked)
            in_python = by_way["python"] if isinstance(by_way["python"], dict) else {}
            by_way["a tool"] = {name: by_tool[name] for name in in_python}
        except InputError as error:
            by_way["a tool"] = without_spelling(str(error))
    return by_way


def hold_in_every_way(planner: str, questions: Iterable[doors.Serving]) -> int:
    answers = 0
    with each_row() as row:
        for question in questions:
            with row(f"{planner} {question}"):
                by_way = ways(planner, question)
                wrong = [way for way, answer in by_way.items() if answer != by_way["python"]]
                assert not wrong, [
                    (way, first_difference(by_way["python"], by_way[way])) for way in wrong
                ]
                answers += not isinstance(by_way["python"], str)
    return answers


def first_difference(one: Any, other: Any, path: str = "") -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in one | other:
            if one.get(name) != other.get(name):
                return first_difference(one.get(name), other.get(name), f"{path}.{name}")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            if left != right:
                return first_difference(left, right, f"{path}.{index}")
    return f"{path}: {str(one)[:150]} | {str(other)[:150]}"


@pytest.mark.slow
@pytest.mark.parametrize("planner", PLANNERS)
def test_every_way_to_ask(planner: str) -> None:
    searched = planner in ("compare", "plan-service", "plan-training")
    drawn = doors.serving(draws(48, searched), f"{SEED} {planner}")
    answered = hold_in_every_way(planner, drawn)
    assert answered > draws(6) or (searched and answered and not by_night())


@pytest.mark.parametrize("planner", ["plan", "fit"])
def test_some_ways_to_ask(planner: str) -> None:
    assert hold_in_every_way(planner, islice(doors.serving(8, "short"), 1)) == 1


@pytest.mark.slow
def test_every_way_to_ask_of_a_card_beside_its_host() -> None:
    """Hosts as people write them, with and without a disk."""
    assert hold_in_every_way("plan", doors.hosted(draws(60), f"{SEED} hosts")) > draws(20)


def test_a_few_hosts_in_every_way_to_ask() -> None:
    assert hold_in_every_way("plan", islice(doors.hosted(10, "short"), 2, 5)) >= 2


# ---- A log, in every way to have it checked


def hold_logs(logged: Iterable[doors.Log], folder: Path) -> Counter[str]:
    """Assert that a log's verdict is the same in each way; return how many had one in each."""
    answered: Counter[str] = Counter()
    with each_row() as row:
        for log in logged:
            with row(log):
                by_way = ways_to_check(log, folder)
                first = by_way["python"]
                wrong = [way for way, answer in by_way.items() if answer != first]
                assert not wrong, [(way, first_difference(first, by_way[way])) for way in wrong]
                answered["refused" if isinstance(first, str) else "answered"] += 1
    return answered


def ways_to_check(log: doors.Log, folder: Path) -> dict[str, Any]:
    file, beside = folder / log.name, folder / "smi.csv"
    file.write_text(log.text, encoding="utf-8")
    beside.write_text(log.states, encoding="utf-8")
    states = str(beside) if log.states else None
    words = ["check", str(file), "--about", log.about, "--json"]
    words += ["--states", states] if states else []
    ways: dict[str, Callable[[], Any]] = {
        "python": lambda: plain(calc.check(file, log.about, states).facts),
        "a name": lambda: plain(calc.check(str(file), log.about, states).facts),
        "pasted": lambda: plain(calc.check(log.text, log.about, states).facts),
        "a tool": lambda: tools.check(str(file), log.about, states),
        "a tool, pasted": lambda: tools.check(log.text, log.about, states),
        "json": lambda: json.loads(doors.run(*words)),
    }
    return {way: judged(ask, str(file)) for way, ask in ways.items()}


def judged(ask: Callable[[], Any], file: str) -> Any:
    """Return the verdict, or the refusal, without the place of the log and what cites it."""
    try:
        answer = {name: value for name, value in ask().items() if name != "sources"}
    except InputError as error:
        return str(error).replace(file, PASTED)
    return json.loads(json.dumps(answer).replace(json.dumps(file)[1:-1], PASTED))


@pytest.mark.slow
def test_logs_in_every_way(tmp_path: Path) -> None:
    """Drawn are the tool, the model, its devices and readings beside it."""
    answered = hold_logs(doors.logged(draws(120), f"{SEED} logs"), tmp_path)
    assert answered["answered"] > answered["refused"] > 0


def test_a_few_logs_in_every_way(tmp_path: Path) -> None:
    assert hold_logs(islice(doors.logged(24, "short"), 0, 24, 6), tmp_path)["answered"] > 1


@pytest.mark.slow
def test_processes_and_a_server_of_tools() -> None:
    """Real ones, for a sample: what they say is what this process says."""
    mcp = pytest.importorskip("mcp")
    answered = (q for q in doors.serving(24, f"{SEED} processes") if not isinstance(known(q), str))
    drawn = [*islice(answered, draws(14)), *doors.hosted(1, f"{SEED} hosts of processes")]
    logged = list(doors.logged(draws(26), f"{SEED} logs of processes"))

    async def through_the_server() -> tuple[list[Any], list[Any]]:
        server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "calc", "mcp"])
        async with mcp.Client(server) as client:
            calls = [
                client.call_tool(
                    "plan", {"model": q.model, "machine": q.place, "arguments": q.asked}
                )
                for q in drawn
            ]
            checks = [
                client.call_tool("check", {"claim": log.text, "about": log.about}) for log in logged
            ]
            both = await asyncio.gather(*calls), await asyncio.gather(*checks)
            planned, checked = ([each.structured_content for each in some] for some in both)
            return planned, checked

    served, judged_there = asyncio.run(through_the_server())
    with each_row() as row:
        for log, answer in zip(logged, judged_there, strict=True):
            with row(log):
                here = judged(lambda log=log: tools.check(log.text, log.about), PASTED)
                assert here == (answer.get("error") or judged(lambda answer=answer: answer, PASTED))
    with each_row() as row:
        for question, answer in zip(drawn, served, strict=True):
            with row(question):
                here = known(question)
                assert {name: answer[name] for name in here} == here
                words = [question.model, question.place, *doors.options(question.asked)]
                line = [sys.executable, "-m", "calc", "plan", *words]
                said = subprocess.run([*line, "--json"], capture_output=True, cwd=ROOT)
                assert json.loads(said.stdout) == here
                text = subprocess.run(line, capture_output=True, text=True, cwd=ROOT)
                assert text.stdout == command("plan", question, question.asked)
                nothing_fits = not any(each["fits"] for each in here["rows"])
                assert said.returncode == text.returncode == int(nothing_fits)


def known(question: doors.Serving) -> Any:
    return facts("plan", question.model, question.place, question.asked)


@pytest.mark.parametrize(("model", "machine"), [("gpt-oss-20b", "t4"), ("llama-3.1-70b", "h100")])
def test_what_would_make_it_fit_does(model: str, machine: str) -> None:
    """Each change that is told with what is fitted, asked for again on a command line."""
    fitted = json.loads(doors.run("fit", model, machine, "--json"))
    assert not fitted["fits"]
    assert fitted["ways"]
    for way in fitted["ways"]:
        again = json.loads(
            doors.run("fit", model, machine, *doors.options(way["settings"]), "--json")
        )
        assert again["fits"], way
    if model == "gpt-oss-20b":
        more, same = (way["settings"].keys() for way in fitted["ways"])
        assert more == {"tensor"}
        assert {"utilization", "context"} < same  # neither of them is enough alone


# ---- Where the memory's ± covers the edge


@pytest.mark.parametrize(
    ("model", "machine", "more", "tensor"),
    [
        ("llama-3.1-70b", "h100", {"weights": "fp8"}, 1),
        ("qwen-3-14b", "rtx-5090", {"weights": "bf16"}, 1),
        ("qwen-3-32b", "rtx-4090-8", {"weights": "fp8"}, 2),
    ],
)
def test_what_may_not_fit_is_said_alike(
    model: str, machine: str, more: dict[str, str], tensor: int
) -> None:
    """Doubt is told by fit, plan, compare and a service, in text and JSON, and no other."""
    lengths = {"prompt": 1000, "generated": 200}
    fitted = device_memory.fit(model, machine, tensor=tensor, context=1200, **more)
    doubt = fitted.doubt
    asked = lengths | more | {"tensor": tensor}
    lines = {
        "plan": ([model, machine], asked),
        "compare": ([model, "--machines", machine], asked | {"devices": tensor}),
        "fit": ([model, machine], more | {"tensor": tensor, "context": 1200}),
    }
    assert doubt
    for command_, (words, options) in lines.items():
        answer = json.loads(doors.run(command_, *words, *doors.options(options), "--json"))
        assert doubt in answer["caveats"], command_
        text = doors.run(command_, *words, *doors.options(options), "--explain")
        assert doubt in " ".join(text.split()), command_
    assert ("may not fit" in doubt) is fitted.fits
    sure = calc.plan(model, "dgx-h200", **lengths, **more, devices=8)
    assert not any("may not fit" in caveat for caveat in sure.caveats)


def test_a_service_says_it_too() -> None:
    asked = {"weights": "fp8", "prompt": 1000, "generated": 200, "pools": "mixed"}
    limits = {"rate": 0.001, "ttft": "100 s", "tpot": "1 s", "requests": 100}
    planned = flatly(calc.plan_service, "llama-3.1-70b", "h100", **asked, **limits)
    assert planned.devices == 1
    fitted = device_memory.fit("llama-3.1-70b", "h100", weights="fp8", context=1200)
    assert fitted.doubt in planned.caveats


# ---- Fine-tuning


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_fine_tuning_at_two_doors(method: str) -> None:
    with each_row() as row:
        for model in ("llama-3-8b", "qwen-2-5-14b", "gemma-2-9b", "mixtral-8x7b"):
            with row(model):
                alone, planned = doors.tuned(model, 2048, method)
                assert planned.m_as("byte") == pytest.approx(alone.m_as("byte"), rel=1e-9)


# ---- What is planned can be true


@pytest.mark.slow
def test_what_is_planned_is_no_impossible_claim() -> None:
    """`check` finds possible what `plan` expects, in the claim's own words."""
    held = 0
    with each_row() as row:
        for question in doors.serving(draws(60), f"{SEED} claims"):
            with row(question):
                try:
                    planned = calc.plan(question.model, question.place, **question.asked)
                except InputError:
                    continue
                if not planned.fits or planned.expected is None:
                    continue
                rate = planned.expected.throughput.m_as("token/s")
                claim = (
                    f"{question.model} on {question.devices} {planned.device.key}: {rate:.4g}"
                    f" output token/s at {question.batch} users, prompts of {question.prompt},"
                    f" answers of {question.generated}"
                )
                assert calc.check(claim).possible, claim
                held += 1
    assert held > draws(10)


# ---- What a refusal suggests works


def refusal(ask: Callable[..., object], *about: Any, **options: Any) -> str:
    """The sentence; "" where there is an answer."""
    sentence = ""
    try:
        ask(*about, **options)
    except InputError as error:
        sentence = str(error)
    assert "\n" not in sentence
    return sentence


def offered(sentence: str, words: str) -> list[str]:
    """Return the names that a sentence lists after these words."""
    match = re.search(rf"{words} ((?:[\w.-]+(?:, | or |, or | and )?)+)", sentence)
    return re.split(r", or |, | or | and ", match[1]) if match else []


def layouts_that_are_offered(chance: random.Random) -> int:
    """Slices and copies that a model or a machine does not allow: each count that is offered."""
    question = next(doors.serving(1, str(chance.random())))
    machine, count = question.place, chance.choice([3, 5, 6, 7, 12, 48])
    lengths = {"prompt": 100, "generated": 10}

    def fit(count: int, **_: Any) -> object:
        return device_memory.fit(question.model, machine, tensor=count)

    def plan(count: int, **more: Any) -> object:
        return calc.plan(question.model, machine, devices=count, **lengths, **more)

    def step(count: int, **_: Any) -> object:
        job = calc.Job.of(question.model, machine, calc.Layout(tensor=count))
        return calc.step(job, calc.Tokens(writing=1))

    tried = 0
    for door in (fit, plan, step):
        sentence = refusal(door, count)
        more: dict[str, str] = {}
        if link := re.search(r'--link "([^"]+)"', sentence):
            more = {"link": link[1]}
            assert "link" not in (again := refusal(door, count, **more)), (sentence, again)
            tried += 1
        for fewer in offered(sentence, "take(?: at most)?"):
            if fewer.isdigit():
                again = refusal(door, int(fewer), **more)
                assert "take" not in again, (sentence, again)
                tried += 1
            elif fewer in machines.names():
                assert machines.get(fewer).most_joined > 1, sentence
                tried += 1
    return tried


def devices_that_are_offered(chance: random.Random) -> int:
    """Batches that are too large for a group of devices: the devices, and the batch, that hold."""
    question = next(doors.serving(1, str(chance.random())))
    lengths = {name: question.asked[name] for name in ("prompt", "generated")}

    def plan(**options: Any) -> str:
        return refusal(calc.plan, question.model, question.place, **lengths, **options)

    batch = int(10 ** chance.uniform(4, 7))
    sentence, tried = plan(batch=batch), 0
    if match := re.search(r"It fits on (\d+) devices? as TP(\d+) × (\d+)\.", sentence):
        count, tensor, copies = map(int, match.groups())
        assert count == tensor * copies
        ways = {"tensor": tensor, "copies": copies, "batch": batch}
        assert not plan(**ways), sentence
        assert calc.plan(question.model, question.place, **lengths, **ways).fits, sentence
        tried += 1
    if match := re.search(r"on (\d+) .*Batch (\d+) fits\.", sentence):
        ways = {"devices": int(match[1]), "batch": int(match[2])}
        assert calc.plan(question.model, question.place, **lengths, **ways).fits, sentence
        tried += 1
    return tried


def formats_that_are_offered(chance: random.Random) -> int:
    """Names that no release has: those that look like them, and some of those that there are."""
    weights = [name for name in doors.WEIGHTS if name and " " not in name]
    name = chance.choice(weights)
    index = chance.randrange(len(name))
    wrong = name[:index] + chance.choice("357xz") + name[index + chance.randint(0, 1) :]
    option = chance.choice(["weights", "kv"])
    sentence = refusal(device_memory.fit, "llama-3-8b", "h100", **{option: wrong})
    if "there is no format" not in sentence:
        return 0
    assert repr(wrong) in sentence
    names = offered(sentence, "did you mean")
    there = [other for other in offered(sentence, "there are") if other != "llama.cpp"]
    names += chance.sample(there, 3)
    for other in names:
        again = refusal(device_memory.fit, "llama-3-8b", "h100", **{option: other})
        assert "there is no format" not in again, (sentence, again)
    return len(names)


def runs_that_are_offered(chance: random.Random) -> int:
    """Runs of training that no layout cuts: the devices that are offered, or no degrees."""
    asked = next(doors.trainings(1, str(chance.random())))
    wrong = asked.asked | {"devices": chance.choice([7, 13, 48, 96]), "layout": "TP=5"}
    if chance.random() < 0.5:
        del wrong["layout"]

    def plan(**changed: Any) -> object:
        return flatly(calc.plan_training, asked.model, asked.place, **wrong | changed)

    sentence = refusal(plan)
    if "no layout cuts" not in sentence:
        return 0
    if "leave out" in sentence:
        again = refusal(plan, layout=None)
    else:
        [count] = offered(sentence, "take")[:1]
        again = refusal(plan, devices=int(count), layout=None)
    assert "no layout cuts" not in again, (sentence, again)
    return 1


def messages_that_are_offered(chance: random.Random) -> int:
    """Messages beyond the links of a machine: the devices, or the machine, that is offered."""
    asked = next(doors.messages(1, str(chance.random())))
    sentence = refusal(doors.time_of_message, asked)
    if not sentence:
        return 0
    others = [replace(asked, devices=1)] if "one device" in sentence else []
    for other in offered(sentence, "take(?: at most)?"):
        if other.isdigit():
            others.append(replace(asked, devices=int(other)))
        elif other in machines.names():
            others.append(replace(asked, place=other, devices=machines.get(other).domain))
    assert others, sentence
    for other in others:
        assert not refusal(doors.time_of_message, other), sentence
    return len(others)


OFFERS = (
    layouts_that_are_offered,
    devices_that_are_offered,
    formats_that_are_offered,
    runs_that_are_offered,
    messages_that_are_offered,
)


@pytest.mark.parametrize("offers", OFFERS, ids=lambda offers: offers.__name__)
def test_what_a_refusal_offers_works(offers: Callable[[random.Random], int]) -> None:
    """The first that are drawn, each offer tried."""
    chance, tried = random.Random("offers"), 0
    while tried < 2:
        tried += offers(chance)


@pytest.mark.slow
@pytest.mark.parametrize("offers", OFFERS, ids=lambda offers: offers.__name__)
def test_what_refusals_offer_works(offers: Callable[[random.Random], int]) -> None:
    """Many more of them."""
    chance = random.Random(f"{SEED} {offers.__name__}")
    with each_row() as row:
        for turn in range(draws(30)):
            with row(turn):
                offers(chance)


@pytest.mark.parametrize(
    ("line", "sentence", "instead"),
    [
        (
            "fit llama-3.1-8b 2xh100 --tensor 1",
            "write 'h100' with --tensor 1, or leave --tensor out",
            "fit llama-3.1-8b h100 --tensor 1",
        ),
        (
            "plan llama-3.1-8b 8xh100 --devices 4 --prompt 100 --generated 9",
            "write 'h100' with --devices 4, or leave --devices out",
            "plan llama-3.1-8b 8xh100 --prompt 100 --generated 9",
        ),
        (
            "plan llama-3.1-8b 8xh100,4xh200 --prompt 100 --generated 9",
            "--devices is one number for all machines",
            "compare llama-3.1-8b --machines 8xh100,4xh200 --prompt 100 --generated 9",
        ),
        (
            "plan llama-3.1-8b h100 --users 1e9 --prompt 100 --generated 9",
            "--users must be a whole number from 1 to 100000; got 1000000000",
            "plan llama-3.1-8b h100 --users 1e2 --prompt 100 --generated 9",
        ),
        (
            "plan llama-3.1-8b h100 --users 0 --prompt 100 --generated 9",
            "--users must be a whole number from 1; got 0",
            "plan llama-3.1-8b h100 --users 1 --prompt 100 --generated 9",
        ),
        (
            "plan-training llama-3.1-8b dgx-h100 --tokens 1B --sequences 8 --length 64",
            "takes one of devices, deadline and budget; got none",
            "plan-training llama-3.1-8b dgx-h100 --tokens 1B --sequences 8 --length 64 --devices 8",
        ),
    ],
)
def test_a_line_that_is_refused_is_told_what_works(line: str, sentence: str, instead: str) -> None:
    with pytest.raises(InputError) as refused:
        doors.run(*line.split())
    assert sentence in str(refused.value)
    assert "None" not in str(refused.value)
    assert doors.run(*instead.split())


def test_what_other_programs_call_it_is_answered_as_ours() -> None:
    """A machine where `compare` has an option, and the devices of what is fitted."""
    lengths = ["--prompt", 100, "--generated", 9]
    printed = doors.run("compare", "llama-3.1-8b", "--machines", "h100", *lengths)
    assert doors.run("compare", "llama-3.1-8b", "h100", *lengths) == printed
    fitted = doors.run("fit", "llama-3.1-8b", "h100", "--tensor", 2)
    for words in (["h100", "--devices", 2], ["h100", "--gpus", 2], ["2xh100"]):
        assert doors.run("fit", "llama-3.1-8b", *words) == fitted


def test_an_unknown_method_of_quantisation_is_named_with_what_works(tmp_path: Path) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 8192,
    }
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config | {"quantization_config": {"quant_method": "magic"}}))
    sentence = refusal(model_of, str(file))
    assert "'magic'" in sentence
    offer = re.search(r'weights="(\w+)"', sentence)
    assert offer, sentence
    file.write_text(json.dumps(config))
    assert device_memory.fit(model_of(str(file)), "h100", weights=offer[1]).fits
    for method in offered(sentence, "those of"):
        assert method.isidentifier() or "-" in method
