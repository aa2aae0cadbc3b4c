"""Looking things up: `calc list`, `calc show` and `calc search`."""

from __future__ import annotations

import argparse
import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeAlias, get_args, get_type_hints

import calc
from calc import formats
from calc.catalog import constants, engines, grids, hardware, machines, models, runs, software
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.commands import COMMANDS, command_parser
from calc.commands.command_output import answers
from calc.core.citations import citation
from calc.core.docstrings import PARAMETERS, docstring, parameters
from calc.core.errors import InputError, MissingExtraError, abbreviated
from calc.core.law import ARGUMENTS
from calc.core.names import spellings, squeezed
from calc.core.provenance import Provenance
from calc.core.records import Datum, source
from calc.core.report import Report, Table, fact_rows
from calc.core.synonyms import SYNONYMS
from calc.core.units import Quantity, quantity
from calc.laws import attention, training
from calc.networks import transformer

Facts: TypeAlias = dict[str, Any]
"""What is said of a thing, by names that stay."""


@cache
def _comparisons() -> dict[str, formats.TrainingFormat | formats.QuantizedModel]:
    """Published models in few bits beside themselves in more, trained so or quantised."""
    trained = {format_.key: format_ for format_ in formats.training_formats()}
    return {**trained, **{model.key: model for model in formats.quantized_models()}}


def _named(names: Callable[[], Iterable[str]], get: Callable[[str], object]) -> SimpleNamespace:
    """Return a namespace that looks names up as data are, where no module of `calc` does it."""
    return SimpleNamespace(
        names=lambda: tuple(names()),
        get=get,
        key_of=lambda name: spellings(dict.fromkeys(names(), ())).get(squeezed(name)),
    )


DATA: dict[str, Any] = {
    "constants": constants,
    "devices": hardware,
    "machines": machines,
    "software": software,
    "models": models,
    "runs": runs,
    "grids": grids,
    "formats": formats,
    "comparisons": _named(_comparisons, lambda key: _comparisons()[key]),
    "recipes": _named(lambda: training.RECIPES, training.recipe),
}
KINDS = (*DATA, "laws", "functions")
TITLES = (
    hardware.FIELDS
    | hardware.PEAKS
    | machines.FIELDS
    | runs.TITLES
    | software.TITLES
    | {dtype: dtype.upper() for dtype in hardware.DTYPES}
    | {"kept": "kept in more bits", "sense": "gap is stated as", "gap": "gap of the loss"}
    | {"token": "a token", "keys_and_values": "keys and values, in 16 bits"}
    | {"work": "forward pass, without attention"}
    | {"unsupported": "not supported by its matrix units", "links": "links to other devices"}
)
WITH_EXTRAS = ("simulation", "codesign", "measure", "derivations")
NOT_YET = "announced, and not to be had yet:"
WORD = re.compile(r"[^\W_]+")
EXAMPLES = re.compile(r"^(?:>>>|Examples$)", re.MULTILINE)  # what examples begin with
# Of a word that is found there.
WEIGHTS = {"name": 4.0, "title": 3.0, "also": 2.0, "note": 1.0, "text": 1.0}
# What is left of it where only the beginning, the look or the verb is the word's, or it is another.
BEGINNING, TYPO, OF_VERB, SYNONYM = 0.7, 0.5, 0.3, 0.65
SHORTEST_TYPO, ALIKE = 5, 0.78  # letters, and a ratio: shorter words look like too many others
SMALL_WORDS = frozenset(("a", "an", "and", "for", "in", "of", "on", "per", "the", "to", "with"))
MOST_FOUND = 20  # lines; JSON and CSV have all


def things(kind: str) -> Iterator[tuple[str, Any]]:
    """Yield all things of a kind, with their names."""
    if kind in DATA:
        names = (*DATA[kind].names(), *(hardware.announced() if kind == "devices" else ()))
        yield from ((name, DATA[kind].get(name)) for name in names)
    else:
        yield from (calc.all_laws() if kind == "laws" else functions()).items()


