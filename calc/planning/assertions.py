"""Limits that plans must keep, from a file in a repository: `calc assert plan.toml`.

Each table of the file is a question to a planner, by the name of its command, with its options and
what must be so of the answer, by the names that `--json` prints:

    [[plan]]
    model = "llama-3-8b"
    hardware = "h100"
    prompt = 1000
    generated = 200
    must = ["fits", "devices == 1", "expected.time_per_token <= 10 ms"]
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pint import DimensionalityError

from calc.catalog.models.model_files import model_of
from calc.core.errors import InputError, abbreviated, did_you_mean
from calc.core.files import read_text
from calc.core.nouns import arguments_of, options_of
from calc.core.records import parse_toml
from calc.core.report import Reported, Table
from calc.core.units import Quantity, quantity
from calc.planning.comparing.compare import compare
from calc.planning.plan_files import option_names
from calc.planning.service import plan_service
from calc.planning.serving_plan import plan
from calc.planning.training import plan_training
from calc.steps.device_memory import fit

ASKED: Mapping[str, Callable[..., Any]] = {
    "plan": plan,
    "fit": fit,
    "compare": compare,
    "plan-service": plan_service,
    "plan-training": plan_training,
}
HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
LIMIT = re.compile(r"\s*([a-z][\w.]*)\s*(?:(<=|>=|==|<|>)\s*(\S.*?)\s*)?")
MUST = "must"


@dataclass(frozen=True)
class Held:
    """A limit beside what the answer has."""

    question: str
    limit: str
    found: str
    holds: bool


@dataclass(frozen=True, eq=False, repr=False)
class Assertions(Reported):
    """The limits of a file, each beside what its plan says."""

    path: str
    limits: tuple[Held, ...]

    @property
    def hold(self) -> bool:
        """True where all of them hold."""
        return all(limit.holds for limit in self.limits)

    @property
    def status(self) -> int:
        """Exit status of the command: 0 where all limits hold."""
        return 0 if self.hold else 1

    @cached_property
    def title(self) -> list[str]:
        """The count of limits that hold."""
        kept = sum(limit.holds for limit in self.limits)
        return [f"{self.path}: {kept} of {len(self.limits)} limits hold", ""]

    @cached_property
    def tables(self) -> list[Table]:
        """A row for each limit."""
        rows = [
            (limit.question, limit.limit, limit.found, "" if limit.holds else "BROKEN")
            for limit in self.limits
        ]
        return [Table([("of", "must", "is", ""), *rows])]

    @cached_property
    def facts(self) -> dict[str, Any]:
        """A row for each limit, for programs."""
        return {"hold": self.hold, "rows": [vars(limit) for limit in self.limits]}


def check_limits(path: Path | str) -> Assertions:
    """Return whether the plans of a file keep the limits that stand beside them.

    >>> from tempfile import TemporaryDirectory
    >>> text = '''[[plan]]
    ... model = "llama-3-8b"
    ... hardware = "h100"
    ... prompt = 1000
    ... generated = 200
    ... must = ["devices == 1", "time_per_token.lower <= 1 ms"]'''
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "plan.toml").write_text(text)
    ...     made = check_limits(Path(folder) / "plan.toml")
    >>> [(limit.limit, limit.found, limit.holds) for limit in made.limits]
    [('devices == 1', '1', True), ('time_per_token.lower <= 1 ms', '4.523 ms', False)]
    """
    limits = [
        held
        for name, tables in parse_toml(read_text(path), path).items()
        for place, table in enumerate(_tables(path, name, tables), 1)
        for held in _held(f"{path}: {name} {place}", name, table, Path(path).parent)
    ]
    if not limits:
        raise InputError(f"{path}: has no limits: a table [[plan]] has a list of them, {MUST}")
    return Assertions(str(path), tuple(limits))


def _tables(path: Path | str, name: str, tables: object) -> list[dict[str, Any]]:
    if name not in ASKED:
        near = did_you_mean(name, ASKED) or f"there are {', '.join(ASKED)}"
        raise InputError(f"{path}: there is no question {abbreviated(name)}; {near.strip()}")
    listed: list[Any] = tables if isinstance(tables, list) else [tables]
    if not all(isinstance(table, dict) for table in listed):
        raise InputError(
            f"{path}: {name} must be a table, as [[{name}]]; got {abbreviated(tables)}"
        )
    return listed


def _held(place: str, name: str, table: dict[str, Any], folder: Path) -> list[Held]:
    """The limits of a question beside its answer."""
    options, planner = dict(table), ASKED[name]
    wanted = options.pop(MUST, None)
    if not isinstance(wanted, list) or not all(isinstance(limit, str) for limit in wanted):
        raise InputError(
            f'{place}: {MUST} must be a list of limits, as ["fits", "devices <= 8"]; got'
            f" {abbreviated(wanted)}"
        )
    known = option_names(planner)
    for option in options:
        if option not in known:
            near = did_you_mean(option, known) or f"known are {', '.join(known)}"
            raise InputError(f"{place}: {name} has no option {option}; {near.strip()}")
    needed = (key for key, option in options_of(planner).items() if option.required)
    if missing := [key for key in needed if key not in options]:
        raise InputError(f"{place}: {name} needs {', '.join(missing)}")
    if name == "plan" and (several := [key for key, value in options.items() if _is_many(value)]):
        raise InputError(f"{place}: limits are of one plan, and {several[0]} has several values")
    asked = options.get("model")
    if isinstance(asked, str):
        options["model"] = model_of(asked, folder)
    try:
        facts = json.loads(planner(**arguments_of(planner, options)).json())
    except InputError as refused:
        raise InputError(f"{place}: {refused}") from None
    row = {**facts, **next(iter(facts.get("rows", ())), {})}
    question = f"{name} {table.get('model', table.get('models', ''))}".strip()
    return [_beside(place, question, row, limit) for limit in wanted]


def _is_many(value: object) -> bool:
    return isinstance(value, list) and len(value) > 1


def _beside(place: str, question: str, row: Mapping[str, Any], limit: str) -> Held:
    """One limit beside the number, the truth or the word that the answer has of that name."""
    read = LIMIT.fullmatch(limit)
    if read is None:
        raise InputError(
            f"{place}: a limit is a name, {' '.join(HOLDS)} and a value, as in devices <= 8; got"
            f" {abbreviated(limit)}"
        )
    name, sign, value = read.groups()
    found: Any = row
    for part in name.split("."):
        if found is None:  # as of what is expected where nothing is
            break
        if not isinstance(found, Mapping) or part not in found:
            names = [*found] if isinstance(found, Mapping) else []
            near = did_you_mean(part, names) or (f"there are {', '.join(names)}" if names else "")
            raise InputError(f"{place}: the answer has no {abbreviated(name)}; {near}".rstrip("; "))
        found = found[part]
    expected = row.get("expected")
    if isinstance(found, Mapping) and "lower" in found and isinstance(expected, Mapping):
        found = expected.get(name, found)  # of what has bounds, what is expected is meant
    if found is None:
        return Held(question, limit, "not known", False)
    if sign is None and isinstance(found, bool):
        return Held(question, limit, str(found), found)
    if isinstance(found, Mapping) and {"value", "unit"} <= found.keys():
        found = quantity(found["value"], found["unit"])
    if isinstance(found, Mapping | list):
        parts = f": name one of {', '.join(found)}" if isinstance(found, Mapping) else ""
        raise InputError(f"{place}: {name} is no single value{parts}")
    if sign is None or (sign != "==" and isinstance(found, bool | str)):
        how = (
            "== and a word" if isinstance(found, bool | str) else "one of <= >= < > == and a value"
        )
        raise InputError(f"{place}: {name} is {found}, held by {how}; got {abbreviated(limit)}")
    holds = HOLDS[sign](*_alike(place, name, found, value))
    shown = f"{found.to_compact():.4g}" if isinstance(found, Quantity) else str(found)
    return Held(question, limit, shown, bool(holds))


def _alike(place: str, name: str, found: Any, value: str) -> tuple[Any, Any]:
    """Return what was found and its limit as what can be compared: numbers, or words."""
    if isinstance(found, bool | str):
        return str(found).lower(), value.strip("\"'").lower()
    try:
        both = (found if isinstance(found, Quantity) else quantity(found, "")), quantity(value)
        return both[0].m_as(both[1].units), both[1].magnitude
    except (InputError, DimensionalityError) as error:
        raise InputError(f"{place}: {name} is {found}, and its limit {value}: {error}") from None
