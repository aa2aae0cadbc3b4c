"""Does it fit: what each of so many devices holds of a model that serves, or that trains."""

from __future__ import annotations

from calc import machines, models, training
from calc.core.units import QuantityLike
from calc.planning.capacity import joinable_slices, on_fewest_devices, with_tensor
from calc.planning.estimate import Estimate
from calc.planning.plan_nouns import Server
from figures.live.model import Answer, Axis, Choice, Count, Drawing, Model, doubling

SERVING = "serving"
FORMATS = ("released", "bf16", "fp8", "int8", "int4", "mxfp4", "nvfp4")
DEVICES = Axis("Devices that share it")
HELD = Axis("Memory of each device", "GB")
INPUTS = (
    Choice("model", "Model", "llama-3-1-70b", models.names()),
    Choice("machine", "Machine", "dgx-h100", machines.names()),
    Choice("recipe", "For", "adam-mixed", (SERVING, *training.RECIPES)),
    Choice("weights", "Weights, when serving", "bf16", FORMATS),
    Choice("kv", "Keys and values, when serving", "bf16", FORMATS[1:]),
    Count("context", "Context", "8192", 2, 10**7, unit="token"),
    Count("sequences", "Sequences at a time", "16", 1, 10**6),
)


def answer(
    model: str, machine: str, recipe: str, weights: str, kv: str, context: int, sequences: int
) -> Answer:
    """The parts of what each device holds, for each number of devices that may share it."""
    if recipe != SERVING:
        return _training(model, machine, recipe)
    device = machines.get(machine)
    counts: dict[str, QuantityLike] = {"batch": sequences, "prompt": context - 1, "generated": 1}
    setup = Estimate.read(model, device, counts, Server(weights, kv))
    rows = []
    for count in joinable_slices(setup):
        memory = with_tensor(setup, count)
        rows.append(("weights", str(count), HELD.of(memory.weight_memory)))
        rows.append(("the program besides", str(count), HELD.of(memory.capacity.beside)))
        rows.append(("keys and values", str(count), HELD.of(memory.cache_memory)))
    fewest = on_fewest_devices(setup)
    fits = f"{fewest.devices}" if fewest.fits else "more than can share it"
    facts = {
        "Fewest devices": fits,
        "Weights": str(setup.model_memory.to("GB")),
        "Keys and values": str(setup.cache_memory.to("GB")),
        "A device has": str(device.device.memory_capacity.to("GB")),
        "Of it, for a program": f"{setup.room.to('GB')}, {setup.software.title()}",
    }
    python = (
        f"import calc\n\nprint(calc.plan({model!r}, {machine!r}, prompt={context - 1}, generated=1,"
        f" batch={sequences}, weights={weights!r}, kv={kv!r}))"
    )
    command = (
        f"calc plan {model} {machine} --prompt {context - 1} --generated 1 --batch {sequences}"
        f" --weights {weights} --kv {kv}"
    )
    levels = [("what a program may use", HELD.of(setup.room))]
    caption = (
        f"{models.get(model).name} with {sequences} sequences of {context} tokens, divided among"
        f" devices of {device.name}: {'it fits on ' + fits if fewest.fits else 'it does not fit'}."
    )
    return Answer(rows, facts, caption, python, command, levels=levels)


def _training(model: str, machine: str, recipe: str) -> Answer:
    """The states of a training run, divided evenly; activations are the page of the layouts."""
    parameters = models.transformer(model).parameters
    parts = training.recipe(recipe).parts
    capacity = machines.get(machine).device.memory_capacity
    states = training.model_memory(parameters, training.recipe(recipe).bytes_per_parameter)
    fewest = -(-states // capacity).m_as("")
    rows = [
        (part, str(count), HELD.of(training.model_memory(parameters, size)) / count)
        for count in doubling(max(64, int(fewest)))
        for part, size in parts.items()
    ]
    facts = {
        "Parameters": str(parameters),
        "Of each": str(training.recipe(recipe).bytes_per_parameter),
        "All states": str(states.to("GB")),
        "A device has": str(capacity),
        "Fewest devices for states": f"{fewest:g}",
    }
    python = (
        "from calc import models, training\n\n"
        f"recipe = training.recipe({recipe!r})\n"
        f"print(training.model_memory(models.get({model!r}).parameters,"
        " recipe.bytes_per_parameter).to('GB'))"
    )
    caption = (
        f"The states of {models.get(model).name} in training, divided evenly among devices of"
        f" {machines.get(machine).name}; activations come on top."
    )
    return Answer(rows, facts, caption, python, levels=[("memory of a device", HELD.of(capacity))])


MODEL = Model("Does it fit", INPUTS, Drawing(DEVICES, HELD, "bar"), answer)
