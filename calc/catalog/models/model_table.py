"""Models by their key, from `data/models.toml`."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from calc.catalog.models import checkpoint_formats, ids
from calc.catalog.models.architecture import Transformer, check_transformer
from calc.catalog.models.convolutional import Convolutional
from calc.catalog.models.diffusion_transformer import CrossDiffusion, DiffusionTransformer
from calc.catalog.models.encoder_decoder_model import EncoderDecoder
from calc.catalog.models.networks import UNITS, Network, number_fields
from calc.catalog.models.recommender import Recommender
from calc.catalog.models.release import GROUPS, Release
from calc.catalog.models.unet import UNet
from calc.core.arguments import one_of
from calc.core.errors import InputError, abbreviated, marked
from calc.core.names import resolve, spellings, squeezed
from calc.core.provenance import Provenance
from calc.core.records import DATA, INHERITED, check_fields, read_record, read_toml, shared

FILE = DATA / "models.toml"
LISTING = "`calc list models` prints them all"
ACTIVE = re.compile(r"-a[\d-]+b$")  # parameters that a token meets, which names often leave out
NUMBER = re.compile(r"\d+(?:\.\d+)?")
FAMILIES: dict[str, type[Transformer | Network]] = {
    "transformer": Transformer,
    "convolutional": Convolutional,
    "encoder-decoder": EncoderDecoder,
    "diffusion": DiffusionTransformer,
    "cross-diffusion": CrossDiffusion,
    "u-net": UNet,
    "recommender": Recommender,
}
N = TypeVar("N", bound=Network)


def names() -> tuple[str, ...]:
    """The keys of all models.

    >>> "llama-3-8b" in names()
    True
    """
    return tuple(_tables())


def get(key: str) -> Any:
    """The model of that key or name, or of another name that it goes by.

    Case, spaces, "-", "_" and "." do not matter.

    It is a `Transformer`, or a network of another family: `Convolutional`, `EncoderDecoder`,
    `DiffusionTransformer`, `CrossDiffusion`, `UNet` or `Recommender`.

    The id of a checkpoint is that model with its weights in the format that the id says.

    >>> get("Llama_3_8B").name, get("openai/gpt-oss-120b").name
    ('Llama 3 8B', 'gpt-oss-120b')
    >>> print(get("Qwen/Qwen3-14B-AWQ").released)
    AWQ (feed-forward, attention) and BF16 (others)
    """
    is_of_id = isinstance(key, str) and (key_of(key) is None or bool(ids.read(key).form))
    if is_of_id and (by_id := _of_id(key)) is not None:
        return by_id
    return _get(resolve("model", key, _spellings(), LISTING))


@cache
def _of_id(name: str) -> Transformer | Network | None:
    """The model of a checkpoint's id, in the format that this says; None where it is of none."""
    meant = ids.read(name)
    key = key_of(meant.model) or key_of(name)
    if key is None:
        return None
    model = _get(key)
    if not meant.form or not isinstance(model, Transformer):
        return model
    if meant.form == "gguf":
        raise InputError(
            f"{name} has files of several formats: take {key} and say which, as in"
            f" {marked('weights', 'q4_k_m')}, or give the file"
        )
    held = checkpoint_formats.named(model, meant.form)
    assert held is not None  # since all that an id says are names of checkpoints
    release = Release(held.given, held.products, by_name=True)
    return shared(replace(model, name=f"{model.name} in {meant.form.upper()}", released=release))


def transformer(model: Transformer | str) -> Transformer:
    """The transformer itself, or that of a name.

    >>> print(transformer("llama-3-8b").layers)
    32
    """
    entry = get(model) if isinstance(model, str) else model
    if isinstance(entry, Network):
        raise InputError(
            f"a transformer of calc.models is needed here; got {entry.name}, {entry.family}:"
            f' calc.throughput.of("{entry.key or entry.name}", …) answers for it, and'
            " `calc throughput`"
        )
    check_transformer(entry)
    return entry


def network(model: N | str, family: type[N]) -> N:
    """The network of that family itself, or that of a name.

    >>> network("mobilenet-v2", Convolutional).name
    'MobileNetV2'
    """
    if not (isinstance(family, type) and issubclass(family, Network)):
        raise InputError(f"family must be one of calc.models; got {abbreviated(family)}")
    entry = get(model) if isinstance(model, str) else model
    if not isinstance(entry, family):
        name = getattr(entry, "name", abbreviated(entry))
        raise InputError(f"{family.family} of calc.models is needed here; got {name}")
    return entry