def functions() -> dict[str, Callable[..., Any]]:
    """The public functions beside the laws, in all modules that need nothing but pint."""
    laws = calc.all_laws()
    functions: dict[str, Callable[..., Any]] = {"plan": calc.plan}
    for module_name in filter(lambda module_name: module_name not in WITH_EXTRAS, calc.SUBMODULES):
        module = getattr(calc, module_name)
        for name, member in inspect.getmembers(module, inspect.isfunction):
            is_public = member.__module__.startswith(module.__name__) and not name.startswith("_")
            if is_public and f"{module_name}.{name}" not in laws and name not in functions:
                functions[f"{module_name}.{name}"] = member
    return functions


def entry(kind: str, name: str, thing: Any) -> Facts:
    """Return the line of a list for a thing: its kind, name and title."""
    more: Facts = {}
    if isinstance(thing, Quantity):
        assert thing.provenance is not None
        title, more = thing.provenance.title, {"quantity": thing}
    elif inspect.isfunction(thing):
        title = docstring(thing).split("\n")[0]
    elif isinstance(thing, training.Recipe):
        title = f"{thing.bytes_per_parameter}: {thing.breakdown}"
    elif kind == "comparisons":
        title = thing.title
    elif kind == "devices" and thing.announced:
        title, more = f"{thing.name}, announced", {"announced": True}
    else:
        family = f", {thing.family}" if isinstance(thing, models.Network) else ""
        title = f"{'training of ' if kind == 'runs' else ''}{thing.name}{family}"
    return {"kind": kind.removesuffix("s"), "name": name, "title": title} | more


def _line(row: Facts) -> str:
    return f"{row['quantity']}, {row['title']}" if "quantity" in row else str(row["title"])


def add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=KINDS, help="all where nothing is said")
    answers(parser, _list, table=True)


def _list(options: argparse.Namespace) -> Report:
    kinds = [options.what] if options.what else KINDS
    lists = {kind: [entry(kind, *thing) for thing in things(kind)] for kind in kinds}
    texts = {kind: _listed(rows) for kind, rows in lists.items()}
    if options.what:
        lines = texts[options.what]
    else:
        parts = [[f"{kind}:", *(f"  {line}" for line in text)] for kind, text in texts.items()]
        lines = "\n\n".join("\n".join(part) for part in parts).split("\n")
    return Report(lines, facts={"rows": [row for rows in lists.values() for row in rows]})


def _listed(rows: Iterable[Facts]) -> list[str]:
    """A line for each thing; what is announced stands below the others, under a heading."""
    lines = [(row["name"], _line(row), "announced" in row) for row in rows]
    there, announced = (
        Table([(name, line) for name, line, is_announced in lines if is_announced is wanted]).lines
        for wanted in (False, True)
    )
    return [*there, "", NOT_YET, *announced] if announced else there


def add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", help='such as "hbm latency"; what has all is first')
    answers(parser, _search, table=True)


def _search(options: argparse.Namespace) -> Report:
    words = " ".join(options.words)
    rows = search(words)
    if not rows:
        raise InputError(f"nothing is known of {abbreviated(words)}; `calc list` prints all names")
    lines = Table([(row["name"], row["kind"], _line(row)) for row in rows[:MOST_FOUND]]).lines
    if (more := len(rows) - MOST_FOUND) > 0:
        lines.append(f"and {more} more, which --json prints")
    return Report(lines, facts={"rows": rows})


def search(text: str) -> list[Facts]:
    """Return entries with most of these words, then those with them in a row, or in their names.

    A word that nothing has stands for those that look like it.
    """
    rows, words, phrases, vocabulary = _index()
    typed = list(dict.fromkeys(_words(text)))
    telling = [word for word in typed if word not in SMALL_WORDS] or typed
    wanted = [
        [
            (
                1.0 if phrase == word else SYNONYM,
                [_alike(part, vocabulary) for part in _words(phrase)],
            )
            for phrase in (word, *SYNONYMS.get(word, ()))
        ]
        for word in telling
    ]

    def score(index: int, alike: Mapping[str, float]) -> float:
        return max(
            WEIGHTS[part] * max((alike.get(word, 0.0) for word in in_part), default=0.0)
            for part, in_part in words[index].items()
        )

    scores = [
        [
            max(share * min(score(index, part) for part in phrase) for share, phrase in word)
            for word in wanted
        ]
        for index in range(len(rows))
    ]
    ranks = [
        (
            of_words.count(0.0),
            squeezed(text) not in phrases[index],
            -sum(of_words),
            len(words[index]["name"]),
            index,
        )
        for index, of_words in enumerate(scores)
        if any(of_words)
    ]
    return [rows[index] for *_, index in sorted(ranks)]


