"""The reference of the library: a page for each module of `calc`, from what griffe reads of it."""

from __future__ import annotations

import ast
import builtins
import doctest
import math
import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import griffe

import calc
from calc.core import law
from calc.core.docstrings import parameters
from calc.core.law import ARGUMENTS, POSITIVE, Range
from tools.pages import ROOT, generated
from tools.pages.equations import tex

RANGES = {name: limits for name, limits in vars(law).items() if isinstance(limits, Range)}
# What the chapters quote is documented by the chapters.
MODULES = [name for name in calc.SUBMODULES if name != "derivations"]
WIDTH = 78  # of a signature, in characters: more would have to be scrolled
FRONT = "calc"  # the page of what `import calc` itself offers
# What is code already, what is to become it, and symbols with a subscript.
SPAN = re.compile(r'(`[^`]*`)|(\{"[^}]*\}|"[^"\s]+")|(?<!\w)([^\W\d_]_(?:\w+|\{[^}]*\}))')
TITLES: tuple[str, ...] = ("Argument", "Symbol", "Unit", "Range", "Meaning")
WIDTHS: tuple[str, ...] = tuple(":" + "-" * part for part in (13, 4, 10, 6, 17))
STARS = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}
OVERVIEW = """Every number of this book comes from `calc`, a Python library whose laws
and data need only pint; what needs more says so. It is yours to use:

```python
>>> import calc
>>> print(calc.hardware.H100.ridge_point("fp16"))
295.2 FLOP/byte
```

A **law** is a function that is its equation. It takes quantities, texts such as `"3.35 TB/s"`, or
numpy arrays of them, converts them to the units that its page lists, and refuses what does not fit
with a sentence that names the argument: another dimension, NaN, a value outside the range. A bare
number is taken only where the unit is a count. `.to("GB/s")` converts what a law returns, and
`.m_as("GB/s")` gives the bare number.

| Module | What it holds |
|:--------------|:------------------------------------------------------------------|
"""


def pages() -> dict[str, str]:
    """The text of each page, by its path in the repository."""
    calc.all_laws()  # fills ARGUMENTS
    package = _package()
    rows = [_row("calc", FRONT, package)]
    texts = {FRONT: _page("calc {#calc .unnumbered}", _front(package))}
    for name in MODULES:
        module = _module(package, name)
        rows.append(_row(f"calc.{name}", name, module))
        parts = [_prose(module)]
        for member in public_members(module):
            parts += _member(name, member)
        texts[name] = _page(f"calc.{name} {{#calc-{name} .unnumbered}}", parts)
    texts["index"] = _page("The library {.unnumbered}", [OVERVIEW + "\n".join(rows)])
    return {f"reference/calc/{name}.qmd": text for name, text in texts.items()}


@cache
def _package() -> griffe.Module:
    """`calc` as griffe reads it, without what has no page."""
    loader = griffe.GriffeLoader(search_paths=[ROOT])
    loader.finder = _Finder([ROOT])
    package = loader.load("calc")
    assert isinstance(package, griffe.Module)
    return package


class _Finder(griffe.ModuleFinder):
    def submodules(self, module: griffe.Module) -> list[tuple[tuple[str, ...], Path]]:
        modules = super().submodules(module)
        return [
            (name, path) for name, path in modules if name[0] not in ("commands", "derivations")
        ]


def files() -> list[str]:
    """Return the files that the pages are read from."""
    return [str(path) for _, path in _Finder([ROOT]).submodules(_package())]


def _page(title: str, parts: list[str]) -> str:
    return generated(title, "the docstrings of calc", "\n\n".join(parts))


def _row(title: str, name: str, module: griffe.Module) -> str:
    summary = _first_sentence(module).removeprefix("calc: ")
    anchor = title.replace(".", "-")
    return f"| [`{title}`]({name}.qmd#{anchor}) | {summary} |"


def _module(package: griffe.Module, name: str) -> griffe.Module:
    module = package[getattr(calc, name).__name__.removeprefix("calc.")]
    assert isinstance(module, griffe.Module)
    return module