def key_of(name: str) -> str | None:
    """The key for a name as people write it; None where no model has it.

    >>> key_of("Llama 3 8B"), key_of("abacus")
    ('llama-3-8b', None)
    """
    return _spellings().get(squeezed(name))


def also(key: str) -> tuple[str, ...]:
    """Return the other names of a model, as those who publish it or measured it call it.

    >>> "Llama 3.3 70B" in also("llama-3-1-70b")
    True
    """
    resolved = resolve("model", key, _spellings(), LISTING)
    return tuple(_tables()[resolved].get("also", ()))


def called(asked: object, model: Transformer | str) -> str:
    """Return what a model that was asked for is called, and whose shape it takes if another's.

    Another model has a number in its name that is not in that of the table, or lacks one of it.

    >>> called("DeepSeek-R1", get("DeepSeek-R1"))
    'DeepSeek-R1, in the shape of DeepSeek-V3'
    >>> called("deepseek-ai/DeepSeek-V3", get("deepseek-v3"))
    'DeepSeek-V3'
    """
    model = transformer(model)
    if not isinstance(asked, str) or model.key not in _tables():
        return model.name
    names = (
        also for also in _tables()[model.key].get("also", ()) if squeezed(also) == squeezed(asked)
    )
    if (name := next(names, None)) is None:
        return model.name
    name = ids.read(name).model
    if {*NUMBER.findall(_tables()[model.key]["name"])} <= {*NUMBER.findall(name)}:
        return model.name
    return f"{name}, in the shape of {model.name}"


@cache
def _spellings() -> dict[str, str]:
    short = {key: ACTIVE.sub("", key) for key in _tables()}
    of_so_many = Counter(short.values())
    alone = {squeezed(name): key for key, name in short.items() if of_so_many[name] == 1}
    return alone | spellings(
        {
            key: (table["name"], *(part for also in table.get("also", ()) for part in _parts(also)))
            for key, table in _tables().items()
        }
    )


def _parts(name: str) -> tuple[str, ...]:
    """An id and what it is within its organisation."""
    return name, name.rpartition("/")[2]


@cache
def _tables() -> dict[str, Any]:
    return read_toml(FILE)


@cache
def _get(key: str) -> Transformer | Network:
    table = {name: value for name, value in _tables()[key].items() if name != "also"}
    family = table.pop("family", "transformer")
    one_of(f"{FILE}: {key}: family", family, FAMILIES)
    read_fields = FAMILIES[family]
    inherited = {name: table.pop(name) for name in INHERITED}
    allowed = {field.name for field in fields(read_fields)} - {"key", "notes"}
    numbers = {field.name for field in number_fields(read_fields)}
    check_fields(f"{FILE}: {key}", table, sorted(allowed))

    def read(name: str, value: object) -> Any:
        origin = inherited | {"title": table["name"]}
        if name == "released":
            return _release(value, f"{key}.{name}", origin)
        if name == "released_in" and isinstance(value, dict):
            return {
                form: _release(other, f"{key}.{name}.{form}", origin)
                for form, other in value.items()
            }
        if name not in numbers:  # a word or a list, whose source is that of the table
            return tuple(value) if isinstance(value, list) else value
        title = {"title": f"{name.replace('_', ' ')} of {table['name']}"}
        fields = value if isinstance(value, dict) else {"value": value}
        unit = {"unit": UNITS.get(name, "1")}
        return read_record(unit | fields, f"{key}.{name}", FILE, inherited | title).quantity

    try:
        values = {name: read(name, value) for name, value in table.items()}
        return shared(read_fields(key=key, **values))
    except (InputError, TypeError) as error:  # a word that is none, or a field that every model has
        raise InputError(f"{FILE}: {key}: {error}") from None


def _release(table: Any, key: str, inherited: dict[str, Any]) -> Release:
    """Return the formats in which the weights are released, with the source that says so."""
    check_fields(f"{FILE}: {key}", table, (*GROUPS, "products", "source", "note"))
    formats = {group: table[group] for group in GROUPS if group in table}
    origin = Provenance(
        key=key,
        title=f"formats of the weights of {inherited['title']}",
        kind=inherited["kind"],
        source=table.get("source", inherited["source"]),
        year=None,
        checked=inherited["checked"],
        note=table.get("note", ""),
    )
    return Release(formats, table.get("products", ""), origin)
