"""How engines and people spell what options of calc mean: understood, and answered with ours."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import cache

from calc.catalog import machines
from calc.commands.options import option_of, split_at_commas
from calc.core.errors import InputError, marked
from calc.core.records import DATA, read_toml


@cache
def _ours() -> dict[str, str]:
    """Return the argument that each foreign option is."""
    table = read_toml(DATA / "spellings.toml")["option"]
    return {theirs: ours for ours, others in table.items() for theirs in others}


def in_our_words(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Return the words of a command line with our options, and say on stderr which these are."""
    found = []
    known = {action.dest: action for action in parser._actions if action.option_strings}
    for word in words:
        theirs, equals, value = word.partition("=")
        if theirs in parser._option_string_actions or not theirs.startswith("-"):
            found.append(word)
        elif (ours := _ours().get(theirs)) in known:
            print(f"calc: {theirs} is {option_of(ours)} here", file=sys.stderr)
            found.append(f"{option_of(ours)}{equals}{value}")
        elif ours is not None:
            parser.error(f"{theirs} is {option_of(ours)} here, which {parser.prog} does not take")
        elif instead := read_toml(DATA / "spellings.toml")["instead"].get(theirs):
            parser.error(f"there is no {theirs} here: {instead}")
        else:
            found.append(word)
    return found


def count_devices(options: argparse.Namespace) -> None:
    """Take the number of devices out of `8xh100`, and let `--devices` be it.

    An engine that is fitted is cut over all of them, `--tensor`. Several machines by commas have
    one number, or none.
    """
    for name in {"device", "hardware", "machines"} & vars(options).keys():
        given = getattr(options, name)
        pairs = [machines.counted(each) for each in split_at_commas(given or "")]
        counts = {count for _, count in pairs}
        if counts == {None}:
            continue
        known = {action.dest: action for action in options.command._actions}
        argument = next((each for each in ("devices", "tensor") if each in known), None)
        if argument is None:
            raise InputError(f"one device is meant here; got {given!r}: leave its number out")
        action, asked = known[argument], getattr(options, argument)
        if asked != action.default:
            counts.add(int(asked) if str(asked).isdigit() else asked)
        if len(counts) > 1:
            beside = f" and {marked(argument, asked)}" if asked != action.default else ""
            raise InputError(
                f"{marked(argument)} is one number for all machines; got {given!r}{beside}"
            )
        (count,) = counts
        setattr(options, name, ",".join(key for key, _ in pairs))
        setattr(options, argument, str(count) if action.type is str else count)