def public_members(module: griffe.Module) -> list[griffe.Function | griffe.Class]:
    """Return the public members of a module, or those that a package takes from its own modules, in
    the order of their source.
    """
    members: Iterable[griffe.Object | griffe.Alias] = module.members.values()
    if module.is_init_module:
        members = (
            member.final_target
            if isinstance(member, griffe.Alias) and member.target_path.startswith(f"{module.path}.")
            else member
            for member in members
        )
    listed = [
        member
        for member in members
        if isinstance(member, griffe.Function | griffe.Class) and not member.name.startswith("_")
    ]
    return sorted(listed, key=lambda member: (member.module.path, member.lineno or 0))


def _front(package: griffe.Module) -> list[str]:
    parts = [_prose(package)]
    for name in calc.__all__:
        home = getattr(calc, name).__module__
        member = package[f"{home}.{name}".removeprefix("calc.")]
        if isinstance(member, griffe.Alias):
            member = member.final_target
        if isinstance(member, griffe.Function):
            parts += _member(FRONT, member)
        else:  # pint's own pages tell the methods of its classes
            parts += [_heading(FRONT, FRONT, name), _prose(member)]
    return parts


def _member(page: str, member: griffe.Function | griffe.Class) -> Iterator[str]:
    yield _heading(page, page, member.name)
    if isinstance(member, griffe.Function):
        yield from _function(f"{page}.{member.name}", member)
        return
    first, *rest = _blocks(member)
    yield _block(first, member)
    if "__init__" in member.members and "dataclass" not in member.labels:
        yield f"```\n{_call(f'{page}.{member.name}', _parameters(member))}\n```"
    yield from (_block(block, member) for block in rest)
    parts = [
        part
        for part in _own_and_hidden_parts(member)
        if isinstance(part, griffe.Function | griffe.Attribute)
        and part.docstring
        and not part.name.startswith("_")
    ]
    if parts:
        yield "\n".join(
            ["| Member | What it gives |", "|:----------|:--------------------|"]
            + [f"| `{_signature(part)}` | {_first_sentence(part)} |" for part in parts]
        )
    for part in parts:
        for index, block in enumerate(_blocks(part)[1:]):
            named = "" if index or _is_example(block) else f"`{part.name}`: "
            yield named + _block(block, part)


def _own_and_hidden_parts(member: griffe.Class) -> Iterator[griffe.Object]:
    """The parts of a class, with those of a base that has no place on the page itself."""
    shown = member.module.parent.members if member.module.parent else {}
    for part in member.all_members.values():
        if not isinstance(part, griffe.Alias):
            yield part
        elif (base := part.final_target.parent) and base.name not in shown:
            yield part.final_target


def _signature(part: griffe.Function | griffe.Attribute) -> str:
    """A method with its arguments; what is read without a call by its name alone."""
    if isinstance(part, griffe.Attribute):
        return part.name
    return _call(part.name, _parameters(part))


def _first_sentence(documented: griffe.Object) -> str:
    return _block(_blocks(documented)[0].replace("\n", " "), documented)


def _parameters(function: griffe.Function | griffe.Class) -> list[griffe.Parameter]:
    parameters = [
        parameter for parameter in function.parameters if parameter.name not in ("self", "cls")
    ]
    return [member for member in parameters if not member.name.startswith("_")]


def _heading(page: str, owner: str, name: str) -> str:
    return f"## {owner}.{name} {{#calc-{page}-{name} .unnumbered}}"


def _function(called: str, function: griffe.Function) -> Iterator[str]:
    listed = _parameters(function)
    first, *rest = _blocks(function)
    equations = [block for block in rest if block.startswith("Equation: ")]
    yield _block(first, function)
    annotations = [*(parameter.annotation for parameter in listed), function.returns]
    has_units = any(_annotated(annotation, function) for annotation in annotations)
    yield f"```\n{_call(called, listed, None if has_units else function.returns)}\n```"
    yield from (_block(block, function) for block in equations)
    if has_units:
        yield _units_table(function)
        rest = [block for block in rest if not parameters(block)]  # which the table says
    yield from (_block(block, function) for block in rest if block not in equations)


