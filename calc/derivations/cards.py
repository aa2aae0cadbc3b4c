"""Cards of numbers: how each was made, of what, and so on down to the data.

A number of the data ends the tree with its source, a literal ends it as what an example was free to
choose.

    >>> from calc.derivations.roofline_chapter import DecodeStep
    >>> found = cards(DecodeStep.attainable)
    >>> found["DecodeStep.attainable"]["code"]
    'roofline.attainable(peak, bandwidth, intensity)'
    >>> found["DecodeStep.attainable"]["inputs"]["bandwidth"]
    'h100.memory_bandwidth'
    >>> found["h100.memory_bandwidth"]["kind"]
    'datasheet'
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from types import ModuleType
from typing import Any

import calc
from calc import curves, engine_sums, hardware, kernel_shares, machines, models, runs
from calc.core import formatting
from calc.core.citations import citation
from calc.core.law import ARGUMENTS, LAWS
from calc.core.units import Quantity, from_parts
from calc.derivations.deferred import settled
from calc.derivations.ledger import claims
from calc.derivations.places import anchor, page_of
from calc.derivations.recorded import File
from calc.derivations.traces import Made, Seen, Traced, bare, made_of, operands
from calc.published import Comparison, Row
from calc.published.reporting import Summary

Card = dict[str, Any]
Cards = dict[str, Card]

KINDS = {
    hardware.Accelerator: "device",
    machines.Machine: "machine",
    models.Transformer: "model",
    runs.Run: "run",
}
THINGS = (
    *KINDS,
    Comparison,
    Row,
    curves.Curve,
    engine_sums.Sums,
    kernel_shares.Surface,
    Summary,
    File,
)
LONGEST = 600  # characters of code that a reader takes in
SOURCES = "backmatter/sources.html#"
RUNS = "backmatter/sources-models.html#"
ROWS = "chapters/predicted-and-measured.html"  # where published rows stand beside predictions


SIGNS = {"+": "+", "-": "−", "*": "×", "/": "÷"}
BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "**": 4}  # how closely
MOST_PARTS = 5  # of a sum
MOST_INPUTS = 16
SYMBOL = re.compile(r"[^\W\d]\w*(?:\*|′)?")
OPERATORS = {" · ": " × ", " / ": " ÷ ", "-": "−"}
FUNCTIONS = {"min", "max", "log", "ln", "exp"}


def cards(value: Any) -> Cards:
    """The card of a row, and those of all that goes into it, by name.

    Each has a `value` and a `kind`. What is computed has its `code` and `inputs`, and a `sum` where
    it is one, with the `equation` where a law is called; what is read from the data has `title`,
    `source`, `cited`, `checked` and `note`. `row` is where the book explains it, `call` is Python
    that gives it, `by_hand` the arithmetic that agrees with it.
    """
    tree = _Tree()
    card = tree.found[tree.add(value, value.row_name)]
    if "source" not in card:
        card["claim"] = _claim(value.row_name)
        if card["kind"] == "computed" and (call := _call(value)):
            card["call"] = call
    if witness := by_hand(value):
        card["by_hand"] = witness
    return tree.found


def by_hand(value: Any) -> str:
    """Return what a result is by hand, as it is printed; "" of an input, and where nothing is."""
    row = value if value.witness is not None else _shown(value)
    witness = getattr(row, "witness", None)
    return "" if witness is None or is_given(value) else str(witness.told(row))


def cell_cards(name: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Cards:
    """The cards of the numbers in the rows of a table, which are called `name[row][column]`."""
    tree = _Tree()
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            value = getattr(cell, "of", cell)  # of what is shown
            if cell is None or isinstance(cell, str):
                continue
            address = f"{name}[{i}][{j}]"
            shown = _shown(value)
            if shown_name := _name(shown):
                tree.add(shown, shown_name)
                tree.found[address] = {"same": shown_name, "value": told(value)}
            elif made_of(shown):
                tree.add(shown, address)
            elif code := _listed_in(shown):
                tree.found[address] = {"value": told(value), "kind": "chosen", "code": code}
            else:
                tree.found[address] = _by_place(name, header[j], row)
    return tree.found


def _claim(row: str) -> str:
    return _first_sentences(claims(row.partition(".")[0]))


def _by_place(name: str, head: str, row: Sequence[Any]) -> Card:
    """A number of which nothing is known but where it stands: its column, its row, its claim."""
    subject = row[0] if isinstance(row[0], str) else ""
    note = f"{head}, {subject}." if subject else f"{head}."
    return {"kind": "computed", "note": note, "claim": _claim(name)}


def told(value: object) -> str:
    """A value in a few words; what is no number is called by its kind."""
    value = bare(value)
    if isinstance(value, Quantity):
        size = getattr(value.magnitude, "size", 1)
        return formatting.prose(value) if size == 1 else f"{size} values"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return formatting.prose(Quantity(float(value), ""))
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        return f"{len(value)} values"
    if value is None or isinstance(value, str | bool):
        return str(value)
    written = getattr(value, "markdown", "") or getattr(value, "name", "")
    return str(written) or _in_words(type(value).__name__)


def _first_sentences(documented: object) -> str:
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())


def _in_words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip("_")).lower()


def _shown(value: Any) -> Any:
    """Return the value in whose place this one stands, in whatever unit and under whatever name."""
    while made := made_of(value):
        if made.kind != "same" and (_name(value) or made.kind != "unit"):
            break
        (value,) = made.of
    return value


def _name(value: Any) -> str:
    """The name of the card that a row, a datum or a thing has of its own; "" of all others."""
    if (made := made_of(value)) and made.kind == "datum":
        return made.name
    if isinstance(value, Traced) and value.row_name:
        return "" if " " in value.row_name else value.row_name
    if type(value) is Seen and isinstance(value.thing, THINGS) and not _is_changed(made):
        thing = _thing(value.thing)
        kind = "" if isinstance(value.thing, File) else f"{thing['kind']} "
        return f"{kind}{getattr(value.thing, 'key', thing['value'])}"
    return ""


def _is_changed(made: Made | None) -> bool:
    """Return whether a thing is one of the data with another number, such as a longer context."""
    return made is not None and made.name.startswith(".with_")


class _Tree:
    """Cards by name, of a value and of all that it is made of."""

    def __init__(self) -> None:
        self.found: Cards = {}

    def add(self, value: Any, name: str) -> str:
        if name not in self.found:
            self.found[name] = {}  # for what refers to itself
            self.found[name] = self.card(value)
        return name

    def card(self, value: Any) -> Card:
        shown = _shown(value)
        if type(shown) is Seen and isinstance(shown.thing, THINGS):
            return _thing(shown.thing)
        made = made_of(shown)
        if made and made.kind == "datum":
            return _datum(bare(shown))
        if shown is not value and _name(shown):  # another name of it
            return self.found[self.add(shown, _name(shown))]
        inputs = dict(islice(self.inputs(shown), MOST_INPUTS + 1))
        if len(inputs) > MOST_INPUTS:  # which nobody reads
            inputs.popitem()
        code = _code(shown)
        card: Card = {
            "value": told(value),
            "kind": "computed" if made or not _is_chosen(shown) else "chosen",
            "code": code if len(code) <= LONGEST else f"{code[:LONGEST]} …",
        }
        of = [self.found[name].get("kind") for name in inputs.values()]
        if made and made.kind == "part" and len(of) == 1 and of[0] in KINDS.values():
            card["kind"] = "read"
        if inputs:
            card["inputs"] = inputs
        if numbers := _sum(value):
            card["sum"] = numbers
        return card | _law(made)

    def inputs(self, value: Any) -> Iterator[tuple[str, str]]:
        """Yield the operands that have a card of their own, each by its name there."""
        waiting = deque([value])
        first = True
        seen: set[Made] = set()
        while waiting:
            part = waiting.popleft()
            if not first and (name := _name(part)):
                yield _label(part, value), self.add(part, name)
            elif made := made_of(part):
                if made in seen:
                    continue
                seen.add(made)
                waiting.extendleft(reversed([*operands((*made.of, *made.given.values()))]))
            elif first and isinstance(part, Traced) and part.row_name:
                yield from self.written(part.row_name)
            first = False

    def written(self, row: str) -> Iterator[tuple[str, str]]:
        """The rows that the line of a row names, of whose value no more is known."""
        owner = claims(row.partition(".")[0])
        for node in ast.walk(_line(row)):
            of, name = owner, ""
            match node:
                case ast.Name(id=name):
                    pass
                case ast.Attribute(value=ast.Name(id=other), attr=name) if other[0].isupper():
                    of = vars(sys.modules[owner.__module__]).get(other, owner)
            part = settled(vars(of).get(name)) if isinstance(of, type) else None
            called = ast.unparse(node).replace("._", ".").strip("_")
            if isinstance(part, classmethod | staticmethod):
                method = f"{of.__name__}.{name}"
                note = _first_sentences(part.__func__)
                self.found[method] = {"value": "", "kind": "computed", "code": name, "note": note}
                yield called, method
            elif isinstance(part, Traced) and part.row_name != row and _name(part):
                yield called, self.add(part, _name(part))


def _label(part: Any, within: Any) -> str:
    """Return the name of a row, a datum or a thing in the line of another."""
    if isinstance(part, Traced) and part.row_name and " " not in part.row_name:
        owner, _, name = part.row_name.partition(".")
        class_name = getattr(within, "row_name", "").partition(".")[0]
        name = name.strip("_")
        return name if owner == class_name else f"{owner}.{name}"
    made = made_of(part)
    if made and made.kind == "datum":
        return made.name if "." in made.name else f"constants.{made.name}"
    thing = getattr(part, "thing", part)
    if isinstance(thing, File):
        return thing.name.rpartition("/")[2]
    key = str(getattr(thing, "key", "") or _thing(thing)["value"])
    return key if " " in key else key.replace("-", "_")


# --- code ---


def _code(value: Any) -> str:
    """The expression that gives a value, of the names of rows, data and things."""
    made = made_of(value)
    if made is None:
        if isinstance(value, Traced) and value.row_name:
            return ast.unparse(_line(value.row_name)).replace("'", '"')
        return _literal(value, str)
    written: dict[Made, str] = {}

    def code(part: Any) -> str:
        if _name(part):
            return _label(part, value)
        if (its := made_of(part)) is None:
            return _literal(part, code)
        if its not in written:
            text = _written(its, code)
            written[its] = text if len(text) <= LONGEST else "…"
        return written[its]

    return _written(made, code)


def _written(made: Made, code: Callable[[Any], str]) -> str:
    parts = [code(part) for part in made.of]
    arguments = [f"{name}={code(part)}" for name, part in made.given.items()]
    match made.kind:
        case "same":
            return parts[0]
        case "unit" if made.name.startswith("quantity"):
            return made.name.replace("(", f"({parts[0]}, ")
        case "unit":
            return f"{_bracketed(made.of[0], parts[0], 9)}.{made.name}"
        case "part":
            dot = "" if made.name.startswith("[") else "."
            return f"{_bracketed(made.of[0], parts[0], 9)}{dot}{made.name}"
        case "call" if made.name.startswith("."):
            return f"{parts[0]}{made.name}({', '.join([*parts[1:], *arguments])})"
        case "call":
            return f"{made.name}({', '.join([*parts, *arguments])})"
    if len(parts) == 1 or made.name not in BINDS:
        return (
            f"-{_bracketed(made.of[0], parts[0], 3)}"
            if made.name == "-"
            else f"{made.name}({', '.join(parts)})"
        )
    binding = BINDS[made.name]
    first, *others = zip(made.of, parts, strict=True)
    closer = binding + (made.name != "+" and made.name != "*")
    texts = [_bracketed(*first, binding), *(_bracketed(*other, closer) for other in others)]
    return f" {made.name} ".join(texts)


def _bracketed(value: Any, code: str, binds: int) -> str:
    made = made_of(value)
    loose = made is not None and made.kind == "arithmetic" and " " in code
    return f"({code})" if loose and BINDS.get(made.name, 9) < binds else code  # type: ignore[union-attr]


def _literal(value: Any, code: Callable[[Any], str]) -> str:
    plain = bare(value)
    if isinstance(plain, Quantity):
        return (
            f'quantity("{plain:.9g}")' if getattr(plain.magnitude, "size", 1) == 1 else told(plain)
        )
    if issubclass(type(value), list | tuple):
        return f"[{', '.join(map(code, value))}]"
    if isinstance(plain, str):
        return f'"{plain}"'
    if isinstance(plain, int | float) or plain is None:
        return repr(plain)
    return told(plain)


class _AtOnce(ast.NodeTransformer):
    """Code as it would be written where nothing was deferred."""

    def visit_Call(self, node: ast.Call) -> ast.AST:  # as ast has it
        self.generic_visit(node)
        deferred = isinstance(node.func, ast.Name) and node.func.id == "deferred"
        return node.args[0] if deferred else node


@cache
def _lines(module: ModuleType) -> dict[str, ast.AST]:
    """The code of each line of the classes of a module, by the name of its row."""
    nodes: dict[str, ast.AST] = {}
    classes = (
        each for each in ast.parse(inspect.getsource(module)).body if isinstance(each, ast.ClassDef)
    )
    for owner in classes:
        for line in owner.body:
            if isinstance(line, ast.Assign | ast.AnnAssign) and line.value is not None:
                targets = line.targets if isinstance(line, ast.Assign) else [line.target]
                names = [node.id for node in ast.walk(targets[0]) if isinstance(node, ast.Name)]
                code = line.value
                while isinstance(code, ast.BinOp) and isinstance(code.op, ast.BitOr):
                    code = code.left
                code = _AtOnce().visit(code)
                apart = (
                    code.elts
                    if len(names) > 1 and isinstance(code, ast.Tuple)
                    else [code] * len(names)
                )
                nodes |= {
                    f"{owner.name}.{name}": part for name, part in zip(names, apart, strict=False)
                }
    return nodes


def _line(row: str) -> ast.AST:
    owner, _, name = row.partition(".")
    for base in claims(owner).__mro__[:-2]:  # without Claims and object
        if code := _lines(sys.modules[base.__module__]).get(f"{base.__name__}.{name}"):
            return code
    return ast.Constant(None)


def _listed_in(value: Any) -> str:
    """Return the name of the row whose line lists this number with others; "" of all others."""
    row, _, position = getattr(value, "row_name", "").partition(" ")
    try:
        ast.literal_eval(_line(row) if position else "")
    except (ValueError, SyntaxError):  # computed, or none
        return ""
    return str(row)


def line_of(row: str) -> int:
    """The line of its file where a row stands."""
    return int(getattr(_line(row), "lineno", 0))


def is_given(value: Any) -> bool:
    """Return whether a row is an input: chosen, read from the data, or another name of one."""
    shown = _shown(value)
    made = made_of(shown)
    if shown is not value:
        return is_given(shown)
    if type(shown) is Seen or (made and made.kind == "part" and type(made.of[0]) is Seen):
        thing = shown.thing if type(shown) is Seen else made.of[0].thing  # type: ignore[union-attr]
        return isinstance(thing, tuple(KINDS))
    return made.kind == "datum" if made else _is_chosen(shown)


def _is_chosen(value: Any) -> bool:
    """Return whether an example was free to choose it: a number, with a unit or without."""
    if not (isinstance(value, Traced) and value.row_name):
        return not isinstance(value, Traced)
    names = [node.id for node in ast.walk(_line(value.row_name)) if isinstance(node, ast.Name)]
    return all(name == "quantity" for name in names)


# --- sums ---


def _sum(value: Any) -> str:
    """A computed value as the sum that a reader would write; "" where it is none to be read."""
    made, unit = made_of(value), ""
    while made and made.kind in ("unit", "same"):
        if made.name.startswith("quantity("):  # of a sum of numbers
            unit = made.name.split('"')[1]
        (value,) = made.of
        made = made_of(value)
    if made and made.kind == "call":
        return _sum_of_law(made)
    if not made or made.kind != "arithmetic":
        return ""
    parts: list[str] = []
    text = _operand(value, 0, parts, top=True)
    whole = 1 < len(parts) <= MOST_PARTS and "" not in parts
    if made.name == "-" and whole and abs(bare(value)) < 0.05 * abs(bare(made.of[0])):
        return ""  # the printed digits of a difference would not show it
    if whole and unit not in ("", "%"):
        _, printed = formatting.prose(Quantity(1.0, unit)).split("\N{NO-BREAK SPACE}", 1)
        text = f"({text}) {printed}" if made.name in "+-" else f"{text} {printed}"
    return text if whole else ""


def _operand(value: Any, outer: int, parts: list[str], top: bool = False) -> str:
    made = made_of(value)
    own_card = not top and bool(_name(value))
    if (
        made
        and made.kind == "arithmetic"
        and made.name in SIGNS
        and len(made.of) > 1
        and not own_card
    ):
        sign, binding = SIGNS[made.name], BINDS[made.name]
        first, *others = made.of
        texts = [_operand(first, binding, parts)]
        texts += [_operand(other, binding + (sign in "−÷"), parts) for other in others]
        text = f" {sign} ".join(texts)
        return f"({text})" if binding < outer else text
    parts.append(_told_number(value))
    return parts[-1]


def _told_number(value: object) -> str:
    """A number as it is printed; "" of what is none."""
    value = bare(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Quantity):
        return ""
    number = value if isinstance(value, Quantity) else Quantity(float(value), "")
    return "" if getattr(number.magnitude, "size", 1) != 1 else formatting.prose(number)


def _sum_of_law(made: Made) -> str:
    """The right side of a law's equation with its arguments' values; "" where a symbol has none."""
    if made.name not in LAWS:
        return ""
    law = LAWS[made.name]
    stated = re.search(
        r"^Equation: [^=\n]+ = ([^=,≥≤<>\n]+(?:\([^()\n]*\))?)$",
        inspect.getdoc(law) or "",
        re.MULTILINE,
    )
    bound = inspect.signature(law).bind(*made.of, **made.given)
    bound.apply_defaults()
    values: dict[str, str] = {}
    for argument in ARGUMENTS[made.name]:
        magnitude = argument.magnitude(bare(bound.arguments[argument.name]))
        if isinstance(magnitude, float):
            values[argument.symbol] = _told_number(from_parts(magnitude, argument.units))
    if stated is None or not values:
        return ""
    right = stated[1]
    hidden = [
        str(each.default)
        for each in inspect.signature(inspect.unwrap(law)).parameters.values()
        if each.name.startswith("_")
    ]
    for default in hidden:  # numbers of the equation that have a unit
        number, _, unit = default.partition(" ")
        right, placed = re.subn(
            rf"(?<![\w.]){number}(?![\w.])", f"{number}\N{NO-BREAK SPACE}{unit}", right, count=1
        )
        if not placed:
            return ""
    units = {word for default in hidden for word in SYMBOL.findall(default)}
    if {*SYMBOL.findall(right)} - units - values.keys() - FUNCTIONS:
        return ""
    for written, printed in OPERATORS.items():
        right = right.replace(written, printed)
    return SYMBOL.sub(lambda symbol: values.get(symbol[0], symbol[0]), right)


def _law(made: Made | None) -> Card:
    """The equation of the law that was called, and where the book explains it."""
    while made and made.kind in ("unit", "same", "part") and made.of:
        made = made_of(made.of[0])
    if made is None or made.kind != "call" or made.name not in LAWS:
        return {}
    text = inspect.getdoc(LAWS[made.name]) or ""
    equation = re.search(r"^Equation: (.*)", text, re.MULTILINE)
    module, _, function = made.name.partition(".")
    row = f"reference/calc/{module}.html#calc-{module}-{function}"
    return {"equation": equation[1] if equation else "", "row": row}


# --- the call that a reader can run ---


class _CannotBeWritten(Exception):  # noqa: N818
    """A part of an expression is no number, so that its value cannot stand in its place."""


def _call(value: Any) -> str:
    """Python that gives a value again, from numbers that a reader may change; else ""."""
    modules: set[str] = set()
    made = made_of(value)
    while made and made.kind == "same":
        made = made_of(made.of[0])
    if made is None:
        return ""

    def filled(part: Any) -> str:
        """A part of an expression, with values in the place of its names."""
        plain: Any = bare(part)
        its = made_of(part)
        changed = _is_changed(its)
        if type(part) is Seen and type(plain) in KINDS and _name(part) and not changed:
            module = type(plain).__module__.split(".")[2]
            modules.add(module)
            return f'{module}.get("{plain.key}")'
        if its and (changed or not _name(part)):
            _import(its, modules)
            text = _written(its, filled)
            if len(text) > LONGEST:
                raise _CannotBeWritten
            return text
        if isinstance(plain, Quantity):
            if getattr(plain.magnitude, "size", 1) != 1:
                raise _CannotBeWritten
            modules.add("quantity")
        elif not (isinstance(plain, str | int | float | list | tuple) or plain is None):
            raise _CannotBeWritten
        return _literal(part, filled)

    try:
        _import(made, modules)
        code = _written(made, filled)
    except _CannotBeWritten:
        return ""
    lines = ["import math\n"] if "math" in modules else []
    if imported := ", ".join(sorted(modules - {"math"})):
        lines.append(f"from calc import {imported}\n")
    return "".join(f"{line}\n" for line in lines) + f"print({code})\n"


def _import(made: Made, modules: set[str]) -> None:
    """Notes what an expression needs of calc; what is not public cannot be written."""
    if made.kind == "unit" and made.name.startswith("quantity"):
        modules.add("quantity")
    if made.name.startswith("math."):
        modules.add("math")
    if made.kind == "call" and not made.name.startswith("."):
        module, _, function = made.name.partition(".")
        if not hasattr(getattr(calc, module, None), function):
            raise _CannotBeWritten
        modules.add(module)


# --- data and things ---


def _datum(value: Any) -> Card:
    """The card of a number of the data files."""
    provenance = value.provenance
    key, _, name = provenance.key.partition(".")
    return {
        "value": told(value),
        "kind": provenance.kind,
        "title": provenance.title,
        "source": provenance.source,
        "cited": provenance.cited,
        "checked": f"{provenance.checked:%Y-%m-%d}",
        "note": provenance.note,
        "row": _row(key, name) if name else f"{SOURCES}{anchor(key)}",
    }


def _thing(value: Any) -> Card:
    """A device, a machine, a model or a run, by its name; its numbers have sources of their own.

    What others measured has its source, and several rows the page that holds them to calc.
    """
    match value:
        case Comparison(row=row):
            return _thing(row)
        case File():
            return {"value": value.name, "kind": value.kind}
        case Row():
            return _measured(f"row {value.id}: {value.device}, {value.software}", value.source)
        case curves.Curve():
            return _measured(f"curve {value.name}, {value.software}", value.source)
        case engine_sums.Sums() | kernel_shares.Surface():
            return _measured(str(value), kernel_shares.SOURCE)
        case Summary():
            rows = f"{value.expected} published rows: {value.of}"
            return {"value": rows, "kind": "measured", "row": ROWS}
    return {"value": value.name, "kind": KINDS[type(value)], "row": _row(value.key)}


def _measured(name: str, source: str) -> Card:
    cited = {"source": source, "cited": citation(source)} if source else {}
    return {"value": name, "kind": "measured"} | cited


def _row(key: str, field: str = "") -> str:
    """Return the place where the book prints the data of a device, a machine, a model or a run."""
    if key in (*hardware.names(), *hardware.announced()):
        page = page_of(hardware.get(key))
    elif key in machines.names():
        page = page_of(machines.get(key))
    elif key in models.names():
        return f"{page_of(models.get(key))}.html"  # whose rows hold several numbers
    else:
        return f"{RUNS}{key}" if key in runs.names() else ""
    return f"{page}.html" + (f"#{anchor(f'{key}.{field}')}" if field else "")