@cache
def _index() -> tuple[list[Facts], list[dict[str, set[str]]], list[str], set[str]]:
    """The rows of all that can be found; of each its words by their part, and each of its
    names squeezed into one word; and the words of all."""
    rows, words, phrases = [], [], []
    for row, parts in _searched():
        rows.append(row)
        texts = row | parts
        words.append({part: set(_words(texts.get(part, ""))) for part in WEIGHTS})
        names = (texts.get(part, "") for part in ("name", "title", "also"))
        phrases.append("|".join(map(squeezed, names)))
    vocabulary = {word for parts in words for in_part in parts.values() for word in in_part}
    return rows, words, phrases, vocabulary


def _searched() -> Iterator[tuple[Facts, dict[str, str]]]:
    """Yield commands, data, laws and functions, each with the texts in which it is searched."""
    for name, (_, purpose) in COMMANDS.items():
        yield {"kind": "command", "name": f"calc {name}", "title": purpose}, {"text": _asked(name)}
    for kind in KINDS:
        for name, thing in things(kind):
            parts = {"also": " ".join(models.also(name))} if kind == "models" else {}
            if kind in DATA:
                parts["note"] = " ".join(origin.note for origin in origins(facts_of(kind, thing)))
            else:
                arguments = " ".join(inspect.signature(thing).parameters)
                parts["text"] = f"{EXAMPLES.split(docstring(thing))[0]} {arguments}"
            yield entry(kind, name, thing), parts


def _asked(command: str) -> str:
    """The options of a command with their meanings, and the names of its arguments."""
    [parser] = [parser for parser in command_parser()[1] if parser.prog == f"calc {command}"]
    with suppress(MissingExtraError):  # its options are not known, and its purpose is
        parser.add_options()
    named = (f"{' '.join(action.option_strings)} {action.help}" for action in parser._actions)
    return " ".join(named)


def _words(text: str) -> list[str]:
    """The words of a text, in one spelling for both sides of the Atlantic."""
    return [word.replace("isation", "ization") for word in WORD.findall(text.lower())]


def _alike(word: str, vocabulary: Iterable[str]) -> dict[str, float]:
    """The known words that one stands for, in one number or the other, and how well."""
    stem = word.removesuffix("s") if len(word) > 4 and not word.endswith("ss") else word
    verb = stem.removesuffix("ing") if len(stem) > 6 else stem  # waiting: wait
    begun = {
        word_known: BEGINNING if word_known.startswith(stem) else OF_VERB
        for word_known in vocabulary
        if word_known.startswith(verb) and len(verb) > 2
    }
    exact = {word: 1.0} if word in vocabulary else {}
    if begun or exact or len(word) < SHORTEST_TYPO:
        return begun | exact
    return dict.fromkeys(difflib.get_close_matches(word, vocabulary, n=5, cutoff=ALIKE), TYPO)


def add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="a name that `calc list` prints, such as h100, or a .toml")
    answers(parser, lambda options: shown(options.name))


def shown(asked: str) -> Report:
    """Everything about what goes by that name, with sources."""
    name = asked.removeprefix("calc.")
    if hardware.is_file(name):
        return _shown(*_of_own_file(name))
    lookup = next(
        (_shown(kind, thing) for kind in DATA if (thing := _thing(kind, name)) is not None), None
    )
    lookup = lookup or _function(name) or _source(asked)
    if lookup is None:
        kinds = ", ".join(kind.removesuffix("s") for kind in KINDS[:-1])
        raise InputError(f"there is no {kinds} or function {abbreviated(asked)}; {_advice(name)}")
    run = _thing("runs", name) if lookup.facts["kind"] == "model" else None
    if run is None:
        return lookup
    trained = _shown("runs", run)
    both = f"{lookup.text()}\n\n{trained.text()}".split("\n")
    return Report(both, facts={**lookup.facts, "run": trained.facts})