def _call(
    called: str, parameters: list[griffe.Parameter], returns: str | griffe.Expr | None = None
) -> str:
    """The call, with types where it is told what it returns: elsewhere a table has the units."""
    arguments = [_given(parameter, typed=returns is not None) for parameter in parameters]
    keyword_only = griffe.ParameterKind.keyword_only
    first = next(
        (i for i, parameter in enumerate(parameters) if parameter.kind is keyword_only), None
    )
    if first is not None and parameters[first - 1].kind is not griffe.ParameterKind.var_positional:
        arguments.insert(first, "*")
    end = ")" if returns is None or str(returns) == "Any" else f") -> {returns}"
    line = f"{called}({', '.join(arguments)}{end}"
    if len(line) > WIDTH:
        line = f"{called}(\n" + "".join(f"    {parameter},\n" for parameter in arguments) + end
    return line


def _given(parameter: griffe.Parameter, typed: bool) -> str:
    name, equals = parameter.name, "="
    if typed and str(parameter.annotation) != "Any":
        name, equals = f"{name}: {parameter.annotation}", " = "
    if parameter.kind in STARS:
        return f"{STARS[parameter.kind]}{name}"
    if parameter.default is None:
        return name
    return f"{name}{equals}{_default(str(parameter.default))}"


def _default(source: str) -> str:
    """A constant as a default is shown by its name."""
    constant = re.fullmatch(r"constants\.get\('(\w+)'\)", source)
    return f"constants.{constant[1]}" if constant else source.replace("'", '"')


