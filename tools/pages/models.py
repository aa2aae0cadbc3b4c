"""Every model of the data, under a heading of its own, by which a search of the site finds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from calc import models, transformer
from calc.catalog.models import Network, Transformer
from calc.core.records import Datum
from calc.derivations.quoting import show
from tools.pages import bullets

FAMILIES: dict[str, type[Transformer] | type[Network]] = {
    "Transformers": Transformer,
    "Other networks": Network,
}
OPENING = """Every model of the data: its shape, its parameters as they are counted from it, and
what a sequence keeps of what was read, in two bytes a number. Whence each number comes,
[Where models and runs come from](../../backmatter/sources-models.qmd#sources-models) says;
`calc show KEY` prints it with all notes."""
WITHOUT_BRACKETS = str.maketrans("", "", "[]")  # of FLUX.1 [dev], which would begin a link
SHAPE = ("layers", "width", "heads", "kv_heads", "head_width", "feed_forward_width", "vocabulary")
EXPERTS = ("experts", "active_experts", "shared_experts", "expert_width")
LATENTS = ("query_latent", "kv_latent", "rotary_width", "window", "index_topk", "state_width")


def parts() -> Iterator[str]:
    """The text, paragraph by paragraph."""
    yield "## Every model {#models-every .unnumbered}"
    yield OPENING
    every = [models.get(key) for key in models.names()]
    for title, family in FAMILIES.items():
        yield f"### {title} {{#models-{title.split()[0].lower()} .unnumbered}}"
        for model in every:
            if isinstance(model, family):
                yield from _model(model)


def _model(model: Transformer | Network) -> Iterator[str]:
    yield f"#### {model.name.translate(WITHOUT_BRACKETS)} {{#models-{model.key} .unnumbered}}"
    if isinstance(model, Network):
        yield f"`{model.key}`, {model.year}, {model.family}"
        lines = tuple(_network(model))
    else:
        yield f"`{model.key}`, {model.year}"
        lines = tuple(_transformer(model))
    if called := models.also(model.key):
        lines = (*lines, f"also called {', '.join(called)}")
    yield bullets(filter(None, lines))


def _network(model: Network) -> Iterator[str]:
    numbers = {name: number for name, number in vars(model).items() if isinstance(number, Datum)}
    yield _told(numbers, (name for name in numbers if name != "total"))
    yield _parameters(model)


def _transformer(model: Transformer) -> Iterator[str]:
    kinds = ", ".join(f"{show(count)} {kind}" for kind, count in model.kinds.items())
    yield f"{_told(vars(model), SHAPE)}; of the layers {kinds}"
    yield _told(vars(model), EXPERTS)
    yield _told(vars(model), LATENTS)
    met = show(model.active_parameters, digits=4) if model.experts else ""
    yield _parameters(model) + (f"; a token meets {met}" if met else "")
    context = f"reads at most {show(model.context)} tokens"
    if model.caching_layers and model.output in ("own", "tied"):
        cache = transformer.kv_cache(model, model.context)
        context += f", of which {show(cache, digits=3)} are kept"
    yield context
    yield f"released in {model.released}" if model.released else ""


def _parameters(model: Transformer | Network) -> str:
    published = f", {show(model.total, digits=4)} published" if model.total is not None else ""
    return f"{show(model.parameters, digits=4)} counted{published}"


def _told(numbers: Mapping[str, Any], names: Iterable[str]) -> str:
    numbers_told = ((name, numbers.get(name)) for name in names)
    words = (
        (name.replace("_", " ").replace("kv", "KV"), value) for name, value in numbers_told if value
    )
    return ", ".join(f"{name} {show(value)}" for name, value in words)
