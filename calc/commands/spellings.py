"""Spellings of options by engines and people: understood, and answered with those of calc."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from calc.catalog import machines
from calc.catalog.asking import ours
from calc.commands.options import option_of, split_at_commas
from calc.core.arguments import counted
from calc.core.errors import InputError, did_you_mean, marked
from calc.core.records import DATA, read_toml


def in_our_words(
    parser: argparse.ArgumentParser, words: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the words of a command line with our options, and what is said of those, in lines."""
    translated: list[str] = []
    notes: list[str] = []
    actions = {action.dest: action for action in parser._actions if action.option_strings}
    for index, word in enumerate(words):
        theirs, equals, value = word.partition("=")
        if word == "--":  # behind which nothing is an option
            return [*translated, *words[index:]], notes
        notes += _binary(value or word)
        if index == 1 and "machines" in actions and _are_model_and_machine(words):
            notes.append(f"calc: {word} is {option_of('machines')} here")
            translated += [option_of("machines"), word]
        elif theirs in parser._option_string_actions or not theirs.startswith("-"):
            translated.append(word)
        elif (ours_of_it := _argument(theirs, actions)) in actions:
            notes.append(f"calc: {theirs} is {option_of(ours_of_it)} here")
            translated.append(f"{option_of(ours_of_it)}{equals}{value}")
        elif ours_of_it is not None:
            parser.error(
                f"{theirs} is {option_of(ours_of_it)} here, which {parser.prog} does not take"
            )
        elif instead := read_toml(DATA / "spellings.toml")["instead"].get(theirs):
            parser.error(f"there is no {theirs} here: {instead}")
        elif theirs.startswith("--") and " " not in theirs:
            strings = (each for each in parser._option_string_actions if each.startswith("--"))
            near = did_you_mean(theirs, strings) or "its help prints all that there are "
            parser.error(f"there is no {theirs}; {near.strip()}")
        else:
            translated.append(word)
    return translated, notes


def _binary(word: str) -> list[str]:
    """Return in a line what a count such as 8k is, where k is no thousand."""
    count = counted(word)
    return [f"calc: {word} is {count:.0f} here"] if count != word and count % 1000 else []


def _are_model_and_machine(words: Sequence[str]) -> bool:
    """Return whether a command that takes machines by an option was given one behind its model."""
    begins = any(each.startswith("-") for each in words[:2])
    return not begins and not any(each.partition("=")[0] == "--machines" for each in words)


def count_devices(options: argparse.Namespace) -> None:
    """Take the number of devices out of `8xh100`, and let `--devices` be it.

    An engine that is fitted is cut over all of them, `--tensor`. Several machines by commas have
    one number, or none; those that are compared each their own.
    """
    for name in {"device", "hardware", "machines"} & vars(options).keys():
        value = getattr(options, name)
        pairs = [machines.counted(each) for each in split_at_commas(value or "")]
        counts = {count for _, count in pairs}
        if counts == {None}:
            continue
        actions = {action.dest: action for action in options.command._actions}
        argument = _argument("--devices", actions)
        alone = ",".join(key for key, _ in pairs)
        if argument is None:
            raise InputError(f"one device is meant here; got {value!r}: write {alone!r}")
        action, asked = actions[argument], getattr(options, argument)
        words = marked(argument, asked)
        if asked != action.default and counts != {int(asked) if str(asked).isdigit() else asked}:
            raise InputError(
                f"{value!r} says how many devices there are, and {words} is given beside it: write"
                f" {alone!r} with {words}, or leave {marked(argument)} out"
            )
        if len(counts) > 1 and name != "machines":
            raise InputError(
                f"{marked(argument)} is one number for all machines; got {value!r}: ask for each"
                " of them alone"
            )
        several = ",".join(f"{key}={count}" for key, count in pairs if count is not None)
        count = counts.pop()
        setattr(options, name, alone)
        setattr(
            options, argument, several if counts else str(count) if action.type is str else count
        )


def _argument(theirs: str, actions: Mapping[str, argparse.Action]) -> str | None:
    """Return the argument that an option is here: what is fitted shares all of its devices."""
    name = "devices" if theirs == "--devices" else ours(theirs)
    if name == "devices" and name not in actions:
        return "tensor" if "tensor" in actions else ours(theirs)
    return name