def _units_table(function: griffe.Function) -> str:
    """Return a table of the arguments, with units and ranges, and with symbols if it is a law."""
    called = _public_name(function.path)
    symbols = {argument.name: f"${tex(argument.symbol)}$" for argument in ARGUMENTS.get(called, [])}
    meanings = parameters(_docstring(function))
    rows = [TITLES, WIDTHS]
    for parameter in _parameters(function):
        unit, range_ = _annotated(parameter.annotation, function) or (
            _type(parameter.annotation),
            "",
        )
        if not (words := meanings.get(parameter.name)):
            raise SystemExit(f"{called}: say what {parameter.name} is in its docstring, Parameters")
        symbol = symbols.get(parameter.name, "")
        rows.append((f"`{parameter.name}`", symbol, unit, range_, SPAN.sub(_span, words)))
    unit, _ = _annotated(function.returns, function) or (_type(function.returns), "")
    rows.append(("returns", "", unit, "", ""))
    if not symbols:
        rows = [(argument, *rest) for argument, _, *rest in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _public_name(path: str) -> str:
    """The name below calc, which says nothing of the folder that a module lies in."""
    folder, _, rest = path.removeprefix("calc.").partition(".")
    return f"{folder}.{rest}" if folder in calc.SUBMODULES else rest


def _type(annotation: str | griffe.Expr | None) -> str:
    """Return the cell of the type of an argument without a unit."""
    return f"`{annotation}`".replace(" | ", "` or `")


def _annotated(
    annotation: str | griffe.Expr | None, function: griffe.Function
) -> tuple[str, str] | None:
    """Unit and range of `Annotated[QuantityLike, "byte/s", NON_NEGATIVE] | None`, else None.

    The range may be words of its own, and the whole may have a name in the function's module.
    """
    named = function.module.members.get(str(annotation))
    source = str(named.value if isinstance(named, griffe.Attribute) else annotation)
    if not source.startswith("Annotated["):
        return None
    call = ast.parse(source, mode="eval").body
    if isinstance(call, ast.BinOp):  # or None, where it may be left out
        call = call.left
    assert isinstance(call, ast.Subscript)
    assert isinstance(call.slice, ast.Tuple)
    kind, unit, *rest = call.slice.elts
    names = [part.id for part in rest if isinstance(part, ast.Name)]
    words = _interval(next((RANGES[name] for name in names if name in RANGES), POSITIVE))
    if ast.unparse(kind) != "QuantityLike":  # whose text is the symbol
        words = next((str(part.value) for part in rest if isinstance(part, ast.Constant)), words)
    text = ast.literal_eval(unit)
    return (f"`{text}`" if text else "pure number"), words


def _interval(allowed: Range) -> str:
    if allowed.high == math.inf:
        return f"{'≥' if allowed.low_included else '>'} {allowed.low:g}"
    return f"{'' if allowed.low_included else 'above '}{allowed.low:g} to {allowed.high:g}"


def _docstring(documented: griffe.Object | griffe.Alias) -> str:
    if not documented.docstring:
        raise SystemExit(f"{documented.path} is public and has no docstring")
    return documented.docstring.value


def _blocks(documented: griffe.Object | griffe.Alias) -> list[str]:
    plain = re.sub(r"^Examples\n-+\n", "", _docstring(documented), flags=re.MULTILINE)
    return re.split(r"\n{2,}", plain.strip())


def _prose(documented: griffe.Object | griffe.Alias) -> str:
    return "\n\n".join(_block(block, documented) for block in _blocks(documented))


def _block(block: str, documented: griffe.Object | griffe.Alias) -> str:
    """A paragraph of a docstring as Markdown."""
    label, _, rest = block.partition(": ")
    rest = " ".join(rest.split())
    if label == "Equation":
        return f"$$\n{tex(rest)}\n$$"
    if label == "Source":
        return f"Source: {'; '.join(f'@{key.strip()}' for key in rest.split(','))}."
    if label == "See also":
        return f"See also: {', '.join(map(_link, rest.split(', ')))}."
    if _is_example(block):
        lines = re.sub(r" *# doctest:.*", "", textwrap.dedent(block))
        return "\n".join(["```python", *_imports(lines, documented), lines, "```"])
    if explained := parameters(block):
        block = "\n".join(f"- `{name}`: {words}" for name, words in explained.items())
    if block.startswith("    "):
        return f"```python\n{textwrap.dedent(block)}\n```"
    return SPAN.sub(_span, block)


def _link(name: str) -> str:
    module, _, member = name.partition(".")
    return f"[`{name}`]({module}.qmd#calc-{module}-{member})"


def _span(match: re.Match[str]) -> str:
    code, text, symbol = match.groups()
    if symbol:
        return f"${tex(symbol)}$"
    return code or f"`{text}`"


def _is_example(block: str) -> bool:
    return block.lstrip().startswith(">>>")


def _imports(example: str, documented: griffe.Object | griffe.Alias) -> list[str]:
    """Return the imports of names that an example takes from its module, for whoever pastes it."""
    source = "".join(part.source for part in doctest.DocTestParser().get_examples(example))
    bound, needed = set(dir(builtins)), set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            (needed if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    places: dict[str, list[str]] = {}
    for name in sorted(needed - bound):
        places.setdefault(_importable_from(name, documented), []).append(name)
    return [f">>> from {module} import {', '.join(places[module])}" for module in sorted(places)]


def _importable_from(name: str, documented: griffe.Object | griffe.Alias) -> str:
    """Return where a name is public: calc itself, the module's package, or where it is defined."""
    module = documented.module
    member = module.members.get(name)
    here = member is not None and not isinstance(member, griffe.Alias)
    public = name in calc.__all__
    if public and not (here and getattr(calc, name).__module__ != module.path):  # no other `step`
        return "calc"
    package = module.parent
    if package and package.path != "calc" and name in package.members:
        return package.path
    if member is None:
        raise SystemExit(f"{documented.path}: an example uses {name}, which it does not import")
    path = member.target_path if isinstance(member, griffe.Alias) else member.path
    return path.rpartition(".")[0]