def _thing(kind: str, name: str) -> Any:
    """The thing of that name, which its kind may spell otherwise."""
    key = DATA[kind].key_of(name)
    return None if key is None else DATA[kind].get(key)


def _of_own_file(name: str) -> tuple[str, Machine | Accelerator]:
    """The machine of one's own that a file holds, or its device, which is a machine of one."""
    machine = machines.get(name)
    if machine.domain > 1 or machine.all_records():
        return "machines", machine
    return "devices", machine.device


def _source(key: str) -> Report | None:
    """A source by its key, as answers name it."""
    if (cited := _cited(key)) == key:
        return None
    return Report([cited], facts={"kind": "source", "name": key, "title": cited})


def _advice(name: str) -> str:
    """The nearest names, where a function is also known by its name without the module."""
    spellings: dict[str, list[str]] = {}
    for full in (full for kind in KINDS for full, _ in things(kind)):
        for spelling in {full, full.split(".")[-1]}:
            spellings.setdefault(spelling, []).append(full)
    begun = [spelling for spelling in spellings if name and spelling.startswith(name.lower())]
    alike = begun or difflib.get_close_matches(name.lower(), spellings)
    close = [name] if name in spellings else alike[:3]
    nearest = dict.fromkeys(full for spelling in close for full in spellings[spelling])
    question = f"did you mean {' or '.join(nearest)}? " if nearest else ""
    return f"{question}`calc list` prints their names"


def _shown(kind: str, thing: Any) -> Report:
    """Return the report of a thing from its data, with their sources and notes."""
    facts = facts_of(kind, thing)
    if kind in ("constants", "grids"):
        return Report([str(thing), source(thing)], facts=entry(kind, thing.provenance.key, thing))
    year = f" ({thing.year})" if hasattr(thing, "year") and kind != "comparisons" else ""
    # Of software there may be no number, and then nothing to have a source.
    sources = {origin.source for origin in origins(facts)} or {getattr(thing, "source", "")} - {""}
    about = entry(kind, getattr(thing, "key", None) or thing.name, thing)
    below = [f"Source: {_cited(source)}" for source in sorted(sources)]
    below += [f"Note: {part.title}: {part.note}" for part in origins(facts) if part.note]
    if kind == "devices" and (machine := machines.of(thing)).rates:
        below.insert(0, f"What it was measured to reach: `calc show {machine.key}`")
    if kind == "devices" and (by := engines.visible_by(thing)):
        below.insert(0, f"Programs find {engines.visible(thing)} of its memory, {by}.")
    title, tables = [f"{about['title']}{year}"], [Table(fact_rows(facts, TITLES))]
    about |= {name: getattr(thing, name) for name in ("year", "source") if hasattr(thing, name)}
    return Report(title, tables, {"": below}, about | facts)


def origins(facts: Facts) -> list[Provenance]:
    """Return the provenance of facts and of their parts."""
    parts = [
        part
        for value in facts.values()
        for part in (value.values() if isinstance(value, Mapping) else [value])
    ]
    return [part.provenance for part in parts if getattr(part, "provenance", None)]


def _cited(named: str) -> str:
    """The source of that key; a device of one's own may name one that no bibliography has."""
    with suppress(InputError):
        return citation(named)
    return named


