"""Work that an executor does: results as they are finished, and what it loses given once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, NamedTuple

from calc.core.errors import InputError, abbreviated


class _Task(NamedTuple):
    makes: Any
    function: Callable[..., object]
    arguments: tuple[object, ...]
    again: bool = False


class Tasks:
    """Tasks by what they make; more may be submitted while their results come.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor() as executor:
    ...     tasks = Tasks(executor)
    ...     tasks.submit("three", len, "abc")
    ...     print(list(tasks))
    [('three', 3)]
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.pending: dict[Future[object], _Task] = {}
        self.finished: SimpleQueue[Future[object]] = SimpleQueue()

    def submit(self, makes: object, function: Callable[..., object], *arguments: object) -> None:
        self._submit(_Task(makes, function, arguments))

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Yield what each task makes, and its result, as it is finished; an error is raised."""
        while self.pending:
            future = self.finished.get()
            task = self.pending.pop(future)
            if _lost(future) and not task.again:
                self._submit(task._replace(again=True))
            else:
                yield task.makes, future.result()

    def cancel(self) -> Iterator[tuple[Any, Any]]:
        """Give up what has not begun; the results that were there already, when another failed."""
        for future in self.pending:
            future.cancel()
        for future, task in self.pending.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                yield task.makes, future.result()

    def _submit(self, task: _Task) -> None:
        future = self.executor.submit(task.function, *task.arguments)
        self.pending[future] = task
        future.add_done_callback(self.finished.put)


def check_executor(executor: Executor | None) -> None:
    """Refuse whatever is no executor; None is allowed, and work is then done here."""
    if executor is not None and not isinstance(executor, Executor):
        raise InputError(
            f"executor must be one of concurrent.futures, as ProcessPoolExecutor(); got"
            f" {abbreviated(executor)}"
        )


def _lost(future: Future[object]) -> bool:
    """Return whether the executor failed, not the task: Dask's can while it moves tasks."""
    error = future.exception()
    return error is not None and not isinstance(error, InputError)
