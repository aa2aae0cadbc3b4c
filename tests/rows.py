"""Rows of a table that one test looks at: all that are wrong are told, not the first alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any

import pytest

Row = Callable[[object], AbstractContextManager[None]]


@contextmanager
def each_row() -> Iterator[Row]:
    """Gives what a test puts around its look at a row, with the name of that row.

    A test for each of thousands of rows would take longer to count than to run.
    """
    wrong: list[BaseException] = []
    names: list[str] = []

    @contextmanager
    def row(name: object) -> Iterator[None]:
        try:
            yield
        except (Exception, pytest.fail.Exception) as failure:
            failure.add_note(f"This is of {name}.")
            wrong.append(failure)
            names.append(str(name))

    yield row
    if wrong:
        raise BaseExceptionGroup(f"wrong: {', '.join(names)}", wrong)


def for_each(cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make of the check of a case one test of all of them, as `each_row` tells what is wrong."""

    def of_all(check: Callable[..., None]) -> Callable[[], None]:
        @wraps(check)
        def test() -> None:
            with each_row() as row:
                for case in cases:
                    with row(getattr(case, "key", case)):
                        check(*case) if isinstance(case, tuple) else check(case)

        del test.__wrapped__  # of which pytest would take the arguments
        return test

    return of_all
