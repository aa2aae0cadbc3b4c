"""The words of a published row as its machine, its model, its format and its layout.

A name is read by `data/published/words.toml`, the same for all rows of all groups, before anything
is predicted. What no entry reads is not guessed: the row is listed with the name that is not known.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from calc.catalog import hardware, machines, models
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer, ids
from calc.core.errors import InputError, abbreviated
from calc.published.reading import WORDS, Row, UnusableRowError


def machine(row: Row) -> Machine:
    """The machine that a row's device stands in; of several machines, the one of its cloud."""
    text = row.device.lower()
    usual, count = _usual_machine(row, text), row.number("num_devices") or 0
    if count <= usual.domain:
        return usual
    system = f"{text} {row['system'] or ''}".lower().replace("_", " ")
    clouds = (
        machines.get(key) for pattern, key in WORDS["clouds"].items() if re.search(pattern, system)
    )
    same = (cloud for cloud in clouds if cloud.device.key == usual.device.key)
    if not usual.publishes("ports"):  # a larger one of the same device, where there is one
        wider = map(machines.get, machines.with_several(usual.device.key))
        usual = next((wide for wide in wider if wide.domain >= count), usual)
    return next(same, usual)


def _usual_machine(row: Row, text: str) -> Machine:
    """The machine that the device usually stands in."""
    if not (key := device_key(text)):
        raise UnusableRowError(f"the device {abbreviated(row.device)} is not known")
    try:
        return _machine(key)
    except InputError:
        raise UnusableRowError(f"the device {abbreviated(row.device)} has no data here") from None


def device_key(text: str) -> str:
    """The key of the device that a text in small letters names; "" where it names none.

    >>> device_key("nvidia h100 80 gb"), device_key("aws trainium2")
    ('h100', 'trainium2')
    """
    if (device := hardware.key_of(text)) is not None:
        return device
    for pattern, key in WORDS["devices"].items():
        if match := re.search(pattern, text):
            return match.expand(key).replace(" ", "-")
    return ""


@cache
def _machine(key: str) -> Machine:
    return machines.of(hardware.get(key))


def devices(row: Row) -> int:
    """Return how many devices worked."""
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
    meant = ids.read(name).model
    try:  # asked for by its key first: names near an unknown one take longer than all else
        is_known = models.key_of(meant) or models.key_of(ids.read(meant).model)
        model = models.get(meant) if is_known else None
    except InputError:
        model = None
    if model is None:
        raise UnusableRowError(f"the model {abbreviated(name)} is not known")
    if not isinstance(model, Transformer):
        raise UnusableRowError(
            f"{model.name} is {model.family}, whose rows are not judged here: `calc throughput"
            f" {model.key} DEVICE` says what is expected of it"
        )
    return model


def dtype(row: Row) -> str | None:
    """The format that products are computed in; None where the source does not say."""
    text, number_format = row["dtype"], format_of(row["dtype"])
    if number_format is None and text is not None and not str(text).startswith("not "):
        raise UnusableRowError(f"the format {abbreviated(text)} of its dtype is not known")
    return number_format


def format_of(text: object, kinds: tuple[str, ...] = ("formats",)) -> str | None:
    """The format that a source's words mean.

    >>> format_of("float8 (linear) + bf16"), format_of("amp_bf16"), format_of("not stated")
    ('fp8', 'bf16', None)
    """
    items = (item for kind in kinds for item in WORDS[kind].items())
    return next((name for words, name in items if re.search(words, str(text).lower())), None)


def cache_of(text: object) -> str | None:
    """The format, or the size, of keys and values that a source's words mean.

    >>> cache_of("fp8_e4m3"), cache_of("q4_0"), cache_of("auto"), cache_of("not stated")
    ('fp8', '4.5 bit', 'bf16', None)
    """
    return format_of(text, ("caches", "formats"))


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
