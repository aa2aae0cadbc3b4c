"""Executors that end or lose tasks, as those of a cluster do."""

from __future__ import annotations

from collections.abc import Container
from concurrent.futures import Executor, Future
from typing import Any


class Dies(Executor):
    """Ends after some tasks, as an executor that is shut down from elsewhere."""

    def __init__(self, tasks: int) -> None:
        self.left = tasks

    def submit(self, task: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        if not self.left:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self.left -= 1
        future: Future[Any] = Future()
        future.set_result(task(*arguments, **named))
        return future


class Loses(Executor):
    """Gives an error for the result of some tasks, as Dask's can when a worker is lost."""

    def __init__(self, lost: Container[int]) -> None:
        self.lost, self.submitted = lost, 0

    def submit(self, task: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        self.submitted += 1
        future: Future[Any] = Future()
        try:
            if self.submitted in self.lost:
                raise ValueError("too many values to unpack")
            future.set_result(task(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future
