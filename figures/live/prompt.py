"""A prompt of Python with calc at hand: runs what is typed, completes names, and keeps plots.

A page asks `run` and `complete`, which speak JSON, and draws what `plot` was given.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import os
import sys
import traceback
from collections.abc import Iterable
from rlcompleter import Completer
from typing import Any, NoReturn

import calc
from calc.core.errors import InputError
from calc.core.units import Quantity
from figures.live.model import Axis, Drawing

_plots: list[dict[str, Any]] = []


def plot(
    x: Iterable[Any], y: Iterable[Any], across: str = "x", upward: str = "y", log: bool = False
) -> None:
    """Draws a line through pairs of numbers or quantities, on logarithmic axes where asked.

    >>> plot([quantity("1 kB"), quantity("2 kB")], [1, 4], across="Size")
    """
    places, horizontal = _numbers(x)
    heights, vertical = _numbers(y)
    if not places or len(places) != len(heights):
        raise InputError(
            f"plot() needs as many numbers upward as across, and one at least; got {len(places)}"
            f" and {len(heights)}"
        )
    drawing = Drawing(Axis(across, horizontal, log), Axis(upward, vertical, log))
    rows = [(upward, *pair) for pair in zip(places, heights, strict=True)]
    about = {"mark": drawing.mark, "x": vars(drawing.x), "y": vars(drawing.y)}
    _plots.append({"drawing": about, "rows": rows, "dots": [], "levels": []})


def _numbers(values: Iterable[Any]) -> tuple[list[float], str]:
    """Plain numbers, and the unit of the first, which all are given in."""
    numbers = list(values)
    unit = str(numbers[0].units) if numbers and isinstance(numbers[0], Quantity) else ""
    return [
        float(value.m_as(unit)) if isinstance(value, Quantity) else float(value)
        for value in numbers
    ], unit


def describe(thing: object = None) -> None:
    """Prints what a thing says of itself, in place of Python's `help`, which wants a terminal."""
    print(inspect.getdoc(thing) if thing is not None else "help(thing), as in help(calc.plan)")


def _leave(status: int) -> NoReturn:
    """Raise SystemExit for `os._exit`, which would end the page's Python without a word."""
    raise SystemExit(status)


quantity = calc.quantity
_names: dict[str, Any] = {"calc": calc, "plot": plot, "quantity": quantity, "help": describe}


def run(source: str) -> str:
    """Run a piece of Python; return its output, last value, plots and error, as JSON.

    >>> json.loads(run("quantity('1 GB') / quantity('2 GB/s')"))["text"]
    '500 ms\\n'
    >>> json.loads(run("calc.hardware.get('h1000')"))["error"][:12]
    'there is no '
    """
    _plots.clear()
    printed, error = io.StringIO(), ""
    end, os._exit = os._exit, _leave
    try:
        with contextlib.redirect_stdout(printed):
            _execute(source)
    except InputError as refusal:
        error = str(refusal)
    except SystemExit:
        error = "Nothing ends here: the prompt goes on until the page is closed."
    except ModuleNotFoundError as missing:
        error = str(missing)
        if (missing.name or "").partition(".")[0] in sys.stdlib_module_names:
            error += ": what needs a terminal, processes or a network is left out of the page"
    except BaseException as fault:  # of what is typed, a KeyboardInterrupt too
        error = "".join(traceback.format_exception_only(fault)).strip()
    finally:
        os._exit = end
    return json.dumps({"text": printed.getvalue(), "error": error, "plots": _plots})


def _execute(source: str) -> None:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<prompt>", "exec"), _names)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "<prompt>", "eval"), _names)
        if value is not None:
            print(repr(value) if isinstance(value, str) else value)


def complete(text: str) -> str:
    """The names that a beginning may become.

    >>> json.loads(complete("calc.roofl"))
    ['calc.roofline']
    """
    completer = Completer(_names)
    words: list[str] = []
    while (name := completer.complete(text, len(words))) is not None:
        words.append(name.removesuffix("("))
    return json.dumps(words[:40])
