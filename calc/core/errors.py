"""Errors that a user's mistake raises: calc's InputError, or pint's DimensionalityError.

Whatever converts, adds or compares quantities of different dimensions outside a law, as in
`quantity("5 GB", "s")`, raises pint's; text that cannot be read, a law's arguments, names and data
raise InputError.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

# What stands around an argument in a message, and between its parts: no text that is typed has it.
BEGIN, BETWEEN, END = "\ue000", "\ue001", "\ue002"
MARKED = re.compile(f"{BEGIN}(.*?){BETWEEN}(.*?){BETWEEN}(.*?){END}", re.DOTALL)
NOTHING = object()


class InputError(ValueError):
    """Something given to calc cannot be used; the message says what, why, and what is needed.

    `argument` is the name of what was refused, `given` what it was, and `allowed` what it may be,
    as far as these are known. An argument that a message has as `marked` is told in Python's
    spelling, `tensor=16`, unless `spelled` is asked for another one.
    """

    def __init__(
        self,
        message: object = "",
        *,
        argument: str | None = None,
        given: object = None,
        allowed: object = None,
    ) -> None:
        self.message = str(message)
        first = MARKED.search(self.message)
        of_message = first[2] if first and first[2].isidentifier() else None
        self.argument = argument or of_message
        self.given, self.allowed = given, allowed
        super().__init__(self.spelled(in_python))

    def spelled(self, spelling: Callable[[str, str, str], str]) -> str:
        """Return the message, with each marked argument as a spelling has it.

        A spelling is a function of the law that takes the argument, of its name and of its value as
        Python writes it, each "" where there is none.
        """
        return MARKED.sub(lambda match: spelling(*match.groups()), self.message)


def marked(argument: str, value: object = NOTHING, law: str = "") -> str:
    """Return an argument, or one with its value, as a message of an InputError holds it.

    The law that takes it may stand before it, as in "fit(): epochs".

    >>> print(InputError(f"{marked('tensor', 16)} would hold it"))
    tensor=16 would hold it
    >>> InputError(f"{marked('fit(): epochs')} must be a whole number").argument
    'epochs'
    """
    before, _, argument = argument.rpartition("(): ")
    law = law or before
    typed = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    typed = "" if value is NOTHING else typed
    return f"{BEGIN}{law}{BETWEEN}{argument}{BETWEEN}{typed}{END}"


def marked_all(values: Mapping[str, object]) -> str:
    """Return arguments with their values in one text, those that are left out, None, not.

    >>> print(InputError(marked_all({"tensor": 16, "copies": None, "experts": 8})))
    tensor=16, experts=8
    """
    return ", ".join(marked(name, value) for name, value in values.items() if value is not None)


def in_python(law: str, argument: str, value: str) -> str:
    """Return an argument as a call in Python has it."""
    name = f"{law}(): {argument}" if law else argument
    return f"{name}={value}" if value else name


class NumpyNeededError(InputError):
    """Numbers in a list or an array are given where numpy is not installed."""


class MissingExtraError(InputError, ImportError):
    """A part of calc is used whose extra is not installed; the message says how to install it."""

    def __init__(self, who: str, package: str, extra: str) -> None:
        super().__init__(
            f"{who} needs {package}, which is not installed;"
            f' pip install "machine-foundations[{extra}]", or ".[{extra}]" in the checkout'
        )


@contextmanager
def extra(who: str, package: str, name: str) -> Iterator[None]:
    """Imports for what needs a package of the extra of that name."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(who, package, name) from None


def do_not_broadcast(values: Iterable[object]) -> InputError:
    """Return the error for arrays whose shapes do not broadcast."""
    shapes = " and ".join(str(shape) for value in values if (shape := getattr(value, "shape", ())))
    return InputError(f"arrays of shapes {shapes} do not broadcast")


def abbreviated(value: object) -> str:
    """Return a given value as text, short enough for the sentence that refuses it."""
    shown = str(value) if hasattr(value, "dimensionality") else repr(value)
    text = " ".join(shown.split())
    return text if len(text) <= 60 else text[:57] + "..."


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return a question with up to three names that begin with the given one, have it as a part,
    or else look like it."""
    candidates = list(names)
    near = [name for name in candidates if word and name.startswith(word)]
    near = near or [name for name in candidates if f"-{word}-" in f"-{name}-"]
    near = near or difflib.get_close_matches(word, candidates, cutoff=0.5)
    *others, last = near[:3] or [""]
    joined = f"{', '.join(others)} or {last}" if others else last
    return f"did you mean {joined}? " if joined else ""


def one_of_counts(counts: Sequence[int]) -> str:
    """Return what a refusal offers, of many the first ones and the last.

    >>> one_of_counts((1, 2, 4))
    '1, 2 or 4'
    """
    *others, last = map(str, counts if len(counts) <= 8 else (*counts[:7], counts[-1]))
    return f"{', '.join(others)} or {last}" if others else last