def facts_of(kind: str, thing: Any) -> Facts:
    """Return the facts of a thing in the data, and what follows at once, by names that stay."""
    if kind in ("constants", "grids"):
        return {"quantity": thing}
    if kind == "devices":
        facts: Facts = dict(thing.records)
        if "link_bandwidth" not in facts:
            facts["links"] = "none"
        if thing.unsupported:
            facts["unsupported"] = ", ".join(thing.unsupported).upper()
        rates = {name: peak for name, peak in thing.peaks.items() if peak}
        published = thing.dtypes if thing.publishes("memory_bandwidth") else ()
        return (
            facts
            | rates
            | {"ridge_point": {dtype: thing.ridge_point(dtype) for dtype in published}}
        )
    if kind == "machines":
        reached = {f"reached_{name}": rate for name, rate in thing.rates.items()}
        return {**thing.shape, **thing.records, **reached}
    if kind == "software":
        texts = filter(software.TEXTS.__contains__, software.TITLES)
        return {**_texts(thing, texts), **thing.records}
    if kind == "comparisons":
        named = ("format", "bits", "measure", "scales", "kept", "baseline", "sense", "read")
        return {**_texts(thing, named), **thing.records}
    if kind == "runs":
        return {"device": thing.device, **thing.records}
    names = [part.name for part in fields(thing)]
    if kind == "models":
        values = {name: getattr(thing, name) for name in names if name != "total"}
        numbers = {name: value for name, value in values.items() if isinstance(value, Datum)}
        counted = {"counted": thing.parameters, "published": thing.total}
        shape = thing.shape if isinstance(thing, models.Network) else {"layers_of": thing.kinds}
        release = getattr(thing, "released", None)
        shape = shape | ({} if release is None else {"released": release})
        counts = {**numbers, **shape, "parameters": {**thing.parts, **counted}}
        return counts | _of_a_token(thing) | _in_two_forms(thing)
    names += [name for name, _ in inspect.getmembers(type(thing), _is_property) if name[0] != "_"]
    values = {name: getattr(thing, name) for name in names if name not in ("name", "source")}
    published = {name: value for name, value in values.items() if value is not None}
    return {name: getattr(value, "name", value) for name, value in published.items()}


def _texts(thing: object, names: Iterable[str]) -> Facts:
    """Return the attributes of these names that are texts and not empty."""
    texts = {name: getattr(thing, name, "") for name in names}
    return {name: text for name, text in texts.items() if text}


def _of_a_token(model: models.Network) -> Facts:
    """Return the bytes that a token keeps in 16-bit numbers, and its forward FLOP at no context."""
    if not isinstance(model, models.Transformer):
        return {}
    work = {"work": transformer.forward_flops(model)}
    kept = {"keys_and_values": transformer.kv_cache_per_token(model)} if model.keeps_cache else {}
    return {"token": kept | work}


def _in_two_forms(model: models.Network) -> Facts:
    """Return the operations of a token in both forms of latent attention, and where they cross."""
    if not isinstance(model, models.Transformer) or model.kv_latent is None:
        return {}
    written = transformer.decode_matmuls(model, model.context)
    latent, rotary = model.kv_latent, model.rotary_width or quantity(0)
    return {
        "token_at_full_context": {
            "expanded_as_read": transformer.forward_flops(model, model.context),
            "absorbed_as_written": sum(part.operations for part in written) / quantity("1 token"),
            "expanded_from_queries": attention.latent_crossover(
                model.context, latent, model.key_width - rotary, model.head_value_width
            ),
        }
    }


def _is_property(member: object) -> bool:
    return isinstance(member, property)


def _function(name: str) -> Report | None:
    """A law or another function: the units of its arguments, and its docstring."""
    kind = "laws" if name in calc.all_laws() else "functions"
    function = dict(things(kind)).get(name)
    if function is None:
        return None
    hints: Facts = {}
    with suppress(NameError):  # of a type that only type checkers import: there are no units then
        hints = get_type_hints(function, include_extras=True)
    said = {
        argument: (*get_args(hints.get(argument)), "", "")[1]
        for argument in (*inspect.signature(function).parameters, "return")
    }
    units = {argument: unit if isinstance(unit, str) else "" for argument, unit in said.items()}
    result = units.pop("return")
    text = docstring(function)
    call = ", ".join(f"{name}: {unit}" if unit else name for name, unit in units.items())
    meanings = parameters(text)
    law = [
        (f"  {argument.name}", argument.symbol, meanings[argument.name])
        for argument in ARGUMENTS.get(name, [])
    ]
    told = PARAMETERS.sub("", text).rstrip() if law else text  # whose table says them
    return Report(
        [f"calc.{name}({call})", *Table(law).lines, "", *told.splitlines()],
        facts=entry(kind, name, function) | {"arguments": units, "result": result, "text": text},
    )
