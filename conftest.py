"""Which files pytest looks at for examples, who runs what, and that no process outlives a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.workers import STARTED_BY, FilesTogether, left_behind


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """`--doctest-modules` would import every module: one without an example has no test, and those
    of `calc.derivations` compute for long."""
    if collection_path.suffix != ".py" or collection_path.name.startswith("test_"):
        return None
    return ">>> " not in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Examples of a module without its extra are skipped; a file of tests that fails to import is
    an error, which `--doctest-ignore-import-errors` would pass over."""
    report = yield
    tests = isinstance(collector, pytest.File) and collector.path.name.startswith("test_")
    if tests and report.skipped and "unable to import module" in str(report.longrepr):
        report.outcome, report.longrepr = "failed", str(report.longrepr)
    return report


@pytest.hookimpl(optionalhook=True)  # where there is no xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FilesTogether | None:
    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False  # what takes longest begins, and not what has most tests
    return FilesTogether(config, log)


@pytest.fixture(scope="session", autouse=True)
def _no_process_outlives_the_tests() -> Iterator[None]:
    os.environ[STARTED_BY] = str(os.getpid())
    yield
    if kept := sys.modules.get("press.document.pandoc"):
        kept.end_pandocs()  # which wait for a next page, and end with this process
    assert not [*left_behind()], "these processes outlive the tests that started them"
