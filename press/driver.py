"""Takes the chapters of a book through stages: it alone remembers, collects problems, and runs work
side by side. What a stage does is a function of what it takes, and knows of none of this."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import Any, NamedTuple

from press.build_memory import Memory, digest
from press.problems import BookError, Problems

CORES = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


class Scope(Enum):
    EACH = "a chapter at a time"
    ACROSS = "the whole book, a thing for each chapter"
    ONCE = "the whole book, one thing"


class Stage(NamedTuple):
    scope: Scope
    makes: str
    work: Callable[..., Any]
    takes: str  # in order, the names of what is given to the build, or made by a stage above
    kept: Callable[[Any], bool] | None = None  # remembered, for as long as this holds of it
    counts: Callable[[Any], object] | None = None  # all of it that matters to what is made of it
    beside: str = ""  # what it depends on without taking it, and what others may change meanwhile


class Product(NamedTuple):
    value: Any
    digest: Any = None  # of what it depends on or holds; without one, nothing kept is made of it


Products = dict[str, Product]


@dataclass
class Driver:
    book: Products  # what is given, and then made, for the whole book
    chapters: list[Products]  # and for each chapter
    memory: Memory | None = None  # not needed where no stage is kept
    made_by: str = ""  # the digest of what makes it all
    still: Callable[[], bool] = lambda: True  # whether what stands beside a stage is as it was
    unsure: list[tuple[str, str, Any]] = field(default_factory=list)  # what `still` has yet to say
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(CORES))

    def drive(self, stages: Iterable[Stage]) -> None:
        """Goes through the stages. Each chapter takes those that lie between two of the whole book
        at its own pace, and the problems of all chapters there come at once."""
        for for_chapters, run in groupby(stages, lambda stage: stage.scope is Scope.EACH):
            if for_chapters:
                self._side_by_side(list(run))
            else:
                for stage in run:
                    self._whole(stage)

    def drive_all(self, lanes: Iterable[list[Stage]]) -> None:
        """Goes through several runs of stages at a time."""
        pool = ThreadPoolExecutor()
        self._wait([pool.submit(self.drive, lane) for lane in lanes])

    def values(self, name: str) -> list[Any]:
        """Return each chapter's product of this name."""
        return [chapter[name].value for chapter in self.chapters]

    def _side_by_side(self, stages: list[Stage]) -> None:
        def go(chapter: Products) -> None:
            for stage in stages:
                chapter[stage.makes] = self._made(stage, self.book | chapter)

        try:
            self._wait([self.pool.submit(go, chapter) for chapter in self.chapters])
        finally:
            # Where something changed meanwhile nobody can say what the cells saw.
            if self.memory and self.unsure and self.still():
                for kept in self.unsure:
                    self.memory.keep(*kept)
            self.unsure.clear()

    def _whole(self, stage: Stage) -> None:
        of_all: Products = {}
        for name in set(stage.takes.split()) - self.book.keys():
            digests = [chapter[name].digest for chapter in self.chapters]
            of_all[name] = Product(self.values(name), None if None in digests else digests)
        value = self._made(stage, self.book | of_all).value
        if stage.scope is Scope.ONCE:
            self.book[stage.makes] = Product(value, digest(value))
        else:
            for chapter, of_chapter in zip(self.chapters, value, strict=True):
                chapter[stage.makes] = Product(of_chapter, digest(of_chapter))

    def _made(self, stage: Stage, products: Products) -> Product:
        taken = [products[name] for name in stage.takes.split()]
        digests = [product.digest for product in taken]
        made_from = None if None in digests else digest(stage.makes, self.made_by, digests)
        values = [product.value for product in taken]
        if not stage.kept:
            value = stage.work(*values)
            return Product(value, digest(stage.counts(value)) if stage.counts else made_from)
        assert self.memory
        assert made_from, f"{stage.makes} is kept, but made of what has no digest"
        if stage.beside:
            made_from = digest(made_from, products[stage.beside].digest)
        recalled = self.memory.recall(stage.makes, made_from)
        if recalled and stage.kept(recalled[0]):
            return Product(recalled[0], made_from)
        value = stage.work(*values)
        if stage.beside:
            self.unsure.append((stage.makes, made_from, value))
        else:
            self.memory.keep(stage.makes, made_from, value)
        return Product(value, made_from)

    def _wait(self, jobs: list[Future[None]]) -> None:
        try:
            for job in jobs:
                job.exception()  # wait() would never hear of one that another thread cancelled
        except KeyboardInterrupt:
            self.pool.shutdown(wait=False, cancel_futures=True)
            raise
        problems = Problems()
        for job in jobs:
            try:
                job.result()
            except BookError as error:
                problems += error.problems
        problems.stop_if_any()
