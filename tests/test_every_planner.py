"""Every planner for every model and every machine of the catalogue: an answer or a sentence.

Each model meets drawn places and each place drawn models, `BATTERY_SEED=7 pytest -m slow` others.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator

import pytest

import calc
from calc import InputError, curves, hardware, machines, models, throughput
from calc.core.report import Reported
from calc.steps import device_memory
from tests import doors
from tests.calc.flatly import flatly
from tests.calc.odd_values import SEED
from tests.draws import draws
from tests.rows import each_row

LENGTHS = {"prompt": 100, "generated": 20}
SLOW = {"ttft": "10 s", "tpot": "1 s"}
NO_NUMBER = re.compile(r"\b(nan|inf|None|infinite)\b")
# Numbers of a device without which nothing can be said of a pass, and what a refusal calls them.
NEEDED = re.compile(r"^(\S+ dense peak|memory capacity|memory bandwidth) of .* is unpublished: ")


def train(model: str, machine: str) -> Reported:
    length = min(512, getattr(models.get(model), "context", 512))
    devices = int(min(8, machines.of(machine).most_joined))
    asked = {"tokens": "1B", "sequences": 64, "length": length, "devices": devices}
    return flatly(calc.plan_training, model, machine, **asked)


def collective(model: str, machine: str) -> str:
    """Return the collective that the command prints: of a token's vectors, on all devices."""
    size = f"{2 * getattr(models.get(model), 'width', 1024)} byte"
    operation = random.Random(model).choice(curves.OPERATIONS)
    return doors.run("collective", operation, size, machine)


PLANNERS: dict[str, Callable[[str, str], object]] = {
    "plan": lambda model, place: calc.plan(model, place, **LENGTHS),
    "fit": device_memory.fit,
    "throughput": throughput.of,
    "check": lambda model, place: calc.check(f"{model} on {place}: 500 token/s at 8 users"),
    "collective": collective,
    "compare": lambda model, place: calc.compare(model, place, **LENGTHS),
    "plan_training": train,
    "plan_service": lambda model, place: flatly(
        calc.plan_service, model, place, rate=1, requests=100, **LENGTHS, **SLOW
    ),
    "break_even": lambda model, place: calc.break_even(
        model, place, price="2 USD/hour", api="groq-gpt-oss-20b", **LENGTHS, **SLOW
    ),
}
SEARCHED = ("compare", "plan_training", "plan_service", "break_even")


def answered(planner: str, model: str, machine: str) -> bool:
    """Return whether there is an answer, with whole text and JSON, or a refusal in a sentence."""
    try:
        answer = PLANNERS[planner](model, machine)
        texts = [str(answer)]
        if isinstance(answer, Reported):
            texts += [answer.text(), answer.explain()]
            json.loads(answer.json(), parse_constant=pytest.fail)
    except InputError as error:
        sentence = str(error)
        assert sentence, "a refusal without a word"
        assert "\n" not in sentence, sentence
        assert not NO_NUMBER.search(sentence), sentence
        assert "is unpublished" not in sentence or NEEDED.match(sentence), sentence
        return False
    for text in texts:
        assert not (match := NO_NUMBER.search(text)), text[max(match.start() - 200, 0) :][:400]
    return True


def pairs(times: int, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Each model on so many places, and each place with so many models."""
    shapes, places = models.names(), (*machines.names(), *hardware.names())
    yield from {
        *((model, machine) for model in shapes for machine in chance.sample(places, times)),
        *((model, machine) for machine in places for model in chance.sample(shapes, times)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("planner", PLANNERS)
def test_every_model_and_every_machine(planner: str) -> None:
    """Some 280 pairs of each planner, or as many of them as are drawn."""
    count, drawn = 0, sorted(pairs(1, random.Random(f"{SEED} {planner}")))
    searched = planner in SEARCHED
    with each_row() as row:
        for model, machine in random.Random(planner).sample(drawn, draws(len(drawn), searched)):
            with row(f"{planner} {model} {machine}"):
                count += answered(planner, model, machine)
    assert count > draws(10, searched), "next to nothing is answered"


@pytest.mark.parametrize("planner", PLANNERS)
def test_some_models_on_some_machines(planner: str) -> None:
    drawn = sorted(pairs(1, random.Random(f"{SEED} {planner}")))
    with each_row() as row:
        for model, machine in random.Random(planner).sample(drawn, 2):
            with row(f"{planner} {model} {machine}"):
                answered(planner, model, machine)


def test_a_published_run_that_does_not_say_its_devices() -> None:
    planned = flatly(
        calc.plan_training,
        "llama-3-1-8b",
        "dgx-h100",
        tokens="1B",
        sequences=8,
        length=512,
        devices=8,
    )
    assert "As published, Llama 3.1 8B took" in planned.explain()


def test_training_without_an_output_matrix() -> None:
    """ModernBERT's own layers end without one, and no logits are passed over."""
    assert calc.step(calc.Job.of("modernbert-base", "dgx-h100"), calc.Batch(512)).expected
    assert calc.step(calc.Job.of("bert-base", "dgx-h100"), calc.Batch(512)).expected


def test_a_comparison_without_price_and_power() -> None:
    """No cost and no energy is known: there is a table, and no front."""
    comparison = calc.compare("llama-3-8b", "tpu-v5e", **LENGTHS)
    assert comparison.paid == ""
    assert not comparison.front
    assert "tpu-v5e" in comparison.text()
    with pytest.raises(InputError, match="neither a price is given nor a power"):
        comparison.draw()
